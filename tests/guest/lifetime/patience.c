// SPDX-License-Identifier: GPL-2.0
/*
 * Long messages without a receiver: they may wait for longer than a peer may delay anything
 * else, with jobs waiting after them, and the link, which all sessions share, stays.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/post.h"

#define STUCK_MS	36000	/* 30 s, and the time until the next check of the link */
#define BYTES		1500
#define NR_CROWD	(KXFER_WIRE_OFFERS + 4)	/* more than may be in flight */

FIXTURE(patience)
{
	struct post few;	/* a message, and others that wait until it has ended */
	struct post crowd;	/* more messages than may be in flight */
	struct raw_server deaf;
	struct kxfer_job unheard;
	uint64_t lost;
	int fd;
};

FIXTURE_SETUP(patience)
{
	self->few = (struct post) { .server = -1, .client = -1 };
	self->crowd = self->few;
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, post_open(&self->few, 4, POST_PLACE));
	ASSERT_EQ(0, post_open(&self->crowd, NR_CROWD, POST_PLACE));
	self->lost = kx_counter(self->fd, "links_lost");
}

FIXTURE_TEARDOWN(patience)
{
	post_close(&self->few);
	post_close(&self->crowd);
	close(self->fd);
	raw_server_stop(&self->deaf);
}

static int answer(struct raw_server *server, const struct kxfer_wire_header *request,
		  const void *payload, void *bytes, uint16_t *length)
{
	struct kxfer_wire_grant_answer *grant = bytes;
	int ret = raw_default_answer(server, request, bytes, length);

	(void)payload;
	if (request->type == KXFER_WIRE_GRANT) {
		grant->length = htobe64(KXFER_MESSAGE_LONG_MAX);
		grant->rights = htobe32(KXFER_RIGHT_SEND);
		grant->nr_keys = 0;
	}
	return ret;
}

/* A long message to a peer whose device answers "receiver not ready" for ever. */
static void send_unheard(struct __test_metadata *_metadata, FIXTURE_DATA(patience) *self)
{
	uint16_t port = kx_own_port() + 1;
	uint8_t *memory = kx_alloc(BYTES);
	uint32_t peer;

	raw_server_init(&self->deaf);
	self->deaf.answer = answer;
	self->deaf.no_data_receives = true;
	self->deaf.welcome.features = htobe32(KXFER_WIRE_FEATURE_LONG);
	ASSERT_EQ(0, raw_server_start(&self->deaf, port));
	self->unheard = (struct kxfer_job) { .op = KXFER_OP_SEND, .length = BYTES };
	test_cmd_region_add(self->fd, memory, BYTES, 0, &self->unheard.region);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "mailbox", KXFER_RIGHT_SEND,
			     &self->unheard.target);
	test_cmd_submit(1, self->fd, &self->unheard, 1);
}

static void send_few(struct __test_metadata *_metadata, const struct post *post)
{
	struct kxfer_job jobs[2] = { post_send(post, 0, BYTES), post_send(post, 1, 5) };

	jobs[1].flags = KXFER_JOB_F_ORDERED;
	test_cmd_submit(2, post->client, jobs, 2);
}

static void send_crowd(struct __test_metadata *_metadata, const struct post *post)
{
	struct kxfer_job jobs[NR_CROWD];
	uint32_t i;

	for (i = 0; i < NR_CROWD; i++)
		jobs[i] = post_send(post, i, BYTES);
	test_cmd_submit(NR_CROWD, post->client, jobs, NR_CROWD);
}

static void receive(struct __test_metadata *_metadata, const struct post *post, uint32_t nr)
{
	struct kxfer_completion done[NR_CROWD];
	struct kxfer_job jobs[NR_CROWD];
	uint32_t i;

	for (i = 0; i < nr; i++)
		jobs[i] = post_recv(post, i);
	test_cmd_submit(nr, post->server, jobs, nr);
	test_cmd_reap(nr, post->server, done, nr, nr, KX_TIMEOUT_MS);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, done[i].status);
	test_cmd_reap(nr, post->client, done, nr, nr, KX_TIMEOUT_MS);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, done[i].status);
}

/* All cases are in one test, because each alone would take as long. */
TEST_F_TIMEOUT(patience, is_for_messages_that_were_taken_and_for_no_others, 120)
{
	bool unheard = !strcmp(kx_provider(), "rxe");	/* iWARP does not wait for a receiver */
	struct kxfer_completion done;

	send_few(_metadata, &self->few);
	send_crowd(_metadata, &self->crowd);
	if (unheard)
		send_unheard(_metadata, self);
	kx_sleep_ms(STUCK_MS);
	EXPECT_EQ(self->lost + unheard, kx_counter(self->fd, "links_lost"));
	if (unheard) {
		test_cmd_reap(1, self->fd, &done, 1, 0, 0);
		EXPECT_EQ(-ECONNRESET, done.status);
	}
	receive(_metadata, &self->few, 2);
	receive(_metadata, &self->crowd, NR_CROWD);
}

TEST_HARNESS_MAIN
