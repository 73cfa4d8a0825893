# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Two guests as the nodes of a cluster, with libfabric's provider and Open MPI, and a user named mpi who
# reaches node2 from node1 by ssh, without a password.

# shellcheck disable=SC2154 # lib.sh has node1, node2, provider

given=$PAIR_BUILD/libfabric
# Of a guest, for 32 processes and what is in its initramfs.
mpi_mib=3072
# The machines that are ready, by process id.
cluster=''

skip_all() { # WHY
	echo "ok $PAIR_KERNEL/$provider/pair/$PAIR_SCRIPT.all # SKIP $1"
	exit 0
}

need() { # FILE COMMAND
	[ -e "$given/$1" ] || skip_all "no $1 in BUILD/libfabric: $2 makes it"
	[ "${NODES_IN_ONE:-no}" = no ] || skip_all "it needs two machines"
}

node_options() {
	printf '%s\n' --memory $mpi_mib --add "$given:/kxfer-fi" --add /etc/openmpi:/etc/openmpi \
		--add /usr/share/openmpi:/usr/share/openmpi --add "$(dirname "${BASH_SOURCE[0]}")/mpi-node:/kxfer/mpi-node"
}

# A command of the user.
by_user() { # COMMAND
	echo "ulimit -l unlimited; exec su - mpi -c ${1@Q}"
}

check_user() { # COMMAND [SECONDS]
	node_begin 1 "$(by_user "$1")"
	check_end 1 "$task" "${2:-$node_limit}" "$1"
}

# Ready for the user to type mpirun at node1; again after a node was started again.
make_cluster() {
	local key node machines="${node_machine[*]}"
	[ "$machines" != "$cluster" ] || return 0
	for node in 1 2; do
		check_do $node "grep -q ^mpi: /etc/passwd || sh /kxfer/mpi-node $(address_of $node)" || return
	done
	check_user "[ -e hosts ] || ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519" || return
	node_begin 1 "cat /home/mpi/.ssh/id_ed25519.pub"
	key=$(node_wait 1 "$task")
	check_do 2 "echo '$key' >/home/mpi/.ssh/authorized_keys; chown mpi:mpi /home/mpi/.ssh/authorized_keys" || return
	check_user "rm -f .ssh/known_hosts; ssh -o StrictHostKeyChecking=accept-new node2 true" || return
	check_user "printf '%s\n' 'node1 slots=32' 'node2 slots=32' >hosts" || return
	cluster=$machines
}
