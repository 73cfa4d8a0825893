// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device is removed, or its user is killed, during a run on a dedicated connection:
 * the run ends, nothing is left, and the device can be removed. The same holds with a CQ of the
 * pool, which other connections continue to use.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "peers/responder.h"

#define SLOTS		8
#define STRIDE		4096
#define LENGTH		(SLOTS * STRIDE)
#define RUNNING_MS	300	/* a started run is in progress by then */
#define LONG_MS		20000	/* longer than any run of these tests */

FIXTURE(dedicated)
{
	pid_t responder;
	uint16_t port;
	char device[64];
	char provider[8];
	char netdev[32];
	int fd;
	uint32_t transport;
	uint32_t context;
	uint32_t flags;
	uint32_t memory;
	uint32_t time_limit_ms;
	pthread_t thread;
	volatile bool ended;
	volatile bool connected;
	int ret;
};

FIXTURE_SETUP(dedicated)
{
	snprintf(self->device, sizeof(self->device), "%s", kx_device());
	snprintf(self->provider, sizeof(self->provider), "%s", kx_provider());
	if (geteuid() || !baseline_netdev(self->device, self->netdev, sizeof(self->netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	self->port = responder_spawn(&self->responder);
	ASSERT_NE(0, self->port);
	self->time_limit_ms = LONG_MS;
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(dedicated)
{
	responder_kill(&self->responder);
	close(self->fd);
}

/* SENDs, or WRITEs by rdma_rw, until something ends them. Return: how the run ended. */
static int send_for_long(struct _test_data_dedicated *self, uint16_t port)
{
	uint32_t bytes = self->transport == KXFER_TRANSPORT_UD ? 1024 : STRIDE;
	bool rw = self->memory == KXFER_BENCH_MEMORY_RW;
	struct kxfer_dedicated_open open = {
		.size = sizeof(open),
		.flags = self->flags | (rw ? KXFER_DEDICATED_F_WRITE : 0),
		.remote = kx_addr(kx_address(), port),
		.context = self->context,
		.timeout_ms = KX_TIMEOUT_MS,
		.length = LENGTH,
		.op = KXFER_OP_SEND,
		.receives = 64,
		.slots = SLOTS,
		.bytes = bytes,
		.transport = self->transport,
	};
	struct kxfer_bench bench = {
		.size = sizeof(bench),
		.op = rw ? KXFER_OP_WRITE : KXFER_OP_SEND,
		.depth = SLOTS,
		.list = 2,
		.signal = rw ? 1 : 2,
		.memory = self->memory,
		.length = bytes,
		.stride = STRIDE,
		.count = UINT32_MAX,
		.time_limit_ms = self->time_limit_ms,
	};
	struct kxfer_dedicated_status status = { .size = sizeof(status) };
	struct kxfer_id id = { .size = sizeof(id) };
	void *memory = kx_alloc(LENGTH);
	int ret;

	ret = kx_region_add(self->fd, memory, LENGTH, 0, &bench.region);
	/* The responder may still be closing the last connection. */
	if (!ret)
		kx_wait_until((ret = kx_call(self->fd, KXFER_DEDICATED_OPEN, &open)) !=
			      -ECONNREFUSED, KX_TIMEOUT_MS);
	self->connected = true;
	bench.dedicated = open.dedicated;
	status.dedicated = open.dedicated;
	id.id = open.dedicated;
	ret = ret ? ret : kx_call(self->fd, KXFER_BENCH, &bench);
	if (!ret)
		ret = kx_call(self->fd, KXFER_DEDICATED_STATUS, &status);
	if (!ret)
		ret = bench.operations && status.sent >= bench.operations && !status.wrong ?
		      0 : -EIO;
	return ret ? ret : kx_call(self->fd, KXFER_DEDICATED_CLOSE, &id);
}

static void *run(void *context)
{
	struct _test_data_dedicated *self = context;

	self->ret = send_for_long(self, self->port);
	self->ended = true;
	return NULL;
}

/* Returns when the run is in progress. */
static void begin(struct __test_metadata *_metadata, struct _test_data_dedicated *self)
{
	self->ended = false;
	self->connected = false;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, run, self));
	EXPECT_TRUE(kx_wait_until(self->connected, KX_TIMEOUT_MS));
	kx_sleep_ms(RUNNING_MS);
	ASSERT_FALSE(self->ended);
}

/* Returns when nothing of the device is in use. */
static void *remove_device(void *context)
{
	struct _test_data_dedicated *self = context;

	return (void *)(intptr_t)baseline_command("rdma link del %s", self->device);
}

static void check_removal(struct __test_metadata *_metadata, struct _test_data_dedicated *self)
{
	struct kxfer_query query;
	pthread_t remover;
	void *removed;

	begin(_metadata, self);
	ASSERT_EQ(0, pthread_create(&remover, NULL, remove_device, self));
	/* The module releases the device before the responder does. */
	EXPECT_TRUE(kx_wait_until(self->ended, LONG_MS));
	pthread_join(self->thread, NULL);
	EXPECT_EQ(-ENODEV, self->ret);
	EXPECT_TRUE(kx_wait_until(!kx_query(self->fd, &query) && !query.nr_devices,
				  KX_TIMEOUT_MS));
	responder_kill(&self->responder);
	pthread_join(remover, &removed);
	EXPECT_EQ(NULL, removed);
	EXPECT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", self->device,
				      self->provider, self->netdev));
}

