#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The programs of userspace/examples do what they say.

# run_tests calls the tests by their names; numbers stand without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/cli.sh
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

run_tests
