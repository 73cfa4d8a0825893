#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer bench: messages by every engine, and round trips.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/bench.sh
. ../lib/bench.sh

rnr_naks() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/*rnr* 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

# On a dedicated connection, in every context; more messages than receives.
test_kverbs_sends_messages() {
	ops=send
	before=$(rnr_naks)
	[ "$KXFER_PROVIDER" = siw ] || ops="send send-imm write-imm"
	for op in $ops; do
		for way in "--depth 1" "--depth 7 --batch 3" "--depth 8 --batch 2 --signal batch --context softirq" \
			"--depth 5 --memory mr-each --context workqueue" "--depth 3 --size 200K --context unbound"; do
			# few enough for one kernel call, however slow the guest is
			case $way in *200K*) count=61 ;; *) count=601 ;; esac
			expect 0 kxfer --json bench $op --engine kverbs --count $count --warm-up 10 $way --judge-anyway
			expect_json '"\(.parameters.operation) \(.total.operations) \(.total.verified)"' "$op $count true"
		done
	done
	[ "$(rnr_naks)" -eq "$before" ] || fail "messages have met no receive"
}

ends_when() { # WORDS OPTION...
	words=$1
	shift
	expect 0 kxfer bench send "$@" $quick
	expect_stdout "$words"
	expect 0 kxfer --json bench send "$@" $quick
	expect_json '"\(.total.verified) \(.parameters.message_success)"' "true $words"
}

eager_messages() {
	kxfer --json stat | jq .sends_eager
}

# What was measured is counted, too: with --stored each message is answered.
test_a_message_of_a_job_says_when_it_is_done() {
	answered="in the peer's mailbox, as its kernel has answered"
	taken="in the memory of the mailbox's receiver, as its kernel has answered"
	placed="at the peer's device, with a place in the mailbox"
	before=$(eager_messages)
	ends_when "$answered" --size 992 --stored --depth 8
	ends_when "$taken" --size 993 --stored --depth 8
	[ "$(eager_messages)" -eq "$before" ] || fail "stored messages had no answer"
	ends_when "$taken" --size 4097
	case $KXFER_PROVIDER in
	siw*)
		ends_when "$answered" --size 992
		ends_when "$taken" --size 4096
		[ "$(eager_messages)" -eq "$before" ] || fail "a message of iWARP had no answer"
		;;
	*)
		ends_when "$placed" --size 64 --depth 8
		ends_when "$placed" --size 4096
		[ "$(eager_messages)" -gt $((before + 1000)) ] || fail "most messages were answered"
		;;
	esac
	expect 0 kxfer --json compare --op send --size 64 --engine job --count 40 --rounds 2 --depth 4 --judge-anyway --stored
	expect_json '.cells[0].engines[0].message_success' "$answered"
	expect 0 kxfer compare --op send --size 64 --engine job --count 40 --rounds 2 --depth 4 --judge-anyway --stored
	expect_stdout "$answered"
	for wrong in "bench send --engine verbs" "bench send-imm" "bench read" "bench send-ping-pong" "bench mix" \
		"compare --op read,send-imm" "compare --op send --engine verbs"; do
		expect 2 kxfer $wrong --stored
		expect_stderr "use --stored with"
	done
}

# Longer than messages that are copied or need no answer, deeper than a lane moves at once, and
# mixed with short messages.
test_jobs_send_long_messages() {
	for way in "--size 993 --depth 1 --stored" "--size 4097 --depth 1" "--size 64K --depth 40 --batch 4 --ring" \
		"--size $longest_message --depth 2"; do
		expect 0 kxfer --json bench send $way --count 60 --warm-up 5 --judge-anyway
		expect_json '.total | "\(.operations) \(.verified)"' "60 true"
		expect_json '.parameters.local_registration | test("MR")' true
		expect_json '.parameters.message_success | test("receiver")' true
	done
	serve bench=mem:8M --writable --mailbox
	for size in 64K 64 64K $longest_message 64; do
		expect 0 kxfer --json bench send-imm "$peer" --size $size --count 40 --depth 3 --judge-anyway
		expect_json '.total | "\(.operations) \(.verified)"' "40 true"
	done
	expect 1 kxfer --json bench send "$peer" --size $((longest_message + 1)) --count 40
	expect_error_json '"\(.errno) \(.why)"' "EOPNOTSUPP a message has at most $longest_message bytes"
}

test_messages_need_a_responder() {
	serve bench=mem:1M --writable
	expect 1 kxfer --json bench send "$peer" --engine kverbs $quick
	expect_error_json '"\(.errno) \(.hint | test("--verbs"))"' "ECONNREFUSED true"
}

test_messages_are_sent_by_jobs() {
	for op in send send-imm write-imm; do
		expect 0 kxfer --json bench $op $quick --depth 16
		expect_json '"\(.total.verified) \(.parameters.message_success | test("mailbox"))"' "true true"
	done
	expect 0 kxfer --json bench send --count 300 --rate 200/s
	expect_json .total.verified true
	expect 0 kxfer --json bench read $quick
	expect_json .parameters.message_success null
}

test_who_loses_the_mailbox_to_another_is_told() {
	serve bench=mem:1M --writable --mailbox
	before=$(kxfer --json stat | jq .sends_stored)
	background kxfer --json bench send "$peer" --duration 80
	wait_for 60 sh -c "[ \$(kxfer --json stat | jq .sends_stored) -gt $((before + 300)) ]"
	kill -STOP "$pid"
	kxfer bench send "$peer" --count 500 >"$work/second" 2>&1 || fail "the other: $(cat "$work/second")"
	kill -CONT "$pid"
	collect
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json .errno EBUSY
}

test_round_trips_are_made_and_their_bytes_compared() {
	for size in 1 70001; do
		expect 0 kxfer --json bench ping-pong $quick --size $size
		expect_json '.total | "\(.operations) \(.verified) \(.latency_samples)"' "300 true 300"
		expect_json .total.bytes_compared_bytes $((300 * size))
		expect 0 kxfer --json bench write-ping-pong $quick --size $size
		expect_json '.total | "\(.operations) \(.verified) \(.write_latency_p50_ns * 2 == .latency_p50_ns)"' \
			"300 false true"
		expect_json '.notes | join(" ") | test("last byte")' true
		expect 0 kxfer --json bench send-ping-pong $quick --size $size
		expect_json '.total | "\(.operations) \(.verified) \(.send_latency_p50_ns * 2 == .latency_p50_ns)"' \
			"300 true true"
		expect_json .total.bytes_compared_bytes $((300 * size))
		expect 0 kxfer --json bench notify-ping-pong $quick --size $size
		expect_json '.total | "\(.operations) \(.verified) \(.notify_latency_p50_ns * 2 == .latency_p50_ns)"' \
			"300 true true"
		expect_json '.total | .notify_latency_min_ns <= .notify_latency_p50_ns and
			.notify_latency_mean_ns <= .notify_latency_max_ns and .notify_latency_p99_9_ns == null' true
		expect_json .total.bytes_compared_bytes $((300 * size))
	done
	expect 1 kxfer --json bench send-ping-pong $quick --size 2M
	expect_error_json '"\(.errno) \(.hint)"' "EOPNOTSUPP use --size 1048576 or less"
	wait_for 10 nothing_is_left
	! pidof kxfer || fail "a process is left"
}

says() { # WORDS COMMAND...
	words=$1
	shift
	expect 0 "$@" $quick
	grep -qE "^ +$words +[0-9]" "$work/stdout" || fail "$* does not say: $words"
}

# The modes as listed in the page about krping.
test_each_mode_of_krping_has_a_command_that_says_its_figure() {
	says "latency p50" kxfer bench ping-pong --size 64
	says "a WRITE one way, p50" kxfer bench write-ping-pong --size 64
	says "a WRITE with NOTIFY one way, p50" kxfer bench notify-ping-pong --size 64
	says "latency p50" kxfer bench read --engine kverbs --size 64
	says "latency p50" kxfer bench read --engine kverbs --size 64 --context softirq
	says bandwidth kxfer bench write --engine kverbs --size 64K --depth 64
	says rate kxfer bench register --size 64K --depth 32
}

test_round_trips_are_made_one_at_a_time_by_jobs_or_by_the_kernel() {
	for op in ping-pong write-ping-pong send-ping-pong notify-ping-pong; do
		expect 2 kxfer bench $op --engine verbs
		expect_stderr "--engine job"
		expect 2 kxfer bench $op --depth 2
		expect_stderr "--depth 1"
		[ $op != write-ping-pong ] || continue
		expect 2 kxfer bench $op --engine kverbs
		expect_stderr "write-ping-pong with --engine kverbs"
	done
	expect 2 kxfer bench write-ping-pong --engine kverbs --context direct
	expect 2 kxfer bench write-ping-pong --engine kverbs --rate 100
}

# Both kernels poll; the processes make a call now and then.
test_round_trips_with_the_kernel_at_both_ends() {
	for size in 1 64 70001; do
		expect 0 kxfer --json bench write-ping-pong --engine kverbs $quick --size $size
		expect_json '.total | "\(.operations) \(.verified) \(.latency_samples)"' "300 false 300"
		expect_json '.total.write_latency_p50_ns * 2 == .total.latency_p50_ns' true
		expect_json '"\(.parameters.engine) \(.parameters.operation)"' "kverbs write-ping-pong"
	done
	expect 0 kxfer --json bench write-ping-pong --engine kverbs --duration 1 --context softirq --judge-anyway
	expect_json '.total.operations > 10' true
	serve_bench
	expect 0 kxfer --json bench write-ping-pong "$peer" --engine kverbs --count 60 --warm-up 0 --size 64
	expect_json '.total | "\(.operations) \(.peer_usage_source)"' "60 the peer"
	# Jobs after it: the numbers of the bytes begin anew.
	expect 0 kxfer --json bench write-ping-pong "$peer" --count 60 --warm-up 0 --size 64
	expect_json '.total.operations' 60
	background kxfer bench write-ping-pong "$peer" --engine kverbs --duration 600 --timeout 5
	wait_for 20 sh -c 'kxfer --json link list | jq -e "any(.targets > 0)"'
	kill -KILL "$serve_pid"
	collect
	[ "$status" -eq 1 ] || fail "status $status"
	grep -qE 'withdrawn|no WRITE|broke|revoked' stderr || fail "it is not said why"
	wait_for 20 is_over "$serve_pid"
	wait_for 10 nothing_is_left
}

# The server is another user's, and says why it does not answer.
test_round_trips_of_the_kernel_need_rights_at_the_peer_too() {
	chmod 666 /dev/kxfer
	kxfer listen add "$peer" --no-key >listen.out
	setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all --bounding-set -all \
		kxfer serve bench=mem:4K --bench >serve.out 2>&1 </dev/null &
	echo $! >>"$work/pids"
	wait_for 30 grep -q "taking part" serve.out
	try kxfer --json bench write-ping-pong "$peer" --engine kverbs $quick
	refused=$status
	cp stderr refused.err
	try kxfer --json bench write-ping-pong "$peer" $quick
	kxfer listen del "$peer" >listen.out
	chmod 600 /dev/kxfer
	[ "$status" -eq 0 ] || fail "jobs: status $status"
	cp refused.err stderr
	[ "$refused" -eq 1 ] || fail "status $refused"
	expect_error_json '"\(.errno) \(.why)"' "EPERM it needs CAP_NET_ADMIN"
}

serve_bench() {
	serve bench=mem:4K --bench "$@"
	wait_for 30 grep -q "taking part" "$work/serve.out"
}

begin_round_trips() { # OP OPTION...
	: >"$work/stdout" # what the one before said must not be taken for this one's
	background kxfer bench "$1" "$peer" --duration 600 --interval 0.1 "$2" "$3"
	wait_for 60 grep -q ' to 0\.[0-9] s ' "$work/stdout"
}

# The peer is another node only by its address here.
test_round_trips_with_a_peer_are_answered_by_its_process() {
	serve_bench
	for op in ping-pong write-ping-pong send-ping-pong notify-ping-pong; do
		expect 0 kxfer --json bench $op "$peer" --count 60 --warm-up 0 --size 70001
		expect_json '"\(.parameters.operation) \(.peer) \(.total.operations) \(.total.latency_samples)"' \
			"$op $peer:7625 60 60"
		expect_json '.total.verified' "$([ $op = write-ping-pong ] && echo false || echo true)"
		expect_json '.total | "\(.peer_cpu_per_operation_ns > 0) \(.peer_usage_source)"' "true the peer"
		expect_json '"\(.peer_kernel) \(.interrupted)"' "$(uname -r) $(uname -m) false"
	done
	stop_serve
	[ "$status" -eq 0 ] || fail "the server ended with $status"
	serve bench=mem:1M --writable
	expect 1 kxfer --json bench ping-pong "$peer" $quick
	expect_error_json '"\(.errno) \(.hint)"' "ENOENT run there: kxfer serve bench=mem:4K --bench"
	stop_serve
	serve_bench --allow uid=4711
	expect 1 kxfer --json bench ping-pong "$peer" $quick
	expect_error_json '"\(.errno) \(.hint | test("--allow"))"' "EACCES true"
}

test_round_trips_are_answered_for_one_at_a_time_until_it_ends() {
	serve_bench
	for op in ping-pong write-ping-pong send-ping-pong notify-ping-pong; do
		begin_round_trips $op --timeout 10
		kxfer --json bench ping-pong "$peer" $quick >other 2>&1 && fail "two at a time"
		expect_in other EBUSY
		# The silence is longer than the server's check interval, but the other end is
		# still there.
		kill -STOP "$pid"
		sleep 2.5
		kill -CONT "$pid"
		kill -INT "$pid"
		collect
		[ "$status" -eq 130 ] || fail "status $status: $op"
		expect_stdout INTERRUPTED
		begin_round_trips $op --timeout 10
		kill -KILL "$pid"
		wait_for 20 kxfer bench $op "$peer" $quick
	done
}

test_a_server_that_ends_ends_round_trips_in_time() {
	for how in "INT ping-pong" "INT write-ping-pong" "INT send-ping-pong" "INT notify-ping-pong" \
		"KILL send-ping-pong"; do
		serve_bench
		begin_round_trips "${how#* }" --timeout 5
		kill -"${how% *}" "$serve_pid"
		collect
		[ "$status" -eq 1 ] || fail "status $status: $how"
		grep -qE 'withdrawn|no answer|no WRITE|link to the peer broke' stderr || fail "it is not said why: $how"
		wait_for 20 is_over "$serve_pid"
	done
}

# The round trip in flight never ends.
test_ctrl_c_keeps_the_round_trips_before_a_silent_partner() {
	serve_bench
	begin_round_trips ping-pong --timeout 3
	kill -STOP "$serve_pid"
	# The partner answers the round trip that it has begun, and then nothing.
	sleep 1
	kill -INT "$pid"
	collect
	kill -CONT "$serve_pid"
	[ "$status" -eq 130 ] || fail "status $status"
	expect_stdout INTERRUPTED
	expect_stdout 'NOT verified'
}

test_ctrl_c_ends_round_trips_and_the_partner() {
	background kxfer bench write-ping-pong --duration 600
	wait_for 30 sh -c 'kxfer --json export list | jq -e "any(.name | endswith(\"-back\"))"'
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	wait_for 30 nothing_is_left
}

run_tests
