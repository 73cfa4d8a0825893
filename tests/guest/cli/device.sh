#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer device: its output agrees with the kernel's own tools and files, with and without the
# module.

# shellcheck disable=SC2317 # functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

port=/sys/class/infiniband/$KXFER_DEVICE/ports/1

add_device() {
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev dummy0
	wait_for 10 grep -q ACTIVE "$port/state"
}

test_list_names_what_rdma_link_names() {
	expect 0 kxfer --json device list
	expect_json length 1
	expect_json '.[0] | "\(.device) \(.port) \(.state) \(.netdev)"' \
		"$(rdma -j link show | jq -r '.[0] | "\(.ifname) \(.port) \(.state) \(.netdev)"')"
	expect_json '.[0].driver' "$KXFER_PROVIDER"
}

test_list_tells_the_addresses_of_the_interface() {
	expect 0 kxfer --json device list
	expect_json '.[0].addresses[0]' "$KXFER_ADDRESS"
	expect_json ".[0].addresses | index(\"$KXFER_ADDRESS6\") != null" true
}

test_list_as_text_is_one_line_a_port() {
	expect 0 kxfer device list
	[ "$(wc -l <"$work/stdout")" -eq 2 ] || fail "not a head and a line"
	expect_stdout "$KXFER_ADDRESS"
	expect_stdout attached
}

test_list_says_that_the_module_is_attached() {
	expect 0 kxfer --json device list
	expect_json '.[0].kxfer' attached
}

test_show_tells_the_GUIDs_that_rdma_dev_tells() {
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	expect_json .node_guid "$(rdma -j dev show | jq -r '.[0].node_guid')"
	expect_json .system_image_guid "$(rdma -j dev show | jq -r '.[0].sys_image_guid')"
}

test_show_tells_every_GID_with_its_type() {
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	gids=$(grep -l '[1-9a-f]' "$port"/gids/* | wc -l)
	expect_json '.ports[0].gids | length' "$gids"
	case $KXFER_PROVIDER in
	rxe) expect_json '[.ports[0].gids[].type] | unique | join(",")' "RoCE v2" ;;
	siw) expect_json '[.ports[0].gids[].type] | unique | join(",")' "iWARP" ;;
	esac
}

test_show_tells_the_IPv4_form_of_a_GID() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "a GID of iWARP holds no address"
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	expect_json ".ports[0].gids[] | select(.gid == \"::ffff:$KXFER_ADDRESS\").address" "$KXFER_ADDRESS"
}

test_show_tells_the_P_Keys() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "iWARP has none"
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	expect_json '.ports[0].pkeys[0]' "$(cat "$port/pkeys/0")"
}

test_show_tells_the_MTU_of_port_and_interface() {
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	expect_json '.ports[0].netdev_mtu_bytes' "$(cat /sys/class/net/dummy0/mtu)"
	expect_json '.ports[0].mtu_active_bytes' 4096
	ip link set dummy0 mtu 1500
	try kxfer --json device show "$KXFER_DEVICE"
	ip link set dummy0 mtu 9000
	expect_json '.ports[0].netdev_mtu_bytes' 1500
	[ "$KXFER_PROVIDER" = siw ] || expect_json '.ports[0].mtu_active_bytes' 1024
}

test_show_tells_what_kernel_consumers_are_told() {
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	case $KXFER_PROVIDER in
	rxe) expect_json '.kernel_verbs | "\(.max_fast_reg_pages) \(.max_read_sge)"' "512 32" ;;
	siw) expect_json '.kernel_verbs | "\(.max_fast_reg_pages) \(.max_read_sge)"' "256 1" ;;
	esac
	expect_json .kernel_verbs.virtual_dma true
}

test_show_counts_objects_as_rdma_resource_does() {
	expect 0 kxfer --json device show "$KXFER_DEVICE"
	expect_json '.resources | "\(.pd) \(.mr)"' \
		"$(rdma -j resource show | jq -r '.[0] | "\(.pd) \(.mr)"')"
}

test_show_of_an_unknown_device_ends_3_and_names_the_devices() {
	expect 3 kxfer --json device show nosuch0
	expect_error_json .errno ENODEV
	expect_error_json .on nosuch0
	expect_error_json ".hint | test(\"$KXFER_DEVICE\")" true
}

test_a_port_that_is_down_is_shown_so() {
	[ "$KXFER_PROVIDER" = rxe ] || skip "siw's port stays up; 6.1 crashes in siw_netdev_down() if it has a QP"
	ip link set dummy0 down
	try kxfer --json device list
	ip link set dummy0 up
	ip addr add "$KXFER_ADDRESS6/64" dev dummy0 nodad 2>/dev/null
	wait_for 10 grep -q ACTIVE "$port/state"
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json '.[0].state' DOWN
}

test_no_device_is_an_empty_list_and_a_hint() {
	rdma link del "$KXFER_DEVICE"
	try kxfer --json device list
	first=$status
	cp "$work/stdout" "$work/json"
	try kxfer device list
	add_device
	[ "$first" -eq 0 ] || fail "status $first"
	[ "$(cat "$work/json")" = "[]" ] || fail "JSON: $(cat "$work/json")"
	expect_stderr "rdma link add rxe0 type rxe netdev"
}

test_without_the_module_all_else_is_told() {
	wait_for 10 remove_module
	try kxfer --json device show "$KXFER_DEVICE"
	first=$status
	cp "$work/stdout" "$work/show"
	try kxfer --json device list
	insmod "$module_file"
	wait_for 10 test -c /dev/kxfer
	[ "$first" -eq 0 ] || fail "show: status $first"
	[ "$status" -eq 0 ] || fail "list: status $status"
	expect_json '.[0].kxfer' null
	cp "$work/show" "$work/stdout"
	expect_json '.kernel_verbs' null
	expect_json '.user_verbs.max_qp_wr > 0' true
}

test_an_unprivileged_user_may_look() {
	expect 0 setpriv --reuid 1000 --regid 1000 --clear-groups kxfer --json device show "$KXFER_DEVICE"
	expect_json .kxfer null
	expect_json '.ports[0].state' ACTIVE
}

run_tests
