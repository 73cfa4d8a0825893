#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How the tool lists nodes, links, exports and counters, as text and as JSON with units in the
# key names.

# run_tests calls the tests by their names:
# shellcheck disable=SC2086,SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

test_ping_counts_and_times_in_json() {
	serve inbox=mem:64K
	expect 0 kxfer --json ping -c 3 -i 0 "$peer"
	[ "$(wc -l <stdout)" -eq 4 ] || fail "$(wc -l <stdout) lines"
	tail -n 1 stdout >last && cp last stdout
	expect_json '"\(.sent) \(.answered) \(.lost_percent)"' "3 3 0"
	expect_json '.min_ns <= .avg_ns and .avg_ns <= .max_ns' true
	# Three samples are too few for percentiles, but the keys are present.
	expect_json '"\(has("p50_ns") and has("p99_ns")) \(.p50_ns) \(.p99_ns)"' "true null null"
	expect 0 kxfer --quiet ping -c 2 -i 0 "$peer"
	grep -qE '^p99 +-$' stdout || fail "p99 of two pings"
}

test_ping_reads_the_whole_pattern() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 -s 64K "$peer"
	expect_stdout "64 KiB from $peer:7625: seq=1 time="
}

test_ping_opens_one_link_for_all() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 "$peer"
	before=$(counter links_made)
	expect 0 kxfer ping -c 5 -i 0 "$peer"
	[ "$(counter links_made)" -le $((before + 1)) ] || fail "more than one link was made"
}

test_quiet_ping_prints_only_the_summary() {
	serve inbox=mem:64K
	expect 0 kxfer --quiet ping -c 2 -i 0 "$peer"
	expect_not_in stdout seq=
	expect_stdout answered
}

test_ping_into_a_pipe_that_closes_ends_quietly() {
	serve inbox=mem:64K
	{ timeout 20 kxfer ping -i 0.1 "$peer" 2>stderr; echo $? >code; } | head -n 2 >stdout
	[ "$(wc -l <stdout)" -eq 2 ] || fail "$(wc -l <stdout) lines"
	[ "$(cat code)" -eq 141 ] || fail "status $(cat code)"
	[ ! -s stderr ] || fail "it said: $(cat stderr)"
}

test_a_full_disk_for_the_result_is_said_so() {
	kxfer --json stat >/dev/full 2>stderr && fail "status 0"
	grep -q ENOSPC stderr || fail "another error: $(cat stderr)"
}

test_ping_without_a_listener_ends_1() {
	expect 1 kxfer ping -c 1 "$peer:7998"
	expect_stderr ECONNREFUSED
}

test_ls_tells_length_rights_and_content() {
	random_file file 5000
	serve file inbox=mem:1M --writable
	expect 0 kxfer --json ls "$peer"
	expect_json 'map(select(.name == "file"))[0] | "\(.length_bytes) \(.content_length_bytes) \(.generation)"' "5000 5000 1"
	expect_json 'map(select(.name == "inbox"))[0] | "\(.length_bytes) \(.content_length_bytes) \(has("content_length_bytes"))"' "1048576 null true"
	expect_json '.[0].rights | join(",")' "read,write"
	expect 0 kxfer ls "$peer"
	expect_stdout "4.9 KiB"
	expect 0 kxfer --json export list
	expect_json '[.[] | has("content_length_bytes")] | all' true
}

test_ls_of_a_node_without_exports_is_empty() {
	expect 0 kxfer listen add "$peer"
	try kxfer --json ls "$peer"
	kxfer listen del "$peer" >/dev/null
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json length 0
}

test_ls_of_300_exports_lists_each_once() {
	random_file file 100
	names=
	for i in $(seq 300); do names="$names e$i=file"; done
	# shellcheck disable=SC2086 # a list
	serve $names
	expect 0 kxfer --json ls "$peer"
	expect_json '[.[].name] | unique | length' 300
	expect_json length 300
}

test_export_list_shows_owner_and_name() {
	serve inbox=mem:1M
	expect 0 kxfer --json export list
	expect_json 'map(select(.name == "inbox"))[0] | "\(.owner_uid) \(.owner_pid) \(.length_bytes)"' "0 $serve_pid 1048576"
}

test_export_list_shows_the_cookie_of_an_export() {
	serve inbox=mem:64K second=mem:64K --cookie 42
	expect 0 kxfer --json export list
	expect_json 'map(select(.name == "inbox" or .name == "second")) | map(.cookie) | tostring' "[42,42]"
	expect_json 'map(select(.name == "@ping"))[0].cookie' null
	expect 2 kxfer serve other=mem:64K --cookie -1
	expect 2 kxfer serve other=mem:64K --cookie 18446744073709551616
}

test_export_list_hides_others_from_a_user() {
	chmod 666 /dev/kxfer
	serve inbox=mem:1M
	expect 0 setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all --bounding-set -all kxfer --json export list
	chmod 600 /dev/kxfer
	expect_json '[.[] | select(.name == "inbox")] | length' 0
}

