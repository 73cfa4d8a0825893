#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kxfer explain: words from logs and tables, and their explanations.
# tests/host/unit/test_cli_meaning.cpp compares its knowledge with the headers.

# shellcheck disable=SC2317 # functions that run_tests calls

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

test_a_status_is_explained_with_what_to_look_at() {
	expect 0 kxfer explain RETRY_EXC_ERR
	expect_stdout "completion status 12: IBV_WC_RETRY_EXC_ERR"
	expect_stdout "no ACK or answer came"
	expect_stdout "rdma resource show qp"
}

test_a_bare_number_has_a_labelled_reading_of_each_kind() {
	expect 0 kxfer explain 12
	expect_stdout "completion status 12: IBV_WC_RETRY_EXC_ERR"
	expect_stdout "reject reason of the IB CM 12: IB_CM_REJ_INVALID_GID"
	expect_stdout "errno of kxfer 12: ENOMEM"
	expect_stdout "rdma_cm event 12: RDMA_CM_EVENT_MULTICAST_JOIN"
}

test_kind_narrows_the_readings() {
	expect 0 kxfer --json explain --kind reject 28
	expect_json '.meanings | length' 1
	expect_json '.meanings[0].name' IB_CM_REJ_CONSUMER_DEFINED
	expect_json '.meanings[0].number' 28
}

test_a_negative_number_is_an_errno() {
	expect 0 kxfer --json explain -128
	expect_json '[.meanings[].name] | join(" ")' EKEYREVOKED
	expect_json '.meanings[0].completion | test("withdrawn")' true
}

test_a_text_of_several_words_needs_no_quotes() {
	expect 0 kxfer explain Key has been revoked
	expect_stdout "errno of kxfer 128: EKEYREVOKED"
}

test_several_words_are_explained_each() {
	expect 0 kxfer --json explain ::ffff:10.77.0.1 0x7fff ECONNRESET
	expect_json '[.meanings[].word] | unique | join(" ")' "0x7fff ::ffff:10.77.0.1 ECONNRESET"
	expect_json '.meanings[0].facts.address' 10.77.0.1
	expect_json '.meanings[1].facts.member' limited
}

test_every_gid_and_pkey_of_the_device_is_known() {
	port=/sys/class/infiniband/$KXFER_DEVICE/ports/1
	# Most entries of the tables are the empty GID, which is tested too.
	cat "$port"/gids/* 2>/dev/null | sort -u >"$work/gids"
	[ -s "$work/gids" ] || fail "the device has no GID"
	while read -r gid; do
		expect 0 kxfer --json explain "$gid"
		expect_json '[.meanings[].kind] | join(" ")' gid
	done <"$work/gids"
	cat "$port"/pkeys/* 2>/dev/null | sort -u >"$work/pkeys"
	while read -r pkey; do
		expect 0 kxfer --json explain --kind pkey "$pkey"
	done <"$work/pkeys"
}

test_the_errno_of_a_failure_is_known() {
	expect 1 kxfer --json ls "$peer:7699"
	name=$(jq -r .errno "$work/stderr")
	expect 0 kxfer explain --kind errno "$name"
	expect_stdout "errno of kxfer 111: ECONNREFUSED"
	expect_stdout "kxfer listen add"
}

test_the_list_has_every_kind_and_narrows() {
	expect 0 kxfer explain
	cp "$work/stdout" "$work/all"
	expect 0 kxfer explain --list
	expect_equal_files "$work/all" "$work/stdout"
	for kind in wc reject errno verbs event async state opcode; do
		grep -q "^$kind " "$work/all" || fail "no $kind"
	done
	expect 0 kxfer --json explain --list wc
	expect_json '[.[].kind] | unique | join(" ")' wc
	expect_json '.[12].name' IBV_WC_RETRY_EXC_ERR
	expect 0 kxfer --json explain --list --kind errno
	expect_json '[.[] | select(.name == "EKEYREVOKED").number] | join(" ")' 128
}

test_an_unknown_word_names_the_forms() {
	expect 1 kxfer explain RETRY_EXC_ERROR
	expect_stderr "nothing is known of 'RETRY_EXC_ERROR'"
	expect_stderr "RETRY_EXC_ERR, IB_CM_REJ_STALE_CONN, EKEYREVOKED"
	expect 1 kxfer --json explain 12 nonsense
	expect_error_json .on "'nonsense'"
	[ ! -s "$work/stdout" ] || fail "something on stdout"
}

test_an_unknown_kind_is_wrong_usage() {
	expect 2 kxfer explain --kind qpn 12
	expect_stderr "wc"
	expect 2 kxfer explain --list qpn
	expect_stderr "kinds are: wc, reject, errno"
	expect 2 kxfer explain --list wc 12
}

test_it_needs_neither_module_nor_device() {
	remove_module || fail "the module is in use"
	try kxfer explain 5
	load_module
	[ "$status" -eq 0 ] || fail "status $status"
	expect_stdout "IBV_WC_WR_FLUSH_ERR"
}

run_tests
