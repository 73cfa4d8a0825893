# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Shared by scripts/vm/run, scripts/vm/mkinitramfs and scripts/vm/arch/run.

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

# Copies the modules of a list and their dependencies into ROOT, uncompressed.
copy_modules() { # FROM ROOT LIST
	local from=$1 to=$2/lib/modules/${1##*/} path
	mkdir -p "$to"
	cp "$from"/modules.{order,builtin,builtin.modinfo} "$to/"
	module_closure "$3" "$from/modules.dep" | while read -r path; do
		mkdir -p "$to/${path%/*}"
		case $path in
		*.xz)  xz -dc "$from/$path" >"$to/${path%.xz}" ;;
		*.zst) zstd -qdc "$from/$path" >"$to/${path%.zst}" ;;
		*.gz)  gzip -dc "$from/$path" >"$to/${path%.gz}" ;;
		*)     cp "$from/$path" "$to/$path" ;;
		esac
	done
}

# modules.dep lists the whole closure of dependencies with each module. A listed module that
# the file does not name is built into the kernel or missing in this series; /init fails if it
# needs one that is missing.
module_closure() { # LIST MODULES.DEP
	awk '
		FNR == NR { if ($1 != "" && $1 !~ /^#/) { gsub(/-/, "_", $1); want[$1] = 1 }; next }
		{
			name = $1
			sub(/.*\//, "", name); sub(/\.ko.*/, "", name); gsub(/-/, "_", name)
			if (!(name in want)) next
			sub(/:/, "")
			for (i = 1; i <= NF; i++) print $i
		}' "$1" "$2" | sort -u
}

quote() { # prints the words for a POSIX shell
	local word
	for word; do
		printf "'%s' " "${word//\'/\'\\\'\'}"
	done
}
