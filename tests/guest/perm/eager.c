// SPDX-License-Identifier: GPL-2.0
/*
 * Eager messages of a lying peer, and credits of a lying receiver. A message needs a credit of
 * its grant on its lane; a receiver gives no more than there is room for. All else costs the
 * link, and only that.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH		(64UL << 10)
#define MAX_BYTES	3000	/* longest message of the mailbox */
#define PLACES		40
#define QUARTER		(PLACES / 4)
#define SMALL_RECVS	(2 * KXFER_WIRE_DATA_SLOTS)	/* without room for eager messages */
#define WORD		0x0123456789abcdefULL
#define SLOT		3
#define AT_ONCE_MS	3000	/* less than the module waits for messages */
#define MISSING_MS	15000	/* more than that */

#define FEATURES	(KXFER_WIRE_FEATURE_EAGER | KXFER_WIRE_FEATURE_LONG)

FIXTURE(eager)
{
	struct kx_pair pair;	/* another link, to the same exporter */
	struct kx_live before;
	struct raw_link link;
	struct raw_lane second;	/* another data lane of the link */
	struct kxfer_job recv;
	uint64_t errors;
	uint64_t grant;
	uint32_t mailbox;
	uint32_t large;		/* a mailbox for more than a lane has credits */
	uint32_t nr_fetched;
	uint16_t port;
};

static int add_grant(FIXTURE_DATA(eager) *self, const char *name, uint64_t *grant)
{
	struct kxfer_wire_grant_answer answer;
	int ret = raw_grant_word(&self->link, name, 1234, KXFER_RIGHT_SEND, WORD, &answer);

	*grant = ret ? 0 : be64toh(answer.grant);
	return ret;
}

static int open_link(FIXTURE_DATA(eager) *self, uint32_t features)
{
	static const struct raw_manners two_lanes = { .nr_lanes = 2 };
	struct kxfer_wire_hello hello;
	int ret;

	memset(&self->link, 0, sizeof(self->link));
	self->link.features = features;
	ret = raw_link_connect_as(&self->link, self->port, NULL, 0, &two_lanes) ?:
	      raw_link_hello(&self->link) ?: raw_link_connect_data(&self->link);
	if (ret)
		return ret;
	hello = raw_hello_data(KXFER_WIRE_DATA, self->link.cookie, self->link.epoch);
	hello.lane = 2;
	ret = raw_lane_connect(&self->second, self->port, 0, &hello, sizeof(hello),
			       self->link.pd);
	return ret ?: add_grant(self, "raw-eager", &self->grant);
}

static void close_link(FIXTURE_DATA(eager) *self)
{
	raw_lane_close(&self->second);
	raw_link_close(&self->link);
}

FIXTURE_SETUP(eager)
{
	uint64_t listener;

	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->port = kx_own_port();
	test_cmd_listen_add(self->pair.server, kx_addr(kx_address(), self->port), 0,
			    &listener);
	test_cmd_mailbox_add(self->pair.server, "raw-eager", PLACES, MAX_BYTES,
			     &self->mailbox);
	test_cmd_mailbox_add(self->pair.server, "raw-large", KXFER_MAILBOX_MAX, MAX_BYTES,
			     &self->large);
	/* The first job maps the region of the other link. */
	test_cmd_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region, 0,
			  self->pair.target, 0, 4096);
	ASSERT_EQ(0, kx_live_take(self->pair.server, &self->before));
	ASSERT_EQ(0, open_link(self, FEATURES));
	self->recv = (struct kxfer_job) {
		.op = KXFER_OP_RECV, .region = self->pair.server_region,
		.target = self->mailbox, .length = 4096,
	};
	self->errors = kx_counter(self->pair.server, "protocol_errors");
}

FIXTURE_TEARDOWN(eager)
{
	const char *left;

	EXPECT_EQ(0, kx_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region,
				 0, self->pair.target, 0, 4096));
	close_link(self);
	left = kx_live_wait(self->pair.server, &self->before, KX_TIMEOUT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	kx_pair_close(&self->pair);
}

/* All lanes of the link are gone, and it was counted as the peer's fault. */
#define EXPECT_DROPPED(ms) ({							\
	EXPECT_TRUE(raw_dropped(&self->link.control, ms));			\
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));			\
	EXPECT_TRUE(raw_dropped(&self->second, RAW_MS));			\
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors")); \
})
#define EXPECT_ALIVE() ({							\
	EXPECT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_PING, NULL, 0, \
				 NULL, NULL));					\
	EXPECT_EQ(self->errors, kx_counter(self->pair.server, "protocol_errors")); \
})
/* Without eager messages there is nothing to misuse but CREDITS. */
static bool has_eager(void)
{
	return strcmp(kx_provider(), "siw");
}

/* Answers FETCHED. Return: whether the message was one. */
static bool take_fetched(FIXTURE_DATA(eager) *self, const void *message)
{
	struct kxfer_wire_header answer = *(const struct kxfer_wire_header *)message;

	if (answer.type != KXFER_WIRE_FETCHED)
		return false;
	answer.type |= KXFER_WIRE_ANSWER;
	answer.length = 0;
	raw_send(&self->link.data, &answer, sizeof(answer));
	self->nr_fetched++;
	return true;
}

