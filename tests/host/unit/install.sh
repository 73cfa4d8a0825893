#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Tests scripts/install with separate trees (DESTDIR): the installed files, their use from any
# prefix, the separate removal of each prefix, and the messages when there is nothing to remove
# or man pages cannot be made. The module is a small object file here, and rst2man a copy
# command; other tests cover their function.
#
# usage: tests/host/unit/install.sh USERSPACE-BUILD

set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
userspace=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
prefix=/usr/local

fail() {
	echo "FAILED: $*"
	sed 's/^/  /' "$work/out" 2>/dev/null
	exit 1
}

try() { # ACTION
	DESTDIR=$root PREFIX=$prefix "$top/scripts/install" "$1" "$work" running >"$work/out" 2>&1
}

run() { # ACTION
	try "$1" || fail "scripts/install $1"
}

says() { # REGULAR-EXPRESSION
	grep -qE -- "$1" "$work/out" || fail "it does not say: $1"
}

is_there() { # PATH
	[ -e "$root$1" ] || fail "no $1"
}

is_empty() { # DIRECTORY
	[ -z "$(find "$1" -type f -o -type l)" ] || fail "left behind: $(find "$1" -type f -o -type l)"
}

make_module() {
	mkdir -p "$work/kmod/$(uname -r)/kxfer" "$work/bin"
	echo 'int kxfer_is_here;' | cc -g -x c -c - -o "$work/kmod/$(uname -r)/kxfer/kxfer.ko"
	cp "$work/kmod/$(uname -r)/kxfer/kxfer.ko" "$work/kmod/$(uname -r)/kxfer/kxfer_bench.ko"
	ln -s "$userspace" "$work/userspace"
}

no_man_pages_say_why() {
	run install
	says "no man pages: rst2man is missing.*python3-docutils"
	is_there /usr/local/bin/kxfer
	[ ! -e "$root/usr/local/share/man" ] || fail "man pages of nothing"
	run uninstall
	is_empty "$root"
}

# shellcheck disable=SC2016 # for the script
have_rst2man() {
	printf '#!/bin/sh\ncp "$2" "$3"\n' >"$work/bin/rst2man"
	chmod +x "$work/bin/rst2man"
	PATH=$work/bin:$PATH
}

all_is_installed_and_removed() {
	local file page module
	run install
	module=/lib/modules/$(uname -r)/updates/kxfer.ko
	for file in "$module" /usr/lib/udev/rules.d/60-kxfer.rules \
		/usr/local/bin/kxfer /usr/local/include/kxfer/kxfer.h /usr/local/include/linux/kxfer.h \
		"${module%.ko}_bench.ko" /usr/local/include/kxfer/kxfer_bench.h \
		/usr/local/include/linux/kxfer_bench.h; do
		is_there "$file"
	done
	[ ! -d "$root/etc" ] || fail "something is enabled"
	for file in kxfer.service kxfer-serve@.service; do
		is_there "/usr/lib/systemd/system/$file"
		# It runs the tool of this prefix, and differs in nothing else.
		sed 's,/usr/local/bin/kxfer,/usr/bin/kxfer,' "$root/usr/lib/systemd/system/$file" |
			diff - "$top/scripts/packaging/systemd/$file" >"$work/out" || fail "$file is another unit"
		grep -q '^ExecStart=/usr/local/bin/kxfer ' "$root/usr/lib/systemd/system/$file" || fail "$file runs another tool"
	done
	cmp "$root/usr/lib/sysusers.d/kxfer.conf" "$top/scripts/packaging/systemd/kxfer.sysusers" || fail "other users"
	for page in man1/kxfer.1 man1/kxfer-bench.1 man1/kxfer-sweep.1 man3/libkxfer.3 man4/kxfer.4; do
		is_there "/usr/local/share/man/$page.gz"
		gzip -dc "$root/usr/local/share/man/$page.gz" | cmp - "$top/Documentation/man/${page#*/}.rst" ||
			fail "$page is another page"
	done
	nm "$root$module" >"$work/out"
	says kxfer_is_here
	readelf -SW "$root$module" >"$work/out"
	! grep -q '\.debug_info' "$work/out" || fail "the module has what only a debugger reads"
	run uninstall
	says "removed [0-9]+ files of [0-9]+ .*$(uname -r)"
	! grep -q "was not there" "$work/out" || fail "something was missing"
	is_empty "$root"
}

