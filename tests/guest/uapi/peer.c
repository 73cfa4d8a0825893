// SPDX-License-Identifier: GPL-2.0
/*
 * PEER_OPEN, PEER_CLOSE and PEER_LIST: invalid calls, peers that cannot be reached, and servers
 * that are no peers. A server in user space sends what the module would never send.
 */
#include <endian.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define PORT		7660
#define NO_LISTENER	7699

/* A valid call; tests change one member. */
static struct kxfer_peer_open good(uint16_t port)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), port),
		.timeout_ms = KX_TIMEOUT_MS,
	};

	return cmd;
}

static int open_peer(int fd, struct kxfer_peer_open *cmd)
{
	return kx_call(fd, KXFER_PEER_OPEN, cmd);
}

/* ---- arguments ---- */

FIXTURE(peer)
{
	int fd;
	uint64_t listener;
	uint32_t id;
	struct kxfer_peer_open cmd;
};

FIXTURE_SETUP(peer)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->listener);
	self->cmd = good(PORT);
}

FIXTURE_TEARDOWN(peer)
{
	close(self->fd);
}

TEST_F(peer, is_opened)
{
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	EXPECT_LT(0, self->cmd.peer);
	EXPECT_LT(0, self->cmd.link);
	EXPECT_EQ(KXFER_REFUSAL_NONE, self->cmd.refusal);
}

TEST_F(peer, shares_its_link_with_another_session)
{
	struct kxfer_peer_open again = good(PORT);
	int other = kx_open();

	ASSERT_LE(0, other);
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	ASSERT_EQ(0, open_peer(other, &again));
	EXPECT_EQ(self->cmd.link, again.link);
	close(other);
}

TEST_F(peer, of_another_context_or_service_type_has_a_link_of_its_own)
{
	struct kxfer_peer_open softirq = good(PORT), unbound = good(PORT), tos = good(PORT);
	struct kxfer_peer_open workqueue = good(PORT);

	workqueue.context = KXFER_CONTEXT_WORKQUEUE;
	softirq.context = KXFER_CONTEXT_SOFTIRQ;
	unbound.context = KXFER_CONTEXT_UNBOUND;
	tos.flags = KXFER_PEER_F_TOS;
	tos.tos = 255;
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	ASSERT_EQ(0, open_peer(self->fd, &workqueue));
	ASSERT_EQ(0, open_peer(self->fd, &softirq));
	ASSERT_EQ(0, open_peer(self->fd, &unbound));
	ASSERT_EQ(0, open_peer(self->fd, &tos));
	EXPECT_NE(self->cmd.link, workqueue.link);
	EXPECT_NE(workqueue.link, softirq.link);
	EXPECT_NE(self->cmd.link, softirq.link);
	EXPECT_NE(self->cmd.link, unbound.link);
	EXPECT_NE(softirq.link, unbound.link);
	EXPECT_NE(self->cmd.link, tos.link);
}

TEST_F(peer, of_another_patience_has_a_link_of_its_own)
{
	struct kxfer_peer_open spelled = good(PORT), silence = good(PORT), ack = good(PORT);
	struct kxfer_peer_open retry = good(PORT), again = good(PORT);

	spelled.silence_ms = 8000;
	spelled.ack_timeout = 17;
	spelled.retry_count = 7;
	silence.silence_ms = KXFER_SILENCE_MIN_MS;
	again.silence_ms = KXFER_SILENCE_MIN_MS;
	ack.ack_timeout = KXFER_ACK_TIMEOUT_MAX;
	retry.retry_count = 1;
	retry.ack_timeout = 17;
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	ASSERT_EQ(0, open_peer(self->fd, &spelled));
	ASSERT_EQ(0, open_peer(self->fd, &silence));
	ASSERT_EQ(0, open_peer(self->fd, &again));
	ASSERT_EQ(0, open_peer(self->fd, &ack));
	ASSERT_EQ(0, open_peer(self->fd, &retry));
	EXPECT_EQ(self->cmd.link, spelled.link);
	EXPECT_NE(self->cmd.link, silence.link);
	EXPECT_EQ(silence.link, again.link);
	EXPECT_NE(self->cmd.link, ack.link);
	EXPECT_NE(self->cmd.link, retry.link);
}

