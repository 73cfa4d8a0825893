# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What goes wrong between two machines while jobs run: what became of every job, and how long it
# took until an error said so and until jobs ran again. Each test is a row of the table.
#
# A fault comes 3 s after jobs have begun to run, and the probe goes on until they run again. Where
# jobs wait (LOSS_MS), no READ and no WRITE that may be repeated ends with the link.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pair/lib_faults.sh
. "$(dirname "$0")/lib_faults.sh"

# What the keep-alive promises, KXFER_SILENCE_MS and a PING's time before it, in ms with room for an
# emulated machine.
DETECTED=15000
# Seconds after a fault until jobs succeed again.
RECOVERED=60
LOSS_MS=120000

# Checks what must hold after every fault.
under() { # FAULT LOSS_MS COMMAND...
	begin_store ""
	begin_probe 600 "$2"
	nodes_until 60 jobs_run 20 || { fail "jobs do not run"; return; }
	sleep 3
	"${@:3}"
	jobs_run 0 || true
	nodes_until $RECOVERED jobs_run "$(figure ok)" || fail "jobs do not run $RECOVERED s after the fault"
	stop_probe ""
	tell "$1"
	end_store ""
	expect_exactly_once
	expect_figure ok '>' 100
	expect_figure detected_ms '<' "$DETECTED"
	expect_nothing_left 1
	expect_nothing_left 2
}

# Jobs that wait, on exports that stay.
under_line() { # FAULT COMMAND...
	under "$1, jobs wait" $LOSS_MS "${@:2}"
	expect_figure transfers_failed '==' 0
}

# ---- the wire ----

test_cut_of_a_second() { under "wire cut for 1 s" 0 fault_cut 1; }

test_cut_of_fifteen_seconds() {
	under "wire cut for 15 s" 0 fault_cut 15
	expect_figure breaks '>=' 1
}

test_cut_of_fifteen_seconds_that_jobs_outlive() {
	under_line "wire cut for 15 s" fault_cut 15
	check_do $at_probe "kxfer stat | awk '\$1 == \"jobs_resumed\" { nr = \$2 } END { exit !nr }'"
}

test_flaps() { under "wire cut ten times for 0.5 s" 0 fault_flaps 10; }
test_flaps_that_jobs_outlive() { under_line "wire cut ten times for 0.5 s" fault_flaps 10; }

test_peer_silent() {
	under "peer silent, not deaf, for 15 s" 0 fault_netem 15 "loss 100%" $at_store
	expect_figure breaks '>=' 1
}

test_peer_deaf() {
	under "peer deaf, not silent, for 15 s" 0 fault_netem 15 "loss 100%" $at_probe
	expect_figure breaks '>=' 1
}

# ---- packets ----

test_loss_01() { under "0.1 % lost for 10 s" 0 fault_both_ways 10 "loss 0.1%"; }
test_loss_1() { under "1 % lost for 10 s" 0 fault_both_ways 10 "loss 1%"; }
test_loss_5() { under "5 % lost for 10 s" 0 fault_both_ways 10 "loss 5%"; }
test_loss_10() { under "10 % lost for 10 s" 0 fault_both_ways 10 "loss 10%"; }
test_loss_10_that_jobs_outlive() {
	under_line "10 % lost for 10 s" fault_both_ways 10 "loss 10%"
}
test_delay_50() { under "50 ms of delay for 10 s" 0 fault_both_ways 10 "delay 50ms 10ms"; }
test_duplicates_1() { under "1 % doubled for 10 s" 0 fault_both_ways 10 "duplicate 1%"; }
test_duplicates_10() { under "10 % doubled for 10 s" 0 fault_both_ways 10 "duplicate 10%"; }
test_reordering_1() { under "1 % out of order for 10 s" 0 fault_both_ways 10 "delay 5ms reorder 1%"; }
test_reordering_10() { under "10 % out of order for 10 s" 0 fault_both_ways 10 "delay 5ms reorder 10%"; }
test_corruption_01() { under "0.1 % corrupted for 10 s" 0 fault_both_ways 10 "corrupt 0.1%"; }
test_corruption_1() { under "1 % corrupted for 10 s" 0 fault_both_ways 10 "corrupt 1%"; }
test_corruption_5() { under "5 % corrupted for 10 s" 0 fault_both_ways 10 "corrupt 5%"; }
test_corruption_10() { under "10 % corrupted for 10 s" 0 fault_both_ways 10 "corrupt 10%"; }

# ---- machines that stand still ----

# A paused guest takes no frames off its end of the wire, and the card at the other end keeps those
# that it has. rxe_destroy_qp() waits for the QP's packets, and no job for that.
#
# node1 is the one that stands still: QEMU 7.2 leaves the socket blocking where it accepted the
# stream, which is node1's end (its flags in /proc/PID/fdinfo lack O_NONBLOCK). Were node2 paused,
# node1 would stand still too as soon as the socket is full, and notice nothing.
under_pause() { # FAULT LOSS_MS SECONDS
	local at_store=1 at_probe=2
	under "$1" "$2" fault_pause 1 "$3"
}

