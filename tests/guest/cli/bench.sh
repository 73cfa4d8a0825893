#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer bench: each engine and operation really runs, and assertions, baselines and reports end
# in the right status. No figure is expected to be small or large: only facts that hold on any
# machine are checked.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/bench.sh
. ../lib/bench.sh

unprivileged="setpriv --reuid 1000 --regid 1000 --groups 104 --inh-caps -all --bounding-set -all"

# A run that several tests check; the first of them makes it.
measured() { # OP ENGINE
	kept=$root/$1-$2.json
	if [ ! -e "$kept" ]; then
		expect 0 kxfer --json bench $1 --engine $2 $quick
		cp "$work/stdout" "$kept"
	fi
	cp "$kept" "$work/stdout"
}

test_each_engine_does_and_verifies_each_operation() {
	for engine in job verbs kverbs; do
		for op in read write; do
			measured $op $engine
			expect_json '"\(.parameters.engine) \(.parameters.operation) \(.total.operations)"' \
				"$engine $op 300"
			expect_json '.total | .verified and .rate_per_s > 0 and .latency_samples == 300' true
			expect_json '.total | .latency_min_ns <= .latency_p50_ns and .latency_p50_ns <= .latency_max_ns' true
		done
	done
}

test_all_measures_a_link_in_one_screen() {
	expect 0 kxfer --json bench all --duration 0.2
	expect_json length 10
	expect_json 'map(select(.error != null)) | length' 0
	expect_json '.[0] | "\(.operation) \(.connect_ns > 0) \(.p50_ns)"' "connect true null"
	expect_json '.[1:] | map(.rate_per_s > 0 and .operations > 0 and .cpu_per_operation_ns != null) | all' true
	expect_json '.[1:] | map(select(.depth == 1) | .p50_ns > 0) | all' true
	expect_json '.[1:] | map(select(.operation != "send-ping-pong") | .bandwidth_bytes_per_s > 0) | all' true
	expect_json 'map(select(.operation == "send-ping-pong") | .bandwidth_bytes_per_s) | tostring' "[null]"
	expect 0 kxfer bench all --duration 0.2
	expect_stdout "send 64 B and back"
	[ "$(awk '{ if (length > n) n = length } END { print n }' "$work/stdout")" -le 80 ] ||
		fail "it is wider than 80 columns"
	expect_stderr "a SEND one way is half of there and back"
	expect 2 kxfer bench all --size 4K
	expect_stderr "sizes, depths and loads of its own"
	expect 2 kxfer bench all --assert 'p99<1s'
	expect_stderr "judges nothing"
}

# The time to connect is not known if links in all contexts are up.
unknown='.[1:] | map(select(.error != null) | "\(.operation) \(.size_bytes)") | join(", ")'

# What the peer does not offer is left out, with the reason.
test_all_goes_on_without_what_the_peer_lacks() {
	serve bench=mem:64M --writable --bench
	expect 0 kxfer --json bench all --duration 0.1 "$peer"
	expect_json "$unknown" "send 64"
	expect_json 'map(select(.operation == "send-ping-pong") | .peer_cpu_per_operation_ns > 0) | all' true
	expect 0 kxfer bench all --duration 0.1 "$peer"
	grep -qE '^send 64 B x32 +not known' "$work/stdout" || fail "it does not say that it is not known"
	expect_stderr "not known: send 64 B x32: "
	expect_stderr "all figures need there: kxfer serve bench=mem:8M --writable --mailbox --bench"
	expect_stderr "is the peer's word"
}

# Any listener has @ping, so READs of up to its length are measured.
test_all_measures_a_peer_that_only_serves_files() {
	head -c 100000 /dev/urandom >"$work/file"
	serve "$work/file"
	expect 0 kxfer --json bench all --duration 0.1 "$peer"
	expect_json 'map(select(.by_ping) | "\(.operation) \(.size_bytes) \(.depth) \(.operations > 0)") | join(", ")' \
		"read 64 1 true, read 64 16 true, read 65536 1 true"
	expect_json "$unknown" "write 64, send-ping-pong 64, send 64, write 65536, read 1048576, write 1048576"
	expect 0 kxfer bench all --duration 0.1 "$peer"
	expect_stderr "READs are of its @ping"
	expect 0 kxfer get "$peer/file" "$work/back"
	expect_equal_files "$work/file" "$work/back"
	stop_serve
	expect 1 kxfer --json bench all --timeout 2 "$peer:7999"
	expect_error_json '.errno | length > 3' true
}

test_all_says_what_an_engine_cannot_do() {
	expect 0 kxfer bench all --engine verbs --duration 0.1
	expect_stderr "can only be done by engine job"
	expect_stderr "only the engines of the module have links"
}

test_many_at_once_are_timed_one_by_one() {
	for engine in job verbs kverbs; do
		expect 0 kxfer --json bench write --engine $engine $quick --size 4K --depth 16 --batch 4
		expect_json '"\(.parameters.depth) \(.parameters.batch) \(.total.latency_samples)"' "16 4 300"
		expect_json '.total | .latency_p50_ns > 0 and .latency_p50_ns <= .latency_max_ns' true
		# No operation took longer than all together, except for the width of a bucket.
		expect_json '.total | .latency_max_ns <= .elapsed_ns * 1.01' true
	done
}

