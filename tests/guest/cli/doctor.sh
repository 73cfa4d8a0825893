#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer doctor: the tests cause each problem for real. The tool has to find it and to name the
# command that fixes it, and the problem has to be gone after that command.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

port=/sys/class/infiniband/$KXFER_DEVICE/ports/1
unprivileged="setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all --bounding-set -all"

wait_active() { wait_for 10 grep -q ACTIVE "$port/state"; }

# One member of a check.
expect_check() { # CHECK MEMBER TEXT
	expect_json ".checks[] | select(.check == \"$1\").$2" "$3"
}

expect_mend() { # CHECK REGULAR-EXPRESSION
	expect_json ".checks[] | select(.check == \"$1\").mend | test(\"$2\")" true
}

test_a_fit_node_ends_0_with_nothing_to_mend() {
	expect 0 kxfer --json doctor
	expect_json .nr_to_mend 0
	expect_json .exit_status 0
	expect_check module state ok
	expect_check "$KXFER_DEVICE and kxfer.ko" state ok
	expect_check "$KXFER_DEVICE port 1 state" finding ACTIVE
}

test_the_report_for_people_says_that_nothing_is_to_mend() {
	expect 0 kxfer doctor
	expect_stdout "the tool's own version"
	expect_stdout "Secure Boot"
	expect_stderr "nothing to fix"
}

test_every_finding_that_is_to_mend_says_how() {
	ip link set dummy0 down
	try $unprivileged kxfer --json doctor
	ip link set dummy0 up
	ip addr add "$KXFER_ADDRESS6/64" dev dummy0 nodad 2>/dev/null
	wait_active
	[ "$status" -eq 1 ] || fail "status $status"
	expect_json '[.checks[] | select(.state != "ok" and .mend == "")] | length' 0
	expect_json '[.checks[] | select(.state == "mend")] | length == 0' false
}

test_a_missing_listener_is_a_hint_until_there_is_one() {
	expect 0 kxfer --json doctor
	expect_check listeners state hint
	expect_mend listeners "kxfer listen add"
	expect 0 kxfer listen add "$peer"
	try kxfer --json doctor
	kxfer listen del "$peer" >/dev/null
	[ "$status" -eq 0 ] || fail "status $status"
	expect_check listeners state hint
	expect_check listeners finding "$peer:7625 (no key): without a key on RoCE every sender of UDP that reaches it is believed: address, source port and uid are its own word"
	expect_mend listeners "--key NAME"
	head -c 32 /dev/urandom >secret
	expect 0 kxfer key add kt-doctor secret
	expect 0 kxfer listen add "$peer" --key kt-doctor
	try kxfer --json doctor
	kxfer listen del "$peer" >/dev/null
	kxfer key del kt-doctor >/dev/null
	expect_check listeners state ok
	expect_check listeners finding "$peer:7625"
}

test_exports_that_nobody_can_reach_are_to_mend() {
	expect 0 kxfer listen add "$peer"
	serve inbox=mem:64K
	expect 0 kxfer --json doctor
	expect_check listeners state hint
	expect 0 kxfer listen del "$peer"
	expect 1 kxfer --json doctor
	expect_check listeners state mend
	expect_check listeners finding "none, so no peer can reach what is exported here: inbox"
}

test_a_small_MTU_says_which_interface_MTU_is_needed() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "iWARP has no MTU of its own"
	ip link set dummy0 mtu 1500
	try kxfer --json doctor
	first=$status
	cp "$work/stdout" "$work/small"
	ip link set dummy0 mtu 4200
	try kxfer --json doctor
	ip link set dummy0 mtu 9000
	expect_check "$KXFER_DEVICE port 1 MTU" state ok
	cp "$work/small" "$work/stdout"
	[ "$first" -eq 0 ] || fail "status $first"
	expect_check "$KXFER_DEVICE port 1 MTU" state hint
	expect_mend "$KXFER_DEVICE port 1 MTU" "ip link set dummy0 mtu 4200"
}

test_a_port_that_is_down_is_to_mend() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "a port of siw stays ACTIVE"
	ip link set dummy0 down
	try kxfer --json doctor
	ip link set dummy0 up
	ip addr add "$KXFER_ADDRESS6/64" dev dummy0 nodad 2>/dev/null
	wait_active
	[ "$status" -eq 1 ] || fail "status $status"
	expect_check "$KXFER_DEVICE port 1 state" finding DOWN
	expect_mend "$KXFER_DEVICE port 1 state" "ip link set dummy0 up"
}

# rxe may have lost its QP 1 then, so a new device follows.
test_a_port_that_was_down_is_told() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "siw has no QP 1, and counts nothing"
	ip link set dummy0 down
	ip link set dummy0 up
	ip addr add "$KXFER_ADDRESS6/64" dev dummy0 nodad 2>/dev/null
	wait_active
	try kxfer --json doctor
	expect_check "$KXFER_DEVICE port 1 QP 1" state hint
	try kxfer ls --timeout 0.3 10.77.0.99
	case $(cat "$work/stderr") in *"$KXFER_DEVICE was down"*) ;; *) fail "no word of it" ;; esac
	rdma link del "$KXFER_DEVICE"
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev dummy0
	wait_active
	expect 0 kxfer --json doctor
	expect_json '[.checks[] | select(.check | endswith("QP 1"))] | length' 0
}

