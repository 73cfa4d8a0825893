# SPDX-License-Identifier: MIT
#
# Turns one guest's nested KTAP (scripts/vm/guest-tests) into a line for each leaf: "ok NAME",
# "ok NAME # SKIP reason", "not ok NAME # reason". A program without results of its own is a
# leaf; so is one that fails although none of its own results failed. Only the last comments
# before each failure are kept.
#
# Variables: prefix (kernel/provider)

BEGIN { kept = 200 }

function emit(word, name, directive) {
	print word " " prefix "/" name (directive != "" ? " # " directive : "")
	if (word == "not ok")
		for (i = notes > kept ? notes - kept : 0; i < notes; i++) print note[i % kept]
	notes = 0
	fflush()
}

function remember(line) {
	sub(/^[# ]? ?#? ?/, "#     ", line)
	note[notes++ % kept] = line
}

# Splits "ok 3 name # directive" into word, name and directive.
function parse(line) {
	word = line ~ /^not ok/ ? "not ok" : "ok"
	sub(/^(not )?ok +/, "", line)
	sub(/^[0-9]+ */, "", line)
	sub(/^- /, "", line)
	directive = ""
	if ((at = index(line, " # ")) > 0) {
		directive = substr(line, at + 3)
		line = substr(line, 1, at - 1)
	}
	name = line
	skipped = directive ~ /^SKIP/
	if (skipped && directive ~ /^SKIP *$/) {
		word = "not ok"
		directive = "skipped without a reason"
	}
}

/^# begin / { program = $3; leaves = failed = planned = 0; last = ""; next }

/^  1\.\.[0-9]+/ { planned = substr($1, 4) + 0; next }

/^  (not )?ok / {
	parse(substr($0, 3))
	leaves++
	if (word == "not ok") failed++
	emit(word, program "." name, directive)
	next
}

/^(not )?ok / {
	parse($0)
	# A program that skips all its tests gives the reason in its last comment.
	if ($0 ~ /# SKIP *$/ && last != "") { word = "ok"; directive = "SKIP " last }
	if (word == "ok" && leaves < planned) {
		word = "not ok"
		directive = "ended after " leaves " of " planned " results"
	}
	own = directive ~ /^exit status/ && failed > 0
	if (leaves == 0 || (word == "not ok" && !own)) emit(word, name, directive)
	next
}

/^  #  (RUN|   )/ { next }
/^  KTAP version|^  # (Starting|Totals|PASSED|FAILED)/ { next }
/^  / { last = $0; sub(/^ *#? */, "", last); remember($0); next }
/^# .* took [0-9]+ ms$/ { next }
/^#/ { remember($0) }
