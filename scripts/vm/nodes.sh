# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Guests that reach each other, started, ordered about, paused, cut off and ended by a script of
# the host. node1 is the switch: while it runs, each other guest has a wire to it.
#
#	nodes_begin BUILD DIR           what the guests leave goes into DIR
#	node_start 1 --provider siw     with options of scripts/vm/run; node 1 is the first
#	node_do 1 'kxfer device list'   prints what the command prints; its status
#	node_begin 2 'kxfer serve ...'  does not wait; sets $task
#	node_wait 2 $task [SECONDS]     prints what it has printed; its status, or 124
#	node_pause 2; node_resume 2     the machine stands still
#	node_cut 2; node_join 2         its network card has no carrier
#	node_off 2                      its power is cut; node_start begins it again
#	nodes_end                       ends all; also by the caller's trap
#
# With NODES_IN_ONE=yes node 2 is a network namespace of node 1's machine, behind a veth pair, with a
# device of its own. That takes a driver that knows namespaces (rxe of Linux 7.2). It cannot be
# paused, cut or switched off.
#
# Each wait has a bound: $node_limit seconds, unless the call says another; NODE_SLOWNESS times as much
# with a checking kernel, or on a busy host.

vm=${vm:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
node_limit=120
node_slowness=${NODE_SLOWNESS:-1}
# By number: process id of scripts/vm/run, and of the machine.
declare -A node_runner=() node_machine=()
node_task=0
task=''
# Whether node 2 has its namespace.
nodes_space=''

nodes_say() { printf 'nodes: %s\n' "$*" >&2; }

nodes_begin() { # BUILD DIR
	nodes_build=$1
	nodes_dir=$2
	mkdir -p "$nodes_dir"
	exec {nodes_nap}<> <(:)
}

# Bash waits without a process for each nap.
nodes_nap() { read -rt "$1" -u "$nodes_nap" || true; }

# Waits until a command succeeds. Status 1: it did not within so many seconds.
nodes_until() { # SECONDS COMMAND...
	local end=$((SECONDS + $1 * node_slowness))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		nodes_nap 0.1
	done
}

# The node whose machine a node is on.
machine_of() { if [ "${NODES_IN_ONE:-no}" = yes ]; then echo 1; else echo "$1"; fi; } # NODE

node_dir() { echo "$nodes_build/vm/${nodes_dir##*/}-$(machine_of "$1")"; }

node_has() { # NODE PATTERN
	grep -aq -- "$2" "$(node_dir "$1")/out" 2>/dev/null
}

node_runs() {
	local runner=${node_runner[$(machine_of "$1")]:-}
	[ -n "$runner" ] && kill -0 "$runner" 2>/dev/null && { [ "$1" = "$(machine_of "$1")" ] || [ -n "$nodes_space" ]; }
}

node_is_up() { # NODE
	node_has "$1" '^0 =0' || ! node_runs "$1"
}

# Starts a guest, again if need be, and waits until it takes orders.
node_start() { # NODE OPTION...
	local node=$1 other wires=() fifo=$nodes_dir/orders-$1
	shift
	if [ "$node" != "$(machine_of "$node")" ]; then node_make_space "$node"; return; fi
	if [ "$node" -eq 1 ]; then
		for other in 2 3; do
			rm -f "$nodes_dir/wire-$other"
			wires+=(--wire "listen:$nodes_dir/wire-$other")
		done
	else
		nodes_until "$node_limit" test -S "$nodes_dir/wire-$node" ||
			{ nodes_say "node1 is not up, and it is the switch"; return 1; }
		wires=(--wire "connect:$nodes_dir/wire-$node")
	fi
	# What an earlier machine has answered must not be counted as this one's.
	rm -f "$fifo" "$nodes_dir/monitor-$node".{in,out} "$nodes_dir/node$node.monitor"
	mkfifo "$fifo" "$nodes_dir/monitor-$node".{in,out}
	rm -f "$(node_dir "$node")/out"
	"$vm/run" --build "$nodes_build" --name "${nodes_dir##*/}-$node" --node "$node" \
		"${wires[@]}" --orders "$fifo" --timeout 7200 --quiet-timeout 7200 --no-panic-on-warn \
		--qemu -chardev --qemu "pipe,id=monitor,path=$nodes_dir/monitor-$node" \
		--qemu -mon --qemu chardev=monitor,mode=control \
		--add "$vm/agent:/kxfer/agent" "$@" -- sh /kxfer/agent \
		>"$nodes_dir/node$node.run" 2>&1 </dev/null &
	node_runner[$node]=$!
	nodes_until "$node_limit" node_is_up "$node" || true
	node_has "$node" '^0 =0' || {
		nodes_say "node$node has not started:"
		sed 's/^/    /' "$nodes_dir/node$node.run" >&2
		return 1
	}
	node_machine[$node]=$(cat "$(node_dir "$node")/pid")
	eval "exec {node_orders_$node}>'$fifo' {node_monitor_$node}<>'$nodes_dir/monitor-$node.in'"
	: >"$nodes_dir/node$node.monitor"
	cat "$nodes_dir/monitor-$node.out" >>"$nodes_dir/node$node.monitor" &
	node_tell_machine "$node" qmp_capabilities
}

# The network of node 1 moves to the wire, with its device.
node_make_space() { # NODE
	node_do 1 "set -e; modprobe veth; ip netns add node$1; ip link add wire1 mtu 9000 type veth peer name wire2 mtu 9000 netns node$1; \
		rdma link del rxe0; ip addr flush dev eth0; ip addr add 10.78.0.1/24 dev wire1; ip link set wire1 up; \
		nsenter --net=/run/netns/node$1 sh -c 'ip link set lo up; ip addr add 10.78.0.$1/24 dev wire2; ip link set wire2 up; rdma link add rxe1 type rxe netdev wire2'; \
		rdma link add rxe0 type rxe netdev wire1; sleep 2" || return 1
	nodes_space=yes
}

# A command to the machine itself, by QEMU's monitor (QMP).
node_tell_machine() { # NODE COMMAND [ARGUMENTS]
	local descriptor=node_monitor_$1 log=$nodes_dir/node$1.monitor answers
	answers=$(grep -ac '"return"\|"error"' "$log" 2>/dev/null || true)
	printf '{"execute":"%s"%s}\n' "$2" "${3:+,\"arguments\":$3}" >&"${!descriptor}"
	nodes_until 10 machine_has_answered "$log" "${answers:-0}" ||
		{ nodes_say "node$1: the machine does not answer to $2"; return 1; }
	! tail -n 1 "$log" | grep -aq '"error"' ||
		{ nodes_say "node$1: $2: $(tail -n 1 "$log")"; return 1; }
}

machine_has_answered() { # LOG NUMBER-BEFORE
	[ "$(grep -ac '"return"\|"error"' "$1")" -gt "$2" ]
}

node_order() { # NODE LINE
	local descriptor
	descriptor=node_orders_$(machine_of "$1")
	printf '%s\n' "$2" >&"${!descriptor}"
}

# The command is one line. A call in a subshell does not count on for the others, so its process is
# a part of the name: an earlier command's status must not be taken for that of a new one.
node_begin() { # NODE COMMAND
	task=$BASHPID-$((++node_task))
	if [ "$1" = "$(machine_of "$1")" ]; then
		node_order "$1" "$task run $2"
	else
		node_order "$1" "$task in node$1 $2"
	fi
}

node_signal() { # NODE TASK SIGNAL
	node_order "$1" "$2 signal $3"
}

# What a command has printed so far.
node_output() { # NODE TASK
	sed -n "s/^$2  //p" "$(node_dir "$1")/out"
}

node_has_ended() { # NODE TASK
	node_has "$1" "^$2 =" || ! node_runs "$1"
}

node_status() { # NODE TASK
	local status
	status=$(sed -n "s/^$2 =//p" "$(node_dir "$1")/out")
	return "${status:-125}"
}

node_wait() { # NODE TASK [SECONDS]
	local late=no
	nodes_until "${3:-$node_limit}" node_has_ended "$1" "$2" || late=yes
	node_output "$1" "$2"
	[ $late = no ] || { nodes_say "node$1: no end of command $2"; return 124; }
	node_status "$1" "$2"
}

node_do() { # NODE COMMAND [SECONDS]
	node_begin "$1" "$2"
	node_wait "$1" "$task" "${3:-$node_limit}"
}

node_pause() { kill -STOP "${node_machine[$1]}"; }
node_resume() { kill -CONT "${node_machine[$1]}"; }

node_cut() { node_tell_machine "$1" set_link '{"name":"card","up":false}'; }
node_join() { node_tell_machine "$1" set_link '{"name":"card","up":true}'; }

node_off() { # NODE
	local orders=node_orders_$1 monitor=node_monitor_$1
	[ -n "${node_runner[$1]:-}" ] || return 0
	# Without its process id the machine has not started: its runner ends it.
	if [ -n "${node_machine[$1]:-}" ]; then
		kill -KILL "${node_machine[$1]}" 2>/dev/null || true
	else
		kill -TERM "${node_runner[$1]}" 2>/dev/null || true
	fi
	wait "${node_runner[$1]}" 2>/dev/null || true
	if [ -n "${node_machine[$1]:-}" ]; then eval "exec ${!orders}>&- ${!monitor}>&-"; fi
	unset "node_machine[$1]" "node_runner[$1]"
}

nodes_end() {
	local node
	for node in "${!node_runner[@]}"; do node_off "$node"; done
}
