#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Folders: `kxfer serve --dir`, and ls, get and put of PEER/NAME/PATH.
#
# A link breaks by the removal of its device.

# run_tests calls the tests by their names.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

unprivileged="setpriv --reuid 1000 --regid 1000 --groups 104 --inh-caps -all --bounding-set -all"

# A tree with a file of each length around a window's (4 MiB), an empty file and an empty folder.
make_tree() { # DIR
	mkdir -p "$1/sub/deep" "$1/none"
	: >"$1/empty"
	random_file "$1/small" 1000
	random_file "$1/sub/window" 4194304
	random_file "$1/sub/more" 4194305
	random_file "$1/sub/deep/with a space" 70000
	chmod 640 "$1/small"
	chmod 755 "$1/sub/more"
	touch -d '2001-02-03 04:05:06' "$1/small"
}

# What has to be the same on both sides: names, types, rights and times of files, and contents.
describe() { # DIR
	(
		cd "$1" || exit 1
		find . -type d | sort
		find . -type f | sort | while read -r file; do
			stat -c '%n %s %a %y' "$file"
			sha256sum "$file"
		done
	)
}

expect_equal_trees() {
	describe "$1" >one
	describe "$2" >other
	[ "$(wc -l <one)" -gt 1 ] || fail "$1 has nothing in it"
	diff one other >differences || fail "$1 and $2 differ: $(cat differences)"
}

is_in_serve_out() { grep -qF "$1" "$work/serve.out"; }

# ---- what it is for ----

test_a_tree_is_got() {
	make_tree docs
	serve --dir docs
	expect_in serve.out "serving the folder docs as docs/, read only"
	expect 0 kxfer --json get -r "$peer/docs" got
	expect_json .files 5
	expect_json .folders 3
	expect_json .length_bytes 8459609
	expect_equal_trees docs got
	[ -z "$(find got -name '*.kxfer-part')" ] || fail "a part is left"
}

test_a_part_of_a_tree_is_got() {
	make_tree docs
	serve --dir docs
	expect 0 kxfer --json get --recursive "$peer/docs/sub/deep/" got
	expect_json .files 1
	expect_equal_trees docs/sub/deep got
}

test_a_tree_is_put() {
	make_tree sent
	mkdir inbox
	serve --dir inbox --writable
	expect 0 kxfer --json put -r sent "$peer/inbox/a/b"
	expect_json .files 5
	expect_equal_trees sent inbox/a/b
	wait_for 10 is_in_serve_out "inbox/a/b/sub/deep/with a space came from"
	[ -z "$(find inbox -name '*.kxfer-part')" ] || fail "a part is left"
}

test_a_single_file_goes_both_ways() {
	mkdir box
	serve --dir files=box --writable
	random_file sent 5000000
	expect 0 kxfer --json put sent "$peer/files/"
	expect_json .sha256 "$(sha256_of sent)"
	expect_equal_files sent box/sent
	expect 0 kxfer put sent "$peer/files/other"
	expect_equal_files sent box/other
	expect 0 kxfer --json get "$peer/files/sent" got
	expect_json .sha256 "$(sha256_of sent)"
	expect_equal_files sent got
	mkdir here
	expect 0 kxfer get "$peer/files/other" here
	expect_equal_files sent here/other
	expect 0 kxfer get "$peer/files/sent" -
	expect_equal_files sent stdout
}

test_what_follows_a_folder_is_a_file() {
	make_tree docs
	random_file file 1000
	serve --allow uid=0 --dir docs file
	expect_in serve.out "serving the folder docs as docs/"
	expect_in serve.out "serving file, "
	expect 0 kxfer get "$peer/file" got
	expect_equal_files file got
}

test_what_is_put_replaces_a_file() {
	mkdir box
	serve --dir box --writable
	echo old >box/file
	echo new >file
	expect 0 kxfer put file "$peer/box/file"
	expect_equal_files file box/file
}

test_a_folder_is_listed() {
	make_tree docs
	ln -s small docs/link
	serve --dir docs
	expect 0 kxfer --json ls "$peer/docs/"
	expect_json '[.[].name] | join(" ")' "empty link none small sub"
	expect_json '.[] | select(.name == "small") | "\(.type) \(.size_bytes) \(.mode)"' "file 1000 640"
	expect_json '.[] | select(.name == "link").type' other
	expect 0 kxfer ls "$peer/docs/sub"
	expect_stdout "more"
	expect 0 kxfer --json ls "$peer/docs/small"
	expect_json '.[0].size_bytes' 1000
	expect 0 kxfer ls "$peer/docs/none"
	expect_stderr "the folder is empty"
}

