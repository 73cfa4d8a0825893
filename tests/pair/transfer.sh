# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# put and get between two machines while the wire, the server or its machine fails: what a person
# types, and equal checksums at the end.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

MIB=48

# A file of random bytes on a node.
make_file() { # NODE
	check_do "$1" "[ -e /tmp/file ] || head -c $((MIB << 20)) /dev/urandom >/tmp/file"
}

# Starts a command on node 2 whose transfer lasts, and waits until it has moved some bytes.
begin_transfer() { # COUNTER COMMAND
	node_begin 2 "awk '\$1 == \"$1\" { print \$2 }' /sys/kernel/debug/kxfer/counters"
	moved=$(($(node_wait 2 "$task") + 6000000))
	node_begin 2 "$2"
	transfer=$task
	nodes_until 30 has_moved "$1" || fail "nothing moves: $(node_output 2 "$transfer")"
}

has_moved() { # COUNTER
	node_begin 2 "awk '\$1 == \"$1\" { exit !(\$2 > $moved) }' /sys/kernel/debug/kxfer/counters"
	node_wait 2 "$task" 10
}

end_transfer() { # SECONDS
	check_end 2 "$transfer" "$1"
	note_lines "$(node_output 2 "$transfer")"
}

expect_output() { # TEXT
	[[ $(node_output 2 "$transfer") == *"$1"* ]] || fail "'$1' is not in the output of $transfer"
}

cut_for() { node_cut 2; sleep "$1"; node_join 2; } # SECONDS

test_a_put_goes_on_over_a_cut() {
	make_file 2
	begin_serve inbox "inbox=mem:64M --writable"
	begin_transfer bytes_written "kxfer put --timeout 20 /tmp/file $node1/inbox"
	cut_for 12
	end_transfer 120
	expect_output "connected again"
	expect_output "by the receiver"
	end_serve
}

test_a_get_goes_on_over_three_cuts() {
	make_file 1
	begin_serve file /tmp/file
	begin_transfer bytes_read "kxfer get --force --timeout 20 $node1/file /tmp/got"
	cut_for 12
	sleep 2
	cut_for 12
	sleep 2
	cut_for 1
	end_transfer 120
	expect_output "connected again"
	expect_output "with the published SHA-256"
	end_serve
}

test_a_get_is_resumed_after_the_server_was_killed() {
	make_file 1
	begin_serve file /tmp/file
	begin_transfer bytes_read "kxfer get --force $node1/file /tmp/again; test \$? = 4"
	node_signal 1 "$server" KILL
	end_transfer 60
	begin_serve file /tmp/file
	begin_transfer bytes_read "kxfer get --force --resume $node1/file /tmp/again"
	end_transfer 120
	expect_output "going on with"
	expect_output "with the published SHA-256"
	end_serve
}

# node1 is the switch: node2's wire ends with it. Both have to boot; node2's part goes with its memory.
# So the client's machine is the one that stays: the server's is paused for longer than a link lives.
test_a_get_is_resumed_after_the_server_was_away() {
	make_file 1
	begin_serve file /tmp/file
	begin_transfer bytes_read "kxfer get --force --timeout 3 $node1/file /tmp/away; test \$? = 4"
	node_pause 1
	end_transfer 60
	node_resume 1
	begin_transfer bytes_read "kxfer get --force --resume $node1/file /tmp/away"
	end_transfer 120
	expect_output "going on with"
	end_serve
}

# Its session shares the link of others, on which the peer is silent already.
test_a_put_that_begins_on_a_dead_link_goes_on() {
	make_file 2
	begin_serve inbox "inbox=mem:64M --writable"
	check_do 2 "kxfer ls $node1 >/dev/null"
	node_cut 2
	node_begin 2 "kxfer put --timeout 30 /tmp/file $node1/inbox"
	transfer=$task
	sleep 12
	node_join 2
	end_transfer 120
	expect_output "connecting again"
	expect_output "by the receiver"
	end_serve
}

run_tests 2
