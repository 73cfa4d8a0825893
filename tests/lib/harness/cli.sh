# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Shared by the shell tests of the tool. A test script is
#
#     . ../lib/cli.sh
#     test_the_name_says_what_holds() { ...; }
#     run_tests
#
# run_tests runs every function test_* of the script in the order of the file, each in a
# subshell with a folder $work of its own, and prints KTAP. A test fails at its first failed
# expectation, and then its output is printed. Processes started by serve() or background() are
# ended after the test.
#
# Every wait is bounded. No test sleeps and hopes that something has happened meanwhile:
# wait_for() checks the condition itself.
#
# Needs: KXFER_ADDRESS, KXFER_ADDRESS6, KXFER_DEVICE, KXFER_PROVIDER, as the
# runner of the collection sets them; the module loaded, and its file, $KXFER_MODULE; root.

: "${KXFER_ADDRESS:=10.77.0.1}" "${KXFER_ADDRESS6:=fd77::1}"
# shellcheck disable=SC2034 # of the scripts that read this file
peer=$KXFER_ADDRESS
root=$(mktemp -d "${TMPDIR:-/tmp}/cli.XXXXXX") || exit 1
# as that of the C tests
module_file=${KXFER_MODULE:-/kxfer/kxfer.ko}
# time limit of one command
limit=${KXFER_TEST_LIMIT:-90}

# ---- expectations ----

fail() {
	echo "FAILED: $*"
	for file in "$work"/stdout "$work"/stderr "$work"/serve.out; do
		[ ! -s "$file" ] || sed "s,^,  ${file##*/}: ," "$file" | tail -n 30
	done
	exit 1
}

# Runs a command. Its output goes to $work/stdout and $work/stderr, its status to $status.
try() {
	timeout -k 5 "$limit" "$@" >"$work/stdout" 2>"$work/stderr"
	status=$?
}

# The command must end with this status.
expect() { # STATUS COMMAND...
	wanted=$1
	shift
	try "$@"
	[ "$status" -eq "$wanted" ] || fail "status $status instead of $wanted: $*"
}

expect_in() { # FILE TEXT
	grep -qF -- "$2" "$1" || fail "'$2' is not in ${1##*/}"
}

expect_not_in() { # FILE TEXT
	! grep -qF -- "$2" "$1" || fail "'$2' is in ${1##*/}"
}

expect_stdout() { expect_in "$work/stdout" "$1"; }
expect_stderr() { expect_in "$work/stderr" "$1"; }

# The result of the jq filter on stdout is exactly this text.
expect_json() { # FILTER TEXT
	got=$(jq -r "$1" "$work/stdout" 2>&1) || fail "stdout is not the JSON expected: $1: $got"
	[ "$got" = "$2" ] || fail "$1 is '$got' instead of '$2'"
}

expect_error_json() { # FILTER TEXT
	got=$(jq -r "$1" "$work/stderr" 2>&1) || fail "stderr is not the JSON expected: $1: $got"
	[ "$got" = "$2" ] || fail "$1 is '$got' instead of '$2'"
}

expect_equal_files() {
	cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

skip() {
	echo "SKIP $*"
	exit 4
}

# Skips, on a checking kernel, a script that only repeats what other scripts cover too.
skip_all_where_the_kernel_checks_itself() {
	[ "${KXFER_SLOWNESS:-1}" -eq 1 ] || skip_all="takes long on a kernel that checks itself"
}

# rxe has ATOMIC_WRITE and FLUSH from Linux 6.2 on, siw has neither.
has_atomic_write() {
	[ "$KXFER_PROVIDER" = rxe ] || return 1
	case $(uname -r) in
	6.[01].*) return 1 ;;
	esac
}

# Why the system calls of an operation cannot be counted here; nothing when they can.
why_calls_are_not_told() {
	if [ ! -d /sys/kernel/tracing/events/raw_syscalls ]; then
		echo "this kernel cannot count system calls"
	elif ! grep -qx tsc /sys/devices/system/clocksource/clocksource0/current_clocksource; then
		echo "every look at the clock is a system call here: it is not the TSC"
	fi
}

# ---- waiting ----

# Runs the command ten times a second until it succeeds.
wait_for() { # SECONDS COMMAND...
	tenths=$(($1 * 10))
	shift
	while ! "$@" >/dev/null 2>&1; do
		tenths=$((tenths - 1))
		[ $tenths -gt 0 ] || fail "waited in vain for: $*"
		sleep 0.1
	done
}

is_gone() { ! kill -0 "$1"; }

# Whether a process is gone, or a zombie that only waits to be collected.
is_over() { is_gone "$1" || grep -q '^State:.Z' "/proc/$1/status"; }

is_stopped() { grep -q '^State:.T' "/proc/$1/status"; }

# The value of a counter of the module.
counter() { kxfer --json stat | jq -r ".$1"; }

counter_passed() { [ "$(counter "$1")" -gt "$2" ]; }

# ---- processes ----

