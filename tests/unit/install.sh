#!/bin/bash
# SPDX-License-Identifier: MIT
#
# scripts/install into a tree of its own (DESTDIR): what it puts there, that nothing is
# left when it is removed again, and what it says where man pages cannot be made. The module
# is an empty file here, and rst2man one that copies: what they do is tested elsewhere.
#
# usage: tests/unit/install.sh USERSPACE-BUILD

set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
userspace=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	sed 's/^/  /' "$work/out" 2>/dev/null
	exit 1
}

run() { # ACTION
	DESTDIR=$work/root PREFIX=/usr/local "$top/scripts/install" "$1" "$work" running >"$work/out" 2>&1 ||
		fail "scripts/install $1"
}

is_there() { # PATH
	[ -e "$work/root$1" ] || fail "no $1"
}

is_empty() {
	[ -z "$(find "$work/root" -type f -o -type l)" ] || fail "left behind: $(find "$work/root" -type f -o -type l)"
}

mkdir -p "$work/kmod/$(uname -r)/kxfer" "$work/bin"
: >"$work/kmod/$(uname -r)/kxfer/kxfer.ko"
ln -s "$userspace" "$work/userspace"

if ! command -v rst2man >/dev/null; then
	run install
	grep -q "no man pages: rst2man is missing.*python3-docutils" "$work/out" || fail "it does not say why"
	is_there /usr/local/bin/kxfer
	[ ! -e "$work/root/usr/local/share/man" ] || fail "man pages of nothing"
	run uninstall
	is_empty
fi

# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\ncp "$2" "$3"\n' >"$work/bin/rst2man"
chmod +x "$work/bin/rst2man"
PATH=$work/bin:$PATH
run install
for file in "/lib/modules/$(uname -r)/updates/kxfer.ko" /usr/lib/udev/rules.d/60-kxfer.rules \
	/usr/local/bin/kxfer /usr/local/include/kxfer/kxfer.h /usr/local/include/linux/kxfer.h; do
	is_there "$file"
done
for page in man1/kxfer.1 man1/kxfer-bench.1 man1/kxfer-sweep.1 man4/kxfer.4; do
	is_there "/usr/local/share/man/$page.gz"
	gzip -dc "$work/root/usr/local/share/man/$page.gz" | cmp - "$top/Documentation/man/${page#*/}.rst" ||
		fail "$page is another page"
done
run uninstall
is_empty
