// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: their bytes, at every size and place; their order among themselves and after
 * WRITEs; many senders, and a mailbox that is always full.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/pattern.h"
#include "kselftest_harness.h"
#include "rigs/post.h"

#define HEAD		sizeof(struct kxfer_message)
#define NR_SENDERS	4
#define PER_SENDER	50

FIXTURE(mailbox)
{
	struct post post;
};

FIXTURE_SETUP(mailbox)
{
	ASSERT_EQ(0, post_open(&self->post, POST_PLACES, KXFER_MESSAGE_MAX));
}

FIXTURE_TEARDOWN(mailbox)
{
	post_close(&self->post);
}

static int run(int fd, struct kxfer_job job)
{
	struct kxfer_completion completion = { .status = -EPROTO };

	if (kx_submit(fd, &job, 1) == 1)
		kx_reap(fd, &completion, 1, 1, KX_TIMEOUT_MS);
	return completion.status;
}

/* Has a message sent and received; the RECV is as long as the message. */
static void pass_on(struct __test_metadata *_metadata, struct post *post, struct kxfer_job *send,
		    struct kxfer_job *recv, bool waits)
{
	struct kxfer_completion done = { .status = -EPROTO };

	if (waits)
		test_cmd_submit(1, post->server, recv, 1);
	ASSERT_EQ(0, run(post->client, *send));
	if (!waits)
		test_cmd_submit(1, post->server, recv, 1);
	test_cmd_reap(1, post->server, &done, 1, 1, KX_TIMEOUT_MS);
	ASSERT_EQ(0, done.status);
	ASSERT_EQ(recv->length, done.bytes);
}

/* Sends one message from one place to another, and checks the bytes around it. */
static void try_one(struct __test_metadata *_metadata, struct post *post, uint64_t from,
		    uint64_t to, uint32_t bytes, bool waits)
{
	static uint32_t generation;
	struct pattern want = {
		.seed = 0x5e, .generation = ++generation % PATTERN_GENERATION_MAX,
	};
	struct kxfer_job send = post_send(post, 0, bytes), recv = post_recv(post, 0);
	struct kxfer_message message;
	struct pattern_fault fault;
	uint8_t *at = post->inbox + to;

	pattern_fill(post->outbox + from, bytes, &want);
	memset(at - 8, 0xee, HEAD + bytes + 16);
	/* Those that want an answer are copied. */
	send.flags = generation & 2 ? KXFER_JOB_F_STORED : 0;
	send.region_offset = bytes ? from : 0;
	recv.region_offset = to;
	recv.length = HEAD + bytes;
	pass_on(_metadata, post, &send, &recv, waits);
	memcpy(&message, at, HEAD);
	ASSERT_EQ(bytes, message.bytes);
	ASSERT_EQ(PATTERN_GOOD, pattern_check(at + HEAD, bytes, &want, NULL, &fault));
	ASSERT_EQ(0xee, at[-1]);
	ASSERT_EQ(0xee, at[HEAD + bytes]);
}

/* The same, with the payload apart from its header. */
static void try_apart(struct __test_metadata *_metadata, struct post *post, uint64_t head,
		      uint64_t payload, uint32_t bytes, bool waits)
{
	struct pattern want = { .seed = 0xa9, .generation = 1 + bytes % PATTERN_GENERATION_MAX };
	struct kxfer_job send = post_send(post, 0, bytes), recv = post_recv(post, 0);
	struct kxfer_message message;
	struct pattern_fault fault;

	pattern_fill(post->outbox, bytes, &want);
	memset(post->inbox, 0xee, POST_BYTES);
	recv.flags = KXFER_JOB_F_APART;
	recv.region_offset = head;
	recv.target_offset = payload;
	recv.length = HEAD + bytes;
	pass_on(_metadata, post, &send, &recv, waits);
	memcpy(&message, post->inbox + head, HEAD);
	ASSERT_EQ(bytes, message.bytes);
	ASSERT_EQ(PATTERN_GOOD, pattern_check(post->inbox + payload, bytes, &want, NULL, &fault));
	memset(post->inbox + head, 0xee, HEAD);
	memset(post->inbox + payload, 0xee, bytes);
	for (uint32_t i = 0; i < POST_BYTES; i++)
		ASSERT_EQ(0xee, post->inbox[i]);
}

