# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Shared by scripts/bench/guest and fio-guest: /dev/nvme0n1, across RDMA. Needs $address.

: "${address:?}"

# Reads of an NVMe device that keeps nothing, across RDMA: the kernel's own initiator and
# target, through the block layer.
nvme_target() {
	modprobe -a null_blk nvmet-rdma nvme-rdma || return 1
	grep -q " /sys/kernel/config " /proc/mounts || mount -t configfs configfs /sys/kernel/config
	subsystem=/sys/kernel/config/nvmet/subsystems/bench
	port=/sys/kernel/config/nvmet/ports/1
	mkdir -p $subsystem/namespaces/1 $port || return 1
	echo 1 >$subsystem/attr_allow_any_host
	echo /dev/nullb0 >$subsystem/namespaces/1/device_path
	echo 1 >$subsystem/namespaces/1/enable
	echo rdma >$port/addr_trtype
	echo ipv4 >$port/addr_adrfam
	echo "$address" >$port/addr_traddr
	echo 4420 >$port/addr_trsvcid
	ln -s $subsystem $port/subsystems/bench
}

nvme_connect() {
	nvme_target || return 1
	echo "transport=rdma,traddr=$address,trsvcid=4420,nqn=bench,nr_io_queues=1" >/dev/nvme-fabrics || return 1
	for try in 1 2 3 4 5 6 7 8 9 10; do
		[ -b /dev/nvme0n1 ] && return
		sleep 0.2
	done
	echo "no /dev/nvme0n1 after $try looks"
	return 1
}

nvme_disconnect() {
	for one in /sys/class/nvme/nvme*; do echo 1 >"$one/delete_controller"; done
}
