# SPDX-License-Identifier: MIT
#
# Prints the code block of a page in reStructuredText that has the text `with`, without its
# indentation, so that examples in Documentation/ are compiled and run.
#
# usage: awk -v with=TEXT -f code_of.awk PAGE
#
# A block is a run of lines that are empty or indented by three spaces or more.

function finish() {
	if (index(block, with)) {
		printf "%s", block
		found = 1
	}
	block = ""
}

/^   / { block = block substr($0, 4) "\n"; next }
/^$/   { block = block "\n"; next }
       { finish() }
END {
	finish()
	exit !found
}
