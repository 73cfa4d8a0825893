# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the scripts of tests/pair share: guests (scripts/vm/nodes.sh), results as leaves of KTAP,
# and the two programs that tell what becomes of jobs (tests/guest/pair).
#
# A script defines functions test_NAME and calls `run_tests NODES`. Each test begins with so many
# guests that answer. A test fails if one of its checks does.

# shellcheck source=scripts/vm/nodes.sh
. "$PAIR_TOP/scripts/vm/nodes.sh"

provider=$PAIR_PROVIDER
# shellcheck disable=SC2034 # used by the scripts
device=${provider}0
node1=10.78.0.1
# shellcheck disable=SC2034
node2=10.78.0.2
programs=/kxfer-tests/pair
wrong=0
said=''

note() { said+="#      # $*"$'\n'; }

fail() {
	note "$*"
	wrong=1
}

note_lines() { while IFS= read -r line; do note "$line"; done <<<"$1"; }

# A command on a node; if it fails, the test does, and shows what it has printed.
check_do() { # NODE COMMAND [SECONDS]
	node_begin "$1" "$2"
	check_end "$1" "$task" "${3:-$node_limit}" "$2"
}

check_end() { # NODE TASK [SECONDS [NAME]]
	local output status=0
	output=$(node_wait "$1" "$2" "${3:-$node_limit}" 2>&1) || status=$?
	[ $status -eq 0 ] || {
		note_lines "$output"
		fail "node$1: ${4:-command $2}: status $status"
	}
	return $status
}

# The guests that a test begins with; one that has died is started again.
boot() { # NODE...
	local node
	for node; do
		node_runs "$node" || node_boot "$node" || { fail "node$node does not start"; return 1; }
	done
}

# A script that wants more of a machine says which options of scripts/vm/run.
node_options() { :; } # NODE

node_boot() { # NODE
	local options=()
	mapfile -t options < <(node_options "$1")
	node_start "$1" --kernel "$PAIR_KERNEL" --provider "$provider" --memory 1024 \
		${options[@]+"${options[@]}"}
}

# The guests go on after a warning, so that a test can tell of it. rxe's own are no exception.
alarms='WARNING:|BUG:|Oops|KASAN|refcount_t|Call Trace|blocked for more than|kxfer.*leak'

check_logs() { # NODE...
	local node found
	for node; do
		node_runs "$node" || { fail "node$node has died"; continue; }
		node_begin "$node" "dmesg -c"
		found=$(node_wait "$node" "$task" 2>&1 | grep -E "$alarms")
		[ -z "$found" ] || { note_lines "$found"; fail "the kernel of node$node says that"; }
	done
}

emit() { # NAME
	local word=ok
	[ $wrong -eq 0 ] || word='not ok'
	printf '%s %s/%s/pair/%s.%s\n' "$word" "$PAIR_KERNEL" "$provider" "$PAIR_SCRIPT" "$1"
	printf '%s' "$said"
}

run_tests() { # NODES
	local name
	trap nodes_end EXIT
	trap 'exit 143' INT TERM
	nodes_begin "$PAIR_BUILD" "$PAIR_OUT/$PAIR_KERNEL-$provider-$PAIR_SCRIPT"
	for name in $(compgen -A function test_); do
		# shellcheck disable=SC2053 # a pattern on purpose
		[[ ${name#test_} == ${PAIR_TEST:-*} ]] || continue
		wrong=0
		said=''
		# shellcheck disable=SC2046 # numbers
		if boot $(seq "$1"); then "$name"; check_logs $(seq "$1"); fi
		emit "${name#test_}"
	done
}

# ---- store or kxfer serve on node 1, probe on node 2 ----

begin_store() {
	node_begin 1 "KXFER_HERE=$node1 KXFER_PROVIDER=$provider exec $programs/store"
	store=$task
	nodes_until 30 node_has 1 "^$store  store: ready" || fail "store is not ready: $(node_output 1 "$store")"
}

end_store() {
	node_signal 1 "$store" KILL
	nodes_until 30 node_has_ended 1 "$store" || fail "store does not end"
}

# Starts kxfer serve on node 1, and waits until it says that it serves NAME.
begin_serve() { # NAME OPTIONS
	node_begin 1 "exec kxfer serve $2 --listen $node1"
	server=$task
	nodes_until 30 node_has 1 "^$server  serving.*$1" || fail "serve: $(node_output 1 "$server")"
}

end_serve() {
	node_signal 1 "$server" TERM
	check_end 1 "$server" 30
}

begin_probe() { # SECONDS [LOSS_MS]
	node_begin 2 "KXFER_PEER=$node1 KXFER_PROVIDER=$provider exec $programs/probe $*"
	probe=$task
	probe_limit=$(($1 + 120))
}

# Sets $figures: what probe has printed last, or nothing. The test fails unless all is well.
end_probe() {
	local output
	if output=$(node_wait 2 "$probe" "$probe_limit" 2>&1); then :; else
		fail "probe: status $?"
	fi
	note_lines "$output"
	figures=$(grep '^{' <<<"$output" || true)
}

figure() { # NAME
	sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" <<<"$figures"
}

expect_figure() { # NAME OPERATOR NUMBER
	local value
	value=$(figure "$1")
	if [ -n "$value" ] && awk "BEGIN { exit !($value $2 $3) }"; then return; fi
	fail "$1 is '$value', and should be $2 $3"
}