TEST_F(peer, refuses_a_patience_out_of_range)
{
	static const uint32_t silences[] = {
		1, KXFER_SILENCE_MIN_MS - 1, KXFER_SILENCE_MAX_MS + 1, UINT32_MAX
	};
	static const uint32_t acks[] = {
		1, KXFER_ACK_TIMEOUT_MIN - 1, KXFER_ACK_TIMEOUT_MAX + 1, 32, UINT32_MAX
	};
	static const uint32_t retries[] = { KXFER_RETRY_COUNT_MAX + 1, 256, UINT32_MAX };
	uint32_t i;

	for (i = 0; i < 4; i++) {
		self->cmd.silence_ms = silences[i];
		EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	}
	self->cmd.silence_ms = KXFER_SILENCE_MAX_MS;
	for (i = 0; i < 5; i++) {
		self->cmd.ack_timeout = acks[i];
		EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	}
	self->cmd.ack_timeout = KXFER_ACK_TIMEOUT_MIN;
	for (i = 0; i < 3; i++) {
		self->cmd.retry_count = retries[i];
		EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	}
	self->cmd.retry_count = KXFER_RETRY_COUNT_MAX;
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, of_other_bytes_in_flight_has_a_link_of_its_own)
{
	struct kxfer_peer_open spelled = good(PORT), more = good(PORT);

	spelled.in_flight_kib = 4096;
	more.in_flight_kib = KXFER_IN_FLIGHT_MAX_KIB;
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	ASSERT_EQ(0, open_peer(self->fd, &spelled));
	ASSERT_EQ(0, open_peer(self->fd, &more));
	EXPECT_EQ(self->cmd.link, spelled.link);
	EXPECT_NE(self->cmd.link, more.link);
}

TEST_F(peer, refuses_bytes_in_flight_out_of_range)
{
	static const uint32_t wrong[] = {
		1, KXFER_IN_FLIGHT_MIN_KIB - 1, KXFER_IN_FLIGHT_MAX_KIB + 1, UINT32_MAX
	};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		self->cmd.in_flight_kib = wrong[i];
		EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	}
	self->cmd.in_flight_kib = KXFER_IN_FLIGHT_MIN_KIB;
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, whose_jobs_outlive_a_link_shares_it_all_the_same)
{
	struct kxfer_peer_open lossy = good(PORT);

	lossy.loss_ms = 3600000;
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	ASSERT_EQ(0, open_peer(self->fd, &lossy));
	EXPECT_EQ(self->cmd.link, lossy.link);
	lossy.loss_ms++;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &lossy));
}

TEST_F(peer, is_reached_by_IPv6)
{
	uint64_t listener;

	test_cmd_listen_add(self->fd, kx_addr(kx_address6(), PORT), 0, &listener);
	test_cmd_peer_open(self->fd, kx_addr(kx_address6(), PORT), &self->id);
}

TEST_F(peer, is_reached_on_the_usual_port)
{
	uint64_t listener;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), 0), 0, &listener);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), 0), &self->id);
}

TEST_F(peer, is_reached_from_an_address_and_by_a_device)
{
	self->cmd.local = kx_addr(kx_address(), 0);
	snprintf((char *)self->cmd.device, sizeof(self->cmd.device), "%s", kx_device());
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, needs_a_wellformed_address)
{
	self->cmd.remote.family = 0;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd = good(PORT);
	self->cmd.remote.family = AF_UNIX;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd = good(PORT);
	self->cmd.remote.addr[15] = 1;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, needs_a_wellformed_own_address)
{
	self->cmd.local = kx_addr(kx_address(), 1000);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd.local = kx_addr(kx_address6(), 0);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd.local = (struct kxfer_addr) { .addr = { 1 } };
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, refuses_a_device_name_without_end)
{
	memset(self->cmd.device, 'd', sizeof(self->cmd.device));
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, refuses_a_service_type_that_is_not_meant)
{
	self->cmd.tos = 8;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, refuses_a_service_type_beyond_255)
{
	self->cmd.flags = KXFER_PEER_F_TOS;
	self->cmd.tos = 256;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, refuses_an_unknown_context)
{
	self->cmd.context = KXFER_CONTEXT_UNBOUND + 1;
	EXPECT_EQ(-EOPNOTSUPP, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, needs_a_timeout_in_range)
{
	self->cmd.timeout_ms = 0;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd.timeout_ms = 60001;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd.timeout_ms = 60000;
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, beyond_the_number_allowed_is_refused)
{
	struct kxfer_query query;
	uint32_t i;

	test_cmd_query(self->fd, &query);
	for (i = 0; i < query.max_peers; i++)
		test_cmd_peer_open(self->fd, kx_addr(kx_address(), PORT), &self->id);
	test_err_peer_open(EDQUOT, self->fd, kx_addr(kx_address(), PORT), &self->id);
	test_cmd_peer_close(self->fd, 1);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), PORT), &self->id);
}