test_peer_paused_for_three_seconds() { under_pause "peer paused for 3 s" 0 3; }

test_peer_paused_for_thirty_seconds() {
	under_pause "peer paused for 30 s" 0 30
	expect_figure breaks '>=' 1
}

test_peer_paused_for_sixty_seconds() {
	under_pause "peer paused for 60 s" 0 60
	expect_figure breaks '>=' 1
}

test_peer_paused_for_sixty_seconds_that_jobs_outlive() {
	under_pause "peer paused for 60 s, jobs wait" $LOSS_MS 60
	expect_figure transfers_failed '==' 0
}

# A client that stands still notices nothing until it goes on.
test_client_paused() {
	local DETECTED=$((DETECTED + 20000))
	under "client paused for 20 s" 0 fault_pause $at_probe 20
}

# ---- the peer's programs, module and device ----

test_server_killed_and_started_again() {
	under "server killed and started again" 0 fault_server_killed
	expect_figure stores '==' 2
}

# The exports of another process are others: jobs do not wait for them.
test_server_killed_and_started_again_under_a_line() {
	under "server killed and started again, jobs wait" $LOSS_MS fault_server_killed
	expect_figure stores '==' 2
}

test_module_loaded_again_at_the_server() {
	under "server's module loaded again" 0 fault_module_renewed
	expect_figure stores '==' 2
}

test_device_of_the_server_renewed() {
	under "server's device removed and added" 0 fault_device_renewed $at_store
	expect_figure breaks '>=' 1
}

test_device_of_the_server_renewed_under_a_line() {
	under_line "server's device removed and added" fault_device_renewed $at_store
}

test_device_of_the_client_renewed() {
	under "client's device removed and added" 0 fault_device_renewed $at_probe
	expect_figure breaks '>=' 1
}

# ---- interfaces and addresses ----

test_interface_of_the_server_down() { under "server's interface down for 5 s" 0 fault_interface_down $at_store 5; }
test_interface_of_the_client_down() { under "client's interface down for 5 s" 0 fault_interface_down $at_probe 5; }
test_address_of_the_server_away() { under "server's address removed for 10 s" 0 fault_address_away $at_store 10; }
test_address_of_the_client_away() { under "client's address removed for 10 s" 0 fault_address_away $at_probe 10; }

test_address_of_the_client_changed() {
	local other=10.78.0.7 here
	here=$(address_of $at_probe)
	under "client's address changed for good" 0 fault_address_changed $at_probe $other
	check_do $at_probe "ip addr add $here/24 dev $(wire_of $at_probe); ip addr del $other/24 dev $(wire_of $at_probe)"
	check_do $at_probe "ip addr show dev $(wire_of $at_probe) | grep -wq $here || ip addr add $here/24 dev $(wire_of $at_probe)"
}

test_mtu_lowered() { under "server's MTU 1500 in place of 9000 for 10 s" 0 fault_mtu_lowered $at_store 10; }

# ---- clocks ----

test_clock_ahead() {
	under "clocks 1 h ahead" 0 fault_clocks 3600
	expect_figure breaks '==' 0
}

test_clock_back() {
	under "clocks 1 h back" 0 fault_clocks -3600
	expect_figure breaks '==' 0
}

fault_clocks() { fault_clock 1 "$1"; fault_clock 2 "$1"; sleep 3; }

# ---- machines that end; node2 boots again ----

test_panic_of_the_peer() {
	under "panic of the peer, which boots again" 0 fault_panic
	expect_figure stores '==' 2
}

test_power_cut_of_the_peer() {
	under "power cut of the peer, which boots again" 0 fault_power_cut
	expect_figure stores '==' 2
}

# The server's half of a connection whose client is no more: its grants, and the registrations for
# them, go with the link.
test_half_open_connection() {
	begin_store ""
	begin_probe 600
	nodes_until 60 jobs_run 20 || fail "jobs do not run"
	node_cut 2
	node_signal $at_probe "${probes[.]}" KILL
	expect_none_of $at_store exposures grants
	node_join 2
	tell_without_figures "client's process killed behind a cut"
	end_store ""
	expect_nothing_left 1
	expect_nothing_left 2
}

test_power_cut_of_the_client() {
	local at_store=1 at_probe=2
	begin_store ""
	begin_probe 600
	nodes_until 60 jobs_run 20 || fail "jobs do not run"
	node_off 2
	expect_none_of 1 exposures grants
	tell_without_figures "power cut of the client"
	end_store ""
	expect_nothing_left 1
	node_boot 2 || fail "node2 does not come back"
}

run_tests 2
