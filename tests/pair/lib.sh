# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the scripts of tests/pair share: guests (scripts/vm/nodes.sh), results as leaves of KTAP,
# and the two programs that tell what becomes of jobs (tests/guest/pair).
#
# A script defines functions test_NAME and calls `run_tests NODES`. Each test begins with so many
# guests that answer. A test fails if one of its checks does. What it tells of a fault becomes a row
# of the table (tests/pair/table).

# shellcheck source=scripts/vm/nodes.sh
. "$PAIR_TOP/scripts/vm/nodes.sh"

provider=$PAIR_PROVIDER
# shellcheck disable=SC2034 # used by the scripts
device=${provider}0
node1=10.78.0.1
# shellcheck disable=SC2034
node2=10.78.0.2
# Store is on one node, and probe on another, unless a test says otherwise.
at_store=2
at_probe=1
# A listener outside of the first network namespace needs a key.
keyed=''
[ "${NODES_IN_ONE:-no}" = no ] || { at_store=1; at_probe=2; keyed='--key pair'; }
# Tasks by the name of the store; that of the only one is empty.
declare -A stores=() probes=() probe_nodes=()
rows=$PAIR_OUT/rows
programs=/kxfer-tests/pair
wrong=0
said=''

note() { said+="#      # $*"$'\n'; }

fail() {
	note "$*"
	wrong=1
}

note_lines() { while IFS= read -r line; do note "$line"; done <<<"$1"; }

# A command on a node; if it fails, the test does, and shows what it has printed.
check_do() { # NODE COMMAND [SECONDS]
	node_begin "$1" "$2"
	check_end "$1" "$task" "${3:-$node_limit}" "$2"
}

check_end() { # NODE TASK [SECONDS [NAME]]
	local output status=0
	output=$(node_wait "$1" "$2" "${3:-$node_limit}" 2>&1) || status=$?
	[ $status -eq 0 ] || {
		note_lines "$output"
		fail "node$1: ${4:-command $2}: status $status"
	}
	return $status
}

# The guests that a test begins with; one that has died is started again.
boot() { # NODE...
	local node
	for node; do
		node_runs "$node" || node_boot "$node" || { fail "node$node does not start"; return 1; }
	done
}

# A script that wants more of a machine says which options of scripts/vm/run.
node_options() { :; } # NODE

node_boot() { # NODE
	local options=()
	mapfile -t options < <(node_options "$1")
	node_start "$1" --kernel "$PAIR_KERNEL" --provider "$provider" --memory 1024 \
		${options[@]+"${options[@]}"}
}

# The guests go on after a warning, so that a test can tell of it. rxe's own are no exception.
alarms='WARNING:|BUG:|Oops|KASAN|refcount_t|Call Trace|blocked for more than|kxfer.*leak'

check_logs() { # NODE...
	local node found
	for node; do
		node_runs "$node" || { fail "node$node has died"; continue; }
		node_begin "$node" "dmesg -c"
		found=$(node_wait "$node" "$task" 2>&1 | grep -E "$alarms")
		[ -z "$found" ] || { note_lines "$found"; fail "the kernel of node$node says that"; }
	done
}

emit() { # NAME
	local word=ok
	[ $wrong -eq 0 ] || word='not ok'
	[ -z "$row" ] || write_row "$1"
	printf '%s %s/%s/pair/%s.%s\n' "$word" "$PAIR_KERNEL" "$provider" "$PAIR_SCRIPT" "$1"
	printf '%s' "$said"
}

