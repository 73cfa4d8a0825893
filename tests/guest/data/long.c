// SPDX-License-Identifier: GPL-2.0
/*
 * Long messages, which are not copied but READ into the RECV: their bytes, at every size and
 * place; their order among themselves and with short messages; RECVs that are too small for
 * them.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/pattern.h"
#include "kselftest_harness.h"
#include "rigs/post.h"

#define HEAD		sizeof(struct kxfer_message)
#define SPACE		(4u << 20)	/* bytes of either region */
#define NR_MIXED	48
#define PLACE		(SPACE / NR_MIXED & ~4095u)
#define PLACE_MAX	(PLACE - 4096)

FIXTURE(long_message)
{
	struct post post;
	uint8_t *from;
	uint8_t *to;
	uint32_t from_region;
	uint32_t to_region;
	uint32_t mailbox;
	uint32_t target;
	uint64_t longest;	/* longest message of the link */
};

FIXTURE_SETUP(long_message)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd), .rights = KXFER_RIGHT_SEND, .timeout_ms = KX_TIMEOUT_MS,
	};

	ASSERT_EQ(0, post_open(&self->post, 1, 8));
	self->from = kx_alloc(SPACE);
	self->to = kx_alloc(SPACE);
	ASSERT_NE(NULL, self->from);
	ASSERT_NE(NULL, self->to);
	test_cmd_region_add(self->post.client, self->from, SPACE, 0, &self->from_region);
	test_cmd_region_add(self->post.server, self->to, SPACE, KXFER_REGION_F_WRITE,
			    &self->to_region);
	test_cmd_mailbox_add(self->post.server, "long-messages", NR_MIXED,
			     KXFER_MESSAGE_LONG_MAX, &self->mailbox);
	cmd.peer = self->post.peer;
	strcpy((char *)cmd.name, "long-messages");
	ASSERT_EQ(0, kx_call(self->post.client, KXFER_TARGET_OPEN, &cmd));
	self->target = cmd.target;
	self->longest = cmd.length;
}

FIXTURE_TEARDOWN(long_message)
{
	post_close(&self->post);
	kx_free(self->from, SPACE);
	kx_free(self->to, SPACE);
}

static struct kxfer_job send_job(FIXTURE_DATA(long_message) *self, uint64_t from,
				 uint64_t bytes)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_SEND, .region = self->from_region, .target = self->target,
		.region_offset = from, .length = bytes,
	};
}

static struct kxfer_job recv_job(FIXTURE_DATA(long_message) *self, uint64_t to,
				 uint64_t bytes)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_RECV, .region = self->to_region, .target = self->mailbox,
		.region_offset = to, .length = HEAD + bytes,
	};
}

static int run(int fd, struct kxfer_job job)
{
	struct kxfer_completion completion = { .status = -EPROTO };

	if (kx_submit(fd, &job, 1) == 1)
		kx_reap(fd, &completion, 1, 1, KX_TIMEOUT_MS);
	return completion.status;
}

/* Has a message sent and received; the RECV is as long as the message. */
static void pass_on(struct __test_metadata *_metadata, FIXTURE_DATA(long_message) *self,
		    struct kxfer_job *send, struct kxfer_job *recv, bool waits)
{
	struct kxfer_completion done = { .status = -EPROTO };

	if (waits)
		test_cmd_submit(1, self->post.server, recv, 1);
	test_cmd_submit(1, self->post.client, send, 1);
	if (!waits)
		test_cmd_submit(1, self->post.server, recv, 1);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	ASSERT_EQ(0, done.status);
	ASSERT_EQ(recv->length, done.bytes);
	test_cmd_reap(1, self->post.client, &done, 1, 1, KX_TIMEOUT_MS);
	ASSERT_EQ(0, done.status);
	ASSERT_EQ(send->length, done.bytes);
}

/* Sends one message from one place to another, and checks the bytes around it. */
static void try_one(struct __test_metadata *_metadata, FIXTURE_DATA(long_message) *self,
		    uint64_t from, uint64_t to, uint64_t bytes, bool waits)
{
	static uint32_t generation;
	struct pattern want = {
		.seed = 0x4c, .generation = ++generation % PATTERN_GENERATION_MAX,
	};
	struct kxfer_job send = send_job(self, from, bytes), recv = recv_job(self, to, bytes);
	struct kxfer_message message;
	struct pattern_fault fault;
	uint8_t *at = self->to + to;

	send.flags = KXFER_JOB_F_IMM;
	send.cookie = generation;
	pattern_fill(self->from + from, bytes, &want);
	memset(at - 8, 0xee, HEAD + bytes + 16);
	pass_on(_metadata, self, &send, &recv, waits);
	memcpy(&message, at, HEAD);
	ASSERT_EQ(bytes, message.bytes);
	ASSERT_EQ(KXFER_MESSAGE_F_IMM, message.flags);
	ASSERT_EQ(generation, message.immediate);
	ASSERT_EQ(getuid(), message.uid);
	ASSERT_EQ(PATTERN_GOOD, pattern_check(at + HEAD, bytes, &want, NULL, &fault))
		TH_LOG("%llu bytes from %llu to %llu", (unsigned long long)bytes,
		       (unsigned long long)from, (unsigned long long)to);
	ASSERT_EQ(0xee, at[-1]);
	ASSERT_EQ(0xee, at[HEAD + bytes]);
}

