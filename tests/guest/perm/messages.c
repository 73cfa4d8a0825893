// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that break the protocol: each costs the sender its link, or is answered with an
 * error; none disturbs another link or harms the node.
 */
#include <endian.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH	(64UL << 10)
#define SLOT	3

FIXTURE(message)
{
	struct kx_pair pair;	/* another link, to the same exporter */
	uint16_t port;
	struct raw_link link;
	struct kxfer_wire_header header;
	uint8_t payload[RAW_BYTES];
	uint64_t errors;
};

FIXTURE_SETUP(message)
{
	uint64_t listener;

	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->port = kx_own_port();
	test_cmd_listen_add(self->pair.server, kx_addr(kx_address(), self->port), 0,
			    &listener);
	ASSERT_EQ(0, raw_link_open(&self->link, self->port));
	self->header = raw_header(KXFER_WIRE_PING, SLOT, 0, 1000);
	self->errors = kx_counter(self->pair.server, "protocol_errors");
}

FIXTURE_TEARDOWN(message)
{
	EXPECT_EQ(0, kx_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region,
				 0, self->pair.target, 0, 4096));
	raw_link_close(&self->link);
	kx_pair_close(&self->pair);
}

/* Both lanes of the link are gone, and it was counted as the peer's fault. */
#define EXPECT_DROPPED() ({							\
	EXPECT_TRUE(raw_dropped(&self->link.control, RAW_MS));			\
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));			\
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors")); \
})
#define EXPECT_ALIVE() \
	EXPECT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_PING, NULL, 0, \
				 NULL, NULL))
/* The completion may be lost together with the link. */
#define POST(lane, bytes) \
	raw_post_request(&self->link.lane, self->header, self->payload, bytes)

TEST_F(message, of_the_protocol_is_answered)
{
	EXPECT_ALIVE();
	EXPECT_EQ(self->errors, kx_counter(self->pair.server, "protocol_errors"));
}

/* ---- headers ---- */

TEST_F(message, of_type_0_costs_the_link)
{
	self->header.type = 0;
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, of_unknown_type_costs_the_link)
{
	self->header.type = KXFER_WIRE_RESUME + 1;
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, of_the_highest_type_costs_the_link)
{
	self->header.type = 0x7f;
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, shorter_than_a_header_costs_the_link)
{
	raw_send(&self->link.control, &self->header, sizeof(self->header) - 1);
	EXPECT_DROPPED();
}

TEST_F(message, of_one_byte_costs_the_link)
{
	raw_send(&self->link.control, &self->header, 1);
	EXPECT_DROPPED();
}

TEST_F(message, shorter_than_it_says_costs_the_link)
{
	self->header.length = htobe16(8);
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, longer_than_it_says_costs_the_link)
{
	POST(control, 8);
	EXPECT_DROPPED();
}

TEST_F(message, of_the_greatest_length_it_can_say_costs_the_link)
{
	self->header.length = htobe16(UINT16_MAX);
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, longer_than_the_room_costs_the_link)
{
	uint8_t bytes[RAW_BYTES] = "";

	self->header.length = htobe16(sizeof(bytes) - sizeof(self->header));
	memcpy(bytes, &self->header, sizeof(self->header));
	/* A data lane takes fewer bytes; the sender may get an error. */
	raw_send(&self->link.data, bytes, KXFER_WIRE_DATA_BYTES + 1);
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));
	EXPECT_TRUE(raw_dropped(&self->link.control, RAW_MS));
}

/* An RDMA request that ends a RECV here; siw has none. */
static void expect_not_a_message(struct __test_metadata *_metadata,
				 FIXTURE_DATA(message) *self, enum ibv_wr_opcode opcode)
{
	uint64_t malformed = kx_counter(self->pair.server, "messages_malformed");
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;
	struct ibv_send_wr wr = { .opcode = opcode };

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "needs immediate data");
	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &grant));
	ASSERT_EQ(1, raw_keys(&self->link, be64toh(grant.exposure), &key, 1));
	/* It has the length of a message, so that only the operation is wrong. */
	wr.wr.rdma.remote_addr = be64toh(key.addr);
	wr.wr.rdma.rkey = be32toh(key.rkey);
	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = be32toh(key.rkey);
	ASSERT_EQ(0, raw_push_wr(&self->link.control, &wr, &self->header,
				 sizeof(self->header)));
	EXPECT_DROPPED();
	EXPECT_EQ(malformed + 1, kx_counter(self->pair.server, "messages_malformed"));
}

