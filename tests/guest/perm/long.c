// SPDX-License-Identifier: GPL-2.0
/*
 * Long messages of a lying peer: an invalid OFFER or TAKE_BACK costs the link, a valid but
 * forbidden one is refused, and RECVs outlive both.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "harness/buffer.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH	(64UL << 10)
#define BYTES	1500
#define HEAD	sizeof(struct kxfer_message)
#define WORD	0x0123456789abcdefULL
#define WAITING	(KXFER_WIRE_FEATURE_LONG | KXFER_WIRE_FEATURE_WAIT)

FIXTURE(long_message)
{
	struct kx_pair pair;	/* another link, to the same exporter */
	struct raw_link link;
	struct kxfer_wire_offer offer;
	struct kxfer_job recv;
	uint64_t errors;
	uint32_t mailbox;
	uint16_t port;
};

static int open_link(FIXTURE_DATA(long_message) *self, uint32_t features)
{
	struct kxfer_wire_grant_answer grant;
	int ret = raw_link_open_with(&self->link, self->port, features) ?:
		  raw_grant_word(&self->link, "raw-long", 1234, KXFER_RIGHT_SEND, WORD, &grant);

	self->offer = (struct kxfer_wire_offer) {
		.grant = grant.grant,
		.address = htobe64((uintptr_t)raw_scratch(&self->link.data)),
		.rkey = self->link.data.mr ? htobe32(self->link.data.mr->rkey) : 0,
		.bytes = htobe32(BYTES),
	};
	return ret;
}

FIXTURE_SETUP(long_message)
{
	uint64_t listener;

	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->port = kx_own_port();
	test_cmd_listen_add(self->pair.server, kx_addr(kx_address(), self->port), 0,
			    &listener);
	test_cmd_mailbox_add(self->pair.server, "raw-long", 2, 4096, &self->mailbox);
	ASSERT_EQ(0, open_link(self, KXFER_WIRE_FEATURE_LONG));
	self->recv = (struct kxfer_job) {
		.op = KXFER_OP_RECV, .region = self->pair.server_region,
		.target = self->mailbox, .length = 8192,
	};
	self->errors = kx_counter(self->pair.server, "protocol_errors");
}

FIXTURE_TEARDOWN(long_message)
{
	EXPECT_EQ(0, kx_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region,
				 0, self->pair.target, 0, 4096));
	raw_link_close(&self->link);
	kx_pair_close(&self->pair);
}

/* Return: status of the answer, or -errno. */
static int offer(FIXTURE_DATA(long_message) *self, uint32_t id)
{
	self->offer.id = htobe32(id);
	return raw_request(&self->link, &self->link.data, KXFER_WIRE_OFFER, &self->offer,
			   sizeof(self->offer), NULL, NULL);
}

static int take_back(FIXTURE_DATA(long_message) *self, uint32_t id)
{
	struct kxfer_wire_take_back take = { .id = htobe32(id) };

	return raw_request(&self->link, &self->link.data, KXFER_WIRE_TAKE_BACK, &take,
			   sizeof(take), NULL, NULL);
}

/* Waits for FETCHED and its id and status; answers it if @answer. Return: 0 or -errno. */
static int fetched(FIXTURE_DATA(long_message) *self, uint32_t *id, uint32_t *status,
		   bool answer)
{
	uint8_t message[RAW_BYTES];
	struct kxfer_wire_header *header = (void *)message;
	const struct kxfer_wire_fetched *fetched = (void *)(header + 1);
	int ret = raw_receive(&self->link.data, message, RAW_MS);

	if (ret < 0)
		return ret;
	if (header->type != KXFER_WIRE_FETCHED || ret != sizeof(*header) + sizeof(*fetched))
		return -EPROTO;
	*id = be32toh(fetched->id);
	*status = be32toh(fetched->status);
	header->type |= KXFER_WIRE_ANSWER;
	header->length = 0;
	return answer ? raw_send(&self->link.data, message, sizeof(*header)) : 0;
}

