# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Faults of two machines. Each function lets one come, and returns when it is over. The peer is the
# node of store, $at_store; node2's power can be cut, while node1 is the switch.

# shellcheck disable=SC2154 # lib.sh has at_store, device and provider

fault_cut() { node_cut 2; sleep "$1"; node_join 2; } # SECONDS

fault_flaps() { # NUMBER
	local i
	for ((i = 0; i < $1; i++)); do fault_cut 0.5; sleep 0.5; done
}

fault_pause() { node_pause "$1"; sleep "$2"; node_resume "$1"; } # NODE SECONDS

# What leaves these nodes is delayed, dropped or changed.
fault_netem() { # SECONDS WORDS NODE...
	local node
	for node in "${@:3}"; do check_do "$node" "tc qdisc add dev $(wire_of "$node") root netem $2"; done
	sleep "$1"
	for node in "${@:3}"; do
		check_do "$node" "tc qdisc del dev $(wire_of "$node") root"
		renew_after_lost_qp1 "$node"
		[ "$lost_qp1" = no ] || printf "# rxe of node%s has lost QP 1 under '%s'; its device was renewed\n" \
			"$node" "$2"
	done
}

fault_both_ways() { fault_netem "$1" "$2" 1 2; } # SECONDS WORDS

# Each store gets another process.
fault_server_killed() {
	local name names=("${!stores[@]}")
	for name in "${names[@]}"; do end_store "${name#.}"; done
	for name in "${names[@]}"; do begin_store "${name#.}"; done
}

fault_module_renewed() {
	local name names=("${!stores[@]}")
	for name in "${names[@]}"; do end_store "${name#.}"; done
	check_do "$at_store" "rmmod kxfer_bench kxfer 2>/dev/null || rmmod kxfer; insmod /kxfer/kxfer.ko"
	for name in "${names[@]}"; do begin_store "${name#.}"; done
}

# What was exported on the old device is exported on the new one.
fault_device_renewed() { # NODE
	check_do "$1" "rdma link del $(device_of "$1"); sleep 2; rdma link add $(device_of "$1") type $provider netdev $(wire_of "$1")"
}

# rxe loses QP 1 with its interface, and nothing connects until the device is made anew.
fault_interface_down() { # NODE SECONDS
	local renew=true
	[ "$provider" != rxe ] || renew="rdma link del $(device_of "$1"); rdma link add $(device_of "$1") type $provider netdev $(wire_of "$1")"
	check_do "$1" "ip link set $(wire_of "$1") down; sleep $2; ip link set $(wire_of "$1") up; $renew"
}

# rxe loses QP 1, too, when a packet of rdma_cm is dropped on its way to the card (netem, a full queue).
# Sets $lost_qp1 if it was so.
renew_after_lost_qp1() { # NODE
	lost_qp1=no
	[ "$provider" = rxe ] || return 0
	node_begin "$1" "rdma res show qp | grep -q 'type GSI state ERR'"
	node_wait "$1" "$task" 30 || return 0
	# shellcheck disable=SC2034 # of the caller
	lost_qp1=yes
	fault_device_renewed "$1"
}

fault_address_away() { # NODE SECONDS
	check_do "$1" "ip addr del $(address_of "$1")/24 dev $(wire_of "$1"); sleep $2; ip addr add $(address_of "$1")/24 dev $(wire_of "$1")"
}

fault_address_changed() { # NODE NEW-ADDRESS
	check_do "$1" "ip addr add $2/24 dev $(wire_of "$1"); ip addr del $(address_of "$1")/24 dev $(wire_of "$1")"
	# Deleting the first address of a network takes the others of it along.
	check_do "$1" "ip addr show dev $(wire_of "$1") | grep -wq $2 || ip addr add $2/24 dev $(wire_of "$1")"
}

fault_mtu_lowered() { # NODE SECONDS
	check_do "$1" "ip link set $(wire_of "$1") mtu 1500; sleep $2; ip link set $(wire_of "$1") mtu 9000"
}

fault_clock() { # NODE SECONDS
	check_do "$1" "date -s @\$((\$(date +%s) + $2)) >/dev/null"
}

# The peer is node2 in these two.
fault_panic() {
	local name names=("${!stores[@]}")
	node_begin 2 "echo c >/proc/sysrq-trigger"
	nodes_until 60 node_has_died 2 || fail "node2 does not panic"
	fault_node2_again "${names[@]}"
}

fault_power_cut() {
	local names=("${!stores[@]}")
	fault_node2_again "${names[@]}"
}

node_has_died() { ! node_runs "$1"; } # NODE

fault_node2_again() { # NAME...
	local name
	node_off 2
	node_boot 2 || fail "node2 does not come back"
	for name; do begin_store "${name#.}"; done
}
