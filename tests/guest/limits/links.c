// SPDX-License-Identifier: GPL-2.0
/*
 * Links belong to the node. One user makes as many as it may, up and connecting; other users
 * can still make theirs. A node at its limit tells the peer.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/tenant.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define TAKE_MS		60000
#define NOBODY		"10.77.0.99"	/* an address in dummy0's network without a host */
#define OTHER_PORT	9100

FIXTURE(links)
{
	struct stage stage;
	struct tenant tenant;
	bool moved;
};

FIXTURE_SETUP(links)
{
	if (geteuid())
		SKIP(return, "needs root");
	/* An idle link that the tenant's uid has made before would be charged to it. */
	ASSERT_EQ(0, stage_reload());
	ASSERT_EQ(0, stage_open(&self->stage));
}

static void move_address_back(void)
{
	baseline_command("rdma link del %s1; ip link del dummy1; "
			 "ip addr add %s/24 dev dummy0", kx_provider(), kx_address());
}

FIXTURE_TEARDOWN(links)
{
	tenant_end(&self->tenant);
	if (self->moved)
		move_address_back();
	/* Links stay up for half a minute after their last user; reloading the module ends them. */
	rig_close(&self->stage.rig);
	close(self->stage.fd);
	EXPECT_EQ(0, stage_reload());
	self->stage.fd = kx_open();
	ASSERT_LE(0, self->stage.fd);
	EXPECT_EQ(0, kx_counter(self->stage.fd, "live_links"));
	EXPECT_EQ(0, kx_counter(self->stage.fd, "live_targets"));
	close(self->stage.fd);
}

#define EXPECT_OTHERS_WORK() do {						\
	const char *wrong__ = stage_works(&self->stage);			\
										\
	EXPECT_EQ(NULL, wrong__) TH_LOG("%s", wrong__);				\
} while (0)

/* A separate link for each service type. */
static int open_link(int fd, const char *address, uint32_t tos, uint32_t timeout_ms,
		     uint32_t *refusal)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(address, 0),
		.flags = KXFER_PEER_F_TOS,
		.tos = tos,
		.timeout_ms = timeout_ms,
	};
	int ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);

	*refusal = cmd.refusal;
	return ret;
}

static void take_links(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), ret;
	uint32_t refusal;

	while (!(ret = open_link(fd, kx_address(), 100 + report->nr, KX_TIMEOUT_MS,
				 &refusal)) && report->nr < 100)
		report->nr++;
	report->error = -ret;
}

TEST_F_TIMEOUT(links, one_uid_makes_64, 90)
{
	uint64_t before = kx_counter(self->stage.fd, "live_links");
	uint32_t refusal;

	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_links, TAKE_MS));
	EXPECT_EQ(64, self->tenant.report.nr);
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	EXPECT_EQ(before + 128, kx_counter(self->stage.fd, "live_links"));
	EXPECT_OTHERS_WORK();
	/* Also over a new link. */
	EXPECT_EQ(0, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS, &refusal));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* The tenant does not wait for its connections: each attempt continues for 15 s. */
static void take_connecting(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), ret;
	uint32_t refusal;

	while ((ret = open_link(fd, NOBODY, report->nr, 1, &refusal)) == -ETIMEDOUT &&
	       report->nr < 200)
		report->nr++;
	report->error = -ret;
}

TEST_F_TIMEOUT(links, that_connect_count_too, 90)
{
	uint32_t refusal;

	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_connecting, TAKE_MS));
	EXPECT_EQ(64, self->tenant.report.nr);
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(0, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS, &refusal));
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* The peer gets the node's limit as the reason of the refusal. */
TEST_F_TIMEOUT(links, beyond_the_limit_are_refused, 60)
{
	struct raw_link first = {}, second = {};
	uint32_t refusal = 0;
	uint64_t refused;

	ASSERT_EQ(0, raw_link_open(&first, KXFER_PORT));
	/* Accepted links are now the stage's and this one; the node has made one link. */
	ASSERT_EQ(0, stage_limit("max_links", 2));
	refused = kx_counter(self->stage.fd, "links_refused");
	EXPECT_EQ(-EDQUOT, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS,
				     &refusal));
	EXPECT_EQ(KXFER_REFUSAL_LIMIT, refusal);
	EXPECT_EQ(-ECONNREFUSED, raw_link_connect(&second, KXFER_PORT));
	EXPECT_EQ(KXFER_REFUSAL_LIMIT, second.control.refusal);
	EXPECT_EQ(refused + 2, kx_counter(self->stage.fd, "links_refused"));
	raw_link_close(&second);
	/* Existing links go on, and there is room again afterwards. */
	EXPECT_OTHERS_WORK();
	ASSERT_EQ(0, stage_limit("max_links", 3));
	EXPECT_EQ(0, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS, &refusal));
	raw_link_close(&first);
}

