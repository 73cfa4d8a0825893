# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Shared by deb and rpm: $top, $version, and a copy of the tree to build in.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034 # of the scripts that read this file
version=$(cat "$top/VERSION")

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
