#compdef kxfer
# SPDX-License-Identifier: MIT
#
# Completion of kxfer for zsh. The tool knows the words: `kxfer __complete WORD...` (see
# completion.hpp).

_kxfer() {
	local line word meaning files=no
	local -a plain places
	for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		word=${line%%$'\t'*}
		meaning=${line#*$'\t'}
		case $word in
		'') ;;
		:files) files=yes ;;
		*/) places+=("$word") ;;
		*) plain+=("${word//:/\\:}:${meaning//:/\\:}") ;;
		esac
	done
	(( $#plain )) && _describe kxfer plain
	(( $#places )) && compadd -S '' -a places
	[[ $files = no ]] || _files
}

_kxfer "$@"
