#!/bin/sh
# SPDX-License-Identifier: MIT
# libfabric's provider: what it reports, its own tests, fi_pingpong, Open MPI and NetPIPE over it.

# run_tests calls the tests by their names; options stand without quotes.
# shellcheck disable=SC2317,SC2086

# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

# scripts/build-libfabric makes this folder.
given=/kxfer-fi
[ -e $given/libkxfer-fi.so ] || skip_all="no provider for libfabric in this guest: make check-libfabric builds it"
# Without its name libfabric starts all of its providers, which takes seconds.
export FI_PROVIDER_PATH=$given FI_PROVIDER=kxfer
# Of another release than the machine's (scripts/build-libfabric).
[ ! -d $given/lib ] || export LD_LIBRARY_PATH=$given/lib
export OMPI_MCA_mca_base_component_path=$given/openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
over_kxfer="--oversubscribe --mca plm isolated --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include kxfer"

expect_nothing_left() {
	wait_for 10 sh -c "kxfer --json stat | jq -e '.live_jobs == 0 and .live_pins == 0'"
}

# Runs two processes of the provider's own test.
both() { # NAME
	expect 0 $given/bin/kxfer-fi-test "$1"
	expect_nothing_left
}

test_what_it_is_is_reported() {
	expect 0 $given/bin/fi_info -p kxfer
	expect_stdout "provider: kxfer"
	# RDM first, for each address
	grep "type: FI_EP_" "$work/stdout" | uniq -c | grep -vq "^ *1 " && fail "the types are not in turn"
	! grep -q ofi_rxm "$work/stdout" || fail "ofi_rxm is put over it"
	grep -m 1 "type: FI_EP_" "$work/stdout" | grep -q FI_EP_RDM || fail "FI_EP_RDM is not the first"
	expect 0 $given/bin/fi_info -p kxfer -t FI_EP_MSG
	! grep -q FI_EP_RDM "$work/stdout" || fail "FI_EP_RDM is reported too"
	expect 0 $given/bin/fi_info -p kxfer -t FI_EP_RDM
	! grep -q FI_EP_MSG "$work/stdout" || fail "FI_EP_MSG is reported too"
	expect_stdout "domain: $KXFER_DEVICE"
	try $given/bin/fi_info -p kxfer -t FI_EP_DGRAM
	[ "$status" -ne 0 ] || fail "datagrams are reported"
	expect 0 $given/bin/fi_info -e
	expect_stdout "FI_KXFER_READ_FROM"
}

test_messages_of_all_sizes() { both messages; }

test_messages_that_nobody_waits_for() { both unexpected; }

test_more_messages_than_a_mailbox_holds() { both flood; }

test_vectors_truncation_and_remote_data() { both gather; }

test_tags_and_looking_before_receiving() { both tags; }

test_receives_are_cancelled() { both cancel; }

test_buffers_for_several_messages() { both several; }

test_memory_is_read_and_written() { both memory; }

test_words_are_changed_by_atomics() {
	[ "$KXFER_PROVIDER" != siw ] || skip "iWARP has no atomics"
	expect 0 $given/bin/fi_info -p kxfer -c FI_ATOMIC
	both atomics
}

test_a_device_without_atomics_claims_none() {
	[ "$KXFER_PROVIDER" = siw ] || skip "the device has atomics"
	try $given/bin/fi_info -p kxfer -c FI_ATOMIC
	[ "$status" -ne 0 ] || fail "atomics are reported"
	both no-atomics
}

# Built with a libfabric that has FI_MR_DMABUF; otherwise it checks that nothing of it is reported.
test_memory_of_a_device_is_read_and_written() {
	expect 0 $given/bin/kxfer-fi-device-memory
	[ "$(sed -n 's/^skip: //p' "$work/stdout")" = "" ] || skip "$(sed -n 's/^skip: //p' "$work/stdout")"
	expect_nothing_left
}

test_a_thread_sleeps_until_something_comes() { both waiting; }

# ---- what cannot be had ----

# Beside what the two processes pin from the beginning, 1.5 MiB, there is less than the longest message.
test_long_messages_go_in_pieces_where_memory_cannot_be_pinned() {
	chmod 666 /dev/kxfer
	expect 0 setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps -all --bounding-set -all sh -c \
		"ulimit -l 2000; exec $given/bin/kxfer-fi-test messages"
	chmod 600 /dev/kxfer
}

