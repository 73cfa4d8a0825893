// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that wait though their mailbox is full (KXFER_JOB_F_WAIT): none is lost, refused or
 * overtaken by another, whatever their lengths; and each way in which they end early leaves the
 * others in order.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/post.h"

#define HEAD		sizeof(struct kxfer_message)
#define CAPACITY	2
#define NR		40
#define MAX_BYTES	16384u
#define PLACE		(MAX_BYTES + 4096)
#define SPACE		(NR * PLACE)

FIXTURE(waiting)
{
	struct baseline baseline;
	struct post post;
	uint8_t *from;
	uint8_t *to;
	uint32_t from_region;
	uint32_t to_region;
	uint32_t mailbox;
	uint32_t target;
	int fd;			/* session that only reads counters */
};

static uint32_t bytes_of(uint32_t i)
{
	static const uint32_t bytes[] = { 1, 100, 992, 993, 4096, 4097, MAX_BYTES };

	return bytes[i % (sizeof(bytes) / sizeof(bytes[0]))];
}

static int open_mail(FIXTURE_DATA(waiting) *self)
{
	uint32_t i;
	int ret = post_open(&self->post, 1, 1);

	self->from = kx_alloc(SPACE);
	self->to = kx_alloc(SPACE);
	if (ret || !self->from || !self->to)
		return ret ?: -ENOMEM;
	for (i = 0; i < NR; i++)
		memset(self->from + i * PLACE, i + 1, MAX_BYTES);
	return kx_region_add(self->post.client, self->from, SPACE, 0, &self->from_region) ?:
	       kx_region_add(self->post.server, self->to, SPACE, KXFER_REGION_F_WRITE,
			     &self->to_region) ?:
	       kx_mailbox_add(self->post.server, "waiting", CAPACITY, MAX_BYTES,
			      &self->mailbox) ?:
	       kx_target_open(self->post.client, self->post.peer, "waiting", 0, &self->target);
}

static void close_mail(FIXTURE_DATA(waiting) *self)
{
	post_close(&self->post);
	kx_free(self->from, SPACE);
	kx_free(self->to, SPACE);
}

FIXTURE_SETUP(waiting)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, open_mail(self));
	close_mail(self);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, open_mail(self));
}

FIXTURE_TEARDOWN(waiting)
{
	const char *left;

	close_mail(self);
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	close(self->fd);
}

static struct kxfer_job send_job(const FIXTURE_DATA(waiting) *self, uint32_t i)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_SEND, .flags = KXFER_JOB_F_WAIT, .region = self->from_region,
		.target = self->target, .region_offset = i * PLACE, .length = bytes_of(i),
		.user_data = i,
	};
}

static int send_some(const FIXTURE_DATA(waiting) *self, uint32_t first, uint32_t nr)
{
	struct kxfer_job jobs[NR];
	uint32_t i;

	for (i = 0; i < nr; i++)
		jobs[i] = send_job(self, first + i);
	return kx_submit(self->post.client, jobs, nr);
}

/* Receives one message. Return: its number, if its bytes are right, or -errno. */
static int receive(const FIXTURE_DATA(waiting) *self)
{
	const struct kxfer_message *message = (void *)self->to;
	const uint8_t *payload = (const void *)(message + 1);
	uint32_t i, bytes;
	int ret;

	memset(self->to, 0, PLACE);
	ret = kx_recv(self->post.server, self->mailbox, self->to_region, 0, PLACE);
	if (ret)
		return ret;
	i = payload[0] - 1;
	bytes = message->bytes;
	if (bytes != bytes_of(i) || payload[bytes - 1] != i + 1 || payload[bytes])
		return -EBADMSG;
	return i;
}

/* Takes the completion of one SEND. Return: its status; @i: out: its number. */
static int sent(const FIXTURE_DATA(waiting) *self, uint32_t *i)
{
	struct kxfer_completion done = { .status = -EPROTO };
	int ret = kx_reap(self->post.client, &done, 1, 1, KX_TIMEOUT_MS);

	*i = done.user_data;
	return ret == 1 ? done.status : ret ?: -ETIMEDOUT;
}

static void expect_sent(struct __test_metadata *_metadata, FIXTURE_DATA(waiting) *self,
			uint32_t nr)
{
	uint64_t seen = 0;
	uint32_t i;

	while (nr--) {
		ASSERT_EQ(0, sent(self, &i));
		ASSERT_GT(NR, i);
		ASSERT_EQ(0, seen >> i & 1);
		seen |= 1ull << i;
	}
}

/* Some wait at the receiver, the rest at the sender. */
TEST_F_TIMEOUT(waiting, messages_are_received_in_order, 60)
{
	int i;

	ASSERT_EQ(NR, send_some(self, 0, NR));
	for (i = 0; i < NR; i++)
		ASSERT_EQ(i, receive(self));
	expect_sent(_metadata, self, NR);
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
}

/* Now and then the mailbox is empty, or a RECV waits. */
TEST_F_TIMEOUT(waiting, messages_of_a_slow_receiver_are_in_order, 60)
{
	uint32_t next = 0, received = 0, some;

	srand(4711);
	while (received < NR) {
		some = rand() % 5;
		if (some > NR - next)
			some = NR - next;
		if (some)
			ASSERT_EQ(some, send_some(self, next, some));
		next += some;
		for (some = rand() % 4; some && received < next; some--, received++)
			ASSERT_EQ(received, receive(self));
	}
	expect_sent(_metadata, self, NR);
}

