#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What watches a node: rates of `stat --interval` and `top`, `events`, and the texts for monitoring.

# run_tests calls the tests by their names:
# shellcheck disable=SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# Puts the lines of a file of JSON, as one array, where expect_json looks.
gather() { jq -s . "$1" >stdout; }

test_stat_tells_what_happens_by_the_second() {
	large_file
	serve inbox=mem:64M --writable
	kxfer --json stat -i 0.2 -c 1 >idle
	background kxfer --json stat --interval 0.2
	watch=$pid
	wait_for 20 grep -q time stdout
	timeout "$limit" kxfer --quiet put file "$peer/inbox" >put.out 2>&1 || fail "put: $(cat put.out)"
	wait_for 10 moved_bytes
	kill -INT "$watch"
	pid=$watch
	collect
	[ "$status" -eq 130 ] || fail "status $status"
	[ "$(jq '.written_bytes_per_s == 0' idle)" = true ] || fail "bytes were written by nobody"
	cp stdout lines
	gather lines
	# All bytes of the file are in the intervals, whatever their lengths are.
	expect_json "[.[] | .written_bytes_per_s * .interval_ns / 1e9] | add | round" "$large"
	expect_json 'all(.[]; .interval_ns > 100000000 and .live_sessions > 0)' true
}

moved_bytes() { [ "$(jq -s '[.[] | .written_bytes_per_s * .interval_ns / 1e9] | add | round' stdout)" = "$large" ]; }

test_stat_of_a_link_or_device_has_its_rates() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 "$peer"
	id=$(kxfer --json link list | jq '[.[] | select(.state == "live" and .role == "initiator")][0].id')
	expect 0 kxfer --json stat "$id" -i 0.1 -c 2
	[ "$(wc -l <stdout)" -eq 2 ] || fail "$(wc -l <stdout) lines"
	cp stdout lines
	gather lines
	expect_json '[.[].links[].link] | unique | tostring' "[$id]"
	expect 0 kxfer stat "$KXFER_DEVICE" -i 0.1 -c 1
	expect_stdout "link $id $peer:7625 (initiator): read "
	! grep -E '.{81}' stdout || fail "a line is longer than 80 columns"
	expect 1 kxfer --json stat nosuch0 -i 0.1 -c 1
	expect_error_json .errno ENOENT
	expect 2 kxfer stat -c 3
	expect_stderr "--interval"
	expect 2 kxfer stat -i 0
}

test_top_prints_lines_where_there_is_no_terminal() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 "$peer"
	expect 0 kxfer top -i 0.1 -c 2
	grep -qE '^[0-9-]+T[0-9:.]+Z  read 0 B/s, written 0 B/s, ' stdout || fail "no line of the node"
	expect_stdout "link "
	expect_stdout "session "
	expect_stdout "(kxfer)"
	expect_not_in stdout "$(printf '\033')"
	! grep -E '.{81}' stdout || fail "a line is longer than 80 columns"
	expect 0 kxfer --json top -i 0.1 -c 2
	[ "$(wc -l <stdout)" -eq 2 ] || fail "$(wc -l <stdout) lines"
	cp stdout lines
	tail -n 1 lines >stdout
	expect_json '"\(.node.live_links > 0) \(.links | length > 0) \(.links[0] | has("read_bytes_per_s"))"' "true true true"
	expect_json "[.sessions[] | select(.pid == $serve_pid)] | \"\\(length) \\(.[0].program) \\(.[0].pinned_bytes >= 65536)\"" "1 kxfer true"
	expect 2 kxfer top --sort size
	expect_stderr "work-requests"
}

test_top_sees_who_moves_bytes() {
	large_file
	serve inbox=mem:64M --writable
	background kxfer --json top -i 0.1 --sort written
	watch=$pid
	wait_for 20 grep -q time stdout
	timeout "$limit" kxfer --quiet put file "$peer/inbox" >put.out 2>&1 || fail "put: $(cat put.out)"
	wait_for 10 saw_bytes
	kill -INT "$watch"
	pid=$watch
	collect
	[ "$status" -eq 130 ] || fail "status $status"
}

# The link with bytes is the first.
saw_bytes() { jq -es 'any(.[]; .links[0].written_bytes_per_s > 0 and .links[0].role == "initiator")' stdout; }