test_no_device_says_how_to_make_one() {
	rdma link del "$KXFER_DEVICE"
	try kxfer --json doctor
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev dummy0
	wait_active
	[ "$status" -eq 1 ] || fail "status $status"
	expect_check "RDMA devices" finding none
	expect_mend "RDMA devices" "rdma link add rxe0 type rxe netdev dummy0"
	expect_json '.capabilities | length' 0
}

test_a_module_that_is_not_loaded_ends_3_with_the_full_report() {
	wait_for 10 remove_module
	try kxfer --json doctor
	insmod "$module_file"
	wait_for 10 test -c /dev/kxfer
	[ "$status" -eq 3 ] || fail "status $status"
	expect_check module state mend
	expect_mend module "modprobe kxfer"
	expect_check "$KXFER_DEVICE port 1 state" finding ACTIVE
	expect_json '.capabilities[] | select(.capability == "READ").remark' "kxfer.ko is not loaded"
	expect_json '.capabilities[] | select(.capability == "user-space verbs").available' true
}

test_an_engine_that_is_not_loaded_is_a_hint_with_the_way_to_get_it() {
	wait_for 10 remove_engine
	expect 0 kxfer --json doctor
	expect_check "engine kverbs" state hint
	expect_mend "engine kverbs" "insmod kxfer_bench.ko"
	insmod "${module_file%.ko}_bench.ko"
	expect 0 kxfer --json doctor
	expect_check "engine kverbs" state ok
	expect_check "engine kverbs" finding "kxfer_bench.ko is loaded"
}

test_a_user_who_may_not_open_the_node_is_told_how_to_get_the_right() {
	expect 1 $unprivileged kxfer --json doctor
	expect_check "node /dev/kxfer" state mend
	expect_mend "node /dev/kxfer" "usermod -aG rdma tester"
}

test_the_group_of_the_node_is_the_one_to_join() {
	chgrp other /dev/kxfer
	chmod 660 /dev/kxfer
	try $unprivileged kxfer --json doctor
	chgrp root /dev/kxfer
	chmod 600 /dev/kxfer
	[ "$status" -eq 1 ] || fail "status $status"
	expect_mend "node /dev/kxfer" "usermod -aG other tester"
}

test_a_member_of_the_group_is_fit() {
	chgrp rdma /dev/kxfer
	chmod 660 /dev/kxfer
	try setpriv --reuid 1000 --regid 1000 --groups 104 kxfer --json doctor
	chgrp root /dev/kxfer
	chmod 600 /dev/kxfer
	[ "$status" -eq 0 ] || fail "status $status"
	expect_check "node /dev/kxfer" state ok
	expect_json '.checks[] | select(.check == "user").finding | test("rdma")' true
}

test_little_lockable_memory_is_to_mend() {
	chmod 666 /dev/kxfer
	try sh -c "ulimit -l 64; exec $unprivileged kxfer --json doctor"
	chmod 600 /dev/kxfer
	[ "$status" -eq 1 ] || fail "status $status"
	expect_check "lockable memory" state mend
	expect_mend "lockable memory" "ulimit -l unlimited"
}

test_another_network_namespace_is_pointed_out() {
	try unshare -n kxfer --json doctor
	expect_check "network namespace" state hint
	expect_mend "network namespace" "nsenter"
}

test_the_initial_network_namespace_is_fine() {
	try kxfer --json doctor
	expect_check "network namespace" state ok
}

# A user may not read /proc/1/ns/net.
test_a_network_namespace_that_cannot_be_told_is_no_ok() {
	try $unprivileged kxfer --json doctor
	expect_check "network namespace" state hint
	expect_check "network namespace" finding "not known: /proc/1/ns/net needs root"
}

test_the_capabilities_are_those_of_the_provider() {
	expect 0 kxfer --json doctor
	expect_json '[.capabilities[] | select(.capability | test("^(READ|WRITE|NOTIFY|exports)$")).available] | all' true
	case $KXFER_PROVIDER in
	siw)
		expect_json '.capabilities[] | select(.capability == "READ").remark | test("one SGE")' true
		expect_json '.capabilities[] | select(.capability | test("FETCH_ADD")) | "\(.available) \(.remark)"' \
			"false iWARP has none"
		;;
	rxe)
		expect_json '.capabilities[] | select(.capability == "READ").remark | test("32 SGE")' true
		expect_json '.capabilities[] | select(.capability | test("FETCH_ADD")).available' true
		;;
	esac
}

test_what_is_missing_has_a_reason() {
	expect 0 kxfer --json doctor
	expect_json '[.capabilities[] | select(.available == false and .remark == "")] | length' 0
}

run_tests