TEST_F(message, with_immediate_data_costs_the_link)
{
	expect_not_a_message(_metadata, self, IBV_WR_SEND_WITH_IMM);
}

TEST_F(message, that_is_a_WRITE_with_immediate_data_costs_the_link)
{
	expect_not_a_message(_metadata, self, IBV_WR_RDMA_WRITE_WITH_IMM);
}

TEST_F(message, that_invalidates_a_key_costs_the_link)
{
	expect_not_a_message(_metadata, self, IBV_WR_SEND_WITH_INV);
}

TEST_F(message, for_a_slot_out_of_range_costs_the_link)
{
	self->header.slot = KXFER_WIRE_CONTROL_SLOTS;
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, for_a_data_slot_out_of_range_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_NOTIFY, KXFER_WIRE_DATA_SLOTS,
				  sizeof(struct kxfer_wire_notify), 1);
	POST(data, sizeof(struct kxfer_wire_notify));
	EXPECT_DROPPED();
}

TEST_F(message, with_a_reserved_field_costs_the_link)
{
	self->header.reserved = htobe16(1);
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, that_is_a_request_with_a_status_costs_the_link)
{
	self->header.status = htobe16(KXFER_WIRE_BUSY);
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, of_a_payload_of_another_size_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_GRANT, SLOT, sizeof(struct kxfer_wire_grant) - 8,
				  1);
	POST(control, sizeof(struct kxfer_wire_grant) - 8);
	EXPECT_DROPPED();
}

TEST_F(message, of_a_longer_payload_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_GRANT, SLOT, sizeof(struct kxfer_wire_grant) + 8,
				  1);
	POST(control, sizeof(struct kxfer_wire_grant) + 8);
	EXPECT_DROPPED();
}

/* ---- slots and order ---- */

#define BIG	(64UL << 20)

/* Publishes an export whose registration takes a while. */
static int publish_big(int fd)
{
	void *memory = kx_alloc(BIG);
	uint32_t region, export_id;
	int ret = memory ? kx_region_add(fd, memory, BIG, 0, &region) : -ENOMEM;

	if (ret)
		return ret;
	return kx_export_add(fd, region, 0, BIG, KXFER_RIGHT_READ, "big", &export_id);
}

struct grant_message {
	struct kxfer_wire_header header;
	struct kxfer_wire_grant grant;
};

static struct grant_message ask_for_grant(const char *name, uint64_t sequence)
{
	struct grant_message message = {
		.header = raw_header(KXFER_WIRE_GRANT, SLOT, sizeof(message.grant), sequence),
	};

	memcpy(message.grant.name, name, strlen(name));
	return message;
}

/*
 * siw sends in this process's system call. On one CPU it would yield to the receiving side
 * after each message, so that the second would arrive after the first was answered.
 */
static int send_without_break(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO ? 1 : 0 };

	return sched_setscheduler(0, policy, &param);
}

#define BUSY_TRIES	3

/*
 * Sends a GRANT that takes a while, and another message in its slot. On one CPU the GRANT may
 * be answered before the second message is seen, whose slot is then not busy. Return: whether
 * this cost the link, within some tries.
 */
static bool busy_slot_is_dropped(FIXTURE_DATA(message) *self, void *second, uint32_t bytes)
{
	struct grant_message first = ask_for_grant("big", 1);
	int tries;

	for (tries = 0; tries < BUSY_TRIES; tries++) {
		if (tries) {
			raw_link_close(&self->link);
			if (raw_link_open(&self->link, self->port))
				return false;
		}
		if (send_without_break(SCHED_FIFO))
			return false;
		raw_send_two(&self->link.control, &first, sizeof(first), second, bytes);
		if (send_without_break(SCHED_OTHER))
			return false;
		if (raw_dropped(&self->link.control, RAW_MS))
			return true;
	}
	return false;
}