/* Whether a message answers an OFFER that was not waited for. */
static bool is_left(const struct kxfer_wire_header *header, uint8_t wanted)
{
	return wanted != KXFER_WIRE_OFFER && !header->status &&
	       header->type == (KXFER_WIRE_OFFER | KXFER_WIRE_ANSWER);
}

/*
 * Sends a request on a data lane. FETCHED may come before its answer, and the answer to an OFFER
 * that was not waited for. Return: its status, or -errno.
 */
static int ask(FIXTURE_DATA(eager) *self, struct raw_lane *lane, uint8_t type,
	       const void *payload, uint32_t bytes, void *answer, uint32_t *answer_bytes)
{
	struct kxfer_wire_header request = raw_header(type, SLOT, bytes,
						      ++self->link.sequence);
	uint8_t message[RAW_BYTES];
	const struct kxfer_wire_header *header = (void *)message;
	int ret = raw_post_request(lane, request, payload, bytes);

	if (ret)
		return ret;
	do {
		ret = raw_receive(lane, message, RAW_MS);
		if (ret < 0)
			return ret;
	} while (take_fetched(self, message) || is_left(header, type));
	if (header->type != (type | KXFER_WIRE_ANSWER) || header->sequence != request.sequence)
		return -EPROTO;
	if (answer) {
		*answer_bytes = ret - sizeof(*header);
		memcpy(answer, header + 1, *answer_bytes);
	}
	return be16toh(header->status);
}

/* Return: credits, or -1 - status of a refusal, or -100 if there is no right answer. */
static int ask_credits(FIXTURE_DATA(eager) *self, struct raw_lane *lane, uint64_t grant)
{
	struct kxfer_wire_grant_id id = { .grant = htobe64(grant) };
	uint8_t bytes[RAW_BYTES] = "";
	const struct kxfer_wire_credits *answer = (void *)bytes;
	uint32_t length = 0;
	int ret = ask(self, lane, KXFER_WIRE_CREDITS, &id, sizeof(id), bytes, &length);

	if (ret < 0 || (!ret && (length != sizeof(*answer) || answer->reserved)))
		return -100;
	return ret ? -1 - ret : (int)be32toh(answer->credits);
}

/* Asks until the lane has grown. Return: the first credits, or -errno; @nr: requests before. */
static int grow(FIXTURE_DATA(eager) *self, struct raw_lane *lane, uint64_t grant,
		uint32_t *nr)
{
	int credits = 0;

	for (*nr = 0; *nr < 2 * SMALL_RECVS; ++*nr) {
		credits = ask_credits(self, lane, grant);
		if (credits)
			break;
	}
	return credits;
}

static int get_credits(FIXTURE_DATA(eager) *self)
{
	uint32_t nr;

	return grow(self, &self->link.data, self->grant, &nr);
}

/* Sends an eager message. Return: 0 or -errno; it may have arrived or not. */
static int push(struct raw_lane *lane, uint32_t grant, const void *bytes, uint32_t length)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(grant) };

	return raw_push_wr(lane, &wr, bytes, length);
}

static int push_one(FIXTURE_DATA(eager) *self)
{
	return push(&self->link.data, self->grant, "eager", 5);
}

/* Sends an answered message of @bytes bytes. Return: its status, or -errno. */
static int say(FIXTURE_DATA(eager) *self, uint64_t grant, uint32_t flags, const void *bytes,
	       uint32_t length)
{
	uint8_t payload[RAW_BYTES] = "";
	struct kxfer_wire_send *send = (void *)payload;

	send->grant = htobe64(grant);
	send->flags = htobe32(flags);
	memcpy(send + 1, bytes, length);
	return ask(self, &self->link.data, KXFER_WIRE_SEND, payload, sizeof(*send) + length,
		   NULL, NULL);
}

static struct kxfer_wire_offer make_offer(FIXTURE_DATA(eager) *self, uint32_t flags,
					  uint32_t id, uint32_t bytes)
{
	return (struct kxfer_wire_offer) {
		.grant = htobe64(self->grant),
		/* Far from what is sent and received meanwhile. */
		.address = htobe64((uintptr_t)raw_scratch(&self->link.data) + 2 * RAW_BYTES +
				   (RAW_PUSHES - 1) * RAW_PUSH_BYTES),
		.rkey = htobe32(self->link.data.mr->rkey),
		.bytes = htobe32(bytes),
		.flags = htobe32(flags),
		.id = htobe32(id),
	};
}

/*
 * Posts an OFFER with an eager message right behind it, at once: the message arrives before the
 * READ has begun. Does not wait for the answer to the OFFER.
 */
static int push_offer_and(FIXTURE_DATA(eager) *self, uint32_t id, uint32_t bytes,
			  const void *second, uint32_t second_bytes)
{
	uint8_t *memory = raw_scratch(&self->link.data) + RAW_BYTES;
	struct ibv_sge sge = {
		(uintptr_t)memory, second_bytes, self->link.data.mr->lkey,
	};
	struct ibv_send_wr next = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(self->grant),
	};
	struct ibv_send_wr wr = { .next = &next, .opcode = IBV_WR_SEND };
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_offer offer;
	} message = {
		.header = raw_header(KXFER_WIRE_OFFER, SLOT + 1, sizeof(message.offer),
				     ++self->link.sequence),
		.offer = make_offer(self, 0, id, bytes),
	};

	memcpy(memory, second, second_bytes);
	return raw_push_wr(&self->link.data, &wr, &message, sizeof(message));
}

