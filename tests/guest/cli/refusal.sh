#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Impossible requests: each gets a clear error with advice and the right exit status, and no
# data is lost.

# run_tests calls the tests by their names; numbers and lists of words stand
# without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

unprivileged="setpriv --reuid 1000 --regid 1000 --groups 104 --inh-caps -all --bounding-set -all"

test_put_of_a_file_larger_than_the_export_writes_nothing() {
	serve inbox=mem:64K --writable
	random_file small 60000
	random_file large 70000
	expect 0 kxfer put small "$peer/inbox"
	before=$(counter bytes_written)
	expect 1 kxfer --json put large "$peer/inbox"
	expect_error_json .errno EFBIG
	expect_error_json '.why | test("68.4 KiB.*64 KiB")' true
	[ "$(counter bytes_written)" -eq "$before" ] || fail "bytes were written"
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files small got
}

test_put_at_an_offset_that_leaves_too_little_room_is_refused() {
	serve inbox=mem:64K --writable
	random_file sent 1000
	expect 1 kxfer put --offset 65000 sent "$peer/inbox"
	expect_stderr "room for 536 bytes after offset 65000"
}

test_put_of_a_pipe_larger_than_the_export_stops_part_way() {
	serve inbox=mem:1M --writable
	timeout 60 sh -c "head -c 3000000 /dev/zero | kxfer put - $peer/inbox" 2>stderr
	status=$?
	[ $status -eq 4 ] || fail "status $status"
	expect_stderr "there are at least"
	expect_stderr "may be overwritten"
	expect 0 kxfer --json ls "$peer"
	expect_json '.[0].generation' 0
}

test_put_of_more_than_the_file_has_is_refused() {
	serve inbox=mem:1M --writable
	random_file sent 1000
	expect 1 kxfer put --length 2000 sent "$peer/inbox"
	expect_stderr "it has only 1000 bytes"
}

test_put_of_a_file_that_is_not_there() {
	serve inbox=mem:1M --writable
	expect 1 kxfer --json put nothing "$peer/inbox"
	expect_error_json .errno ENOENT
	expect_error_json .on nothing
}

test_put_of_a_folder_says_how_to_send_one() {
	serve inbox=mem:1M --writable
	expect 1 kxfer put . "$peer/inbox"
	expect_stderr "tar -c"
}

test_put_into_a_read_only_export_is_refused() {
	random_file file 1000
	serve file
	expect 1 kxfer --json put file "$peer/file"
	expect_error_json .errno EACCES
	expect_error_json '.hint | test("--writable")' true
}

test_an_unknown_export_names_those_there_are() {
	random_file file 1000
	serve one=file two=file
	for command in "put file $peer/none" "get $peer/none got"; do
		# shellcheck disable=SC2086 # the words of a command
		expect 1 kxfer $command
		expect_stderr "no such export (ENOENT)"
		grep -qE 'it has: (one, two|two, one)' stderr || fail "the names are not told"
		expect_stderr "kxfer ls $peer"
	done
}

test_get_of_memory_that_nobody_wrote_is_refused() {
	serve inbox=mem:1M --writable
	expect 1 kxfer get "$peer/inbox" got
	expect_stderr "has not said what it holds"
	[ ! -e got.kxfer-part ] || fail "a partial file is left"
	expect 0 kxfer get --length 4K "$peer/inbox" got
}

test_get_of_a_range_behind_the_end_is_refused() {
	random_file file 1000
	serve file
	expect 1 kxfer --json get --offset 900 --length 200 "$peer/file" got
	expect_error_json .errno ERANGE
	expect 1 kxfer --json get --offset 1001 "$peer/file" got
	expect_error_json .errno ERANGE
}

test_get_into_a_folder_that_is_not_there() {
	random_file file 1000
	serve file
	expect 1 kxfer --json get "$peer/file" nowhere/got
	expect_error_json .errno ENOENT
	expect_error_json .on nowhere/got.kxfer-part
}