TEST_F(dedicated, ends_when_the_device_goes)
{
	check_removal(_metadata, self);
}

TEST_F(dedicated, ends_when_the_device_goes_under_datagrams)
{
	if (!strncmp(self->provider, "siw", 3))
		SKIP(return, "iWARP has no UD");
	self->transport = KXFER_TRANSPORT_UD;
	check_removal(_metadata, self);
}

TEST_F(dedicated, ends_when_the_device_goes_under_a_cq_of_the_pool)
{
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	self->context = KXFER_CONTEXT_SOFTIRQ;
	check_removal(_metadata, self);
}

TEST_F(dedicated, ends_when_the_device_goes_under_who_polls_alone)
{
	self->context = KXFER_CONTEXT_DIRECT;
	check_removal(_metadata, self);
}

TEST_F(dedicated, ends_when_the_device_goes_under_rdma_rw)
{
	self->memory = KXFER_BENCH_MEMORY_RW;
	check_removal(_metadata, self);
}

TEST_F(dedicated, ends_when_the_device_goes_under_rdma_rw_and_a_cq_of_the_pool)
{
	self->memory = KXFER_BENCH_MEMORY_RW;
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	self->context = KXFER_CONTEXT_WORKQUEUE;
	check_removal(_metadata, self);
}

TEST_F(dedicated, ends_when_the_device_goes_under_datagrams_and_a_cq_of_the_pool)
{
	if (!strncmp(self->provider, "siw", 3))
		SKIP(return, "iWARP has no UD");
	self->transport = KXFER_TRANSPORT_UD;
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	self->context = KXFER_CONTEXT_WORKQUEUE;
	check_removal(_metadata, self);
}

static void check_kill(struct __test_metadata *_metadata, struct _test_data_dedicated *self,
		       uint16_t port)
{
	uint64_t links = kx_counter(self->fd, "live_links");
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		close(self->fd);
		self->fd = kx_open();
		_exit(send_for_long(self, port) ? 1 : 2);
	}
	/* Links of earlier tests may end meanwhile. */
	kx_wait_until(kx_counter(self->fd, "live_links") > links, 1000);
	kx_sleep_ms(RUNNING_MS);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	/* With two CPUs the last reference may be dropped a moment later. */
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_links") <= links, 1000));
}

TEST_F(dedicated, ends_when_its_user_is_killed)
{
	for (self->context = KXFER_CONTEXT_POLLED; self->context <= KXFER_CONTEXT_SOFTIRQ;
	     self->context++)
		check_kill(_metadata, self, self->port);
	self->context = KXFER_CONTEXT_DIRECT;
	check_kill(_metadata, self, self->port);
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	for (self->context = KXFER_CONTEXT_WORKQUEUE; self->context <= KXFER_CONTEXT_UNBOUND;
	     self->context++)
		check_kill(_metadata, self, self->port);
}

TEST_F(dedicated, ends_when_its_user_is_killed_under_rdma_rw)
{
	self->memory = KXFER_BENCH_MEMORY_RW;
	check_kill(_metadata, self, self->port);
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	self->context = KXFER_CONTEXT_SOFTIRQ;
	check_kill(_metadata, self, self->port);
}

/* The other connection keeps the CQ, and its completions are handled. */
TEST_F_TIMEOUT(dedicated, ends_and_leaves_who_shares_its_cq_alone, 120)
{
	uint16_t port;
	pid_t other;
	int i;

	port = responder_spawn(&other);
	ASSERT_NE(0, port);
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	self->time_limit_ms = 10000;
	for (self->context = KXFER_CONTEXT_WORKQUEUE; self->context <= KXFER_CONTEXT_SOFTIRQ;
	     self->context++) {
		begin(_metadata, self);
		for (i = 0; i < 2; i++)
			check_kill(_metadata, self, port);
		EXPECT_FALSE(self->ended);
		pthread_join(self->thread, NULL);
		EXPECT_EQ(0, self->ret);
	}
	responder_kill(&other);
}

TEST_F(dedicated, ends_with_the_link_on_a_cq_of_the_pool)
{
	self->flags = KXFER_DEDICATED_F_CQ_POOL;
	for (self->context = KXFER_CONTEXT_WORKQUEUE; self->context <= KXFER_CONTEXT_UNBOUND;
	     self->context++) {
		begin(_metadata, self);
		responder_kill(&self->responder);
		EXPECT_TRUE(kx_wait_until(self->ended, LONG_MS));
		pthread_join(self->thread, NULL);
		EXPECT_EQ(-ECONNRESET, self->ret);
		self->port = responder_spawn(&self->responder);
		ASSERT_NE(0, self->port);
	}
}

TEST_HARNESS_MAIN
