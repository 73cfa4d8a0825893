#!/bin/sh
# SPDX-License-Identifier: MIT
#
# put and get: the bytes that arrive, their verification, and the report.

# run_tests calls the tests by their names; numbers and lists of words stand
# without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

test_put_and_get_of_64_MiB_have_equal_checksums() {
	serve big=mem:64M --writable
	random_file sent 67108864
	expect 0 kxfer --json put sent "$peer/big"
	expect_json .sha256 "$(sha256_of sent)"
	expect_json .verified "by the receiver"
	expect_in serve.out "$(sha256_of sent)"
	expect 0 kxfer --json get "$peer/big" got
	expect_json .sha256 "$(sha256_of got)"
	expect_json .length_bytes 67108864
	expect_equal_files sent got
}

# A dma-buf, which the kernel's heap may not give.
test_a_buffer_of_the_heap_is_served_like_memory() {
	if [ ! -e /dev/dma_heap/system ]; then
		expect 1 kxfer --json serve --no-key gpu=heap:4M
		expect_error_json '"\(.errno) \(.hint | test("CONFIG_DMABUF_HEAPS_SYSTEM"))"' "ENOENT true"
		return
	fi
	serve gpu=heap:4M --writable
	grep -q dma-buf /sys/kernel/debug/kxfer/regions || fail "the region is not of a dma-buf"
	random_file sent 4000000
	expect 0 kxfer put sent "$peer/gpu"
	expect 0 kxfer --json get "$peer/gpu" got
	expect_json .sha256 "$(sha256_of sent)"
	expect_equal_files sent got
}

test_put_of_one_byte_arrives() {
	serve inbox=mem:1M --writable
	printf x >sent
	expect 0 kxfer --json put sent "$peer/inbox"
	expect_json .length_bytes 1
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files sent got
}

test_put_of_an_empty_file_arrives_as_empty() {
	serve inbox=mem:1M --writable
	: >sent
	expect 0 kxfer --json put sent "$peer/inbox"
	expect_json .generation 1
	expect_json .sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files sent got
}

test_put_of_odd_lengths_arrives() {
	serve inbox=mem:2M --writable
	for length in 4095 4097 524287 524289 2097152; do
		random_file sent $length
		expect 0 kxfer put sent "$peer/inbox"
		expect 0 kxfer get --force "$peer/inbox" got
		expect_equal_files sent got
	done
}

test_a_shorter_put_replaces_the_longer_content() {
	serve inbox=mem:1M --writable
	random_file long 100000
	random_file short 5000
	expect 0 kxfer put long "$peer/inbox"
	expect 0 kxfer --json put short "$peer/inbox"
	expect_json .generation 2
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files short got
}

test_put_prints_the_sha256_in_full() {
	serve inbox=mem:1M --writable
	random_file sent 70000
	expect 0 kxfer put sent "$peer/inbox"
	expect_stdout "sha256       $(sha256_of sent)"
	expect_stdout "verified     by the receiver"
}

test_quiet_put_and_get_print_one_line() {
	serve inbox=mem:1M --writable
	random_file sent 70000
	expect 0 kxfer --quiet put sent "$peer/inbox"
	[ "$(cat "$work/stdout")" = "$(sha256_of sent)  $peer:7625/inbox" ] || fail "put: $(cat "$work/stdout")"
	expect 0 kxfer --quiet get "$peer/inbox" got
	expect_equal_files sent got
	[ "$(cat "$work/stdout")" = "$(sha256_of sent)  got" ] || fail "get: $(cat "$work/stdout")"
	sha256sum -c "$work/stdout" >/dev/null || fail "sha256sum -c"
	expect 0 kxfer --quiet --json get "$peer/inbox" again
	expect_json .sha256 "$(sha256_of sent)"
}

test_put_from_standard_input_and_get_to_standard_output() {
	serve inbox=mem:4M --writable
	random_file sent 3000000
	timeout 60 sh -c "cat sent | kxfer put - $peer/inbox" >stdout 2>stderr || fail "put -"
	timeout 60 sh -c "kxfer get $peer/inbox - | cat >got" 2>stderr || fail "get -"
	expect_equal_files sent got
	expect_stderr "$(sha256_of sent)"
}

