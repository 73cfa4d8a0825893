#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The responder of user-space verbs with misbehaving initiators (tests/guest/verbs), a result
# for each suite; explicit connections as `compare` and `bench` make them.

# run_tests calls the tests by their names; numbers and lists of words stand
# without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

verbs_tests() { # SUITE
	type kxfer-verbs-test >/dev/null 2>&1 || skip "it was built without gtest"
	expect 0 kxfer-verbs-test --gtest_filter="$1.*" --gtest_color=no
	expect_stdout "[  PASSED  ]"
	expect_not_in "$work/stdout" "Running 0 tests"
}

test_the_responder_and_initiators_that_err() { verbs_tests Responder; }

test_explicit_connections_and_callers_that_err() { verbs_tests "Exchange*"; }

test_peers_that_died_without_a_word() { verbs_tests Silence; }

# The kernel tries for a second to resolve the MAC of the peer's address.
test_callers_at_an_address_that_nobody_has() {
	if on_iwarp; then skip "iWARP has no explicit connections"; fi
	ip link set dummy0 arp on
	trap 'ip link set dummy0 arp off; end_processes' EXIT
	verbs_tests Unanswered
	expect_not_in "$work/stdout" "SKIPPED"
}

test_a_responder_whose_device_goes_is_told() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "rxe shows it"
	serve box=mem:64K --verbs --listen "$KXFER_ADDRESS"
	# The device is removed when no process has it open any more.
	rdma link del "$KXFER_DEVICE" &
	deleted=$!
	wait_for 30 grep -q "no longer answering user-space verbs on $KXFER_ADDRESS" "$work/serve.out"
	stop_serve
	wait_for 30 is_over $deleted
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev dummy0
	wait_for 10 grep -q ACTIVE "/sys/class/infiniband/$KXFER_DEVICE/ports/1/state"
	[ "$status" -eq 0 ] || fail "serve ended with $status"
}

# A listener of the module stays when its address is removed; user space cannot bind to that
# address then.
test_without_IPv6_user_space_verbs_are_answered_by_IPv4() {
	no_ipv6=/proc/sys/net/ipv6/conf/dummy0/disable_ipv6
	expect 0 kxfer listen add "$KXFER_ADDRESS"
	expect 0 kxfer listen add "$KXFER_ADDRESS6"
	echo 1 >$no_ipv6
	serve box=mem:64K --verbs
	wait_for 30 grep -q "user-space verbs on" "$work/serve.out"
	try kxfer --json bench read "$KXFER_ADDRESS" --engine verbs --count 40
	echo 0 >$no_ipv6
	ip addr add "$KXFER_ADDRESS6/64" dev dummy0 nodad
	kxfer listen del "$KXFER_ADDRESS" >/dev/null
	kxfer listen del "$KXFER_ADDRESS6" >/dev/null
	[ "$status" -eq 0 ] || fail "bench ended with $status"
	expect_json .total.operations 40
	expect_in "$work/serve.out" "is IPv6 switched off on this node?"
}

# rdma link del waits until no process has the device open; not even SIGKILL ends it.
test_a_server_that_idles_has_no_device_open() {
	serve box=mem:64K --verbs
	ls -l "/proc/$serve_pid/fd" >fds
	expect_not_in fds uverbs
	expect 0 rdma link del "$KXFER_DEVICE"
	stop_serve
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev dummy0
	wait_for 10 grep -q ACTIVE "/sys/class/infiniband/$KXFER_DEVICE/ports/1/state"
	[ "$status" -eq 0 ] || fail "serve ended with $status"
}

test_uc_and_ud_and_what_they_lose() { verbs_tests "Transport*"; }

test_troubles_that_are_brought_about() { verbs_tests Trouble; }

quick="--count 40 --rounds 2 --engine verbs"

on_iwarp() { [ "$KXFER_PROVIDER" = siw ]; }

