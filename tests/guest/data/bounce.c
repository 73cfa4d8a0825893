// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs and runs on a device that sees memory through bounce buffers, and the requests that are
 * refused there. Only on siw-dma (tests/guest/dma): siw1 on dummy1 is the bouncing device. It
 * is made for each test and removed after it, and then nothing may be mapped on it. Its peer is
 * the device that the other tests use.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define KIB		1024u
#define MIB		(1024u * KIB)
#define LENGTH		(4 * MIB)
#define RUNNING_MS	500	/* a started run is in progress by then */
#define ADDRESS		"10.78.0.1"
#define BUS		"/sys/kernel/debug/siw-dma/"

static long bus_count(const char *what)
{
	char path[64];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), BUS "%s", what);
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%ld", &value) != 1)
			value = -1;
		fclose(file);
	}
	return value;
}

static bool is_active(void)
{
	return !baseline_command("grep -qs ACTIVE /sys/class/infiniband/siw1/ports/1/state");
}

static int add_device(void)
{
	int ret = baseline_command("ip link add dummy1 address 02:4b:58:00:00:02 mtu 9000 "
				   "type dummy && ip link set dummy1 up && "
				   "ip addr add " ADDRESS "/24 dev dummy1 && "
				   "rdma link add siw1 type siw netdev dummy1");

	return ret ?: !kx_wait_until(is_active(), 10000);
}

static int remove_device(void)
{
	return baseline_command("rdma link del siw1; ip link del dummy1");
}

FIXTURE(bounce)
{
	struct rig rig;
	long complaints;
};

FIXTURE_SETUP(bounce)
{
	struct rig_options options = { .length = LENGTH, .local = ADDRESS };

	self->rig.client = -1;
	self->rig.server = -1;
	self->complaints = bus_count("complaints");
	if (self->complaints < 0)
		SKIP(return, "no device here bounces; siw-dma does");
	ASSERT_EQ(0, add_device());
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(bounce)
{
	if (self->complaints < 0)
		return;
	rig_close(&self->rig);
	EXPECT_EQ(0, remove_device());
	EXPECT_EQ(self->complaints, bus_count("complaints"));
}

static const char *try_lengths(struct rig *rig, uint32_t op)
{
	static const uint64_t lengths[] = {
		1, 8, 63, 4095, 4096, 4097, 64 * KIB - 1, 64 * KIB + 1, 300000, MIB + 1, 3 * MIB,
	};
	const char *fault;
	size_t i;

	rig_prepare(rig, op);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fault = rig_try(rig, op, 0, 0, lengths[i]) ?:
			rig_try(rig, op, 4097, 12345, lengths[i]);
		if (fault)
			return fault;
	}
	return rig_untouched(rig, op);
}

TEST_F(bounce, writes_send_what_memory_holds_now)
{
	EXPECT_STREQ("", try_lengths(&self->rig, KXFER_OP_WRITE) ?: "");
}

TEST_F(bounce, reads_are_seen_when_they_complete)
{
	EXPECT_STREQ("", try_lengths(&self->rig, KXFER_OP_READ) ?: "");
}

/*
 * Bytes that jobs did not move belong to the process. Neither a job nor its end may overwrite
 * them.
 */
TEST_F(bounce, bytes_beside_a_job_are_left_alone)
{
	struct rig *rig = &self->rig;
	struct pattern own = { .seed = 0xb0c, .generation = 1 };
	struct pattern_fault fault;

	EXPECT_EQ(0, rig_move(rig, KXFER_OP_READ, 0, 0, 100));
	pattern_fill(rig->here.bytes, LENGTH, &own);
	EXPECT_EQ(0, rig_move(rig, KXFER_OP_READ, 5000, 0, 0x1000));
	own.offset = 0;
	EXPECT_EQ(0, pattern_check(rig->here.bytes, 5000, &own, NULL, &fault));
	own.offset = 5000 + 0x1000;
	EXPECT_EQ(0, pattern_check(rig->here.bytes + own.offset, LENGTH - own.offset,
				   &own, NULL, &fault));
	own.offset = 0;
	pattern_fill(rig->here.bytes, LENGTH, &own);
	test_cmd_region_del(rig->client, rig->here_region);
	EXPECT_EQ(0, pattern_check(rig->here.bytes, LENGTH, &own, NULL, &fault));
}

static void *run_reads(void *context)
{
	struct rig *rig = context;
	struct kxfer_bench bench = {
		.size = sizeof(bench),
		.op = KXFER_OP_READ,
		.region = rig->here_region,
		.target = rig->target,
		.depth = 4,
		.list = 1,
		.signal = 1,
		.length = KIB,
		.stride = 8 * KIB,
		.count = UINT32_MAX,
		.time_limit_ms = 2000,
	};

	return (void *)(long)kx_call(rig->client, KXFER_BENCH, &bench);
}

