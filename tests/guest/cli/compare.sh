#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer compare: all engines run, verify their data and report their work. No figure is
# expected to be small or large: only counts of work are certain.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

quick="--count 40 --rounds 2 --depth 16 --batch 4"
unprivileged="setpriv --reuid 1000 --regid 1000 --groups 104 --inh-caps -all --bounding-set -all"

nothing_is_left() {
	kxfer --json export list | jq -e "all(.name == \"@ping\")" && kxfer --json listen list | jq -e "length == 0"
}

serve_verbs() {
	serve "$@" --verbs
	wait_for 30 grep -q "user-space verbs on" "$work/serve.out"
}

test_all_engines_do_and_verify_all_cells() {
	expect 0 kxfer --json compare $quick
	expect_json '[.cells[] | "\(.operation) \(.size_bytes)"] | join(", ")' \
		"read 64, read 4096, read 65536, write 64, write 4096, write 65536"
	expect_json '[.cells[].engines[].engine] | unique | join(" ")' "job kverbs verbs"
	expect_json '[.cells[].engines[].verified] | all' true
	expect_json '[.cells[].engines[] | .one_at_a_time.operations > 0 and .deep.operations >= 64] | all' true
}

test_a_result_says_where_and_how_it_was_measured() {
	expect 0 kxfer --json compare $quick --op read --size 64
	expect_json .kernel "$(uname -r) $(uname -m)"
	expect_json '"\(.result) \(.format)"' "kxfer compare 1"
	expect_json .driver "$KXFER_PROVIDER"
	expect_json .device "$KXFER_DEVICE"
	expect_json .mtu_bytes 4096
	expect_json '.cpu | length > 4' true
	expect_json '.virtual_machine | test("QEMU|KVM|User-mode Linux")' true
	expect_json .module "kxfer.ko $(cat /sys/module/kxfer/version)"
	expect_json '.cells[0] | "\(.depth) \(.batch)"' "16 4"
	expect_json '"\(.local_layout), \(.signal_every), \(.rounds)"' "4 KiB pages, scattered, 1, 2"
	expect_json '.remote_registration | test("READ and WRITE")' true
	expect_json '[.registration[] | "\(.engine) \(.local_ns > 0) \(.grant_ns == null)"] | join(", ")' \
		"verbs true true, kverbs true false, job true false"
	expect_json '[.registration[].length_bytes] | unique | join(" ")' 65536
}

# On iWARP a READ is one work request here, and the WRITE that verifies it three.
test_what_verifies_may_take_more_requests() {
	expect 0 kxfer --json compare --count 40 --rounds 2 --op read --size 64K --engine kverbs
	expect_json '.cells[0].engines[0].verified' true
	[ "$KXFER_PROVIDER" != siw ] || expect_json '.cells[0].depth > 100' true
}

test_a_batch_has_one_completion_where_that_is_wanted() {
	expect 0 kxfer --json compare $quick --size 64,4096 --signal batch
	expect_json '"\(.signal_every) \(.batch)"' "4 4"
	expect_json '[.cells[].engines[].verified] | all' true
	expect_json '[.cells[].engines[].deep.operations >= 16] | all' true
	expect 0 kxfer --json compare --count 40 --rounds 2 --op write --size 64 --depth 4 --batch 4 --signal batch
	expect_json '"\(.signal_every) \(.batch)"' "2 2"
}

