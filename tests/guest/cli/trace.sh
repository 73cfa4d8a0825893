#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tracepoints: what they say of links, jobs and lines, in words.

# run_tests calls the tests by their names:
# shellcheck disable=SC2086,SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

tracing=/sys/kernel/tracing

begin_trace() { # EVENT...
	[ -e $tracing/events/kxfer ] || { skip "a kernel without CONFIG_PERF_EVENTS"; return 1; }
	echo >$tracing/trace
	for event; do echo 1 >$tracing/events/kxfer/"$event"/enable || fail "no event $event"; done
}

end_trace() {
	echo 0 >$tracing/events/kxfer/enable
	grep kxfer_ $tracing/trace >stdout
}

expect_traced() { # PATTERN
	grep -qE "$1" stdout || fail "no '$1' in the trace"
}

# Another type of service is another link.
test_links_and_jobs() {
	begin_trace kxfer_link kxfer_job_completed || return 0
	serve inbox=mem:64K
	expect 0 kxfer ping -c 1 --tos 16 "$peer"
	end_trace
	expect_traced 'kxfer_link: link [0-9]+ made here: live, error 0'
	expect_traced 'kxfer_link: link [0-9]+ accepted: live, error 0'
	expect_traced 'kxfer_job_completed: .*: READ, .* 64 bytes, status 0'
}

test_a_refusal() {
	begin_trace kxfer_refused || return 0
	serve inbox=mem:64K
	most=/sys/module/kxfer/parameters/max_links_per_peer
	before=$(cat "$most")
	echo 0 >"$most"
	expect 1 kxfer ping -c 1 --tos 20 "$peer"
	echo "$before" >"$most"
	end_trace
	expect_traced 'kxfer_refused: 10\.77\.0\.1:[0-9]+: refusal [0-9]+'
}

test_a_line() {
	begin_trace kxfer_line || return 0
	serve inbox=mem:64K --writable
	expect 0 kxfer put /etc/hosts --via fd77::1 "$peer/inbox"
	end_trace
	expect_traced 'kxfer_line: line [0-9]+: opened, link [0-9]+, error 0, 1 times'
}

run_tests
