#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tracepoints: what they say of links, jobs, grants, messages and lines, in words.

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
	expect_traced 'kxfer_job_completed: .*: READ, .* 64 bytes, .* status 0'
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

# Of the one who is served as of the one who serves.
test_targets_and_grants() {
	begin_trace kxfer_target kxfer_grant kxfer_grant_ended kxfer_job_completed || return 0
	serve inbox=mem:64K --writable
	expect 0 kxfer put /etc/hosts "$peer/inbox"
	expect 1 kxfer get "$peer/nosuch" copy
	wait_for 20 grep -q kxfer_grant_ended $tracing/trace
	end_trace
	expect_traced 'kxfer_target: target [0-9]+ opened: link [0-9]+, grant [0-9]+, 65536 bytes, rights 0x[0-9a-f]+'
	expect_traced 'kxfer_job_completed: .*: WRITE, .* target [1-9][0-9]*, link [1-9][0-9]*, lane [1-9][0-9]*, status 0'
	expect_traced 'kxfer_target: target [0-9]+ closed: link [0-9]+'
	expect_traced 'kxfer_grant: link [0-9]+: inbox for uid 0: grant [1-9][0-9]*, error 0'
	expect_traced 'kxfer_grant: link [0-9]+: nosuch for uid 0: grant 0, error -2'
	expect_traced 'kxfer_grant_ended: link [0-9]+: inbox for uid 0'
}

test_messages() {
	begin_trace kxfer_message || return 0
	expect 0 kxfer bench send --size 64 --count 100 --judge-anyway
	end_trace
	expect_traced 'kxfer_message: link [0-9]+: [^ ]+ from uid 0, 64 bytes, error 0'
}

# `bench` holds the export while its owner ends.
test_a_withdrawal() {
	begin_trace kxfer_target kxfer_withdraw kxfer_withdrawn || return 0
	serve inbox=mem:64K
	background kxfer bench read "$peer" --export inbox --size 64 --duration 60 --judge-anyway
	reader=$pid
	wait_for 30 grep -q 'kxfer_target.*opened' $tracing/trace
	stop_serve
	pid=$reader
	collect
	end_trace
	expect_traced 'kxfer_withdraw: link [0-9]+: inbox, exposure [0-9]+, error 0'
	expect_traced 'kxfer_target: target [0-9]+ withdrawn: link [0-9]+'
	expect_traced 'kxfer_withdrawn: link [0-9]+: inbox, exposure [0-9]+, error 0'
}

test_a_line() {
	begin_trace kxfer_line || return 0
	serve inbox=mem:64K --writable
	expect 0 kxfer put /etc/hosts --via fd77::1 "$peer/inbox"
	end_trace
	expect_traced 'kxfer_line: line [0-9]+: opened, link [0-9]+, error 0, 1 times'
}

run_tests
