# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Shared by deb and rpm: $top, $version, a copy of the tree to build in, and which fio is installed.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034 # of the scripts that read this file
version=$(cat "$top/VERSION")
# shellcheck disable=SC2034
cache=${KXFER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kxfer}

# The files that git tracks, as they are now; in an unpacked archive all but what was built.
copy_tree() { # TO
	local file
	mkdir -p "$1"
	if git -C "$top" rev-parse --git-dir >/dev/null 2>&1; then
		git -C "$top" ls-files -z |
			while IFS= read -r -d '' file; do [ ! -e "$top/$file" ] || printf '%s\0' "$file"; done |
			tar -C "$top" --null --files-from=- -c
	else
		tar -C "$top" --exclude=./build -c .
	fi | tar -C "$1" -x
}

# The release of the fio whose headers `scripts/setup package` has fetched, for example 3.33.
fio_release() {
	local of
	of=$(readlink "$cache/fio/installed")
	of=${of#*:}
	echo "${of%-*}"
}

release_after() { echo "${1%.*}.$((${1##*.} + 1))"; } # RELEASE