TEST_F(mailbox, carries_a_payload_apart)
{
	uint32_t bytes;

	for (bytes = 1; bytes <= KXFER_MESSAGE_MAX; bytes += 99) {
		try_apart(_metadata, &self->post, 0, 8192, bytes, bytes & 1);
		try_apart(_metadata, &self->post, 8192 - 24, 4095, bytes, !(bytes & 1));
		/* Each right behind the other. */
		try_apart(_metadata, &self->post, 4096 + bytes, 4096, bytes, true);
		try_apart(_metadata, &self->post, 4096, 4096 + HEAD, bytes, false);
	}
}

TEST_F(mailbox, carries_every_size)
{
	uint32_t bytes;

	for (bytes = 0; bytes <= KXFER_MESSAGE_MAX;
	     bytes += bytes < 80 || bytes > KXFER_MESSAGE_MAX - 20 ? 1 : 37)
		try_one(_metadata, &self->post, 3, 16, bytes, bytes & 1);
	try_one(_metadata, &self->post, 3, 16, KXFER_MESSAGE_MAX, true);
	try_one(_metadata, &self->post, 3, 16, KXFER_MESSAGE_MAX, false);
}

/* The record and the payload may be on two pages, and begin anywhere. */
TEST_F(mailbox, carries_across_pages)
{
	uint32_t i;

	for (i = 0; i < 130; i++) {
		try_one(_metadata, &self->post, 4096 - i, 8192 - i, 100, i & 1);
		try_one(_metadata, &self->post, 8192 - 7 * i, 4096 - 9 * i,
			KXFER_MESSAGE_MAX, i & 1);
	}
}

static int send_all(struct post *post)
{
	struct kxfer_job jobs[POST_PLACES];
	uint32_t i;

	for (i = 0; i < POST_PLACES; i++) {
		memcpy(post->outbox + i * POST_PLACE, &i, sizeof(i));
		jobs[i] = post_send(post, i, sizeof(i));
		jobs[i].flags = KXFER_JOB_F_IMM;
		jobs[i].cookie = i;
	}
	return kx_submit(post->client, jobs, POST_PLACES);
}

static int receive_all(struct post *post)
{
	struct kxfer_job jobs[POST_PLACES];
	uint32_t i;

	for (i = 0; i < POST_PLACES; i++)
		jobs[i] = post_recv(post, i);
	return kx_submit(post->server, jobs, POST_PLACES);
}

/* Return: number of jobs that have ended without an error. */
static uint32_t reap_all(int fd, struct kxfer_completion *done)
{
	uint32_t i, fine = 0;

	if (kx_reap(fd, done, POST_PLACES, POST_PLACES, KX_TIMEOUT_MS) != POST_PLACES)
		return 0;
	for (i = 0; i < POST_PLACES; i++)
		fine += !done[i].status;
	return fine;
}

static void expect_messages_in_order(struct __test_metadata *_metadata, struct post *post)
{
	uint32_t i;

	for (i = 0; i < POST_PLACES; i++) {
		EXPECT_EQ(i, post_message(post, i)->immediate);
		EXPECT_EQ(0, memcmp(post_message(post, i) + 1, &i, sizeof(i)));
	}
}

static void expect_completions_in_order(struct __test_metadata *_metadata,
					const struct kxfer_completion *done)
{
	uint32_t i;

	for (i = 0; i < POST_PLACES; i++)
		EXPECT_EQ(i, done[i].user_data);
}

/*
 * Many messages at once, more than the lane has slots: all before the RECVs, all after them,
 * and during the submission of the RECVs, when completions have no order.
 */
TEST_F(mailbox, keeps_the_order_of_a_session)
{
	struct kxfer_completion sent[POST_PLACES], done[POST_PLACES];
	uint32_t round;

	for (round = 0; round < 9; round++) {
		if (round % 3 == 1)
			ASSERT_EQ(POST_PLACES, receive_all(&self->post));
		ASSERT_EQ(POST_PLACES, send_all(&self->post));
		if (round % 3 == 2)
			ASSERT_EQ(POST_PLACES, receive_all(&self->post));
		ASSERT_EQ(POST_PLACES, reap_all(self->post.client, sent));
		if (round % 3 == 0)
			ASSERT_EQ(POST_PLACES, receive_all(&self->post));
		ASSERT_EQ(POST_PLACES, reap_all(self->post.server, done));
		expect_messages_in_order(_metadata, &self->post);
		if (round % 3 != 2)
			expect_completions_in_order(_metadata, done);
	}
}

