# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# libfabric's own tests (fabtests) between two machines: those of its quick run that are a server and a
# client, a result for each. `make check-fabtests NODES=2` calls it. What a status means is that of
# tests/guest/cli/fabtests.sh; what is in tests/guest/cli/fabtests.exclude is not run.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pair/lib_mpi.sh
. "$(dirname "$0")/lib_mpi.sh"

need fabtests/list "make check-fabtests"

excluded=$PAIR_TOP/tests/guest/cli/fabtests.exclude
limit=90 # seconds for one of the two processes
enodata=61 enosys=38

why_excluded() { # COMMAND
	awk -F '\t+' -v command="$1" '!/^#/ && NF == 2 && command ~ ("^" $1 "$") { print $2; exit }' "$excluded"
}

begin_side() { # NODE COMMAND
	node_begin "$1" "FI_PROVIDER=kxfer PATH=\$PATH:/kxfer-fi/fabtests/bin exec timeout -k 5 $limit $2"
}

# Until the server has the mailbox of fabtests' port, or has ended.
wait_for_server() { # TASK
	node_begin 1 "i=0; until kxfer export list | grep -qF fi.p.9228 || [ -e /tmp/agent/$1.status ] || [ \$((i += 1)) -gt 100 ]; do sleep 0.1; done"
	node_wait 1 "$task" >/dev/null
}

# Sets $status: that of the client, or of the server if that failed first.
run_pair() { # COMMAND
	local server client server_status=0
	status=0
	begin_side 1 "$1 -p kxfer -s $node1"
	server=$task
	wait_for_server "$server"
	begin_side 2 "$1 -p kxfer -s $node2 $node1"
	client=$task
	client_said=$(node_wait 2 "$client" $((limit + 30)) 2>&1) || status=$?
	[ $status -eq 0 ] || node_signal 1 "$server" TERM
	server_said=$(node_wait 1 "$server" $((limit + 30)) 2>&1) || server_status=$?
	# A server that has not what it needs says why the client found none.
	case $status:$server_status in
	0:*|*:"$enodata"|*:"$enosys") status=$server_status ;;
	esac
}

# As in one guest: fi_rdm_atomic pins much.
with_its_size() { # COMMAND
	case $1 in
	fi_rdm_atomic*) echo "$1 -S 64" ;;
	*) echo "$1" ;;
	esac
}

run_one() { # COMMAND
	local reason name=$PAIR_KERNEL/$provider/pair/fabtests.${1// /_}
	reason=$(why_excluded "$1")
	[ -z "$reason" ] || { echo "ok $name # SKIP excluded: $reason"; return; }
	wrong=0
	said=''
	run_pair "$(with_its_size "$1")"
	case $status in
	0) expect_none_of 1 jobs pins; expect_none_of 2 jobs pins ;;
	"$enodata"|"$enosys") echo "ok $name # SKIP the provider has not what it needs ($status)"; return ;;
	*) fail "status $status"
	   note_lines "client: $(tail -n 4 <<<"$client_said")"
	   note_lines "server: $(tail -n 4 <<<"$server_said")" ;;
	esac
	check_logs 1 2
	emit "${1// /_}"
}

row=''
trap nodes_end EXIT
trap 'exit 143' INT TERM
nodes_begin "$PAIR_BUILD" "$PAIR_OUT/$PAIR_KERNEL-$provider-$PAIR_SCRIPT"
while read -r kind command <&4; do
	# shellcheck disable=SC2053 # a pattern on purpose
	[[ $kind = pair && ${command// /_} == ${PAIR_TEST:-*} ]] || continue
	wrong=0
	said=''
	if boot 1 2 && make_cluster; then run_one "$command"; else emit "${command// /_}"; fi
done 4<"$given/fabtests/list"
