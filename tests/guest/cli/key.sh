#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Keys: kxfer key, --key and --no-key of listening commands, --key of connecting commands, and
# the warnings about listeners without a key.

# run_tests calls the tests by their names:
# shellcheck disable=SC2317

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# Adds two secrets to the keyring, until forget_keys.
make_keys() {
	head -c 32 /dev/urandom >secret
	head -c 32 /dev/urandom >other
	if ! kxfer key add kt-cli secret >/dev/null || ! kxfer key add kt-other other >/dev/null; then
		fail "cannot add keys"
	fi
}

forget_keys() {
	kxfer key del kt-cli >/dev/null 2>&1
	kxfer key del kt-other >/dev/null 2>&1
	return 0
}

test_a_key_is_added_listed_and_deleted() {
	head -c 32 /dev/urandom >secret
	expect 0 kxfer --json key add kt-list secret
	expect_json .added kt-list
	expect 0 kxfer --json key list
	expect_json 'map(.name) | index("kt-list") != null' true
	expect 0 kxfer key del kt-list
	expect 1 kxfer --json key del kt-list
	expect_error_json .errno ENOKEY
}

test_a_secret_has_a_length() {
	head -c 15 /dev/urandom >short
	head -c 1025 /dev/urandom >long
	: >empty
	for file in short long empty; do
		expect 1 kxfer --json key add kt-bad "$file"
		expect_error_json .errno EINVAL
	done
	expect 1 kxfer --json key add kt-bad nothing
	expect_error_json .errno ENOENT
	expect 2 kxfer key add "kt bad" short
}

test_with_the_key_all_commands_work() {
	make_keys
	random_file file 5000
	serve --key kt-cli inbox=mem:1M --writable --listen "$peer"
	expect_in serve.out "listening on $peer:7625 until this ends"
	expect 0 kxfer ping -c 1 "$peer" --key kt-cli
	expect 0 kxfer ls "$peer" --key kt-cli
	expect 0 kxfer put file "$peer/inbox" --key kt-cli
	expect 0 kxfer get "$peer/inbox" got --key kt-cli
	cmp file got || fail "another content"
	expect 0 kxfer --json link list
	expect_json '[.[] | select(.state == "live" and .key == "kt-cli")] | length > 1' true
	stop_serve
	forget_keys
}

test_without_the_key_or_with_another_nothing_works() {
	# A link that an earlier listener took without a key stays for 30 s after its last use.
	reload_module
	make_keys
	serve --key kt-cli inbox=mem:64K --listen "$peer"
	expect 1 kxfer --json ls "$peer"
	expect_error_json .errno EKEYREJECTED
	expect_error_json .why "the peer wants a key"
	expect 1 kxfer --json ls "$peer" --key kt-other
	expect_error_json '.why | test("does not take or does not prove the key .kt-other.")' true
	expect 1 kxfer --json ls "$peer" --key kt-none
	expect_error_json .errno ENOKEY
	expect_error_json '.hint | test("kxfer key add kt-none FILE")' true
	expect 0 kxfer ls "$peer" --key kt-cli
	stop_serve
	forget_keys
}

test_a_listener_takes_one_of_several_keys() {
	make_keys
	expect 0 kxfer listen add "$peer" --key kt-cli --key kt-other
	expect 0 kxfer ping -c 1 "$peer" --key kt-cli
	expect 0 kxfer ping -c 1 "$peer" --key kt-other
	expect 0 kxfer --json listen list
	expect_json '.[0].keys' 2
	expect 0 kxfer listen del "$peer"
	forget_keys
}

test_rules_of_a_key() {
	make_keys
	expect 0 kxfer listen add "$peer" --key kt-cli --key kt-other
	serve --key kt-cli inbox=mem:64K --listen "$peer" --allow key=kt-cli,uid=0
	expect 0 kxfer --json ls "$peer" --key kt-cli
	expect_json length 1
	expect 0 kxfer --json ls "$peer" --key kt-other
	expect_json length 0
	stop_serve
	expect 0 kxfer listen del "$peer"
	expect 2 kxfer serve a=mem:4K --allow key=kt-cli,no-uids,uid=0
	expect 2 kxfer serve a=mem:4K --allow key=
	forget_keys
}

test_a_listener_for_everybody_wants_a_key_or_the_word_that_it_needs_none() {
	expect 1 kxfer --json listen add 0.0.0.0:7700
	expect_error_json '.hint | test("--no-key")' true
	expect 1 kxfer --json serve inbox=mem:64K
	expect_error_json '.hint | test("--key NAME")' true
	expect 0 kxfer listen add --no-key 0.0.0.0:7700
	expect 0 kxfer listen del 0.0.0.0:7700
	expect 2 kxfer listen add 0.0.0.0:7700 --no-key --key kt-cli
	# In a private network the owner decides, so a listener without a key is allowed.
	expect 0 kxfer listen add "$peer:7700"
	expect_stderr "every sender of UDP"
	try kxfer listen list
	kxfer listen del "$peer:7700" >/dev/null
	expect_stderr "every sender of UDP"
}

test_serve_does_not_fall_back_on_a_listener_without_a_key() {
	make_keys
	expect 0 kxfer listen add "$peer"
	try kxfer --json serve inbox=mem:64K --listen "$peer" --key kt-cli
	kxfer listen del "$peer" >/dev/null
	[ "$status" -eq 1 ] || fail "status $status"
	expect_error_json .why "it takes links without a key"
	forget_keys
}

test_compare_measures_with_a_key() {
	make_keys
	expect 0 kxfer --json compare --engine job --op read --size 4K --count 100 --key kt-cli
	serve bench=mem:4K --bench --key kt-cli
	expect 0 kxfer --json bench send-ping-pong "$peer" --count 100 --key kt-cli --timeout 30
	expect_json .total.verified true
	forget_keys
}

run_tests
