#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer tune: what to choose for a link. The figures are of this machine, so only what holds on any
# machine is checked; the choices themselves have unit tests.

# shellcheck disable=SC2016,SC2086,SC2317 # variables of jq; lists; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

offer() { serve small=mem:64K; }

# A listener is enough: no program runs at the peer.
test_a_link_is_measured_and_each_choice_has_its_reason() {
	expect 0 kxfer listen add "$peer"
	try kxfer --json tune "$peer"
	kxfer listen del "$peer"
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json '"\(.peer) \(.device)"' "$peer:7625 $KXFER_DEVICE"
	expect_json '.connect_ns > 0' true
	expect_json '.measured | map(.operations >= 10 and .rate_per_s > 0 and .longest_ns > 0) | all' true
	expect_json '[.measured[] | select(.size_bytes == 64) | .in_flight] | tostring' '[1,2,4,8,16,32,64,128,256]'
	expect_json '[.measured[] | .size_bytes] | unique | tostring' '[64,4096,16384,65536]'
	expect_json '.choices | map(.why | length > 20) | all' true
	expect_json '.choices | map(.now | length > 0) | all' true
	ack='"ack_timeout",'
	[ "$KXFER_PROVIDER" = rxe ] || ack=
	expect_json '.choices | keys | tojson' \
		"[$ack\"bytes_in_flight\",\"depth\",\"keepalive\",\"loss\",\"piece\",\"silence\",\"timeout\"]"
	expect_json '.choices | .keepalive.value_ns >= 1e8 and .keepalive.value_ns <= 2e9 and
		.silence.value_ns >= 4 * .keepalive.value_ns and .timeout.value_ns >= 1e9' true
	expect_json '.choices.depth.value as $n | [.measured[] | select(.size_bytes == 64)] |
		(map(.rate_per_s) | max) as $best | .[] | select(.in_flight == $n) | .rate_per_s >= 0.95 * $best' true
}

# Two links to the peer differ in what was asked for them.
test_now_is_what_the_link_has() {
	offer
	expect 0 kxfer --json tune "$peer"
	expect_json '.choices | "\(.silence.now); \(.keepalive.now); \(.timeout.now)"' "8 s; 2 s; 10 s"
	expect_json '.choices.bytes_in_flight.now | test("4 MiB of a link")' true
	expect 0 kxfer --json tune --silence 3 --ack-timeout 15 --retries 2 --in-flight 64M --timeout 5 "$peer"
	expect_json '.choices | "\(.silence.now); \(.keepalive.now); \(.timeout.now)"' "3 s; 750 ms; 5 s"
	expect_json '.choices.bytes_in_flight.now | test("64 MiB of a link")' true
	[ "$KXFER_PROVIDER" != rxe ] || expect_json .choices.ack_timeout.now "134.2 ms, 2 retries"
}

test_it_is_readable() {
	offer
	expect 0 kxfer tune "$peer"
	expect_stdout "jobs in flight, short"
	expect_stdout "--silence"
	# Links of the tests before may be up.
	grep -qE "^  --timeout +(20 times a connect|the time to connect is not known)" "$work/stdout" ||
		fail "it does not say why"
	[ "$(awk '{ if (length > n) n = length } END { print n }' "$work/stdout")" -le 110 ] ||
		fail "it is wide"
	expect_stderr "nothing was changed"
}

# The links that a new one could be shared with are up, by a session in each context. What holds
# them is stopped: it takes no CPU from what is measured.
test_a_time_to_connect_that_is_not_known_is_not_guessed() {
	offer
	holders=
	for context in polled softirq unbound workqueue; do
		kxfer bench read --context "$context" --duration 300 --export @ping "$peer" >/dev/null 2>&1 &
		holders="$holders $!"
	done
	wait_for 60 sh -c 'kxfer --json link list |
		jq -e "[.[] | select(.role == \"initiator\" and .targets > 0)] | length >= 4"'
	kill -STOP $holders
	try kxfer --json tune "$peer"
	kill -KILL $holders
	wait $holders || true
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json '.connect_ns' null
	expect_json '.choices.timeout.why | test("not known")' true
}

test_a_peer_that_is_not_there_is_an_error() {
	expect 1 kxfer --json tune "$peer:7999" --timeout 2
	expect_error_json '.errno | length > 3' true
	expect 2 kxfer tune
	expect_stderr "kxfer tune needs PEER"
}

test_ctrl_c_ends_it() {
	offer
	background kxfer tune "$peer"
	wait_for 20 sh -c 'kxfer --json link list | jq -e "any(.targets > 0)"'
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
}

run_tests