# More than one reply has room for.
test_a_folder_of_many_files_is_listed_and_got() {
	mkdir docs
	for i in $(seq 100); do echo "$i" >"docs/file $i"; done
	serve --dir docs
	expect 0 kxfer --json ls "$peer/docs/"
	expect_json length 100
	expect 0 kxfer --json get -r "$peer/docs/" got
	expect_json .files 100
	expect_equal_trees docs got
}

test_the_manifest_is_what_sha256sum_reads() {
	make_tree docs
	serve --dir docs
	expect 0 kxfer get -r --manifest sums "$peer/docs/" got
	[ "$(wc -l <sums)" -eq 5 ] || fail "$(cat sums)"
	(cd got && sha256sum -c ../sums >../checked) || fail "sha256sum does not agree: $(cat checked)"
	mkdir box
	stop_serve
	serve --dir box --writable
	expect 0 kxfer put -r --manifest sums docs "$peer/box/"
	(cd box && sha256sum -c ../sums >../checked) || fail "sha256sum does not agree: $(cat checked)"
	expect 2 kxfer get --manifest sums "$peer/box" got
}

test_links_and_fifos_are_left_out_and_told() {
	mkdir docs
	echo x >docs/file
	ln -s /etc/passwd docs/link
	mkfifo docs/fifo
	serve --dir docs
	expect 0 kxfer get -r "$peer/docs/" got
	expect_stderr "2 left out"
	expect_stdout "left out  2"
	[ "$(ls got)" = file ] || fail "got holds $(ls got)"
	mkdir box
	stop_serve
	serve --dir box --writable
	expect 0 kxfer put -r docs "$peer/box/"
	expect_stderr "2 left out"
	[ "$(ls box)" = file ] || fail "box holds $(ls box)"
}

# ---- who may, and what not ----

test_a_folder_is_not_written_without_writable() {
	mkdir docs
	serve --dir docs
	echo x >file
	expect 1 kxfer put file "$peer/docs/file"
	expect_stderr "served for reading only"
	[ -z "$(ls -A docs)" ] || fail "docs holds $(ls -A docs)"
}

test_a_folder_is_for_whom_it_is_allowed() {
	make_tree docs
	serve --dir docs --allow 192.0.2.0/24
	expect 1 kxfer ls "$peer/docs/"
	expect_stderr EACCES
	stop_serve
	serve --dir docs --allow uid=12345
	expect 1 kxfer ls "$peer/docs/"
	expect_stderr EACCES
	stop_serve
	serve --dir docs --allow uid=0
	expect 0 kxfer ls "$peer/docs/"
}

# The desk is an export; others neither see nor open it.
test_the_desk_of_a_user_is_not_open_to_another() {
	large_file
	mkdir docs
	mv file docs
	serve --dir docs
	stop_midway bytes_read kxfer get "$peer/docs/file" got
	desk=$(kxfer --json export list | jq -r '.[].name | select(startswith("docs."))')
	[ -n "$desk" ] || fail "there is no desk"
	expect_after_stop kxfer ls "$peer"
	grep -q "$desk" second.out || fail "root does not see the desk"
	chmod 666 /dev/kxfer
	$unprivileged kxfer ls "$peer" >others 2>&1
	grep -qw docs others || fail "uid 1000 does not see the folder: $(cat others)"
	chmod 600 /dev/kxfer
	! grep -q "$desk" others || fail "uid 1000 sees the desk"
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
}

test_no_path_leads_out_of_the_folder() {
	mkdir docs outside
	echo secret >outside/file
	echo secret >secret
	ln -s ../outside docs/out
	ln -s ../secret docs/link
	ln -s "$PWD/secret" docs/absolute
	serve --dir docs --writable
	echo x >file
	for path in ../secret sub/../../secret . .. sub/. out/file link absolute; do
		try kxfer get "$peer/docs/$path" got
		[ "$status" -ne 0 ] || fail "got $path"
		! grep -qs secret got || fail "$path holds the secret"
		try kxfer put file "$peer/docs/$path"
		rm -f docs/x
	done
	[ "$(cat secret outside/file | sort -u)" = secret ] || fail "something outside was written"
	parts=$(find . -name '*.kxfer-part')
	[ -z "$parts" ] || fail "parts are left: $parts"
	expect 1 kxfer get "$peer/docs/out/file" got
	expect_stderr "symbolic link"
	# put replaces the link itself, as mv does.
	[ ! -L docs/link ] || fail "docs/link is a link still"
}