/* For links that this node makes, the limit is reported without a peer. */
TEST_F_TIMEOUT(links, beyond_the_limit_are_not_made, 60)
{
	uint32_t refusal = 1;

	ASSERT_EQ(0, stage_limit("max_links", 1));
	EXPECT_EQ(-EDQUOT, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS,
				     &refusal));
	EXPECT_EQ(KXFER_REFUSAL_NONE, refusal);
	EXPECT_OTHERS_WORK();
}

#define HALF_OPEN	64	/* connections of a peer */
#define PING_GRANTS	1024
#define NO_GRANT_MS	10000
#define HALF_OPEN_MS	3000

/* One address of this node is a peer, another address is another peer. */
static int open_link6(int fd, uint32_t tos)
{
	uint32_t refusal;

	return open_link(fd, kx_address6(), tos, KX_TIMEOUT_MS, &refusal);
}

TEST_F_TIMEOUT(links, peer_has_a_bound_of_its_own, 60)
{
	struct raw_link links[2] = {};
	uint32_t refusal = 0;
	uint64_t listener;

	test_cmd_listen_add(self->stage.fd, kx_addr(kx_address6(), 0), 0, &listener);
	ASSERT_EQ(0, stage_limit("max_links_per_peer", 3));
	ASSERT_EQ(0, raw_link_open(&links[0], KXFER_PORT));
	ASSERT_EQ(0, raw_link_open(&links[1], KXFER_PORT));
	EXPECT_EQ(-EDQUOT, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS,
				     &refusal));
	EXPECT_EQ(KXFER_REFUSAL_LIMIT, refusal);
	/* There is room for other peers, and existing links go on. */
	EXPECT_EQ(0, open_link6(self->stage.fd, 250));
	EXPECT_OTHERS_WORK();
	raw_link_close(&links[0]);
	EXPECT_TRUE(kx_wait_until(!open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS,
					     &refusal), 10000));
	raw_link_close(&links[1]);
}

TEST_F_TIMEOUT(links, without_grants_make_room, 90)
{
	struct kxfer_wire_grant_answer grant;
	struct raw_link used = {}, idle = {};
	uint32_t refusal = 0;

	/* The third link is the stage's, which is idle too. */
	ASSERT_EQ(0, raw_link_open(&used, KXFER_PORT));
	ASSERT_EQ(0, raw_grant(&used, self->stage.rig.name, 0, KXFER_RIGHT_READ, &grant));
	ASSERT_EQ(0, raw_link_open(&idle, KXFER_PORT));
	ASSERT_EQ(0, stage_limit("max_links_per_peer", 3));
	EXPECT_EQ(-EDQUOT, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS,
				     &refusal));
	raw_serve(&idle, NO_GRANT_MS / 2 + 250);
	raw_serve(&used, NO_GRANT_MS / 2 + 250);
	EXPECT_EQ(0, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS, &refusal));
	EXPECT_TRUE(kx_wait_until(!open_link(self->stage.fd, kx_address(), 251, KX_TIMEOUT_MS,
					     &refusal), 5000));
	EXPECT_TRUE(raw_dropped(&idle.control, 5000));
	/* One link has a grant, the others are too young to be replaced. */
	EXPECT_EQ(-EDQUOT, open_link(self->stage.fd, kx_address(), 252, KX_TIMEOUT_MS,
				     &refusal));
	EXPECT_EQ(KXFER_REFUSAL_LIMIT, refusal);
	EXPECT_FALSE(raw_dropped(&used.control, 500));
	raw_link_close(&idle);
	raw_link_close(&used);
}

/* One without a grant goes each time; but that is room for none. */
TEST_F_TIMEOUT(links, beyond_a_lowered_bound_go_and_none_comes, 90)
{
	struct raw_link idle = {};
	uint32_t refusal = 0;
	int i;

	ASSERT_EQ(0, raw_link_open(&idle, KXFER_PORT));
	raw_serve(&idle, NO_GRANT_MS + 250);
	ASSERT_EQ(0, stage_limit("max_links_per_peer", 0));
	/* The stage's link may go first. */
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EDQUOT, open_link(self->stage.fd, kx_address(), 250, KX_TIMEOUT_MS,
					     &refusal));
		EXPECT_EQ(KXFER_REFUSAL_LIMIT, refusal);
	}
	EXPECT_TRUE(raw_dropped(&idle.control, 5000));
	raw_link_close(&idle);
}