TEST_F_TIMEOUT(message, in_a_busy_slot_costs_the_link, 60)
{
	struct grant_message second = ask_for_grant("big", 2);

	ASSERT_EQ(0, publish_big(self->pair.server));
	EXPECT_TRUE(busy_slot_is_dropped(self, &second, sizeof(second)));
	EXPECT_DROPPED();
}

TEST_F_TIMEOUT(message, of_another_type_in_a_busy_slot_costs_the_link, 60)
{
	ASSERT_EQ(0, publish_big(self->pair.server));
	EXPECT_TRUE(busy_slot_is_dropped(self, &self->header, sizeof(self->header)));
	EXPECT_DROPPED();
}

/*
 * Takes an answer; a PING of the module may come first. Return: type of the answer without
 * error, else -1.
 */
static int take_answer(struct raw_lane *lane)
{
	uint8_t message[RAW_BYTES];
	const struct kxfer_wire_header *header = (void *)message;

	do {
		if (raw_receive(lane, message, RAW_MS) < (int)sizeof(*header) ||
		    header->status)
			return -1;
	} while (header->type == KXFER_WIRE_PING);
	return header->type;
}

TEST_F(message, in_another_slot_meanwhile_is_answered)
{
	struct grant_message grant = ask_for_grant("big", 1);
	int first, second;

	ASSERT_EQ(0, publish_big(self->pair.server));
	self->header.slot = SLOT + 1;
	ASSERT_EQ(0, raw_send_two(&self->link.control, &grant, sizeof(grant), &self->header,
				  sizeof(self->header)));
	first = take_answer(&self->link.control);
	second = take_answer(&self->link.control);
	EXPECT_EQ(KXFER_WIRE_ANSWER | KXFER_WIRE_GRANT, first > second ? first : second);
	EXPECT_EQ(KXFER_WIRE_ANSWER | KXFER_WIRE_PING, first > second ? second : first);
	EXPECT_ALIVE();
}

TEST_F(message, of_a_hundred_in_turn_is_answered)
{
	int i;

	for (i = 0; i < 100; i++)
		EXPECT_ALIVE();
}

TEST_F(message, that_answers_nothing_costs_the_link)
{
	self->header.type = KXFER_WIRE_PING | KXFER_WIRE_ANSWER;
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, that_answers_nothing_on_a_data_lane_costs_the_link)
{
	self->header.type = KXFER_WIRE_NOTIFY | KXFER_WIRE_ANSWER;
	POST(data, 0);
	EXPECT_DROPPED();
}

/* Waits for the module's own PING. */
static bool wait_for_ping(struct raw_link *link, struct kxfer_wire_header *ping)
{
	uint8_t message[RAW_BYTES];

	if (raw_receive(&link->control, message, RAW_MS) < (int)sizeof(*ping))
		return false;
	memcpy(ping, message, sizeof(*ping));
	return ping->type == KXFER_WIRE_PING;
}

TEST_F(message, that_answers_with_another_sequence_costs_the_link)
{
	ASSERT_TRUE(wait_for_ping(&self->link, &self->header));
	self->header.type |= KXFER_WIRE_ANSWER;
	self->header.sequence ^= htobe64(1);
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, that_answers_with_another_type_costs_the_link)
{
	ASSERT_TRUE(wait_for_ping(&self->link, &self->header));
	self->header.type = KXFER_WIRE_REVOKE | KXFER_WIRE_ANSWER;
	POST(control, 0);
	EXPECT_DROPPED();
}

TEST_F(message, that_answers_twice_costs_the_link)
{
	ASSERT_TRUE(wait_for_ping(&self->link, &self->header));
	self->header.type |= KXFER_WIRE_ANSWER;
	POST(control, 0);
	POST(control, 0);
	EXPECT_DROPPED();
}

