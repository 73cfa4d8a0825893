#!/bin/sh
# SPDX-License-Identifier: MIT
# fio's engine: fio verifies what it has written, its examples run, and failures are told.

# run_tests calls the tests by their names; options stand without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# scripts/build-fio makes this folder.
given=/kxfer-fio
engine=$given/libfio-kxfer.so
[ -e $engine ] || skip_all="no engine for fio in this guest: make check-fio builds it"
use="--ioengine=external:$engine --hostname=$peer"

# The options, in their order, and then JSON on stdout.
fio() { # STATUS OPTION...
	wanted=$1
	shift
	try $given/fio --output-format=json --name=job $use "$@"
	[ "$status" -eq "$wanted" ] || fail "status $status instead of $wanted: fio $*"
}

# fio writes messages before the JSON where something failed.
expect_figure() { # FILTER TEXT
	got=$(sed -n '/^{/,$p' "$work/stdout" | jq -r "$1") || fail "no JSON: $1"
	[ "$got" = "$2" ] || fail "$1 is '$got' instead of '$2'"
}

box() { serve box=mem:"$1" --writable; }

test_what_was_written_is_read_back_and_verified() {
	box 1M
	fio 0 --filename=box --rw=randwrite --bs=4k --iodepth=8 --verify=crc32c --verify_fatal=1
	expect_figure '.jobs[0] | "\(.error) \(.write.total_ios) \(.read.total_ios)"' "0 256 256"
}

test_sizes_and_operations_are_mixed() {
	box 2M
	fio 0 --filename=box --rw=randrw --bssplit=512/20:4k/50:64k/30 --iodepth=16 --verify=sha256 \
		--direct=1 --verify_fatal=1
	expect_figure '.jobs[0] | "\(.error) \(.write.total_ios > 10) \(.read.total_ios > 10)"' "0 true true"
}

# 40 at 50 a second take 0.8 s.
test_one_at_a_time_at_a_rate() {
	box 1M
	fio 0 --filename=box --rw=randread --bs=4k --iodepth=1 --number_ios=40 --rate_iops=50 --wait=sleep
	expect_figure '.jobs[0].read | "\(.total_ios) \(.runtime > 700 and .runtime < 4000)"' "40 true"
}

# Of completions by REAP and by the ring.
test_many_at_once_with_one_completion_a_batch() {
	box 4M
	for ring in 0 1; do
		fio 0 --filename=box --rw=write --bs=64k --iodepth=32 --iodepth_batch_submit=8 \
			--iodepth_batch_complete_max=32 --signal_batch=1 --ring=$ring --verify=crc32c --verify_fatal=1
		expect_figure '.jobs[0] | "\(.error) \(.write.total_ios) \(.read.total_ios)"' "0 64 64"
	done
}

test_several_jobs_processes_and_threads() {
	box 1M
	for kind in 0 1; do
		fio 0 --filename=box --rw=randread --bs=4k --iodepth=4 --numjobs=4 --thread=$kind --size=256k \
			--group_reporting --ring=1 --wait=poll
		expect_figure '.jobs[0] | "\(.error) \(.read.total_ios)"' "0 256"
	done
}

test_several_exports_are_several_files() {
	serve left=mem:256K right=mem:256K --writable
	fio 0 --filename=left:right --rw=write --bs=4k --iodepth=4 --verify=crc32c --end_fsync=1
	expect_figure '.jobs[0] | "\(.error) \(.write.total_ios)"' "0 128"
}

test_a_client_has_a_server_of_fio_run_the_job() {
	box 1M
	$given/fio --server=sock:"$work/socket" >fio.out 2>&1 </dev/null &
	echo $! >>"$work/pids"
	wait_for 30 test -S socket
	printf '%s\n' "[job]" "ioengine=external:$engine" "hostname=$peer" filename=box rw=write bs=4k iodepth=8 \
		verify=crc32c >job.fio
	expect 0 $given/fio --client=sock:"$work/socket" job.fio
	expect_stdout "err= 0"
	expect_stdout "issued rwts: total=256,256,0,0"
}

test_a_submission_without_room_takes_completions_first() {
	box 1M
	export LD_PRELOAD=/usr/bin/libkxfer-stingy.so
	fio 0 --filename=box --rw=randwrite --bs=4k --iodepth=16 --iodepth_batch_submit=16 --verify=crc32c \
		--verify_fatal=1
	unset LD_PRELOAD
	expect_figure '.jobs[0] | "\(.error) \(.write.total_ios) \(.read.total_ios)"' "0 256 256"
}

# ---- fio's own examples, with another engine and file name ----

# The changes are those of the arguments, sed's words; each must find its line.
example() { # NAME WORD...
	name=$1
	cp "$given/examples/$name.fio" job.fio
	shift
	for word; do
		cp job.fio before
		sed "$word" before >job.fio
		! cmp -s before job.fio || fail "$name.fio has no line for $word"
	done
	try $given/fio --output-format=json job.fio
	[ "$status" -eq 0 ] || fail "$name.fio ended with $status"
	expect_figure '[.jobs[].error] | unique | map(tostring) | join(" ")' 0
}

# fio reads options of an engine only after its name.
by_engine="s,^ioengine=.*,ioengine=external:$engine\\nhostname=$peer,"