TEST_F_TIMEOUT(waiting, message_finds_a_recv, 60)
{
	struct kxfer_job recv = {
		.op = KXFER_OP_RECV, .region = self->to_region, .target = self->mailbox,
		.length = PLACE,
	};
	struct kxfer_completion done;
	int i;

	for (i = 0; i < 7; i++) {
		test_cmd_submit(1, self->post.server, &recv, 1);
		ASSERT_EQ(1, send_some(self, i, 1));
		test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
		EXPECT_EQ(0, done.status);
		EXPECT_EQ(HEAD + bytes_of(i), done.bytes);
		EXPECT_EQ(i + 1, self->to[HEAD]);
	}
	expect_sent(_metadata, self, 7);
}

/* The flag is no right to more than the places: without it a message is refused as before. */
TEST_F_TIMEOUT(waiting, messages_leave_the_mailbox_full_for_others, 60)
{
	struct kxfer_job plain = send_job(self, 7);
	uint64_t stored = kx_counter(self->fd, "sends_stored");
	uint32_t i;

	plain.flags = 0;
	ASSERT_EQ(CAPACITY + 2, send_some(self, 0, CAPACITY + 2));
	ASSERT_TRUE(kx_wait_until(kx_counter(self->fd, "sends_stored") >= stored + CAPACITY + 2,
				  KX_TIMEOUT_MS));
	test_cmd_submit(1, self->post.client, &plain, 1);
	EXPECT_EQ(-EAGAIN, sent(self, &i));
	EXPECT_EQ(7, i);
	for (i = 0; i < CAPACITY + 2; i++)
		EXPECT_EQ(i, receive(self));
	test_cmd_submit(1, self->post.client, &plain, 1);
	EXPECT_EQ(7, receive(self));
	expect_sent(_metadata, self, CAPACITY + 3);
}

TEST_F_TIMEOUT(waiting, message_ends_at_its_deadline, 60)
{
	struct kxfer_job late = send_job(self, 4);
	uint32_t i;

	ASSERT_EQ(4, send_some(self, 0, 4));
	late.deadline_ns = kx_deadline_ns(300);
	test_cmd_submit(1, self->post.client, &late, 1);
	ASSERT_EQ(1, send_some(self, 5, 1));
	EXPECT_EQ(-ETIMEDOUT, sent(self, &i));
	EXPECT_EQ(4, i);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(i, receive(self));
	EXPECT_EQ(5, receive(self));
	expect_sent(_metadata, self, 5);
}

TEST_F_TIMEOUT(waiting, message_is_cancelled, 60)
{
	uint32_t i;

	ASSERT_EQ(8, send_some(self, 0, 8));
	/* One that waits at the receiver counts when its TAKE_BACK is answered. */
	ASSERT_LE(0, kx_cancel(self->post.client, 5, 0));
	EXPECT_EQ(-ECANCELED, sent(self, &i));
	EXPECT_EQ(5, i);
	for (i = 0; i < 8; i++)
		if (i != 5)
			EXPECT_EQ(i, receive(self));
	expect_sent(_metadata, self, 7);
}

TEST_F_TIMEOUT(waiting, message_is_told_of_the_withdrawal, 60)
{
	uint32_t i, n;

	ASSERT_EQ(20, send_some(self, 0, 20));
	ASSERT_EQ(0, receive(self));
	ASSERT_EQ(0, kx_export_del(self->post.server, self->mailbox));
	for (n = 0; n < 20; n++) {
		int status = sent(self, &i);

		EXPECT_EQ(i ? -EKEYREVOKED : 0, status);
	}
}

TEST_F_TIMEOUT(waiting, message_ends_with_its_sender, 60)
{
	uint64_t stored = kx_counter(self->fd, "sends_stored");

	ASSERT_EQ(NR, send_some(self, 0, NR));
	ASSERT_TRUE(kx_wait_until(kx_counter(self->fd, "sends_stored") >= stored + CAPACITY,
				  KX_TIMEOUT_MS));
	close(self->post.client);
	self->post.client = -1;
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_jobs") == 0, KX_TIMEOUT_MS));
}

TEST_F_TIMEOUT(waiting, message_ends_with_its_receiver, 60)
{
	uint32_t i, n;

	ASSERT_EQ(NR, send_some(self, 0, NR));
	close(self->post.server);
	self->post.server = -1;
	for (n = 0; n < NR; n++)
		EXPECT_EQ(-EKEYREVOKED, sent(self, &i));
}

/* With a credit it is as fast as any other. */
TEST_F_TIMEOUT(waiting, message_with_a_place_is_eager, 60)
{
	uint64_t eager = kx_counter(self->fd, "sends_eager");
	struct kxfer_job send = send_job(self, 1);
	uint32_t mailbox, i, n;

	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "iWARP has no eager messages");
	test_cmd_mailbox_add(self->post.server, "wide", 256, MAX_BYTES, &mailbox);
	test_cmd_target_open(self->post.client, self->post.peer, "wide", 0, &send.target);
	for (n = 0; n < 32; n++) {
		self->mailbox = mailbox;
		test_cmd_submit(1, self->post.client, &send, 1);
		EXPECT_EQ(1, receive(self));
		EXPECT_EQ(0, sent(self, &i));
	}
	EXPECT_LT(eager + 16, kx_counter(self->fd, "sends_eager"));
}

TEST_HARNESS_MAIN
