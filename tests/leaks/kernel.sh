#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What all the tests before it have left behind in a checking kernel: memory
# that nothing points to any more, and whether the checks still stand. Runs as
# the last of a collection.

# shellcheck disable=SC2086,SC2154,SC2317 # a path of ours, variables of cli.sh; functions that run_tests calls
# shellcheck source=tests/lib/cli.sh
. ../lib/cli.sh

kmemleak=/sys/kernel/debug/kmemleak

# The kernel's own: sysfs_slab_add() in mm/slub.c forgets the name of a cache that it
# cannot add, which fault/fail_nth brings about by loading the module.
without_the_kernels_own() {
	awk '/^unreferenced object/ { if (!own) printf "%s", object; object = ""; own = 0 }
		/sysfs_slab_add/ { own = 1 }
		{ object = object $0 "\n" }
		END { if (!own) printf "%s", object }'
}

# An object is reported when two scans in a row do not find it, and when it is
# older than five seconds (jiffies_min_age in mm/kmemleak.c).
expect_no_leak() {
	[ -e $kmemleak ] || skip "this kernel has no kmemleak"
	echo scan >$kmemleak
	sleep 6
	echo scan >$kmemleak
	without_the_kernels_own <$kmemleak >"$work/leaks"
	if [ -s "$work/leaks" ]; then
		head -n 60 "$work/leaks"
		fail "$(grep -c '^unreferenced object' "$work/leaks") leaked objects"
	fi
}

test_locks_are_still_watched() {
	[ -e /proc/lockdep_stats ] || skip "this kernel has no lockdep"
	grep -q 'debug_locks: *1' /proc/lockdep_stats || fail "lockdep has switched itself off"
}

test_nothing_leaked_while_the_module_is_loaded() {
	expect_no_leak
}

# What only the module's own variables pointed to is lost now.
test_nothing_leaked_when_the_module_is_gone() {
	[ -e $kmemleak ] || skip "this kernel has no kmemleak"
	rmmod kxfer || fail "rmmod kxfer"
	expect_no_leak
	insmod /kxfer/kxfer.ko || fail "insmod kxfer.ko"
	wait_for 10 test -c /dev/kxfer
}

run_tests
