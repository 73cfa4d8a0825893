# SPDX-License-Identifier: MIT
#
# Numbers the leaves of all guests into one KTAP stream. A failure is told at once, and counted at
# the end: scripts/vm/check may run its program again by then, and says with a line `again
# KERNEL/PROVIDER/COLLECTION/PROGRAM ok` that it passed. Then come the plan, each failure with the
# last comments before it, and the sums. Writes the distinct names, without kernel and provider,
# to the file in the variable `names`. Status 1 when anything failed.

BEGIN {
	print "KTAP version 1"
	kept = 10
}

/^not ok / {
	failures[++failed] = substr($0, 8)
	note_name(failures[failed])
	print "# failed: " failures[failed]
	fflush()
	next
}

/^ok / {
	rest = substr($0, 4)
	note_name(rest)
	if (rest ~ / # SKIP/) skipped++
	else passed++
	print "ok " ++n " " rest
	fflush()
	next
}

/^again / { again[$2] = $3; next }

# The last comments before a failure; flatten.awk prints them after it.
/^#     / && failed { said[failed, nr_said[failed]++ % kept] = $0 }

{ print; fflush() }

function note_name(name) {
	sub(/ # .*/, "", name)
	sub(/^[^\/]*\/[^\/]*\//, "", name)
	distinct[name] = 1
}

# The program of a leaf: `kernel/provider/collection/program.test` or, without results of its
# own, `.../program`. The name of a program may have a dot (`rw.sh`).
function passed_again(name,    program) {
	sub(/ # .*/, "", name)
	for (program in again)
		if (again[program] == "ok" && (name == program || index(name, program ".") == 1)) return 1
	return 0
}

function explain(i, title,    j) {
	print "# " title ": " failures[i]
	j = nr_said[i] - kept
	for (j = j > 0 ? j : 0; j < nr_said[i]; j++) print said[i, j % kept]
}

# Numbers the failures of programs that have failed for good, or those that passed when run again.
function number_failures(unsteady,    i, name, count) {
	for (i = 1; i <= failed; i++) {
		if (passed_again(failures[i]) != unsteady) continue
		count++
		name = failures[i]
		sub(/ # .*/, "", name)
		if (unsteady) print "ok " ++n " " name " # it failed beside other guests, and passed alone"
		else print "not ok " ++n " " failures[i]
	}
	return count + 0
}

END {
	bad = number_failures(0)
	unsteady = number_failures(1)
	print "1.." n + 0
	for (name in distinct) { print name | ("sort >" names); count++ }
	for (i = 1; i <= failed; i++) explain(i, passed_again(failures[i]) ? "unsteady" : "failed")
	print "# " count + 0 " distinct names in " names
	if (unsteady) print "# " unsteady " of them unsteady: failed beside other guests, passed alone"
	print passed + unsteady " passed, " bad " failed, " skipped + 0 " skipped"
	exit bad > 0 || passed == 0
}
