# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What goes wrong between two machines while jobs run: what became of every job, and how long it
# took until an error said so and until jobs ran again.
#
# Each fault comes 5 s after the probe has begun. Where a fault is over by itself, the probe goes on
# and has to come back. DETECTED is what the keep-alive promises (KXFER_SILENCE_MS and a PING's time
# before it), with room for an emulated machine.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

DETECTED=15000

# Runs the probe for a time, with a fault in it. Checks what must hold after every fault.
under() { # SECONDS FAULT-FUNCTION [LOSS_MS]
	begin_store
	begin_probe "$1" ${3:+"$3"}
	sleep 5
	"$2"
	end_probe
	end_store
	expect_figure lost '==' 0
	expect_figure doubled '==' 0
	expect_figure corrupt '==' 0
	expect_figure reordered '==' 0
	expect_figure ok '>' 100
	expect_nothing_left 2
	expect_nothing_left 1
}

# When store and probe have gone, a link may stay for a while, and nothing else.
expect_nothing_left() { # NODE
	expect_none_of "$1" jobs peers targets exposures grants
}

expect_none_of() { # NODE NAME...
	nodes_until 20 none_of "$@" || fail "node$1: left behind: ${left//$'\n'/, }"
}

none_of() { # NODE NAME...
	local names=("${@:2}")
	node_begin "$1" "kxfer stat | grep -E '^live_($(IFS='|'; echo "${names[*]}")) '"
	left=$(node_wait "$1" "$task" 10)
	awk -v nr=${#names[@]} '$2 { bad = 1 } END { exit bad || NR != nr }' <<<"$left"
}

# The table of the faults is made of these lines.
tell() { # FAULT
	printf '# %-40s ok %7s  errors %-40s breaks %3s  detected %6s ms  recovered %6s ms\n' "$1" \
		"$(figure ok)" "$(sed -n 's/.*"errors": {\([^}]*\)}.*/\1/p' <<<"$figures" | tr -d '"')" \
		"$(figure breaks)" "$(figure detected_ms)" "$(figure recovered_ms)"
}

cut_for_a_second() { node_cut 2; sleep 1; node_join 2; }

test_cut_of_a_second() {
	under 20 cut_for_a_second
	tell "wire cut for 1 s"
	expect_figure detected_ms '<' $DETECTED
}

cut_for_long() { node_cut 2; sleep 15; node_join 2; }

test_cut_of_fifteen_seconds() {
	under 45 cut_for_long
	tell "wire cut for 15 s"
	expect_figure breaks '>=' 1
	expect_figure detected_ms '<' $DETECTED
}

# With a line no READ and no WRITE that may be repeated ends: they wait for the wire.
test_cut_of_fifteen_seconds_that_jobs_outlive() {
	under 45 cut_for_long 60000
	tell "wire cut for 15 s, jobs wait"
	expect_figure transfers_failed '==' 0
	check_do 2 "kxfer stat | awk '\$1 == \"jobs_resumed\" { nr = \$2 } END { exit !nr }'"
}

pause_for_three() { node_pause 1; sleep 3; node_resume 1; }

test_peer_paused_for_three_seconds() {
	under 20 pause_for_three
	tell "peer paused for 3 s"
	expect_figure detected_ms '<' $DETECTED
}

pause_for_longer() { node_pause 1; sleep 30; node_resume 1; }

# A paused guest takes no frames off its end of the wire, and the card at the other end keeps those
# that it has. rxe_destroy_qp() waits for the QP's packets, and no job for that.
test_peer_paused_for_thirty_seconds() {
	under 60 pause_for_longer
	tell "peer paused for 30 s"
	expect_figure breaks '>=' 1
	expect_figure detected_ms '<' $DETECTED
}

one_way() {
	check_do 1 "tc qdisc add dev eth0 root netem loss 100%"
	sleep 15
	check_do 1 "tc qdisc del dev eth0 root"
}

test_one_way_silent_for_fifteen_seconds() {
	under 45 one_way
	tell "peer silent, not deaf, for 15 s"
	expect_figure breaks '>=' 1
	expect_figure detected_ms '<' $DETECTED
}

lossy() { # NETEM-WORDS
	check_do 1 "tc qdisc add dev eth0 root netem $1"
	check_do 2 "tc qdisc add dev eth0 root netem $1"
	sleep 15
	check_do 1 "tc qdisc del dev eth0 root"
	check_do 2 "tc qdisc del dev eth0 root"
}

lose_one_percent() { lossy "loss 1%"; }
delay_by_fifty() { lossy "delay 50ms 10ms"; }
double() { lossy "duplicate 10%"; }
reorder() { lossy "delay 5ms reorder 25% 50%"; }
corrupt() { lossy "corrupt 1%"; }

test_loss_of_one_percent() {
	under 45 lose_one_percent
	tell "1 % lost both ways for 15 s"
}

test_delay_of_fifty_ms() {
	under 45 delay_by_fifty
	tell "50 ms of delay both ways for 15 s"
}

test_duplicates() {
	under 45 double
	tell "10 % doubled both ways for 15 s"
}

test_reordering() {
	under 45 reorder
	tell "25 % reordered both ways for 15 s"
}

test_corruption_of_one_percent() {
	under 45 corrupt
	tell "1 % corrupted both ways for 15 s"
}

replace_store() { end_store; begin_store; }

test_server_killed_and_started_again() {
	under 20 replace_store
	tell "server killed and started again"
	expect_figure stores '==' 2
	expect_figure detected_ms '<' $DETECTED
}

test_server_killed_and_started_again_under_a_line() {
	under 20 replace_store 60000
	tell "server killed and started again, jobs wait"
	expect_figure stores '==' 2
}

reload() {
	end_store
	check_do 1 "rmmod kxfer_bench kxfer 2>/dev/null || rmmod kxfer; insmod /kxfer/kxfer.ko"
	begin_store
}

test_module_loaded_again_at_the_server() {
	under 30 reload
	tell "server's module loaded again"
	expect_figure stores '==' 2
}

replug() {
	check_do 1 "rdma link del $device; sleep 2; rdma link add $device type $provider netdev eth0"
	# What was exported on the old device is exported on the new one.
}

test_device_of_the_server_renewed_under_a_line() {
	under 40 replug 60000
	tell "server's device removed and added, jobs wait"
	expect_figure ok '>' 100
}

test_device_of_the_server_renewed() {
	under 40 replug
	tell "server's device removed and added"
	expect_figure breaks '>=' 1
}


# node1 is the switch: node2's wire ends with it, so that node2 is booted again, too, afterwards.
# Its grants, and the registrations for them, go with the link. This comes last: node2 boots again.
test_zz_power_cut_of_the_client() {
	begin_store
	begin_probe 60
	sleep 5
	node_off 2
	expect_none_of 1 exposures grants
	end_store
	expect_nothing_left 1
	node_boot 2 || fail "node2 does not come back"
}

run_tests 2
