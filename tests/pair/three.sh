# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Three machines: node1 serves, node2 and node3 are its clients, and one of them loses its power.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

at_store=1

# One store for each client, because a probe knows all that is in its store.
begin_both() { # SECONDS
	local at_probe
	for at_probe in 2 3; do
		begin_store $at_probe
		begin_probe "$1" 0 $at_probe
	done
}

test_two_clients_at_once() {
	local node number ok=0
	begin_both 15
	for node in 2 3; do
		end_probe $node
		expect_exactly_once
		expect_figure ok '>' 100
		expect_figure breaks '==' 0
		number=$(figure ok)
		ok=$((ok + ${number:-0}))
	done
	printf '# two clients of one server: %s jobs in 15 s\n' $ok
	for node in 2 3; do end_store $node; done
	for node in 1 2 3; do expect_nothing_left $node; done
}

# Two clients write to one server: what each gets alone, and both together.
test_incast() {
	local node tasks=() rates=() bench="kxfer --json bench write --size 64K --depth 8 --duration 3 $node1"
	# What is written is verified: each client has memory of its own there.
	begin_serve bench-3 "bench-2=mem:16M bench-3=mem:16M --writable --bench"
	for node in 2 3; do
		node_begin $node "$bench --export bench-$node"
		note_rate $node "$task"
	done
	for node in 2 3; do
		node_begin $node "$bench --export bench-$node"
		tasks[node]=$task
	done
	for node in 2 3; do note_rate $node "${tasks[node]}"; done
	printf '# incast, WRITE of 64 KiB, MB/s: alone %s and %s, together %s and %s\n' "${rates[@]}"
	end_serve
}

# Adds to $rates, in MB/s.
note_rate() { # NODE TASK
	local rate
	check_end "$1" "$2" 120 "bench write"
	rate=$(node_output "$1" "$2" | jq -r '.total.bandwidth_bytes_per_s / 1e6 | floor' 2>/dev/null)
	rates+=("${rate:-0}")
	[ "${rate:-0}" -gt 0 ] || fail "node$1 has no rate"
}

links_of() { # NODE NUMBER
	node_begin "$1" "kxfer stat | awk '\$1 == \"live_links\" { exit \$2 != $2 }'"
	node_wait "$1" "$task" 10
}

# What the server holds for the one goes; the other one notices nothing.
test_one_of_two_clients_loses_its_power() {
	local at_probe
	begin_both 600
	nodes_until 60 jobs_run 20 2 || fail "jobs of node2 do not run"
	nodes_until 60 jobs_run 20 3 || fail "jobs of node3 do not run"
	links_of 1 2 || fail "there are not two links"
	node_off 3
	unset 'probes[.3]'
	nodes_until 20 links_of 1 1 || fail "the link of node3 is there after 20 s"
	end_store 3
	stop_probe 2
	expect_exactly_once
	expect_figure breaks '==' 0
	tell "power cut of another client"
	end_store 2
	expect_nothing_left 1
	node_boot 3 || fail "node3 does not come back"
	at_probe=3
	begin_store 3
	begin_probe 5 0 3
	end_probe 3
	end_store 3
}

run_tests 3
