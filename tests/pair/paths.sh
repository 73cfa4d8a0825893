# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Two addresses of one node as two paths (--via): one of them falls silent while bytes go over both.
# Told is how much moved before, meanwhile and afterwards.
#
# The server drops what comes to its first address. So links over that path are silent, and the
# other path, on the same wire, is not touched.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

other1=10.78.2.1
other2=10.78.2.2
MIB=${PATHS_MIB:-320}
SILENCE=2	# --silence, seconds
# Until nothing of the silent path is waited for: its silence, one PING more, and the rest of a busy
# machine.
BOUND_MS=12000

begin_paths() {
	check_do 1 "ip addr replace $other1/24 dev $(wire_of 1)"
	check_do 2 "ip addr replace $other2/24 dev $(wire_of 2)"
	check_do 2 "[ -e /tmp/file ] || head -c $((MIB << 20)) /dev/urandom >/tmp/file" 120
	begin_serve inbox "inbox=mem:${MIB}M --writable"
	check_do 1 "kxfer listen list | grep -q $other1 || kxfer listen add $other1 --no-key"
}

cut_path() {
	check_do 1 "nft 'table ip pair { chain in { type filter hook input priority 0; ip daddr $node1 drop; }; }'"
}

join_path() { check_do 1 "nft delete table ip pair"; }

# Prints milliseconds and bytes written, five times a second, until it is ended.
begin_watch() {
	# shellcheck disable=SC2016 # for the guest
	node_begin 2 'while :; do awk -v ms=$(cut -d " " -f 1 /proc/uptime | tr -d .)0 "\$1 == \"bytes_written\" { print ms, \$2 }" /sys/kernel/debug/kxfer/counters; usleep 200000; done'
	watch=$task
}

end_watch() {
	node_signal 2 "$watch" TERM
	nodes_until 20 node_has_ended 2 "$watch" || fail "the watch does not end"
}

now_ms() { # NODE
	node_begin "$1" "cut -d ' ' -f 1 /proc/uptime"
	node_wait "$1" "$task" 10 | tr -d '.\r' | sed 's/$/0/'
}

