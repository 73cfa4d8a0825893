// SPDX-License-Identifier: GPL-2.0
/*
 * RoCE v2 is UDP: every sender of datagrams can ask for a connection, with arbitrary content.
 * The address that rdma_cm takes for the peer's has to be the one that packets go to.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/forger.h"

#define LENGTH	4096
#define SECRET	0xe7
#define QUIET_MS	1500	/* time in which no answer may come */
#define TIMEOUT_S	120

FIXTURE(forged)
{
	uint64_t links;
	int fd;
	uint16_t port;
	uint8_t *memory;
	uint32_t region;
	uint32_t export_id;
	uint64_t forged;
	uint64_t refused;
	struct forger forger;
	struct forger_lane control;
	struct forger_lane data;
	struct kxfer_wire_hello hello;
};

FIXTURE_VARIANT(forged)
{
	int family;
	const char *node;
	const char *node_2;
	const char *victim;
	const char *self;
	uint32_t prefix_len;
};

FIXTURE_VARIANT_ADD(forged, by_IPv4)
{
	.family = AF_INET, .node = FORGER_NODE, .node_2 = FORGER_NODE_2,
	.victim = FORGER_VICTIM, .self = FORGER_SELF, .prefix_len = 32,
};

FIXTURE_VARIANT_ADD(forged, by_IPv6)
{
	.family = AF_INET6, .node = FORGER_NODE6, .node_2 = FORGER_NODE6_2,
	.victim = FORGER_VICTIM6, .self = FORGER_SELF6, .prefix_len = 128,
};

static struct kxfer_wire_hello hello_of(uint8_t kind)
{
	struct kxfer_wire_hello hello = {
		.magic = htobe32(KXFER_WIRE_MAGIC),
		.version_min = htobe16(KXFER_WIRE_VERSION_MIN),
		.version_max = htobe16(KXFER_WIRE_VERSION_MAX),
		.kind = kind,
		.lane = kind == KXFER_WIRE_CONTROL ? 0 : 1,
		.nr_lanes = htobe16(1),
		.epoch = htobe64(7),
	};

	memset(hello.cookie, 0xc7, sizeof(hello.cookie));
	return hello;
}

FIXTURE_SETUP(forged)
{
	uint64_t listener;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "it is no RoCE v2");
	ASSERT_EQ(0, forger_network_make());
	ASSERT_EQ(0, forger_open(&self->forger, variant->family));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	/* Idle links of earlier tests, which may end meanwhile. */
	self->links = kx_counter(self->fd, "live_links");
	self->port = kx_own_port() + 1;
	test_cmd_listen_add(self->fd, kx_addr(variant->node, self->port), 0, &listener);
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	memset(self->memory, SECRET, LENGTH);
	test_cmd_region_add(self->fd, self->memory, LENGTH, 0, &self->region);
	self->forged = kx_counter(self->fd, "links_forged");
	self->refused = kx_counter(self->fd, "links_refused");
	self->hello = hello_of(KXFER_WIRE_CONTROL);
}

FIXTURE_TEARDOWN(forged)
{
	if (strcmp(kx_provider(), "rxe"))
		return;
	forger_disconnect(&self->forger, &self->data);
	forger_disconnect(&self->forger, &self->control);
	forger_close(&self->forger);
	close(self->fd);
	/* The rest of the links ends with the device. */
	forger_network_remove();
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_links") <= self->links, FORGER_MS));
	close(self->fd);
	kx_free(self->memory, LENGTH);
}

static struct forger_claim truth(const FIXTURE_DATA(forged) *self)
{
	return forger_truth(&self->forger, self->port, &self->hello, sizeof(self->hello));
}

#define EXPECT_FORGED(lane, claim) ({							\
	EXPECT_EQ(-ECONNREFUSED, forger_connect(&self->forger, lane, claim));		\
	EXPECT_EQ(KXFER_REFUSAL_ADDRESS, (lane)->refusal);				\
	EXPECT_EQ(++self->forged, kx_counter(self->fd, "links_forged"));		\
	EXPECT_EQ(++self->refused, kx_counter(self->fd, "links_refused"));		\
})

TEST_F_TIMEOUT(forged, address_of_the_peer_is_refused, TIMEOUT_S)
{
	struct forger_claim claim = truth(self);

	claim.address = forger_gid(variant->victim);
	EXPECT_FORGED(&self->control, &claim);
}