/* Connections without a HELLO. */
TEST_F_TIMEOUT(links, half_open_are_bounded, 120)
{
	static struct raw_link links[HALF_OPEN + 1];
	uint64_t listener, begin = kx_now_ns();
	int nr;

	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "a process has 28 QPs of siw by user verbs and no more");
	test_cmd_listen_add(self->stage.fd, kx_addr(kx_address6(), 0), 0, &listener);
	for (nr = 0; nr <= HALF_OPEN && !raw_link_connect(&links[nr], KXFER_PORT); nr++)
		;
	/* On a slow machine the first connections may have ended before the last one comes. */
	if (kx_now_ns() - begin < HALF_OPEN_MS * 1000000ULL) {
		EXPECT_EQ(HALF_OPEN, nr);
		EXPECT_EQ(KXFER_REFUSAL_LIMIT, links[nr].control.refusal);
	}
	/* Another peer is served at once, and soon the place of an old connection is free. */
	EXPECT_EQ(0, open_link6(self->stage.fd, 250));
	EXPECT_TRUE(kx_wait_until(!raw_link_connect(&links[HALF_OPEN], KXFER_PORT),
				  2 * HALF_OPEN_MS));
	for (nr = 0; nr <= HALF_OPEN; nr++)
		raw_link_close(&links[nr]);
}

/* Grants of @ping cost memory of the node, which is charged to no user. */
TEST_F_TIMEOUT(links, have_few_grants_of_ping, 60)
{
	struct kxfer_wire_grant_answer grant;
	struct raw_link link = {};
	int nr, ret = KXFER_WIRE_OK;

	ASSERT_EQ(0, raw_link_open(&link, KXFER_PORT));
	for (nr = 0; ret == KXFER_WIRE_OK && nr <= PING_GRANTS; nr++)
		ret = raw_grant(&link, KXFER_PING_NAME, 0, KXFER_RIGHT_READ, &grant);
	EXPECT_EQ(PING_GRANTS + 1, nr);
	EXPECT_EQ(KXFER_WIRE_QUOTA, ret);
	EXPECT_EQ(KXFER_WIRE_OK, raw_grant(&link, self->stage.rig.name, 0, KXFER_RIGHT_READ,
					   &grant));
	raw_link_close(&link);
}

static long long hardware_counter(const char *name)
{
	char path[160];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 kx_device(), name);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%lld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

/* A peer that asks for a timeout of 2.4 hours, and then vanishes. */
TEST_F_TIMEOUT(links, ack_timeout_is_this_nodes_own, 60)
{
	/* Less than 7, the maximum, which rxe takes for endless. */
	struct raw_manners patient = { .ack_timeout = 31, .retry_count = 2 };
	struct raw_link link = {};
	long long before;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "acknowledgements are TCP's");
	before = hardware_counter("retry_exceeded_err");
	ASSERT_LE(0, before);
	ASSERT_EQ(0, raw_link_connect_as(&link, KXFER_PORT, NULL, 0, &patient));
	ASSERT_EQ(0, raw_link_hello(&link));
	ASSERT_EQ(0, raw_link_connect_data(&link));
	/* The connection id stays, but the peer is silent. */
	rdma_destroy_qp(link.control.id);
	/*
	 * PING within 2 s, and 3 tries of half a second. Silence alone would end the link after
	 * 8 s.
	 */
	EXPECT_TRUE(kx_wait_until(hardware_counter("retry_exceeded_err") > before, 7000));
	raw_link_close(&link);
}

static int move_address(void)
{
	return baseline_command("ip link add dummy1 mtu 9000 type dummy && "
				"ip link set dummy1 up && ip addr del %s/24 dev dummy0 && "
				"ip addr add %s/24 dev dummy1 && "
				"rdma link add %s1 type %s netdev dummy1",
				kx_address(), kx_address(), kx_provider(), kx_provider());
}

/*
 * Connects a data lane that arrives on another device than its control lane, because the
 * address has moved. Return: enum kxfer_refusal.
 */
static int connect_to_moved_address(void)
{
	struct kxfer_wire_hello hello;
	struct raw_link link = {};
	struct raw_lane data = {};
	int ret = 0;

	if (raw_link_connect(&link, OTHER_PORT) || raw_link_hello(&link) || move_address())
		return -1;
	hello = raw_hello_data(KXFER_WIRE_DATA, link.cookie, link.epoch);
	/* The listener on the new device needs a moment. */
	kx_wait_until((ret = raw_lane_connect(&data, OTHER_PORT, 0, &hello, sizeof(hello),
					      NULL), !ret || data.refusal), 10000);
	return data.refusal;
}

TEST_F_TIMEOUT(links, without_room_on_the_device_are_refused, 180)
{
	uint64_t listener;
	int status;
	pid_t pid;

	test_cmd_listen_add(self->stage.fd, kx_addr("0.0.0.0", OTHER_PORT), 0, &listener);
	self->moved = true;
	/* In a separate process, because it keeps the device open, which then cannot be removed. */
	pid = fork();
	if (!pid)
		_exit(connect_to_moved_address());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(KXFER_REFUSAL_RESOURCES, WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
