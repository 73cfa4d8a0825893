# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# HOUR_MINUTES (2) of mixed traffic on one pair, with a fault every 20 s: READs, WRITEs, SENDs,
# NOTIFYs and atomics by probes whose jobs end with the link ("ends") and whose jobs wait for
# another one ("waits"), and files that are put and got. The faults are chosen by HOUR_SEED, which is
# printed. At the end every job and byte is accounted for, and nothing has grown.
#
# HOUR_FAULTS, names of the table below, leaves out the others. build/check-pair/hour-KERNEL-PROVIDER
# has what each fault did (.jsonl), and the memory of node1 and node2 (.memory).

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pair/lib_faults.sh
. "$(dirname "$0")/lib_faults.sh"

minutes=${HOUR_MINUTES:-2}
every=20	# seconds
# A fault ends, and this many seconds later jobs run again. A guest that boots takes its time before.
recovered=60
# KiB by which the slabs of node1 may differ: what the kernel keeps for packets and connections that
# have ended comes and goes.
slab_slack=12288
out=$PAIR_OUT/hour-$PAIR_KERNEL-$provider

declare -A faults=(
	[cut_1_s]="fault_cut 1"
	[cut_12_s]="fault_cut 12"
	[flaps]="fault_flaps 5"
	[peer_paused_3_s]="fault_pause 2 3"
	[peer_paused_12_s]="fault_pause 2 12"
	[client_paused_12_s]="fault_pause 1 12"
	[peer_silent_12_s]="fault_netem 12 'loss 100%' 2"
	[client_silent_12_s]="fault_netem 12 'loss 100%' 1"
	[loss_1]="fault_both_ways 10 'loss 1%'"
	[loss_5]="fault_both_ways 10 'loss 5%'"
	[corrupt_1]="fault_both_ways 10 'corrupt 1%'"
	[duplicate_10]="fault_both_ways 10 'duplicate 10%'"
	[reorder_25]="fault_both_ways 10 'delay 5ms reorder 25% 50%'"
	[delay_50]="fault_both_ways 10 'delay 50ms 10ms'"
	[server_killed]="fault_server_killed"
	[device_renewed]="fault_device_renewed 2"
	[client_device_renewed]="fault_device_renewed 1"
	[interface_down]="fault_interface_down 2 3"
	[address_away]="fault_address_away 2 5"
	[mtu_lowered]="fault_mtu_lowered 2 8"
	[clock_ahead]="fault_clock 2 3600"
	[clock_back]="fault_clock 1 -3600"
	[module_renewed]="hour_module_renewed"
	[power_cut]="hour_power_cut"
	[panic]="hour_panic"
)

# ---- the folder of node 2, used by node 1 ----

begin_folder() {
	node_begin 2 "mkdir -p /tmp/inbox; exec kxfer serve --dir /tmp/inbox --writable --listen $(address_of 2)"
	folder=$task
	nodes_until 60 node_has 2 "^$folder  .*\(serving\|listening\)" || fail "serve: $(node_output 2 "$folder")"
}

end_folder() {
	node_signal 2 "$folder" TERM
	check_end 2 "$folder" 60 serve
}

hour_module_renewed() { end_folder; fault_module_renewed; begin_folder; }
hour_power_cut() { fault_power_cut; begin_folder; }
hour_panic() { fault_panic; begin_folder; }

# Sets $files, $failed, $wrong_files.
ask_mover() {
	local line
	line=$(node_output 1 "$mover" | grep '^{' | tail -n 1)
	read -r files failed wrong_files < <(jq -r '"\(.files) \(.failed) \(.wrong)"' <<<"${line:-"{}"}")
}

files_move() { local before=$1; ask_mover; [ "${files:-null}" != null ] && [ "$files" -gt "$before" ]; }

# ---- figures ----

# All live_* counters of a node in one line.
live_of() { # NODE
	node_begin "$1" "kxfer stat | awk '/^live_/ { printf \"%s %s \", \$1, \$2 }'"
	node_wait "$1" "$task" 30
}

live_is() { live=$(live_of "$1"); [ "$live" = "$2" ]; } # NODE LINE

note_memory() {
	printf '%s\tnode1 %s KiB %s\tnode2 %s KiB %s\n' $((SECONDS - began)) \
		"$(slab_of 1)" "$(live_of 1)" "$(slab_of 2)" "$(live_of 2)" >>"$out.memory"
}

# Asks each probe, and sets $before: what has succeeded until now, by probe.
declare -A before=()
mark() {
	local name
	for name in ends waits; do
		ask_probe "$name" || fail "probe $name does not answer"
		before[$name]=$figures
	done
}

