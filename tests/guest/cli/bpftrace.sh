#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The scripts for bpftrace: each is attached, and what it prints is compared with what was done.

# run_tests calls the tests by their names:
# shellcheck disable=SC2086,SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# `make check-bpftrace` gives this folder to its guest.
given=/kxfer-bpftrace
[ -e $given/bpftrace ] || skip_all="no bpftrace in this guest: make check-bpftrace has it"

# Runs a script; what it prints goes to the file `traced`.
begin_script() { # SCRIPT WORDS
	$given/bpftrace "$given/scripts/$1" >traced 2>traced.err &
	tracer=$!
	wait_for 120 grep -q "$2" traced || fail "$1 does not begin: $(cat traced.err)"
}

end_script() {
	kill -INT "$tracer"
	wait "$tracer" || fail "status $?: $(cat traced.err)"
	tracer=
	[ ! -s traced.err ] || grep -v Attaching traced.err >&2
}

expect_traced() { # PATTERN
	grep -qE "$1" traced || fail "no '$1' in: $(cat traced)"
}

test_latency_counts_each_job() {
	serve inbox=mem:64K
	begin_script latency.bt counting
	expect 0 kxfer ping -c 20 -i 0.01 "$peer"
	end_script
	expect_traced '@jobs\[READ\]: 20$'
	expect_traced '@ns\[READ\]:'
	expect_traced '^\[[0-9]+[KM]?, [0-9]+[KM]?\) '
}

test_stages_of_a_job_add_up() {
	serve inbox=mem:64K
	begin_script stages.bt looking
	expect 0 kxfer ping -c 20 -i 0.01 "$peer"
	end_script
	sum=0
	for stage in checked planned answered told; do
		expect_traced "@${stage}_ns\\[READ\\]: [0-9]+"
		sum=$((sum + $(sed -n "s/^@${stage}_ns\\[READ\\]: //p" traced)))
	done
	expect_traced '@posted_ns\[READ\]: [0-9]+'
	total=$(sed -n 's/^@total_ns\[READ\]: //p' traced)
	if [ "$sum" -lt $((total / 2)) ] || [ "$sum" -gt $((total * 2)) ]; then fail "stages $sum, total $total"; fi
}

test_errors_say_what_failed() {
	serve inbox=mem:64K
	begin_script errors.bt waiting
	expect 1 kxfer get "$peer/nosuch" copy
	end_script
	expect_traced '^[0-9:]+ nosuch not granted to uid 0 on link [0-9]+: errno 2$'
	expect_traced '@not_granted\[nosuch, 2\]: 1'
}

test_links_tell_their_story() {
	begin_script links.bt waiting
	serve inbox=mem:64K --writable
	expect 0 kxfer ping -c 1 --tos 28 "$peer"
	expect 0 kxfer put /etc/hosts "$peer/inbox"
	stop_serve
	end_script
	expect_traced 'link [0-9]+ made here: live, errno 0'
	expect_traced 'link [0-9]+ accepted: live, errno 0'
	expect_traced 'link [0-9]+: inbox for uid 0, errno 0'
	expect_traced 'target [0-9]+ of link [0-9]+: opened'
	expect_traced 'target [0-9]+ of link [0-9]+: closed'
	expect_traced 'link [0-9]+: inbox for uid 0 ended'
}

run_tests
