// SPDX-License-Identifier: GPL-2.0
/*
 * The main calls, made by a 32-bit program: the module translates nothing, so the structures
 * have to work unchanged. The file's name makes it a static 32-bit program.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define LENGTH	(64UL << 10)

/* A kernel without 32-bit support cannot even start this program. */
TEST(caller_has_32_bits)
{
	EXPECT_EQ(4, sizeof(void *));
	EXPECT_EQ(4, sizeof(long));
}

FIXTURE(compat)
{
	struct kx_pair pair;
};

FIXTURE_SETUP(compat)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
}

FIXTURE_TEARDOWN(compat)
{
	kx_pair_close(&self->pair);
}

TEST_F(compat, caller_queries_and_calls_nothing)
{
	struct kxfer_query query;

	test_cmd_query(self->pair.client, &query);
	EXPECT_EQ(KXFER_ABI, query.abi);
	EXPECT_LE(1ULL << 30, query.max_region_bytes);
	test_cmd_nop(self->pair.client);
}

TEST_F(compat, caller_writes_and_reads)
{
	memset(self->pair.client_memory, 0x32, LENGTH);
	test_cmd_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region, 0,
			  self->pair.target, 0, LENGTH);
	EXPECT_EQ(0, memcmp(self->pair.client_memory, self->pair.server_memory, LENGTH));
	memset(self->pair.server_memory, 0x64, LENGTH);
	test_cmd_transfer(self->pair.client, KXFER_OP_READ, self->pair.client_region, 0,
			  self->pair.target, 0, LENGTH);
	EXPECT_EQ(0, memcmp(self->pair.client_memory, self->pair.server_memory, LENGTH));
}

TEST_F(compat, caller_submits_many_and_waits)
{
	struct kxfer_completion done[64];
	struct kxfer_job jobs[64];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = 64,
		.stride = sizeof(jobs[0]),
		.completions = (uintptr_t)done,
		.nr_completions = 64,
		.wait = 64,
		.deadline_ns = kx_deadline_ns(KX_TIMEOUT_MS),
	};
	int i;

	for (i = 0; i < 64; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_WRITE,
			.region = self->pair.client_region,
			.target = self->pair.target,
			.length = 1 + i,
			.user_data = 0x100000000ULL + i,
		};
	ASSERT_EQ(0, kx_call(self->pair.client, KXFER_SUBMIT, &cmd));
	EXPECT_EQ(64, cmd.reaped);
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(0x100000000ULL + i, done[i].user_data);
		EXPECT_EQ(1 + i, done[i].bytes);
		EXPECT_EQ(0, done[i].status);
	}
}

TEST_F(compat, caller_is_notified)
{
	struct kxfer_event event;

	test_cmd_notify(self->pair.client, self->pair.target, 0x123456789abcdef0ULL);
	test_cmd_event_reap(1, self->pair.server, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0x123456789abcdef0ULL, event.cookie);
}

TEST_F(compat, caller_sends_and_receives)
{
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	struct kxfer_mailbox_add add = {
		.size = sizeof(add),
		.name = "compat",
		.capacity = 1,
		.max_bytes = 8,
		.message_size = sizeof(*message),
		.cookie = 0xfedcba9876543210ULL,
	};
	struct kxfer_target_open open = {
		.size = sizeof(open),
		.peer = self->pair.peer,
		.name = "compat",
		.timeout_ms = KX_TIMEOUT_MS,
		.word = 0x0123456789abcdefULL,
	};

	ASSERT_EQ(0, kx_call(self->pair.server, KXFER_MAILBOX_ADD, &add));
	ASSERT_EQ(0, kx_call(self->pair.client, KXFER_TARGET_OPEN, &open));
	EXPECT_EQ(add.cookie, open.cookie);
	memcpy(self->pair.client_memory, "32 bits", 8);
	test_cmd_send(self->pair.client, self->pair.client_region, 0, 8, open.target);
	test_cmd_recv(self->pair.server, add.export_id, self->pair.server_region, 0, 100);
	EXPECT_EQ(8, message->bytes);
	EXPECT_EQ(open.word, message->word);
	EXPECT_EQ(0, strcmp((const char *)(message + 1), "32 bits"));
}

TEST_F(compat, caller_lists_and_asks)
{
	struct kxfer_peer_export exports[64];
	struct kxfer_content content;
	uint64_t cursor = 0;

	test_cmd_export_set(self->pair.server, self->pair.export_id, 77, NULL, NULL);
	test_cmd_target_info(self->pair.client, self->pair.target, 0, 1000, &content);
	EXPECT_EQ(77, content.length);
	EXPECT_LT(0, kx_peer_list(self->pair.client, self->pair.peer, exports, 64, &cursor));
	EXPECT_NE(UINT64_MAX, kx_counter(self->pair.client, "live_jobs"));
}

TEST_F(compat, caller_meets_the_same_errors)
{
	struct kxfer_nop *cut = kx_before_hole(4);
	uint32_t region;

	EXPECT_EQ(-EFAULT, kx_call(self->pair.client, KXFER_NOP, NULL));
	cut->size = sizeof(*cut);
	EXPECT_EQ(-EFAULT, kx_call(self->pair.client, KXFER_NOP, cut));
	test_err_region_add(EFAULT, self->pair.client, NULL, 4096, 0, &region);
	test_err_transfer(ERANGE, self->pair.client, KXFER_OP_READ, self->pair.client_region,
			  0, self->pair.target, LENGTH, 1);
	test_err_target_info(ENOENT, self->pair.client, 77, 0, 1000, NULL);
}

TEST_F(compat, caller_cannot_name_memory_beyond_its_addresses)
{
	struct kxfer_region_add cmd = {
		.size = sizeof(cmd),
		.addr = 1ULL << 40,
		.length = 4096,
	};

	EXPECT_EQ(-EFAULT, kx_call(self->pair.client, KXFER_REGION_ADD, &cmd));
}

TEST_HARNESS_MAIN