/* ---- which side may send a message, and on which lane ---- */

TEST_F(message, that_is_the_responders_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_REVOKE, SLOT,
				  sizeof(struct kxfer_wire_exposure_id), 1);
	POST(control, sizeof(struct kxfer_wire_exposure_id));
	EXPECT_DROPPED();
}

TEST_F(message, that_is_the_responders_content_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_CONTENT, SLOT,
				  sizeof(struct kxfer_wire_content_change), 1);
	POST(control, sizeof(struct kxfer_wire_content_change));
	EXPECT_DROPPED();
}

TEST_F(message, NOTIFY_on_control_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_NOTIFY, SLOT, sizeof(struct kxfer_wire_notify),
				  1);
	POST(control, sizeof(struct kxfer_wire_notify));
	EXPECT_DROPPED();
}

TEST_F(message, PING_on_a_data_lane_costs_the_link)
{
	POST(data, 0);
	EXPECT_DROPPED();
}

TEST_F(message, RELEASE_on_a_data_lane_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_RELEASE, SLOT,
				  sizeof(struct kxfer_wire_grant_id), 1);
	POST(data, sizeof(struct kxfer_wire_grant_id));
	EXPECT_DROPPED();
}

TEST_F(message, HELLO_said_twice_is_refused)
{
	EXPECT_EQ(KXFER_WIRE_INVALID,
		  raw_request(&self->link, &self->link.control, KXFER_WIRE_HELLO, NULL, 0,
			      NULL, NULL));
	EXPECT_ALIVE();
}

TEST_F(message, before_HELLO_costs_the_link)
{
	struct raw_link early = { .port = 0 };

	ASSERT_EQ(0, raw_link_connect(&early, self->port));
	raw_post_request(&early.control, self->header, NULL, 0);
	EXPECT_TRUE(raw_dropped(&early.control, RAW_MS));
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors"));
	raw_link_close(&early);
	EXPECT_ALIVE();
}

TEST_F(message, GRANT_before_HELLO_costs_the_link)
{
	struct grant_message grant = ask_for_grant(self->pair.name, 1);
	struct raw_link early = { .port = 0 };

	ASSERT_EQ(0, raw_link_connect(&early, self->port));
	raw_send(&early.control, &grant, sizeof(grant));
	EXPECT_TRUE(raw_dropped(&early.control, RAW_MS));
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors"));
	raw_link_close(&early);
}

/* ---- content: answered with a status ---- */

static int ask(struct raw_link *link, uint8_t type, const void *payload, uint32_t length)
{
	return raw_request(link, &link->control, type, payload, length, NULL, NULL);
}

TEST_F(message, GRANT_of_unknown_rights_is_refused)
{
	struct kxfer_wire_grant_answer grant;

	EXPECT_EQ(KXFER_WIRE_INVALID, raw_grant(&self->link, self->pair.name, 0, 1U << 5,
						&grant));
	EXPECT_ALIVE();
}

TEST_F(message, GRANT_of_no_export_is_refused)
{
	struct kxfer_wire_grant_answer grant;

	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, raw_grant(&self->link, "nothing", 0, 0, &grant));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, raw_grant(&self->link, "", 0, 0, &grant));
	EXPECT_ALIVE();
}

TEST_F(message, GRANT_of_a_name_without_end_is_refused)
{
	struct kxfer_wire_grant grant = { .uid = 0 };

	memset(grant.name, 'x', sizeof(grant.name));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, ask(&self->link, KXFER_WIRE_GRANT, &grant,
					   sizeof(grant)));
	EXPECT_ALIVE();
}

TEST_F(message, KEYS_of_an_unknown_exposure_are_refused)
{
	struct kxfer_wire_key key;

	EXPECT_EQ(-EREMOTEIO, raw_keys(&self->link, 0, &key, 1));
	EXPECT_EQ(-EREMOTEIO, raw_keys(&self->link, UINT64_MAX, &key, 1));
	EXPECT_ALIVE();
}