# Moved data is verified; words that are counted up must have the right value.
test_verbs_does_and_verifies_all_other_operations() {
	case $KXFER_PROVIDER in
	siw) able=" send " ;;
	*) able=" write-imm send send-imm compare-swap fetch-add " ;;
	esac
	if has_atomic_write; then able="${able}atomic-write "; fi
	for op in write-imm send send-imm compare-swap fetch-add atomic-write flush; do
		case $able in
		*" $op "*) ;;
		*)
			expect 1 kxfer --json bench $op --engine verbs $quick
			expect_error_json '"\(.errno) \(.why | length > 10)"' "EOPNOTSUPP true"
			continue
			;;
		esac
		expect 0 kxfer --json bench $op --engine verbs --count 301 --warm-up 10 --depth 7 --judge-anyway
		expect_json '"\(.parameters.operation) \(.total.operations) \(.total.verified)"' "$op 301 true"
		expect_json '.total | ([.histogram_ns[].count] | add) == .latency_samples' true
		case $op in
		compare-swap | fetch-add | atomic-write) expect_json .parameters.size_bytes 8 ;;
		*) expect_json .parameters.size_bytes 64 ;;
		esac
	done
	expect 2 kxfer bench fetch-add --size 16
	expect_stderr "--size 8"
}

# By jobs, and by work requests of the kernel if the device has them.
test_words_are_counted_up() {
	for op in compare-swap fetch-add; do
		if [ "$KXFER_PROVIDER" = siw ]; then
			for engine in job kverbs; do
				expect 1 kxfer --json bench $op $quick --engine $engine
				expect_error_json '"\(.errno) \(.why | test("iWARP has no atomic"))"' "EOPNOTSUPP true"
			done
			continue
		fi
		for way in "--depth 1" "--depth 7 --batch 3" "--depth 8 --signal batch --ring" \
			"--engine kverbs --depth 1" "--engine kverbs --depth 7 --batch 3 --signal batch" \
			"--engine kverbs --depth 5 --memory mr-each --context softirq"; do
			expect 0 kxfer --json bench $op --count 301 --warm-up 10 $way --judge-anyway
			expect_json '"\(.parameters.size_bytes) \(.total.operations) \(.total.verified)"' "8 301 true"
		done
	done
}

test_a_peer_has_to_grant_atomics() {
	[ "$KXFER_PROVIDER" != siw ] || skip "iWARP has no atomics"
	serve bench=mem:1M --writable
	expect 1 kxfer --json bench fetch-add "$peer" $quick
	expect_error_json '"\(.errno) \(.why | test("serve --atomic"))"' "EOPNOTSUPP true"
	stop_serve
	serve bench=mem:1M --writable --atomic
	expect_in "$work/serve.out" "read, write and atomics"
	expect 0 kxfer --json bench fetch-add "$peer" $quick
	expect_json .total.verified true
}

test_what_an_engine_cannot_is_an_error_with_the_reason() {
	expect 1 kxfer --json bench send --size 2M $quick
	expect_error_json '"\(.errno) \(.why)"' "EOPNOTSUPP a message has at most $longest_message bytes"
	[ "$KXFER_PROVIDER" = siw ] || return 0
	for op in write-imm send-imm; do
		expect 1 kxfer --json bench $op --engine kverbs $quick
		expect_error_json '"\(.errno) \(.why | test("iWARP has no immediate"))"' "EOPNOTSUPP true"
	done
}

test_registrations_are_measured_alone() {
	for depth in 1 16; do
		expect 0 kxfer --json bench register $quick --size 16K --depth $depth
		expect_json '.parameters | "\(.engine) \(.operation) \(.memory)"' "kverbs register mr-each"
		expect_json '.total | "\(.operations) \(.verified) \(.rate_per_s > 0) \(.latency_p50_ns > 0)"' \
			"300 false true true"
		expect_json '.notes | join(" ") | test("nothing is moved")' true
	done
	expect 2 kxfer bench register --engine verbs
	expect_stderr "--engine kverbs"
}

# The parameters of the run are those that the module used.
test_kverbs_runs_in_each_context_and_with_each_memory() {
	for context in polled workqueue softirq unbound direct; do
		expect 0 kxfer --json bench write --engine kverbs $quick --depth 8 --context $context
		expect_json '.parameters.completion_context' $context
		expect_json '.total | "\(.latency_samples) \(.verified)"' "300 true"
	done
	for op in read write; do
		for memory in lkey mr mr-each mr-pool; do
			expect 0 kxfer --json bench $op --engine kverbs $quick --depth 8 --memory $memory
			expect_json '"\(.parameters.memory) \(.total.verified) \(.total.latency_samples)"' \
				"$memory true 300"
			case $memory-$op-$KXFER_PROVIDER in
			mr-each-*) how="registered for each operation" ;;
			mr-pool-*) how="registered for each operation.*of the QP.s pool" ;;
			mr-* | lkey-read-siw) how="registered once" ;;
			lkey-write-*) how=inline ;;
			*) how=local_dma_lkey ;;
			esac
			expect_json ".parameters.local_registration | test(\"$how\")" true
		done
	done
	expect 1 kxfer --json bench read --engine kverbs $quick --memory mr --size 8M
	expect_error_json '"\(.errno) \(.why | test("registers at most [0-9]+ bytes"))"' "EOPNOTSUPP true"
	expect 2 kxfer bench read --memory mr
	expect_stderr "--engine kverbs"
	for engine in job verbs; do
		expect 2 kxfer bench read --engine $engine --context direct
		expect_stderr "--engine kverbs"
	done
	expect 2 kxfer bench read --engine kverbs --context direct --cq pool
	expect_stderr "workqueue, softirq or unbound"
}

