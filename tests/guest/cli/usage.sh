#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command line itself: help, messages about mistakes, exit statuses, JSON.

# run_tests calls the tests by their names; numbers and lists of words stand
# without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

commands='doctor device key listen config serve export ls put get ping nop bench compare sweep tune link stat top events explain'

test_kxfer_alone_shows_the_usage_and_ends_2() {
	expect 2 kxfer
	expect_stderr "Usage: kxfer [options] COMMAND"
	expect_stderr "serve"
}

test_help_of_the_tool_lists_every_command() {
	expect 0 kxfer --help
	for command in $commands; do
		grep -qE "^  $command +[^ ]" "$work/stdout" || fail "no line for $command"
	done
}

test_help_of_every_command_ends_with_an_example() {
	for command in $commands; do
		expect 0 kxfer "$command" --help
		tail -n 1 "$work/stdout" | grep -qE "^  kxfer $command" || fail "no example for $command"
	done
}

test_help_is_grouped_by_subject() {
	expect 0 kxfer --help
	for subject in "This node" Transfer Measure Watch Meanings; do
		grep -qx "$subject:" "$work/stdout" || fail "no subject $subject"
	done
	expect_not_in "$work/stdout" "Other:"
}

test_the_word_help_is_the_option() {
	kxfer --help >help.tool
	kxfer put --help >help.put
	expect 0 kxfer help
	expect_equal_files stdout help.tool
	expect 0 kxfer help put
	expect_equal_files stdout help.put
	expect 2 kxfer help putt
	expect_stderr "did you mean put?"
	expect 0 kxfer version
	expect_stdout "kxfer $(cat /sys/module/kxfer/version)"
	expect 0 kxfer -V
}

test_a_word_that_is_nearly_right_is_suggested() {
	for pair in "gte get" "serv serve" "topp top" "lnk link"; do
		expect 2 kxfer ${pair% *}
		expect_stderr "did you mean ${pair#* }?"
	done
	expect 2 kxfer put --limt 3 file "$peer/inbox"
	expect_stderr "did you mean --limit?"
	expect 2 kxfer something-else
	expect_not_in "$work/stderr" "did you mean"
}

test_version_is_that_of_the_project() {
	expect 0 kxfer --version
	grep -qxE 'kxfer [0-9]+\.[0-9]+\.[0-9]+' "$work/stdout" || fail "no version"
	[ "kxfer $(cat /sys/module/kxfer/version)" = "$(cat "$work/stdout")" ] ||
		fail "the module is $(cat /sys/module/kxfer/version)"
}

test_an_unknown_command_names_the_commands() {
	expect 2 kxfer servee x
	expect_stderr "'servee' is not a command of kxfer"
	expect_stderr "serve, export, ls, put, get, ping"
}

test_an_unknown_option_names_the_options_allowed() {
	expect 2 kxfer put --offzet 3 a b/c
	expect_stderr "'--offzet' is not an option of kxfer put"
	expect_stderr "--ack-timeout, --device, --gbits, --help, --in-flight, --json, --key, --length, --limit, --manifest, --no-color, --no-verify, --offset, --quiet, --recursive, --resume, --retries, --silence, --timeout"
}

test_an_unknown_subcommand_names_the_subcommands() {
	expect 2 kxfer listen ad 10.77.0.1
	expect_stderr "'ad' is not a command of kxfer listen"
	expect_stderr "list, add, del"
}

test_a_command_without_its_subcommand_names_them() {
	expect 2 kxfer link
	expect_stderr "kxfer link needs a command"
	expect_stderr "list, show"
}

test_an_option_of_a_command_before_the_command_is_put_right() {
	expect 2 kxfer --timeout 3 ls "$peer"
	expect_stderr "--timeout goes after the command"
	expect_stderr "such as: kxfer ls --timeout"
}

test_a_missing_argument_is_named() {
	expect 2 kxfer put file
	expect_stderr "kxfer put needs REMOTE[/PATH]"
	expect_stderr "PEER/NAME of the export"
	expect 2 kxfer link show
	expect_stderr "kxfer link show needs ID"
}

# Port 1 has no listener, so the error shows which address the tool took for the peer.
test_a_list_ends_with_its_word_and_a_peer_may_follow() {
	for option in '--op read' '--size 64,4K' '--engine verbs,job'; do
		expect 1 kxfer compare $option 192.0.2.1:1 --timeout 0.2
		expect_stderr "192.0.2.1:1"
	done
}

test_an_argument_too_many_is_refused() {
	expect 2 kxfer ls "$peer" again
	expect_stderr "'again' is not an argument of kxfer ls"
}