static int send_offer(FIXTURE_DATA(eager) *self, uint32_t flags, uint32_t id, uint32_t bytes)
{
	struct kxfer_wire_offer offer = make_offer(self, flags, id, bytes);

	return ask(self, &self->link.data, KXFER_WIRE_OFFER, &offer, sizeof(offer), NULL, NULL);
}

static struct kxfer_wire_release release_of(uint64_t grant, uint32_t sent)
{
	return (struct kxfer_wire_release) {
		.grant = htobe64(grant), .sent = htobe32(sent),
	};
}

static int release(FIXTURE_DATA(eager) *self, uint64_t grant, uint32_t sent)
{
	struct kxfer_wire_release release = release_of(grant, sent);

	return raw_request(&self->link, &self->link.control, KXFER_WIRE_RELEASE, &release,
			   sizeof(release), NULL, NULL);
}

/* Sends RELEASE without waiting for its answer. */
static void post_release(FIXTURE_DATA(eager) *self, struct kxfer_wire_release release,
			 uint32_t bytes)
{
	uint8_t payload[64] = "";

	memcpy(payload, &release, sizeof(release));
	raw_post_request(&self->link.control,
			 raw_header(KXFER_WIRE_RELEASE, SLOT, bytes, ++self->link.sequence),
			 payload, bytes);
}

static uint64_t nr_stored(FIXTURE_DATA(eager) *self)
{
	return kx_counter(self->pair.server, "sends_stored");
}

#define EXPECT_STORED(nr) \
	EXPECT_TRUE(kx_wait_until(nr_stored(self) == (nr), KX_TIMEOUT_MS))

/* ---- credits ---- */

TEST_F(eager, CREDITS_on_iWARP_costs_the_link)
{
	if (strcmp(kx_provider(), "siw"))
		SKIP(return, "needs iWARP");
	EXPECT_EQ(-100, ask_credits(self, &self->link.data, self->grant));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, CREDITS_without_the_feature_costs_the_link)
{
	close_link(self);
	ASSERT_EQ(0, open_link(self, KXFER_WIRE_FEATURE_LONG));
	EXPECT_EQ(-100, ask_credits(self, &self->link.data, self->grant));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, CREDITS_on_control_costs_the_link)
{
	struct kxfer_wire_grant_id id = { .grant = htobe64(self->grant) };

	EXPECT_GT(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_CREDITS, &id,
				 sizeof(id), NULL, NULL));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, CREDITS_of_another_length_costs_the_link)
{
	uint8_t payload[16] = "";

	EXPECT_GT(0, ask(self, &self->link.data, KXFER_WIRE_CREDITS, payload, 16, NULL, NULL));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, CREDITS_for_no_mailbox_is_refused)
{
	static const uint64_t ids[] = { 0, 77, UINT32_MAX, 1ULL << 32, UINT64_MAX };
	struct kxfer_wire_grant_answer memory;
	size_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &memory));
	/* Also where there are credits to give. */
	ASSERT_LT(0, get_credits(self));
	for (i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		EXPECT_EQ(-1 - KXFER_WIRE_NO_ENTRY, ask_credits(self, &self->link.data, ids[i]));
	EXPECT_EQ(-1 - KXFER_WIRE_NO_ACCESS,
		  ask_credits(self, &self->link.data, be64toh(memory.grant)));
	EXPECT_ALIVE();
}

TEST_F(eager, credits_come_when_all_RECVs_have_room)
{
	uint32_t nr;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	EXPECT_EQ(QUARTER, grow(self, &self->link.data, self->grant, &nr));
	EXPECT_EQ(SMALL_RECVS, nr);
	/* The other lane has its own RECVs, and a grant has credits on one lane. */
	EXPECT_EQ(0, grow(self, &self->second, self->grant, &nr));
	EXPECT_ALIVE();
}

/* Each grant gets a part of what is left; all of them no more than there are RECVs. */
TEST_F(eager, credits_of_a_lane_are_no_more_than_its_RECVs)
{
	uint32_t nr, sum = 0, i;
	uint64_t grant;
	int credits;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, add_grant(self, "raw-large", &grant));
		credits = i ? ask_credits(self, &self->link.data, grant) :
			      grow(self, &self->link.data, grant, &nr);
		ASSERT_LE(0, credits);
		sum += credits;
		if (i < 2)
			EXPECT_LT(0, credits);
		/* No more for the same grant than for a new one. */
		credits = ask_credits(self, &self->link.data, grant);
		ASSERT_LE(0, credits);
		sum += credits;
	}
	EXPECT_LE(KXFER_WIRE_EAGER / 2, sum);
	EXPECT_GE(KXFER_WIRE_EAGER, sum);
	EXPECT_ALIVE();
}

/* A grant that ends gives its credits back, so that all are there for the next. */
TEST_F(eager, credits_of_a_grant_that_ends_are_given_again)
{
	uint64_t grant;
	uint32_t nr, i;
	int first;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(0, add_grant(self, "raw-large", &grant));
	first = grow(self, &self->link.data, grant, &nr);
	ASSERT_LT(0, first);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(KXFER_WIRE_OK, release(self, grant, 0));
		ASSERT_EQ(0, add_grant(self, "raw-large", &grant));
		ASSERT_EQ(first, ask_credits(self, &self->link.data, grant));
	}
	EXPECT_ALIVE();
}