# One completion for so many operations, however many are posted together.
test_how_many_operations_a_completion_stands_for_is_chosen() {
	for way in "3 5" "5 3" "8 1" "1 8"; do
		signal=${way% *}
		expect 0 kxfer --json bench write --engine kverbs $quick --depth 8 --batch ${way#* } --signal $signal
		expect_json '.parameters | "\(.signal_every) \(.batch)"' "$way"
		expect_json '.total | "\(.operations) \(.latency_samples) \(.verified)"' "300 300 true"
	done
	expect 0 kxfer --json bench read --engine kverbs $quick --depth 8 --signal 7
	expect_json '.parameters | "\(.signal_every) \(.batch)"' "7 2"
	expect 2 kxfer bench read --engine kverbs --depth 8 --batch 5 --signal 5
	expect_stderr "the depth and one"
	expect 2 kxfer bench read --depth 8 --signal 2
	expect_stderr "--engine kverbs"
	for signal in 0 257 -1 2x all; do
		expect 2 kxfer bench read --engine kverbs --depth 8 --signal $signal
	done
	expect_stderr "each, batch or a number"
}

test_a_duration_is_divided_into_intervals_that_add_up() {
	for engine in job kverbs; do
		expect 0 kxfer --json bench read --engine $engine --duration 0.6 --interval 0.2
		expect_json '.intervals | length' 3
		expect_json '(.intervals | map(.operations) | add) == .total.operations' true
		expect_json '(.intervals | map(.elapsed_ns) | add) == .total.elapsed_ns' true
		expect_json '.total.elapsed_ns > 500000000' true
		expect_json '.slowest_interval.rate_per_s == (.intervals | map(.rate_per_s) | min)' true
		expect_json '[.intervals[] | .latency_min_ns <= .latency_p50_ns and .latency_p50_ns <= .latency_p90_ns] | all' \
			true
		expect_json '[.intervals[] | (.operations >= 10000) == (.latency_p99_9_ns != null)] | all' true
		expect_json '[.intervals[] | (.operations >= 100000) == (.latency_p99_99_ns != null)] | all' true
		# The rest is the time between the end of the last interval and the end of the
		# run.
		expect_json '(.intervals | map(.cpu_ns) | add) / (.total.cpu_per_operation_ns * .total.operations) |
			. > 0.9 and . <= 1.000001' true
		expect_json '[.intervals[] | (.cpu_per_operation_ns - .cpu_ns / .operations | fabs) < 1] | all' true
		expect_json '(.intervals | map(.switches_voluntary + .switches_involuntary) | add) <=
			.total.switches_voluntary + .total.switches_involuntary' true
	done
}

test_intervals_are_lines_where_they_are_asked_for() {
	expect 0 kxfer bench read --duration 0.4 --interval 0.2
	[ "$(grep -c ' to 0\.[0-9] s .* p99 .* CPU  *[0-9]' "$work/stdout")" -ge 2 ] || fail "no lines of intervals"
	expect_stdout "worst intervals"
	expect 0 kxfer bench read --duration 0.2
	! sed '/^worst/,$d' "$work/stdout" | grep -q ' to 0\.[0-9] s ' || fail "a line that nobody asked for"
}

test_a_percentile_without_samples_to_tell_it_is_left_out_with_the_reason() {
	expect 0 kxfer --json bench read --count 1000
	expect_json '.total | "\(.latency_p99_ns > 0) \(.latency_p99_9_ns) \(.latency_p99_99_ns)"' "true null null"
	expect_json '.notes | any(. == "p99.99 takes 100000 operations, there were 1000")' true
	expect 0 kxfer bench read --count 1000
	grep -qE '^ *latency p99\.99 +-$' "$work/stdout" || fail "p99.99 is no -"
}

test_a_result_says_where_and_how_it_was_measured() {
	measured read job
	expect_json '"\(.result) \(.format)"' "kxfer bench 1"
	expect_json .kernel "$(uname -r) $(uname -m)"
	expect_json .module_srcversion "$(cat /sys/module/kxfer/srcversion)"
	expect_json '"\(.device) \(.driver)"' "$KXFER_DEVICE $KXFER_PROVIDER"
	expect_json '[.mtu_bytes, .netdev_mtu_bytes] | all(. > 0)' true
	expect_json '[.netdev, .gid_type, .cpu, .clock, .affinity] | all(length > 0)' true
	expect_json '.firmware | type' string
	expect_json '.virtual_machine | test("QEMU|KVM|User-mode Linux")' true
	expect_json '(.steal_percent == null) == (.steal_unknown != "")' true
	expect_json '.parameters | "\(.size_bytes) \(.count) \(.warm_up_operations) \(.poll) \(.completion_context)"' \
		"64 300 10 adaptive polled"
	expect 0 kxfer --json compare --count 40 --rounds 2 --depth 8 --op read --size 64 --engine verbs
	expect_json '[.netdev, .gid_type, .affinity] | all(length > 0)' true
	expect_json '(.steal_percent == null) == (.steal_unknown != "")' true
}

# The registration by the user-space responder cannot be measured.
test_what_registering_its_memory_took_is_told() {
	for engine in job verbs kverbs; do
		measured read $engine
		expect_json '.registration | .length_bytes >= 64 and .local_ns > 0 and .local_ns < 60e9' true
		case $engine in
		verbs) expect_json '.registration.grant_ns' null ;;
		*) expect_json '.registration | .grant_ns > 0 and .grant_ns < 60e9' true ;;
		esac
	done
	expect 0 kxfer --json bench read --count 10 --warm-up 1 --judge-anyway --size 256K
	expect_json '.registration.length_bytes' 262144
	expect 0 kxfer bench read $quick --verbose
	grep -qE '^registration +local [0-9.]+ [mu]?s, grant [0-9.]+ [mu]?s of 4 KiB$' "$work/stdout" ||
		fail "no line of the registration"
}