test_example_basic_verify() {
	box 1M
	example basic-verify "$by_engine" "s,^filename=.*,filename=box,"
	expect_figure '.jobs[0] | "\(.write.total_ios) \(.read.total_ios)"' "256 256"
}

# It wants 10 GiB and four minutes.
test_example_ssd_test() {
	box 1M
	example ssd-test "$by_engine" "s,^filename=.*,filename=box," "/^directory=/d" "s,^size=.*,size=1m," \
		"s,^runtime=.*,runtime=10,"
	expect_figure '[.jobs[] | .read.total_ios + .write.total_ios | tostring] | join(" ")' "256 256 256 256"
}

test_example_latency_profile() {
	box 1M
	example latency-profile "$by_engine" "s,^filename=.*,filename=box,"
	expect_figure '.jobs[0].read.total_ios' 256
}

test_example_jesd219() {
	box 1M
	example jesd219 "$by_engine" "s,^filename=.*,filename=box,"
	expect_figure '.jobs[0] | .read.total_ios > 0 and .write.total_ios > 0' true
}

# ---- failures ----

# 84 is EILSEQ.
test_a_peer_that_scribbles_is_found_out() {
	background kxfer-scribble "$peer" box 1048576
	wait_for 10 grep -q listening "$work/stdout"
	cp "$work/stdout" serve.out
	fio 1 --filename=box --rw=randwrite --bs=4k --iodepth=8 --verify=crc32c --verify_fatal=1
	expect_figure '.jobs[0].error' 84
	grep -q "verify" "$work/stderr" || fail "fio does not say what was wrong"
}

test_an_export_that_is_not_there_is_told() {
	box 64K
	fio 1 --filename=bax --rw=read --bs=4k
	expect_stderr "kxfer: cannot open the export bax of $peer, port 7625: No such file or directory (ENOENT)"
	expect_stderr "kxfer ls HOST"
}

test_an_export_that_is_read_only_is_told() {
	serve box=mem:64K
	fio 1 --filename=box --rw=randrw --bs=4k
	expect_stderr "kxfer: cannot open the export box of $peer, port 7625: Permission denied (EACCES)"
	expect_stderr "kxfer serve NAME=mem:SIZE --writable"
	fio 0 --filename=box --rw=randread --bs=4k
}

test_what_cannot_be_done_is_told() {
	fio 1 --filename=box --rw=read --bs=4k --port=7999
	expect_stderr "kxfer: cannot connect with $peer, port 7999: Connection refused (ECONNREFUSED)"
	expect_stderr "kxfer serve NAME=mem:SIZE --writable --listen ADDRESS"
	box 64K
	fio 1 --filename=box --rw=randtrim --bs=4k
	expect_stderr "cannot trim an export"
	fio 1 --filename=box --rw=read --bs=512 --iodepth=1000000
	expect_stderr "use a smaller iodepth"
	fio 1 --filename=box --rw=read --bs=4k --hostname=
	expect_stderr "hostname="
	fio 1 --filename=box --rw=read --bs=4k --device=none0
	expect_stderr "(EADDRNOTAVAIL)"
	# Root may lock all it wants.
	chmod 666 /dev/kxfer
	pins=$(counter live_pins)
	try setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all --bounding-set -all sh -c \
		"ulimit -l 64; exec $given/fio --name=job $use --filename=box --rw=read --bs=4k --iodepth=64"
	chmod 600 /dev/kxfer
	[ "$status" -eq 1 ] || fail "status $status"
	expect_stderr "kxfer: cannot pin 262144 bytes of buffers: Cannot allocate memory (ENOMEM)"
	expect_stderr "raise ulimit -l"
	expect_nothing_left
}

# Besides the pages of kxfer serve, $pins.
expect_nothing_left() {
	wait_for 10 sh -c "kxfer --json stat | jq -e '.live_jobs == 0 and .live_pins == $pins'"
}

# The processes of fio's jobs.
jobs_of() { sed -n "s/^\([0-9]*\) (.*) [A-Z] $1 .*/\1/p" /proc/[0-9]*/stat 2>/dev/null; }

# Starts fio, which runs until it is ended, and waits until jobs flow.
endless() {
	box 64K
	pins=$(counter live_pins)
	background $given/fio --name=job $use --filename=box --rw=randrw --bs=4k --iodepth=16 --numjobs=2 \
		--time_based --runtime=300
	wait_for 30 sh -c "kxfer --json stat | jq -e '.live_pins > $pins + 16'"
	wait_for 30 counter_passed jobs_completed "$(($(counter jobs_completed) + 100))"
}

test_an_interrupted_run_leaves_nothing() {
	endless
	kill -INT "$pid"
	collect
	[ "$status" -eq 128 ] || fail "status $status"
	expect_stdout "IOPS="
	expect_nothing_left
}

test_killed_jobs_leave_nothing() {
	endless
	kill -KILL "$(jobs_of "$pid" | head -n 1)" || fail "fio has no jobs"
	wait_for 30 sh -c "kxfer --json stat | jq -e '.live_pins < $pins + 32'"
	for left in $(jobs_of "$pid") $pid; do kill -KILL "$left"; done
	collect
	expect_nothing_left
}

test_a_server_that_ends_ends_the_run() {
	endless
	stop_serve
	pins=0
	collect
	[ "$status" -ne 0 ] || fail "fio saw nothing"
	expect_stderr "kxfer: the peer has withdrawn the export, or its server has ended"
	expect_nothing_left
}

run_tests