TEST_F(message, KEYS_of_the_exposures_of_others_are_refused)
{
	struct kxfer_wire_key key;
	uint64_t id;

	/* Exposures are numbered from 1, and the other link of this test has one. */
	for (id = 1; id < 200; id++)
		EXPECT_EQ(-EREMOTEIO, raw_keys(&self->link, id, &key, 1));
	EXPECT_ALIVE();
}

TEST_F(message, KEYS_beyond_the_table_are_none)
{
	struct kxfer_wire_keys_answer answer = { .nr = 77 };
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_keys request = { .first = htobe32(UINT32_MAX) };
	uint32_t length = sizeof(answer);

	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &grant));
	request.exposure = grant.exposure;
	EXPECT_EQ(KXFER_WIRE_OK, raw_request(&self->link, &self->link.control,
					     KXFER_WIRE_KEYS, &request, sizeof(request),
					     &answer, &length));
	EXPECT_EQ(0, answer.nr);
}

TEST_F(message, RELEASE_of_an_unknown_grant_is_refused)
{
	static const uint64_t grants[] = { 0, 77, UINT32_MAX, 1ULL << 32, UINT64_MAX };
	size_t i;

	for (i = 0; i < sizeof(grants) / sizeof(*grants); i++) {
		struct kxfer_wire_grant_id id = { .grant = htobe64(grants[i]) };

		EXPECT_EQ(KXFER_WIRE_NO_ENTRY, ask(&self->link, KXFER_WIRE_RELEASE, &id,
						   sizeof(id)));
	}
	EXPECT_ALIVE();
}

TEST_F(message, RELEASE_said_twice_is_refused)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_grant_id id;

	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &grant));
	id.grant = grant.grant;
	EXPECT_EQ(KXFER_WIRE_OK, ask(&self->link, KXFER_WIRE_RELEASE, &id, sizeof(id)));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, ask(&self->link, KXFER_WIRE_RELEASE, &id, sizeof(id)));
	EXPECT_ALIVE();
}

static int push_release(struct raw_link *link, uint8_t slot, uint64_t grant)
{
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_grant_id id;
	} message = {
		.header = raw_header(KXFER_WIRE_RELEASE, slot, sizeof(message.id),
				     ++link->sequence),
		.id = { .grant = htobe64(grant) },
	};

	return raw_push(&link->control, &message, sizeof(message));
}

/* Sends GRANT and, in each other slot, a RELEASE of the id that it will get. Return: 0 or -errno */
static int grant_and_guess(struct raw_link *link, const char *name)
{
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_grant grant;
	} message = {
		.header = raw_header(KXFER_WIRE_GRANT, 0, sizeof(message.grant),
				     ++link->sequence),
	};
	int ret, slot;

	memcpy(message.grant.name, name, strlen(name));
	ret = raw_push(&link->control, &message, sizeof(message));
	for (slot = 1; !ret && slot < KXFER_WIRE_CONTROL_SLOTS; slot++)
		ret = push_release(link, slot, 1);
	return ret;
}

/* The link's first grant is always 1, so a peer can guess it. */
TEST_F_TIMEOUT(message, RELEASE_that_guesses_a_grant_before_it_is_told_is_answered, 60)
{
	uint32_t round, left, released, granted;
	uint8_t answer[RAW_BYTES];
	struct kxfer_wire_header *header = (void *)answer;

	for (round = 0; round < 100; round++) {
		granted = 0;
		released = 0;
		ASSERT_EQ(0, grant_and_guess(&self->link, self->pair.name));
		for (left = KXFER_WIRE_CONTROL_SLOTS; left;) {
			ASSERT_LT(0, raw_receive(&self->link.control, answer, RAW_MS));
			if (!(header->type & KXFER_WIRE_ANSWER))
				continue;
			left--;
			if (header->type == (KXFER_WIRE_GRANT | KXFER_WIRE_ANSWER))
				granted += header->status == htobe16(KXFER_WIRE_OK);
			else
				released += header->status == htobe16(KXFER_WIRE_OK);
		}
		ASSERT_EQ(1, granted);
		ASSERT_GE(1, released);
		if (released)
			continue;
		ASSERT_EQ(0, push_release(&self->link, 1, 1));
		ASSERT_LT(0, raw_receive(&self->link.control, answer, RAW_MS));
		ASSERT_EQ(htobe16(KXFER_WIRE_OK), header->status);
	}
	EXPECT_ALIVE();
}

