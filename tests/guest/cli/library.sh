#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libkxfer from other programs: its tests with the module (tests/guest/library), a result for
# each of them, and the introductory example.

# run_tests calls the tests by their names.
# shellcheck disable=SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

library_tests() { # SUITE
	type kxfer-library-test >/dev/null 2>&1 || skip "it was built without gtest"
	expect 0 kxfer-library-test --gtest_filter="$1.*" --gtest_color=no
	expect_stdout "[  PASSED  ]"
	expect_not_in "$work/stdout" "Running 0 tests"
}

test_asynchronous_jobs() { library_tests Async; }

test_mailboxes() { library_tests Mailboxes; }

test_the_example_async_verifies_what_it_wrote() {
	serve box=mem:16M --writable
	expect 0 kxfer-async "$peer" box
	expect_stdout "16777216 bytes, 16 jobs in flight: right"
}

test_the_example_async_takes_odd_lengths() {
	serve one=mem:1 odd=mem:1000001 --writable
	expect 0 kxfer-async "$peer" one
	expect_stdout "1 bytes, 16 jobs in flight: right"
	expect 0 kxfer-async "$peer" odd
	expect_stdout "1000001 bytes, 16 jobs in flight: right"
}

test_the_example_async_says_what_is_wrong() {
	serve box=mem:1M
	expect 1 kxfer-async "$peer" box
	expect_stderr "box: Permission denied"
	expect 1 kxfer-async "$peer" nothing
	expect_stderr "nothing: No such file or directory"
	expect 2 kxfer-async "$peer"
}

run_tests