test_put_from_an_empty_pipe_is_an_empty_content() {
	serve inbox=mem:1M --writable
	timeout 60 sh -c ": | kxfer --json put - $peer/inbox" >stdout 2>stderr || fail "put -"
	expect_json .length_bytes 0
}

test_put_of_a_part_by_length_sends_only_that() {
	serve inbox=mem:1M --writable
	random_file sent 50000
	head -c 20000 sent >part
	expect 0 kxfer put --length 20000 sent "$peer/inbox"
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files part got
}

test_put_at_an_offset_keeps_what_is_around() {
	serve inbox=mem:1M --writable
	random_file old 300000
	random_file new 1000
	expect 0 kxfer put old "$peer/inbox"
	expect 0 kxfer --json put --offset 4K new "$peer/inbox"
	expect_json .offset_bytes 4096
	expect_json .verified "read back"
	expect 0 kxfer get "$peer/inbox" got
	{ head -c 4096 old; cat new; tail -c +5097 old; } >wanted
	expect_equal_files wanted got
}

test_put_at_an_offset_behind_the_content_makes_it_longer() {
	serve inbox=mem:1M --writable
	random_file first 1000
	random_file second 2000
	expect 0 kxfer put first "$peer/inbox"
	expect 0 kxfer put --offset 1000 second "$peer/inbox"
	expect 0 kxfer get "$peer/inbox" got
	cat first second >wanted
	expect_equal_files wanted got
}

test_put_without_verifying_does_not_wait_for_the_receiver() {
	serve inbox=mem:1M --writable
	random_file sent 5000
	kill -STOP "$serve_pid"
	expect 0 kxfer --json put --no-verify sent "$peer/inbox"
	expect_json .verified no
	expect 1 kxfer put --timeout 1 sent "$peer/inbox"
	expect_stderr "published no new content record within 1 s"
	kill -CONT "$serve_pid"
}

# The time to hash is added to --timeout, and the message says so.
test_put_says_how_long_it_has_waited_and_why() {
	serve inbox=mem:32M --writable
	head -c 20000000 /dev/zero >sent
	kill -STOP "$serve_pid"
	expect 1 kxfer put --timeout 2 sent "$peer/inbox"
	expect_stderr "within 4 s (--timeout 2, and 2 to hash what it got)"
	kill -CONT "$serve_pid"
}

# The first piece goes at once, each other one when its time has come.
test_a_limit_slows_transfers_down() {
	serve inbox=mem:4M --writable
	random_file sent 2097152
	expect 0 kxfer --json put --limit 1M sent "$peer/inbox"
	expect_json '.rate_bytes_per_s <= 1048576 * 1.1' true
	expect_json '.rate_bytes_per_s >= 1048576 / 4' true
	expect 0 kxfer --json get --limit 1M "$peer/inbox" got
	expect_json '.rate_bytes_per_s <= 1048576 * 1.1' true
	expect_json '.rate_bytes_per_s >= 1048576 / 4' true
	expect_equal_files sent got
}

test_get_of_a_range_reads_only_that() {
	random_file sent 100000
	serve data=sent
	expect 0 kxfer --json get --offset 1000 --length 5000 "$peer/data" got
	expect_json .length_bytes 5000
	expect_json .verified "no: a part has no published SHA-256"
	tail -c +1001 sent | head -c 5000 >wanted
	expect_equal_files wanted got
}

test_get_into_a_folder_takes_the_name_of_the_export() {
	random_file sent 1000
	serve data=sent
	mkdir folder
	expect 0 kxfer get "$peer/data" folder
	expect_equal_files sent folder/data
	[ ! -e folder/data.kxfer-part ] || fail "a partial file is left"
}

test_get_without_a_file_takes_the_name_of_the_export() {
	random_file sent 5000
	serve inbox=sent
	expect 0 kxfer get "$peer/inbox"
	expect_equal_files sent inbox
	expect 1 kxfer get "$peer/inbox"
	expect 0 kxfer get -f "$peer/inbox"
	mkdir served
	cp sent served/file
	serve --dir docs=served
	expect 0 kxfer get "$peer/docs/file"
	expect_equal_files sent file
	expect 2 kxfer get -r "$peer/docs/"
	expect_stderr "kxfer get -r needs a folder"
}