TEST_F(message, RELEASE_does_not_reach_the_grants_of_others)
{
	struct kxfer_wire_grant_id id;
	uint64_t grant;

	for (grant = 1; grant < 50; grant++) {
		id.grant = htobe64(grant);
		EXPECT_EQ(KXFER_WIRE_NO_ENTRY, ask(&self->link, KXFER_WIRE_RELEASE, &id,
						   sizeof(id)));
	}
	EXPECT_EQ(0, kx_transfer(self->pair.client, KXFER_OP_READ, self->pair.client_region,
				 0, self->pair.target, 0, 4096));
}

TEST_F(message, INFO_of_an_unknown_grant_is_refused)
{
	struct kxfer_wire_grant_id id = { .grant = htobe64(UINT64_MAX) };

	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, ask(&self->link, KXFER_WIRE_INFO, &id, sizeof(id)));
	id.grant = 0;
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, ask(&self->link, KXFER_WIRE_INFO, &id, sizeof(id)));
	EXPECT_ALIVE();
}

TEST_F(message, LIST_behind_the_end_is_empty)
{
	struct kxfer_wire_list request = { .cursor = htobe64(UINT64_MAX) };
	struct kxfer_wire_list_answer answer = { .nr = 77 };
	uint32_t length = sizeof(answer);

	EXPECT_EQ(KXFER_WIRE_OK, raw_request(&self->link, &self->link.control,
					     KXFER_WIRE_LIST, &request, sizeof(request),
					     &answer, &length));
	EXPECT_EQ(0, answer.nr);
}

TEST_F(message, NOTIFY_with_a_foreign_grant_is_refused)
{
	struct kxfer_event event;
	uint64_t grant;

	for (grant = 0; grant < 20; grant++)
		EXPECT_EQ(KXFER_WIRE_NO_ENTRY, raw_notify(&self->link, grant, 1));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, raw_notify(&self->link, UINT64_MAX, 1));
	test_cmd_event_reap(0, self->pair.server, &event, 1, 0);
}

TEST_F(message, NOTIFY_with_a_grant_to_read_is_refused)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_event event;

	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, KXFER_RIGHT_READ, &grant));
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS, raw_notify(&self->link, be64toh(grant.grant), 1));
	test_cmd_event_reap(0, self->pair.server, &event, 1, 0);
}

TEST_F(message, NOTIFY_with_a_grant_to_write_arrives)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_event event;

	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 1234, KXFER_RIGHT_WRITE,
			       &grant));
	EXPECT_EQ(KXFER_WIRE_OK, raw_notify(&self->link, be64toh(grant.grant), 99));
	test_cmd_event_reap(1, self->pair.server, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(99, event.cookie);
	EXPECT_EQ(1234, event.uid);
}

TEST_F(message, NOTIFY_after_release_is_refused)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_grant_id id;

	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, KXFER_RIGHT_WRITE, &grant));
	id.grant = grant.grant;
	EXPECT_EQ(KXFER_WIRE_OK, ask(&self->link, KXFER_WIRE_RELEASE, &id, sizeof(id)));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, raw_notify(&self->link, be64toh(grant.grant), 1));
}

/* ---- messages for mailboxes ---- */

#define MAILBOX_BYTES	40

/* A mailbox and a grant of it. */
static int open_mailbox(int fd, struct raw_link *link, uint32_t *mailbox, uint64_t *grant)
{
	struct kxfer_wire_grant_answer answer;
	int ret = kx_mailbox_add(fd, "raw-mailbox", 2, MAILBOX_BYTES, mailbox);

	if (!ret)
		ret = raw_grant(link, "raw-mailbox", 1234, KXFER_RIGHT_SEND, &answer);
	*grant = ret ? 0 : be64toh(answer.grant);
	return ret;
}

