// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that a listener refuses, each with its reason: QPs of user space, other
 * protocols, and lanes without the cookie of a live link.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define RESERVED	610	/* a source port below 1024 */

FIXTURE(connection)
{
	int fd;
	uint64_t listener;
	uint16_t port;
	uint8_t cookie[KXFER_WIRE_COOKIE_SIZE];
	struct kxfer_wire_hello hello;
	struct raw_lane lane;
	uint64_t refused;
};

FIXTURE_SETUP(connection)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->port = kx_own_port();
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), self->port), 0, &self->listener);
	memset(self->cookie, 0xc0, sizeof(self->cookie));
	self->hello = raw_hello_data(KXFER_WIRE_CONTROL, self->cookie, 1);
	self->refused = kx_counter(self->fd, "links_refused");
}

/* After every attack, kernels can still connect. */
FIXTURE_TEARDOWN(connection)
{
	uint32_t peer;

	EXPECT_EQ(0, kx_peer_open(self->fd, kx_addr(kx_address(), self->port), &peer));
	raw_lane_close(&self->lane);
	close(self->fd);
}

static int try_port(struct raw_lane *lane, uint16_t port, uint16_t source_port,
		    const struct kxfer_wire_hello *hello, uint8_t bytes)
{
	int ret;

	/* The reserved port, or both of siw's TCP, may be held by the end of another connection. */
	do {
		ret = raw_lane_connect(lane, port, source_port, hello, bytes, NULL);
	} while ((ret == -EADDRINUSE || ret == -EADDRNOTAVAIL) && ++source_port < 660);
	return ret;
}

#define EXPECT_REFUSED(reason, source_port, bytes) ({				\
	EXPECT_EQ(-ECONNREFUSED, try_port(&self->lane, self->port, source_port,	\
					  &self->hello, bytes));		\
	EXPECT_EQ(reason, self->lane.refusal);					\
	EXPECT_EQ(++self->refused, kx_counter(self->fd, "links_refused"));	\
})
#define ALL_BYTES	sizeof(self->hello)

TEST_F(connection, of_the_protocol_is_taken)
{
	EXPECT_EQ(0, try_port(&self->lane, self->port, RESERVED, &self->hello, ALL_BYTES));
	EXPECT_EQ(self->refused, kx_counter(self->fd, "links_refused"));
}

TEST_F(connection, from_an_ordinary_port_is_refused)
{
	EXPECT_REFUSED(KXFER_REFUSAL_PORT, 0, ALL_BYTES);
}

TEST_F(connection, from_port_1024_is_refused)
{
	EXPECT_REFUSED(KXFER_REFUSAL_PORT, 1024, ALL_BYTES);
}

TEST_F(connection, from_an_ordinary_port_is_taken_where_that_is_allowed)
{
	uint64_t listener;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), self->port + 1),
			    KXFER_LISTEN_F_ANY_PORT, &listener);
	EXPECT_EQ(0, try_port(&self->lane, self->port + 1, 0, &self->hello, ALL_BYTES));
}

/* The reserved ports that the module uses. */
#define NR_RESERVED	(1023 - 665 + 1)

struct ports {
	struct rdma_event_channel *events;
	struct rdma_cm_id *ids[NR_RESERVED];
};

/* Binds all reserved ports that are free for any address. Return: number of bound ports */
static int take_ports(struct ports *ports, int shared)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int i, n = 0;

	ports->events = rdma_create_event_channel();
	for (i = 0; ports->events && i < NR_RESERVED; i++) {
		sin.sin_port = htons(665 + i);
		if (rdma_create_id(ports->events, &ports->ids[i], NULL, RDMA_PS_TCP))
			break;
		if (!rdma_set_option(ports->ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
				     &shared, sizeof(shared)) &&
		    !rdma_bind_addr(ports->ids[i], (struct sockaddr *)&sin))
			n++;
	}
	return n;
}

static void give_ports(struct ports *ports)
{
	int i;

	for (i = 0; i < NR_RESERVED; i++)
		if (ports->ids[i])
			rdma_destroy_id(ports->ids[i]);
	rdma_destroy_event_channel(ports->events);
}

/* With more links than ports, ports are shared. */
TEST_F(connection, from_a_port_that_is_shared_is_taken)
{
	struct ports ports = { 0 };
	uint32_t peer;

	EXPECT_LT(NR_RESERVED - 8, take_ports(&ports, 1));
	EXPECT_EQ(0, kx_peer_open(self->fd, kx_addr(kx_address(), self->port), &peer));
	give_ports(&ports);
}

