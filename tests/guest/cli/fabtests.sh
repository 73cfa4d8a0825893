#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libfabric's own tests (fabtests) over the provider: all of their quick run, a result for each.
# What is in fabtests.exclude is not run, and has its reason there.
#
# A test of two processes is a server and a client, as fabtests' own script starts them: that script
# wants ssh and Python. A process that ends with ENODATA or ENOSYS says that the provider has not
# what it tests: a skip, as there.

# The kind of a test is the name of its function:
# shellcheck disable=SC2317

given=/kxfer-fi
tests=$given/fabtests
here=$(cd "$(dirname "$0")" && pwd)
peer=${KXFER_ADDRESS:-10.77.0.1}
limit=90 # seconds for one of the two processes
enodata=61 enosys=38
export FI_PROVIDER_PATH=$given FI_PROVIDER=kxfer PATH="$PATH:$tests/bin"

if [ ! -e $tests/list ]; then
	echo "KTAP version 1"
	echo "1..1"
	echo "ok 1 all # SKIP no fabtests in this guest: make check-fabtests builds them"
	exit 0
fi

# Prints the reason why a test is not run, if there is one.
why_excluded() { # COMMAND
	awk -F '\t+' -v command="$1" '!/^#/ && NF == 2 && command ~ ("^" $1 "$") { print $2; exit }' \
		"$here/fabtests.exclude"
}

# Sets $status: that of the one process, or of the first of two that failed.
run_unit() { # COMMAND
	command=$(echo "$1" | sed "s/SERVER_ADDR/$peer/; s/GOOD_ADDR/$peer/")
	# shellcheck disable=SC2086 # words of a command
	timeout -k 5 $limit $command -p kxfer >client.out 2>&1
	status=$?
}

# Until the server has the mailbox of fabtests' port, or waits for its client at TCP port 3000 before it makes
# one, or has ended: what has ended has no exe.
wait_for_server() {
	tries=100
	until grep -q ':0BB8 [0-9A-F:]* 0A ' /proc/net/tcp || kxfer export list | grep -qF fi.p.9228 ||
		! readlink "/proc/$server/exe" >/dev/null; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return
		sleep 0.1
	done
}

run_pair() { # COMMAND
	# shellcheck disable=SC2086
	timeout -k 5 $limit $1 -p kxfer -s "$peer" >server.out 2>&1 &
	server=$!
	wait_for_server
	# shellcheck disable=SC2086
	timeout -k 5 $limit $1 -p kxfer -s "$peer" "$peer" >client.out 2>&1
	status=$?
	# A server that has not the test's client any more would wait for the whole time.
	[ "$status" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server"
	server_status=$?
	# A server that has not what it needs says why the client found none.
	case $status:$server_status in
	0:*|*:"$enodata"|*:"$enosys") status=$server_status ;;
	esac
}

# fi_rdm_atomic has, for words of some bytes, four buffers of 64 times 8 MiB at each end, which are pinned.
with_its_size() { # COMMAND
	case $1 in
	fi_rdm_atomic*) echo "$1 -S 64" ;;
	*) echo "$1" ;;
	esac
}

what_was_said() {
	for file in client.out server.out; do
		[ ! -s $file ] || tail -n 4 $file | sed "s/^/#   ${file%.out}: /"
	done
}

left_behind() {
	tries=50
	until kxfer --json stat | jq -e '.live_jobs == 0 and .live_pins == 0' >/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 0
		sleep 0.1
	done
	return 1
}

run_one() { # NUMBER KIND COMMAND
	reason=$(why_excluded "$3")
	if [ -n "$reason" ]; then
		echo "ok $1 $3 # SKIP excluded: $reason"
		return
	fi
	: >server.out
	"run_$2" "$(with_its_size "$3")"
	case $status in
	0) if left_behind; then echo "not ok $1 $3 # it leaves jobs or pinned memory"; return 1; fi
	   echo "ok $1 $3" ;;
	"$enodata"|"$enosys") echo "ok $1 $3 # SKIP the provider has not what it needs ($status)" ;;
	*) echo "not ok $1 $3 # status $status"; what_was_said; return 1 ;;
	esac
}

# fi_av_test asks getaddrinfo() for a service by name.
[ -e /etc/services ] || printf 'discard 9/tcp\ndiscard 9/udp\n' >/etc/services
cd "$(mktemp -d)" || exit 1
kxfer listen add "$peer" --no-key >/dev/null || exit 1
echo "KTAP version 1"
echo "1..$(wc -l <$tests/list)"
failed=0 number=0
while read -r kind command; do
	number=$((number + 1))
	run_one $number "$kind" "$command" </dev/null || failed=1
done <$tests/list
kxfer listen del "$peer" >/dev/null
exit $failed
