#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The commands of Documentation/from-other-tools.rst, a test for each of its sections. Measuring
# commands run for a shorter time than they would for a reader; nothing else is changed.

# run_tests calls the tests by their names; options stand without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

page=$PWD/from-other-tools.rst
engine=/kxfer-fio/libfio-kxfer.so

# The right side of the tables of a section.
commands_of() { # SECTION
	awk -v want="$1" '
		/^-+$/ { section = before }
		{ before = $0 }
		section == want && sub(/^     - ``/, "") && sub(/``$/, "") && /(^| )10\.77\.0\.1|^kxfer|^fio .*ENGINE/' "$page"
}

# As a reader's, but for the time it takes.
shorter() { # COMMAND
	case $1 in
	*"bench all"*) echo "$1 --duration 0.1" ;;
	*--duration*) echo "$1" | sed 's/--duration [0-9]*/--duration 0.3/; s/--interval [0-9]*/--interval 0.1/' ;;
	*" bench "*--count*) echo "$1" ;;
	*" bench "*--engine*|*" bench register"*) echo "$1 --count 40" ;;
	*" bench "*) echo "$1 --duration 0.1" ;;
	*" compare "*) echo "$1 --rounds 2 --count 20" ;;
	*) echo "$1" ;;
	esac
}

# The server as the page has it, with another folder.
serve_all() {
	mkdir -p served docs
	random_file docs/report.txt 5000
	cp docs/report.txt .
	words=$(sed -n '/^   kxfer serve /,/[^\\]$/p' "$page" | sed "s,/srv/docs,$PWD/served,; s/10\.77\.0\.1/$peer/" |
		tr -d '\\\n' | sed 's/^ *kxfer serve //')
	serve $words
	wait_for 30 grep -q "user-space verbs on" "$work/serve.out"
}

# A device of iWARP can do less. The tool says what to use in its place, and that has to work.
as_the_tool_says() { # COMMAND
	[ "$KXFER_PROVIDER" = siw ] || return 1
	depth=$(sed -n 's/.*use --depth \([0-9]*\) or less.*/\1/p' stderr)
	if [ -n "$depth" ]; then
		other=$(echo "$1" | sed "s/--depth [0-9]*/--depth $depth/")
	elif grep -q "use --transport rc" stderr; then
		other=$(echo "$1" | sed "s/--transport u[cd]/--transport rc/")
	elif grep -q "use --connect rdma-cm" stderr; then
		other=$(echo "$1" | sed "s/--connect tcp --explain/--connect rdma-cm/")
	else
		grep -q "no atomic" stderr
		return
	fi
	expect 0 $other
}

run_section() { # SECTION LEAST
	# siw holds memory of user-space verbs against the limit of root, too.
	# shellcheck disable=SC3045 # dash has it
	ulimit -l unlimited
	serve_all
	commands_of "$1" >commands
	[ "$(wc -l <commands)" -ge "$2" ] || fail "the page has $(wc -l <commands) commands for $1 instead of $2"
	while read -r line; do
		command=$(shorter "$line" | sed "s/10\.77\.0\.1/$peer/g; s,\$ENGINE,external:$engine,")
		try $command
		[ "$status" -eq 0 ] || as_the_tool_says "$command" || fail "status $status: $command"
	done <commands
}

test_perftest() { run_section perftest 16; }

test_qperf() { run_section qperf 7; }

test_krping() { run_section krping 6; }

test_iperf3() { run_section iperf3 9; }

test_rsync() {
	run_section rsync 8
	for copy in served/report.txt copy/report.txt new/report.txt; do
		expect_equal_files docs/report.txt $copy
	done
	(cd new && sha256sum -c ../sums >/dev/null) || fail "the manifest is wrong"
}

test_fio() {
	[ -e $engine ] || skip "no engine for fio in this guest: make check-fio builds it"
	PATH=/kxfer-fio:$PATH
	run_section fio 3
}

run_tests
