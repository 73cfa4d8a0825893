// SPDX-License-Identifier: GPL-2.0
/*
 * Two network namespaces with a wire between them: a node each, as far as the module goes. Data,
 * withdrawal, losses, silence, and which namespace finds what. Needs a driver that sends from any
 * namespace: rxe from 7.2 on.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "rigs/load.h"
#include "rigs/nets.h"
#include "rigs/rig.h"

#define LENGTH		(1024 * 1024)
#define LOSS_MS		60000	/* loss_ms: longer than the wire is down */
#define SILENCE_MS	25000	/* until a silent peer is given up: 12 s, and the load */
#define DOWN_MS		14000	/* longer than until a silent peer is given up */
#define LOST_MS		40000	/* as long as a job may take with losses */

FIXTURE(wire)
{
	struct baseline baseline;
	struct nets nets;
	struct rig rig;
	int fd;
};

FIXTURE_VARIANT(wire)
{
	uint32_t loss_ms;
};

FIXTURE_VARIANT_ADD(wire, plain) { .loss_ms = 0 };
FIXTURE_VARIANT_ADD(wire, line) { .loss_ms = LOSS_MS };

FIXTURE_SETUP(wire)
{
	struct rig_options options = {
		.length = LENGTH,
		.nets = &self->nets,
		.loss_ms = variant->loss_ms,
	};

	self->fd = -1;
	self->rig.server = -1;
	self->rig.client = -1;
	self->nets = (struct nets) { .home = -1, .sides = { -1, -1 } };
	if (geteuid() || !nets_carry())
		SKIP(return, "needs root, and rxe of Linux 7.2");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, nets_make(&self->nets));
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

/* The namespaces die with their sessions: no link holds them. */
FIXTURE_TEARDOWN(wire)
{
	if (self->fd < 0)
		return;
	rig_close(&self->rig);
	EXPECT_TRUE(nets_remove(&self->nets));
	EXPECT_EQ(NULL, baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS));
	close(self->fd);
}

static int netem(const struct nets *nets, int side, const char *what)
{
	char command[128];

	snprintf(command, sizeof(command), "tc qdisc replace dev %s root netem %s",
		 side ? NETS_NETDEV_1 : NETS_NETDEV_0, what);
	return nets_run(nets, side, command);
}

/* Lets through nothing, or all. Return: 0 or -errno */
static int set_silent(const struct nets *nets, bool silent)
{
	const char *what = silent ? "loss 100%" : "delay 0ms";

	return netem(nets, 0, what) ?: netem(nets, 1, what);
}

#define EXPECT_MOVED(op_) do {								\
	const char *fault__;								\
											\
	rig_prepare(&self->rig, op_);							\
	fault__ = rig_try(&self->rig, op_, 4096, 8192, LENGTH - 3 * 8192);		\
	EXPECT_EQ(NULL, fault__)							\
		TH_LOG("%s", fault__);							\
} while (0)

/* The listener stays. Return: 0 or -errno */
static int reopen(struct rig *rig)
{
	close(rig->client);
	rig->client = -1;
	buffer_free(&rig->here);
	return rig_open_client(rig);
}

TEST_F_TIMEOUT(wire, carries_data, 120)
{
	EXPECT_MOVED(KXFER_OP_WRITE);
	EXPECT_MOVED(KXFER_OP_READ);
	EXPECT_EQ(0, kx_notify(self->rig.client, self->rig.target, 17));
}

TEST_F_TIMEOUT(wire, carries_data_in_spite_of_losses, 240)
{
	ASSERT_EQ(0, netem(&self->nets, 0, "loss 0.5% delay 1ms"));
	ASSERT_EQ(0, netem(&self->nets, 1, "loss 0.5% delay 1ms"));
	EXPECT_MOVED(KXFER_OP_WRITE);
	EXPECT_MOVED(KXFER_OP_READ);
}

TEST_F_TIMEOUT(wire, brings_withdrawals, 120)
{
	EXPECT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	EXPECT_EQ(-EKEYREVOKED, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 4096));
}

/* Of whom nothing is heard is given up, on either side of the wire. */
TEST_F_TIMEOUT(wire, that_is_silent_is_given_up, 180)
{
	uint64_t lost = kx_counter(self->fd, "links_lost");

	if (variant->loss_ms)
		SKIP(return, "a line would wait");
	ASSERT_EQ(0, set_silent(&self->nets, true));
	EXPECT_EQ(-ECONNRESET, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "links_lost") >= lost + 2, SILENCE_MS));
	ASSERT_EQ(0, set_silent(&self->nets, false));
	ASSERT_EQ(0, reopen(&self->rig));
	EXPECT_MOVED(KXFER_OP_WRITE);
}

/*
 * rxe gives up its QP 1 for good when it has no route to send by, so that nothing connects through
 * the device any more. Jobs end all the same, and so do the namespaces (teardown).
 */