TEST_F(eager, credits_are_for_a_quarter_of_the_free_places)
{
	uint64_t other;
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(0, add_grant(self, "raw-eager", &other));
	EXPECT_EQ(QUARTER, get_credits(self));
	EXPECT_EQ((PLACES - QUARTER) / 4, ask_credits(self, &self->link.data, other));
	/* Places for answered messages under way stay free: of 17 that are left one, of 16 none. */
	for (i = QUARTER + (PLACES - QUARTER) / 4; i < PLACES - KXFER_WIRE_DATA_SLOTS - 1; i++)
		ASSERT_EQ(KXFER_WIRE_OK, say(self, self->grant, 0, "", 1));
	EXPECT_EQ(1, ask_credits(self, &self->link.data, other));
	EXPECT_EQ(0, ask_credits(self, &self->link.data, other));
	EXPECT_ALIVE();
}

/* ---- promised places ---- */

/* Return: answered messages of a grant that are stored before the mailbox is full. */
static uint32_t fill(FIXTURE_DATA(eager) *self, uint64_t grant)
{
	uint32_t nr = 0;

	while (nr <= PLACES && say(self, grant, 0, "", 1) == KXFER_WIRE_OK)
		nr++;
	return nr;
}

TEST_F(eager, places_are_kept_for_those_with_credits)
{
	uint64_t other, before = nr_stored(self);
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(0, add_grant(self, "raw-eager", &other));
	ASSERT_EQ(QUARTER, get_credits(self));
	EXPECT_EQ(PLACES - QUARTER, fill(self, other));
	EXPECT_EQ(KXFER_WIRE_BUSY, say(self, self->grant, 0, "", 1));
	for (i = 0; i < QUARTER - 2; i++)
		ASSERT_EQ(0, push_one(self));
	/* An answered message takes a credit too. */
	EXPECT_EQ(KXFER_WIRE_OK, say(self, self->grant, KXFER_WIRE_SEND_CREDIT, "", 1));
	EXPECT_EQ(KXFER_WIRE_OK, send_offer(self, KXFER_WIRE_SEND_CREDIT, 0, 1500));
	EXPECT_STORED(before + PLACES);
	EXPECT_ALIVE();
}

TEST_F(eager, RELEASE_gives_promised_places_back)
{
	uint64_t other;
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(0, add_grant(self, "raw-eager", &other));
	ASSERT_EQ(QUARTER, get_credits(self));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, push_one(self));
	ASSERT_EQ(KXFER_WIRE_OK, say(self, self->grant, KXFER_WIRE_SEND_CREDIT, "", 1));
	EXPECT_EQ(PLACES - QUARTER, fill(self, other));
	EXPECT_EQ(KXFER_WIRE_OK, release(self, self->grant, 4));
	EXPECT_EQ(QUARTER - 4, fill(self, other));
	EXPECT_ALIVE();
}

/* So does the end of a link; the other sender is on another link. */
TEST_F(eager, promised_places_of_a_link_that_ends_are_free)
{
	uint32_t target, i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(QUARTER, get_credits(self));
	ASSERT_EQ(0, push_one(self));
	close_link(self);
	ASSERT_EQ(0, open_link(self, FEATURES));
	test_cmd_target_open(self->pair.client, self->pair.peer, "raw-eager", 0, &target);
	for (i = 1; i < PLACES; i++)
		ASSERT_TRUE(kx_wait_until(!kx_send(self->pair.client, 0, 0, 0, target),
					  KX_TIMEOUT_MS));
	test_err_send(EAGAIN, self->pair.client, 0, 0, 0, target);
	test_cmd_target_close(self->pair.client, target);
}

/* ---- messages ---- */

/* Takes the next message of the mailbox, with a payload of @length bytes. */
static void expect_next(struct __test_metadata *_metadata, FIXTURE_DATA(eager) *self,
			uint8_t first, uint32_t length, bool waits)
{
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	struct kxfer_completion done = { .status = -EPROTO };

	if (!waits)
		test_cmd_submit(1, self->pair.server, &self->recv, 1);
	test_cmd_reap(1, self->pair.server, &done, 1, 1, KX_TIMEOUT_MS);
	message = (void *)(self->pair.server_memory + done.user_data);
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(sizeof(*message) + length, done.bytes);
	EXPECT_EQ(length, message->bytes);
	EXPECT_EQ(1234, message->uid);
	EXPECT_EQ(1234, message->gid);
	EXPECT_EQ(WORD, message->word);
	EXPECT_EQ(0, message->flags);
	EXPECT_EQ(0, message->immediate);
	if (length)
		EXPECT_EQ(first, *(const uint8_t *)(message + 1));
}