# Counts the longest operation: an MR of its own takes two work requests more, and scattered
# pages take more SGEs than one work request has.
test_kverbs_tells_work_requests_an_operation() {
	expect 0 kxfer --json bench write --engine kverbs $quick
	expect_json .total.work_requests_per_operation 1
	expect 0 kxfer --json bench write --engine kverbs $quick --memory mr-each
	expect_json .total.work_requests_per_operation 3
	# more than the SGEs of a work request
	size=1M
	[ "$KXFER_PROVIDER" != siw ] || size=64K
	expect 0 kxfer --json bench write --engine kverbs --rate 1k/s $quick --size $size
	expect_json '.total.work_requests_per_operation > 1' true
	measured read job
	expect_json '.total | has("work_requests_per_operation")' false
}

# One type, although the port may have GIDs of several types; iWARP has none, and its GIDs show
# that.
test_the_gid_type_is_the_one_that_was_used() {
	case $KXFER_PROVIDER in
	siw) type=iWARP ;;
	*) type="RoCE v2" ;;
	esac
	for engine in job verbs kverbs; do
		measured read $engine
		expect_json .gid_type "$type"
	done
	expect 0 kxfer --json compare --count 40 --rounds 2 --depth 8 --op read --size 64
	expect_json .gid_type "$type"
	[ "$KXFER_PROVIDER" = siw ] || {
		expect 0 kxfer --json bench read --engine verbs --connect tcp $quick
		expect_json .gid_type "$type"
	}
}

test_cpu_time_switches_and_system_calls_an_operation() {
	measured read job
	expect_json '.total | .cpu_per_operation_ns > 0 and .switches_per_operation >= 0' true
	[ -z "$(why_calls_are_not_told)" ] || return 0
	expect_json .total.syscalls_per_operation 1
	measured read kverbs
	expect_json '.total.syscalls_per_operation < 0.1' true
}

# The count is large enough for ticks of the node's clock.
test_the_other_end_and_the_node_are_told_what_they_took() {
	expect 0 kxfer --json bench ping-pong --count 1000 --warm-up 10 --judge-anyway
	expect_json '.total | .peer_cpu_per_operation_ns > 0 and .peer_switches_per_operation >= 0' true
	expect_json '.total.peer_usage_source' "this node"
	expect_json '.total | .node_cpu_per_operation_ns >= .node_softirq_per_operation_ns' true
	expect 0 kxfer bench write --duration 0.5 --judge-anyway --assert 'peer_cpu<1s,node_cpu>0ns,node_softirq<1s'
	grep -qE '^ +CPU time at the peer +[0-9]' "$work/stdout" || fail "the peer's CPU time is not told"
	grep -qE '^ +CPU time of the node +[0-9]' "$work/stdout" || fail "the node's CPU time is not told"
	serve bench=mem:1M --writable
	expect 1 kxfer --json bench read "$peer" $quick --assert 'peer_cpu<1s'
	expect_json '.total | "\(.peer_cpu_per_operation_ns) \(.peer_usage_source)"' "null null"
	expect_json '.notes | join(" ") | test("of another node.s process is told by kxfer serve --bench")' true
	stop_serve
	serve bench=mem:1M --writable --bench
	expect 0 kxfer --json bench read "$peer" $quick --assert 'peer_cpu<1s,peer_switches<100'
	expect_json '.total.peer_usage_source' "the peer"
	expect 0 kxfer bench read "$peer" $quick
	expect_stdout "CPU time at the peer, as it says"
}

# The peer is another node only by its address here. Its process reports its own node, if it
# takes part.
test_a_peer_that_takes_part_tells_what_node_it_is() {
	serve bench=mem:1M --writable
	expect 0 kxfer --json bench read "$peer" $quick
	expect_json 'has("peer_kernel")' false
	stop_serve
	serve bench=mem:1M compare=mem:1M --writable --bench
	expect 0 kxfer --json bench read "$peer" $quick
	expect_json '"\(.peer_kernel) \(.peer_module)"' "$(uname -r) $(uname -m) kxfer.ko $(cat /sys/module/kxfer/version)"
	expect_json .peer_module_srcversion "$(cat /sys/module/kxfer/srcversion)"
	expect_json '.peer_cpu == .cpu and (.peer_cpu | length) > 4' true
	expect 0 kxfer --json compare "$peer" --count 40 --rounds 2 --depth 8 --op read --size 64 --engine job
	expect_json '"\(.peer_kernel) \(.peer_cpu == .cpu)"' "$(uname -r) $(uname -m) true"
	expect 0 kxfer bench read "$peer" $quick --verbose
	grep "^peer's kernel " "$work/stdout" | grep -qF " $(uname -r)" || fail "the peer's kernel is not told"
}