# Memory pinned by kxfer's exports and memory registered by verbs count against one limit.
test_a_server_that_may_lock_no_more_is_told_by_its_limit() {
	chmod 666 /dev/kxfer /dev/infiniband/*
	expect 0 kxfer listen add "$peer"
	background sh -c "ulimit -l 1100; exec setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all \
		--bounding-set -all kxfer serve box=mem:1M --writable --verbs 2>/dev/null"
	wait_for 30 grep -q "answering user-space verbs" stdout
	try kxfer --json compare "$peer" $quick --op read --size 64K
	kxfer listen del "$peer" >/dev/null
	chmod 600 /dev/kxfer /dev/infiniband/*
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json .errno ENOMEM
	expect_error_json '.hint | test("ulimit -l unlimited there")' true
}

# The peer's address determines the device.
test_another_device_than_the_one_asked_for_is_refused() {
	serve other=mem:64K --writable --verbs
	for way in rdma-cm tcp; do
		[ $way = rdma-cm ] || ! on_iwarp || continue
		connect="$quick --op read --size 64 --connect $way"
		expect 0 kxfer --json compare $connect --device "$KXFER_DEVICE" "$peer"
		expect 1 kxfer --json compare $connect --device other0 "$peer"
		expect_error_json '"\(.errno) \(.why)"' \
			"EADDRNOTAVAIL device other0 does not lead there, $KXFER_DEVICE does"
	done
}

test_every_attribute_of_the_way_to_rts_is_told() {
	if on_iwarp; then
		expect 1 kxfer --json compare $quick --op read --size 64 --connect tcp
		expect_error_json '.why | test("iWARP: a QP has no QPN, PSN or GID")' true
		expect_error_json '.hint' "use --connect rdma-cm"
		return
	fi
	# shellcheck disable=SC2086
	expect 0 kxfer compare $quick --op read,write,send --size 64,4097 --connect tcp --explain
	for step in "RC QP RESET -> INIT" "RC QP INIT -> RTR" "RC QP RTR -> RTS"; do
		expect_stdout "$step"
	done
	for name in pkey_index port_num qp_access_flags path_mtu dest_qp_num rq_psn max_dest_rd_atomic \
		    min_rnr_timer ah_attr.is_global ah_attr.grh.dgid ah_attr.grh.sgid_index \
		    ah_attr.grh.traffic_class ah_attr.grh.hop_limit \
		    timeout retry_cnt rnr_retry sq_psn max_rd_atomic; do
		grep -Eq "^  $name +[0-9a-fx:.n]" "$work/stdout" || fail "$name is not told"
	done
	expect_stdout "::ffff:$KXFER_ADDRESS, RoCE v2"
	expect_stdout "Every cell's data was verified"
}

# The index of such a GID in the table, which changes when an address is removed and added.
gid_index() { # JQ_CONDITION
	kxfer --json device show "$KXFER_DEVICE" | jq "[.ports[0].gids[] | select($1).index][0]"
}

test_gid_and_mtu_are_chosen_over_tcp() {
	if on_iwarp; then skip "iWARP has no explicit connections"; fi
	own=$(gid_index ".address == \"$KXFER_ADDRESS\"")
	expect 0 kxfer --json bench read --engine verbs --count 40 --connect tcp --mtu 512 --gid-index "$own" --explain
	jq -s '.[1].attributes | map({(.name): .value}) | add' "$work/stdout" >"$work/rtr" || fail "no JSON"
	[ "$(jq -r .path_mtu "$work/rtr")" = 512 ] || fail "the MTU is $(jq -r .path_mtu "$work/rtr")"
	[ "$(jq -r '.["ah_attr.grh.sgid_index"]' "$work/rtr")" = "$own" ] || fail "another GID"
	# The responder answers a link-local GID with a link-local GID.
	expect 0 kxfer --json bench write --engine verbs --count 40 --connect tcp \
		--gid-index "$(gid_index '.gid | startswith("fe80")')"
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

# The QP is different, whichever library moves it through its states.
test_atomic_writes_go_both_ways_of_connecting() {
	has_atomic_write || skip "the device has no ATOMIC_WRITE"
	for connect in rdma-cm tcp; do
		for way in "--depth 1" "--depth 7 --batch 3" "--depth 8 --batch 4 --signal batch" "--depth 2 --wait events"; do
			expect 0 kxfer --json bench atomic-write --engine verbs --count 301 --connect $connect $way --judge-anyway
			expect_json '"\(.parameters.operation) \(.parameters.size_bytes) \(.total.operations) \(.total.verified)"' \
				"atomic-write 8 301 true"
		done
	done
	serve bench=mem:1M --writable --verbs
	wait_for 30 grep -q "user-space verbs on" "$work/serve.out"
	for connect in rdma-cm tcp; do
		expect 0 kxfer --json bench atomic-write "$peer" --engine verbs --count 40 --connect $connect
		expect_json .total.verified true
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
	expect 2 kxfer bench send --engine job --transport ud
	expect 2 kxfer bench send --engine verbs --transport uc --connect rdma-cm
	expect 2 kxfer bench send --engine verbs --transport xrc
	expect 2 kxfer bench send --engine verbs --transport uc --qkey 7
	expect 2 kxfer bench send --engine verbs --transport ud --qkey 0x80000000
	expect 2 kxfer bench read --engine job --local-memory dm
	expect 2 kxfer bench read --engine job --timestamps
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

test_uc_is_measured_and_verified() {
	if on_iwarp; then skip "iWARP has RC alone"; fi
	for op in write write-imm send send-imm; do
		expect 0 kxfer --json bench $op --engine verbs --transport uc --size 3000 --depth 8 --count 800
		expect_json '[.parameters.transport, .parameters.write_success, .total.verified] | map(tostring) | join(" ")' \
			"uc sent, not acknowledged true"
		if [ $op != write ]; then expect_json .total.messages_lost 0; fi
	done
	expect 0 kxfer bench write --engine verbs --transport uc --count 40 --explain
	for step in "UC QP RESET -> INIT" "UC QP INIT -> RTR" "UC QP RTR -> RTS" "RC QP RTR -> RTS"; do
		expect_stdout "$step"
	done
	expect_stdout "WRITEs that were lost are not counted"
	expect 1 kxfer --json bench read --engine verbs --transport uc --count 40
	expect_error_json '.why | test("UC has neither READ nor atomics")' true
}

test_ud_is_measured_and_verified() {
	if on_iwarp; then skip "iWARP has RC alone"; fi
	for op in send send-imm; do
		expect 0 kxfer --json bench $op --engine verbs --transport ud --size 1000 --depth 8 --count 800
		expect_json '[.parameters.transport, .total.messages_lost, .total.verified] | map(tostring) | join(" ")' \
			"ud 0 true"
	done
	expect 0 kxfer bench send --engine verbs --transport ud --count 40 --explain
	for name in qkey sq_psn ud.remote_qpn ud.remote_qkey ah_attr.grh.dgid; do
		grep -Eq "^  $name +[0-9a-fx:.]" "$work/stdout" || fail "$name is not told"
	done
	# Messages longer than a packet, and operations without messages, are refused; the
	# other cells run.
	expect 0 kxfer --json compare $quick --transport ud --op write,send --size 64,8K
	expect_json '[.cells[] | .refused[].reason] | length' 3
	expect_json '[.cells[] | .refused[].reason | select(test("one packet"))] | length' 1
	expect_json '[.cells[].engines[].verified] | map(tostring) | join(" ")' true
}

test_kverbs_has_ud_too() {
	if on_iwarp; then
		expect 1 kxfer --json bench send --engine kverbs --transport ud --count 40
		expect_error_json '.why | test("iWARP has reliable connections alone")' true
		return 0
	fi
	expect 0 kxfer --json compare --count 40 --rounds 2 --engine verbs,kverbs --transport ud --op send,write --size 64,8K
	expect_json '[.cells[].engines[] | [.engine, .verified] | map(tostring) | join(" ")] | join(",")' \
		"verbs true,kverbs true"
	expect_json '[.cells[].refused[].reason | select(test("one packet"))] | length' 2
	expect 0 kxfer --json bench send --engine kverbs --transport ud --qkey 7 --depth 8 --count 1000
	expect_json '[.parameters.transport, .total.messages_lost == .total.messages_sent, .total.verified] |
		map(tostring) | join(" ")' "ud true false"
}

test_a_wrong_qkey_loses_all_and_ends() {
	if on_iwarp; then skip "iWARP has RC alone"; fi
	expect 0 kxfer --json bench send --engine verbs --transport ud --qkey 7 --depth 8 --count 1000
	expect_json '[.total.messages_lost == .total.messages_sent, .total.loss_ratio, .total.verified] |
		map(tostring) | join(" ")' "true 1 false"
	expect_json '.notes | map(select(test("no try arrived as a whole"))) | length' 1
}

test_what_the_device_does_not_have_is_its_own_answer() {
	expect 1 kxfer --json bench write --engine verbs --count 40 --timestamps
	expect_error_json '.why | test("completion_timestamp_mask")' true
	expect 1 kxfer --json bench write --engine verbs --count 40 --local-memory dm
	expect_error_json '.what | test("allocates no 4096 bytes of device memory")' true
	expect_error_json '.why | test("max_dm_size of ibv_query_device_ex.. is 0")' true
	on_iwarp || return 0
	for transport in uc ud; do
		expect 1 kxfer --json bench send --engine verbs --count 40 --transport $transport
		expect_error_json '.what | test("the provider of .* does not create a U. QP")' true
		expect_error_json '.why' "iWARP has reliable connections alone"
	done
}

test_kverbs_is_answered_by_who_invalidates() {
	for way in "--invalidate remote" "--invalidate remote --depth 5 --context softirq" "--invalidate local --depth 3"; do
		# shellcheck disable=SC2086
		expect 0 kxfer --json bench send --engine kverbs --count 300 --memory mr-each $way --judge-anyway
		expect_json .total.verified true
	done
	expect_json '.parameters | "\(.invalidate) \(.local_registration | test("before that is done"))"' "local true"
	expect 2 kxfer bench write --engine kverbs --memory mr-each --invalidate remote
	expect 2 kxfer bench send --engine kverbs --invalidate local
}

test_short_writes_are_inline_or_not() {
	for way in "--engine kverbs" "--engine verbs" "--engine verbs --depth 5"; do
		# shellcheck disable=SC2086
		expect 0 kxfer --json bench write --size 33 --count 300 --inline never $way --judge-anyway
		expect_json '"\(.total.verified) \(.parameters.inline)"' "true never"
		expect_json '.parameters.local_registration | test("inline")' false
	done
	expect 0 kxfer --json compare --engine verbs,kverbs --op write --size 1,64,65,512 --rounds 2 --count 50
	expect_json '"\(.inline) \([.cells[].engines[].verified] | all)"' "auto true"
	expect 2 kxfer bench write --inline never
	expect_stderr "short WRITEs of jobs are always inline"
}

test_kverbs_completes_on_a_cq_of_the_pool() {
	for way in "read --cq own" "read --cq pool --context softirq" "send --cq pool --context workqueue --depth 5"; do
		# shellcheck disable=SC2086
		expect 0 kxfer --json bench $way --engine kverbs --count 300 --judge-anyway
		expect_json .total.verified true
	done
	expect_json '.parameters | "\(.cq) \(.completion_context)"' "pool workqueue"
	expect 2 kxfer bench read --engine kverbs --cq pool
	expect_stderr "the kernel polls a CQ of the pool itself"
	expect 2 kxfer bench read --engine verbs --cq own
	expect 2 kxfer bench read --engine kverbs --cq shared
}

test_clients_of_kverbs_are_pinned_and_send_at_a_rate() {
	expect 0 kxfer --json bench send --engine kverbs --clients 2 --cpus 0 --count 200 --rate 1k/s --judge-anyway
	expect_json '[.clients[] | "\(.cpu) \(.operations) \(.verified)"] | join(" ")' "0 200 true 0 200 true"
	expect_json .parameters.pinned_cpus 0
	expect 1 kxfer --json bench write --engine kverbs --clients 2 --cpus 1000 --count 10
	expect_error_json .what "cannot be pinned to"
	expect 2 kxfer bench write --cpus 0-
}

run_tests