TEST_F(eager, message_arrives_as_it_was_sent)
{
	uint8_t bytes[MAX_BYTES];
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(3, get_credits(self));
	for (i = 0; i < MAX_BYTES; i++)
		bytes[i] = i * 7 + i / 256;
	ASSERT_EQ(0, push(&self->link.data, self->grant, bytes, 1));
	ASSERT_EQ(0, push(&self->link.data, self->grant, bytes + 1, MAX_BYTES - 1));
	ASSERT_EQ(0, push(&self->link.data, self->grant, bytes, MAX_BYTES));
	expect_next(_metadata, self, bytes[0], 1, false);
	expect_next(_metadata, self, bytes[1], MAX_BYTES - 1, false);
	expect_next(_metadata, self, bytes[0], MAX_BYTES, false);
	EXPECT_EQ(0, memcmp(self->pair.server_memory + sizeof(struct kxfer_message), bytes,
			    MAX_BYTES));
	EXPECT_ALIVE();
}

/* Lengths of what send_mixture() sends: answered, eager, offered, eager, answered, eager. */
static const uint32_t mixture[] = { 10, 11, 1500, 13, 14, 15 };

#define NR_MIXED	(sizeof(mixture) / sizeof(*mixture))

static int send_mixture(FIXTURE_DATA(eager) *self)
{
	uint8_t bytes[64];
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < NR_MIXED; i++) {
		memset(bytes, 0x40 + i, sizeof(bytes));
		if (i == 2)
			continue;
		if (i == 3)
			ret = push_offer_and(self, 5, mixture[2], bytes, mixture[3]);
		else if (i % 2)
			ret = push(&self->link.data, self->grant, bytes, mixture[i]);
		else
			ret = say(self, self->grant, 0, bytes, mixture[i]);
	}
	return ret;
}

/* Serves the lane until FETCHED has come. */
static bool wait_fetched(FIXTURE_DATA(eager) *self)
{
	uint8_t message[RAW_BYTES];

	while (!self->nr_fetched) {
		if (raw_receive(&self->link.data, message, RAW_MS) < 0)
			return false;
		take_fetched(self, message);
	}
	self->nr_fetched = 0;
	return true;
}

static uint8_t first_byte(uint32_t i)
{
	return i == 2 ? 0 : 0x40 + i;
}

TEST_F(eager, messages_keep_their_order_among_others)
{
	uint32_t i, round;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LE(3 * 3, get_credits(self));
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, send_mixture(self));
		for (i = 0; i < NR_MIXED; i++)
			expect_next(_metadata, self, first_byte(i), mixture[i], false);
		ASSERT_TRUE(wait_fetched(self));
	}
	EXPECT_ALIVE();
}

TEST_F(eager, messages_keep_their_order_into_waiting_recvs)
{
	uint32_t i, round;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LE(3 * 3, get_credits(self));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < NR_MIXED; i++) {
			self->recv.region_offset = i * 4096;
			self->recv.user_data = i * 4096;
			test_cmd_submit(1, self->pair.server, &self->recv, 1);
		}
		ASSERT_EQ(0, send_mixture(self));
		for (i = 0; i < NR_MIXED; i++)
			expect_next(_metadata, self, first_byte(i), mixture[i], true);
		ASSERT_TRUE(wait_fetched(self));
	}
	EXPECT_ALIVE();
}

/* ---- messages that break the protocol ---- */

#define EXPECT_NOTHING_STORED(before) EXPECT_EQ(before, nr_stored(self))

TEST_F(eager, message_on_a_lane_that_has_not_grown_costs_the_link)
{
	uint64_t before = nr_stored(self);

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	push_one(self);
	EXPECT_DROPPED(RAW_MS);
	EXPECT_NOTHING_STORED(before);
}

TEST_F(eager, message_without_the_feature_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	close_link(self);
	ASSERT_EQ(0, open_link(self, KXFER_WIRE_FEATURE_LONG));
	push_one(self);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_on_control_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	push(&self->link.control, self->grant, "eager", 5);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_behind_the_last_credit_costs_the_link)
{
	uint64_t before = nr_stored(self);
	int credits, i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	credits = get_credits(self);
	ASSERT_EQ(QUARTER, credits);
	for (i = 0; i < credits; i++)
		ASSERT_EQ(0, push_one(self));
	EXPECT_STORED(before + credits);
	EXPECT_ALIVE();
	push_one(self);
	EXPECT_DROPPED(RAW_MS);
	EXPECT_NOTHING_STORED(before + credits);
}

TEST_F(eager, message_of_an_unknown_grant_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	push(&self->link.data, UINT32_MAX, "eager", 5);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_of_grant_0_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	push(&self->link.data, 0, "eager", 5);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_of_a_grant_of_memory_costs_the_link)
{
	struct kxfer_wire_grant_answer memory;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &memory));
	push(&self->link.data, be64toh(memory.grant), "eager", 5);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_with_a_credit_of_another_grant_costs_the_link)
{
	uint64_t other;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	ASSERT_EQ(0, add_grant(self, "raw-eager", &other));
	push(&self->link.data, other, "eager", 5);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_after_RELEASE_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	ASSERT_EQ(KXFER_WIRE_OK, release(self, self->grant, 0));
	push_one(self);
	EXPECT_DROPPED(RAW_MS);
}

