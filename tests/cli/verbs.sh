#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The responder of user-space verbs against initiators that err (tests/verbs), one
# suite of theirs a line.

# run_tests calls the tests by their names.
# shellcheck disable=SC2317

# shellcheck source=tests/lib/cli.sh
. ../lib/cli.sh

verbs_tests() { # SUITE
	type kxfer-verbs-test >/dev/null 2>&1 || skip "it was built without gtest"
	expect 0 kxfer-verbs-test --gtest_filter="$1.*" --gtest_color=no
	expect_stdout "[  PASSED  ]"
	expect_not_in "$work/stdout" "Running 0 tests"
}

test_the_responder_and_initiators_that_err() { verbs_tests Responder; }

run_tests
