#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Transfers that go on: over a link that breaks, and after the command has ended (--resume).
#
# A link breaks by the failure of an ib_post_send(), which the module is told to inject, or by the
# removal of its device.

# run_tests calls the tests by their names; numbers and lists of words stand
# without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

fault=/sys/kernel/debug/kxfer/fault/LANE_POST_SEND

[ -e $fault ] || skip_all="the module was built without faults"

# Breaks all links that are live now, one after the other: the next post fails, by whichever lane,
# and links that are idle send a PING within two seconds. Links of earlier tests may still be there.
break_link() {
	before=$(live_links)
	for _ in $(seq 50); do
		is_any_live $before || return 0
		injected=$(nr_injected)
		echo 1 >$fault
		wait_for 10 is_injected
	done
	fail "a link does not break"
}

live_links() { kxfer --json link list | jq -r '.[] | select(.state == "live").id'; }

is_any_live() { # ID...
	for id; do
		live_links | grep -qx "$id" && return
	done
	return 1
}

# How many hits of the site have failed; see kmod/base/fault.c.
nr_injected() { cut -d ' ' -f 2 $fault; }

is_injected() { [ "$(nr_injected)" -gt "$injected" ]; }

# Breaks the link of a transfer that was stopped midway, waits until it is broken, and goes on.
break_and_go_on() {
	break_link
	go_on
}

# A get of `file` to `got` that was stopped by Ctrl-C.
stop_a_get() { # OPTIONS of serve
	large_file
	serve file "$@"
	stop_midway bytes_read kxfer --json get "$peer/file" got
	kill -INT "$pid"
	go_on
}

# The state of puts goes with the test.
use_state_folder() { export XDG_STATE_HOME="$work/state"; }

# A put of `file` to `inbox` that was stopped by Ctrl-C.
stop_a_put() {
	use_state_folder
	serve inbox=mem:64M --writable
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	kill -INT "$pid"
	go_on
}

test_a_put_goes_on_over_a_break() {
	serve inbox=mem:64M --writable
	large_file
	stop_midway bytes_written kxfer put file "$peer/inbox"
	break_and_go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_stderr "broke: connecting again"
	expect_stderr "connected again after"
	expect_stdout "breaks       1"
	expect_in serve.out "$(sha256_of file)"
}

test_a_get_goes_on_over_a_break() {
	large_file
	serve file
	stop_midway bytes_read kxfer --json get "$peer/file" got
	break_and_go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .breaks 1
	expect_json .verified "with the published SHA-256"
	expect_equal_files file got
	[ ! -e got.kxfer-part ] || fail "the part is left"
	[ ! -e got.kxfer-state ] || fail "its state is left"
}

# Takes the listener of a port away, and breaks the links.
break_path() { # PORT
	kxfer listen del "$peer:$1" >/dev/null || fail "no listener of port $1"
	break_link
}

# A second path to what `serve --listen $peer:7500` serves; of the node, so the test takes it away.
add_path() {
	kxfer listen del "$peer:7501" >/dev/null 2>&1
	kxfer listen add "$peer:7501" --no-key >/dev/null 2>&1 || fail "no second listener"
}

path_changes() { counter paths_changed; }

# Both paths of a node are in use, and one of them fails for good.
test_a_put_goes_on_over_another_path() {
	serve inbox=mem:64M --writable --listen "$peer:7500"
	add_path
	large_file
	changes=$(path_changes)
	stop_midway bytes_written kxfer put --via "$peer:7501" file "$peer:7500/inbox"
	break_path 7500
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_stdout "by the receiver"
	refuse_stderr "broke"
	[ "$(path_changes)" -gt "$changes" ] || fail "the path is the same"
	kxfer get --force "$peer:7501/inbox" got
	cmp -n "$(wc -c <file)" file got || fail "other bytes"
	kxfer listen del "$peer:7501" >/dev/null
}

test_a_get_goes_on_over_another_path() {
	large_file
	serve file --listen "$peer:7500"
	add_path
	stop_midway bytes_read kxfer --json get --via "$peer:7501" "$peer:7500/file" got
	break_path 7501
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .verified "with the published SHA-256"
	expect_equal_files file got
}

test_a_path_that_does_not_answer_is_passed_over() {
	random_file small 1000
	serve small --listen "$peer:7500"
	expect 0 kxfer ls --via "$peer:7500" "$peer:7502"
	expect_stdout small
	expect 1 kxfer ls --via "$peer:7503" "$peer:7502"
	expect_stderr "nothing listens there"
}

# Three of four addresses are silent. Over each path the module tries them in turn.
test_silent_paths_share_one_timeout() {
	random_file small 1000
	serve small --listen "$peer:7500"
	began=$(date +%s)
	expect 0 kxfer get --timeout 8 --via 10.77.0.97,10.77.0.98,10.77.0.99 "$peer:7500/small" got
	took=$(($(date +%s) - began))
	[ $took -le 10 ] || fail "it took $took s"
	expect_equal_files small got
	began=$(date +%s)
	expect 1 kxfer get --timeout 4 --via 10.77.0.97,10.77.0.98 10.77.0.99:7500/small got2
	took=$(($(date +%s) - began))
	[ $took -le 6 ] || fail "it took $took s"
	expect_stderr "no answer within"
}

test_a_get_goes_on_over_breaks_one_after_the_other() {
	large_file
	serve file
	stop_midway bytes_read kxfer --json get "$peer/file" got
	for _ in 1 2; do
		break_link
		moved=$(($(counter bytes_read) + 4000000))
		kill -CONT "$pid"
		wait_for 30 has_passed bytes_read $moved
		kill -STOP "$pid"
		wait_for 10 is_stopped "$pid"
	done
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .breaks 2
	expect_equal_files file got
}

