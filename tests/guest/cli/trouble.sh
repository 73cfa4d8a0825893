#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Disturbances in the middle of a transfer: by the user, the disk, the file or the peer.
#
# "In the middle" is a state, not a time: when the counters of the module show that bytes have
# moved, the process is stopped (SIGSTOP) before it has finished.

# run_tests calls the tests by their names; numbers and lists of words stand
# without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

test_a_file_that_grows_while_it_is_put_stops_part_way() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	echo more >>file
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.error | test("file grew while it was read")' true
	expect 0 kxfer --json ls "$peer"
	expect_json '.[0].generation' 0
}

test_a_file_that_gets_shorter_while_it_is_put_stops_part_way() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	truncate -s 2000000 file
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.error | test("became shorter while it was read")' true
}

test_a_file_that_vanishes_while_it_is_put_stops_part_way() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	rm file
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.error | test("was removed or replaced")' true
}

test_a_file_that_is_changed_while_it_is_put_stops_part_way() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	printf x | dd of=file conv=notrunc status=none
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.error | test("was changed while it was read")' true
}

test_ctrl_c_in_put_ends_130_and_announces_nothing() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	kill -INT "$pid"
	go_on
	[ "$status" -eq 130 ] || fail "status $status"
	expect_error_json .exit_status 130
	expect_error_json '.placed_bytes > 0 and .sent_bytes >= .placed_bytes' true
	expect_error_json '.hint | test("the first .* may be overwritten .*put it again")' true
	expect 0 kxfer --json ls "$peer"
	expect_json '.[0].generation' 0
}

test_ctrl_c_in_get_keeps_a_right_part_and_ends_130() {
	large_file
	serve file
	stop_midway bytes_read kxfer --json get "$peer/file" got
	kill -INT "$pid"
	go_on
	[ "$status" -eq 130 ] || fail "status $status"
	expect_error_json .part got.kxfer-part
	kept=$(jq .verified_bytes stderr)
	[ "$kept" -eq "$(stat -c %s got.kxfer-part)" ] || fail "the part has $(stat -c %s got.kxfer-part) bytes, told were $kept"
	[ "$kept" -gt 0 ] || fail "nothing was kept"
	[ "$kept" -lt $large ] || fail "$kept bytes are no part"
	head -c "$kept" file >wanted
	expect_equal_files wanted got.kxfer-part
	[ ! -e got ] || fail "got is there"
}

test_ctrl_c_in_put_ends_it_while_a_pipe_gives_nothing() {
	serve inbox=mem:8M --writable
	mkfifo fifo
	exec 7<>fifo # keeps a writer, so that the input never ends
	random_file some 3000000
	kxfer --json put - "$peer/inbox" <fifo >stdout 2>stderr &
	pid=$!
	echo "$pid" >>"$work/pids"
	before=$(counter bytes_written)
	cat some >fifo
	# Five slots of 512 KiB are full and sent, the sixth waits for more data.
	wait_for 30 counter_passed bytes_written $((before + 2600000))
	kill -INT "$pid"
	wait_for 10 is_over "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	expect_error_json .placed_bytes 2621440
}

test_ctrl_c_in_get_ends_it_while_nobody_reads_the_pipe() {
	large_file
	serve file
	mkfifo fifo
	exec 7<>fifo # open, but never read
	before=$(counter bytes_read)
	kxfer --json get "$peer/file" - >fifo 2>stderr </dev/null &
	pid=$!
	echo "$pid" >>"$work/pids"
	# All slots are full: one of them is being written.
	wait_for 30 counter_passed bytes_read $((before + 4000000))
	kill -INT "$pid"
	wait_for 10 is_over "$pid"
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	expect_error_json .stored_bytes 0
}

test_a_file_that_came_while_it_was_got_is_left_alone() {
	large_file
	serve file
	stop_midway bytes_read kxfer --json get "$peer/file" got
	echo precious >got
	go_on
	[ "$status" -eq 1 ] || fail "status $status"
	[ "$(cat got)" = precious ] || fail "it was overwritten"
	expect_error_json .part got.kxfer-part
	expect_equal_files file got.kxfer-part
}

test_two_gets_to_one_file_do_not_mix() {
	large_file
	serve file
	stop_midway bytes_read kxfer get "$peer/file" got
	timeout 30 kxfer get "$peer/file" got >second.out 2>&1
	second=$?
	[ $second -eq 1 ] || fail "the second: status $second"
	expect_in second.out "another kxfer get is writing it"
	go_on
	[ "$status" -eq 0 ] || fail "the first: status $status"
	expect_equal_files file got
}

test_sigterm_in_get_ends_143() {
	large_file
	serve file
	stop_midway bytes_read kxfer get "$peer/file" got
	kill -TERM "$pid"
	go_on
	[ "$status" -eq 143 ] || fail "status $status"
}