#define EXPECT_DROPPED() ({							\
	EXPECT_TRUE(raw_dropped(&self->link.control, RAW_MS));			\
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));			\
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors")); \
})
#define EXPECT_ALIVE() \
	EXPECT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_PING, NULL, 0, \
				 NULL, NULL))

TEST_F(long_message, is_read_into_a_recv)
{
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	struct kxfer_completion done;
	uint32_t id, status, i;

	for (i = 0; i < 20; i++) {
		uint32_t j;

		memset(self->pair.server_memory, 0, 8192);
		if (i % 2)
			test_cmd_submit(1, self->pair.server, &self->recv, 1);
		self->offer.flags = htobe32(KXFER_WIRE_SEND_IMM);
		self->offer.immediate = htobe32(i);
		self->offer.id = htobe32(i % KXFER_WIRE_OFFERS);
		/* Requests are built in the scratch too, so the READ may find either content. */
		ASSERT_EQ(0, raw_post_request(&self->link.data,
					      raw_header(KXFER_WIRE_OFFER, 1,
							 sizeof(self->offer), 500 + i),
					      &self->offer, sizeof(self->offer)));
		if (!(i % 2))
			test_cmd_submit(1, self->pair.server, &self->recv, 1);
		/* The answer and FETCHED come in any order. */
		for (j = 0; j < 2; j++) {
			uint8_t bytes[RAW_BYTES];
			struct kxfer_wire_header *header = (void *)bytes;
			const struct kxfer_wire_fetched *over = (void *)(header + 1);

			ASSERT_LT(0, raw_receive(&self->link.data, bytes, RAW_MS));
			if (header->type & KXFER_WIRE_ANSWER) {
				ASSERT_EQ(0, header->status);
				continue;
			}
			ASSERT_EQ(KXFER_WIRE_FETCHED, header->type);
			id = be32toh(over->id);
			status = be32toh(over->status);
			EXPECT_EQ(i % KXFER_WIRE_OFFERS, id);
			EXPECT_EQ(KXFER_WIRE_OK, status);
			header->type |= KXFER_WIRE_ANSWER;
			header->length = 0;
			ASSERT_EQ(0, raw_send(&self->link.data, bytes, sizeof(*header)));
		}
		test_cmd_reap(1, self->pair.server, &done, 1, 1, KX_TIMEOUT_MS);
		EXPECT_EQ(0, done.status);
		EXPECT_EQ(HEAD + BYTES, done.bytes);
		EXPECT_EQ(BYTES, message->bytes);
		EXPECT_EQ(i, message->immediate);
		EXPECT_EQ(1234, message->uid);
		EXPECT_EQ(WORD, message->word);
	}
	EXPECT_ALIVE();
}

TEST_F(long_message, is_taken_back)
{
	uint32_t i;

	for (i = 0; i < 40; i++) {
		ASSERT_EQ(KXFER_WIRE_OK, offer(self, i % KXFER_WIRE_OFFERS));
		ASSERT_EQ(KXFER_WIRE_OK, take_back(self, i % KXFER_WIRE_OFFERS));
	}
	/* No RECV gets a message. */
	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	test_cmd_cancel(1, self->pair.server, 0, 0);
	EXPECT_ALIVE();
}

TEST_F(long_message, that_is_over_is_not_taken_back)
{
	uint32_t id, status;

	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 4));
	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	ASSERT_EQ(0, fetched(self, &id, &status, false));
	EXPECT_EQ(4, id);
	EXPECT_EQ(KXFER_WIRE_BUSY, take_back(self, 4));
	EXPECT_EQ(self->errors, kx_counter(self->pair.server, "protocol_errors"));
	/* The id is in use until FETCHED is answered. */
	EXPECT_GT(0, offer(self, 4));
	EXPECT_DROPPED();
}