/* ---- several paths ---- */

static void set_via(struct kxfer_peer_open *cmd, const struct kxfer_path *via, uint32_t nr)
{
	cmd->loss_ms = 1000;
	cmd->via = (uintptr_t)via;
	cmd->nr_via = nr;
}

TEST_F(peer, is_opened_over_the_first_path_that_works)
{
	struct kxfer_path via[KXFER_MAX_VIA] = {};
	struct kxfer_peer_open only = good(PORT);
	int i;

	for (i = 0; i < KXFER_MAX_VIA - 1; i++)
		via[i].remote = kx_addr(kx_address(), PORT + 100 + i);
	via[i].remote = kx_addr(kx_address(), PORT);
	ASSERT_EQ(0, open_peer(self->fd, &only));
	self->cmd.remote.port = PORT + 99;
	set_via(&self->cmd, via, KXFER_MAX_VIA);
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(only.link, self->cmd.link);
	/* Of several that do not work the last one says why. */
	via[KXFER_MAX_VIA - 1].remote.port = PORT + 98;
	EXPECT_EQ(-ECONNREFUSED, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, needs_wellformed_paths)
{
	struct kxfer_path via[2] = {};

	via[0].remote = kx_addr(kx_address(), PORT);
	set_via(&self->cmd, via, 2);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	via[1] = via[0];
	via[1].local = kx_addr(kx_address(), 1000);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	via[1].local = kx_addr(kx_address6(), 0);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	via[1].local = (struct kxfer_addr) { .addr = { 1 } };
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	via[1].local = (struct kxfer_addr) {};
	memset(via[1].device, 'd', sizeof(via[1].device));
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	via[1].device[0] = 0;
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, refuses_paths_that_are_not_there)
{
	struct kxfer_path via[KXFER_MAX_VIA + 1] = {};

	set_via(&self->cmd, NULL, 1);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	set_via(&self->cmd, via, 0);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	set_via(&self->cmd, via, KXFER_MAX_VIA + 1);
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	set_via(&self->cmd, (void *)8, 1);
	EXPECT_EQ(-EFAULT, open_peer(self->fd, &self->cmd));
}

/* Without a line a peer would not know what to do on another path. */
TEST_F(peer, of_several_paths_needs_jobs_that_outlive_a_link)
{
	struct kxfer_path via = { .remote = kx_addr(kx_address(), PORT) };

	set_via(&self->cmd, &via, 1);
	self->cmd.loss_ms = 0;
	EXPECT_EQ(-EINVAL, open_peer(self->fd, &self->cmd));
	self->cmd.loss_ms = 1;
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, is_closed_once_and_by_its_session)
{
	int other = kx_open();

	ASSERT_LE(0, other);
	test_err_peer_close(ENOENT, self->fd, 0);
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	test_err_peer_close(ENOENT, other, self->cmd.peer);
	test_cmd_peer_close(self->fd, self->cmd.peer);
	test_err_peer_close(ENOENT, self->fd, self->cmd.peer);
	close(other);
}

TEST_F(peer, with_a_target_is_busy)
{
	uint32_t target;

	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	test_cmd_target_open(self->fd, self->cmd.peer, KXFER_PING_NAME, 0, &target);
	test_err_peer_close(EBUSY, self->fd, self->cmd.peer);
	test_cmd_target_close(self->fd, target);
	test_cmd_peer_close(self->fd, self->cmd.peer);
}

/* It has no route there; tests/guest/netns has namespaces with one. */
TEST_F(peer, is_looked_for_in_the_network_namespace_of_the_session)
{
	int inside;

	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	inside = kx_open();
	ASSERT_LE(0, inside);
	EXPECT_EQ(-EHOSTUNREACH, open_peer(inside, &self->cmd));
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
	close(inside);
}

/* ---- listing ---- */

TEST_F(peer, lists_exports_page_by_page)
{
	struct kxfer_peer_export exports[8];
	uint64_t cursor = 0;
	uint32_t region, export_id, seen = 0;
	void *memory = kx_alloc(4096);
	char name[16];
	int i, nr;

	ASSERT_NE(NULL, memory);
	test_cmd_region_add(self->fd, memory, 4096, 0, &region);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "listed-%02d", i);
		test_cmd_export_add(self->fd, region, 0, 4096, KXFER_RIGHT_READ, name,
				    &export_id);
	}
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	while ((nr = kx_peer_list(self->fd, self->cmd.peer, exports, 8, &cursor)) > 0) {
		for (i = 0; i < nr; i++) {
			snprintf(name, sizeof(name), "listed-%02u", seen);
			if (strncmp((char *)exports[i].name, "listed-", 7))
				continue;
			EXPECT_STREQ(name, (char *)exports[i].name);
			EXPECT_EQ(4096, exports[i].length);
			EXPECT_EQ(KXFER_RIGHT_READ, exports[i].rights);
			seen++;
		}
	}
	EXPECT_EQ(0, nr);
	EXPECT_EQ(40, seen);
}