TEST_F_TIMEOUT(forged, address_of_the_listener_is_refused, TIMEOUT_S)
{
	struct forger_claim claim = truth(self);

	self->forger.there = forger_gid(variant->node_2);
	claim.gid_there = self->forger.there;
	EXPECT_FORGED(&self->control, &claim);
}

TEST_F_TIMEOUT(forged, address_of_a_data_lane_is_refused, TIMEOUT_S)
{
	struct forger_claim claim = truth(self);

	ASSERT_EQ(0, forger_connect(&self->forger, &self->control, &claim));
	ASSERT_EQ(KXFER_WIRE_OK, forger_call(&self->forger, &self->control, KXFER_WIRE_HELLO,
					     NULL, 0, NULL, NULL));
	self->hello = hello_of(KXFER_WIRE_DATA);
	claim = truth(self);
	claim.address = forger_gid(variant->victim);
	EXPECT_FORGED(&self->data, &claim);
	claim = truth(self);
	EXPECT_EQ(0, forger_connect(&self->forger, &self->data, &claim));
}

/* With a forged path the request is consistent, but its answer goes elsewhere. */
TEST_F_TIMEOUT(forged, path_is_never_answered_to_the_forger, TIMEOUT_S)
{
	struct forger_claim claim = truth(self);
	struct forger_mad req;

	claim.address = forger_gid(variant->victim);
	claim.gid = claim.address;
	forger_lane_begin(&self->forger, &self->control);
	req = forger_req(&self->control, &claim);
	ASSERT_EQ(0, forger_send_mad(&self->forger, &req, sizeof(req.bytes)));
	EXPECT_EQ(-ETIMEDOUT, forger_await_rep(&self->forger, &self->control, QUIET_MS));
	EXPECT_EQ(0, self->forger.nr_packets);
	EXPECT_EQ(self->forged, kx_counter(self->fd, "links_forged"));
}

static int read_export(FIXTURE_DATA(forged) *self, uint8_t *into)
{
	struct kxfer_wire_grant ask = { .uid = 0, .gid = 0, .rights = htobe32(KXFER_RIGHT_READ) };
	uint8_t page[FORGER_MESSAGE];
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_keys keys = { 0 };
	struct kxfer_wire_key key;
	uint32_t bytes;
	int ret;

	strcpy((char *)ask.name, "forgers-aim");
	ret = forger_call(&self->forger, &self->control, KXFER_WIRE_GRANT, &ask, sizeof(ask),
			  page, &bytes);
	if (ret)
		return ret;
	memcpy(&grant, page, sizeof(grant));
	keys.exposure = grant.exposure;
	ret = forger_call(&self->forger, &self->control, KXFER_WIRE_KEYS, &keys, sizeof(keys),
			  page, &bytes);
	if (ret)
		return ret;
	memcpy(&key, page + sizeof(struct kxfer_wire_keys_answer), sizeof(key));
	return forger_read(&self->forger, &self->data, be64toh(key.addr), be32toh(key.rkey),
			   into, FORGER_MTU);
}

/*
 * Only the address is proved: without a key, a sender with an allowed address is trusted for
 * its port and its uid. This forger's success also shows that the others are refused because of
 * their address alone.
 */
TEST_F_TIMEOUT(forged, rights_of_an_allowed_address_are_believed_without_a_key, TIMEOUT_S)
{
	struct kxfer_rule rule = {
		.match = KXFER_RULE_ADDR | KXFER_RULE_UID,
		.rights = KXFER_RIGHT_READ,
		.prefix_len = variant->prefix_len,
		.addr = kx_addr(variant->self, 0),
	};
	struct forger_claim claim = truth(self);
	uint8_t got[FORGER_MTU] = { 0 };

	test_cmd_export_add_rules(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_READ,
				  "forgers-aim", &rule, 1, &self->export_id);
	ASSERT_EQ(0, forger_connect(&self->forger, &self->control, &claim));
	ASSERT_EQ(KXFER_WIRE_OK, forger_call(&self->forger, &self->control, KXFER_WIRE_HELLO,
					     NULL, 0, NULL, NULL));
	self->hello = hello_of(KXFER_WIRE_DATA);
	claim = truth(self);
	ASSERT_EQ(0, forger_connect(&self->forger, &self->data, &claim));
	ASSERT_EQ(0, read_export(self, got));
	EXPECT_EQ(0, memcmp(self->memory, got, sizeof(got)));
	EXPECT_EQ(self->forged, kx_counter(self->fd, "links_forged"));
}

TEST_HARNESS_MAIN
