// SPDX-License-Identifier: GPL-2.0
/*
 * A protection domain outlives the objects in it: a link ends while one of its exports is being
 * withdrawn. The peer answers REVOKE, so the exporter takes the exposure off the lists and
 * deregisters it. Before the deregistration the peer or the device goes away: the exporter is
 * delayed (kmod/base/fault.h) until the link's QPs are gone.
 */
#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/fault.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH		(16 * 4096)
#define SITE		"EXPORT_WITHDRAW"	/* off the lists, not deregistered yet */
#define DELAY_MS	(3000 * kx_slowness())	/* longer than a teardown takes */
#define STEP_MS		(10000 * kx_slowness())
#define IDLE_MS		40000			/* an idle link is closed after 30 s */
#define SETTLE_MS	300			/* for objects that would end after the QPs */

FIXTURE(pd)
{
	struct kx_live before;
	struct raw_link link;
	char netdev[32];
	uint8_t *memory;
	uint64_t listener;
	uint32_t export_id;
	uint32_t region;
	pthread_t deleter;
	int server;
	int ret;
	int fd;
};

/* Number of kernel objects of a kind and owner, as the RDMA core counts them; -1: unknown. */
static int nr_objects(const char *kind, const char *owner)
{
	char command[128];
	FILE *pipe;
	int nr = -1;

	snprintf(command, sizeof(command), "rdma resource show %s | grep -c 'comm .%s.'", kind,
		 owner);
	pipe = popen(command, "re");
	if (pipe && fscanf(pipe, "%d", &nr) != 1)
		nr = -1;
	if (pipe)
		pclose(pipe);
	return nr;
}

static int nr_pds(void)
{
	return nr_objects("pd", "kxfer");
}

/* The RDMA core counts the QPs of rdma_cm ids as owned by rdma_cm. */
static int nr_qps(void)
{
	return nr_objects("qp", "rdma_cm");
}

FIXTURE_SETUP(pd)
{
	self->server = -1;
	self->fd = -1;
	if (geteuid() || !fault_available() ||
	    !baseline_netdev(kx_device(), self->netdev, sizeof(self->netdev)))
		SKIP(return, "needs root, debugfs and a software RDMA device");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	/* Wait for the end of links of earlier tests. */
	ASSERT_TRUE(kx_wait_until(!kx_counter(self->fd, "live_links"), IDLE_MS));
	ASSERT_EQ(0, kx_live_take(self->fd, &self->before));
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	self->server = kx_open();
	test_cmd_region_add(self->server, self->memory, LENGTH, 0, &self->region);
	test_cmd_export_add(self->server, self->region, 0, LENGTH, KXFER_RIGHT_READ, "pd",
			    &self->export_id);
	test_cmd_listen_add(self->server, kx_addr(kx_address(), kx_own_port()), 0,
			    &self->listener);
}

FIXTURE_TEARDOWN(pd)
{
	const char *left;

	if (self->fd < 0)
		return;
	fault_reset();
	raw_link_close(&self->link);
	if (self->deleter)
		pthread_join(self->deleter, NULL);
	close(self->server);
	kx_free(self->memory, LENGTH);
	left = kx_live_wait(self->fd, &self->before, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	close(self->fd);
}

static void *delete_export(void *argument)
{
	FIXTURE_DATA(pd) *self = argument;

	self->ret = kx_export_del(self->server, self->export_id);
	return NULL;
}

static bool is_late(void)
{
	struct delay_counts counts;

	return !delay_counts(SITE, &counts) && counts.now == 1;
}

static void begin_withdrawal(struct __test_metadata *_metadata, FIXTURE_DATA(pd) *self)
{
	ASSERT_EQ(0, delay_arm(SITE, DELAY_MS, 1));
	ASSERT_EQ(0, pthread_create(&self->deleter, NULL, delete_export, self));
}

static void end_withdrawal(struct __test_metadata *_metadata, FIXTURE_DATA(pd) *self)
{
	/* The delay must still last, or the test has proved nothing. */
	EXPECT_TRUE(is_late());
	pthread_join(self->deleter, NULL);
	self->deleter = 0;
	EXPECT_EQ(0, self->ret);
}

TEST_F_TIMEOUT(pd, stays_while_a_withdrawal_deregisters_and_the_peer_leaves, 120)
{
	struct kxfer_wire_grant_answer grant;
	int pds;

	ASSERT_EQ(0, raw_link_open(&self->link, kx_own_port()));
	ASSERT_EQ(KXFER_WIRE_OK, raw_grant(&self->link, "pd", 0, KXFER_RIGHT_READ, &grant));
	pds = nr_pds();
	ASSERT_LE(1, pds);
	ASSERT_LE(2, nr_qps());
	begin_withdrawal(_metadata, self);
	ASSERT_TRUE(kx_wait_until((raw_serve(&self->link, 20), is_late()), STEP_MS));
	EXPECT_EQ(1, self->link.nr_revokes);
	raw_link_close(&self->link);
	/* Only the PD is left to be freed. */
	EXPECT_TRUE(kx_wait_until(!nr_qps(), STEP_MS));
	kx_sleep_ms(SETTLE_MS);
	EXPECT_EQ(pds, nr_pds());
	end_withdrawal(_metadata, self);
	EXPECT_TRUE(kx_wait_until(!nr_pds(), STEP_MS));
}

/* The peer is the module too, because a device stays while user verbs have it open. */
TEST_F_TIMEOUT(pd, stays_while_a_withdrawal_deregisters_and_the_device_goes, 120)
{
	uint32_t peer, target;
	int client = kx_open();
	int status;
	pid_t child;

	test_cmd_peer_open(client, kx_addr(kx_address(), kx_own_port()), &peer);
	test_cmd_target_open(client, peer, "pd", KXFER_RIGHT_READ, &target);
	begin_withdrawal(_metadata, self);
	ASSERT_TRUE(kx_wait_until(is_late(), STEP_MS));
	child = fork();
	if (!child) {
		execlp("rdma", "rdma", "link", "del", kx_device(), NULL);
		_exit(127);
	}
	kx_sleep_ms(2 * SETTLE_MS);
	EXPECT_EQ(0, waitpid(child, &status, WNOHANG));
	end_withdrawal(_metadata, self);
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, kx_counter(self->fd, "live_mrs"));
	EXPECT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", kx_device(),
				      kx_provider(), self->netdev));
	close(client);
}

TEST_HARNESS_MAIN
