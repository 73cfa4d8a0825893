# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Two machines without faults: each kind of job, the tool, and what it measures.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

test_each_kind_of_job_moves_bytes_both_ways() {
	local first second
	node_begin 1 "KXFER_HERE=$node1 KXFER_PEER=$node2$(settings) $programs/both"
	first=$task
	node_begin 2 "KXFER_HERE=$node2 KXFER_PEER=$node1$(settings) $programs/both"
	second=$task
	check_end 1 "$first" 300
	check_end 2 "$second" 300
}

test_jobs_of_ten_seconds_are_right() {
	begin_store ""
	begin_probe 10
	end_probe
	end_store ""
	expect_figure ok '>' 100
	expect_figure breaks '==' 0
	expect_figure refused '==' 0
}

test_put_and_get() {
	begin_serve inbox "inbox=mem:16M --writable"
	check_do 2 "kxfer ls $keyed $node1 | grep -w inbox"
	check_do 2 "head -c 5000000 /dev/urandom >/tmp/sent && kxfer put /tmp/sent $keyed $node1/inbox"
	check_do 2 "kxfer get --length 5000000 $keyed $node1/inbox /tmp/back && cmp /tmp/sent /tmp/back"
	check_do 2 "kxfer ping -c 5 $keyed $node1"
	end_serve
}

test_measuring() {
	begin_serve bench "bench=mem:16M compare=mem:8M --writable --atomic --mailbox --verbs --bench"
	check_do 2 "kxfer bench read --duration 1 $keyed $node1"
	check_do 2 "kxfer bench write --duration 1 $keyed $node1"
	check_do 2 "kxfer bench send --duration 1 $keyed $node1"
	check_do 2 "kxfer compare --seconds 1 $keyed $node1"
	end_serve
}

# All ten figures, and what a peer that only serves a file cannot offer.
test_ten_figures() {
	begin_serve bench "bench=mem:16M --writable --mailbox --bench"
	check_do 2 "kxfer --json bench all --duration 0.5 $keyed $node1 >/tmp/all && cat /tmp/all && \
		jq -e 'length == 10 and all(.error == null)' /tmp/all && \
		jq -e '.[1:] | all(.rate_per_s > 0 and .peer_cpu_per_operation_ns != null)' /tmp/all" 120
	end_serve
	begin_serve inbox "inbox=mem:1M"
	check_do 2 "kxfer --json bench all --duration 0.5 $keyed $node1 >/tmp/all && cat /tmp/all && \
		jq -e '[.[] | select(.by_ping) | .rate_per_s > 0] == [true, true, true]' /tmp/all" 120
	end_serve
}

# The kernels of both nodes carry each round trip; one way is half of it.
test_round_trips_between_two_nodes() {
	local op
	begin_serve bench "bench=mem:1M --bench"
	for op in send-ping-pong notify-ping-pong write-ping-pong ping-pong; do
		check_do 2 "kxfer --json bench $op --count 100 --size 4000 $keyed $node1 >/tmp/trip && cat /tmp/trip && \
			jq -e '.total | .operations == 100 and .peer_usage_source == \"the peer\"' /tmp/trip"
	done
	check_do 2 "kxfer --json bench write-ping-pong --engine kverbs --count 100 --size 4000 $keyed $node1 >/tmp/trip && \
		cat /tmp/trip && jq -e '.total.operations == 100' /tmp/trip"
	check_do 2 "kxfer --json bench notify-ping-pong --count 100 $keyed $node1 | jq -e '.total.verified'"
	end_serve
}

test_tune() {
	begin_serve inbox "inbox=mem:1M"
	check_do 2 "kxfer --json tune $keyed $node1 >/tmp/tune && cat /tmp/tune && jq -e '.choices.silence.value_ns > 0' /tmp/tune && \
		kxfer tune $keyed $node1" 120
	end_serve
}

run_tests 2