test_a_rule_for_one_user_refuses_another() {
	random_file file 1000
	serve file --allow uid=1000
	expect 1 kxfer --json get "$peer/file" got
	expect_error_json .errno EACCES
	expect 0 kxfer --json ls "$peer"
	expect_json length 0
}

test_a_rule_for_one_user_admits_that_user() {
	random_file file 1000
	chmod 755 "$root" "$work"
	chmod 777 .
	chgrp rdma /dev/kxfer && chmod 660 /dev/kxfer
	serve file --allow uid=1001 --allow uid=1000
	expect 0 $unprivileged kxfer get "$peer/file" got
	expect_equal_files file got
	chmod 600 /dev/kxfer
}

test_a_rule_for_a_group_is_by_the_effective_group() {
	random_file file 1000
	serve file --allow gid=0
	expect 0 kxfer get "$peer/file" got
	stop_serve
	serve file --allow gid=1000
	expect 1 kxfer get --force "$peer/file" got
}

test_a_rule_for_another_network_refuses() {
	random_file file 1000
	serve file --allow 192.0.2.0/24
	expect 1 kxfer get "$peer/file" got
	expect_stderr "does not allow this user to read it"
}

test_a_rule_for_the_own_network_admits() {
	random_file file 1000
	serve file --allow 192.0.2.0/24 --allow "$peer/24" --allow "$KXFER_ADDRESS6/64"
	expect 0 kxfer get "$peer/file" got
	expect 0 kxfer get --force "[$KXFER_ADDRESS6]/file" got
}

test_no_listener_says_how_to_make_one_there() {
	# A link of an earlier test would work without a listener.
	reload_module
	expect 1 kxfer --json ls "$peer"
	expect_error_json .errno ECONNREFUSED
	expect_error_json .why "nothing listens there"
	expect_error_json '.hint | test("kxfer listen add '"$peer"'")' true
}

test_no_listener_on_that_port_says_the_port() {
	serve inbox=mem:64K
	expect 1 kxfer ls "$peer:7999"
	expect_stderr "kxfer listen add $peer:7999"
}

test_a_peer_without_a_route_is_said_so() {
	expect 1 kxfer ls --timeout 5 192.0.2.1
	grep -qE 'EHOSTUNREACH|EADDRNOTAVAIL|ENETUNREACH|ETIMEDOUT' stderr || fail "another error"
	expect_stderr "ip route get 192.0.2.1"
}

test_a_host_name_that_nobody_knows_is_said_so() {
	expect 1 kxfer ls no-such-host.invalid
	expect_stderr "cannot find the address of no-such-host.invalid"
}

test_a_device_that_leads_elsewhere_is_said_so() {
	serve inbox=mem:64K
	expect 1 kxfer ls --device nosuch0 "$peer"
	expect_stderr "device nosuch0 does not lead there"
}

test_a_port_in_use_is_said_so() {
	expect 0 kxfer listen add "$peer:7700"
	try kxfer --json listen add "$peer:7700"
	kxfer listen del "$peer:7700" >/dev/null
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json .errno EADDRINUSE
	expect_error_json '.hint | test("kxfer listen list")' true
}

test_a_port_that_a_wildcard_takes_is_said_so() {
	expect 0 kxfer listen add --no-key "0.0.0.0:7700"
	try kxfer --json listen add "$peer:7700"
	kxfer listen del "0.0.0.0:7700" >/dev/null
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json .errno EADDRINUSE
}

test_listening_on_a_foreign_address_is_refused() {
	expect 1 kxfer --json listen add --no-key 192.0.2.1
	expect_error_json .errno EADDRNOTAVAIL
	expect_error_json .why "no RDMA device of this node has that address"
}

test_listening_needs_an_administrator() {
	chmod 666 /dev/kxfer
	expect 1 $unprivileged kxfer --json listen add "$peer"
	expect_error_json .errno EPERM
	expect_error_json '.hint | test("root")' true
	expect 1 $unprivileged kxfer serve --no-key inbox=mem:64K
	expect_stderr "kxfer listen add"
	chmod 600 /dev/kxfer
}