TEST_F_TIMEOUT(wire, that_is_down_ends_jobs, 180)
{
	if (variant->loss_ms)
		SKIP(return, "a line would wait");
	ASSERT_EQ(0, nets_run(&self->nets, 1, "ip link set " NETS_NETDEV_1 " down"));
	EXPECT_EQ(-ECONNRESET, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH));
}

/* Its line connects anew, in the namespace of its session. */
TEST_F_TIMEOUT(wire, that_comes_back_has_jobs_go_on, 240)
{
	uint64_t resumed = kx_counter(self->fd, "jobs_resumed");
	struct kxfer_completion completion = {};
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, 0, 0, LENGTH);

	if (!variant->loss_ms)
		SKIP(return, "needs a line");
	ASSERT_EQ(0, set_silent(&self->nets, true));
	test_cmd_submit(1, self->rig.client, &job, 1);
	kx_sleep_ms(DOWN_MS);
	ASSERT_EQ(0, set_silent(&self->nets, false));
	test_cmd_reap(1, self->rig.client, &completion, 1, 1, LOST_MS);
	EXPECT_EQ(0, completion.status);
	EXPECT_LT(resumed, kx_counter(self->fd, "jobs_resumed"));
	EXPECT_MOVED(KXFER_OP_READ);
}

/* ---- who finds what ---- */

static int open_from(int fd, const char *key, uint32_t *peer)
{
	uint32_t refusal;

	return kx_peer_open_key(fd, kx_addr(NETS_ADDRESS_0, KXFER_PORT), key, peer, &refusal);
}

/* The server's name is taken at home and at the client's, by exports with other content. */
TEST_F_TIMEOUT(wire, leads_to_names_of_its_other_end, 120)
{
	int fd = nets_open(&self->nets, 1), home = kx_open();
	uint8_t *other = kx_alloc(LENGTH);
	uint32_t region, id;

	ASSERT_NE(NULL, other);
	ASSERT_LE(0, fd);
	memset(other, 0xee, LENGTH);
	memset(self->rig.there.bytes, 0x11, LENGTH);
	test_cmd_region_add(fd, other, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_export_add(fd, region, 0, LENGTH, KXFER_RIGHT_ALL, self->rig.name, &id);
	test_cmd_region_add(home, other, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_export_add(home, region, 0, LENGTH, KXFER_RIGHT_ALL, self->rig.name, &id);
	test_cmd_target_open(self->rig.client, self->rig.peer, self->rig.name, 0,
			     &self->rig.target);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 4096));
	EXPECT_EQ(0x11, self->rig.here.bytes[0]);
	EXPECT_EQ(0x11, self->rig.here.bytes[4095]);
	close(fd);
	close(home);
}

TEST_F_TIMEOUT(wire, does_not_lead_to_names_of_other_namespaces, 120)
{
	struct kxfer_peer_export exports[16];
	uint32_t region, id, target;
	uint64_t cursor = 0;
	int home = kx_open();

	test_cmd_region_add(home, self->rig.there.bytes, 4096, 0, &region);
	test_cmd_export_add(home, region, 0, 4096, KXFER_RIGHT_READ, "of-home", &id);
	test_err_target_open(ENOENT, self->rig.client, self->rig.peer, "of-home", 0, &target);
	test_cmd_target_open(self->rig.client, self->rig.peer, KXFER_PING_NAME, 0, &target);
	EXPECT_EQ(1, kx_peer_list(self->rig.client, self->rig.peer, exports, 16, &cursor));
	EXPECT_STREQ(self->rig.name, (const char *)exports[0].name);
	close(home);
}

/* The client's link is there, and equal but for the namespace. */
TEST_F_TIMEOUT(wire, is_not_shared_with_another_namespace, 120)
{
	uint32_t peer;

	EXPECT_EQ(-EHOSTUNREACH, open_from(self->fd, NETS_KEY, &peer));
}

TEST_F_TIMEOUT(wire, is_listed_at_its_ends, 120)
{
	struct kxfer_info_link links[16];
	uint64_t cursor = 0;

	EXPECT_EQ(1, kx_info(self->rig.client, KXFER_INFO_LINKS, links, sizeof(*links), 16,
			     &cursor));
	EXPECT_TRUE(links[0].flags & KXFER_LINK_INITIATOR);
	EXPECT_STREQ(NETS_DEVICE_1, (const char *)links[0].device);
	cursor = 0;
	EXPECT_EQ(1, kx_info(self->rig.server, KXFER_INFO_LINKS, links, sizeof(*links), 16,
			     &cursor));
	EXPECT_FALSE(links[0].flags & KXFER_LINK_INITIATOR);
	EXPECT_STREQ(NETS_DEVICE_0, (const char *)links[0].device);
}

TEST_F_TIMEOUT(wire, needs_the_key, 120)
{
	uint32_t peer;
	int fd = nets_open(&self->nets, 1);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EKEYREJECTED, open_from(fd, "", &peer));
	close(fd);
}

TEST_HARNESS_MAIN
