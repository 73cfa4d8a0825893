#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer bench: several operations, clients or directions at the same time.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/bench.sh
. ../lib/bench.sh

test_a_mix_is_done_in_its_shares_and_told_by_operation() {
	for engine in job verbs; do
		for way in "--depth 1" "--depth 8 --batch 2"; do
			expect 0 kxfer --json bench mix --mix read=70,write=30 --engine $engine --count 1000 $way \
				--judge-anyway
			expect_json '.parameters | "\(.operation) \(.mix)"' "mix read=70,write=30"
			expect_json '[.mix[] | "\(.operation) \(.operations)"] | join(" ")' "read 700 write 300"
			expect_json '.total | "\(.operations) \(.verified)"' "1000 true"
			case $engine-$way-$KXFER_PROVIDER in
			job-*8*-siw) expect_json '.notes | join(" ") | test("not known but with --depth 1")' true ;;
			*) expect_json '[.mix[] | .latency_p50_ns > 0 and .latency_p50_ns <= .latency_max_ns] | all' true ;;
			esac
		done
	done
	expect 0 kxfer bench mix $quick
	grep -qE '^ *write +150 ' "$work/stdout" || fail "no row of WRITE"
}

# All received data is compared, and the results of the clients are summed up.
test_messages_in_a_mix_and_a_mix_of_clients() {
	for way in "--depth 1" "--depth 16 --batch 4 --ring"; do
		expect 0 kxfer --json bench mix --mix read=50,write=30,send=20 $way --count 400 --warm-up 7 --judge-anyway
		expect_json '[.mix[] | "\(.operation) \(.operations)"] | sort | join(" ")' "read 200 send 80 write 120"
		expect_json '.total | "\(.operations) \(.verified)"' "400 true"
		expect_json '.parameters.message_success | test("mailbox")' true
		case $way in
		*16*) expect_json '.notes | join(" ") | test("not known but with --depth 1")' true ;;
		*) expect_json '[.mix[] | .latency_p50_ns > 0] | all' true ;;
		esac
	done
	for mix in "job read=50,send=50" "verbs read=50,write=50"; do
		expect 0 kxfer --json bench mix --engine ${mix% *} --mix ${mix#* } --clients 2 $quick
		expect_json '[.mix[].operations] | join(" ")' "300 300"
		expect_json '.total | "\(.operations) \(.verified)"' "600 true"
	done
	expect 0 kxfer --json bench mix --mix read=50,send=50 --size 64K --count 100 --depth 4 --judge-anyway
	expect_json '.total | "\(.operations) \(.verified)"' "100 true"
	expect 1 kxfer --json bench mix --mix read=50,send=50 --size 2M $quick
	expect_error_json '"\(.errno) \(.why)"' "EOPNOTSUPP a message has at most $longest_message bytes"
	expect 2 kxfer bench mix --mix read=50,send=50 --engine verbs
	expect_stderr "--engine job"
}

test_both_directions_at_once() {
	for way in "read" "write --depth 8 --batch 2 --size 4K --ring"; do
		expect 0 kxfer --json bench $way $quick --bidirectional
		expect_json '"\(.parameters.bidirectional) \(.total.operations) \(.total.verified)"' "true 300 true"
		expect_json '.reverse | "\(.operations) \(.verified) \(.latency_samples)"' "300 true 300"
		expect_json '.reverse | .rate_per_s > 0 and .latency_p50_ns > 0 and .latency_p50_ns <= .latency_max_ns' true
		expect_json '.both.rate_per_s / (.total.rate_per_s + .reverse.rate_per_s) * 1000 | round' 1000
	done
	expect 0 kxfer bench read --duration 0.4 --bidirectional --judge-anyway
	expect_stdout "reverse, by the peer at the same time"
	expect_stdout "both directions"
	wait_for 10 nothing_is_left
	! pidof kxfer || fail "a process is left"
}

test_a_peer_takes_part_only_where_that_was_allowed() {
	serve bench=mem:1M --writable
	expect 1 kxfer --json bench read "$peer" $quick --bidirectional
	expect_error_json '"\(.errno) \(.hint | test("--bench"))"' "ENOENT true"
	stop_serve
	serve bench=mem:1M --writable --bench
	expect 0 kxfer --json bench write "$peer" $quick --bidirectional
	expect_json '[.total.verified, .reverse.verified, .total.peer_cpu_per_operation_ns > 0] | all' true
	expect 1 kxfer --json bench write "$peer" --bidirectional --duration 700
	expect_error_json '"\(.errno) \(.why | test("at most 600 s"))"' "ERANGE true"
	# A killed client leaves the responder free for others; until then they are told that
	# it is busy.
	background kxfer --json bench write "$peer" --duration 300 --bidirectional
	wait_for 30 sh -c 'kxfer --json export list | jq -e "any(.name | startswith(\"kxfer-reverse\"))"'
	wait_for 30 is_busy
	kill -KILL "$pid"
	collect
	wait_for 60 kxfer bench read "$peer" $quick --bidirectional
}

is_busy() {
	! kxfer --json bench read "$peer" $quick --bidirectional 2>"$work/busy" &&
		jq -e '.errno == "EBUSY"' "$work/busy"
}

the_other_way_is_measured() {
	kxfer --json export list | jq -e 'any(.name | startswith("kxfer-reverse"))' &&
		is_busy
}