TEST_F(connection, without_a_port_is_told_so)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), self->port),
		.context = KXFER_CONTEXT_UNBOUND,	/* shares no link with another test */
		.timeout_ms = KX_TIMEOUT_MS,
	};
	struct ports ports = { 0 };
	int n = take_ports(&ports, 0), ret;

	ret = kx_call(self->fd, KXFER_PEER_OPEN, &cmd);
	give_ports(&ports);
	if (n < NR_RESERVED)
		SKIP(return, "a link of before has a port, which is shared");
	EXPECT_EQ(-EADDRINUSE, ret);
}

TEST_F(connection, of_later_versions_too_gets_the_one_in_common)
{
	self->hello.version_min = htobe16(1);
	self->hello.version_max = htobe16(9);
	EXPECT_EQ(0, try_port(&self->lane, self->port, RESERVED, &self->hello, ALL_BYTES));
	EXPECT_EQ(1, self->lane.version);
	raw_lane_close(&self->lane);
	self->hello.version_min = htobe16(2);
	self->hello.version_max = htobe16(3);
	EXPECT_REFUSED(KXFER_REFUSAL_VERSION, RESERVED, ALL_BYTES);
}

TEST_F(connection, without_private_data_is_refused)
{
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, 0);
}

TEST_F(connection, with_little_private_data_is_refused)
{
	/* InfiniBand pads private data with zeros, so the magic itself is cut. */
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, 3);
}

TEST_F(connection, with_other_magic_is_refused)
{
	self->hello.magic = htobe32(0x12345678);
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, ALL_BYTES);
}

TEST_F(connection, of_newer_versions_only_is_refused)
{
	self->hello.version_min = htobe16(KXFER_WIRE_VERSION_MAX + 1);
	self->hello.version_max = htobe16(KXFER_WIRE_VERSION_MAX + 9);
	EXPECT_REFUSED(KXFER_REFUSAL_VERSION, RESERVED, ALL_BYTES);
}

TEST_F(connection, of_older_versions_only_is_refused)
{
	self->hello.version_min = 0;
	self->hello.version_max = 0;
	EXPECT_REFUSED(KXFER_REFUSAL_VERSION, RESERVED, ALL_BYTES);
}

TEST_F(connection, of_no_version_at_all_is_refused)
{
	self->hello.version_min = htobe16(9);
	self->hello.version_max = htobe16(KXFER_WIRE_VERSION_MIN);
	EXPECT_REFUSED(KXFER_REFUSAL_VERSION, RESERVED, ALL_BYTES);
}

TEST_F(connection, of_more_versions_is_taken)
{
	self->hello.version_min = 0;
	self->hello.version_max = htobe16(UINT16_MAX);
	EXPECT_EQ(0, try_port(&self->lane, self->port, RESERVED, &self->hello, ALL_BYTES));
}

TEST_F(connection, of_unknown_kind_is_refused)
{
	self->hello.kind = 2;
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, ALL_BYTES);
}

TEST_F(connection, for_control_with_a_lane_number_is_refused)
{
	self->hello.lane = 1;
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, ALL_BYTES);
}

TEST_F(connection, for_data_without_a_lane_number_is_refused)
{
	self->hello.kind = KXFER_WIRE_DATA;
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, ALL_BYTES);
}

TEST_F(connection, for_data_with_a_lane_number_too_high_is_refused)
{
	self->hello.kind = KXFER_WIRE_DATA;
	self->hello.lane = 255;
	EXPECT_REFUSED(KXFER_REFUSAL_MAGIC, RESERVED, ALL_BYTES);
}

TEST_F(connection, for_data_of_no_link_is_refused)
{
	self->hello = raw_hello_data(KXFER_WIRE_DATA, self->cookie, 1);
	EXPECT_REFUSED(KXFER_REFUSAL_COOKIE, 0, ALL_BYTES);
	EXPECT_REFUSED(KXFER_REFUSAL_COOKIE, RESERVED, ALL_BYTES);
}

/* ---- data lanes of a link ---- */

FIXTURE(lane)
{
	int fd;
	uint64_t listener;
	uint16_t port;
	struct raw_link link;
	struct raw_lane second;
	struct kxfer_wire_hello hello;
};