# Each READ takes one packet there and one back; the same device sends and receives both.
test_the_device_s_counters_are_told_or_why_there_are_none() {
	for engine in job verbs kverbs; do
		measured read $engine
		if [ "$KXFER_PROVIDER" = siw ]; then
			expect_json .device_counters null
			expect_json '.notes | join(" ") | test("keeps no counters")' true
			continue
		fi
		expect_json '.device_counters | .sent_pkts >= 600 and .sent_pkts < 1200' true
	done
	[ "$KXFER_PROVIDER" = siw ] || {
		expect 0 kxfer bench read $quick
		grep -A20 '^device counters' "$work/stdout" | grep -qE '^ +sent_pkts +[0-9]' || fail "no counters in text"
	}
}

test_stages_of_a_job_add_up() {
	expect 2 kxfer bench read --stages --depth 2
	expect_stderr "--depth 1"
	expect 2 kxfer bench read --stages --engine verbs
	expect_stderr "--engine job"
	if [ ! -e /sys/kernel/tracing/events/kxfer/kxfer_submit/id ]; then
		expect 1 kxfer --json bench read $quick --stages
		expect_error_json '.hint | test("CONFIG_PERF_EVENTS")' true
		return 0
	fi
	# Each way once, and each operation in several of them.
	for way in read write "write --size 20001" "read --context workqueue" "write --poll never" "read --ring"; do
		expect 0 kxfer --json bench $way --count 20 --warm-up 5 --judge-anyway --stages
		expect_json '[.stages[].stage] | join(" ")' \
			"call check plan post wire completion wake_up return"
		# A slow guest may not reach all 512 jobs in the time.
		expect_json '.stages_total | .jobs + .jobs_left_out <= 512' true
		expect_json '.stages_total | .jobs >= 20 and .jobs > 3 * .jobs_left_out' true
		expect_json '(.stages | map(.mean_ns) | add) / .stages_total.mean_ns * 1000 | round' 1000
		expect_json '.stages | all(.mean_ns > 0)' true
		expect_json .total.verified true
	done
	expect 0 kxfer bench write $quick --stages
	grep -qE '^ *total +[0-9]' "$work/stdout" || fail "no total of stages in text"
}

# The long duration would exceed the test's limit, so nothing is measured.
test_stages_that_cannot_be_traced_fail_before_the_run() {
	without="umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; exec kxfer --json bench read --duration 600"
	expect 1 unshare -m sh -c "$without --stages 2>why"
	mv why "$work/stderr"
	expect_error_json '"\(.errno) \(.why) \(.hint | test("mount -t tracefs.*leave out --stages"))"' \
		"ENOENT tracefs is not mounted true"
	[ ! -s "$work/stdout" ] || fail "it was measured"
	chmod 666 /dev/kxfer
	expect 1 $unprivileged kxfer --json bench read --duration 600 --stages
	expect_error_json '.hint | test("root")' true
	expect_error_json '.why | length > 10' true
	[ ! -s "$work/stdout" ] || fail "it was measured"
}

test_assertions_that_hold_end_0() {
	expect 0 kxfer --json bench read $quick --assert 'p50<10s,bw>1B/s,rate>=1/s,max<=100s,cpu>0ns'
	expect_json '[.verdicts[].verdict] | join(" ")' "passed passed passed passed passed"
}

test_an_assertion_that_fails_ends_1_with_what_was_measured() {
	expect 1 kxfer bench read $quick --assert 'p50<1ns, rate>1/s'
	grep -qE 'FAILED +p50<1ns +p50 is [0-9.]+ (us|ms)' "$work/stdout" || fail "no measured value"
	grep -qE 'passed +rate>1/s +rate is [0-9]+/s' "$work/stdout" || fail "no value of what holds"
}

test_an_assertion_about_what_is_not_known_fails() {
	expect 1 kxfer --json bench read $quick --assert 'p99.99<100s'
	expect_json '.verdicts[0].detail | test("p99.99 takes 100000 operations")' true
}

test_a_wrong_assertion_is_said_before_anything_runs() {
	expect 2 kxfer bench read --assert 'p50<1us,p99<80'
	expect_stderr "at character 15"
	expect_stderr "p99 needs a unit: ns, us, ms, s"
	expect 2 kxfer bench read --assert 'p98<1us'
	expect_stderr "p99.99, max"
}

test_a_result_is_as_good_as_itself() {
	expect 0 kxfer --json bench write $quick --output "$work/old.json"
	cmp -s "$work/stdout" "$work/old.json" || fail "--json and --output differ"
	expect 0 kxfer --json bench write $quick --baseline "$work/old.json" --tolerance 1000%
	expect_json '[.verdicts[].verdict] | join(" ")' "passed passed passed skipped"
}

test_worse_than_the_baseline_ends_1() {
	expect 0 kxfer bench write $quick --output "$work/old.json"
	jq -c '.total.rate_per_s *= 1000' "$work/old.json" >"$work/better.json"
	expect 1 kxfer --json bench write $quick --baseline "$work/better.json" --tolerance 50%
	expect_json '.verdicts[0] | "\(.verdict) \(.name)"' "FAILED rate within 50 % of the baseline"
}