# What a hostile server would do: names that are none end the copy.
test_a_path_that_is_none_is_refused() {
	mkdir docs
	serve --dir docs
	expect 2 kxfer get "$peer/docs//file" got
	expect_stderr "empty name"
	expect 1 kxfer get "$peer/docs/a.kxfer-part" got
	expect 1 kxfer ls "$peer/docs/nothing"
	expect_stderr ENOENT
}

test_files_that_are_there_are_not_overwritten() {
	make_tree docs
	serve --dir docs
	mkdir got
	echo mine >got/small
	expect 1 kxfer get -r "$peer/docs/" got
	expect_stderr "will not overwrite"
	[ "$(cat got/small)" = mine ] || fail "it was overwritten"
	expect 0 kxfer get -r --force "$peer/docs/" got
	expect_equal_trees docs got
}

test_what_is_no_folder_is_told() {
	serve box=mem:1M --writable
	echo x >file
	expect 1 kxfer ls "$peer/box/"
	expect_stderr "is no folder"
	expect 1 kxfer put file "$peer/box/file"
	expect_stderr "is no folder"
	expect 1 kxfer get "$peer/nothing/file" got
	expect_stderr ENOENT
}

test_wrong_usage_is_told() {
	make_tree docs
	serve --dir docs --writable
	expect 2 kxfer get "$peer/docs/sub" got
	expect_stderr "--recursive"
	expect 2 kxfer put docs "$peer/docs/sub"
	expect_stderr "--recursive"
	expect 2 kxfer get --offset 1 "$peer/docs/small" got
	expect 2 kxfer put --no-verify docs/small "$peer/docs/small"
	expect 2 kxfer put - "$peer/docs/small"
	expect 2 kxfer get -r "$peer/docs/sub" -
	expect 2 kxfer serve --no-key
	expect_stderr "nothing to serve"
	expect 1 kxfer serve --no-key --dir nothing
	expect_stderr ENOENT
	expect 2 kxfer serve --no-key --dir /
	expect_stderr "give NAME="
}

# Requests that are none, requests for a desk of nobody's, and more desks than there are places: the
# next client is served all the same.
test_nonsense_in_the_mailbox_does_no_harm() {
	mkdir docs
	echo x >docs/file
	serve --dir docs --writable
	nobodys='"desk":"0123456789abcdef","number":1'
	expect 0 kxfer-message send "$peer" docs x '{' '[]' '{}' "$(printf '%04000d' 0 | tr 0 '[')" \
		"{$nobodys,\"op\":\"write\",\"path\":\"file\",\"length\":1}" \
		"{$nobodys,\"op\":\"keep\",\"path\":\"file\"}" \
		"{$nobodys,\"op\":\"open\",\"path\":\"../..\"}" \
		"{$nobodys,\"op\":7}" "{$nobodys,\"op\":\"open\",\"offset\":-1}"
	for i in $(seq 40); do
		printf '{"desk":"%016d","op":"open","number":1}\n' "$i"
	done >requests
	tr '\n' '\0' <requests | xargs -0 kxfer-message send "$peer" docs >/dev/null || fail "they are not sent"
	expect 0 kxfer --json export list
	expect_json '[.[].name | select(startswith("docs."))] | length | . > 0 and . <= 8' true
	expect 0 kxfer get "$peer/docs/file" got
	expect_equal_files docs/file got
	[ "$(ls docs)" = file ] || fail "docs holds $(ls docs)"
}

test_who_may_pin_little_copies_too() {
	make_tree docs
	mkdir box
	sh -c "ulimit -l 1024; exec setpriv --inh-caps -all --bounding-set -ipc_lock \
		kxfer serve --no-key --dir box --writable" >serve.out 2>&1 </dev/null &
	serve_pid=$!
	echo $serve_pid >>pids
	wait_for 60 is_in_serve_out "serving the folder"
	expect 0 kxfer --json put -r docs "$peer/box/"
	expect_json .files 5
	expect_equal_trees docs box
	chmod -R a+rwX "$root"
	chmod 666 /dev/kxfer
	expect 0 sh -c "ulimit -l 128 && $unprivileged kxfer --json get -r $peer/box/ got"
	expect_json .files 5
	chmod 600 /dev/kxfer
	expect_equal_files docs/sub/more got/sub/more
}

# ---- stops and breaks ----

