// SPDX-License-Identifier: GPL-2.0
/*
 * The content that an export announces: EXPORT_SET at one end, TARGET_OPEN, TARGET_INFO and
 * PEER_LIST at the other.
 */
#include <pthread.h>
#include <string.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define LENGTH		65536
#define AT_ONCE_MS	100	/* one request to the peer and its answer */

FIXTURE(content)
{
	struct rig rig;
	uint8_t sha256[KXFER_SHA256_SIZE];
};

FIXTURE_SETUP(content)
{
	struct rig_options options = { .length = LENGTH };
	int i;

	for (i = 0; i < KXFER_SHA256_SIZE; i++)
		self->sha256[i] = 3 * i + 1;
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(content)
{
	rig_close(&self->rig);
}

static int set(struct _test_data_content *self, uint64_t length)
{
	return kx_export_set(self->rig.server, self->rig.export_id, length, self->sha256,
			     NULL);
}

static int info(struct _test_data_content *self, uint64_t min_generation, uint32_t ms,
		struct kxfer_content *content)
{
	return kx_target_info(self->rig.client, self->rig.target, min_generation, ms, content);
}

TEST_F(content, nothing_said_is_generation_zero)
{
	struct kxfer_content content;

	ASSERT_EQ(0, info(self, 0, 1000, &content));
	EXPECT_EQ(0, content.generation);
	EXPECT_EQ(0, content.length);
}

TEST_F(content, is_seen_by_the_holder)
{
	struct kxfer_content content;

	ASSERT_EQ(0, set(self, 1234));
	ASSERT_EQ(0, info(self, 0, 1000, &content));
	EXPECT_EQ(1, content.generation);
	EXPECT_EQ(1234, content.length);
	EXPECT_EQ(0, memcmp(content.sha256, self->sha256, KXFER_SHA256_SIZE));
}

TEST_F(content, generation_grows_by_one)
{
	struct kxfer_content content;
	uint64_t generation;
	int i;

	for (i = 1; i <= 10; i++) {
		ASSERT_EQ(0, kx_export_set(self->rig.server, self->rig.export_id, i, NULL,
					   &generation));
		ASSERT_EQ((uint64_t)i, generation);
	}
	ASSERT_EQ(0, info(self, 0, 1000, &content));
	EXPECT_EQ(10, content.generation);
	EXPECT_EQ(10, content.length);
}

TEST_F(content, open_and_list_tell_it_too)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd), .peer = self->rig.peer, .timeout_ms = KX_TIMEOUT_MS,
	};
	struct kxfer_peer_export exports[64];
	uint64_t cursor = 0;
	int nr, i, found = 0;

	ASSERT_EQ(0, set(self, 77));
	strcpy((char *)cmd.name, self->rig.name);
	ASSERT_EQ(0, kx_call(self->rig.client, KXFER_TARGET_OPEN, &cmd));
	EXPECT_EQ(1, cmd.content.generation);
	EXPECT_EQ(77, cmd.content.length);
	nr = kx_peer_list(self->rig.client, self->rig.peer, exports, 64, &cursor);
	ASSERT_LE(1, nr);
	for (i = 0; i < nr; i++) {
		if (strcmp((char *)exports[i].name, self->rig.name))
			continue;
		found++;
		EXPECT_EQ(77, exports[i].content.length);
		EXPECT_EQ(LENGTH, exports[i].length);
	}
	EXPECT_EQ(1, found);
}

TEST_F(content, wait_that_is_over_at_once)
{
	struct kxfer_content content;

	ASSERT_EQ(0, set(self, 1));
	ASSERT_EQ(0, set(self, 2));
	ASSERT_EQ(0, info(self, 2, AT_ONCE_MS * kx_slowness(), &content));
	EXPECT_EQ(2, content.generation);
}

TEST_F(content, wait_that_times_out)
{
	struct kxfer_content content;
	uint64_t before = kx_now_ns();

	ASSERT_EQ(0, set(self, 1));
	EXPECT_EQ(-ETIMEDOUT, info(self, 2, 300, &content));
	EXPECT_LE(kx_least_ns(300), kx_now_ns() - before);
	EXPECT_GE(5000 * 1000000ULL, kx_now_ns() - before);
}

struct waiter {
	struct _test_data_content *self;
	uint64_t min_generation;
	int ret;
	struct kxfer_content content;
};

static void *wait_for_content(void *argument)
{
	struct waiter *waiter = argument;

	waiter->ret = info(waiter->self, waiter->min_generation, KX_TIMEOUT_MS, &waiter->content);
	return NULL;
}

TEST_F(content, wait_is_woken_by_the_peer)
{
	struct waiter waiter = { .self = self, .min_generation = 2 };
	pthread_t thread;
	uint64_t before;

	ASSERT_EQ(0, set(self, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_content, &waiter));
	kx_sleep_ms(200);
	before = kx_now_ns();
	ASSERT_EQ(0, set(self, 4321));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, waiter.ret);
	EXPECT_EQ(2, waiter.content.generation);
	EXPECT_EQ(4321, waiter.content.length);
	EXPECT_GT(2000, (kx_now_ns() - before) / 1000000);
}

TEST_F(content, wait_ends_when_the_export_is_withdrawn)
{
	struct waiter waiter = { .self = self, .min_generation = 6 };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_content, &waiter));
	kx_sleep_ms(200);
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-EKEYREVOKED, waiter.ret);
}

TEST_F(content, changes_in_a_burst_end_at_the_last)
{
	struct kxfer_content content;
	int i;

	for (i = 1; i <= 500; i++)
		ASSERT_EQ(0, set(self, i));
	ASSERT_EQ(0, info(self, 500, KX_TIMEOUT_MS, &content));
	EXPECT_EQ(500, content.generation);
	EXPECT_EQ(500, content.length);
}

TEST_F(content, longer_than_the_export_is_refused)
{
	EXPECT_EQ(-ERANGE, set(self, LENGTH + 1));
	EXPECT_EQ(0, set(self, LENGTH));
}

/* Like `put`: data, NOTIFY, the exporter checks and publishes, the writer waits. */
TEST_F(content, put_notify_publish_wait)
{
	struct waiter waiter = { .self = self };
	struct pattern pattern = { .seed = 0x333 };
	struct kxfer_event event;
	pthread_t thread;
	int i;

	for (i = 1; i <= 20; i++) {
		pattern.generation = i;
		pattern_fill(self->rig.here.bytes, LENGTH, &pattern);
		ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH));
		waiter.min_generation = i;
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_content, &waiter));
		test_cmd_notify(self->rig.client, self->rig.target, i);
		ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, KX_TIMEOUT_MS));
		ASSERT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, LENGTH, &pattern,
						      NULL, NULL));
		ASSERT_EQ(0, set(self, 1000 + i));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, waiter.ret);
		ASSERT_EQ(1000 + (uint64_t)i, waiter.content.length);
	}
}

TEST_HARNESS_MAIN