FIXTURE_SETUP(lane)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->port = kx_own_port();
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), self->port), 0, &self->listener);
	ASSERT_EQ(0, raw_link_connect(&self->link, self->port));
	self->hello = raw_hello_data(KXFER_WIRE_DATA, self->link.cookie, self->link.epoch);
}

FIXTURE_TEARDOWN(lane)
{
	raw_lane_close(&self->second);
	raw_link_close(&self->link);
	close(self->fd);
}

#define EXPECT_NO_LANE() ({							\
	EXPECT_EQ(-ECONNREFUSED,						\
		  raw_lane_connect(&self->second, self->port, 0, &self->hello,	\
				   sizeof(self->hello), NULL));			\
	EXPECT_EQ(KXFER_REFUSAL_COOKIE, self->second.refusal);			\
})

TEST_F(lane, with_cookie_and_epoch_is_taken)
{
	ASSERT_EQ(0, raw_link_hello(&self->link));
	EXPECT_EQ(0, raw_link_connect_data(&self->link));
}

TEST_F(lane, before_HELLO_is_refused)
{
	EXPECT_NO_LANE();
	EXPECT_EQ(0, raw_link_hello(&self->link));
}

TEST_F(lane, with_another_cookie_is_refused)
{
	ASSERT_EQ(0, raw_link_hello(&self->link));
	self->hello.cookie[KXFER_WIRE_COOKIE_SIZE - 1] ^= 1;
	EXPECT_NO_LANE();
	EXPECT_EQ(0, raw_link_connect_data(&self->link));
}

TEST_F(lane, with_another_epoch_is_refused)
{
	ASSERT_EQ(0, raw_link_hello(&self->link));
	self->hello.epoch ^= htobe64(1);
	EXPECT_NO_LANE();
	EXPECT_EQ(0, raw_link_connect_data(&self->link));
}

TEST_F(lane, that_is_there_already_is_refused)
{
	ASSERT_EQ(0, raw_link_hello(&self->link));
	ASSERT_EQ(0, raw_link_connect_data(&self->link));
	EXPECT_NO_LANE();
	EXPECT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_PING, NULL, 0,
				 NULL, NULL));
}

TEST_F(lane, beyond_those_agreed_on_is_refused)
{
	ASSERT_EQ(0, raw_link_hello(&self->link));
	self->hello.lane = 2;
	EXPECT_NO_LANE();
	EXPECT_EQ(0, raw_link_connect_data(&self->link));
}

/* The second of the agreed lanes comes first: the order does not matter. */
TEST_F(lane, of_a_higher_number_may_come_first)
{
	static const struct raw_manners greedy = { .nr_lanes = UINT16_MAX };
	struct kxfer_info_lane lanes[256], last[3] = {};
	uint64_t cursor = 0;
	int i, n;

	raw_link_close(&self->link);
	ASSERT_EQ(0, raw_link_connect_as(&self->link, self->port, NULL, 0, &greedy));
	ASSERT_EQ(0, raw_link_hello(&self->link));
	self->hello = raw_hello_data(KXFER_WIRE_DATA, self->link.cookie, self->link.epoch);
	/* The module grants fewer lanes than the peer asks for. */
	self->hello.lane = KXFER_WIRE_LANES_MAX;
	EXPECT_NO_LANE();
	raw_lane_close(&self->second);
	self->hello.lane = 2;
	EXPECT_EQ(0, raw_lane_connect(&self->second, self->port, 0, &self->hello,
				      sizeof(self->hello), self->link.pd));
	EXPECT_EQ(0, raw_link_connect_data(&self->link));
	/* On a fast guest the lanes of earlier tests still exist, so the list has several pages. */
	do {
		n = kx_info(self->fd, KXFER_INFO_LANES, lanes, sizeof(*lanes), 256, &cursor);
		ASSERT_LE(0, n);
		for (i = 0; i < n; i++) {
			memmove(&last[0], &last[1], 2 * sizeof(*last));
			last[2] = lanes[i];
		}
	} while (n == 256);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(last[2].link, last[i].link);
		EXPECT_EQ(i, last[i].index);
	}
}

TEST_F(lane, of_a_link_that_ended_is_refused)
{
	ASSERT_EQ(0, raw_link_hello(&self->link));
	raw_lane_close(&self->link.control);
	kx_sleep_ms(200);
	EXPECT_NO_LANE();
}

TEST_HARNESS_MAIN