TEST_F(peer, list_needs_room_and_a_timeout_in_range)
{
	struct kxfer_peer_export export;
	struct kxfer_peer_list cmd = { .size = sizeof(cmd) };
	uint64_t cursor = 0;

	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	test_err_peer_list(EINVAL, self->fd, self->cmd.peer, &export, 0, &cursor);
	test_err_peer_list(EINVAL, self->fd, self->cmd.peer, &export, 1025, &cursor);
	cmd.peer = self->cmd.peer;
	cmd.exports = (uintptr_t)&export;
	cmd.nr = 1;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_PEER_LIST, &cmd));
	cmd.timeout_ms = 60001;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_PEER_LIST, &cmd));
}

TEST_F(peer, list_needs_a_peer)
{
	struct kxfer_peer_export export;
	uint64_t cursor = 0;

	test_err_peer_list(ENOENT, self->fd, 77, &export, 1, &cursor);
}

TEST_F(peer, list_that_cannot_be_stored_fails)
{
	void *memory = kx_alloc(4096);
	uint32_t region, export_id;
	uint64_t cursor = 0;

	test_cmd_region_add(self->fd, memory, 4096, 0, &region);
	test_cmd_export_add(self->fd, region, 0, 1, KXFER_RIGHT_READ, "stored", &export_id);
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	test_err_peer_list(EFAULT, self->fd, self->cmd.peer, NULL, 1, &cursor);
}

/* ---- peers that cannot be reached ---- */

/* PEER_OPEN's result for a refusal by InfiniBand's communication manager with @reason. */
static uint32_t refusal_of_transport(uint32_t reason)
{
	return strcmp(kx_provider(), "siw") ? KXFER_REFUSAL_TRANSPORT | reason :
					      KXFER_REFUSAL_NONE;
}

TEST_F(peer, without_a_listener_refuses_the_connection)
{
	struct kxfer_peer_open cmd = good(NO_LISTENER);

	EXPECT_EQ(-ECONNREFUSED, open_peer(self->fd, &cmd));
	/* IB_CM_REJ_INVALID_SERVICE_ID; iWARP has no reasons. */
	EXPECT_EQ(refusal_of_transport(8), cmd.refusal);
	EXPECT_EQ(-ECONNREFUSED, open_peer(self->fd, &cmd));
}

TEST_F(peer, without_a_route_is_unreachable)
{
	test_err_peer_open(EHOSTUNREACH, self->fd, kx_addr("192.0.2.77", PORT), &self->id);
}

