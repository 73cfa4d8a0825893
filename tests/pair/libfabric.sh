# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# libfabric's provider between two machines: its own tests and fi_pingpong with a side on each, an MPI
# program with ranks on both, as a user starts it, and a machine that loses its power meanwhile.
# `make check-libfabric NODES=2` calls it.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pair/lib_mpi.sh
. "$(dirname "$0")/lib_mpi.sh"

need libkxfer-fi.so "make libfabric"

# One CPU for all ranks of a node. Debian's openmpi-mca-params.conf leaves out mtl ofi and osc pt2pt.
over_kxfer="--hostfile hosts --map-by node --bind-to none --mca mpi_yield_when_idle 1"
over_kxfer+=" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include kxfer --mca osc pt2pt"
over_kxfer+=" -x FI_PROVIDER=kxfer"

# By default mpirun asks a silent node after 300 s.
notice_lost_nodes="--mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3"

# Seconds since then.
since() { echo $((SECONDS - $1)); } # SECONDS

# Jobs and pins end with their process.
expect_all_ended() {
	expect_none_of 1 jobs pins targets
	expect_none_of 2 jobs pins targets
}

# ---- its own tests ----

# Side b, of those that end themselves, ends by SIGKILL.
two_sides() { # NAME [STATUS-OF-B]
	local a b output status=0
	node_begin 1 "FI_PROVIDER=kxfer exec kxfer-fi-test $1 a $node1"
	a=$task
	node_begin 2 "FI_PROVIDER=kxfer exec kxfer-fi-test $1 b $node1"
	b=$task
	check_end 1 "$a" 120 "$1, side a" || return
	output=$(node_wait 2 "$b" 60 2>&1) || status=$?
	[ $status -eq "${2:-0}" ] || { note_lines "$output"; fail "$1, side b: status $status"; }
}

test_a_side_on_each_node() {
	local name names=(messages unexpected flood gather tags cancel several memory waiting)
	make_cluster || return
	if [ "$provider" = siw ]; then names+=(no-atomics); else names+=(atomics); fi
	for name in "${names[@]}"; do two_sides "$name"; done
	expect_all_ended
}

test_a_side_that_is_killed() {
	local name
	make_cluster || return
	for name in death-of-receiver death-of-sender death-in-a-stream death-of-memory; do two_sides $name 137; done
	expect_all_ended
}

# ---- fi_pingpong ----

pingpong() { # OPTION
	local command="FI_PROVIDER=kxfer exec fi_pingpong -p kxfer -e rdm -c -I 5 -S all $1" server client
	node_begin 1 "$command"
	server=$task
	node_begin 1 "until grep -q :B9E8 /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done"
	check_end 1 "$task" 30 "fi_pingpong does not listen"
	node_begin 2 "$command $node1"
	client=$task
	check_end 2 "$client" 120 "fi_pingpong, client"
	check_end 1 "$server" 30 "fi_pingpong, server"
	node_output 2 "$client" | grep -q '^1m ' || fail "fi_pingpong has not sent 1 MiB"
}

test_fi_pingpong() {
	make_cluster || return
	pingpong ""
	pingpong "-m tagged"
	expect_all_ended
}

# ---- MPI ----

# Where many processes share a CPU, the threads of the kernel that serve them come first.
ranks() { # NUMBER SECONDS
	local began=$SECONDS
	make_cluster || return
	check_user "mpirun $over_kxfer -np $1 nice -n 19 kxfer-mpi-ring" "$2" || return
	printf '# %s ranks on two nodes took %s s\n' "$1" "$(since $began)"
	node_output 1 "$task" | grep -q "^ring of $1 ranks: all right" || fail "the ranks do not say that all is right"
	expect_all_ended
}

test_mpi_with_02_ranks() { ranks 2 120; }
test_mpi_with_04_ranks() { ranks 4 120; }
test_mpi_with_16_ranks() { ranks 16 300; }
test_mpi_with_64_ranks() { ranks 64 1200; }

# ---- a machine that loses its power ----

test_power_cut_of_the_other_side() {
	local a
	make_cluster || return
	node_begin 1 "FI_PROVIDER=kxfer exec kxfer-fi-test power a $node1"
	a=$task
	node_begin 2 "FI_PROVIDER=kxfer exec kxfer-fi-test power b $node1"
	nodes_until 60 node_has 1 "^$a  the stream runs" || fail "nothing is sent: $(node_output 1 "$a")"
	node_off 2
	check_end 1 "$a" 60 "side a after the power cut"
	note_lines "$(node_output 1 "$a")"
	expect_none_of 1 jobs pins targets
	node_boot 2 || fail "node2 does not come back"
	make_cluster || return
	two_sides messages
}

no_ranks() { # NODE
	node_begin "$1" "! pidof kxfer-mpi-ring"
	node_wait "$1" "$task" 10 >/dev/null
}

# The ranks of node1 get errors and abort. mpirun may wait longer: for TCP, which tries again for minutes
# what mpirun has sent to node2 before it knew.
test_power_cut_of_a_node_with_ranks() {
	local mpirun began
	make_cluster || return
	node_begin 1 "$(by_user "mpirun $over_kxfer $notice_lost_nodes -np 4 kxfer-mpi-ring 1000")"
	mpirun=$task
	nodes_until 120 node_has 1 "^$mpirun  round 1 of" || fail "no round: $(node_output 1 "$mpirun")"
	node_off 2
	began=$SECONDS
	nodes_until 60 no_ranks 1 || fail "node1 has ranks after 60 s"
	printf '# the ranks ended %s s after the power cut\n' "$(since "$began")"
	expect_none_of 1 jobs pins targets
	nodes_until 10 node_has_ended 1 "$mpirun" || printf '# mpirun waits for node2\n'
	note_lines "$(node_output 1 "$mpirun" | tail -n 20)"
	node_signal 1 "$mpirun" KILL
	node_boot 2 || fail "node2 does not come back"
}

run_tests 2