test_a_baseline_of_something_else_is_refused_with_what_differs() {
	expect 0 kxfer bench write $quick --output "$work/old.json"
	expect 1 kxfer --json bench write $quick --size 128 --ring --baseline "$work/old.json"
	expect_error_json '.why | test("size_bytes: 64 in the baseline, 128 now")' true
	expect_error_json '.why | test("ring: false in the baseline, true now")' true
	[ ! -s "$work/stdout" ] || fail "it was measured"
	echo '{"cells": []}' >"$work/other.json"
	expect 1 kxfer --json bench write $quick --baseline "$work/other.json"
	expect_error_json '.why | test("no result of kxfer bench")' true
	expect 1 kxfer --json bench write $quick --baseline "$work/none.json"
	expect_error_json .errno ENOENT
}

test_reports_for_who_collects_them() {
	expect 1 kxfer bench read $quick --assert 'p50<1ns,rate>1/s' --report "$work/report.xml"
	expect_in "$work/report.xml" 'tests="2" failures="1" errors="0" skipped="0"'
	expect_in "$work/report.xml" 'name="p50&lt;1ns"'
	expect 1 kxfer bench read $quick --assert 'p50<1ns,rate>1/s' --report "$work/report.tap"
	expect_in "$work/report.tap" "1..2"
	expect_in "$work/report.tap" "not ok 1 - p50<1ns"
	expect_in "$work/report.tap" "ok 2 - rate>1/s"
	# A run that measures nothing has no verdicts, and none of the run before.
	expect 1 kxfer bench read --depth 4096 --assert 'rate>1/s' --report "$work/report.tap"
	[ ! -e "$work/report.tap" ] || fail "verdicts of another run are left"
}

# More than a second's worth of operations, in as many calls as that takes.
test_kverbs_does_the_count_and_no_more() {
	expect 0 kxfer --json bench write --engine kverbs --depth 16 --duration 0.5 --judge-anyway
	count=$(jq '(.total.rate_per_s * 5 / 16 | floor) * 16 + 1' "$work/stdout")
	expect 0 kxfer --json bench write --engine kverbs --depth 16 --count "$count" --judge-anyway
	expect_json .total.operations "$count"
	expect_json '.total | .verified and .latency_samples == .operations and .elapsed_ns > 1000000000' true
	expect 0 kxfer --json bench write --engine kverbs --depth 16 --count 17 --judge-anyway
	expect_json .total.operations 17
}

test_files_that_cannot_be_written_are_said_before_the_run() {
	expect 1 kxfer --json bench read --duration 60 --output "$work"
	expect_error_json .errno EISDIR
	expect 1 kxfer --json bench read --timeout 2 --output "$work/kept.json" 192.0.2.1
	[ ! -e "$work/kept.json" ] || fail "a file of a run that failed"
	expect 1 kxfer --json bench read --duration 60 --output "$work/none/result.json"
	expect_error_json .errno ENOENT
	expect 2 kxfer bench read --assert 'p50<1s' --report "$work/report.html"
	expect_stderr "FILE.xml or FILE.tap"
	expect 2 kxfer bench read --report "$work/report.xml"
	expect_stderr "nothing to report"
}

test_wrong_options_name_what_is_allowed() {
	expect 2 kxfer bench
	expect_stderr "kxfer bench needs OP"
	expect 2 kxfer bench reed
	expect_stderr "there are: read, write, write-imm, send, send-imm, compare-swap, fetch-add, atomic-write,"
	expect_stderr "flush, mix, register,"
	expect_stderr "ping-pong, write-ping-pong, send-ping-pong, notify-ping-pong"
	expect 2 kxfer bench read --size 0
	expect_stderr "1 byte"
	expect 2 kxfer bench read --size 4X
	expect_stderr "'4X' is not a size"
	expect 2 kxfer bench read --size 64M --depth 16
	expect_stderr "256 MiB"
	expect 2 kxfer bench read --depth 4 --batch 5
	expect_stderr "--batch 4"
	expect 2 kxfer bench read --count 5 --duration 5
	expect 2 kxfer bench read --duration 600 --interval 0.01
	expect_stderr "10000"
	expect 2 kxfer bench read --tolerance lots
	expect_stderr "5%"
	expect 2 kxfer bench read --poll always --context softirq
	expect_stderr "polled"
	for option in duration interval timeout; do
		expect 2 kxfer bench read --$option nan
		expect_stderr "'nan' is not a number from"
	done
	expect 2 kxfer compare --seconds nan
	expect 2 kxfer ping --interval nan "$peer"
}

test_options_that_would_have_no_effect_are_refused() {
	expect 2 kxfer bench read --engine verbs --context softirq
	expect_stderr "--context with --engine job"
	expect 2 kxfer bench ping-pong --ring
	expect_stderr "--ring"
	for memory in lkey mr rw; do
		expect 2 kxfer bench register --memory $memory
		expect_stderr "--memory mr-each"
	done
	expect 0 kxfer bench register --memory mr-each $quick
	expect 2 kxfer bench read --export other
	expect_stderr "--export with PEER"
	expect 2 kxfer bench read --tolerance 5%
	expect_stderr "--tolerance with --baseline"
	expect 2 kxfer bench read --engine verbs --inline never
	expect_stderr "--inline never with write"
	expect 2 kxfer bench read --engine verbs --export other "$peer"
	expect_stderr "--export with --engine job or kverbs"
	expect 2 kxfer bench read --engine verbs --key secret "$peer"
	expect_stderr "--key with --engine job or kverbs"
	expect 2 kxfer bench write-ping-pong --verify
	expect_stderr "leave out --verify"
	expect 2 kxfer bench read --engine kverbs --signal 4
	expect_stderr "--depth N or more"
	expect 2 kxfer bench read --cpus 0,1
	expect_stderr "--clients 2"
}