/* The READ places the payload where the RECV wants it, apart from the header. */
TEST_F_TIMEOUT(long_message, carries_a_payload_apart, 120)
{
	struct pattern want = { .seed = 0x4d };
	const uint64_t bytes = 100000, head = 333, payload = 8 * 4096;
	struct kxfer_job send = send_job(self, 5, bytes), recv = recv_job(self, head, bytes);
	struct kxfer_message message;
	struct pattern_fault fault;
	uint32_t i;

	recv.flags = KXFER_JOB_F_APART;
	recv.target_offset = payload;
	for (i = 1; i <= 6; i++) {
		want.generation = i;
		pattern_fill(self->from + 5, bytes, &want);
		memset(self->to, 0xee, payload + bytes + 8);
		pass_on(_metadata, self, &send, &recv, i & 1);
		memcpy(&message, self->to + head, HEAD);
		ASSERT_EQ(bytes, message.bytes);
		ASSERT_EQ(PATTERN_GOOD,
			  pattern_check(self->to + payload, bytes, &want, NULL, &fault));
		ASSERT_EQ(0xee, self->to[head + HEAD]);
		ASSERT_EQ(0xee, self->to[payload - 1]);
		ASSERT_EQ(0xee, self->to[payload + bytes]);
	}
}

TEST_F_TIMEOUT(long_message, carries_every_size, 120)
{
	static const uint64_t sizes[] = {
		KXFER_MESSAGE_MAX, KXFER_MESSAGE_MAX + 1, 1024, 1025, 2048, 4095, 4096, 4097,
		8192, 12345, 65535, 65536, 65537, 262144, 500001, 1000000,
	};
	uint32_t i;

	ASSERT_LE(1000000, self->longest);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		try_one(_metadata, self, 0, 4096 - HEAD, sizes[i], i & 1);
		try_one(_metadata, self, 3, 16, sizes[i], !(i & 1));
	}
	try_one(_metadata, self, 4095, 4095, self->longest, false);
	try_one(_metadata, self, 1, 8 * 4096 + 7, self->longest, true);
}

TEST_F_TIMEOUT(long_message, carries_across_pages, 120)
{
	uint32_t i;

	for (i = 0; i < 40; i++) {
		try_one(_metadata, self, 4096 - i, 8192 - 3 * i, 993 + i, i & 1);
		try_one(_metadata, self, 8192 - 7 * i, 4096 - 9 * i, 20000 - i, i & 1);
	}
}

TEST_F(long_message, ends_where_the_link_does)
{
	struct kxfer_job send = send_job(self, 0, self->longest + 1);

	ASSERT_GE(KXFER_MESSAGE_LONG_MAX, self->longest);
	EXPECT_EQ(-EMSGSIZE, kx_submit(self->post.client, &send, 1));
}

/* A length for each of many messages, of which every third is short. */
static uint32_t mixed_bytes(uint32_t i)
{
	return i % 3 == 1 ? 1 + i * 20 % KXFER_MESSAGE_MAX : 993 + i * 7919 % (PLACE_MAX - 993);
}

static void check_mixed(struct __test_metadata *_metadata,
			FIXTURE_DATA(long_message) *self, uint32_t i, uint32_t round)
{
	struct pattern want = { .seed = 1 + i, .generation = round };
	const struct kxfer_message *message = (void *)(self->to + i * PLACE);
	struct pattern_fault fault;

	ASSERT_EQ(mixed_bytes(i), message->bytes);
	ASSERT_EQ(PATTERN_GOOD, pattern_check(message + 1, message->bytes, &want, NULL,
					      &fault));
}

