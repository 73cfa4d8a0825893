#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libkxfer from other programs: its tests with the module (tests/guest/library), a result for
# each of them, the introductory examples, and those of the documents.

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

test_documents() { library_tests Documents; }

need_documents() { type kxfer-uapi-example >/dev/null 2>&1 || skip "it was built without gtest"; }

test_the_example_of_the_uapi_prints_what_is_said_there() {
	need_documents
	expect 0 kxfer listen add 10.77.0.1
	expect 0 kxfer-uapi-example
	kxfer listen del 10.77.0.1
	[ "$(cat "$work/stdout")" = "status 0, 16 bytes: 0 7 14 21" ] || fail "it prints $(cat "$work/stdout")"
}

test_the_example_of_the_man_page_reads_an_export() {
	need_documents
	printf 0123456789abcdef >sixteen
	serve sixteen
	expect 0 kxfer-man-example "$peer" sixteen
	[ "$(cat "$work/stdout")" = 30313233343536373839616263646566 ] || fail "it prints $(cat "$work/stdout")"
	expect 1 kxfer-man-example "$peer" nothing
	expect_stderr "cannot open the export nothing: No such file or directory (ENOENT)"
	expect 2 kxfer-man-example
}

test_the_example_fetch_reads_an_export() {
	for length in 1 65536 1048577 5000000; do
		random_file sent"$length" "$length"
		serve file=sent"$length"
		expect 0 kxfer-fetch "$peer" file
		expect_equal_files sent"$length" stdout
		kill -INT "$serve_pid"
		wait_for 30 is_over "$serve_pid"
	done
}

test_the_example_fetch_says_what_is_wrong() {
	serve box=mem:1M
	expect 1 kxfer-fetch "$peer" nothing
	expect_stderr "cannot open the export nothing: No such file or directory (ENOENT)"
	expect 1 kxfer-fetch no-such-host.invalid box
	expect_stderr "cannot find the host no-such-host.invalid"
	kxfer-fetch "$peer" box >/dev/full 2>"$work/stderr"
	[ $? -eq 1 ] || fail "it wrote to a full device"
	expect_stderr "cannot write to standard output: No space left on device (ENOSPC)"
	expect 2 kxfer-fetch "$peer"
}

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