/* rdma_cm takes the address for a neighbour; TCP, below siw, looks for a route. */
TEST_F(peer, without_a_route_from_an_address_is_unreachable)
{
	bool siw = !strcmp(kx_provider(), "siw");

	self->cmd.local = kx_addr(kx_address(), 0);
	self->cmd.remote = kx_addr("192.0.2.77", PORT);
	self->cmd.timeout_ms = 1000;
	EXPECT_EQ(siw ? -EHOSTUNREACH : -ETIMEDOUT, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, without_a_device_on_the_way_is_unreachable)
{
	ASSERT_EQ(0, system("ip link add lonely type dummy && ip link set lonely up && "
			    "ip addr add 192.0.2.1/24 dev lonely"));
	EXPECT_EQ(-EHOSTUNREACH, kx_peer_open(self->fd, kx_addr("192.0.2.77", PORT),
					      &self->id));
	ASSERT_EQ(0, system("ip link del lonely"));
}

TEST_F(peer, from_an_address_of_another_node_is_refused)
{
	self->cmd.local = kx_addr("10.77.0.99", 0);
	EXPECT_EQ(-EADDRNOTAVAIL, open_peer(self->fd, &self->cmd));
}

TEST_F(peer, by_another_device_is_refused)
{
	strcpy((char *)self->cmd.device, "mlx9_9");
	EXPECT_EQ(-EADDRNOTAVAIL, open_peer(self->fd, &self->cmd));
}

/* ---- servers that are no peers ---- */

FIXTURE(stranger)
{
	int fd;
	struct raw_server server;
	struct kxfer_peer_open cmd;
	uint16_t port;
};

FIXTURE_SETUP(stranger)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	/* A separate port, so that no link of another test is shared. */
	self->port = kx_own_port();
	self->cmd = good(self->port);
	raw_server_init(&self->server);
	ASSERT_EQ(0, raw_server_start(&self->server, self->port));
}

FIXTURE_TEARDOWN(stranger)
{
	close(self->fd);
	raw_server_stop(&self->server);
}

static void refuse(struct raw_server *server, enum kxfer_refusal reason)
{
	server->refusal.reason = htobe16(reason);
	server->refuse_with = sizeof(server->refusal);
}