/* The other lane has grown too, and has credits of another grant. */
TEST_F(eager, message_on_another_lane_than_its_credits_costs_the_link)
{
	uint64_t other;
	uint32_t nr;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(QUARTER, get_credits(self));
	ASSERT_EQ(0, add_grant(self, "raw-eager", &other));
	ASSERT_LT(0, grow(self, &self->second, other, &nr));
	EXPECT_EQ(0, ask_credits(self, &self->second, self->grant));
	/* Those of the first lane are still there. */
	ASSERT_EQ(0, push_one(self));
	ASSERT_EQ(0, push(&self->second, other, "eager", 5));
	EXPECT_ALIVE();
	push(&self->second, self->grant, "eager", 5);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, message_longer_than_its_mailbox_takes_costs_the_link)
{
	uint8_t bytes[MAX_BYTES + 1] = "";
	uint64_t before = nr_stored(self);

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	push(&self->link.data, self->grant, bytes, sizeof(bytes));
	EXPECT_DROPPED(RAW_MS);
	EXPECT_NOTHING_STORED(before);
}

/* It does not fit into any RECV: the device tells, and the peer's too. */
TEST_F(eager, message_longer_than_any_costs_the_link)
{
	uint8_t bytes[KXFER_MESSAGE_EAGER_MAX + 1] = "";
	uint32_t mailbox, nr;
	uint64_t grant;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	test_cmd_mailbox_add(self->pair.server, "raw-long", 40, KXFER_MESSAGE_LONG_MAX,
			     &mailbox);
	ASSERT_EQ(0, add_grant(self, "raw-long", &grant));
	ASSERT_LT(1, grow(self, &self->link.data, grant, &nr));
	ASSERT_EQ(0, push(&self->link.data, grant, bytes, KXFER_MESSAGE_EAGER_MAX));
	EXPECT_ALIVE();
	push(&self->link.data, grant, bytes, sizeof(bytes));
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));
	EXPECT_TRUE(raw_dropped(&self->link.control, RAW_MS));
	test_cmd_recv(self->pair.server, mailbox, self->pair.server_region, 0, 8192);
	test_cmd_export_del(self->pair.server, mailbox);
}

TEST_F(eager, SEND_with_a_credit_it_does_not_have_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	EXPECT_GT(0, say(self, self->grant, KXFER_WIRE_SEND_CREDIT, "", 1));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, SEND_with_a_credit_of_an_unknown_grant_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(0, get_credits(self));
	EXPECT_GT(0, say(self, 77, KXFER_WIRE_SEND_CREDIT, "", 1));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, OFFER_with_a_credit_it_does_not_have_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	EXPECT_GT(0, send_offer(self, KXFER_WIRE_SEND_CREDIT, 0, 1500));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, SEND_or_OFFER_with_unknown_flags_takes_no_message)
{
	uint64_t before = nr_stored(self);

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	EXPECT_EQ(KXFER_WIRE_INVALID, say(self, self->grant, 4, "", 1));
	EXPECT_EQ(KXFER_WIRE_INVALID,
		  say(self, self->grant, 4 | KXFER_WIRE_SEND_CREDIT, "", 1));
	EXPECT_ALIVE();
	EXPECT_GT(0, send_offer(self, 4, 0, 1500));
	EXPECT_DROPPED(RAW_MS);
	EXPECT_NOTHING_STORED(before);
}

static void *withdraw(void *argument)
{
	FIXTURE_DATA(eager) *self = argument;

	kx_export_del(self->pair.server, self->mailbox);
	return NULL;
}

/* A mailbox that is withdrawn drops what was on its way to it. */
TEST_F(eager, message_for_a_withdrawn_mailbox_is_dropped)
{
	uint64_t before = nr_stored(self);
	pthread_t owner;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_LT(1, get_credits(self));
	/* The withdrawal waits for the answer to REVOKE. */
	ASSERT_EQ(0, pthread_create(&owner, NULL, withdraw, self));
	raw_serve(&self->link, 500);
	EXPECT_EQ(0, pthread_join(owner, NULL));
	EXPECT_EQ(1, self->link.nr_revokes);
	ASSERT_EQ(0, push_one(self));
	EXPECT_EQ(KXFER_WIRE_REVOKED, say(self, self->grant, KXFER_WIRE_SEND_CREDIT, "", 1));
	EXPECT_EQ(KXFER_WIRE_REVOKED, say(self, self->grant, 0, "", 1));
	EXPECT_EQ(0, ask_credits(self, &self->link.data, self->grant));
	EXPECT_EQ(KXFER_WIRE_OK, release(self, self->grant, 2));
	EXPECT_NOTHING_STORED(before);
	EXPECT_ALIVE();
}

/* ---- RELEASE ---- */

TEST_F(eager, RELEASE_of_another_length_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	post_release(self, release_of(self->grant, 0), sizeof(struct kxfer_wire_grant_id));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, RELEASE_longer_than_any_costs_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	post_release(self, release_of(self->grant, 0), sizeof(struct kxfer_wire_release) + 8);
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, RELEASE_with_a_count_on_a_link_without_the_feature_costs_the_link)
{
	close_link(self);
	ASSERT_EQ(0, open_link(self, KXFER_WIRE_FEATURE_LONG));
	post_release(self, release_of(self->grant, 0), sizeof(struct kxfer_wire_release));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, RELEASE_with_a_reserved_field_costs_the_link)
{
	struct kxfer_wire_release release = release_of(self->grant, 0);

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	release.reserved = htobe32(1);
	post_release(self, release, sizeof(release));
	EXPECT_DROPPED(RAW_MS);
}

