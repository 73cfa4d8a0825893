# SPDX-License-Identifier: MIT
#
# Numbers the leaves of all guests into one KTAP stream. At its end come the plan, each failure
# with the last comments before it, and the sums. Writes the distinct names, without kernel and
# provider, to the file in the variable `names`. Status 1 when anything failed.

BEGIN {
	print "KTAP version 1"
	kept = 10
}

/^(not )?ok / {
	word = $1 == "not" ? "not ok" : "ok"
	rest = substr($0, length(word) + 2)
	print word " " ++n " " rest
	if (word == "not ok") failures[++failed] = rest
	else if (rest ~ / # SKIP/) skipped++
	else passed++
	name = rest
	sub(/ # .*/, "", name)
	sub(/^[^\/]*\/[^\/]*\//, "", name)
	distinct[name] = 1
	fflush()
	next
}

# The last comments before a failure; flatten.awk prints them after it.
/^#     / && failed { said[failed, nr_said[failed]++ % kept] = $0 }

{ print; fflush() }

function explain(failure,    i) {
	print "# failed: " failures[failure]
	i = nr_said[failure] - kept
	for (i = i > 0 ? i : 0; i < nr_said[failure]; i++) print said[failure, i % kept]
}

END {
	print "1.." n + 0
	for (name in distinct) { print name | ("sort >" names); count++ }
	for (i = 1; i <= failed; i++) explain(i)
	print "# " count + 0 " distinct names in " names
	print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
	exit failed > 0 || passed == 0
}