/* What the process writes between the operations during a run must persist. */
TEST_F(bounce, bytes_between_operations_of_a_run_are_left_alone)
{
	struct rig *rig = &self->rig;
	pthread_t thread;
	size_t i;
	void *ret;

	memset(rig->here.bytes, 1, 32 * KIB);
	memset(rig->there.bytes, 2, 32 * KIB);
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_reads, rig));
	kx_sleep_ms(RUNNING_MS);
	for (i = 0; i < 32 * KIB; i++)
		if (i % (8 * KIB) >= KIB)
			rig->here.bytes[i] = 3;
	ASSERT_EQ(0, pthread_join(thread, &ret));
	ASSERT_EQ(0, (long)ret);
	for (i = 0; i < 32 * KIB; i++)
		ASSERT_EQ(i % (8 * KIB) < KIB ? 2 : 3, rig->here.bytes[i]);
}

/* READs and WRITEs in flight at once, each in separate blocks. */
TEST_F(bounce, jobs_of_one_region_do_not_disturb_each_other)
{
	enum { JOBS = 64, BLOCK = LENGTH / JOBS };
	struct rig *rig = &self->rig;
	struct pattern here = { .seed = 0xb0d, .generation = 1 };
	struct pattern there = { .seed = 0xb0e, .generation = 1 };
	struct kxfer_completion completions[JOBS];
	struct kxfer_job jobs[JOBS];
	struct pattern_fault fault;
	int wrong = 0, i;

	/* A first job, so that the region is mapped with its old content. */
	EXPECT_EQ(0, rig_move(rig, KXFER_OP_WRITE, 0, 0, 1));
	pattern_fill(rig->here.bytes, LENGTH, &here);
	pattern_fill(rig->there.bytes, LENGTH, &there);
	for (i = 0; i < JOBS; i++)
		jobs[i] = rig_job(rig, i % 2 ? KXFER_OP_WRITE : KXFER_OP_READ,
				  i * BLOCK, i * BLOCK, BLOCK - 1);
	test_cmd_submit(JOBS, rig->client, jobs, JOBS);
	test_cmd_reap(JOBS, rig->client, completions, JOBS, JOBS, RIG_WAIT_MS);
	for (i = 0; i < JOBS; i++) {
		const struct pattern *moved = i % 2 ? &here : &there;
		struct pattern want = *moved, last = i % 2 ? there : here;
		struct buffer *sink = i % 2 ? &rig->there : &rig->here;

		EXPECT_EQ(0, completions[i].status);
		want.offset = i * BLOCK;
		last.offset = (i + 1) * BLOCK - 1;
		wrong += pattern_check(sink->bytes + want.offset, BLOCK - 1, &want, NULL, &fault) ||
			 pattern_check(sink->bytes + last.offset, 1, &last, NULL, &fault);
	}
	EXPECT_EQ(0, wrong);
}

/* The exporter would not see what peers write, nor would peers see what it writes. */
TEST_F(bounce, nothing_is_exported)
{
	struct rig_options options = { .length = KIB, .address = ADDRESS };
	struct rig rig;
	int ret;

	ret = rig_open_server(&rig, &options);
	EXPECT_EQ(0, ret);
	if (!ret)
		EXPECT_EQ(-EOPNOTSUPP, rig_open_client(&rig));
	rig_close(&rig);
}

/* Nobody would bring the copy of a dma-buf up to date. */
TEST_F(bounce, nothing_moves_to_or_from_a_dmabuf)
{
	struct rig *rig = &self->rig;
	struct kxfer_region_add add = {
		.size = sizeof(add),
		.flags = KXFER_REGION_F_WRITE | KXFER_REGION_F_DMABUF,
		.length = KIB,
		.dmabuf_fd = buffer_open_heap(KIB, O_RDWR),
	};

	if (add.dmabuf_fd == -EOPNOTSUPP)
		SKIP(return, "this kernel has no system heap");
	ASSERT_LE(0, add.dmabuf_fd);
	ASSERT_EQ(0, kx_call(rig->client, KXFER_REGION_ADD, &add));
	close(add.dmabuf_fd);
	test_err_transfer(EOPNOTSUPP, rig->client, KXFER_OP_READ, add.region, 0, rig->target, 0,
			  KIB);
	test_cmd_transfer(rig->client, KXFER_OP_READ, rig->here_region, 0, rig->target, 0, KIB);
}

static int read_ping(struct rig *rig, const char *address, uint64_t offset)
{
	uint32_t peer, target;
	int ret;

	ret = kx_peer_open(rig->client, kx_addr(address, KXFER_PORT), &peer);
	if (!ret)
		ret = kx_target_open(rig->client, peer, KXFER_PING_NAME, 0, &target);
	return ret ?: kx_transfer(rig->client, KXFER_OP_READ, rig->here_region, offset,
				  target, 0, 64 * KIB);
}

/* @ping never changes, so a copy of it is good enough. */
TEST_F(bounce, ping_is_served)
{
	struct rig *rig = &self->rig;
	uint64_t listener;

	memset(rig->here.bytes, 0, 128 * KIB);
	test_cmd_listen_add(rig->server, kx_addr(ADDRESS, KXFER_PORT), 0, &listener);
	EXPECT_EQ(0, read_ping(rig, ADDRESS, 0));
	EXPECT_EQ(0, read_ping(rig, kx_address(), 64 * KIB));
	EXPECT_EQ(0, memcmp(rig->here.bytes, rig->here.bytes + 64 * KIB, 64 * KIB));
	EXPECT_NE(0, memcmp(rig->here.bytes, rig->here.bytes + 1, 64 * KIB - 1));
}

TEST_HARNESS_MAIN
