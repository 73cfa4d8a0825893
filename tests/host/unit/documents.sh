#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Compares the man pages with what they describe: libkxfer(3) names each function, class and
# member of the library; kxfer(1) and its siblings name each command and option. And kxfer
# explain works here, where no module is loaded.
#
# usage: tests/host/unit/documents.sh USERSPACE-BUILD

set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
kxfer=$1/kxfer
man=$top/Documentation/man
headers=$top/userspace/include/kxfer
missing=0

miss() { # PAGE WORD
	echo "FAILED: $1 does not name $2"
	missing=$((missing + 1))
}

in_library_page() { # REGULAR-EXPRESSION NAME
	grep -qE -- "$1" "$man/libkxfer.3.rst" || miss "libkxfer(3)" "$2"
}

functions() { sed -nE 's/^\t(kxfer_[a-z_]+);$/\1/p' "$top/userspace/lib/libkxfer.map"
	sed -nE 's/^static inline struct kxfer_job (kxfer_job_make_[a-z_]+)\(.*/\1/p' "$headers/kxfer.h"; }

# Public ones: types and functions of the namespace, members of the classes.
types() { sed -nE 's/^(class|struct) ([A-Za-z]+).*\{$/\2/p; s/^using ([A-Za-z]+) =.*/\1/p' "$headers/kxfer.hpp" |
	grep -vE '^(Owned|Handle)$'; }
members() { awk '
	/^namespace detail/ { hidden = 1 }
	/^} \/\/ namespace detail/ { hidden = 0 }
	/^  private:/ { private = 1 }
	/^};/ { private = 0 }
	hidden || private { next }
	match($0, /^    (template <[^>]*> |static |explicit |\[\[nodiscard\]\] )*[A-Za-z_:][A-Za-z0-9_:<>, ]*[&* ]+[a-z_]+\(/) {
		name = substr($0, RSTART, RLENGTH - 1); sub(/.*[&* ]/, "", name); print name
	}' "$headers/kxfer.hpp" | grep -vxE 'explicit|operator|return|reset' | sort -u; }

count=0
for name in $(functions); do in_library_page "\`\`$name\(\)\`\`" "$name()"; count=$((count + 1)); done
[ "$count" -ge 59 ] || { echo "FAILED: only $count functions were found"; exit 1; }
count=0
for name in $(types); do in_library_page "(^|[^A-Za-z])$name([^A-Za-z]|$)" "$name"; count=$((count + 1)); done
[ "$count" -ge 16 ] || { echo "FAILED: only $count types were found: $(types)"; exit 1; }
count=0
for name in $(members); do in_library_page "\`([A-Z][A-Za-z]*::)?$name(<Record>)?\(\)\`" "$name()"; count=$((count + 1)); done
[ "$count" -ge 61 ] || { echo "FAILED: only $count members were found: $(members)"; exit 1; }

# Commands and their options, as --help lists them.
commands() { "$kxfer" --help | sed -nE '/^[A-Z].*:$/,$ s/^  ([a-z]+)  +.*/\1/p'; }
options() { sed -nE 's/^  (-[A-Za-z],)?(--[a-z][a-z-]+).*/\2/p'; }
count=0
for command in $(commands); do
	grep -qE "\*\*($command|kxfer $command)(\*\*| )" "$man/kxfer.1.rst" || miss "kxfer(1)" "$command"
	# shellcheck disable=SC2013 # words
	for option in $("$kxfer" "$command" --help | options | grep -vxE -- '--help'); do
		count=$((count + 1))
		grep -qF -- "$option" "$man"/kxfer{,-bench,-sweep}.1.rst || miss "kxfer(1)" "$command $option"
	done
done
[ "$count" -ge 150 ] || { echo "FAILED: only $count options were found"; exit 1; }

# How long the default sweep takes.
plan=$("$kxfer" sweep --plan | sed -nE 's/^cells  +([0-9]+)$/\1 cells, /p; s/^time  +//p' | tr -d '\n')
grep -qF "$plan" "$man/kxfer-sweep.1.rst" || miss "kxfer-sweep(1)" "$plan"

# /dev/kxfer is not needed, and no right is.
"$kxfer" explain RETRY_EXC_ERR IB_CM_REJ_STALE_CONN IBV_EVENT_PORT_ERR -110 >/dev/null ||
	{ echo "FAILED: kxfer explain needs more than itself"; exit 1; }

[ "$missing" -eq 0 ]