test_get_refuses_to_overwrite_and_force_does() {
	random_file sent 1000
	serve data=sent
	echo precious >got
	expect 1 kxfer get "$peer/data" got
	expect_stderr "will not overwrite got"
	expect_stderr "--force"
	[ "$(cat got)" = precious ] || fail "it was overwritten"
	expect 0 kxfer get --force "$peer/data" got
	expect_equal_files sent got
}

test_get_leaves_a_file_alone_that_has_the_name_of_a_part() {
	random_file sent 1000
	serve data=sent
	echo precious >got.part
	expect 0 kxfer get "$peer/data" got
	[ "$(cat got.part)" = precious ] || fail "got.part was overwritten"
	echo precious >victim
	ln -s victim other.kxfer-part
	expect 1 kxfer get "$peer/data" other
	expect_stderr "will not overwrite other.kxfer-part"
	[ "$(cat victim)" = precious ] || fail "it was overwritten through a symbolic link"
	[ ! -e other ] || fail "other is there"
	rm other.kxfer-part
	ln victim other.kxfer-part
	expect 1 kxfer get "$peer/data" other
	[ "$(cat victim)" = precious ] || fail "it was overwritten by its other name"
	rm other.kxfer-part
	echo precious >other.kxfer-part
	chown 1000 other.kxfer-part
	expect 1 kxfer get "$peer/data" other
	[ "$(cat other.kxfer-part)" = precious ] || fail "another user's file was overwritten"
	rm other.kxfer-part
	expect 0 kxfer get "$peer/data" other
	expect_equal_files sent other
}

test_get_follows_no_symbolic_link_that_leads_nowhere() {
	random_file sent 1000
	serve data=sent
	ln -s nowhere got
	expect 1 kxfer get "$peer/data" got
	expect_stderr "leads nowhere"
	[ -L got ] || fail "the link was replaced"
}

test_get_by_force_keeps_mode_owner_and_symbolic_link() {
	random_file sent 1000
	serve data=sent
	echo old >got
	chown 1000:104 got
	chmod 600 got
	ln -s got link
	expect 0 kxfer get --force "$peer/data" got
	[ "$(stat -c '%a %u %g' got)" = "600 1000 104" ] || fail "it is $(stat -c '%a %u %g' got) now"
	expect 0 kxfer get --force "$peer/data" link
	[ -L link ] || fail "the link was replaced"
	expect_equal_files sent got
	umask 027
	expect 0 kxfer get "$peer/data" new
	[ "$(stat -c %a new)" = 640 ] || fail "a new file has mode $(stat -c %a new)"
}

test_get_writes_to_a_terminal_by_force_only() {
	echo harmless >sent
	serve data=sent
	kxfer get "$peer/data" - >/dev/console 2>stderr
	status=$?
	[ "$status" -eq 2 ] || fail "status $status"
	expect_stderr "will not write to a terminal"
	kxfer get --force "$peer/data" - >/dev/console 2>stderr || fail "--force"
}

test_a_file_whose_size_is_told_as_0_has_all_its_bytes() {
	serve inbox=mem:1M version=/proc/version --writable
	cat /proc/version >wanted
	expect 0 kxfer --json put /proc/version "$peer/inbox"
	expect_json .length_bytes "$(stat -c %s wanted)"
	expect_json .sha256 "$(sha256_of wanted)"
	expect 0 kxfer get "$peer/inbox" got
	expect_equal_files wanted got
	expect 0 kxfer get "$peer/version" served
	expect_equal_files wanted served
	expect 4 kxfer put --length 4096 /proc/version "$peer/inbox"
	expect_stderr "it ended after"
}

test_get_to_a_device_writes_to_the_device() {
	random_file sent 1000
	serve data=sent
	expect 0 kxfer get "$peer/data" /dev/null
	[ -c /dev/null ] || fail "/dev/null was replaced"
	[ ! -e /dev/null.kxfer-part ] || fail "/dev/null.kxfer-part is left"
}

test_serve_of_an_empty_file_is_got_as_empty() {
	: >sent
	serve data=sent
	expect 0 kxfer get "$peer/data" got
	expect_equal_files sent got
}