test_a_put_from_a_pipe_goes_on_over_a_break() {
	serve inbox=mem:64M --writable
	random_file sent 20000000
	mkfifo pipe
	background sh -c "kxfer --json put - $peer/inbox <pipe"
	{
		head -c 8000000 sent
		break_link
		tail -c +8000001 sent
	} >pipe
	collect
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .sha256 "$(sha256_of sent)"
	expect_json .verified "by the receiver"
}

test_transfers_go_on_when_the_device_comes_back() {
	large_file
	serve file
	stop_midway bytes_read kxfer --json get "$peer/file" got
	renew_device
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .breaks 1
	expect_equal_files file got
}

test_a_peer_that_does_not_come_back_ends_the_get() {
	large_file
	serve file --listen "$peer:7500"
	stop_midway bytes_read kxfer --json get --timeout 2 "$peer:7500/file" got
	kill -KILL "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	[ ! -e got ] || fail "got is there"
}

test_a_get_that_was_stopped_is_resumed() {
	stop_a_get
	[ "$status" -eq 130 ] || fail "status $status"
	kept=$(stat -c %s got.kxfer-part)
	expect 0 kxfer --json get --resume "$peer/file" got
	expect_json .resumed_bytes $kept
	expect_json .length_bytes $large
	expect_json .verified "with the published SHA-256"
	expect_equal_files file got
	[ ! -e got.kxfer-state ] || fail "the state is left"
}

test_a_get_that_was_killed_is_resumed_where_it_was_known_to_be_right() {
	large_file
	serve file
	cat file file >twice
	stop_serve
	serve twice
	counter=$(counter bytes_read)
	background kxfer --json get "$peer/twice" got
	wait_for 60 has_passed bytes_read $((counter + 80000000))
	kill -KILL "$pid"
	wait_for 10 is_over "$pid"
	expect 0 kxfer --json get --resume "$peer/twice" got
	expect_json .resumed_bytes 67108864
	expect_equal_files twice got
}

test_a_get_of_other_content_begins_anew() {
	stop_a_get --writable
	random_file other 3000000
	expect 0 kxfer put other "$peer/file"
	expect 0 kxfer get --resume "$peer/file" got
	expect_stderr "other content"
	expect_equal_files other got
}

test_a_part_that_was_changed_begins_anew() {
	stop_a_get
	printf X | dd of=got.kxfer-part bs=1 seek=5000 conv=notrunc 2>/dev/null
	expect 0 kxfer get --resume "$peer/file" got
	expect_stderr "are not those that were stored"
	expect_equal_files file got
}

test_resume_without_a_part_begins_at_the_beginning() {
	random_file sent 100000
	serve sent
	expect 0 kxfer --json get --resume "$peer/sent" got
	expect_json .resumed_bytes 0
	expect_equal_files sent got
}

test_resume_of_another_range_begins_anew() {
	stop_a_get
	expect 0 kxfer get --resume --offset 1000 "$peer/file" got
	expect_stderr "another range"
	tail -c +1001 file >wanted
	expect_equal_files wanted got
}

test_resume_into_standard_output_is_refused() {
	random_file sent 1000
	serve sent
	expect 2 kxfer get --resume "$peer/sent" -
	expect_stderr "--resume needs a file"
}

test_a_put_that_was_stopped_is_resumed() {
	stop_a_put
	[ "$status" -eq 130 ] || fail "status $status"
	expect_error_json '.hint | test("--resume goes on")' true
	placed=$(jq .placed_bytes stderr)
	expect 0 kxfer --json put --resume file "$peer/inbox"
	expect_json .resumed_bytes "$placed"
	expect_json .verified "by the receiver"
	expect_in serve.out "$(sha256_of file)"
	[ -z "$(ls state/kxfer)" ] || fail "the state is left: $(ls state/kxfer)"
}

test_a_put_to_a_server_that_was_started_again_begins_anew() {
	stop_a_put
	stop_serve
	serve inbox=mem:64M --writable
	expect 0 kxfer put --resume file "$peer/inbox"
	expect_stderr "the export is another one"
	expect_in serve.out "$(sha256_of file)"
}

# The link breaks, and the server is another one when the put connects again.
test_a_put_does_not_go_on_with_another_export() {
	use_state_folder
	serve inbox=mem:64M --writable --cookie 1
	large_file
	stop_midway bytes_written kxfer --json put file "$peer/inbox"
	break_link
	stop_serve
	serve inbox=mem:64M --writable --cookie 2
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.error | test("changed while it was written")' true
	expect 0 kxfer put --resume file "$peer/inbox"
	expect_stderr "the export is another one"
	expect_in serve.out "$(sha256_of file)"
}

test_a_put_of_a_file_that_was_changed_begins_anew() {
	stop_a_put
	printf X | dd of=file bs=1 seek=5000 conv=notrunc 2>/dev/null
	expect 0 kxfer put --resume file "$peer/inbox"
	expect_stderr "the file was changed"
	expect_in serve.out "$(sha256_of file)"
}

test_a_put_to_an_export_that_got_other_content_begins_anew() {
	stop_a_put
	random_file other 1000
	expect 0 kxfer put other "$peer/inbox"
	expect 0 kxfer put --resume file "$peer/inbox"
	expect_stderr "has other content"
	expect_in serve.out "$(sha256_of file)"
}

test_a_put_from_a_pipe_is_not_resumed() {
	serve inbox=mem:1M --writable
	expect 2 sh -c "echo x | kxfer put --resume - $peer/inbox"
	expect_stderr "--resume needs a file"
}

run_tests
