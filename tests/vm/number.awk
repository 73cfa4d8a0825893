# SPDX-License-Identifier: MIT
#
# Numbers the leaves of all guests into one KTAP stream and ends it with the
# plan and the sums. Writes the distinct names, without kernel and provider,
# to the file in the variable `names`. Status 1 when anything failed.
#
# A failure that the file in the variable `unsettled` names is printed as KTAP's
# `not ok ... # TODO reason` and counted among the skipped, never as passed.

BEGIN {
	print "KTAP version 1"
	while ((getline line < unsettled) > 0) {
		if (line ~ /^#/ || split(line, field, " ") < 2) continue
		pattern[++patterns] = field[1]
		reason[patterns] = substr(line, length(field[1]) + 2)
	}
}

# Why a failure does not count, or nothing.
function why_unsettled(name) {
	for (p = 1; p <= patterns; p++)
		if (index(name, pattern[p]) == 1) return reason[p]
	return ""
}

/^(not )?ok / {
	word = $1 == "not" ? "not ok" : "ok"
	rest = substr($0, length(word) + 2)
	todo = word == "not ok" ? why_unsettled(rest) : ""
	if (todo != "") sub(/( # .*)?$/, " # TODO " todo, rest)
	print word " " ++n " " rest
	if (todo != "") { skipped++; unsettled_failures[++todos] = rest }
	else if (word == "not ok") { failed++; failures[failed] = rest }
	else if (rest ~ / # SKIP/) skipped++
	else passed++
	name = rest
	sub(/ # .*/, "", name)
	sub(/^[^\/]*\/[^\/]*\//, "", name)
	distinct[name] = 1
	fflush()
	next
}

{ print; fflush() }

END {
	print "1.." n + 0
	for (name in distinct) { print name | ("sort >" names); count++ }
	for (i = 1; i <= todos; i++) print "# unsettled: " unsettled_failures[i]
	for (i = 1; i <= failed; i++) print "# failed: " failures[i]
	print "# " count + 0 " distinct names in " names
	print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
	exit failed > 0 || passed == 0
}
