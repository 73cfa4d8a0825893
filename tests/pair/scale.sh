# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# 64 processes on node1 that reach node2 by 20 of its addresses, a line for each: what a link and a
# session cost in memory, set-up time and keep-alive traffic. scripts/bench/scale takes these figures
# to more nodes; they are left in build/check-pair/scale-KERNEL-PROVIDER.json.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

nr_lines=20
quiet=24	# seconds in which only PINGs are sent
measured=10	# of these

addresses_of() { # NUMBER
	local i
	for ((i = 1; i <= $1; i++)); do printf '10.78.1.%s ' $i; done
}

# Slabs, vmalloc and memory of each CPU, in bytes; of a network card, packets and bytes sent.
look() { # NODE
	local command='cat /proc/sys/vm/stat_refresh;'
	# shellcheck disable=SC2016 # for the guest
	command+=' awk "/^(Slab|VmallocUsed|Percpu):/ { sum += \$2 } END { print sum * 1024 }" /proc/meminfo;'
	command+=' cat /sys/class/net/eth0/statistics/tx_packets /sys/class/net/eth0/statistics/tx_bytes'
	node_begin "$1" "$command"
	node_wait "$1" "$task" 30 | tr '\n' ' '
}

counter_is() { # NODE NAME NUMBER
	node_begin "$1" "kxfer stat | awk '\$1 == \"$2\" { exit \$2 != $3 }'"
	node_wait "$1" "$task" 10
}

# Sets $seen: what both nodes have and have sent meanwhile, as JSON, with what crowd says.
measure() { # PROCESSES LINES
	local first second crowd
	node_begin 1 "KXFER_PROVIDER=$provider exec $programs/crowd $1 $quiet 5 $(addresses_of "$2")"
	crowd=$task
	nodes_until 60 counter_is 1 live_links "$2" || fail "there are not $2 links at node1"
	nodes_until 60 counter_is 1 live_targets "$1" || fail "there are not $1 targets at node1"
	sleep 2
	first=$(look 1; look 2)
	sleep $measured
	second=$(look 1; look 2)
	node_begin 1 "kxfer stat | awk '\$1 == \"live_lanes\" { print \$2 }'"
	lanes=$(node_wait 1 "$task" 10)
	check_end 1 "$crowd" 180 crowd
	seen=$(node_output 1 "$crowd" | grep '^{' | jq -c --argjson lanes "${lanes:-0}" \
		--argjson a "[${first// /,}0]" --argjson b "[${second// /,}0]" --argjson s $measured '. + {
		lanes: $lanes, client_bytes: $b[0], server_bytes: $b[3],
		sent_packets_a_second: (($b[1] - $a[1] + $b[4] - $a[4]) / $s),
		sent_bytes_a_second: (($b[2] - $a[2] + $b[5] - $a[5]) / $s)}')
	note "$seen"
	figures=$seen
	expect_figure corrupt '==' 0
	expect_figure failed '==' 0
}

# An unused link closes after 30 s.
wait_for_quiet() {
	nodes_until 60 counter_is 1 live_links 0 || fail "node1 still has links"
	nodes_until 60 counter_is 2 live_links 0 || fail "node2 still has links"
}

test_sixty_four_processes_on_twenty_lines() {
	local one lines crowd out=$PAIR_OUT/scale-$PAIR_KERNEL-$provider.json
	check_do 2 "for a in $(addresses_of $nr_lines); do ip addr add \$a/24 dev eth0; done"
	check_do 1 "ip addr add 10.78.1.100/24 dev eth0"
	check_do 2 "for a in $(addresses_of $nr_lines); do kxfer listen add \$a || exit; done" 120
	begin_store ""
	# What is made once is there before anything is counted.
	measure 64 $nr_lines
	wait_for_quiet
	[ $wrong -eq 0 ] || return
	measure 1 1; one=$seen
	wait_for_quiet
	[ $wrong -eq 0 ] || return
	measure $nr_lines $nr_lines; lines=$seen
	wait_for_quiet
	measure 64 $nr_lines; crowd=$seen
	[ $wrong -eq 0 ] || return
	end_store ""
	expect_nothing_left 1
	expect_nothing_left 2
	jq -n --arg kernel "$PAIR_KERNEL" --arg provider "$provider" --argjson one "$one" \
		--argjson lines "$lines" --argjson crowd "$crowd" --argjson n $nr_lines '{
		kernel: $kernel, provider: $provider, seen: [$one, $lines, $crowd],
		lanes_of_a_link: ($lines.lanes / $n),
		link_and_session_bytes: (($lines.client_bytes - $one.client_bytes) / ($n - 1)),
		server_link_bytes: (($lines.server_bytes - $one.server_bytes) / ($n - 1)),
		session_bytes: (($crowd.client_bytes - $lines.client_bytes) / (64 - $n)),
		server_session_bytes: (($crowd.server_bytes - $lines.server_bytes) / (64 - $n)),
		set_up_ms_of_a_link: ($lines.set_up_ms / $n),
		keepalive_packets_a_second: (($lines.sent_packets_a_second - $one.sent_packets_a_second) / ($n - 1)),
		keepalive_bytes_a_second: (($lines.sent_bytes_a_second - $one.sent_bytes_a_second) / ($n - 1))}' >"$out"
	jq -r 'del(.seen) | to_entries[] | "# \(.key) \(.value | if type == "number" then (. * 10 | round / 10) else . end)"' "$out"
	check_do 2 "for a in $(addresses_of $nr_lines); do kxfer listen del \$a; done; ip addr flush dev eth0 to 10.78.1.0/24" 120
	check_do 1 "ip addr flush dev eth0 to 10.78.1.0/24"
}

run_tests 2
