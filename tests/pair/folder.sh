# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# A folder of node 2, used by node 1, while the wire, the server or its machine fails: what a person
# types, and equal checksums at the end. Both nodes have a disk, which outlives a power cut.
#
# FOLDER_MIB (64) is the length of the large file.

# shellcheck source=tests/pair/lib.sh
. "$(dirname "$0")/lib.sh"

mib=${FOLDER_MIB:-64}
# Each MiB is copied and hashed some times on an emulated machine.
patience=$((120 + mib / 2))

disk_of() { echo "$nodes_dir/disk-$1"; } # NODE

# shellcheck disable=SC2317 # lib.sh calls it
node_options() { # NODE
	local disk
	disk=$(disk_of "$1")
	[ -e "$disk" ] || { truncate -s $((mib * 3 + 256))M "$disk" && mkfs.ext4 -q -F "$disk" >&2; }
	printf '%s\n' --qemu -drive --qemu "file=$disk,if=virtio,format=raw"
}

# An order is one line.
mount_disk() { # NODE
	local command='grep -q " /disk " /proc/mounts && exit; mkdir -p /disk; modprobe -a virtio_blk ext4;'
	command+=' for i in 1 2 3 4 5; do [ -e /dev/vda ] || sleep 1; done; mount /dev/vda /disk'
	check_do "$1" "$command"
}

begin_folder() {
	[ -z "$keyed" ] || check_do 2 "head -c 32 /dev/urandom >/tmp/pair.key && kxfer key add pair /tmp/pair.key"
	node_begin 2 "mkdir -p /disk/inbox; exec kxfer serve --dir /disk/inbox --writable $keyed --listen $node2"
	server=$task
	nodes_until 30 node_has 2 "^$server  .*listening" || fail "serve: $(node_output 2 "$server")"
}

end_folder() {
	node_signal 2 "$server" TERM
	check_end 2 "$server" 30
}

# The put runs on; sets $put.
begin_put() { # OPTIONS
	node_begin 1 "kxfer put --timeout 30 $1 $keyed /disk/file $node2/inbox/"
	put=$task
}

part_bytes() { # sets $bytes
	bytes=0
	node_begin 2 'stat -c %s /disk/inbox/file.kxfer-part 2>/dev/null || echo 0'
	bytes=$(node_wait 2 "$task" 10)
}

part_passed() { # BYTES
	part_bytes
	[ "${bytes:-0}" -gt "$1" ]
}

# Waits until the server has stored another sixteenth of the file.
let_it_move() {
	part_bytes
	nodes_until $patience part_passed $((bytes + (mib << 20) / 16)) || {
		fail "nothing moves: $(node_output 1 "$put")"
		return 1
	}
}

expect_put() { # TEXT
	[[ $(node_output 1 "$put") == *"$1"* ]] || fail "'$1' is not in the output of put"
}

sum_of() { node_do "$1" "sha256sum <$2" $patience; } # NODE FILE

test_a_tree_goes_there_and_back() {
	{ mount_disk 1 && mount_disk 2; } || return
	begin_folder
	check_do 1 "mkdir -p /disk/tree/a/b && cd /disk/tree && cp /bin/busybox a/ && echo x >'a/b/a name'"
	check_do 1 "kxfer put -r $keyed --manifest /disk/sums /disk/tree $node2/inbox/tree"
	check_do 1 "kxfer ls $keyed $node2/inbox/tree/a"
	check_do 2 "cmp /bin/busybox /disk/inbox/tree/a/busybox"
	check_do 1 "kxfer get -r $keyed $node2/inbox/tree /disk/back && cd /disk/back && sha256sum -c /disk/sums"
	end_folder
}

# Three cuts of the wire that end the link, a server that is killed and started again, and one whose machine loses its
# power. Only the last ends the command.
test_a_large_file_survives_all_of_it() {
	local began=$SECONDS cut
	{ mount_disk 1 && mount_disk 2; } || return
	check_do 1 "head -c $((mib << 20)) /dev/urandom >/disk/file && touch -d '2020-01-02 03:04:05' /disk/file" $patience || return
	begin_folder
	begin_put ''
	for cut in 12 12 12; do
		let_it_move || return
		node_cut 2
		sleep "$cut"
		node_join 2
	done
	let_it_move || return
	node_signal 2 "$server" KILL
	nodes_until 30 node_has_ended 2 "$server" || fail "serve does not end"
	begin_folder
	let_it_move || return
	node_off 2
	note "$(node_output 1 "$put" | tail -n 1)"
	check_end 1 "$put" 90 put || true
	wrong=0
	expect_put "connected again"
	expect_put "waiting for it to come back"
	expect_put "--resume goes on there"
	node_boot 2 || fail "node2 does not start again"
	mount_disk 2
	begin_folder
	begin_put --resume
	check_end 1 "$put" $patience put
	note_lines "$(node_output 1 "$put")"
	expect_put resumed
	[ "$(sum_of 1 /disk/file)" = "$(sum_of 2 /disk/inbox/file)" ] || fail "the sums differ"
	check_do 2 "[ \$(stat -c %Y /disk/inbox/file) = 1577934245 ]"
	note "$mib MiB, all in all: $((SECONDS - began)) s"
	end_folder
}

# A former run's disks have its files.
remove_disks() { rm -f "$PAIR_OUT/$PAIR_KERNEL-$provider-$PAIR_SCRIPT"/disk-*; }

remove_disks
run_tests 2
remove_disks