TEST_F(eager, RELEASE_of_more_than_was_given_costs_the_link_at_once)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(QUARTER, get_credits(self));
	post_release(self, release_of(self->grant, QUARTER + 1),
		     sizeof(struct kxfer_wire_release));
	EXPECT_DROPPED(AT_ONCE_MS);
}

TEST_F(eager, RELEASE_of_fewer_than_came_costs_the_link_at_once)
{
	uint64_t before = nr_stored(self);

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(QUARTER, get_credits(self));
	ASSERT_EQ(0, push_one(self));
	ASSERT_EQ(0, push_one(self));
	EXPECT_STORED(before + 2);
	post_release(self, release_of(self->grant, 1), sizeof(struct kxfer_wire_release));
	EXPECT_DROPPED(AT_ONCE_MS);
}

TEST_F(eager, RELEASE_of_messages_that_never_come_costs_the_link_in_time)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(QUARTER, get_credits(self));
	post_release(self, release_of(self->grant, QUARTER), sizeof(struct kxfer_wire_release));
	EXPECT_DROPPED(MISSING_MS);
}

/* As if the completion of their lane was handled late. */
TEST_F(eager, RELEASE_waits_for_messages)
{
	uint64_t before = nr_stored(self);
	struct kxfer_wire_header request;
	struct kxfer_wire_release release = release_of(self->grant, 3);
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	ASSERT_EQ(QUARTER, get_credits(self));
	request = raw_header(KXFER_WIRE_RELEASE, SLOT, sizeof(release), ++self->link.sequence);
	ASSERT_EQ(0, raw_post_request(&self->link.control, request, &release,
				      sizeof(release)));
	kx_sleep_ms(300);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, push_one(self));
	EXPECT_EQ(KXFER_WIRE_OK, raw_await_answer(&self->link, &self->link.control, &request,
						  NULL, NULL));
	EXPECT_NOTHING_STORED(before + 3);
	EXPECT_ALIVE();
}

/* ---- a receiver that lies ---- */

#define LINK_MS		20000	/* 8 s, checked every 2 s */
#define SHORT_BYTES	10	/* shorter than a header: the raw server ignores it */
#define NR_SENDS	70

/**
 * struct giver - what a raw server says to CREDITS
 * @credits: credits of each answer
 * @bytes: length of each answer; 0: that of a right one
 * @reserved: a field that must be 0
 * @mute: CREDITS is not answered
 */
struct giver {
	uint32_t credits[2];
	uint16_t bytes;
	uint32_t reserved;
	bool mute;
};

FIXTURE(receiver)
{
	struct raw_server server;
	struct giver giver;
	atomic_uint nr_credits;		/* CREDITS */
	atomic_uint nr_sends;		/* SENDs that are answered */
	atomic_uint nr_arrived;		/* eager messages that look like an answer */
	atomic_uint arrived_before[2];	/* of these, before the first and the last CREDITS */
	uint8_t *memory;
	uint64_t errors;
	uint64_t eager;
	int fd;
	uint32_t region;
	uint32_t peer;
	uint32_t target;
};

static int answer(struct raw_server *server, const struct kxfer_wire_header *request,
		  const void *payload, void *bytes, uint16_t *length)
{
	FIXTURE_DATA(receiver) *self = server->context;
	struct kxfer_wire_grant_answer *grant = bytes;
	struct kxfer_wire_credits *credits = bytes;
	int status = raw_default_answer(server, request, bytes, length);

	if (request->type == KXFER_WIRE_GRANT) {
		grant->length = htobe64(100);
		grant->rights = htobe32(KXFER_RIGHT_SEND);
		grant->nr_keys = 0;
	} else if (request->type == KXFER_WIRE_SEND) {
		self->nr_sends++;
	} else if (request->type == KXFER_WIRE_CREDITS) {
		credits->credits = htobe32(self->giver.credits[self->nr_credits++ > 0]);
		credits->reserved = htobe32(self->giver.reserved);
		*length = self->giver.bytes ?: sizeof(*credits);
		return self->giver.mute ? -1 : KXFER_WIRE_OK;
	}
	return status;
}

FIXTURE_SETUP(receiver)
{
	uint16_t port = kx_own_port();

	self->memory = kx_alloc(4096);
	raw_server_init(&self->server);
	self->server.answer = answer;
	self->server.context = self;
	self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_EAGER);
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_region_add(self->fd, self->memory, 4096, 0, &self->region);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &self->peer);
	test_cmd_target_open(self->fd, self->peer, "mailbox", KXFER_RIGHT_SEND, &self->target);
	self->errors = kx_counter(self->fd, "protocol_errors");
	self->eager = kx_counter(self->fd, "sends_eager");
}

FIXTURE_TEARDOWN(receiver)
{
	close(self->fd);
	raw_server_stop(&self->server);
}

static uint64_t nr_eager(FIXTURE_DATA(receiver) *self)
{
	return kx_counter(self->fd, "sends_eager") - self->eager;
}

static int send_short(FIXTURE_DATA(receiver) *self)
{
	return kx_send(self->fd, self->region, 0, SHORT_BYTES, self->target);
}

#define EXPECT_LOST() ({							\
	EXPECT_TRUE(kx_wait_until(send_short(self) == -ECONNRESET, LINK_MS));	\
	EXPECT_EQ(self->errors + 1, kx_counter(self->fd, "protocol_errors"));	\
})

