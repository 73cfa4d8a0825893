#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Leftovers of all earlier tests in a checking kernel: memory that nothing points to any more,
# and whether the checks are still active. Runs last in a collection.

# shellcheck disable=SC2086,SC2154,SC2317 # a path of ours, variables of cli.sh; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

kmemleak=/sys/kernel/debug/kmemleak

# A leak of the kernel's own: when create_cache() in mm/slab_common.c cannot add a cache to
# sysfs, it loses the cache's name. fault/fail_nth causes that by loading.
without_the_kernels_own() {
	awk '/^unreferenced object/ { if (!(by && name)) printf "%s", object; object = ""; by = name = 0 }
		/comm "fail_nth"/ { by = 1 }
		/^ .*  kxfer_active_job$/ { name = 1 }
		{ object = object $0 "\n" }
		END { if (!(by && name)) printf "%s", object }'
}

# kmemleak reports an object when two scans in a row do not find it, and when it is older than
# five seconds (jiffies_min_age in mm/kmemleak.c).
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

# KCSAN checks one access in some thousands.
test_races_are_looked_for() {
	[ -e /sys/kernel/debug/kcsan ] || skip "this kernel has no KCSAN"
	grep -q '^enabled: 1' /sys/kernel/debug/kcsan || fail "KCSAN is off"
	! grep -q '^setup_watchpoints: 0' /sys/kernel/debug/kcsan || fail "KCSAN has looked at nothing"
	grep -E '^(setup_watchpoints|data_races):' /sys/kernel/debug/kcsan
}

test_nothing_leaked_while_the_module_is_loaded() {
	expect_no_leak
}

# Memory that only variables of the module pointed to is lost now.
test_nothing_leaked_when_the_module_is_gone() {
	[ -e $kmemleak ] || skip "this kernel has no kmemleak"
	remove_module || fail "rmmod kxfer"
	expect_no_leak
	insmod "$module_file" || fail "insmod kxfer.ko"
	wait_for 10 test -c /dev/kxfer
}

run_tests