# Questions of other clients are answered after the measurement, and do not change its answer.
test_others_that_ask_meanwhile_get_their_own_answers() {
	serve bench=mem:1M --writable --bench --verbs
	background kxfer --json bench write "$peer" --duration 6 --bidirectional --judge-anyway
	wait_for 30 the_other_way_is_measured
	# The other run uses memory of its own: if both WRITEd to the export, neither could
	# verify its data.
	kxfer --json bench send "$peer" --engine kverbs $quick >"$work/other" 2>&1 ||
		fail "the other: $(cat "$work/other")"
	[ "$(jq .total.verified "$work/other")" = true ] || fail "the other did not verify"
	collect
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json '[.total.verified, .reverse.verified, .reverse.operations > 0, .both.rate_per_s > 0] | all' true
	# No later client has to wait.
	expect 0 kxfer --json bench write "$peer" $quick --bidirectional
	expect 0 kxfer --json bench write "$peer" $quick --bidirectional
	expect 0 kxfer --json bench read "$peer" $quick
	expect_json '.total.peer_cpu_per_operation_ns >= 0' true
}

# The other clients do not get the terminal's signal here.
test_ctrl_c_keeps_what_all_clients_measured() {
	before=$(counter jobs_completed)
	background kxfer --json bench read --clients 3 --duration 600
	wait_for 60 counter_passed jobs_completed $((before + 3000))
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	expect_json '"\(.interrupted) \(.clients | map(.operations > 0 and .verified)) \(.total.verified)"' \
		"true [true,true,true] true"
}

test_what_does_not_go_both_ways_says_so() {
	expect 2 kxfer bench read --bidirectional --engine verbs
	expect_stderr "--engine job"
	for way in mix send ping-pong; do
		expect 2 kxfer bench $way --bidirectional
		expect_stderr "$way does not go both ways"
	done
	expect 2 kxfer bench read --bidirectional --clients 2
	expect_stderr "leave out --clients"
}

test_a_wrong_mix_says_what_is_wrong() {
	expect 2 kxfer bench mix --mix read=70,write=40
	expect_stderr "110 percent"
	expect 2 kxfer bench mix --mix read=50,fetch-add=50
	expect_stderr "a mix is of read, write and send"
	expect 2 kxfer bench read --mix read=50,write=50
	expect_stderr "read is not a mix"
	expect 2 kxfer bench mix --engine kverbs
	expect_stderr "engine job or verbs"
	for transport in uc ud; do
		expect 2 kxfer bench mix --engine verbs --transport $transport
		expect_stderr "--transport rc"
	done
}

# Fairness of the reported rates: (sum of x)^2 / (n * sum of x^2).
expect_fairness() {
	# shellcheck disable=SC2016 # variables of jq
	expect_json '[.clients[].rate_per_s] as $x | ($x | add) as $sum |
		($sum * $sum / (($x | length) * ($x | map(. * .) | add)) - .total.fairness | fabs) < 1e-6' true
}

test_several_clients_measure_together_and_are_told_one_by_one() {
	for engine in job verbs; do
		expect 0 kxfer --json bench write --clients 3 --engine $engine $quick --size 4K --depth 4
		expect_json .parameters.clients 3
		expect_json '.clients | length' 3
		expect_json '[.clients[] | .operations == 300 and .verified and .rate_per_s > 0] | all' true
		expect_json '.total | .operations == 900 and .verified and .latency_samples == 900' true
		expect_json '.total.elapsed_ns == (.clients | map(.elapsed_ns) | max)' true
		expect_fairness
	done
	expect 0 kxfer bench read --clients 2 --duration 0.5 --judge-anyway --assert 'fairness>0,fairness<=1'
	expect_stdout "clients"
	grep -qE "^ +Jain's fairness index +[01]" "$work/stdout" || fail "no fairness in text"
	! grep -q "nan" "$work/stdout" || fail "nan in text"
	wait_for 10 nothing_is_left
	! pidof kxfer || fail "a process is left"
}

test_clients_of_another_node_have_exports_of_their_own() {
	serve bench=mem:1M bench-2=mem:1M --writable
	expect 0 kxfer --json bench write "$peer" $quick --clients 2
	expect_json '[.clients[].verified] | all' true
	expect 1 kxfer --json bench write "$peer" $quick --clients 3
	expect_error_json .errno ENOENT
	expect_error_json '.hint | test("kxfer serve bench=mem:4K bench-2=mem:4K bench-3=mem:4K --writable")' true
	expect 2 kxfer bench ping-pong --clients 2
	expect 2 kxfer bench register --clients 2 --engine kverbs
	expect_stderr "leave out --clients"
	expect 2 kxfer bench read --clients 2 --interval 1
	expect_stderr "leave out --interval"
	expect 2 kxfer bench read --clients 64 --size 8M
	expect_stderr "256 MiB"
	for engine in verbs kverbs; do
		expect 2 kxfer bench read --clients 9 --engine $engine
		expect_stderr "at most 8 connections"
	done
}

one_client_runs() {
	[ "$(pidof kxfer | wc -w)" -ge 4 ] && kxfer --json export list | jq -e 'any(.name | endswith("-3"))'
}

test_ctrl_c_ends_all_clients() {
	for signal in INT TERM; do
		background kxfer bench write --clients 3 --duration 600
		wait_for 30 one_client_runs
		kill -$signal "$pid"
		collect
		case $signal in
		INT) [ "$status" -eq 130 ] || fail "status $status" ;;
		TERM) [ "$status" -eq 143 ] || fail "status $status" ;;
		esac
		wait_for 30 nothing_is_left
		! pidof kxfer || fail "a process is left"
	done
}

test_a_client_that_dies_ends_the_others() {
	background kxfer --json bench write --clients 3 --duration 15
	wait_for 30 one_client_runs
	# The youngest process is the last client.
	kill -KILL "$(pidof kxfer | tr ' ' '\n' | sort -n | tail -n 1)"
	collect
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json '"\(.errno) \(.why)"' "ECHILD its process was killed or crashed"
	wait_for 30 nothing_is_left
	! pidof kxfer || fail "a process is left"
}

run_tests
