#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The responder of user-space verbs against initiators that err (tests/verbs), one
# suite of theirs a line; explicit connections as `compare` and `bench` make them.

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

test_explicit_connections_and_callers_that_err() { verbs_tests "Exchange*"; }

test_troubles_that_are_brought_about() { verbs_tests Trouble; }

quick="--count 40 --rounds 2 --engine verbs"

on_iwarp() { [ "$KXFER_PROVIDER" = siw ]; }

test_every_attribute_of_the_way_to_rts_is_told() {
	if on_iwarp; then
		# shellcheck disable=SC2086 # options are words
		expect 1 kxfer --json compare $quick --op read --size 64 --connect tcp
		expect_error_json '.why | test("iWARP: a QP has no QPN, PSN or GID")' true
		expect_error_json '.hint' "use --connect rdma-cm"
		return
	fi
	# shellcheck disable=SC2086
	expect 0 kxfer compare $quick --op read,write,send --size 64,4097 --connect tcp --explain
	for step in "QP RESET -> INIT" "QP INIT -> RTR" "QP RTR -> RTS"; do
		expect_stdout "$step"
	done
	for name in pkey_index port_num qp_access_flags path_mtu dest_qp_num rq_psn max_dest_rd_atomic \
		    min_rnr_timer ah_attr.is_global ah_attr.grh.dgid ah_attr.grh.sgid_index ah_attr.grh.hop_limit \
		    timeout retry_cnt rnr_retry sq_psn max_rd_atomic; do
		grep -Eq "^  $name +[0-9a-fx:.n]" "$work/stdout" || fail "$name is not told"
	done
	expect_stdout "::ffff:$KXFER_ADDRESS, RoCE v2"
	expect_stdout "Every cell's data was verified"
}

test_gid_and_mtu_are_chosen_over_tcp() {
	if on_iwarp; then skip "iWARP has no explicit connections"; fi
	expect 0 kxfer --json bench read --engine verbs --count 40 --connect tcp --mtu 512 --gid-index 1 --explain
	jq -s '.[1].attributes | map({(.name): .value}) | add' "$work/stdout" >"$work/rtr" || fail "no JSON"
	[ "$(jq -r .path_mtu "$work/rtr")" = 512 ] || fail "the MTU is $(jq -r .path_mtu "$work/rtr")"
	[ "$(jq -r '.["ah_attr.grh.sgid_index"]' "$work/rtr")" = 1 ] || fail "another GID"
	# Entry 0 is link-local: the responder answers by one of its kind.
	expect 0 kxfer --json bench write --engine verbs --count 40 --connect tcp --gid-index 0
	expect 1 kxfer --json bench read --engine verbs --count 40 --connect tcp --gid-index 99
	expect_error_json '.what | test("the GID table has no entry 99")' true
}

test_over_tcp_to_a_node_that_serves() {
	if on_iwarp; then skip "iWARP has no explicit connections"; fi
	serve compare=mem:1M --writable --verbs
	wait_for 30 grep -q "user-space verbs on" "$work/serve.out"
	# shellcheck disable=SC2086
	for to in "$peer" "[$KXFER_ADDRESS6]"; do
		expect 0 kxfer --json compare "$to" $quick --op read,send --size 64 --connect tcp
		expect_json '[.cells[].engines[].verified] | unique | map(tostring) | join(" ")' true
	done
}

test_options_of_a_connection_that_is_not_made_are_refused() {
	expect 2 kxfer --json bench read --engine verbs --explain
	expect_error_json '.hint | test("--connect tcp")' true
	expect 2 kxfer --json bench read --engine job --connect tcp
	expect_error_json '.hint' "use --engine verbs"
	expect 2 kxfer bench read --engine verbs --connect tcp --mtu 1500
	expect 2 kxfer bench read --engine verbs --connect tcp --gid-index 256
	expect 2 kxfer bench read --engine verbs --connect smoke
	expect 2 kxfer bench read --engine verbs --min-rnr-timer 3
	expect 2 kxfer bench read --engine verbs --rnr-retry 8
	expect 2 kxfer bench read --engine job --wait events
}

test_verbs_sleep_for_events_if_told_to() {
	# shellcheck disable=SC2086
	expect 0 kxfer compare $quick --op read,write,send --size 64 --wait events
	grep -Eq "^verbs +sleeps for events of the CQ" "$work/stdout" || fail "it is not told"
	expect_stdout "Every cell's data was verified"
	expect 0 kxfer --json bench write --engine verbs --count 40 --wait events
	expect_json .parameters.wait events
}

test_rnr_values_are_set_and_told() {
	if on_iwarp; then skip "iWARP has no RNR NAK"; fi
	expect 0 kxfer bench read --engine verbs --count 40 --connect tcp --rnr-retry 3 --min-rnr-timer 20 --explain
	grep -Eq "^  rnr_retry +3 .* 3 more tries" "$work/stdout" || fail "rnr_retry"
	expect 0 kxfer explain "RNR retry counter exceeded"
	expect_stdout RNR_RETRY_EXC_ERR
	expect 0 kxfer explain "CQ error"
	expect_stdout CQ_ERR
}

run_tests