run_tests() { # NODES
	local name
	trap nodes_end EXIT
	trap 'exit 143' INT TERM
	nodes_begin "$PAIR_BUILD" "$PAIR_OUT/$PAIR_KERNEL-$provider-$PAIR_SCRIPT"
	for name in $(compgen -A function test_); do
		# shellcheck disable=SC2053 # a pattern on purpose
		[[ ${name#test_} == ${PAIR_TEST:-*} ]] || continue
		wrong=0
		said=''
		row=''
		# shellcheck disable=SC2046 # numbers
		if boot $(seq "$1"); then "$name"; check_logs $(seq "$1"); fi
		end_programs
		emit "${name#test_}"
	done
}

address_of() { echo "10.78.0.$1"; } # NODE

# The interface that the wire is on, and the RDMA device on it. Two nodes in one guest have others.
wire_of() { if [ "${NODES_IN_ONE:-no}" = no ]; then echo eth0; else echo "wire$1"; fi; } # NODE
device_of() { if [ "${NODES_IN_ONE:-no}" = no ]; then echo "${provider}0"; else echo "rxe$(($1 - 1))"; fi; } # NODE

# ---- kxfer serve on node 1 ----

# Starts kxfer serve, and waits until it says that it serves NAME.
begin_serve() { # NAME OPTIONS
	[ -z "$keyed" ] || check_do 1 "head -c 32 /dev/urandom >/tmp/pair.key && kxfer key add pair /tmp/pair.key"
	node_begin 1 "exec kxfer serve $2 $keyed --listen $node1"
	server=$task
	nodes_until 30 node_has 1 "^$server  .*serving.*$1" || fail "serve: $(node_output 1 "$server")"
}

end_serve() {
	node_signal 1 "$server" TERM
	check_end 1 "$server" 30
}

# ---- store and probe ----

begin_store() { # [NAME]
	node_begin "$at_store" "KXFER_STORE=${1:-} KXFER_HERE=$(address_of "$at_store")$(settings) exec $programs/store"
	stores[.${1:-}]=$task
	nodes_until 60 node_has "$at_store" "^$task  store: ready" ||
		fail "store is not ready: $(node_output "$at_store" "$task")"
}

settings() { echo " KXFER_PROVIDER=$provider${keyed:+ KXFER_KEY=pair}"; }

end_store() { # [NAME]
	local store=${stores[.${1:-}]}
	node_signal "$at_store" "$store" KILL
	nodes_until 30 node_has_ended "$at_store" "$store" || fail "store does not end"
	unset "stores[.${1:-}]"
}

begin_probe() { # SECONDS [LOSS_MS [NAME]]
	node_begin "$at_probe" "KXFER_STORE=${3:-} KXFER_PEER=$(address_of "$at_store")$(settings) exec $programs/probe $1 ${2:-0}"
	nodes_until 60 node_has "$at_probe" "^$task  probe: begins" ||
		fail "probe does not begin: $(node_output "$at_probe" "$task")"
	probes[.${3:-}]=$task
	probe_nodes[.${3:-}]=$at_probe
	probe_limit=$(($1 + 120))
}

# Sets $figures: what probe has printed last, or nothing. The test fails unless all is well.
end_probe() { # [NAME [SECONDS]]
	local output probe=${probes[.${1:-}]} node=${probe_nodes[.${1:-}]}
	if output=$(node_wait "$node" "$probe" "${2:-$probe_limit}" 2>&1); then :; else
		fail "probe: status $?"
	fi
	unset "probes[.${1:-}]"
	note_lines "$(grep -v '^{\|^probe: ' <<<"$output" | tail -n 20)"
	# The times are those since the mark before.
	figures=$(grep '^{' <<<"$output" | jq -cs 'select(length > 0) | last +
		{detected_ms: (map(.detected_ms) | max), recovered_ms: (map(.recovered_ms) | max)}')
	note "$figures"
}

# Lets probe end at its next round.
stop_probe() { # [NAME]
	node_signal "${probe_nodes[.${1:-}]}" "${probes[.${1:-}]}" TERM
	end_probe "${1:-}" 180
}

# Sets $figures to what probe has done until now. Status 1: it does not say it within 5 s.
ask_probe() { # [NAME]
	local node=${probe_nodes[.${1:-}]} probe=${probes[.${1:-}]} marks
	marks=$(node_output "$node" "$probe" | grep -c '^{"marks"')
	node_signal "$node" "$probe" USR1
	nodes_until 5 probe_has_said "$node" "$probe" "$marks" || return 1
	figures=$(node_output "$node" "$probe" | grep '^{' | tail -n 1)
}

probe_has_said() { # NODE TASK NUMBER-BEFORE
	[ "$(node_output "$1" "$2" | grep -c '^{"marks".*}$')" -gt "$3" ]
}

# Whether jobs succeed, and more than so many have.
jobs_run() { # NUMBER [NAME]
	ask_probe "${2:-}" && [ "$(figure down)" = 0 ] && [ "$(figure ok)" -gt "$1" ]
}

# A test that has failed half-way leaves programs behind, which would disturb the next one.
end_programs() {
	local name
	for name in "${!probes[@]}"; do node_signal "${probe_nodes[$name]}" "${probes[$name]}" KILL; done
	for name in "${!stores[@]}"; do node_signal "$at_store" "${stores[$name]}" KILL; done
	stores=()
	probes=()
}

figure() { # NAME
	sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" <<<"$figures"
}

expect_figure() { # NAME OPERATOR NUMBER
	local value
	value=$(figure "$1")
	if [ -n "$value" ] && awk "BEGIN { exit !($value $2 $3) }"; then return; fi
	fail "$1 is '$value', and should be $2 $3"
}

expect_exactly_once() {
	expect_figure lost '==' 0
	expect_figure doubled '==' 0
	expect_figure corrupt '==' 0
	expect_figure reordered '==' 0
}

# ---- what is left ----

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

slab_of() { # NODE; in KiB, without what can be given back at once
	node_begin "$1" "sync; echo 3 >/proc/sys/vm/drop_caches; awk '\$1 == \"SUnreclaim:\" { print \$2 }' /proc/meminfo"
	node_wait "$1" "$task" 30
}

# ---- rows of the table ----

# Remembers the figures of probe as those of a fault.
tell() { # FAULT
	fault=$1
	row=$figures
	printf '# %-44s ok %7s  errors %-40s detected %6s ms  recovered %6s ms\n' "$1" "$(figure ok)" \
		"$(jq -r '.errors | to_entries | map("\(.key) \(.value)") | join(", ")' <<<"$figures")" \
		"$(figure detected_ms)" "$(figure recovered_ms)"
}

# The program that counts is gone, with what it knew.
tell_without_figures() { figures='{"errors": {}}'; tell "$1"; } # FAULT

write_row() { # TEST
	mkdir -p "$rows"
	jq -c --arg fault "$fault" --arg kernel "$PAIR_KERNEL" --arg provider "$provider" \
		--arg test "$PAIR_SCRIPT:$1" --argjson passed "$((! wrong))" \
		'{fault: $fault, kernel: $kernel, provider: $provider, test: $test, passed: ($passed == 1)} + .' \
		<<<"$row" >"$rows/$PAIR_KERNEL-$provider.$PAIR_SCRIPT.$1.json"
}