# What a fault did: the difference of two marks, and the longest times between them.
note_fault() { # FAULT
	local name
	for name in ends waits; do
		ask_probe "$name" || fail "probe $name does not answer"
		node_output 1 "${probes[.$name]}" | grep '^{' |
			jq -cs --arg fault "$1" --arg jobs "$name" --argjson at $((SECONDS - began)) \
			--argjson old "${before[$name]}" '
			map(select(.marks > $old.marks)) | last as $new |
			{at: $at, fault: $fault, jobs: $jobs, ok: ($new.ok - $old.ok),
			 submitted: ($new.submitted - $old.submitted), breaks: ($new.breaks - $old.breaks),
			 failed: (([$new.errors[]] | add // 0) - ([$old.errors[]] | add // 0)),
			 detected_ms: (map(.detected_ms) | max), recovered_ms: (map(.recovered_ms) | max),
			 wrong: ($new.lost + $new.doubled + $new.corrupt)}' >>"$out.jsonl"
	done
}

print_sums() {
	jq -rs 'group_by([.fault, .jobs])[] | [.[0].fault, .[0].jobs, length, (map(.submitted) | add),
		(map(.ok) | add), (map(.failed) | add), (map(.breaks) | add),
		(map(.detected_ms) | max), (map(.recovered_ms) | max)] | @tsv' "$out.jsonl" |
		awk -F '\t' 'BEGIN { printf "# %-22s %-6s %5s %9s %8s %7s %7s %12s %12s\n", "fault", "jobs",
			"times", "submitted", "ok", "errors", "breaks", "detected ms", "recovered ms" }
		{ printf "# %-22s %-6s %5d %9d %8d %7d %7d %12d %12d\n", $1, $2, $3, $4, $5, $6, $7, $8, $9 }'
}

# ---- the hour ----

strike() { # FAULT
	local name node
	mark
	eval "${faults[$1]}"
	for node in 1 2; do
		renew_after_lost_qp1 $node
		[ "$lost_qp1" = no ] || printf "# rxe of node%s has lost QP 1 in %s; its device was renewed\n" $node "$1"
	done
	for name in ends waits; do
		nodes_until $recovered jobs_run "$(jq .ok <<<"${before[$name]}")" "$name" ||
			fail "$((SECONDS - began)) s: jobs of '$name' do not run $recovered s after $1"
	done
	note_fault "$1"
}

rest_until() { # SECOND
	while [ $SECONDS -lt "$1" ] && node_runs 1; do nodes_nap 0.5; done
}

# All faults once, in a random order, and so on.
deal_faults() {
	local i other names
	read -ra deck <<<"${HOUR_FAULTS:-$(printf '%s\n' "${!faults[@]}" | sort | tr '\n' ' ')}"
	names=("${deck[@]}")
	for ((i = ${#names[@]} - 1; i > 0; i--)); do
		other=$((RANDOM % (i + 1)))
		deck[i]=${names[other]}
		names[other]=${names[i]}
	done
	deck[0]=${names[0]}
}

let_it_run() {
	local next deck=() end=$((SECONDS + minutes * 60))
	while [ $SECONDS -lt $end ]; do
		next=$((SECONDS + every))
		[ ${#deck[@]} -gt 0 ] || deal_faults
		strike "${deck[-1]}"
		unset 'deck[-1]'
		nr_faults=$((nr_faults + 1))
		[ $((nr_faults % 3)) -ne 0 ] || note_memory
		node_runs 1 || return
		rest_until $next
	done
}

end_all() {
	local name
	ask_mover
	node_do 1 "touch /tmp/mover.end" >/dev/null
	check_end 1 "$mover" 180 mover.sh
	ask_mover
	[ "$wrong_files" = 0 ] || fail "$wrong_files files have come back with other bytes"
	for name in ends waits; do
		stop_probe "$name"
		expect_exactly_once
		expect_figure ok '>' 100
	done
	for name in ends waits; do end_store "$name"; done
	end_folder
}

# The first minutes fill the caches; the state in which nothing runs can be compared with itself.
check_memory() {
	local slab
	nodes_until 60 live_is 1 "$live_before" || fail "node1 has $live, and had $live_before"
	nodes_until 60 live_is 2 "$live_before" || fail "node2 has $live, and node1 had $live_before"
	slab=$(slab_of 1)
	printf '# node1: unreclaimable slab %s KiB before, %s KiB after; the same counters\n' "$slab_before" "$slab"
	[ $((slab - slab_before)) -lt $slab_slack ] || fail "slabs have grown from $slab_before to $slab KiB"
}

begin_all() {
	local name
	begin_folder
	for name in ends waits; do begin_store $name; done
	begin_probe 36000 0 ends
	begin_probe 36000 120000 waits
	node_begin 1 "exec $programs/mover.sh $(address_of 2)/inbox"
	mover=$task
	for name in ends waits; do
		nodes_until 60 jobs_run 20 "$name" || fail "jobs of '$name' do not run"
	done
	nodes_until 120 files_move 0 || fail "no file moves: $(node_output 1 "$mover")"
}

test_mixed_traffic_outlives_all_faults() {
	local began nr_faults=0 seed=${HOUR_SEED:-$((RANDOM * 32768 + RANDOM))}
	RANDOM=$seed
	rm -f "$out.jsonl" "$out.memory"
	printf '# %s minutes, a fault every %s s, HOUR_SEED=%s\n' "$minutes" $every "$seed"
	# What is made once is there before anything is counted.
	begin_store; begin_probe 5; end_probe; end_store
	nodes_until 60 live_is_idle 1
	live_before=$live
	slab_before=$(slab_of 1)
	began=$SECONDS
	begin_all
	[ $wrong -ne 0 ] || let_it_run
	end_all
	note_memory
	[ ! -e "$out.jsonl" ] || print_sums
	printf '# %s faults in %s s; %s files and back, %s commands ended with an error\n' \
		$nr_faults $((SECONDS - began)) "$files" "$failed"
	check_memory
	[ $nr_faults -gt 0 ] || fail "no fault has come"
}

# A link stays for 30 s without use.
live_is_idle() { # NODE
	live=$(live_of "$1")
	[[ $live == *'live_links 0 '* ]]
}

run_tests 2