test_wrong_options_have_a_status_and_no_errno() {
	for options in "read --depth 4 --batch 5" "read --poll always --context softirq" "read --mtu 1024" \
		"read --engine verbs --bidirectional"; do
		expect 2 kxfer --json bench $options
		expect_error_json '"\(.errno) \(.why)"' "null "
		expect_error_json '.hint | test("use --")' true
	done
}

test_more_depth_than_an_engine_has_is_an_error_that_says_how_much() {
	expect 1 kxfer --json bench read --depth 4096
	expect_error_json '.hint | test("^use --depth [0-9]+ or less$")' true
	expect_error_json '.why | test("^[0-9]+ is the most for this size and device$")' true
}

test_no_peer_there_ends_in_time() {
	expect 1 kxfer --json bench read --timeout 2 192.0.2.1
	expect_error_json '.errno | test("ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL")' true
}

test_against_a_node_that_serves() {
	serve bench=mem:1M --writable
	expect 0 kxfer --json bench write "$peer" $quick --size 4K
	expect_json '"\(.peer) \(.parameters.remote_memory_bytes)"' "$peer:7625 1048576"
	expect_json .total.verified true
	for case in "read:" "fetch-add: --atomic" "send: --mailbox" "write --bidirectional: --bench"; do
		expect 1 kxfer --json bench ${case%%:*} "$peer" $quick --export other
		expect_error_json .hint "run there: kxfer serve other=mem:4K --writable${case#*:}"
	done
}

test_what_may_only_be_read_is_not_called_verified() {
	serve bench=mem:1M
	expect 0 kxfer --json bench read "$peer" $quick
	expect_json .total.verified false
	expect_json '.notes | join(" ") | test("not verified")' true
	expect 1 kxfer --json bench write "$peer" $quick
	expect_error_json .errno EACCES
}

test_reads_from_a_peer_are_verified_if_that_is_asked_for() {
	serve bench=mem:1M --writable
	expect 0 kxfer --json bench read "$peer" $quick
	expect_json '"\(.total.verified) \(.notes | join(" ") | test("--verify"))"' "false true"
	expect 0 kxfer --json bench read "$peer" $quick --verify
	expect_json .total.verified true
	stop_serve
	serve bench=mem:1M
	expect 1 kxfer --json bench read "$peer" $quick --verify
	expect_error_json .errno EACCES
}

# Only KVM and Xen report stolen time to a guest. Otherwise /proc/stat has 0, which is no
# figure.
test_the_last_line_has_the_figures_that_most_look_for() {
	expect 0 kxfer bench read $quick
	tail -n 1 stdout | grep -qE '^READ 64 B: p50 [0-9.]+ .s, p99 -, [0-9.]+ ?[kM]?/s, verified$' ||
		fail "the last line: $(tail -n 1 stdout)"
	expect_not_in stdout "a WRITE is done when"
	expect 0 kxfer bench write $quick
	expect_stdout "a WRITE is done when"
}

test_text_has_only_what_is_not_as_always() {
	expect 0 kxfer bench read $quick
	for word in "clock  " "completion context" "local memory" "taken by the host"; do
		expect_not_in stdout "$word"
	done
	expect 0 kxfer bench read $quick -s 4k -d 8 --poll never
	grep -qE '^ +poll +never$' stdout || fail "no line of the parameter that was given"
	expect_not_in stdout "completion context"
	tail -n 1 stdout | grep -qE '^READ 4 KiB x8: .*B/s, verified$' || fail "the last line: $(tail -n 1 stdout)"
	expect 0 kxfer bench read $quick -v
	for word in "clock  " "completion context" "local memory" "taken by the host"; do
		expect_stdout "$word"
	done
	expect 0 kxfer --json bench read $quick
	expect_json '"\(.kernel != null) \(.parameters.completion_context) \(.parameters.batch)"' "true polled 1"
}

test_bandwidth_is_in_gigabits_if_that_is_asked_for() {
	expect 0 kxfer --gbits bench read $quick -s 64K
	grep -qE '^ +bandwidth +[0-9.]+ Gbit/s$' stdout || fail "no Gbit/s"
	tail -n 1 stdout | grep -q 'Gbit/s, verified' || fail "the last line: $(tail -n 1 stdout)"
}

test_what_the_host_took_is_not_known_where_nobody_tells() {
	expect 0 kxfer --json bench read $quick
	known=$(jq '.steal_percent != null' stdout)
	expect_json '(.steal_percent == null) == (.steal_unknown != "")' true
	[ "$known" = false ] || skip "this machine can know"
	expect 0 kxfer bench read $quick --verbose
	grep -qE "taken by the host +not known: " stdout || fail "it is not said to be unknown"
}

test_each_way_to_wait_is_used_and_named() {
	for context in polled softirq; do
		expect 0 kxfer --json bench read $quick --context $context
		expect_json .parameters.completion_context $context
	done
	expect 0 kxfer --json bench read $quick --poll never --ring --depth 8 --signal batch
	expect_json '.parameters | "\(.poll) \(.ring) \(.signal_every)"' "never true 2"
}