test_a_get_that_was_stopped_is_resumed() {
	large_file
	mkdir docs
	mv file docs
	echo x >docs/another
	serve --dir docs
	stop_midway bytes_read kxfer --json get -r "$peer/docs/" got
	kill -INT "$pid"
	go_on
	[ "$status" -eq 130 ] || fail "status $status"
	expect 0 kxfer --json get -r --resume "$peer/docs/" got
	expect_json .unchanged 1
	expect_json '.resumed_bytes > 0' true
	expect_equal_trees docs got
}

test_a_put_that_was_stopped_is_resumed() {
	large_file
	mkdir sent box
	mv file sent
	echo x >sent/another
	serve --dir box --writable
	stop_midway bytes_written kxfer --json put -r sent "$peer/box/"
	kill -KILL "$pid"
	wait_for 10 is_over "$pid"
	expect 0 kxfer --json put -r --resume sent "$peer/box/"
	expect_json .unchanged 1
	expect_json '.resumed_bytes > 0' true
	expect_equal_trees sent box
}

# What the part has that the file has not is not kept.
test_a_part_that_was_changed_is_used_up_to_there() {
	large_file
	mkdir docs
	mv file docs
	serve --dir docs
	stop_midway bytes_read kxfer --json get "$peer/docs/file" got
	kill -KILL "$pid"
	wait_for 10 is_over "$pid"
	printf X | dd of=got.kxfer-part bs=1 seek=5000000 conv=notrunc 2>/dev/null
	expect 0 kxfer --json get --resume "$peer/docs/file" got
	expect_json .resumed_bytes 4194304
	expect_equal_files docs/file got
}

test_copies_go_on_when_the_device_comes_back() {
	large_file
	mkdir docs
	mv file docs
	serve --dir docs --writable
	stop_midway bytes_read kxfer --json get "$peer/docs/file" got
	renew_device
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .breaks 1
	expect_equal_files docs/file got
	stop_midway bytes_written kxfer --json put got "$peer/docs/back"
	renew_device
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_json .breaks 1
	expect_equal_files got docs/back
}

test_copies_go_on_when_the_server_is_started_again() {
	large_file
	mkdir docs
	mv file docs
	serve --dir docs --writable
	stop_midway bytes_read kxfer get "$peer/docs/file" got
	stop_serve
	serve --dir docs --writable
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_stderr "waiting for it to come back"
	expect_equal_files docs/file got
	stop_midway bytes_written kxfer --json put got "$peer/docs/back"
	kill -KILL "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	serve --dir docs --writable
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_equal_files got docs/back
}

test_a_server_that_does_not_answer_ends_the_copy() {
	mkdir docs
	random_file docs/file 1000
	serve --dir docs
	kill -STOP "$serve_pid"
	wait_for 10 is_stopped "$serve_pid"
	expect 1 kxfer get --timeout 2 "$peer/docs/file" got
	expect_stderr "no answer from"
	kill -CONT "$serve_pid"
	expect 0 kxfer get "$peer/docs/file" got
	expect_equal_files docs/file got
}

test_a_file_that_changes_is_not_taken_for_the_same() {
	large_file
	mkdir docs
	mv file docs
	serve --dir docs
	stop_midway bytes_read kxfer --json get "$peer/docs/file" got
	echo x >>docs/file
	go_on
	[ "$status" -eq 4 ] || fail "status $status"
	expect_error_json '.error | test("changed while it was read")' true
	[ ! -e got ] || fail "got is there"
}

test_two_puts_of_one_file_do_not_mix() {
	large_file
	mkdir box
	serve --dir box --writable
	stop_midway bytes_written kxfer --json put file "$peer/box/file"
	random_file other 1000
	expect 1 kxfer put other "$peer/box/file"
	expect_stderr "another client is writing it"
	go_on
	[ "$status" -eq 0 ] || fail "status $status"
	expect_equal_files file box/file
}

test_a_folder_that_is_full_is_told() {
	mkdir small
	mount -t tmpfs -o size=8m none small || skip "no tmpfs"
	random_file sent 20000000
	serve --dir small --writable
	try kxfer put sent "$peer/small/sent"
	kill -TERM "$serve_pid"
	wait_for 30 is_over "$serve_pid"
	umount small
	[ "$status" -eq 4 ] || fail "status $status"
	expect_stderr ENOSPC
}

# Desks, regions and targets.
test_nothing_is_left_of_clients_that_have_ended() {
	make_tree docs
	serve --dir docs
	for _ in $(seq 12); do expect 0 kxfer get --force "$peer/docs/small" got; done
	wait_for 40 is_without_desks
}

is_without_desks() { ! kxfer export list | grep -q '^docs\.'; }

run_tests