static int push_mail(struct raw_link *link, uint64_t grant, uint32_t flags,
		     uint32_t immediate, uint32_t bytes)
{
	uint8_t payload[RAW_BYTES] = "";
	struct kxfer_wire_send *send = (void *)payload;

	send->grant = htobe64(grant);
	send->flags = htobe32(flags);
	send->immediate = htobe32(immediate);
	return raw_request(link, &link->data, KXFER_WIRE_SEND, payload, sizeof(*send) + bytes,
			   NULL, NULL);
}

static uint64_t nr_stored(const struct kx_pair *pair)
{
	return kx_counter(pair->server, "sends_stored");
}

TEST_F(message, SEND_with_a_grant_of_a_mailbox_arrives)
{
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	uint32_t mailbox;
	uint64_t grant;

	ASSERT_EQ(0, open_mailbox(self->pair.server, &self->link, &mailbox, &grant));
	EXPECT_EQ(KXFER_WIRE_OK, push_mail(&self->link, grant, KXFER_WIRE_SEND_IMM, 77,
					   MAILBOX_BYTES));
	test_cmd_recv(self->pair.server, mailbox, self->pair.server_region, 0, 4096);
	EXPECT_EQ(MAILBOX_BYTES, message->bytes);
	EXPECT_EQ(77, message->immediate);
	EXPECT_EQ(1234, message->uid);
}

/* Each grant keeps the word with which it was asked for. */
TEST_F(message, SEND_comes_with_the_word_of_its_grant)
{
	static const uint64_t words[] = { 0x0123456789abcdefULL, UINT64_MAX };
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	struct kxfer_wire_grant_answer grants[2];
	uint32_t mailbox, i;
	uint64_t plain;

	ASSERT_EQ(0, open_mailbox(self->pair.server, &self->link, &mailbox, &plain));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, raw_grant_word(&self->link, "raw-mailbox", 1234, 0, words[i],
					    &grants[i]));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(KXFER_WIRE_OK, push_mail(&self->link, be64toh(grants[i % 2].grant), 0,
						   0, 1));
		test_cmd_recv(self->pair.server, mailbox, self->pair.server_region, 0, 4096);
		EXPECT_EQ(words[i % 2], message->word);
		EXPECT_EQ(1234, message->uid);
	}
	EXPECT_EQ(KXFER_WIRE_OK, push_mail(&self->link, plain, 0, 0, 1));
	test_cmd_recv(self->pair.server, mailbox, self->pair.server_region, 0, 4096);
	EXPECT_EQ(0, message->word);
}

TEST_F(message, SEND_that_a_mailbox_does_not_take_is_refused)
{
	uint64_t grant, before = nr_stored(&self->pair);
	uint32_t mailbox;

	ASSERT_EQ(0, open_mailbox(self->pair.server, &self->link, &mailbox, &grant));
	EXPECT_EQ(KXFER_WIRE_INVALID, push_mail(&self->link, grant, 0, 0, MAILBOX_BYTES + 1));
	EXPECT_EQ(KXFER_WIRE_INVALID, push_mail(&self->link, grant, 0, 0, KXFER_MESSAGE_MAX));
	EXPECT_EQ(KXFER_WIRE_INVALID, push_mail(&self->link, grant, 0, 1, 1));
	EXPECT_EQ(KXFER_WIRE_INVALID, push_mail(&self->link, grant, 2, 0, 1));
	EXPECT_EQ(KXFER_WIRE_INVALID, push_mail(&self->link, grant, UINT32_MAX, 0, 1));
	EXPECT_EQ(before, nr_stored(&self->pair));
	EXPECT_EQ(KXFER_WIRE_OK, push_mail(&self->link, grant, 0, 0, 0));
	EXPECT_EQ(KXFER_WIRE_OK, push_mail(&self->link, grant, 0, 0, 1));
	EXPECT_EQ(KXFER_WIRE_BUSY, push_mail(&self->link, grant, 0, 0, 1));
	EXPECT_ALIVE();
}