test_serve_takes_the_base_name_of_a_file() {
	mkdir deep
	random_file deep/report-1.pdf 1000
	serve deep/report-1.pdf
	expect 0 kxfer --json ls "$peer"
	expect_json '.[0].name' report-1.pdf
	expect_json '.[0].sha256' "$(sha256_of deep/report-1.pdf)"
	expect_json '.[0].rights | join(",")' read
}

test_serve_of_several_sources_offers_each() {
	random_file one 1000
	random_file two 2000
	serve one second=two buffer=mem:64K
	expect 0 kxfer --json ls "$peer"
	expect_json '[.[].name] | sort | join(" ")' "buffer one second"
	expect 0 kxfer get "$peer/second" got
	expect_equal_files two got
}

test_a_file_served_writable_is_written_back() {
	random_file file 50000
	chmod 640 file
	random_file sent 40000
	serve file --writable
	expect 0 kxfer put sent "$peer/file"
	expect_equal_files sent file
	[ "$(stat -c %a file)" = 640 ] || fail "its mode is $(stat -c %a file)"
	[ "$(find . -name "file*" | wc -l)" -eq 1 ] || fail "a temporary file is left"
}

test_a_symbolic_link_served_writable_keeps_being_one() {
	random_file target 50000
	ln -s target name
	random_file sent 40000
	serve name --writable
	expect 0 kxfer put sent "$peer/name"
	[ -L name ] || fail "the link was replaced"
	expect_equal_files sent target
}

test_a_served_file_that_changes_on_disk_is_served_as_it_was() {
	random_file file 50000
	cp file before
	serve data=file
	: >file
	expect 0 kxfer get "$peer/data" got
	expect_equal_files before got
}

test_put_and_get_work_over_IPv6() {
	serve inbox=mem:1M --writable
	random_file sent 100000
	expect 0 kxfer put sent "[$KXFER_ADDRESS6]/inbox"
	expect 0 kxfer get "[$KXFER_ADDRESS6]:7625/inbox" got
	expect_equal_files sent got
}

test_put_and_get_work_over_a_port_of_choice() {
	serve inbox=mem:1M --writable --listen "$peer:7700"
	expect_in serve.out "listening on $peer:7700"
	random_file sent 100000
	expect 0 kxfer put sent "$peer:7700/inbox"
	expect 0 kxfer get "$peer:7700/inbox" got
	expect_equal_files sent got
}

test_put_by_the_name_of_a_host_and_of_a_device() {
	serve inbox=mem:1M --writable
	random_file sent 1000
	expect 0 kxfer put --device "$KXFER_DEVICE" sent kxfer/inbox
	expect_stdout "kxfer:7625/inbox"
}

test_two_puts_to_two_exports_at_once_arrive() {
	serve a=mem:8M b=mem:8M --writable
	random_file one 8000000
	random_file two 8000000
	background kxfer put one "$peer/a"
	timeout "$limit" kxfer put two "$peer/b" >out2 2>&1 || fail "the second: $(cat out2)"
	collect
	[ "$status" -eq 0 ] || fail "the first: status $status"
	expect 0 kxfer get "$peer/a" got1
	expect 0 kxfer get "$peer/b" got2
	expect_equal_files one got1
	expect_equal_files two got2
}

test_an_unprivileged_user_of_the_group_may_put_and_get() {
	chgrp rdma /dev/kxfer && chmod 660 /dev/kxfer
	serve inbox=mem:1M --writable
	random_file sent 100000
	chmod 755 "$root" "$work"
	chmod 777 .
	as_user="setpriv --reuid 1000 --regid 1000 --groups 104 --inh-caps -all --bounding-set -all"
	expect 0 $as_user kxfer put sent "$peer/inbox"
	expect_in serve.out "(uid 1000)"
	expect 0 $as_user kxfer get "$peer/inbox" got
	expect_equal_files sent got
	chmod 600 /dev/kxfer
}

test_no_progress_but_only_the_result_goes_to_a_pipe() {
	serve inbox=mem:1M --writable
	random_file sent 100000
	expect 0 kxfer put sent "$peer/inbox"
	[ ! -s stderr ] || fail "something on stderr"
}

run_tests
