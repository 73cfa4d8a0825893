#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Tests the completion of the shells with the tool: what bash, zsh and fish would show. bash and
# zsh get no terminal here, so bash calls the function as it does at a tab, and zsh only reads it.
#
# usage: tests/host/unit/completion.sh USERSPACE-BUILD

set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
scripts=$top/userspace/cli/main/completion
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "FAILED: $*"
	exit 1
}

# What bash would have for the line, with its cursor at the end, as words with | between them.
replies() { # LINE
	bash --norc -c '
		source "$1"
		COMP_LINE=$2 COMP_POINT=${#2} COMPREPLY=()
		_kxfer kxfer
		IFS="|"; echo "${COMPREPLY[*]}"' bash "$scripts/kxfer.bash" "$1"
}

expect() { # LINE REPLIES
	local got
	got=$(replies "$1")
	[ "$got" = "$2" ] || fail "for '$1' bash has '$got' instead of '$2'"
}

bash_has_words() {
	expect 'kxfer li' 'link|listen'
	expect 'kxfer listen ' 'add|del|list'
	expect 'kxfer bench --connect ' 'rdma-cm|tcp'
	# bash has the word behind = alone, so that is what it replaces.
	expect 'kxfer bench --connect=t' 'tcp'
	expect 'kxfer get --fo' '--force'
	expect 'kxfer nosuch ' ''
	# A file is bash's own business.
	expect 'kxfer put ' ''
}

bash_knows_whose_words_these_are() {
	bash --norc -c 'source "$1"; complete -p kxfer' bash "$scripts/kxfer.bash" >registered
	grep -q -- '-F _kxfer kxfer' registered || fail "not registered: $(cat registered)"
}

zsh_can_read_it() {
	command -v zsh >/dev/null || return 0
	zsh -n "$scripts/kxfer.zsh" || fail "zsh cannot read its file"
}

fish_has_words() {
	command -v fish >/dev/null || return 0
	HOME=$work fish --no-config -c "source $scripts/kxfer.fish; complete -C 'kxfer li'" >said 2>&1 || fail "$(cat said)"
	grep -q '^listen' said || fail "fish has: $(cat said)"
	touch some-file
	HOME=$work fish --no-config -c "source $scripts/kxfer.fish; complete -C 'kxfer put some'" >said 2>&1
	grep -q '^some-file' said || fail "fish has no files: $(cat said)"
}

bash_has_words
bash_knows_whose_words_these_are
zsh_can_read_it
fish_has_words