test_messages_that_are_never_read() {
	export FI_KXFER_READ_FROM=100000000
	both messages
	both unexpected
	unset FI_KXFER_READ_FROM
}

# ---- peers that end ----

test_a_receiver_that_is_killed_ends_a_send() { both death-of-receiver; }

test_a_sender_that_is_killed_ends_a_receive() { both death-of-sender; }

test_a_peer_that_is_killed_in_a_stream_ends_all_sends() { both death-in-a-stream; }

test_a_peer_that_is_killed_ends_reads_of_its_memory() { both death-of-memory; }

# ---- connections ----

# Runs two processes of the test of connections.
connected() { # NAME
	expect 0 $given/bin/kxfer-fi-connect-test "$1"
	expect_nothing_left
}

test_a_connection_takes_messages_in_both_directions() { connected data; }

test_a_connection_reaches_memory() { connected memory; }

test_two_connections_of_one_passive_endpoint() { connected two; }

test_a_connection_is_shut_down() { connected shutdown; }

test_a_connection_whose_endpoint_is_closed() { connected close; }

test_what_was_sent_before_the_end_is_received() { connected last-words; }

test_connections_keep_what_they_use_open() { connected order; }

test_a_thread_sleeps_until_a_request_comes() { connected waiting; }

test_requests_are_rejected() { connected reject; }

test_nobody_listens() { connected closed; }

test_nobody_answers() {
	export FI_KXFER_CONNECT_S=3
	connected silent
	unset FI_KXFER_CONNECT_S
}

test_a_server_that_is_killed_ends_a_request() { connected unanswered; }

test_a_server_that_is_killed_ends_the_connection() { connected death-of-server; }

test_a_client_that_is_killed_ends_the_connection() { connected death-of-client; }

test_nonsense_in_the_mailbox_of_a_passive_endpoint() { connected garbage; }

test_messages_that_pretend_to_be_of_a_connection() { connected forged; }

# ---- other programs ----

pingpong() { # TYPE OPTION...
	$given/bin/fi_pingpong -p kxfer -c -I 5 -S all -e "$@" >serve.out 2>&1 </dev/null &
	echo $! >>"$work/pids"
	wait_for 30 sh -c "grep -q ':B9E8' /proc/net/tcp /proc/net/tcp6"
	expect 0 $given/bin/fi_pingpong -p kxfer -c -I 5 -S all -e "$@" "$peer"
	expect_stdout "1m"
}

test_fi_pingpong_checks_its_data() { pingpong rdm; }

test_fi_pingpong_with_tags() { pingpong rdm -m tagged; }

test_fi_pingpong_over_a_connection() { pingpong msg; }

test_an_mpi_program_of_2_ranks() {
	expect 0 $given/bin/mpirun $over_kxfer -np 2 $given/bin/kxfer-mpi-ring
	expect_stdout "ring of 2 ranks: all right"
	expect_nothing_left
}

test_an_mpi_program_of_4_ranks() {
	expect 0 $given/bin/mpirun $over_kxfer -np 4 $given/bin/kxfer-mpi-ring
	expect_stdout "ring of 4 ranks: all right"
	expect_nothing_left
}

test_an_mpi_program_of_16_ranks() {
	expect 0 $given/bin/mpirun $over_kxfer -np 16 $given/bin/kxfer-mpi-ring
	expect_stdout "ring of 16 ranks: all right"
	expect_nothing_left
}

test_netpipe_checks_its_data() {
	expect 0 $given/bin/mpirun $over_kxfer -np 2 $given/bin/NPopenmpi -i -u 262144 -n 3 -o np.out
	# Of the sizes about the powers of two, the last one within the limit.
	grep -q '196609 bytes.*Integrity check passed' "$work/stderr" || fail "not all sizes were checked"
	expect_nothing_left
}

# The node listens for all of them; what kxfer listen adds stays.
if [ -n "${skip_all:-}" ]; then run_tests; fi
kxfer listen add "$peer" --no-key >"$root/listen.out" 2>&1 || cat "$root/listen.out"
(run_tests)
result=$?
kxfer listen del "$peer" >/dev/null 2>&1
exit $result
