# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Shared by run, systemd and system: which packages are tested, what they depend on, the same ones
# with a higher revision.

# shellcheck disable=SC2034 # used by the scripts that read this file
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
log=
names=(kxfer libkxfer0 libkxfer-dev kxfer-dkms kxfer-tests kxfer-fio libfabric-kxfer)

say() { echo "# $*"; }

die() {
	printf 'package: %s\n' "$@" >&2
	[ -z "$log" ] || tail -n 20 "$log" >&2
	exit 1
}

# Prints the files of the packages in a folder.
packages() { # DIR
	local package
	for package in "${names[@]}"; do
		set -- "$1" "$1/${package}_"*.deb
		[ -e "$2" ] || die "no $2" "run: make deb"
		echo "$2"
	done
}

# What the packages depend on, without themselves.
depends_of() { # PACKAGE...
	local package
	for package in "$@"; do
		dpkg-deb -f "$package" Depends | tr ',' '\n' | sed 's/(.*//; s/|.*//; s/ //g'
	done | grep -v kxfer | sort -u
}

# Puts the packages with a higher revision in the place of the old ones. Their units differ by a comment,
# as those of another release would.
raise_revision() { # SCRATCH PACKAGE...
	local scratch=$1 one old unit
	shift
	for one in "$@"; do
		rm -rf "$scratch"
		dpkg-deb -R "$one" "$scratch"
		old=$(dpkg-deb -f "$one" Version)
		sed -i "s/\b$old\b/$old+upgrade/" "$scratch/DEBIAN/control"
		for unit in "$scratch"/lib/systemd/system/*.service; do
			[ ! -e "$unit" ] || echo '# upgraded' >>"$unit"
		done
		dpkg-deb --root-owner-group -b "$scratch" "$one" >>"$log" 2>&1 || die "dpkg-deb -b $one"
	done
	rm -rf "$scratch"
}