TEST_F(long_message, is_refused_as_a_short_one)
{
	struct kxfer_wire_grant_answer memory;
	uint64_t grant = self->offer.grant;

	self->offer.grant = htobe64(77);
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, offer(self, 0));
	self->offer.grant = htobe64(UINT64_MAX);
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, offer(self, 0));
	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &memory));
	self->offer.grant = memory.grant;
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS, offer(self, 0));
	self->offer.grant = grant;
	self->offer.bytes = htobe32(4097);
	EXPECT_EQ(KXFER_WIRE_INVALID, offer(self, 0));
	self->offer.bytes = htobe32(4096);
	EXPECT_EQ(KXFER_WIRE_OK, offer(self, 0));
	EXPECT_EQ(KXFER_WIRE_OK, offer(self, 1));
	EXPECT_EQ(KXFER_WIRE_BUSY, offer(self, 2));
	EXPECT_EQ(KXFER_WIRE_OK, take_back(self, 0));
	EXPECT_EQ(KXFER_WIRE_OK, offer(self, 2));
	EXPECT_ALIVE();
}

TEST_F(long_message, outlives_its_grant)
{
	struct kxfer_wire_grant_id id = { .grant = self->offer.grant };

	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 0));
	ASSERT_EQ(KXFER_WIRE_OK, raw_request(&self->link, &self->link.control,
					     KXFER_WIRE_RELEASE, &id, sizeof(id), NULL, NULL));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, offer(self, 1));
	EXPECT_EQ(KXFER_WIRE_OK, take_back(self, 0));
}

#define COSTS_THE_LINK(field, value)					\
TEST_F(long_message, with_##field##_of_##value##_costs_the_link)	\
{									\
	self->offer.field = htobe32(value);				\
	EXPECT_GT(0, raw_request(&self->link, &self->link.data, KXFER_WIRE_OFFER, \
				 &self->offer, sizeof(self->offer), NULL, NULL)); \
	EXPECT_DROPPED();						\
}

COSTS_THE_LINK(bytes, 0)
COSTS_THE_LINK(bytes, 992)
COSTS_THE_LINK(bytes, 1048577)
COSTS_THE_LINK(bytes, 4294967295)
COSTS_THE_LINK(flags, 2)
COSTS_THE_LINK(flags, 4)
COSTS_THE_LINK(immediate, 1)
COSTS_THE_LINK(id, 16)
COSTS_THE_LINK(id, 4294967295)
COSTS_THE_LINK(reserved, 1)

TEST_F(long_message, with_an_address_that_wraps_costs_the_link)
{
	self->offer.address = htobe64(UINT64_MAX);
	EXPECT_GT(0, offer(self, 0));
	EXPECT_DROPPED();
}

TEST_F(long_message, with_an_id_twice_costs_the_link)
{
	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 3));
	EXPECT_GT(0, offer(self, 3));
	EXPECT_DROPPED();
}

TEST_F(long_message, TAKE_BACK_of_nothing_costs_the_link)
{
	EXPECT_GT(0, take_back(self, 3));
	EXPECT_DROPPED();
}

TEST_F(long_message, TAKE_BACK_twice_costs_the_link)
{
	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 3));
	ASSERT_EQ(KXFER_WIRE_OK, take_back(self, 3));
	EXPECT_GT(0, take_back(self, 3));
	EXPECT_DROPPED();
}

/* A TAKE_BACK that was sent before FETCHED was answered, as if it had waited for its slot. */
TEST_F(long_message, TAKE_BACK_may_be_handled_behind_the_answer_to_FETCHED_once)
{
	uint32_t id, status;

	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 4));
	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	ASSERT_EQ(0, fetched(self, &id, &status, true));
	EXPECT_EQ(4, id);
	EXPECT_EQ(KXFER_WIRE_BUSY, take_back(self, 4));
	EXPECT_ALIVE();
	EXPECT_EQ(self->errors, kx_counter(self->pair.server, "protocol_errors"));
	EXPECT_GT(0, take_back(self, 4));
	EXPECT_DROPPED();
}

TEST_F(long_message, TAKE_BACK_of_no_id_costs_the_link)
{
	EXPECT_GT(0, take_back(self, KXFER_WIRE_OFFERS));
	EXPECT_DROPPED();
}