# The module counts each job of a ping once, and knows how long they took.
test_latencies_of_a_link() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 --tos 32 "$peer"
	id=$(kxfer --json link list | jq '[.[] | select(.state == "live" and .tos == 32 and .role == "initiator")][0].id')
	kxfer --json link show "$id" | jq '[.latencies[] | select(.op == "READ").jobs] | add // 0' >before
	expect 0 kxfer ping -c 30 -i 0.01 --tos 32 "$peer"
	expect 0 kxfer --json link show "$id"
	expect_json '[.latencies[] | select(.op == "READ").jobs] | add' $(($(cat before) + 30))
	expect_json '.latencies[0] | .failed == 0 and .p50_ns >= 1280 and .p99_ns >= .p50_ns' true
	expect 0 kxfer link show "$id"
	expect_stdout "p99.9"
	expect 0 kxfer stat --openmetrics
	expect_stdout 'kxfer_link_job_seconds_count{link="'"$id"'",'
	expect_stdout ',op="READ",le="+Inf"} '$(($(cat before) + 30))
}

test_events_have_what_comes_and_goes() {
	reload_module
	background kxfer --json events -i 0.1
	events=$pid
	wait_for 20 is_watching "$events"
	serve inbox=mem:64K
	expect_event '.event == "export-added" and .name == "inbox" and .pid == '"$serve_pid"
	expect_event '.event == "listener-added"'
	timeout "$limit" kxfer ping -c 1 "$peer" >ping.out 2>&1 || fail "$(cat ping.out)"
	expect_event '.event == "link-up" and .role == "initiator" and .remote == "'"$peer"':7625"'
	expect_event '.event == "link-up" and .role == "accepted"'
	renew_device
	expect_event '.event == "link-down" and .role == "initiator"'
	expect_event '.event == "device-removed"'
	expect_event '.event == "device-added"'
	stop_serve
	expect_event '.event == "export-removed" and .name == "inbox"'
	expect_event '.event == "listener-removed"'
	kill -INT "$events"
	pid=$events
	collect
	[ "$status" -eq 130 ] || fail "status $status"
}

# It has its session, and so has looked or is about to.
is_watching() { [ "$(kxfer --json top -i 0.05 -c 1 | jq ".sessions[] | select(.pid == $1).pid")" = "$1" ]; }

expect_event() { wait_for 40 jq -es "any(.[]; $1)" stdout; }

test_events_have_refusals_and_end_after_a_count() {
	head -c 32 /dev/urandom >secret
	expect 0 kxfer key add watched secret
	expect 0 kxfer listen add "$peer:7700" --key watched
	background kxfer --json events -i 0.1 -c 1
	wait_for 20 is_watching "$pid"
	timeout "$limit" kxfer ping -c 1 "$peer:7700" >ping.out 2>&1 && fail "a link without the key"
	collect
	kxfer listen del "$peer:7700" >/dev/null
	kxfer key del watched >/dev/null
	[ "$status" -eq 0 ] || fail "status $status"
	[ "$(wc -l <stdout)" -eq 1 ] || fail "$(wc -l <stdout) lines"
}

# OpenMetrics and the text format of Prometheus differ in the names of families.
test_metrics_are_for_monitoring() {
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 "$peer"
	expect 0 kxfer stat --openmetrics
	[ "$(tail -n 1 stdout)" = "# EOF" ] || fail "no end"
	expect_stdout "# TYPE kxfer_jobs_completed counter"
	value=$(sed -n 's/^kxfer_jobs_completed_total //p' stdout)
	[ "$value" -gt 0 ] || fail "no jobs: '$value'"
	grep -qE "^kxfer_link_bytes_read_total\{link=\"[0-9]+\",remote=\"$peer:7625\",device=\"$KXFER_DEVICE\",role=\"initiator\"\} [0-9]+$" stdout ||
		fail "no bytes of the link"
	expect 0 kxfer stat --prometheus --output kxfer.prom
	[ ! -s stdout ] || fail "something on stdout"
	expect_in kxfer.prom "# TYPE kxfer_jobs_completed_total counter"
	expect_not_in kxfer.prom EOF
	[ "$(find . -name '.kxfer.prom*' | wc -l)" -eq 0 ] || fail "a part is left"
	ln -s kxfer.prom other
	expect 1 kxfer --json stat --prometheus --output other
	expect_error_json .errno EEXIST
	expect 2 kxfer stat --prometheus --openmetrics
	expect 2 kxfer stat --output kxfer.prom
}

run_tests