/* Like a WRITE with immediate: when the message is there, the written data is there. */
TEST_F(mailbox, arrives_behind_a_write)
{
	struct pattern new = { .seed = 0x77 };
	uint32_t region, export_id, target, round;
	size_t length = 1 << 20;
	uint8_t *memory = kx_alloc(length), *source = kx_alloc(length);
	struct kxfer_completion done[2];
	struct pattern_fault fault;
	struct kxfer_job jobs[2];
	uint32_t source_region;

	ASSERT_NE(NULL, memory);
	ASSERT_NE(NULL, source);
	test_cmd_region_add(self->post.server, memory, length, KXFER_REGION_F_WRITE, &region);
	test_cmd_region_add(self->post.client, source, length, 0, &source_region);
	test_cmd_export_add(self->post.server, region, 0, length, KXFER_RIGHT_WRITE, "written",
			    &export_id);
	test_cmd_target_open(self->post.client, self->post.peer, "written", 0, &target);
	for (round = 0; round < 20; round++) {
		size_t bytes = round % 2 ? length : 1 + 999 * round;
		struct kxfer_job recv = post_recv(&self->post, 0);

		new.generation = round;
		pattern_fill(source, bytes, &new);
		jobs[0] = (struct kxfer_job) {
			.op = KXFER_OP_WRITE, .region = source_region, .target = target,
			.length = bytes,
		};
		jobs[1] = post_send(&self->post, 0, 0);
		jobs[1].flags = KXFER_JOB_F_IMM;
		jobs[1].cookie = round;
		ASSERT_EQ(2, kx_submit(self->post.client, jobs, 2));
		ASSERT_EQ(0, run(self->post.server, recv));
		ASSERT_EQ(round, post_message(&self->post, 0)->immediate);
		ASSERT_EQ(PATTERN_GOOD, pattern_check(memory, bytes, &new, NULL, &fault));
		ASSERT_EQ(2, kx_reap(self->post.client, done, 2, 2, KX_TIMEOUT_MS));
		ASSERT_EQ(0, done[0].status);
		ASSERT_EQ(0, done[1].status);
	}
	kx_free(memory, length);
	kx_free(source, length);
}

/* Payload of a message: the sender, and the number of its message. */
struct note {
	uint32_t sender;
	uint32_t number;
};

/* Sends the notes one by one, each as soon as there is room for it. Does not return. */
static void send_notes(const char *name, uint32_t sender)
{
	struct note *note = kx_alloc(4096);
	uint64_t end = kx_deadline_ns(KX_TIMEOUT_MS);
	uint32_t peer, target, region;
	int fd = kx_open(), ret = -EIO;

	if (fd < 0 || !note || kx_region_add(fd, note, 4096, 0, &region) ||
	    kx_peer_open(fd, kx_addr(kx_address(), KXFER_PORT), &peer) ||
	    kx_target_open(fd, peer, name, 0, &target))
		_exit(1);
	note->sender = sender;
	for (note->number = 0; note->number < PER_SENDER; note->number++) {
		do {
			ret = kx_send(fd, region, 0, sizeof(*note), target);
		} while (ret == -EAGAIN && kx_now_ns() < end);
		if (ret)
			_exit(2);
	}
	_exit(0);
}

TEST_F_TIMEOUT(mailbox, of_many_senders_loses_nothing, 120)
{
	uint32_t next[NR_SENDERS] = {}, small, i;
	struct kxfer_job recv = post_recv(&self->post, 0);
	int status;

	/* So few places that the mailbox is full most of the time. */
	test_cmd_mailbox_add(self->post.server, "many-senders", 3, sizeof(struct note), &small);
	for (i = 0; i < NR_SENDERS; i++)
		if (!fork())
			send_notes("many-senders", i);
	recv.target = small;
	for (i = 0; i < NR_SENDERS * PER_SENDER; i++) {
		struct note note;

		ASSERT_EQ(0, run(self->post.server, recv));
		memcpy(&note, self->post.inbox + HEAD, sizeof(note));
		ASSERT_GT(NR_SENDERS, note.sender);
		ASSERT_EQ(next[note.sender]++, note.number);
	}
	for (i = 0; i < NR_SENDERS; i++) {
		ASSERT_LT(0, wait(&status));
		EXPECT_EQ(0, status);
	}
	/* No message came twice. */
	test_cmd_submit(1, self->post.server, &recv, 1);
	test_cmd_cancel(1, self->post.server, recv.user_data, 0);
}

TEST_HARNESS_MAIN