test_export_list_shows_a_user_those_of_its_own_uid() {
	as_user="setpriv --regid 1000 --clear-groups --inh-caps -all --bounding-set -all --reuid"
	chmod 666 /dev/kxfer
	expect 0 kxfer listen add "$peer"
	serve others=mem:64K
	background $as_user 1000 kxfer serve own=mem:64K
	wait_for 30 grep -q listen stdout
	$as_user 1000 kxfer --json export list >own.json
	$as_user 1001 kxfer --json export list >others.json
	kxfer listen del "$peer" >/dev/null
	chmod 600 /dev/kxfer
	[ "$(jq -c '[.[].name]' own.json)" = '["own"]' ] || fail "the user sees $(cat own.json)"
	[ "$(jq -c '[.[].name]' others.json)" = '[]' ] || fail "another user sees $(cat others.json)"
}

test_an_empty_list_says_whether_all_was_seen() {
	reload_module
	expect 0 kxfer link list
	expect_stderr "this node has no links"
	chmod 666 /dev/kxfer
	try setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all --bounding-set -all kxfer link list
	chmod 600 /dev/kxfer
	expect_stderr "this user has no links; those of others are shown with CAP_NET_ADMIN only"
}

# One user makes a link, one has an export that the first holds, and one has no part in the
# link.
test_link_list_shows_a_user_those_of_its_own_uid() {
	as_user="setpriv --regid 1000 --clear-groups --inh-caps -all --bounding-set -all --reuid"
	reload_module
	chmod 666 /dev/kxfer
	expect 0 kxfer listen add "$peer"
	background $as_user 1000 kxfer serve own=mem:64K --writable
	wait_for 30 grep -q listen stdout
	# The command has its target while it waits for its input.
	mkfifo pipe
	sleep 60 >pipe &
	echo $! >>pids
	$as_user 1001 kxfer put - "$peer/own" <pipe >put.out 2>&1 &
	echo $! >>pids
	wait_for 30 held_by_a_peer
	for uid in 1000 1001 1002; do
		$as_user $uid kxfer --json link list >$uid.json
	done
	chmod 600 /dev/kxfer
	kxfer listen del "$peer" >/dev/null
	[ "$(jq -c '[.[] | [.role, .targets, .idle_ns]]' 1000.json)" = '[["accepted",1,null]]' ] || fail "$(cat 1000.json)"
	[ "$(jq -c '[.[] | [.role, .targets]]' 1001.json)" = '[["initiator",1]]' ] || fail "$(cat 1001.json)"
	[ "$(jq -c . 1002.json)" = '[]' ] || fail "$(cat 1002.json)"
}

held_by_a_peer() { [ "$(kxfer --json export list | jq '[.[] | select(.name == "own")][0].targets')" = 1 ]; }

test_loopback_is_told_not_to_be_RDMA() {
	serve inbox=mem:64K
	for host in 127.0.0.1 localhost; do
		expect 1 kxfer --json ls "$host"
		expect_error_json .why "RDMA does not go over lo"
		expect_error_json ".hint | test(\"this node is reached by .*$peer\")" true
	done
}

test_a_listener_of_every_address_serves_the_one_asked_for() {
	expect 0 kxfer listen add 0.0.0.0 --no-key
	serve box=mem:64K --listen "$peer"
	expect_in serve.out "listening on 0.0.0.0:"
	expect 0 kxfer ls "$peer"
	expect_stdout box
	expect 0 kxfer listen del 0.0.0.0
}

test_a_server_listens_itself_when_the_one_before_it_ends() {
	serve one=mem:64K
	first=$serve_pid
	serve two=mem:64K
	expect_in serve.out "this one listens itself when that ends"
	kill -TERM "$first"
	wait_for 30 is_over "$first"
	wait_for 30 grep -q "listening on 0.0.0.0:7625 until this ends" serve.out
	expect 0 kxfer --json listen list
	expect_json 'length > 0' true
	expect 0 kxfer --json ls "$peer"
	expect_json '.[0].name' two
}

test_a_server_whose_listener_is_deleted_says_so() {
	expect 0 kxfer listen add "$peer"
	serve inbox=mem:64K
	expect 0 kxfer listen del "$peer"
	wait_for 30 grep -q "peers no longer reach this process on $peer:7625" serve.out
	expect 0 kxfer --json listen list
	expect_json length 0
	expect 0 kxfer listen add "$peer"
	wait_for 30 sh -c "[ \$(grep -c 'listening on $peer' serve.out) -eq 2 ]"
	expect 0 kxfer listen del "$peer"
}

test_listen_list_shows_address_and_use() {
	expect 0 kxfer --json listen add "$peer:7700"
	expect_json .listening "$peer:7700"
	try kxfer --json listen list
	kxfer listen del "$peer:7700" >/dev/null
	expect_json '.[0] | "\(.address) \(.active) \(.flags[0]) \(.device)"' "$peer:7700 true kept $KXFER_DEVICE"
	expect 0 kxfer --json listen list
	expect_json length 0
}