TEST_F(receiver, whose_credits_make_sense_is_believed)
{
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = KXFER_WIRE_EAGER;
	self->giver.credits[1] = KXFER_WIRE_EAGER / 2;
	for (i = 0; i < NR_SENDS; i++)
		ASSERT_EQ(0, send_short(self));
	EXPECT_GE(3, self->nr_sends);
	EXPECT_EQ(NR_SENDS, self->nr_sends + nr_eager(self));
	EXPECT_EQ(self->errors, kx_counter(self->fd, "protocol_errors"));
}

TEST_F(receiver, that_gives_more_than_a_lane_may_have_loses_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = KXFER_WIRE_EAGER + 1;
	EXPECT_LOST();
	EXPECT_EQ(0, nr_eager(self));
}

/* Of the first credits some are left when it gives more. */
TEST_F(receiver, that_gives_more_than_a_lane_may_have_in_all_loses_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = KXFER_WIRE_EAGER;
	self->giver.credits[1] = KXFER_WIRE_EAGER;
	EXPECT_LOST();
	EXPECT_GE(KXFER_WIRE_EAGER, nr_eager(self));
	EXPECT_EQ(2, self->nr_credits);
}

TEST_F(receiver, whose_credits_are_short_loses_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = 1;
	self->giver.bytes = sizeof(__be32);
	EXPECT_LOST();
}

TEST_F(receiver, whose_credits_are_long_loses_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = 1;
	self->giver.bytes = sizeof(struct kxfer_wire_credits) + 8;
	EXPECT_LOST();
}

TEST_F(receiver, whose_credits_have_a_reserved_field_loses_the_link)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = 1;
	self->giver.reserved = 1;
	EXPECT_LOST();
}

#define NR_FEW	4	/* credits so few that the next are asked for when the last is used */

/* Bytes that the raw server takes for an answer that it does not want. */
static void fill_for_no_answer(void *bytes, uint32_t length)
{
	memset(bytes, 0xff, length);
}

static bool count_eager(struct raw_server *server, struct raw_lane *lane,
			const struct kxfer_wire_header *message, uint32_t length)
{
	FIXTURE_DATA(receiver) *self = server->context;

	(void)lane;
	(void)length;
	if (message->type == 0xff)
		self->nr_arrived++;
	else if (message->type == KXFER_WIRE_CREDITS)
		self->arrived_before[self->nr_credits > 0] = self->nr_arrived;
	return false;
}

/* So the answer to CREDITS says that the messages of the same call were handled. */
TEST_F(receiver, is_asked_for_more_behind_the_messages_before)
{
	struct kxfer_completion done[NR_FEW + 1];
	struct kxfer_job jobs[NR_FEW + 1];
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.credits[0] = NR_FEW;
	self->giver.credits[1] = NR_FEW;
	ASSERT_EQ(0, send_short(self));
	ASSERT_TRUE(kx_wait_until(self->nr_credits == 1, KX_TIMEOUT_MS));
	fill_for_no_answer(self->memory, sizeof(struct kxfer_wire_header));
	for (i = 0; i < NR_FEW + 1; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_SEND,
			.region = self->region,
			.target = self->target,
			.length = sizeof(struct kxfer_wire_header),
		};
	self->server.intercept = count_eager;
	/* The first message of a call waits for credits that are on their way. */
	ASSERT_TRUE(kx_wait_until(send_short(self) == 0 && nr_eager(self), KX_TIMEOUT_MS));
	self->nr_arrived = 0;
	test_cmd_submit(NR_FEW + 1, self->fd, jobs, NR_FEW + 1);
	test_cmd_reap(NR_FEW + 1, self->fd, done, NR_FEW + 1, NR_FEW + 1, KX_TIMEOUT_MS);
	for (i = 0; i < NR_FEW + 1; i++)
		EXPECT_EQ(0, done[i].status);
	EXPECT_TRUE(kx_wait_until(self->nr_credits >= 2, KX_TIMEOUT_MS));
	/* One credit was used before. */
	EXPECT_EQ(NR_FEW - 1, self->arrived_before[1]);
}

/* Meanwhile messages are answered. */
TEST_F_TIMEOUT(receiver, that_does_not_answer_CREDITS_loses_the_link, 60)
{
	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	self->giver.mute = true;
	EXPECT_EQ(0, send_short(self));
	EXPECT_TRUE(kx_wait_until(send_short(self) == -ECONNRESET, LINK_MS));
	EXPECT_EQ(0, nr_eager(self));
	EXPECT_EQ(1, self->nr_credits);
	EXPECT_LT(0, self->nr_sends);
}

TEST_F(receiver, that_gives_no_credits_gets_messages_to_answer)
{
	uint32_t i;

	if (!has_eager())
		SKIP(return, "iWARP has no eager messages");
	for (i = 0; i < NR_SENDS; i++)
		ASSERT_EQ(0, send_short(self));
	EXPECT_EQ(NR_SENDS, self->nr_sends);
	EXPECT_EQ(0, nr_eager(self));
	/* It is asked again, but not before every message. */
	EXPECT_LT(1, self->nr_credits);
	EXPECT_GT(NR_SENDS / 10, self->nr_credits);
}

TEST_HARNESS_MAIN