# Bytes a second until the cut; the longest time without any byte; bytes a second from the end of
# that on. Sets $before, $still and $after.
read_watch() { # CUT-MS
	read -r before still after < <(node_output 2 "$watch" | awk -v cut="$1" '
		NF != 2 { next }
		!n++ { first = $1; base = bytes = $2; moved = $1 }
		$2 > bytes {
			if (!begun) { begun = 1; first = moved; base = bytes }
			if ($1 - moved > still && $1 > cut) { still = $1 - moved; from = $1; at = $2 }
			bytes = $2; moved = $1
		}
		$1 <= cut { left = $1; sum = bytes - base }
		END {
			printf("%d %d %d\n", (left > first) ? sum / (left - first) : 0, still,
				(moved > from) ? (bytes - at) / (moved - from) : 0)
		}')
}

# Whether the peer's path has changed since; the counter is the node's.
path_changes() {
	node_begin 2 "awk '\$1 == \"paths_changed\" { print \$2 }' /sys/kernel/debug/kxfer/counters"
	node_wait 2 "$task" 10
}

has_moved() { # BYTES
	node_begin 2 "awk '\$1 == \"bytes_written\" { exit !(\$2 > $1) }' /sys/kernel/debug/kxfer/counters"
	node_wait 2 "$task" 10
}

written() {
	node_begin 2 "awk '\$1 == \"bytes_written\" { print \$2 }' /sys/kernel/debug/kxfer/counters"
	node_wait 2 "$task" 10
}

test_a_put_outlives_one_of_two_paths() {
	local base cut changes
	begin_paths
	changes=$(path_changes)
	base=$(written)
	begin_watch
	node_begin 2 "kxfer put --silence $SILENCE --via $other1 /tmp/file $node1/inbox"
	transfer=$task
	nodes_until 60 has_moved $((base + (MIB << 18))) || fail "nothing moves: $(node_output 2 "$transfer")"
	check_do 2 "kxfer --json link list | jq -e '[.[] | select(.state == \"live\" and .written_bytes > 1000000)] | length > 1'"
	cut=$(now_ms 2)
	cut_path
	check_end 2 "$transfer" 180
	note_lines "$(node_output 2 "$transfer")"
	end_watch
	join_path
	read_watch "$cut"
	note "over two paths $before KB/s; one silent: nothing for $still ms; then over one $after KB/s"
	[[ $(node_output 2 "$transfer") == *"by the receiver"* ]] || fail "it is not verified"
	[[ $(node_output 2 "$transfer") != *broke* ]] || fail "its user had to see a break"
	[ "$(path_changes)" -gt "$changes" ] || fail "no peer has changed its path"
	[ "$still" -lt $BOUND_MS ] || fail "bytes stood still for $still ms"
	end_serve
}

# The path that was silent is used again, by a put that begins while it is.
test_a_path_that_works_again_is_used_again() {
	local changes
	begin_paths
	cut_path
	node_begin 2 "kxfer put --limit $((MIB / 40))M --silence $SILENCE --via $other1 /tmp/file $node1/inbox"
	transfer=$task
	nodes_until 60 has_moved "$(($(written) + 1000000))" || fail "nothing moves: $(node_output 2 "$transfer")"
	changes=$(path_changes)
	join_path
	nodes_until 60 has_changed "$changes" || fail "no peer goes back to its first path"
	check_end 2 "$transfer" 180
	note_lines "$(node_output 2 "$transfer")"
	[[ $(node_output 2 "$transfer") == *"by the receiver"* ]] || fail "it is not verified"
	[[ $(node_output 2 "$transfer") != *broke* ]] || fail "its user had to see a break"
	end_serve
}

# Prints what 2000 round trips took over two paths, of which one falls silent if a command does that.
ping_both() { # [COMMAND]
	local ping
	node_begin 2 "kxfer --json ping -c 2000 -i 0.005 --silence $SILENCE --via $other1 $node1"
	ping=$task
	nodes_nap 4
	"${@:-true}"
	node_wait 2 "$ping" 120 | tail -n 1 | jq -c '{answered, p50_ns, p99_ns, max_ns}'
}

# A round trip waits until the other path is taken; that is one of many.
test_round_trips_go_on_over_the_other_path() {
	local quiet cut
	begin_paths
	quiet=$(ping_both)
	cut=$(ping_both cut_path)
	join_path
	note "round trips, nothing cut: $quiet"
	note "round trips, one path silent: $cut"
	jq -se 'length == 2 and all(.answered == 2000)' <<<"$quiet$cut" >/dev/null || fail "not all were answered"
	jq -se ".[0].max_ns > 1e9 and .[0].max_ns < ${BOUND_MS}e6" <<<"$cut" >/dev/null ||
		fail "the longest took another time than it takes to notice"
	end_serve
}

# Both nodes have an export of that name and length, and neither has a cookie.
test_addresses_of_two_nodes_are_no_paths() {
	local put status=0
	begin_serve inbox "inbox=mem:1M --writable --cookie 0"
	node_begin 2 "exec kxfer serve inbox=mem:1M --writable --cookie 0 --listen $node2"
	other=$task
	nodes_until 30 node_has 2 "^$other  .*serving.*inbox" || fail "serve: $(node_output 2 "$other")"
	check_do 2 "head -c 100000 /dev/urandom >/tmp/small"
	node_begin 2 "kxfer put --via $node2 /tmp/small $node1/inbox"
	put=$(node_wait 2 "$task" 60 2>&1) || status=$?
	note_lines "$put"
	[ $status -ne 0 ] || fail "a put went to two nodes"
	[[ $put == *"does not lead to the same export"* ]] || fail "it does not say why"
	node_signal 2 "$other" TERM
	check_end 2 "$other" 30 serve
	end_serve
}

has_changed() { [ "$(path_changes)" -gt "$1" ]; }

run_tests 2
