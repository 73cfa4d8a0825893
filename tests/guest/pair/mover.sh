#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Puts files of random bytes into a folder of another machine, gets them back and compares, until
# /tmp/mover.end is there. tests/pair/hour.sh runs it while things go wrong.
#
# usage: mover.sh PEER/FOLDER
#
# Each command goes on over a break for 30 s. One that ends with an error says why; the next file is
# another one. After each file comes a line of JSON with the sums. Status 1: bytes were wrong.

[ -n "${1:-}" ] || { echo "# SKIP no folder of another machine"; exit 4; }

work=$(mktemp -d)
cd "$work" || exit 1
ok=0 failed=0 corrupt=0 bytes=0
number=0

move() {
	kxfer put --timeout 30 sent "$1/sent" >said 2>&1 &&
		kxfer get --force --timeout 30 "$1/sent" back >said 2>&1
}

while [ ! -e /tmp/mover.end ]; do
	number=$((number + 1))
	length=$((1000000 + number * 333667 % 3000000))
	head -c "$length" /dev/urandom >sent
	if ! move "$1"; then
		failed=$((failed + 1))
		echo "file $number: $(tr '\r' '\n' <said | grep -v '^ *$' | tail -n 4 | tr '\n' ' ')"
		sleep 1
	elif cmp sent back; then
		ok=$((ok + 1))
		bytes=$((bytes + 2 * length))
	else
		corrupt=$((corrupt + 1))
		echo "file $number has come back with other bytes"
	fi
	echo "{\"files\": $ok, \"failed\": $failed, \"wrong\": $corrupt, \"bytes\": $bytes}"
done
rm -rf "$work" /tmp/mover.end
[ $corrupt -eq 0 ]