static void submit_mixed(struct __test_metadata *_metadata,
			 FIXTURE_DATA(long_message) *self, uint32_t round)
{
	struct kxfer_job jobs[NR_MIXED];
	uint32_t i;

	for (i = 0; i < NR_MIXED; i++) {
		struct pattern want = { .seed = 1 + i, .generation = round };

		pattern_fill(self->from + i * PLACE, mixed_bytes(i), &want);
		jobs[i] = send_job(self, i * PLACE, mixed_bytes(i));
		jobs[i].user_data = i;
	}
	ASSERT_EQ(NR_MIXED, kx_submit(self->post.client, jobs, NR_MIXED));
}

/*
 * Short and long messages, more than can be in flight; RECVs posted before, after, or half of
 * them before.
 */
TEST_F_TIMEOUT(long_message, keeps_the_order_with_short_ones, 120)
{
	struct kxfer_completion done[NR_MIXED];
	struct kxfer_job jobs[NR_MIXED];
	uint32_t i, round;

	for (round = 0; round < 6; round++) {
		uint32_t before = round % 3 * NR_MIXED / 2;

		for (i = 0; i < NR_MIXED; i++) {
			jobs[i] = recv_job(self, i * PLACE, PLACE_MAX);
			jobs[i].user_data = i;
		}
		if (before)
			ASSERT_EQ(before, kx_submit(self->post.server, jobs, before));
		submit_mixed(_metadata, self, round);
		if (before < NR_MIXED)
			ASSERT_EQ(NR_MIXED - before,
				  kx_submit(self->post.server, jobs + before,
					    NR_MIXED - before));
		ASSERT_EQ(NR_MIXED, kx_reap(self->post.server, done, NR_MIXED, NR_MIXED,
					    KX_TIMEOUT_MS));
		for (i = 0; i < NR_MIXED; i++) {
			ASSERT_EQ(0, done[i].status);
			ASSERT_EQ(i, done[i].user_data);
			check_mixed(_metadata, self, i, round);
		}
		ASSERT_EQ(NR_MIXED, kx_reap(self->post.client, done, NR_MIXED, NR_MIXED,
					    KX_TIMEOUT_MS));
		for (i = 0; i < NR_MIXED; i++)
			ASSERT_EQ(0, done[i].status);
	}
}

/* As with a short message: the RECV ends, and the message waits for the next RECV. */
TEST_F(long_message, is_not_cut_for_a_recv_too_small)
{
	struct kxfer_job send = send_job(self, 0, 70000), recv = recv_job(self, 64, 69999);
	struct pattern want = { .seed = 0x33 };
	struct kxfer_completion done;
	struct pattern_fault fault;

	pattern_fill(self->from, 70000, &want);
	memset(self->to, 0xee, 80000);
	test_cmd_submit(1, self->post.server, &recv, 1);
	test_cmd_submit(1, self->post.client, &send, 1);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-EMSGSIZE, done.status);
	EXPECT_EQ(-EMSGSIZE, run(self->post.server, recv));
	EXPECT_EQ(0xee, self->to[64]);
	EXPECT_EQ(0xee, self->to[64 + HEAD]);
	/* The message has not been received. */
	test_cmd_reap(0, self->post.client, &done, 1, 0, 0);
	recv.length++;
	EXPECT_EQ(0, run(self->post.server, recv));
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->to + 64 + HEAD, 70000, &want, NULL,
					      &fault));
	test_cmd_reap(1, self->post.client, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
}

/* A long message takes a place: a mailbox full of long messages refuses short ones too. */
TEST_F(long_message, counts_in_its_mailbox)
{
	struct kxfer_completion done[4];
	struct kxfer_job send[2], recv[2];
	uint32_t small, target, i;

	test_cmd_mailbox_add(self->post.server, "small-long", 2, 65536, &small);
	test_cmd_target_open(self->post.client, self->post.peer, "small-long", 0, &target);
	for (i = 0; i < 2; i++) {
		send[i] = send_job(self, i * 4096, 4096);
		recv[i] = recv_job(self, i * 8192, 4096);
		send[i].target = target;
		recv[i].target = small;
	}
	ASSERT_EQ(2, kx_submit(self->post.client, send, 2));
	EXPECT_EQ(-EAGAIN, run(self->post.client, send[0]));
	send[0].length = 5;
	EXPECT_EQ(-EAGAIN, run(self->post.client, send[0]));
	ASSERT_EQ(2, kx_submit(self->post.server, recv, 2));
	ASSERT_EQ(2, kx_reap(self->post.server, done, 2, 2, KX_TIMEOUT_MS));
	ASSERT_EQ(2, kx_reap(self->post.client, done, 2, 2, KX_TIMEOUT_MS));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, done[i].status);
	EXPECT_EQ(0, run(self->post.client, send[0]));
	EXPECT_EQ(0, run(self->post.server, recv[0]));
}

TEST_HARNESS_MAIN