# RNR NAKs of all ports, which count missing receives. iWARP has none.
rnr_errors() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/*rnr* 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

test_every_operation_works_or_is_refused_with_a_reason() {
	before=$(rnr_errors)
	expect 0 kxfer --json compare $quick --op all --size 64
	expect_json '[.cells[] | "\(.operation) \(.size_bytes)"] | join(", ")' \
		"read 64, write 64, write-imm 64, send 64, send-imm 64, compare-swap 8, fetch-add 8, atomic-write 8, flush 64"
	expect_json '[.cells[].engines[].verified] | all' true
	expect_json '[.cells[] | (.engines | length) + (.refused | length)] | unique | join(" ")' 3
	expect_json '[.cells[].refused[].reason | length > 10] | all' true
	expect_json '[.cells[:2][].engines | length] | join(" ")' "3 3"
	case $KXFER_PROVIDER in
	siw) able="read write send" ;;
	*) able="read write write-imm send send-imm compare-swap fetch-add" ;;
	esac
	expect_json '[.cells[] | select(any(.engines[]; .engine == "kverbs")) | .operation] | join(" ")' "$able"
	if has_atomic_write; then able="$able atomic-write"; fi
	expect_json '[.cells[] | select(any(.engines[]; .engine == "verbs")) | .operation] | join(" ")' "$able"
	case $KXFER_PROVIDER in
	siw) able="read write write-imm send send-imm" ;;
	*) able="read write write-imm send send-imm compare-swap fetch-add" ;;
	esac
	expect_json '[.cells[] | select(any(.engines[]; .engine == "job")) | .operation] | join(" ")' "$able"
	[ "$(rnr_errors)" -eq "$before" ] || fail "messages have met no receive"
}

# A message of a job has at most 1 MiB.
test_the_table_of_operations_says_who_does_what() {
	expect 0 kxfer compare --count 6 --rounds 2 --depth 2 --op send --size 64,2M --engine job
	expect_stdout "Which engine does what"
	expect_stdout "[1]  "
	grep -Eq "^ *send +64 bytes +- +- +works$" "$work/stdout" || fail "SEND"
	grep -Eq "^ *send +2[.0]* MiB +- +- +refused \[1\]$" "$work/stdout" || fail "long SEND"
	expect 0 kxfer compare $quick --op write-imm,read --size 64 --engine job
	grep -Eq "^ *write-imm +64 bytes +- +- +works$" "$work/stdout" || fail "WRITE_IMM"
	expect 0 kxfer compare $quick --op read --size 64 --engine job
	! grep -q "Which engine" "$work/stdout" || fail "a table of nothing"
}

test_what_no_engine_can_is_an_error_with_the_reason() {
	expect 1 kxfer --json compare --count 6 --rounds 2 --depth 2 --op send --size 2M --engine job
	case $KXFER_PROVIDER in
	siw*) longest=1040384 ;;
	*) longest=1048576 ;;
	esac
	expect_error_json "\"\(.errno) \(.why | test(\"at most $longest bytes\"))\"" "EOPNOTSUPP true"
	expect 1 kxfer --json compare $quick --op send --size 64 --engine job --signal batch
	expect_error_json '"\(.errno) \(.why | test("each message has a completion of its own"))"' "EOPNOTSUPP true"
	[ "$KXFER_PROVIDER" = siw ] || return 0
	for op in write-imm send-imm; do
		for engine in verbs kverbs; do
			expect 1 kxfer --json compare $quick --op $op --size 64 --engine $engine
			expect_error_json '"\(.errno) \(.why | test("iWARP has no immediate data"))"' "EOPNOTSUPP true"
		done
	done
	for op in compare-swap fetch-add; do
		expect 1 kxfer --json compare $quick --op $op --engine verbs
		expect_error_json '"\(.errno) \(.why | test("no atomic operations"))"' "EOPNOTSUPP true"
	done
}

# More messages than receives, in blocks that do not end with the last slot, of parts of pages,
# with a completion for each message and for each batch.
test_messages_arrive_whole_and_in_order() {
	ops=send
	[ "$KXFER_PROVIDER" = siw ] || ops=send,send-imm,write-imm
	before=$(rnr_errors)
	for signal in each batch; do
		expect 0 kxfer --json compare --count 100 --seconds 80 --rounds 2 --depth 7 --batch 3 \
			--op $ops --size 1,4097,70001 --engine verbs,kverbs --signal $signal
		expect_json '[.cells[].engines[].verified] | all' true
		expect_json '[.cells[].engines[].deep.operations] | unique | join(" ")' 400
	done
	expect 0 kxfer --json compare --count 40 --rounds 2 --depth 1 --op $ops --size 64 --engine verbs,kverbs
	expect_json '[.cells[].engines[].verified] | all' true
	[ "$(rnr_errors)" -eq "$before" ] || fail "messages have met no receive"
}

# More messages than the mailbox holds, in blocks that do not end with the last slot; a batch
# of more jobs than one SUBMIT takes.
test_messages_of_jobs_arrive_whole_and_in_order() {
	ops=send,send-imm,write-imm
	expect 0 kxfer --json compare --count 50 --seconds 80 --rounds 2 --depth 7 --batch 3 \
		--op $ops --size 1,992,64K --engine job
	expect_json '[.cells[].engines[].verified] | all' true
	expect_json '[.cells[].engines[].deep.operations] | unique | join(" ")' 200
	expect_json '[.cells[].engines[].message_success | test("mailbox")] | all' true
	expect 0 kxfer --json bench send --count 2500 --depth 16 --size 64
	expect_json .total.verified true
	expect 0 kxfer --json bench write-imm --count 300 --depth 240 --batch 240
	expect_json .total.verified true
	expect 0 kxfer --json compare --count 40 --rounds 2 --depth 8 --batch 2 --op $ops --size 64 --engine job --ring
	expect_json '[.cells[].engines[].verified] | all' true
	# A WRITE with immediate is not limited to the length of a message.
	expect 0 kxfer --json compare $quick --op write-imm --size 70001 --engine job
	expect_json '[.cells[].engines[].verified] | all' true
}

# For verbs the device's capabilities decide; for the others the work requests of the kernel.
test_atomic_write_and_flush_are_refused_with_the_reason() {
	expect 1 kxfer --json compare $quick --op flush --size 64 --engine verbs
	if has_atomic_write; then
		expect_error_json '.why | test("has FLUSH; ibv_wr_flush.. came with rdma-core 45")' true
	else
		expect_error_json '.why | test("has no FLUSH, as device_cap_flags_ex says")' true
		expect 1 kxfer --json compare $quick --op atomic-write --engine verbs
		expect_error_json '"\(.errno) \(.why | test("has no ATOMIC_WRITE, as device_cap_flags_ex says"))"' \
			"EOPNOTSUPP true"
	fi
	for engine in kverbs job; do
		expect 1 kxfer --json compare $quick --op flush --size 64 --engine $engine
		expect_error_json '"\(.errno) \(.why | test("^kernel verbs: struct ib_rdma_wr has no fields"))"' \
			"EOPNOTSUPP true"
		expect 1 kxfer --json compare $quick --op atomic-write --engine $engine
		expect_error_json '"\(.errno) \(.why | test("^kernel verbs: no driver takes the address"))"' \
			"EOPNOTSUPP true"
	done
	expect 0 kxfer compare $quick --op read,atomic-write,flush --size 8
	grep -Eq "^ *flush +8 bytes( +refused \[[0-9]\]){3}$" "$work/stdout" || fail "FLUSH"
	if has_atomic_write; then word=works; else word="refused \[[0-9]\]"; fi
	grep -Eq "^ *atomic-write +8 bytes +$word( +refused \[[0-9]\]){2}$" "$work/stdout" || fail "ATOMIC_WRITE"
}

# Each slot is incremented by the written values, and must end at the last one.
test_atomic_writes_are_verified() {
	expect 2 kxfer compare --op atomic-write --size 64
	expect_stderr "--size 8"
	has_atomic_write || skip "the device has no ATOMIC_WRITE"
	for signal in each batch; do
		expect 0 kxfer --json compare --count 100 --rounds 2 --depth 7 --batch 3 --op atomic-write,write,atomic-write \
			--size 8 --engine verbs --signal $signal
		expect_json '[.cells[] | "\(.operation) \(.size_bytes) \(.engines[0].verified)"] | join(", ")' \
			"atomic-write 8 true, write 8 true, atomic-write 8 true"
		expect_json '.cells[0].engines[0].local_registration | test("the work request carries")' true
	done
}

test_atomics_have_eight_bytes() {
	expect 2 kxfer compare --op fetch-add --size 64
	expect_stderr "--size 8"
	expect 2 kxfer compare --op compare-swap --size 8,16
	[ "$KXFER_PROVIDER" != siw ] || return 0
	expect 0 kxfer --json compare --count 100 --rounds 2 --depth 7 --batch 3 --op fetch-add,compare-swap \
		--engine verbs,job
	expect_json '[.cells[] | "\(.operation) \(.size_bytes) \(.engines | map(.engine, .verified))"] | join(", ")' \
		'fetch-add 8 ["verbs",true,"job",true], compare-swap 8 ["verbs",true,"job",true]'
}

test_system_calls_are_counted_on_both_sides() {
	reason=$(why_calls_are_not_told)
	[ -z "$reason" ] || skip "$reason"
	expect 0 kxfer --json compare $quick --op write --size 64
	expect_json '.cells[0].engines[] | select(.engine == "job").one_at_a_time.syscalls_per_operation' 1
	expect_json '.cells[0].engines[] | select(.engine == "kverbs").one_at_a_time.syscalls_per_operation < 0.1' true
	expect_json '.cells[0].engines[] | select(.engine == "verbs").one_at_a_time.syscalls_per_operation <= 1' true
	expect_json '.cells[0].engines[] | select(.engine == "job").deep.syscalls_per_operation | . >= 0.25 and . < 0.5' true
}

test_cpu_time_and_context_switches_are_told() {
	expect 0 kxfer --json compare $quick --op read --size 64
	expect_json '[.cells[].engines[] | .one_at_a_time, .deep | .cpu_per_operation_ns > 0 and
		.switches_per_operation >= 0] | "\(length) \(all)"' "6 true"
	expect 0 kxfer compare $quick --op read --size 64
	expect_stdout "job CPU"
}

test_the_table_never_comes_without_its_footnote() {
	expect 0 kxfer --quiet compare $quick --op read --size 64
	expect_stdout "kernel job path beside user-space verbs"
	expect_stdout "On $KXFER_PROVIDER user-space verbs make a system call for each doorbell"
	expect_stdout "says nothing about hardware"
	expect_stdout "TCP is faster"
}

test_a_ratio_has_an_interval_that_holds_it() {
	expect 0 kxfer --json compare $quick --op read --size 64 --judge-anyway
	for ratio in time_ratio_job_to_verbs_one_at_a_time time_ratio_job_to_verbs_deep \
		     time_ratio_job_to_kverbs_one_at_a_time time_ratio_job_to_kverbs_deep; do
		expect_json ".cells[0].$ratio | .low_95 <= .value and .value <= .high_95" true
		expect_json ".cells[0].$ratio | .significant == (.low_95 > 1 or .high_95 < 1)" true
	done
}

# Other load of the host may take CPU time, so both verdicts are allowed.
test_what_the_machine_spoiled_is_not_judged() {
	expect 0 kxfer --json compare $quick --op read --size 64
	expect_json '.obstacle != "" or (.steal_percent // 0) <= 5' true
	# shellcheck disable=SC2016 # a variable of jq
	expect_json '.obstacle as $why | [.cells[0] | .. | objects | select(has("significant")) |
		(.significant == null) == ($why != "")] | "\(length) \(all)"' "4 true"
	expect 0 kxfer --json compare $quick --op read --size 64 --judge-anyway
	expect_json '"\(.obstacle) \([.cells[0] | .. | objects | select(has("significant")).significant | type] |
		unique | join(" "))"' " boolean"
}

test_a_percentile_without_samples_to_tell_it_is_left_out() {
	expect 0 kxfer --json compare $quick --op read --size 64
	expect_json '.cells[0].engines[0].one_at_a_time | "\(.latency_p50_ns > 0) \(.latency_p99_99_ns)"' "true null"
}

test_odd_sizes_are_moved_whole() {
	# A READ of 18 pages takes 18 work requests on iWARP, so less depth fits.
	expect 0 kxfer --json compare --count 40 --rounds 2 --depth 8 --batch 4 --size 1,4095,4097,70001
	expect_json '[.cells[].engines[].verified] | all' true
}

test_each_completion_context_is_used_and_named() {
	for context in polled workqueue softirq unbound; do
		expect 0 kxfer --json compare $quick --op read --size 64 --context $context
		expect_json '.completion_context' $context
		expect_json '[.cells[].engines[].engine] | join(" ")' "verbs kverbs job"
	done
	expect_json '.waiting_kverbs | test("sleeps.*unbound")' true
	expect 0 kxfer --json compare $quick --op read,send --size 64 --context direct --engine verbs,kverbs
	expect_json '"\(.completion_context) \([.cells[].engines[].verified] | all)"' "direct true"
	expect_json '.waiting_kverbs | test("no other context")' true
}

# Engines may name memory differently; the choice of each is reported.
test_how_local_memory_is_named_is_chosen_and_told() {
	for memory in lkey mr rw mr-each; do
		expect 0 kxfer --json compare $quick --op write --size 64 --memory $memory
		expect_json '.memory' $memory
		expect_json '[.cells[].engines[].verified] | all' true
	done
	expect_json '[.cells[0].engines[] | "\(.engine): \(.local_registration)"] | join(", ")' \
		"verbs: not at all: the work request carries the bytes (inline), kverbs: by an MR that is registered for each operation, job: not at all: the work request carries the bytes (inline)"
	expect 0 kxfer --json compare $quick --op write --size 8K
	expect_json '[.cells[0].engines[] | "\(.engine): \(.local_registration)"] | join(", ")' \
		"verbs: by an MR, registered once, before the measurement, kverbs: by the PD's local_dma_lkey, without an MR, job: by the PD's local_dma_lkey, without an MR"
	expect 0 kxfer compare $quick --op write --size 64 --memory mr-each
	expect_stdout "kverbs names local memory"
	expect 2 kxfer compare --engine job --memory mr
	expect_stderr "--engine kverbs"
}

test_a_floor_that_is_asked_for_has_to_be_there() {
	expect 0 kxfer --json compare --count 40 --rounds 2 --depth 8 --batch 4 \
		--op write --size 64,70001 --engine kverbs
	expect_json '[.cells[].engines[] | .engine, .verified] | unique | map(tostring) | join(" ")' "true kverbs"
	expect 0 kxfer --json compare $quick --op write --size 64 --engine kverbs --context softirq
	expect_json '"\(.completion_context) \(.poll)"' "softirq null"
}

test_the_table_has_a_column_for_each_engine() {
	expect 0 kxfer compare $quick --op read --size 64
	for column in "verbs p50" "kverbs p50" "job p50" "time job/verbs" "time job/kverbs"; do
		expect_stdout "$column"
	done
}

test_each_way_to_wait_is_used_and_named() {
	for poll in adaptive always never; do
		expect 0 kxfer --json compare $quick --op read --size 64 --poll $poll
		expect_json .poll $poll
	done
}

test_a_ring_is_used_and_named() {
	expect 0 kxfer --json compare $quick --op read,write --size 64 --ring
	expect_json .ring true
	expect_json '.waiting_job | test("ring")' true
}

test_to_poll_takes_a_polled_context() {
	expect 2 kxfer --json compare --context softirq --poll always
	expect_error_json '.hint | test("polled")' true
}

test_one_engine_alone_has_no_ratio() {
	for engine in verbs kverbs job; do
		expect 0 kxfer --json compare $quick --op read --size 64 --engine $engine
		expect_json '.cells[0] | "\(.engines | length) \(.engines[0].engine)"' "1 $engine"
		expect_json '.cells[0].time_ratio_job_to_verbs_deep' null
	done
}

test_it_leaves_nothing_behind() {
	expect 0 kxfer compare $quick --op read --size 64
	wait_for 10 nothing_is_left
	! pidof kxfer || fail "a process is left"
}

test_ctrl_c_ends_it_and_its_server() {
	background kxfer compare --seconds 60 --count 100000000
	wait_for 30 sh -c 'kxfer --json export list | jq -e "any(.name != \"@ping\")"'
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	wait_for 30 nothing_is_left
}

test_ctrl_c_keeps_what_was_measured() {
	background kxfer --json compare --seconds 4 --count 100000000 --op read --size 64,4K,64K --engine job
	wait_for 30 sh -c 'kxfer --json export list | jq -e "any(.name != \"@ping\")"'
	# Each cell takes 4 s: the signal comes in the second cell, or on a slow machine in the
	# third.
	sleep 7
	kill -INT "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	expect_json '"\(.interrupted) \(.cells | length > 0) \(.notes[0][:12])"' "true true Interrupted:"
	wait_for 30 nothing_is_left
	expect 0 kxfer --json compare $quick --op read --size 64
	expect_json .interrupted false
}

test_a_killed_compare_takes_its_server_along() {
	background kxfer compare --seconds 60 --count 100000000
	wait_for 30 sh -c 'kxfer --json export list | jq -e "any(.name != \"@ping\")"'
	kill -KILL "$pid"
	collect
	wait_for 30 nothing_is_left
}

test_against_a_node_that_serves() {
	serve_verbs compare=mem:1M --writable
	expect 0 kxfer --json compare $quick "$peer" --size 4K
	expect_json .peer "$peer:7625"
	expect_json .remote_memory_bytes 1048576
	expect_json '[.cells[].engines[].verified] | all' true
}

test_messages_to_a_node_that_serves() {
	serve_verbs compare=mem:1M --writable
	expect 0 kxfer --json compare $quick "$peer" --size 4K --op send,write --engine verbs,kverbs
	expect_json '[.cells[].engines[].verified] | all' true
	expect_json '.cells | length' 2
}

test_messages_of_jobs_take_a_mailbox_there() {
	serve compare=mem:1M --writable --mailbox
	expect_in "$work/serve.out" "taking messages in compare.mailbox"
	expect 0 kxfer --json compare $quick "$peer" --size 64 --op send,write-imm,write --engine job
	expect_json '[.cells[].engines[].verified] | all' true
	expect_json '.cells | length' 3
	stop_serve
	serve compare=mem:1M --writable
	expect 1 kxfer --json compare $quick "$peer" --size 64 --op send --engine job
	expect_error_json '"\(.errno) \(.why | test("kxfer serve --mailbox"))"' "EOPNOTSUPP true"
	expect 2 kxfer serve compare=mem:1M --mailbox
}

test_against_a_node_by_IPv6() {
	serve_verbs compare=mem:1M --writable
	expect 0 kxfer --json compare $quick "[$KXFER_ADDRESS6]" --op write --size 64
	expect_json '[.cells[].engines[].verified] | all' true
}

test_a_peer_that_does_not_answer_verbs_is_said_so() {
	serve compare=mem:1M --writable
	expect 1 kxfer --json compare $quick "$peer" --size 64
	expect_error_json .errno ECONNREFUSED
	expect_error_json '.hint | test("--verbs")' true
}

test_a_peer_without_the_export_is_told_how_to_serve_it() {
	serve_verbs other=mem:1M --writable
	expect 1 kxfer --json compare $quick "$peer" --size 64
	expect_error_json .errno ENOENT
	expect_error_json '.hint | test("kxfer serve compare=mem:64K --writable --verbs")' true
	expect 0 kxfer compare $quick "$peer" --size 64 --export other
}

test_an_export_that_is_too_short_is_refused() {
	serve_verbs compare=mem:64K --writable
	expect 1 kxfer --json compare $quick "$peer" --size 64K
	expect_error_json .errno ERANGE
}

test_a_read_only_export_is_read_but_not_written() {
	serve_verbs compare=mem:1M
	expect 0 kxfer --json compare $quick "$peer" --size 64 --op read
	expect_json '[.cells[].engines[].verified] | any' false
	expect_json '.notes | join(" ") | test("not verified")' true
	expect 1 kxfer --json compare $quick "$peer" --size 64 --op write
	expect_error_json .errno EACCES
}

test_no_peer_there_ends_in_time() {
	expect 1 kxfer --json compare $quick --timeout 2 192.0.2.1 --size 64
	expect_error_json '.errno | test("ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL")' true
}

test_wrong_options_name_what_is_allowed() {
	expect 2 kxfer compare --op sent
	expect_stderr "fetch-add"
	expect 2 kxfer compare --size 0
	expect_stderr "1 byte"
	expect 2 kxfer compare --depth 4 --batch 5
	expect_stderr "--batch 4"
	expect 2 kxfer --json compare --size 1G
	expect_error_json '.what | test("1 byte to 256 MiB")' true
	expect 2 kxfer --json compare --size 64M --depth 16
	expect_error_json '"\(.errno) \(.hint | test("256 MiB"))"' "null true"
	expect 2 kxfer compare --context hardirq
	expect_stderr "softirq"
	expect 2 kxfer compare --rounds 1
	expect_stderr "an interval needs two rounds"
}

test_options_that_would_have_no_effect_are_refused() {
	for ignored in "--context softirq" "--poll never" "--ring"; do
		expect 2 kxfer compare --engine verbs $ignored
		expect_stderr "${ignored%% *} with --engine job"
	done
	expect 2 kxfer compare --engine kverbs --poll never
	expect 2 kxfer compare --export other
	expect_stderr "--export with PEER"
	expect 2 kxfer compare --engine verbs --op read,send --inline never
	expect_stderr "--op write"
	for ignored in "--op read" "--size 64" "--depth 4" "--rounds 2" "--count 5" "--seconds 1"; do
		expect 2 kxfer compare --self-test $ignored
		expect_stderr "${ignored%% *}"
	done
}

test_more_depth_than_an_engine_has_is_an_error_that_says_how_much() {
	expect 1 kxfer --json compare --depth 4096 --size 64 --op read
	expect_error_json .errno EINVAL
	expect_error_json '.hint | test("--depth [0-9]+")' true
}

test_who_may_not_count_or_run_the_floor_is_told_the_right() {
	chmod 666 /dev/kxfer
	expect 0 kxfer listen add "$peer"
	try sh -c "ulimit -l 65536; exec $unprivileged kxfer compare $quick --op read --size 64"
	cp "$work/stdout" "$work/table"
	try sh -c "ulimit -l 65536; exec $unprivileged kxfer --json compare $quick --op read --size 64"
	kxfer listen del "$peer" >/dev/null
	chmod 600 /dev/kxfer
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json '.cells[0].engines[0].deep.syscalls_per_operation' null
	expect_json '.notes | join(" ") | test("CAP_PERFMON")' true
	expect_json '.notes | join(" ") | test("CAP_NET_ADMIN")' true
	grep -Eq "kverbs p50" "$work/table" || fail "no column for the floor"
}

test_the_floor_that_is_not_loaded_is_told_and_left_out() {
	expect 0 kxfer listen add "$peer"
	wait_for 10 remove_engine
	# Nothing loads the engine.
	modprobe=$(cat /proc/sys/kernel/modprobe)
	echo /bin/false >/proc/sys/kernel/modprobe
	try kxfer --json compare $quick --op read --size 64
	cp "$work/stdout" "$work/table"
	compared=$status
	try kxfer --json compare $quick --op read --size 64 --engine kverbs
	refused=$status
	echo "$modprobe" >/proc/sys/kernel/modprobe
	[ "$compared" -eq 0 ] || fail "status $compared"
	[ "$refused" -eq 1 ] || fail "status $refused"
	jq -e '.notes | join(" ") | test("kxfer_bench.ko is not loaded")' "$work/table" >/dev/null ||
		fail "no note of the floor"
	expect_error_json '.hint | test("modprobe kxfer_bench")' true
	# A measurement by a privileged user loads the engine.
	expect 0 kxfer --json compare $quick --op read --size 64
	expect_json '[.cells[0].engines[].engine] | index("kverbs") != null' true
	kxfer listen del "$peer" >/dev/null
}

test_verification_tells_each_damage_as_what_it_is() {
	expect 0 kxfer --json compare --self-test
	expect_json '[.trials[].engine] | unique | join(" ")' "job kverbs verbs"
	expect_json '[.trials[].injected] | unique | join(" ")' "corrupt misplaced none short stale torn"
	expect_json '[.trials[] | select(.reported != .injected)] | length' 0
	expect_json '[.trials[].caught] | all' true
	expect_json '[.trials[] | select(.how == "a READ is left out").reported] | unique | join(" ")' short
	expect_json '"\(.nr_missed) \(.fill_per_kib_ns > 0) \(.check_per_kib_ns > 0)"' "0 true true"
	expect_json '.trials[] | select(.engine == "job" and .injected == "corrupt").text |
		test("corrupt at byte 1000: expected sequence")' true
	expect 0 kxfer compare --self-test
	expect_stdout caught
}

test_without_the_module_user_verbs_alone_can_be_measured() {
	wait_for 10 remove_module
	try kxfer --json compare $quick --op read --size 64
	first=$status
	cp "$work/stderr" "$work/refusal"
	try kxfer --json compare $quick --op read --size 64 --engine verbs
	insmod "$module_file"
	wait_for 10 test -c /dev/kxfer
	[ "$first" -eq 3 ] || fail "status $first"
	[ "$status" -eq 0 ] || fail "verbs alone: status $status"
	expect_json '.cells[0].engines[0].verified' true
	cp "$work/refusal" "$work/stderr"
	expect_error_json '.hint | test("--engine verbs")' true
}

run_tests