test_serving_needs_no_administrator_once_the_node_listens() {
	chmod 666 /dev/kxfer
	random_file file 1000
	chmod 755 "$root" "$work"
	chmod 644 file
	expect 0 kxfer listen add "$peer"
	background $unprivileged kxfer serve data="$work/file"
	wait_for 30 grep -q listen stdout
	timeout 30 kxfer get "$peer/data" got >out 2>&1
	got=$?
	kxfer listen del "$peer" >/dev/null
	chmod 600 /dev/kxfer
	[ $got -eq 0 ] || fail "get: $(cat out)"
	expect_equal_files file got
}

test_stopping_a_listener_that_is_not_there() {
	expect 1 kxfer --json listen del "$peer:7999"
	expect_error_json .errno ENOENT
}

test_a_name_that_is_taken_on_this_node() {
	serve inbox=mem:64K
	expect 1 kxfer --json serve inbox=mem:64K
	expect_error_json .errno EEXIST
	expect_error_json '.hint | test("kxfer export list")' true
}

test_serving_what_is_no_file_is_refused() {
	expect 1 kxfer serve dev=/dev/zero
	expect_stderr "no regular file"
	expect 1 kxfer serve nothing
	expect_stderr "ENOENT"
}

test_serving_more_than_may_be_locked_says_the_limit() {
	chmod 666 /dev/kxfer
	kxfer listen add "$peer" >/dev/null
	try sh -c "ulimit -l 64; exec $unprivileged kxfer --json serve inbox=mem:1M"
	kxfer listen del "$peer" >/dev/null
	chmod 600 /dev/kxfer
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json .errno ENOMEM
	expect_error_json .why "this user may lock 64 KiB of memory"
}

test_put_works_with_little_lockable_memory() {
	chmod 666 /dev/kxfer
	serve inbox=mem:1M --writable
	random_file sent 300000
	chmod 755 "$root" "$work"
	try sh -c "ulimit -l 64; exec $unprivileged kxfer put sent $peer/inbox"
	chmod 600 /dev/kxfer
	[ "$status" -eq 0 ] || fail "status $status"
}

test_a_user_who_may_not_open_the_device_is_told_of_the_group() {
	chmod 600 /dev/kxfer
	expect 1 $unprivileged kxfer --json nop
	expect_error_json .errno EACCES
	expect_error_json '.hint | test("rdma")' true
}

test_no_RDMA_device_ends_3_and_says_how_to_make_one() {
	rdma link del "$KXFER_DEVICE"
	try kxfer --json ls "$peer"
	first=$status
	cp stderr stderr.ls
	try kxfer serve --no-key inbox=mem:64K
	rdma link add "$KXFER_DEVICE" type "$KXFER_PROVIDER" netdev dummy0
	wait_for 10 grep -q ACTIVE "/sys/class/infiniband/$KXFER_DEVICE/ports/1/state"
	[ "$first" -eq 3 ] || fail "ls: status $first"
	[ "$status" -eq 3 ] || fail "serve: status $status"
	expect_stderr "rdma link add rxe0 type rxe netdev"
	cp stderr.ls stderr
	expect_error_json .errno ENODEV
}

test_a_module_that_is_not_loaded_ends_3_and_says_how_to_load_it() {
	wait_for 10 remove_module
	try kxfer --json nop
	first=$status
	cp stderr stderr.nop
	: >sent
	try kxfer put sent "$peer/inbox"
	load_module
	[ "$first" -eq 3 ] || fail "nop: status $first"
	[ "$status" -eq 3 ] || fail "put: status $status"
	cp stderr.nop stderr
	expect_error_json .why "the module is not loaded"
	expect_error_json '.hint | test("modprobe kxfer")' true
	expect_error_json .exit_status 3
}

run_tests
