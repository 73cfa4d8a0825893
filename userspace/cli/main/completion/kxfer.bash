# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Completion of kxfer for bash. The tool knows the words: `kxfer __complete WORD...` (see
# completion.hpp).

# The words come from the line itself, because bash breaks COMP_WORDS at : and =, which
# addresses and options contain. For the same reason a reply begins behind the last of these.
_kxfer() {
	local line=${COMP_LINE:0:COMP_POINT} words=() word current broken=''
	read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=('')
	current=${words[-1]}
	if [[ $current == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]]; then broken=${current%"${current##*[=:]}"}; fi
	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		case $word in
		:files) compopt -o default 2>/dev/null ;;
		*) COMPREPLY+=("${word#"$broken"}") ;;
		esac
	done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
	# After PEER/ comes a name.
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
	return 0
}

complete -F _kxfer kxfer
