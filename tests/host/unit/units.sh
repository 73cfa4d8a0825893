#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Tests the units of systemd: they can be read, and what their services may do is bounded.
# systemd-analyze needs no running systemd for that.
#
# usage: tests/host/unit/units.sh USERSPACE-BUILD

set -euo pipefail

units=$(cd "$(dirname "$0")/../../../scripts/packaging/systemd" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Exposure as systemd-analyze counts it, from 0 to 100. The worst that it calls OK is 49.
threshold=30

fail() {
	echo "FAILED: $*"
	exit 1
}

command -v systemd-analyze >/dev/null || { echo "SKIP no systemd-analyze"; exit 0; }

# Both have to be units that are complete; one that names the build's tool can be verified.
for unit in kxfer.service kxfer-serve@.service; do
	sed "s,/usr/bin/kxfer,$1/kxfer," "$units/$unit" >"$work/$unit"
done
systemd-analyze verify --man=no "$work/kxfer.service" "$work/kxfer-serve@a.service" >"$work/out" 2>&1 ||
	fail "verify: $(cat "$work/out")"
# It warns of a key that it does not know, and succeeds.
! grep -F "$work" "$work/out" || fail "verify warns"

for unit in kxfer.service kxfer-serve@.service; do
	systemd-analyze security --no-pager --offline=yes --threshold=$threshold "$work/$unit" >"$work/out" 2>&1 ||
		fail "$unit: $(tail -n 1 "$work/out")"
	grep -o 'exposure level for .*: [0-9.]*' "$work/out"
done

# What would break it on a real node: RDMA is of the initial namespaces, the device has to be there, and
# folders are served by openat2(). tests/host/package/systemd shows it.
for line in 'DeviceAllow=/dev/kxfer rw' 'PrivateNetwork=no' 'PrivateUsers=no' 'LimitMEMLOCK=infinity' \
	'RestrictSUIDSGID=no'; do
	grep -qx "$line" "$units/kxfer-serve@.service" || fail "kxfer-serve@.service lacks $line"
done
grep -qx 'KeyringMode=shared' "$units/kxfer.service" || fail "kxfer.service would not find its keys"