# Starts a command; sets $pid. Output as in try().
background() {
	"$@" >"$work/stdout" 2>"$work/stderr" </dev/null &
	pid=$!
	echo "$pid" >>"$work/pids"
}

# Waits until the command of background() has ended; sets $status.
collect() {
	wait_for "$limit" is_over "$pid"
	wait "$pid"
	status=$?
}

# Starts kxfer serve in the background and waits until peers can reach it. Without a --key
# option it listens without a key, because most tests are not about keys.
serve() {
	case " $* " in
	*" --key "*) no_key= ;;
	*) no_key=--no-key ;;
	esac
	# What an earlier one said must not be taken for this one's.
	: >"$work/serve.out"
	# shellcheck disable=SC2086 # an option or none
	kxfer serve $no_key "$@" >"$work/serve.out" 2>&1 </dev/null &
	serve_pid=$!
	echo "$serve_pid" >>"$work/pids"
	wait_for 60 is_serving_or_over "$serve_pid"
	grep -q listen "$work/serve.out" || fail "kxfer serve $* did not come up"
}

is_serving_or_over() { grep -q listen "$work/serve.out" || is_over "$1"; }

stop_serve() {
	kill -TERM "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	wait "$serve_pid"
	status=$?
}

# Ends the processes that a test left running; kills those that do not end on their own.
end_processes() {
	[ -e "$work/pids" ] || return 0
	while read -r left; do
		is_gone "$left" 2>/dev/null && continue
		kill -CONT "$left"
		kill -TERM "$left"
		tenths=100
		while ! is_over "$left" 2>/dev/null && [ $tenths -gt 0 ]; do
			sleep 0.1
			tenths=$((tenths - 1))
		done
		kill -KILL "$left"
	done <"$work/pids" 2>/dev/null
}

# ---- the module ----

load_module() {
	insmod "$module_file"
	wait_for 10 test -c /dev/kxfer
}

# The next measurement loads kxfer_bench.ko again.
remove_engine() {
	! grep -q '^kxfer_bench ' /proc/modules || rmmod kxfer_bench
}

remove_module() { remove_engine && rmmod kxfer; }

reload_module() {
	wait_for 10 remove_module
	load_module
}

# Removes the RDMA device and adds it again, which breaks its links.
renew_device() {
	netdev=$(rdma link show "$KXFER_DEVICE/1" | sed -n 's/.*netdev \([^ ]*\).*/\1/p')
	rdma link del "$KXFER_DEVICE"
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev "$netdev"
}

# ---- data ----

random_file() { # FILE BYTES
	head -c "$2" /dev/urandom >"$1"
}

sha256_of() { sha256sum "$1" | cut -d' ' -f1; }

# ---- the middle of a transfer ----

# bytes of large_file
large=67108864

# One file for all tests, each with a copy of it, because random bytes take long.
large_file() {
	[ -e "$root/large" ] || random_file "$root/large" $large
	cp "$root/large" file
}

# Whether a counter has passed a value. It has to be quick, because transfers are short.
has_passed() { # COUNTER VALUE
	awk -v name="$1" -v value="$2" '$1 == name { exit !($2 > value) }' /sys/kernel/debug/kxfer/counters
}

# Starts a transfer and stops it once it has moved more than it keeps in flight.
stop_midway() { # COUNTER COMMAND...
	counter=$1
	moved=$(($(counter "$counter") + 10000000))
	shift
	background "$@"
	looks=20000
	until has_passed "$counter" "$moved"; do
		looks=$((looks - 1))
		[ $looks -gt 0 ] || fail "waited in vain for $counter to grow"
	done
	kill -STOP "$pid"
	wait_for 10 is_stopped "$pid"
}

go_on() {
	kill -CONT "$pid"
	collect
}

# Like expect 0, but keeps the output files of the command in the background.
expect_after_stop() {
	timeout "$limit" "$@" >second.out 2>&1 || fail "$*: $(cat second.out)"
}

# ---- KTAP ----

run_one() { # NAME
	work=$root/$1
	mkdir "$work"
	(
		trap end_processes EXIT
		cd "$work" || exit 1
		[ -z "${skip_all:-}" ] || skip "$skip_all"
		"$1"
	) >"$root/log" 2>&1
	result=$?
	title=$(echo "${1#test_}" | tr _ ' ')
	case $result in
	0) echo "ok $number $title" ;;
	4) echo "ok $number $title # SKIP $(sed -n 's/^SKIP //p' "$root/log")" ;;
	*)
		sed 's/^/# /' "$root/log"
		echo "not ok $number $title"
		failed=1
		;;
	esac
	rm -rf "$work"
}

run_tests() {
	names=$(sed -n 's/^\(test_[A-Za-z0-9_]*\)().*/\1/p' "$0")
	number=0
	failed=0
	trap 'rm -rf "$root"' EXIT
	echo "TAP version 13"
	echo "1..$(echo "$names" | wc -l)"
	for name in $names; do
		number=$((number + 1))
		run_one "$name"
	done
	exit $failed
}