# Builds programs in C and C++, with pkg-config and with CMake.
can_be_used_from() { # PREFIX
	local at=$root$1 words
	cat >"$work/use.c" <<-'C'
		#include <kxfer/kxfer.h>
		int main(void) { return kxfer_library_version()[0] == 0; }
	C
	cat >"$work/use.cpp" <<-'CXX'
		#include <kxfer/kxfer.hpp>
		int main() { return kxfer::Session::open() ? 0 : kxfer_library_version()[0] == 0; }
	CXX
	read -ra words <<<"$(PKG_CONFIG_PATH=$at/lib/pkgconfig pkg-config --cflags --libs kxfer)" || fail "pkg-config"
	cc "$work/use.c" -o "$work/use" "${words[@]}" "-Wl,-rpath,$at/lib" >"$work/out" 2>&1 || fail "cc by pkg-config"
	"$work/use" || fail "what pkg-config made does not run"
	"$at/bin/kxfer" --version >"$work/out" 2>&1 || fail "$at/bin/kxfer does not run"

	mkdir -p "$work/project"
	cat >"$work/project/CMakeLists.txt" <<-'CMAKE'
		cmake_minimum_required(VERSION 3.20)
		project(use C CXX)
		find_package(kxfer 0.1 REQUIRED)
		add_executable(use ../use.c)
		target_link_libraries(use PRIVATE kxfer::kxfer)
		add_executable(use_cxx ../use.cpp)
		target_link_libraries(use_cxx PRIVATE kxfer::cxx)
	CMAKE
	cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$at" >"$work/out" 2>&1 || fail "find_package"
	cmake --build "$work/project/build" >"$work/out" 2>&1 || fail "cmake --build"
	"$work/project/build/use" || fail "what CMake made of C does not run"
	"$work/project/build/use_cxx" || fail "what CMake made of C++ does not run"
}

each_prefix_is_for_itself() {
	prefix=/opt/kxfer
	run install
	can_be_used_from /opt/kxfer
	prefix=/usr/local
	run install
	prefix=/opt/kxfer
	run uninstall
	is_there /usr/local/bin/kxfer
	is_there /usr/local/lib/libkxfer.so
	is_empty "$root/opt"
	prefix=/usr/local
	# Both prefixes have a module, a rule and services, which the first uninstall removed.
	run uninstall
	says "was not there: .*/60-kxfer.rules"
	says "was not there: .*/kxfer.service"
	is_empty "$root"
}

nothing_to_remove_is_said_so() {
	for prefix in /usr/local /nowhere; do
		! try uninstall || fail "status 0 of an uninstall that found nothing"
		says "nothing is installed under $root$prefix"
		! grep -q "^removed" "$work/out" || fail "it says that it removed something"
	done
	prefix=/usr/local
}

a_build_that_went_does_not_matter() {
	run install
	mv "$work/userspace" "$work/gone"
	rm -f "$root/usr/local/bin/kxfer"
	run uninstall
	says "was not there: $root/usr/local/bin/kxfer"
	is_empty "$root"
	mv "$work/gone" "$work/userspace"
}

what_dkms_has_goes_as_well() {
	run install
	run dkms
	is_there "/usr/src/kxfer-$(cat "$top/VERSION")/dkms.conf"
	run uninstall
	says "removed .*/usr/src/kxfer-"
	is_empty "$root"
}

# A node that only uses kxfer needs neither a virtual machine nor unit tests.
a_node_is_asked_for_no_more_than_it_needs() {
	local wanted
	KXFER_CACHE=$work/cache "$top/scripts/setup" --check build >"$work/out" 2>&1 || true
	! grep -E "qemu|busybox|missing in|usage" "$work/out" || fail "the group build wants a virtual machine"
	# Not piped into grep -q, which may end before everything is written.
	"$top/scripts/setup" --list >"$work/out"
	says '^build  *g\+\+ '
	for wanted in all install; do
		make -C "$top" -n "$wanted" KERNEL=running O="$work/o" >"$work/out" 2>&1 || fail "make -n $wanted"
		says "build-userspace .* kxfer "
		! grep -q "build-userspace .* all " "$work/out" || fail "make $wanted builds the unit tests"
	done
}

make_module
a_node_is_asked_for_no_more_than_it_needs
command -v rst2man >/dev/null || no_man_pages_say_why
have_rst2man
all_is_installed_and_removed
each_prefix_is_for_itself
nothing_to_remove_is_said_so
a_build_that_went_does_not_matter
what_dkms_has_goes_as_well
