# SPDX-License-Identifier: MIT
#
# What the tests of kxfer bench have in common.

# shellcheck shell=sh disable=SC2034 # used by who reads this
# shellcheck source=tests/lib/cli.sh
. ../lib/cli.sh

# A busy host takes CPU time from the guest; that is a test of its own.
quick="--count 300 --warm-up 10 --judge-anyway"

# Of a job: what rxe and siw register at once less two pages, and 1 MiB.
case $KXFER_PROVIDER in
siw*) longest_message=1040384 ;;
*) longest_message=1048576 ;;
esac

nothing_is_left() {
	kxfer --json export list | jq -e "all(.name == \"@ping\")" && kxfer --json listen list | jq -e "length == 0"
}