TEST_F(long_message, FETCHED_of_an_initiator_costs_the_link)
{
	struct kxfer_wire_fetched wrong = { .id = 0 };

	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 0));
	EXPECT_GT(0, raw_request(&self->link, &self->link.data, KXFER_WIRE_FETCHED, &wrong,
				 sizeof(wrong), NULL, NULL));
	EXPECT_DROPPED();
}

TEST_F(long_message, on_control_costs_the_link)
{
	EXPECT_GT(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_OFFER,
				 &self->offer, sizeof(self->offer), NULL, NULL));
	EXPECT_DROPPED();
}

TEST_F(long_message, that_was_not_agreed_on_costs_the_link)
{
	struct kxfer_wire_grant_answer grant;

	raw_link_close(&self->link);
	ASSERT_EQ(0, raw_link_open(&self->link, self->port));
	ASSERT_EQ(0, raw_grant(&self->link, "raw-long", 1234, KXFER_RIGHT_SEND, &grant));
	/* The grant does not announce long messages to a peer that cannot send them. */
	EXPECT_EQ(htobe64(KXFER_MESSAGE_MAX), grant.length);
	self->offer.grant = grant.grant;
	EXPECT_GT(0, offer(self, 0));
	EXPECT_DROPPED();
}

/* It may be short, and is noted beyond the places of the mailbox: as many as a lane has offers. */
TEST_F(long_message, may_wait_if_that_was_agreed_on)
{
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	uint32_t id, got, status;

	raw_link_close(&self->link);
	ASSERT_EQ(0, open_link(self, WAITING));
	for (id = 0; id < KXFER_WIRE_OFFERS; id++) {
		self->offer.flags = htobe32(id ? KXFER_WIRE_SEND_WAIT : 0);
		self->offer.bytes = htobe32(id ? id : BYTES);
		ASSERT_EQ(KXFER_WIRE_OK, offer(self, id));
	}
	/* Anywhere in the line. */
	EXPECT_EQ(KXFER_WIRE_OK, take_back(self, 5));
	EXPECT_EQ(KXFER_WIRE_OK, take_back(self, 1));
	self->offer.flags = 0;
	self->offer.bytes = htobe32(BYTES);
	EXPECT_EQ(KXFER_WIRE_OK, offer(self, 1));
	EXPECT_EQ(KXFER_WIRE_BUSY, offer(self, 5));
	for (id = 0; id < KXFER_WIRE_OFFERS; id++) {
		if (id == 1 || id == 5)
			continue;
		test_cmd_submit(1, self->pair.server, &self->recv, 1);
		ASSERT_EQ(0, fetched(self, &got, &status, true));
		EXPECT_EQ(id, got);
		EXPECT_EQ(KXFER_WIRE_OK, status);
		EXPECT_EQ(id ? id : BYTES, message->bytes);
	}
	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	ASSERT_EQ(0, fetched(self, &got, &status, true));
	EXPECT_EQ(1, got);
	self->offer.flags = htobe32(KXFER_WIRE_SEND_WAIT);
	self->offer.bytes = 0;
	EXPECT_GT(0, offer(self, 0));
	EXPECT_DROPPED();
}

/* Of three links only the last is there when the RECVs come. */
TEST_F(long_message, that_waits_is_forgotten_with_its_link)
{
	struct kxfer_completion done;
	uint32_t id, got, status, round;

	for (round = 0; round < 3; round++) {
		raw_link_close(&self->link);
		ASSERT_EQ(0, open_link(self, WAITING));
		self->offer.flags = htobe32(KXFER_WIRE_SEND_WAIT);
		for (id = 0; id < 6; id++)
			ASSERT_EQ(KXFER_WIRE_OK, offer(self, id));
	}
	for (id = 0; id < 6; id++) {
		test_cmd_submit(1, self->pair.server, &self->recv, 1);
		ASSERT_EQ(0, fetched(self, &got, &status, true));
		EXPECT_EQ(id, got);
		EXPECT_EQ(KXFER_WIRE_OK, status);
	}
	for (id = 0; id < 6; id++)
		test_cmd_reap(1, self->pair.server, &done, 1, 1, KX_TIMEOUT_MS);
	self->recv.deadline_ns = kx_deadline_ns(300);
	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	test_cmd_reap(1, self->pair.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ETIMEDOUT, done.status);
}

