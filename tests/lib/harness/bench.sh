# SPDX-License-Identifier: MIT
#
# Shared by the tests of kxfer bench.

# shellcheck shell=sh disable=SC2034 # used by the scripts that read this
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# A busy host takes CPU time from the guest; a separate test covers that.
quick="--count 300 --warm-up 10 --judge-anyway"

# Limits of a job: what rxe and siw register at once less two pages, and 1 MiB.
case $KXFER_PROVIDER in
siw*) longest_message=1040384 ;;
*) longest_message=1048576 ;;
esac

nothing_is_left() {
	kxfer --json export list | jq -e "all(.name == \"@ping\")" && kxfer --json listen list | jq -e "length == 0"
}
