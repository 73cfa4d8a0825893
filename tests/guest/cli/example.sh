#!/bin/sh
# SPDX-License-Identifier: MIT
# The programs of userspace/examples do what they promise.

# run_tests calls the tests by their names; numbers stand without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

need_uring() { command -v kxfer-uring >/dev/null || skip "built without liburing"; }

test_uring_reads_an_export() {
	need_uring
	for length in 1 65536 1048577 5000000; do
		random_file sent$length $length
		serve file=sent$length
		expect 0 kxfer-uring "$peer" file
		expect_equal_files sent$length stdout
		kill -INT "$serve_pid"
		wait_for 30 is_over "$serve_pid"
	done
}

test_uring_says_what_is_wrong() {
	need_uring
	expect 2 kxfer-uring
	expect_stderr "usage: kxfer-uring"
	serve file=mem:64K
	expect 1 kxfer-uring "$peer" no-such-name
	expect_stderr "no-such-name: No such file or directory"
	expect 1 kxfer-uring nonsense file
	expect_stderr "nonsense: Invalid argument"
}

test_messages_arrive_in_order_with_who_sent_them() {
	expect 0 kxfer listen add "$peer"
	longest=$(printf '%04096d' 7)
	kxfer-message receive greetings 10 >received 2>&1 </dev/null &
	receiver=$!
	echo "$receiver" >>"$work/pids"
	wait_for 10 sh -c "kxfer ls $peer | grep -q greetings"
	expect 0 kxfer-message send "$peer" greetings one two three four five six seven eight "nine  9" "$longest"
	expect_stdout "10 sent"
	wait_for 10 is_over "$receiver"
	wait "$receiver" || fail "the receiver ended with status $?"
	for text in one two three four five six seven eight "nine  9" "$longest"; do
		echo "uid 0: $text"
	done >sent
	expect_equal_files sent received
	expect 0 kxfer listen del "$peer"
}

test_message_says_what_is_wrong() {
	expect 2 kxfer-message
	expect_stderr "usage: message receive NAME COUNT"
	expect 1 kxfer-message receive "no name" 1
	expect_stderr "no name: Invalid argument"
	serve box=mem:64K
	expect 1 kxfer-message send "$peer" nothing text
	expect_stderr "nothing: No such file or directory"
	expect 1 kxfer-message send "$peer" box text
	expect_stderr "box: "
}

run_tests
