#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The path of a link. A link keeps its path MTU when the MTU of the interface, and so of the
# port, changes: how the tool reports such a link and measurements on it. The packets of a link
# have the requested type of service, or that of the device.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

quick="--count 40 --warm-up 0"

make_link() { # CONTEXT INTERFACE-MTU [OPTION...]
	context=$1
	ip link set dummy0 mtu "$2"
	shift 2
	expect 0 kxfer --json bench read "$peer" $quick --context "$context" --export compare "$@"
	ip link set dummy0 mtu 9000
}

serve_verbs() {
	serve compare=mem:1M --writable --verbs
	wait_for 30 grep -q "user-space verbs on" "$work/serve.out"
}

test_a_link_says_when_its_path_MTU_is_not_the_ports() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "iWARP has no path MTU"
	reload_module # no link of an earlier test is left
	serve compare=mem:1M --writable
	make_link softirq 1500
	expect_json '"\(.mtu_bytes) \(.path_mtu_bytes) \(.tos) \(.gid_type)"' "1024 1024 0 RoCE v2"
	expect 0 kxfer --json link list
	expect_json '[.[] | select(.path_mtu_bytes == 1024) | "\(.role) \(.port_mtu_bytes)"] | sort | join(", ")' \
		"accepted 4096, initiator 4096"
	id=$(jq '.[] | select(.path_mtu_bytes == 1024 and .role == "initiator").id' "$work/stdout")
	expect 0 kxfer link list
	expect_stdout "1024 (port: 4096)"
	expect 0 kxfer --json link show "$id"
	expect_json '[.lanes[].path_mtu_bytes] | unique | join(" ")' 1024
	expect_json '"\(.sgid) \(.dgid)"' "::ffff:$peer ::ffff:$peer"
	expect_json .warning "path MTU 1024, the port's is 4096 now: a link keeps the MTU it was made with; open it again (it closes 30 s after its last user)"
	expect 0 kxfer link show "$id"
	expect_stdout "path MTU 1024, the port's is 4096 now"
	ip link set dummy0 mtu 1500
	try kxfer --json link show "$id"
	ip link set dummy0 mtu 9000
	expect_json '"\(.path_mtu_bytes) \(.port_mtu_bytes) \(.warning)"' "1024 1024 null"
}

test_engines_on_paths_of_different_MTU_are_not_judged() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "iWARP has no path MTU"
	serve_verbs
	make_link unbound 1500
	compare="compare $peer --context unbound --rounds 2 --count 40 --depth 8 --batch 4 --op read --size 64"
	expect 0 kxfer --json $compare
	expect_json '[.cells[0].engines[] | "\(.engine) \(.path_mtu_bytes)"] | join(", ")' \
		"verbs 4096, kverbs 1024, job 1024"
	expect_json .warning "the engines' connections differ in path MTU: verbs 4096, kverbs 1024"
	expect_json '.obstacle != ""' true
	expect_json '[.cells[0] | .. | objects | select(has("significant")).significant] | unique | tostring' "[null]"
	expect 0 kxfer $compare
	expect_stdout "WARNING"
	expect_stdout "not judged"
	expect 0 kxfer --json $compare --judge-anyway
	expect_json '"\(.obstacle) \(.warning != null)"' " true"
	expect 0 kxfer --json $compare --engine kverbs,job
	expect_json '"\(.warning) \(.path_mtu_bytes) \(.mtu_bytes)"' "null 1024 4096"
	expect 0 kxfer $compare --engine kverbs,job
	expect_stdout "1024 (the port's is 4096 now)"
}

test_a_baseline_of_another_path_MTU_is_refused() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "iWARP has no path MTU"
	reload_module # no link of an earlier test is left
	serve compare=mem:1M --writable
	expect 0 kxfer bench read "$peer" $quick --export compare --output "$work/old.json"
	make_link softirq 1500
	expect 1 kxfer --json bench read "$peer" $quick --export compare --context softirq --baseline "$work/old.json"
	expect_error_json '.why | test("path_mtu_bytes: 4096 in the baseline, 1024 now")' true
	expect_error_json '.why | test(" mtu_bytes:")' false
}

# Reload, so that no later test gets one of the links above.
test_a_new_link_has_the_MTU_of_the_port() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "iWARP has no path MTU"
	reload_module
	serve compare=mem:1M --writable
	expect 0 kxfer --json bench read "$peer" $quick --context softirq --export compare
	expect_json .path_mtu_bytes 4096
}

# Types of service of each engine's connections, and of all of them together.
expect_tos() { # "ENGINE TOS, ..."
	expect_json '[.cells[0].engines[] | "\(.engine) \(.tos)"] | join(", ")' "$1"
}

# Sets the type of service of new links without --tos.
set_default_tos() { # TOS
	mkdir -p "$configfs/rdma_cm/$KXFER_DEVICE" || return
	echo "$1" >"$configfs/rdma_cm/$KXFER_DEVICE/ports/1/default_roce_tos" || fail "no default_roce_tos"
	rmdir "$configfs/rdma_cm/$KXFER_DEVICE"
}

test_connections_have_the_type_of_service_that_is_asked_for() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "of an accepted iWARP link it is not known"
	configfs=/sys/kernel/config
	mount -t configfs configfs $configfs 2>/dev/null
	[ -d $configfs/rdma_cm ] || skip "this kernel has no configfs"
	reload_module
	serve_verbs
	compare="compare $peer --rounds 2 --count 40 --depth 8 --batch 4 --size 64"
	set_default_tos 96
	try kxfer --json $compare --op read
	set_default_tos 0
	expect_tos "verbs 96, kverbs 96, job 96"
	expect 0 kxfer --json $compare --op read --tos 104
	expect_tos "verbs 104, kverbs 104, job 104"
	expect_json '"\(.tos) \(.warning)"' "104 null"
	expect 0 kxfer --json ping -c 1 --tos 0 "$peer"
	expect 0 kxfer --json link list
	expect_json '[.[] | "\(.role) \(.tos)"] | unique | join(", ")' \
		"accepted 0, accepted 104, accepted 96, initiator 0, initiator 104, initiator 96"
	# The responder uses the type of service that the initiator sends over TCP.
	expect 0 kxfer --json bench read "$peer" $quick --engine verbs --connect tcp --tos 104
	expect_json .tos 104
	# The module cannot set the type of service of a dedicated connection.
	expect 0 kxfer --json $compare --op send --engine verbs,kverbs --tos 104
	expect_tos "verbs 104"
	expect_json '.cells[0].refused[0].reason | test("dedicated connections.*type of service")' true
	expect 2 kxfer ping --tos 256 "$peer"
}

run_tests