test_a_get_after_a_stopped_one_starts_anew() {
	large_file
	serve file
	stop_midway bytes_read kxfer get "$peer/file" got
	kill -INT "$pid"
	go_on
	expect 0 kxfer get "$peer/file" got
	expect_equal_files file got
	[ ! -e got.kxfer-part ] || fail "the part is left"
}

test_a_full_disk_keeps_a_right_part_and_ends_4() {
	random_file file 8000000
	serve file
	mkdir disk
	mount -t tmpfs -o size=3M small disk
	try kxfer --json get "$peer/file" disk/got
	cp disk/got.kxfer-part part 2>/dev/null
	umount disk
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json .errno ENOSPC
	kept=$(jq .verified_bytes stderr)
	[ "$kept" -gt 1000000 ] || fail "only $kept bytes were kept"
	[ "$kept" -eq "$(stat -c %s part)" ] || fail "the part has $(stat -c %s part) bytes, told were $kept"
	head -c "$kept" file >wanted
	expect_equal_files wanted part
}

test_a_full_disk_at_the_receiver_publishes_nothing_and_loses_nothing() {
	mkdir disk
	mount -t tmpfs -o size=3M small disk
	random_file disk/file 2000000
	cp disk/file before
	random_file sent 2000000
	serve disk/file --writable
	try kxfer put --timeout 2 sent "$peer/file"
	put=$status
	stop_serve
	cp disk/file after
	umount disk
	[ $put -eq 1 ] || fail "put: status $put"
	expect_in serve.out "ENOSPC"
	expect_in serve.out "its content was not published"
	expect_equal_files before after
}

test_a_reader_that_goes_away_from_standard_output_ends_get() {
	large_file
	serve file
	timeout 60 sh -c "{ kxfer get $peer/file - ; echo \$? >code; } | head -c 100000 >/dev/null" 2>stderr
	[ "$(cat code)" -eq 4 ] || fail "status $(cat code)"
	expect_stderr "EPIPE"
}

test_an_exporter_that_is_killed_ends_the_put() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	kill -KILL "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.errno | IN("EKEYREVOKED", "ECONNRESET", "EREMOTEIO")' true
	# The export may be gone, so the hint must not claim that it exists.
	expect_error_json '.hint | test("no longer exists|whether the export still exists is not known")' true
}

test_an_exporter_that_ends_ends_the_get() {
	large_file
	serve file
	stop_midway bytes_read kxfer --json get "$peer/file" got
	kill -TERM "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.errno | IN("EKEYREVOKED", "ECONNRESET", "EREMOTEIO")' true
	head -c "$(stat -c %s got.kxfer-part)" file >wanted
	expect_equal_files wanted got.kxfer-part
}

test_a_content_that_changes_while_it_is_got_is_noticed() {
	large_file
	cp file sent
	serve file --writable
	random_file other 1000
	stop_midway bytes_read kxfer --json get "$peer/file" got
	expect_after_stop kxfer put other "$peer/file"
	go_on
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json '.error | test("changed while it was read")' true
	[ ! -e got ] || fail "got is there"
}

test_serve_ends_0_on_sigint() {
	background kxfer serve --no-key inbox=mem:64K
	wait_for 30 grep -q listening stdout
	kill -INT "$pid"
	collect
	[ "$status" -eq 0 ] || fail "status $status"
}

test_serve_ends_0_on_sigterm() {
	serve inbox=mem:64K
	stop_serve
	[ "$status" -eq 0 ] || fail "status $status"
	[ "$(kxfer --json listen list)" = '[]' ] || fail "its listeners are left"
}

test_a_second_signal_ends_serve_at_once() {
	background kxfer serve --no-key inbox=mem:64K
	wait_for 30 grep -q listening stdout
	kill -STOP "$pid"
	wait_for 10 is_stopped "$pid"
	kill -INT "$pid"
	kill -TERM "$pid"
	kill -CONT "$pid"
	collect
	[ "$status" -eq 0 ] || fail "two kinds: status $status"
	[ "$(kxfer --json listen list)" = '[]' ] || fail "its listeners are left"
}

test_ctrl_c_in_ping_prints_the_summary() {
	serve inbox=mem:64K
	background kxfer ping -i 0.1 "$peer"
	wait_for 30 grep -q seq=3 stdout
	kill -INT "$pid"
	collect
	[ "$status" -eq 0 ] || fail "status $status"
	expect_stdout answered
	expect_stdout p99
}

test_serve_goes_on_after_a_put_that_was_stopped() {
	serve inbox=mem:128M --writable
	large_file
	stop_midway bytes_written kxfer put file "$peer/inbox"
	kill -KILL "$pid"
	collect
	[ "$status" -eq 137 ] || fail "status $status"
	random_file small 1000
	expect 0 kxfer put small "$peer/inbox"
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files small got
}

run_tests
