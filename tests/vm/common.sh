# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What tests/vm/run and tests/vm/mkinitramfs share.

# shellcheck disable=SC2034 # used by the scripts that read this file
cache=${KXFER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kxfer}

# Copies the shared libraries that the files need into ROOT. Static programs
# and scripts need none.
copy_libraries() { # ROOT FILE...
	local root=$1 library
	shift
	mkdir -p "$root/usr/lib64" "$root/usr/lib/x86_64-linux-gnu"
	{ ldd "$@" 2>/dev/null || true; } |
		sed -nE 's,^.*[[:space:]](/[^ ]+\.so[^ ]*) \(0x.*,\1,p' | sort -u |
	while read -r library; do
		case $library in
		/lib64/*) cp -Lu "$library" "$root/usr/lib64/" ;;
		/lib/x86_64-linux-gnu/*|/usr/lib/x86_64-linux-gnu/*)
			cp -Lu "$library" "$root/usr/lib/x86_64-linux-gnu/" ;;
		esac
	done
}