/* The grant announces the longest message that the receiver's device can register. */
TEST_F(long_message, that_the_device_cannot_take_costs_the_link)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_completion done;
	struct buffer scattered;
	uint64_t longest;

	test_cmd_mailbox_add(self->pair.server, "raw-longest", 2, KXFER_MESSAGE_LONG_MAX,
			     &self->recv.target);
	ASSERT_EQ(0, raw_grant(&self->link, "raw-longest", 1234, KXFER_RIGHT_SEND, &grant));
	longest = be64toh(grant.length);
	self->offer.grant = grant.grant;
	self->offer.bytes = htobe32(longest);
	ASSERT_EQ(KXFER_WIRE_OK, offer(self, 0));
	ASSERT_EQ(KXFER_WIRE_OK, take_back(self, 0));
	if (longest == KXFER_MESSAGE_LONG_MAX)
		SKIP(return, "a device that does not take the longest message");
	/* A buffer with as many pieces as pages, and one more. */
	self->recv.length = HEAD + KXFER_MESSAGE_LONG_MAX;
	ASSERT_EQ(0, buffer_alloc(&scattered, BUFFER_SCATTERED, self->recv.length));
	test_cmd_region_add(self->pair.server, scattered.bytes, self->recv.length,
			    KXFER_REGION_F_WRITE, &self->recv.region);
	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	self->offer.bytes = htobe32(KXFER_MESSAGE_LONG_MAX);
	EXPECT_GT(0, offer(self, 0));
	EXPECT_DROPPED();
	test_cmd_reap(0, self->pair.server, &done, 1, 0, 0);
	test_cmd_cancel(1, self->pair.server, 0, 0);
	test_cmd_reap(1, self->pair.server, &done, 1, 1, KX_TIMEOUT_MS);
	test_cmd_region_del(self->pair.server, self->recv.region);
	buffer_free(&scattered);
}

/* The READ fails, and so does the link; the RECV waits for the next message. */
TEST_F(long_message, with_a_wrong_key_does_not_end_the_recv)
{
	struct kxfer_completion done;
	uint32_t target;

	test_cmd_submit(1, self->pair.server, &self->recv, 1);
	self->offer.rkey ^= htobe32(0x5500);
	offer(self, 0);
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));
	test_cmd_reap(0, self->pair.server, &done, 1, 0, 0);
	test_cmd_target_open(self->pair.client, self->pair.peer, "raw-long", 0, &target);
	test_cmd_send(self->pair.client, self->pair.client_region, 0, 7, target);
	test_cmd_reap(1, self->pair.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(HEAD + 7, done.bytes);
}

/* The peer vanishes with waiting messages: their places are free again. */
TEST_F(long_message, of_a_peer_that_vanishes_is_forgotten)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(KXFER_WIRE_OK, offer(self, 0));
		ASSERT_EQ(KXFER_WIRE_OK, offer(self, 1));
		ASSERT_EQ(KXFER_WIRE_BUSY, offer(self, 2));
		raw_link_close(&self->link);
		ASSERT_EQ(0, open_link(self, KXFER_WIRE_FEATURE_LONG));
		ASSERT_TRUE(kx_wait_until(offer(self, 5) == KXFER_WIRE_OK, KX_TIMEOUT_MS));
		ASSERT_EQ(KXFER_WIRE_OK, take_back(self, 5));
		ASSERT_TRUE(kx_wait_until(offer(self, 6) == KXFER_WIRE_OK &&
					  offer(self, 7) == KXFER_WIRE_OK, KX_TIMEOUT_MS));
		ASSERT_EQ(KXFER_WIRE_OK, take_back(self, 6));
		ASSERT_EQ(KXFER_WIRE_OK, take_back(self, 7));
	}
}

TEST_HARNESS_MAIN
