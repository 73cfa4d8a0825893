#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Engine kverbs with --memory rw: rdma_rw maps memory by itself. That has to work and to be
# verified on siw-dma too, where DMA is real and the region must not be mapped already.

# shellcheck disable=SC2086,SC2317 # words of options; functions that run_tests calls
# shellcheck source=tests/lib/harness/cli.sh
. ../lib/cli.sh

complaints() { cat /sys/kernel/debug/siw-dma/complaints 2>/dev/null || echo 0; }

test_rdma_rw_moves_in_each_way_and_is_verified() {
	before=$(complaints)
	for op in read write; do
		for way in "--depth 1" "--depth 8 --size 4K" "--depth 5 --size 20001 --context softirq" "--depth 3 --cq own"; do
			expect 0 kxfer --json bench $op --engine kverbs --memory rw --count 40 --warm-up 5 $way \
				--judge-anyway
			expect_json '"\(.parameters.memory) \(.total.verified) \(.total.latency_samples)"' "rw true 40"
			case $op-$KXFER_PROVIDER in
			read-siw) how="registered for each operation" ;;
			*) how="by rdma_rw, mapped for each operation, without an MR" ;;
			esac
			expect_json ".parameters.local_registration | test(\"$how\")" true
		done
	done
	expect 2 kxfer bench read --engine kverbs --memory rw --depth 8 --signal batch
	expect_stderr "--signal each"
	[ "$(complaints)" = "$before" ] || fail "the bus complains"
}

# Meanwhile the other engines have the same memory mapped.
test_rdma_rw_is_compared_with_other_engines() {
	before=$(complaints)
	expect 0 kxfer --json compare --count 20 --rounds 2 --depth 4 --size 4K --memory rw
	expect_json '[.cells[] | "\(.operation) \(.engines | length)"] | join(" ")' "read 3 write 3"
	expect_json '[.cells[].engines[].verified] | all' true
	[ "$(complaints)" = "$before" ] || fail "the bus complains"
}

# A READ takes three work requests on iWARP, and the WRITE that verifies it eleven. So the
# WRITE goes through an MR on a separate region, before and after each READ by rdma_rw.
test_what_verifies_a_read_is_done_in_another_way_if_need_be() {
	before=$(complaints)
	expect 0 kxfer --json compare --count 20 --rounds 2 --op read,write,read --size 256K --engine kverbs --memory rw
	expect_json '[.cells[].engines[].verified] | all' true
	[ "$(complaints)" = "$before" ] || fail "the bus complains"
}

run_tests
