#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The KUnit suites of tests/host/pure in the running kernel: they run when kxfer_kunit.ko is
# loaded. Each case becomes a separate result, SUITE.CASE.
#
# Results are taken from the kernel log, which has all of them. debugfs keeps only 512 bytes of
# a case in 6.1 and is a separate option. A kernel without KUnit skips all; user space runs the
# same cases (make check-unit).

module=${KXFER_KUNIT_MODULE:-/kxfer/kxfer_kunit.ko}
suites="plan decode slot credit state rule"
log=$(mktemp) results=$(mktemp)
trap 'rm -f "$log" "$results"' EXIT

has_kunit() {
	modprobe kunit 2>/dev/null
	[ -d /sys/kernel/debug/kunit ] || grep -qw kunit_run_tests /proc/kallsyms
}

if [ ! -e "$module" ]; then
	if has_kunit; then
		echo "# $module does not exist: make kmod builds it for this kernel"
		exit 1
	fi
	echo "1..0 # SKIP this kernel has no KUnit"
	echo "# this kernel has no KUnit"
	exit 4
fi
modprobe kunit 2>/dev/null
! grep -q '^kxfer_kunit ' /proc/modules || rmmod kxfer_kunit || exit 1
mark="kunit suites begin $$"
echo "$mark" >/dev/kmsg
insmod "$module" || exit 1
dmesg | sed "1,/$mark/d; s/^\[[^]]*\] //" >"$log"

# A suite without a final result, or with a missing case, is a failure.
for suite in $suites; do
	awk -v suite="$suite" '
		/# Subtest: / { inside = $NF == suite }
		!inside { next }
		/^ +1\.\.[0-9]+/ { planned = substr($1, 4) + 0 }
		/^ +(not )?ok / {
			word = $1 == "not" ? "not ok" : "ok"
			name = $0
			sub(/^ *(not )?ok [0-9]+ (- )?/, "", name)
			print word, suite "." name
			n++
		}
		/^(not )?ok / { ended = 1; inside = 0 }
		END { if (!n || n != planned || !ended) print "not ok", suite ".complete" }
	' "$log"
done >"$results"

echo "KTAP version 1"
echo "1..$(wc -l <"$results")"
awk '{ sub(/^not ok|^ok/, "& " NR); print }' "$results"
status=0
if grep -q '^not ok' "$results"; then
	status=1
	sed 's/^/# /' "$log" | tail -n 100
fi
rmmod kxfer_kunit || status=1
exit $status