TEST_F(message, SEND_with_no_grant_of_a_mailbox_is_refused)
{
	static const uint64_t ids[] = { 0, 77, UINT32_MAX, 1ULL << 32, UINT64_MAX };
	struct kxfer_wire_grant_answer memory;
	uint64_t before = nr_stored(&self->pair);
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		EXPECT_EQ(KXFER_WIRE_NO_ENTRY, push_mail(&self->link, ids[i], 0, 0, 1));
	ASSERT_EQ(0, raw_grant(&self->link, self->pair.name, 0, 0, &memory));
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS, push_mail(&self->link, be64toh(memory.grant), 0, 0, 1));
	EXPECT_EQ(before, nr_stored(&self->pair));
	EXPECT_ALIVE();
}

TEST_F(message, SEND_after_release_is_refused)
{
	struct kxfer_wire_grant_id id;
	uint32_t mailbox;
	uint64_t grant;

	ASSERT_EQ(0, open_mailbox(self->pair.server, &self->link, &mailbox, &grant));
	id.grant = htobe64(grant);
	EXPECT_EQ(KXFER_WIRE_OK, ask(&self->link, KXFER_WIRE_RELEASE, &id, sizeof(id)));
	EXPECT_EQ(KXFER_WIRE_NO_ENTRY, push_mail(&self->link, grant, 0, 0, 1));
}

TEST_F(message, mailbox_is_granted_for_sending_only)
{
	struct kxfer_wire_grant_answer answer;
	struct kxfer_wire_key key;
	uint32_t mailbox;
	uint64_t grant;

	ASSERT_EQ(0, open_mailbox(self->pair.server, &self->link, &mailbox, &grant));
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS, raw_grant(&self->link, "raw-mailbox", 0,
						  KXFER_RIGHT_WRITE, &answer));
	ASSERT_EQ(0, raw_grant(&self->link, "raw-mailbox", 0, 0, &answer));
	EXPECT_EQ(htobe32(KXFER_RIGHT_SEND), answer.rights);
	EXPECT_EQ(htobe64(MAILBOX_BYTES), answer.length);
	EXPECT_EQ(0, answer.nr_keys);
	EXPECT_EQ(0, raw_keys(&self->link, be64toh(answer.exposure), &key, 1));
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS, raw_notify(&self->link, grant, 1));
}

TEST_F(message, SEND_shorter_than_its_head_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_SEND, SLOT, sizeof(struct kxfer_wire_send) - 1, 1);
	POST(data, sizeof(struct kxfer_wire_send) - 1);
	EXPECT_DROPPED();
}

TEST_F(message, SEND_longer_than_any_costs_the_link)
{
	uint32_t bytes = sizeof(struct kxfer_wire_send) + KXFER_MESSAGE_MAX + 1;
	uint8_t message[RAW_BYTES] = "";

	self->header = raw_header(KXFER_WIRE_SEND, SLOT, bytes, 1);
	memcpy(message, &self->header, sizeof(self->header));
	raw_send(&self->link.data, message, sizeof(self->header) + bytes);
	EXPECT_TRUE(raw_dropped(&self->link.data, RAW_MS));
	EXPECT_TRUE(raw_dropped(&self->link.control, RAW_MS));
}

TEST_F(message, SEND_on_control_costs_the_link)
{
	self->header = raw_header(KXFER_WIRE_SEND, SLOT, sizeof(struct kxfer_wire_send), 1);
	POST(control, sizeof(struct kxfer_wire_send));
	EXPECT_DROPPED();
}

/* ---- RDMA requests instead of messages ---- */

TEST_F(message, that_never_comes_after_connecting_costs_nothing_but_the_link)
{
	struct raw_link quiet = { .port = 0 };

	ASSERT_EQ(0, raw_link_connect(&quiet, self->port));
	raw_link_close(&quiet);
	EXPECT_ALIVE();
}

TEST_HARNESS_MAIN