test_listen_any_port_is_told_and_warned_of() {
	expect 0 kxfer listen add --any-port "$peer:7700"
	expect_stderr "may now pass for a kernel"
	try kxfer listen list
	kxfer listen del "$peer:7700" >/dev/null
	expect_stdout "any-port"
}

test_a_listener_of_the_node_outlives_the_command_and_ends_by_del() {
	expect 0 kxfer listen add "[$KXFER_ADDRESS6]"
	expect 0 kxfer ping -c 1 "[$KXFER_ADDRESS6]"
	expect 0 kxfer listen del "[$KXFER_ADDRESS6]"
	expect 0 kxfer --json listen list
	expect_json length 0
}

test_serve_uses_a_listener_that_is_there() {
	expect 0 kxfer listen add "$peer"
	serve inbox=mem:64K --listen "$peer"
	expect_in serve.out "(a listener of this node)"
	stop_serve
	expect 0 kxfer ping -c 1 "$peer"
	expect 0 kxfer listen del "$peer"
}

test_link_list_and_show_tell_both_ends() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 "$peer"
	expect 0 kxfer --json link list
	expect_json '[.[] | select(.state == "live") | .role] | unique | join(",")' "accepted,initiator"
	id=$(jq '[.[] | select(.state == "live" and .role == "initiator")][0].id' stdout)
	expect 0 kxfer --json link show "$id"
	expect_json .device "$KXFER_DEVICE"
	expect_json .remote "$peer:7625"
	case $KXFER_DEVICE in siw*) messages=answered ;; *) messages=eager ;; esac
	expect_json .messages "$messages"
	expect_json '[.lanes[].lane][0:3] | join(" ")' "control 1 2"
	expect 0 kxfer link show "$id"
	expect_stdout "control"
}

test_links_and_listeners_tell_their_patience() {
	expect 0 kxfer listen add "$peer:7711" --silence 20 --ack-timeout 18
	expect 0 kxfer --json listen list
	expect_json '[.[] | select(.silence_ns == 20000000000 and .ack_timeout == 18)] | length' 1
	expect 0 kxfer ping -c 1 --silence 3 --retries 2 --in-flight 64M "$peer:7711"
	expect 0 kxfer --json link list
	id=$(jq '[.[] | select(.state == "live" and .role == "initiator")][-1].id' stdout)
	expect 0 kxfer --json link show "$id"
	expect_json '.silence_ns == 3000000000' true
	case $KXFER_DEVICE in siw*) retries=null ;; *) retries=2 ;; esac
	expect_json .retries "$retries"
	expect_json .in_flight_bytes 67108864
	expect 0 kxfer link show "$id"
	expect_stdout silence
	expect 0 kxfer listen del "$peer:7711"
}

test_without_lines_there_is_no_story() {
	expect 0 kxfer link story
	expect_stderr "loss_ms"
	expect 0 kxfer --json link story
	expect_json length 0
}

test_a_patience_out_of_range_ends_2() {
	expect 2 kxfer ping --silence 0.5 "$peer"
	expect 2 kxfer ping --silence 31 "$peer"
	expect 2 kxfer ping --ack-timeout 21 "$peer"
	expect 2 kxfer ping --retries 0 "$peer"
	expect 2 kxfer ping --in-flight 1000K "$peer"
	expect_stderr "1M to 256M"
	expect 2 kxfer ping --in-flight 257M "$peer"
	expect 2 kxfer listen add "$peer:7711" --ack-timeout 7
}

test_a_link_that_is_not_there_is_said_so() {
	expect 1 kxfer --json link show 999999999
	expect_error_json .errno ENOENT
	expect_error_json .hint "see: kxfer link list"
}

test_stat_counts_the_bytes_of_a_transfer() {
	random_file file 123456
	serve file
	before=$(counter bytes_read)
	expect 0 kxfer get "$peer/file" got
	[ $(($(counter bytes_read) - before)) -eq 123456 ] || fail "counted $(($(counter bytes_read) - before))"
}

test_stat_of_a_device_shows_its_links() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 "$peer"
	expect 0 kxfer --json stat "$KXFER_DEVICE"
	expect_json .device "$KXFER_DEVICE"
	expect_json '.links | length > 0' true
}

test_stat_of_something_unknown_is_said_so() {
	expect 1 kxfer --json stat nosuch0
	expect_error_json .errno ENOENT
}

test_serve_in_json_is_an_object_a_line() {
	random_file file 1000
	kxfer --json serve file --writable --no-key >serve.out 2>&1 </dev/null &
	serve_pid=$!
	echo "$serve_pid" >>pids
	wait_for 30 grep -q listen serve.out
	expect 0 kxfer put file "$peer/file"
	wait_for 10 grep -q content serve.out
	stop_serve
	cp serve.out stdout
	[ "$(jq -r .event stdout | sort -u | tr '\n' ' ')" = "content export listen " ] || fail "events differ"
	[ "$(jq -r 'select(.event == "content") | "\(.sha256) \(.generation) \(.uid)"' stdout)" = \
		"$(sha256_of file) 2 0" ] || fail "the content differs"
}

run_tests