test_a_wrong_option_with_json_is_one_object() {
	expect 2 kxfer --json nop --foo
	expect_error_json .exit_status 2
	expect_error_json .errno null
	expect_error_json 'keys_unsorted | join(" ")' "error what on why errno hint exit_status"
	[ ! -s "$work/stdout" ] || fail "something on stdout"
}

test_json_may_stand_behind_the_command() {
	expect 0 kxfer nop -n 10 --json
	expect_json .calls 10
}

test_a_size_without_number_says_what_a_size_is() {
	expect 2 kxfer put --length 4X file "$peer/inbox"
	expect_stderr "'4X' is not a size"
	expect_stderr "4096, 4K or 16MiB"
}

test_a_size_beyond_64_bits_is_too_large() {
	expect 2 kxfer put --length 99999999999T file "$peer/inbox"
	expect_stderr "too large"
}

test_a_size_may_be_hexadecimal() {
	expect 2 kxfer put --length 0xfg file "$peer/inbox"
	expect_stderr "such as 0x1000"
	head -c 8192 /dev/zero >file
	serve file
	expect 0 kxfer get --length 0x1000 "$peer/file" got
	[ "$(stat -c %s got)" -eq 4096 ] || fail "got $(stat -c %s got) bytes"
}

test_an_address_that_cannot_be_right_is_told_why() {
	expect 2 kxfer ls "[fd77::1"
	expect_stderr "its bracket is not closed"
	expect 1 kxfer ls "fe80::1%nix"
	expect_stderr "no interface 'nix'"
	expect 1 kxfer ls "fe80::1"
	expect_stderr "needs its interface"
	expect 2 kxfer link show -1
	for id in 1x 99999999999999999999 ''; do
		expect 2 kxfer link show "$id"
		expect_stderr "'$id' is not the number of a link"
	done
}

test_a_peer_with_a_port_out_of_range_is_refused() {
	expect 2 kxfer ls "$peer:65536"
	expect_stderr "a port is a number from 1 to 65535"
}

test_a_remote_without_a_name_is_refused() {
	expect 2 kxfer get "$peer" file
	expect_stderr "names no export"
}

test_a_remote_with_a_bad_name_is_refused() {
	expect 2 kxfer get "$peer/a b" file
	expect_stderr "not a name of an export"
}

test_a_name_of_64_characters_is_refused() {
	expect 2 kxfer get "$peer/$(printf '%064d' 0)" file
	expect_stderr "1 to 63"
}

test_a_timeout_out_of_range_names_the_range() {
	for seconds in 61 0 1h nan; do
		expect 2 kxfer ls --timeout $seconds "$peer"
		expect_stderr "kxfer: ls: --timeout: '$seconds' is not a number from 0.001 to 60"
	done
	expect 2 kxfer nop --count 1k
	expect_stderr "kxfer: nop: --count: '1k' is not a whole number from 1 to 10000000"
}

test_a_source_of_memory_needs_a_name() {
	expect 2 kxfer serve mem:16M
	expect_stderr "needs a name: give NAME=mem:16M"
}

test_several_addresses_are_for_exports_of_memory() {
	expect 2 kxfer put -r --via 10.77.0.3 "$work" 10.77.0.2/name/
	expect_stderr "not for folders"
	expect 2 kxfer get --via 10.77.0.3 10.77.0.2/name/file got
	expect_stderr "not for folders"
	expect 2 kxfer ls --via 10.77.0.3 10.77.0.2/name/
	expect_stderr "not for folders"
	expect 2 kxfer ping --via 10.77.0.3, 10.77.0.2
}

test_a_rule_that_says_nobody_names_the_forms() {
	expect 2 kxfer serve a=mem:4K --allow 10.77.0.0/33
	expect_stderr "uid=N, gid=N, or key=NAME"
}

test_a_ping_larger_than_the_pattern_is_refused() {
	expect 2 kxfer ping -s 65537 "$peer"
	expect_stderr "65536"
}

test_nop_tells_min_median_and_p99() {
	expect 0 kxfer --json nop -n 1000
	expect_json '.min_ns <= .median_ns and .median_ns <= .p99_ns and .p99_ns <= .max_ns and .min_ns > 0' true
}

test_quiet_keeps_the_result() {
	expect 0 kxfer --quiet nop -n 10
	expect_stdout median
}

test_text_for_a_pipe_has_no_colours() {
	expect 1 kxfer link show 4294967295
	! grep -q "$(printf '\033')" "$work/stderr" || fail "an escape sequence"
}

test_a_result_that_cannot_be_written_is_a_failure() {
	timeout 10 kxfer nop -n 10 >/dev/full 2>"$work/stderr"
	status=$?
	[ $status -eq 1 ] || fail "status $status"
	expect_stderr "cannot write the result"
}

run_tests