TEST_F(stranger, that_speaks_the_protocol_is_a_peer)
{
	EXPECT_EQ(0, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(2, self->server.nr_connections);
}

TEST_F(stranger, is_reached_from_a_port_below_1024)
{
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	EXPECT_GT(1024, self->server.source_port);
	EXPECT_LT(0, self->server.source_port);
}

TEST_F(stranger, sees_the_same_cookie_on_both_lanes)
{
	uint8_t zeros[KXFER_WIRE_COOKIE_SIZE] = "";

	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(0, memcmp(self->server.hello[0].cookie, self->server.hello[1].cookie,
			    KXFER_WIRE_COOKIE_SIZE));
	EXPECT_NE(0, memcmp(self->server.hello[0].cookie, zeros, KXFER_WIRE_COOKIE_SIZE));
	EXPECT_EQ(self->server.hello[0].epoch, self->server.hello[1].epoch);
}

TEST_F(stranger, that_grants_one_lane_is_asked_for_more_and_gets_one)
{
	ASSERT_EQ(0, open_peer(self->fd, &self->cmd));
	EXPECT_LE(2, be16toh(self->server.hello[0].nr_lanes));
	EXPECT_EQ(1, be16toh(self->server.hello[1].nr_lanes));
	EXPECT_EQ(1, self->server.hello[1].lane);
}

TEST_F(stranger, that_grants_no_lane_is_no_peer)
{
	self->server.welcome.nr_lanes = 0;
	EXPECT_EQ(-EPROTO, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(1, self->server.nr_connections);
}

TEST_F(stranger, that_grants_more_lanes_than_asked_for_is_no_peer)
{
	self->server.welcome.nr_lanes = htobe16(KXFER_WIRE_LANES_MAX + 1);
	EXPECT_EQ(-EPROTO, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(1, self->server.nr_connections);
}

/* The server accepts one data lane, although it granted two. */
TEST_F(stranger, that_refuses_a_lane_it_granted_is_no_peer)
{
	self->server.welcome.nr_lanes = htobe16(2);
	EXPECT_EQ(-ECONNREFUSED, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(3, self->server.nr_connections);
	EXPECT_EQ(2, self->server.hello[1].lane);
}

TEST_F(stranger, of_another_protocol_version_is_told_apart)
{
	refuse(&self->server, KXFER_REFUSAL_VERSION);
	self->server.refusal.version_min = htobe16(7);
	self->server.refusal.version_max = htobe16(9);
	EXPECT_EQ(-EPROTONOSUPPORT, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(KXFER_REFUSAL_VERSION, self->cmd.refusal);
}

TEST_F(stranger, that_refuses_the_port_denies_access)
{
	refuse(&self->server, KXFER_REFUSAL_PORT);
	EXPECT_EQ(-EACCES, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(KXFER_REFUSAL_PORT, self->cmd.refusal);
}

TEST_F(stranger, that_refuses_the_cookie_has_lost_the_link)
{
	refuse(&self->server, KXFER_REFUSAL_COOKIE);
	EXPECT_EQ(-ECONNRESET, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(KXFER_REFUSAL_COOKIE, self->cmd.refusal);
}

TEST_F(stranger, with_too_many_links_is_at_its_limit)
{
	refuse(&self->server, KXFER_REFUSAL_LIMIT);
	EXPECT_EQ(-EDQUOT, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(KXFER_REFUSAL_LIMIT, self->cmd.refusal);
}

TEST_F(stranger, without_resources_is_at_its_limit)
{
	refuse(&self->server, KXFER_REFUSAL_RESOURCES);
	EXPECT_EQ(-EDQUOT, open_peer(self->fd, &self->cmd));
	EXPECT_EQ(KXFER_REFUSAL_RESOURCES, self->cmd.refusal);
}

TEST_F(stranger, that_shuts_down_refuses_the_connection)
{
	refuse(&self->server, KXFER_REFUSAL_CLOSING);
	EXPECT_EQ(-ECONNREFUSED, open_peer(self->fd, &self->cmd));
}

TEST_F(stranger, that_refuses_in_other_words_refuses_the_connection)
{
	refuse(&self->server, KXFER_REFUSAL_VERSION);
	self->server.refusal.magic = htobe32(0x12345678);
	EXPECT_EQ(-ECONNREFUSED, open_peer(self->fd, &self->cmd));
	/* IB_CM_REJ_CONSUMER_DEFINED */
	EXPECT_EQ(refusal_of_transport(28), self->cmd.refusal);
}

TEST_F(stranger, that_refuses_for_an_unknown_reason_denies_access)
{
	refuse(&self->server, 999);
	EXPECT_EQ(-EACCES, open_peer(self->fd, &self->cmd));
}

TEST_F(stranger, that_welcomes_with_nonsense_breaks_the_protocol)
{
	self->server.welcome.magic = htobe32(0x12345678);
	EXPECT_EQ(-EPROTO, open_peer(self->fd, &self->cmd));
}

TEST_F(stranger, that_welcomes_another_version_is_told_apart)
{
	self->server.welcome.version = htobe16(2);
	EXPECT_EQ(-EPROTONOSUPPORT, open_peer(self->fd, &self->cmd));
}

TEST_F(stranger, that_does_not_answer_runs_into_the_timeout)
{
	uint64_t began = kx_now_ns();

	self->server.deaf = true;
	self->cmd.timeout_ms = 300;
	EXPECT_EQ(-ETIMEDOUT, open_peer(self->fd, &self->cmd));
	EXPECT_LE(kx_least_ns(300), kx_now_ns() - began);
	EXPECT_GE(3000 * 1000000ULL, kx_now_ns() - began);
}

TEST_F(stranger, that_does_not_answer_HELLO_runs_into_the_timeout)
{
	self->server.mute = true;
	self->cmd.timeout_ms = 300;
	EXPECT_EQ(-ETIMEDOUT, open_peer(self->fd, &self->cmd));
}

TEST_HARNESS_MAIN