# The engine counts the timeout from the last completion, which then is older than that.
test_a_pause_longer_than_the_timeout_is_no_failure() {
	for way in "" --ring "--poll always"; do
		expect 0 kxfer --json bench read --engine job $way --count 3 --rate 1/s --timeout 0.5 --judge-anyway
		expect_json '.total | "\(.operations) \(.verified)"' "3 true"
	done
}

test_on_schedule_latency_counts_from_when_an_operation_was_due() {
	for engine in job verbs kverbs; do
		expect 0 kxfer --json bench read --engine $engine --count 1000 --rate 1k/s --depth 8 --judge-anyway
		expect_json '.parameters.rate_asked_per_s' 1000
		# The last operation is due after 999 ms.
		expect_json '.total.elapsed_ns >= 999000000' true
		expect_json '.total.latency_uncorrected_p99_ns <= .total.latency_p99_ns' true
	done
	# The rate is higher than any engine reaches in this guest; the overdue rest is
	# reported.
	expect 0 kxfer --json bench read --duration 0.2 --rate 100M/s --judge-anyway
	expect_json '.total.operations_overdue > 0' true
	# The same holds if one kernel call after the other keeps the schedule.
	expect 0 kxfer --json bench write --engine kverbs --duration 0.6 --interval 0.2 --rate 100M/s --depth 4 --judge-anyway
	expect_json '.total.operations_overdue > 0 and .total.latency_max_ns > 500000000' true
	expect 0 kxfer --json bench read --engine kverbs --duration 0.9 --interval 0.1 --rate 5/s --judge-anyway
	# The time between the calls counts too, so more operations may begin on a slow kernel.
	expect_json '.total | .operations >= 5 and .operations <= 7 and .operations_overdue <= 1' true
	# The run is too short to use every slot; each slot was used before the measurement.
	for engine in job kverbs; do
		expect 0 kxfer --json bench write --engine $engine --duration 0.1 --rate 20/s --depth 64 --warm-up 0 --judge-anyway
		expect_json '.total | .verified and .operations < 64' true
	done
	expect 2 kxfer bench read --rate 1k/s --signal batch
	expect_stderr "--signal each"
	expect 2 kxfer bench read --rate 10k
	expect_stderr "such as 500/s or 10k/s"
}

waits_in() { grep -q "$2" "/proc/$1/stack"; }

# No host has that address, so the tool waits for an answer.
test_ctrl_c_ends_it_while_it_connects() {
	[ "$KXFER_PROVIDER" != siw ] || skip "siw looks for the peer by TCP, in a call of rdma_cm, and not in poll"
	for way in "bench read --engine verbs" "bench read" "compare --engine verbs" "sweep --quick --output out"; do
		background kxfer $way --timeout 60 "${KXFER_ADDRESS%.*}.99"
		case $way in
		*verbs) wait_for 30 waits_in "$pid" poll ;;
		*) wait_for 30 waits_in "$pid" "kxfer_.*\[kxfer\]" ;;
		esac
		kill -INT "$pid"
		wait_for 20 is_over "$pid"
		collect
		[ "$status" -eq 130 ] || fail "status $status: $way"
		expect_stderr "interrupted"
	done
}

# The line of an interval shows that something was measured.
test_ctrl_c_keeps_what_was_measured() {
	for way in "read" "write --depth 16 --rate 1k/s" "write --engine verbs --depth 8" "read --engine kverbs" \
		"write --bidirectional" "read --count 1000000000000"; do
		case $way in
		*--count*) length= ;;
		*) length="--duration 600 --interval 0.1" ;;
		esac
		before=$(counter jobs_completed)
		background kxfer bench $way $length --assert "rate>1/s" --output out.json --report out.tap
		case $way in
		*--count*) wait_for 60 counter_passed jobs_completed $((before + 2000)) ;;
		*) wait_for 60 grep -q ' to 0\.[0-9] s ' stdout ;;
		esac
		kill -INT "$pid"
		collect
		[ "$status" -eq 130 ] || fail "status $status: $way"
		tail -n 1 stdout | grep -qE ' INTERRUPTED, [0-9.]+ of [0-9.]+ (s|operations) were measured: p50 ' ||
			fail "the last line of $way: $(tail -n 1 stdout)"
		expect_stdout "not judged"
		expect_in out.tap "the run was interrupted"
		cp out.json stdout
		expect_json '"\(.interrupted) \(.notes[0][:12]) \(.verdicts[0].verdict)"' "true Interrupted: not judged"
		expect_json '.total | .operations > 0 and .elapsed_ns > 0 and .syscalls_per_operation == null' true
		case $way in
		*kverbs*) ;;
		*) expect_json .total.verified true ;;
		esac
		rm out.json out.tap
	done
	cp stdout out.json
	expect 1 kxfer --json bench read --count 1000000000000 --baseline out.json
	expect_error_json .why "its run was interrupted"
	expect 0 kxfer --json bench read $quick
	expect_json .interrupted false
	wait_for 30 nothing_is_left
}

test_ctrl_c_ends_it_and_leaves_nothing_behind() {
	background kxfer bench read --duration 600
	wait_for 30 sh -c 'kxfer --json export list | jq -e "any(.name != \"@ping\")"'
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	wait_for 30 nothing_is_left
}

run_tests
