#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Standard output and standard error that are full, closed, or pipes without a reader: the
# command ends with an exit status that shows it, not by a signal, and a server continues.

# run_tests calls the tests by their names; lists of words stand without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# A line for each command: some have a result here, the others fail.
commands() {
	cat <<-LIST
	--help
	doctor
	device list
	key list
	listen list
	export list
	ls $peer
	put file $peer/inbox
	put file $peer/none
	get $peer/inbox -
	get $peer/none -
	ping -c 1 $peer
	nop -n 10
	bench read $peer/inbox --size 64 --count 50
	compare --count 20 --rounds 1 --op read --size 64 --engine job
	sweep --plan
	link list
	stat
	explain 12
	explain nothing-at-all
	serve
	LIST
}

# Runs a command with one of its streams of a given kind; sets $status.
with_stream() { # KIND COMMAND...
	kind=$1
	shift
	case $kind in
	full-output) timeout -k 5 "$limit" "$@" >/dev/full 2>"$work/stderr" ;;
	no-output) timeout -k 5 "$limit" "$@" >&- 2>"$work/stderr" ;;
	full-error) timeout -k 5 "$limit" "$@" >"$work/stdout" 2>/dev/full ;;
	no-error) timeout -k 5 "$limit" "$@" >"$work/stdout" 2>&- ;;
	unread-output) timeout -k 5 "$limit" "$@" 2>"$work/stderr" >"$work/pipe" ;;
	unread-error) timeout -k 5 "$limit" "$@" >"$work/stdout" 2>"$work/pipe" ;;
	esac </dev/null
	status=$?
}

# The reader of the pipe exits at the first byte.
break_pipe() {
	rm -f "$work/pipe"
	mkfifo "$work/pipe"
	sh -c ': <"$1"' - "$work/pipe" &
}

# The exit status of each command with working streams, determined once.
right_statuses() {
	[ ! -e "$root/right" ] || return 0
	commands | while read -r words; do
		try kxfer $words </dev/null
		echo "$status $words"
	done >"$root/right.new"
	mv "$root/right.new" "$root/right"
}

# Each command ends with its usual status, or with one of the given statuses.
expect_each() { # KIND ALLOWED-STATUSES...
	kind=$1
	shift
	random_file file 1000
	serve inbox=mem:64K --writable
	right_statuses
	while read -r right words; do
		case $kind in unread-*) break_pipe ;; esac
		with_stream "$kind" kxfer $words
		case " $right $* " in
		*" $status "*) ;;
		*) fail "status $status, and $right else: kxfer $words" ;;
		esac
	done <"$root/right"
	is_over "$serve_pid" && fail "the server has ended"
	expect 0 kxfer ls "$peer"
}

test_error_that_is_full_changes_no_exit_status() { expect_each full-error; }
test_error_that_is_closed_changes_no_exit_status() { expect_each no-error; }
test_error_that_nobody_reads_changes_no_exit_status() { expect_each unread-error; }
# 4 means that get was stopped part-way.
test_output_that_is_full_is_a_failure() { expect_each full-output 1 4; }
test_output_that_is_closed_is_a_failure() { expect_each no-output 1 4; }
test_output_that_nobody_reads_ends_as_by_the_signal() { expect_each unread-output 141 4; }

test_output_that_is_full_is_told() {
	with_stream full-output kxfer explain 12
	[ $status -eq 1 ] || fail "status $status"
	expect_in stderr "cannot write the result to standard output: No space left on device"
	with_stream no-output kxfer --version
	[ $status -eq 1 ] || fail "status $status"
	expect_in stderr "cannot write the result to standard output: Bad file descriptor"
}

# The file that is written must not get the number of a closed stream.
test_a_file_does_not_become_a_closed_stream() {
	random_file file 1000
	serve inbox=mem:64K --writable
	expect 0 kxfer put file "$peer/inbox"
	kxfer get "$peer/inbox" copy >&- 2>&-
	cmp file copy || fail "the copy differs"
}

test_a_server_goes_on_when_it_cannot_write() {
	random_file file 1000
	break_pipe
	kxfer serve --no-key inbox=mem:64K --writable >/dev/full 2>"$work/pipe" </dev/null &
	serve_pid=$!
	echo "$serve_pid" >>pids
	wait_for 30 kxfer --quiet put file "$peer/inbox"
	expect 0 kxfer put file "$peer/inbox"
	is_over "$serve_pid" && fail "the server has ended"
	expect 0 kxfer ls "$peer"
}

run_tests
