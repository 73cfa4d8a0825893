// SPDX-License-Identifier: GPL-2.0
/*
 * BENCH: the bytes that its work requests move, its report, which runs are refused with which
 * errno, and what ends a run in progress.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define LENGTH		(1UL << 20)
#define LONG_MS		20000	/* longer than any run of these tests */
#define RUNNING_MS	150	/* a started run is in progress by then */

FIXTURE(bench)
{
	struct rig rig;
	int fd;			/* session of the client */
	uint64_t mrs;		/* number of MRs of links and exports */
	struct kxfer_bench cmd;	/* one WRITE at a time; tests change one member */
};

FIXTURE_SETUP(bench)
{
	struct rig_options options = { .length = LENGTH, .here = BUFFER_SCATTERED };

	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->fd = self->rig.client;
	self->mrs = kx_counter(self->fd, "live_mrs");
	self->cmd = (struct kxfer_bench) {
		.size = sizeof(self->cmd),
		.op = KXFER_OP_WRITE,
		.region = self->rig.here_region,
		.target = self->rig.target,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.length = 64,
		.count = 10,
		.time_limit_ms = LONG_MS,
	};
}

FIXTURE_TEARDOWN(bench)
{
	rig_close(&self->rig);
}

static int bench(int fd, struct kxfer_bench *cmd)
{
	return kx_call(fd, KXFER_BENCH, cmd);
}

/*
 * Makes a region of the same memory without a mapping, as rdma_rw needs it on a device with
 * real DMA. It ends with the session. Return: its id, or 0
 */
static uint32_t region_for_rw(const struct rig *rig)
{
	uint32_t region = 0;

	return kx_region_add(rig->client, rig->here.bytes, LENGTH, KXFER_REGION_F_WRITE,
			     &region) ? 0 : region;
}

static struct kxfer_bench deep(const struct kxfer_bench *cmd, uint32_t op, uint32_t depth,
			       uint32_t list, uint32_t signal)
{
	struct kxfer_bench changed = *cmd;

	changed.op = op;
	changed.depth = depth;
	changed.list = list;
	changed.signal = signal;
	changed.stride = 4096;
	return changed;
}

static struct kxfer_bench empty(const struct kxfer_bench *cmd)
{
	struct kxfer_bench changed = *cmd;

	changed.op = KXFER_OP_NOP;
	changed.region = 0;
	changed.target = 0;
	changed.length = 0;
	return changed;
}

/* ---- what works ---- */

/* Whether slots of @length, @stride apart, have the bytes of the other side, and the rest is 0. */
static bool moved(const uint8_t *from, const uint8_t *to, const struct kxfer_bench *cmd)
{
	size_t at, slot, within;

	for (at = 0; at < LENGTH; at++) {
		slot = cmd->stride ? at / cmd->stride : 0;
		within = cmd->stride ? at % cmd->stride : at;
		if (to[at] != (slot < cmd->depth && within < cmd->length ? from[at] : 0))
			return false;
	}
	return true;
}

/*
 * iWARP completes a WRITE when TCP has its bytes. Wait until all WRITEs of this run are placed:
 * a READ on the same lane comes after them. Its byte is not compared.
 */
static bool land(int fd, const struct kxfer_bench *cmd)
{
	struct kxfer_bench read = *cmd;

	if (cmd->op != KXFER_OP_WRITE)
		return true;
	read.op = KXFER_OP_READ;
	read.flags = 0;
	read.depth = 1;
	read.list = 1;
	read.signal = 1;
	read.count = 1;
	read.region_offset = LENGTH - 1;
	read.length = 1;
	return !bench(fd, &read);
}

static bool moves(struct _test_data_bench *self, struct kxfer_bench *cmd)
{
	bool read = cmd->op == KXFER_OP_READ;
	uint8_t *from = read ? self->rig.there.bytes : self->rig.here.bytes;
	uint8_t *to = read ? self->rig.here.bytes : self->rig.there.bytes;
	size_t i;

	for (i = 0; i < LENGTH; i++)
		from[i] = 1 + i % 251;
	memset(to, 0, LENGTH);
	return !bench(self->fd, cmd) && cmd->operations == cmd->count && cmd->total_ns &&
	       land(self->fd, cmd) && moved(from, to, cmd);
}

TEST_F(bench, moves_what_it_says)
{
	static const struct { uint32_t depth, list, signal; uint64_t length; } ways[] = {
		{ 1, 1, 1, 64 }, { 1, 1, 1, 65536 }, { 8, 1, 1, 1 }, { 8, 8, 1, 4096 },
		{ 8, 2, 4, 100 }, { 7, 3, 5, 4095 }, { 200, 32, 32, 64 },
	};
	struct kxfer_bench cmd;
	uint32_t op;
	size_t i;

	for (op = KXFER_OP_READ; op <= KXFER_OP_WRITE; op++)
		for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			cmd = deep(&self->cmd, op, ways[i].depth, ways[i].list, ways[i].signal);
			cmd.length = ways[i].length;
			if (cmd.stride < cmd.length)
				cmd.stride = cmd.length;
			/* The numbers are not multiples of each other. */
			cmd.count = 211;
			EXPECT_TRUE(moves(self, &cmd)) {
				TH_LOG("op %u, way %zu: %s", op, i, strerror(errno));
			}
			EXPECT_LE(1, cmd.nr_wr);
		}
}

/* Short enough to be carried in their work requests, if the run allows that. */
TEST_F(bench, moves_the_same_without_inline)
{
	struct kxfer_bench cmd = deep(&self->cmd, KXFER_OP_WRITE, 8, 2, 2);

	cmd.flags = KXFER_BENCH_F_NO_INLINE;
	for (cmd.length = 1; cmd.length <= 64; cmd.length *= 2) {
		cmd.count = 100;
		EXPECT_TRUE(moves(self, &cmd)) {
			TH_LOG("%llu bytes: %s", (unsigned long long)cmd.length,
			       strerror(errno));
		}
	}
}

TEST_F(bench, gives_a_sample_for_each_operation)
{
	uint32_t samples[100] = { 0 };
	uint64_t sum = 0;
	int i;

	self->cmd.op = KXFER_OP_READ;
	self->cmd.count = 90;
	self->cmd.warm_up = 5;
	self->cmd.samples = (uintptr_t)samples;
	self->cmd.nr_samples = 100;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_EQ(90, self->cmd.operations);
	EXPECT_EQ(90, self->cmd.nr_samples);
	for (i = 0; i < 90; i++)
		sum += samples[i];
	EXPECT_EQ(self->cmd.total_ns, sum);
	EXPECT_EQ(0, samples[90]);
	/* No more samples are stored than there is room for. */
	self->cmd.nr_samples = 3;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_EQ(3, self->cmd.nr_samples);
	EXPECT_EQ(90, self->cmd.operations);
}

TEST_F_TIMEOUT(bench, moves_the_same_by_registered_memory, 120)
{
	static const struct { uint32_t depth, list, signal; uint64_t length; } ways[] = {
		{ 1, 1, 1, 64 }, { 1, 1, 1, 65536 }, { 8, 8, 1, 4096 }, { 8, 2, 4, 100 },
		{ 7, 3, 5, 4095 }, { 60, 32, 16, 8192 },
	};
	static const struct { uint32_t memory, invalidate, flags; } kinds[] = {
		{ KXFER_BENCH_MEMORY_MR, 0, 0 }, { KXFER_BENCH_MEMORY_MR_EACH, 0, 0 },
		{ KXFER_BENCH_MEMORY_MR_EACH, KXFER_BENCH_INVALIDATE_LOCAL, 0 },
		{ KXFER_BENCH_MEMORY_MR_EACH, 0, KXFER_BENCH_F_MR_POOL },
		{ KXFER_BENCH_MEMORY_MR_EACH, KXFER_BENCH_INVALIDATE_LOCAL, KXFER_BENCH_F_MR_POOL },
	};
	struct kxfer_bench cmd;
	uint32_t op, memory;
	size_t i, kind;

	for (kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		for (op = KXFER_OP_READ; op <= KXFER_OP_WRITE; op++)
			for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
				cmd = deep(&self->cmd, op, ways[i].depth, ways[i].list,
					   ways[i].signal);
				memory = kinds[kind].memory;
				cmd.memory = memory;
				cmd.invalidate = kinds[kind].invalidate;
				cmd.flags = kinds[kind].flags;
				cmd.length = ways[i].length;
				if (cmd.stride < cmd.length)
					cmd.stride = cmd.length;
				cmd.count = 211;
				EXPECT_TRUE(moves(self, &cmd)) {
					TH_LOG("kind %zu, op %u, way %zu: %s", kind, op, i,
					       strerror(errno));
				}
				EXPECT_LE(memory == KXFER_BENCH_MEMORY_MR ? 1 : 3, cmd.nr_wr);
			}
	/* MRs of a pool are gone with their run too. */
	EXPECT_EQ(self->mrs, kx_counter(self->fd, "live_mrs"));
}

/* Return: 0; -EILSEQ: wrong bytes arrived; or -errno of the run */
static int write_at(struct _test_data_bench *self, uint64_t offset, uint64_t length)
{
	int ret;

	self->cmd.region_offset = offset;
	self->cmd.length = length;
	self->cmd.count = 3;
	memset(self->rig.there.bytes, 0, LENGTH);
	ret = bench(self->fd, &self->cmd);
	if (!ret && !land(self->fd, &self->cmd))
		ret = -EIO;
	return ret ?: memcmp(self->rig.there.bytes, self->rig.here.bytes + offset, length) ?
		      -EILSEQ : 0;
}

/* siw sends such bytes wrong, so exactly these runs are refused there. */
TEST_F(bench, writes_a_few_registered_bytes_across_a_page_as_they_are_or_not_at_all)
{
	int across = strncmp(kx_provider(), "siw", 3) ? 0 : -EINVAL;
	uint32_t memory;
	size_t i;

	for (i = 0; i < LENGTH; i++)
		self->rig.here.bytes[i] = 1 + i % 251;
	for (memory = 0; memory <= KXFER_BENCH_MEMORY_MR_EACH; memory++) {
		self->cmd.memory = memory;
		EXPECT_EQ(memory ? across : 0, write_at(self, 4095, 2));
		EXPECT_EQ(memory ? across : 0, write_at(self, 4095, 32));
		EXPECT_EQ(memory ? across : 0, write_at(self, 8192 - 31, 32));
		EXPECT_EQ(0, write_at(self, 4096 - 32, 32));
		EXPECT_EQ(0, write_at(self, 4096, 32));
		EXPECT_EQ(0, write_at(self, 4095, 33));
	}
}

/*
 * Memory that rdma_rw maps by itself, with any offset in a page here and at the peer. Several
 * pages take several SGEs, and more than a megabyte takes several contexts.
 */
TEST_F_TIMEOUT(bench, moves_the_same_by_rdma_rw, 120)
{
	static const struct { uint32_t depth, list; uint64_t length, here, there; } ways[] = {
		{ 1, 1, 1, 0, 0 }, { 1, 1, 64, 4090, 4070 }, { 1, 1, 30, 0, 4090 },
		{ 1, 1, 65536, 0, 0 }, { 1, 1, 65537, 4095, 1 }, { 8, 1, 4096, 0, 0 },
		{ 8, 8, 100, 63, 5 }, { 7, 3, 8191, 1, 0 }, { 60, 32, 8192, 0, 4095 },
		{ 1, 1, LENGTH - 4096, 1, 4095 },
	};
	struct kxfer_bench cmd;
	uint32_t op;
	size_t i, k;

	for (op = KXFER_OP_READ; op <= KXFER_OP_WRITE; op++)
		for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			bool read = op == KXFER_OP_READ;
			uint64_t here = ways[i].here, there = ways[i].there;
			uint8_t *from = read ? self->rig.there.bytes : self->rig.here.bytes;
			uint8_t *to = read ? self->rig.here.bytes : self->rig.there.bytes;

			cmd = deep(&self->cmd, op, ways[i].depth, ways[i].list, 1);
			cmd.memory = KXFER_BENCH_MEMORY_RW;
			cmd.length = ways[i].length;
			cmd.region_offset = here;
			cmd.target_offset = there;
			cmd.stride = 4096 + (cmd.length & ~4095ULL);
			cmd.count = cmd.length > 65537 ? 5 : 71;
			cmd.warm_up = 3;
			for (k = 0; k < LENGTH; k++)
				from[k] = 1 + k % 251;
			memset(to, 0, LENGTH);
			ASSERT_EQ(0, bench(self->fd, &cmd)) {
				TH_LOG("op %u, way %zu", op, i);
			}
			EXPECT_EQ(cmd.count, cmd.operations);
			EXPECT_LE(1, cmd.nr_wr);
			ASSERT_TRUE(land(self->fd, &cmd));
			for (k = 0; k < cmd.depth; k++) {
				uint64_t at = k * cmd.stride;

				EXPECT_EQ(0, memcmp(to + at + (read ? here : there),
						    from + at + (read ? there : here),
						    cmd.length)) {
					TH_LOG("op %u, way %zu, slot %zu", op, i, k);
				}
			}
			/* The bytes next to the slots did not change. */
			for (k = 0; k < (read ? here : there); k++)
				ASSERT_EQ(0, to[k]);
			for (k = (read ? here : there) + cmd.length;
			     k < LENGTH && k < cmd.stride; k++)
				ASSERT_EQ(0, to[k]);
		}
	EXPECT_EQ(self->mrs, kx_counter(self->fd, "live_mrs"));
}

/*
 * 256 pages, the size of one table in rxe of 6.1: KASAN reports an access after it. siw
 * registers 256 pages, of which one stays unused.
 */
TEST_F(bench, registers_as_many_pages_as_a_table_has)
{
	/* siw-dma has longer tables than siw. */
	int ret = strncmp(kx_provider(), "siw", 3) || kx_maps_dma() ? 0 : -EINVAL;
	uint32_t memory;

	self->cmd.region_offset = 64;
	for (memory = KXFER_BENCH_MEMORY_MR; memory <= KXFER_BENCH_MEMORY_MR_EACH; memory++) {
		self->cmd.memory = memory;
		self->cmd.length = 254 * 4096;
		EXPECT_EQ(0, bench(self->fd, &self->cmd));
		self->cmd.length++;
		EXPECT_EQ(ret, bench(self->fd, &self->cmd));
		self->cmd.length = 255 * 4096;
		EXPECT_EQ(ret, bench(self->fd, &self->cmd));
	}
}

TEST_F(bench, registers_without_transfers)
{
	self->cmd = deep(&self->cmd, KXFER_OP_NOP, 8, 4, 1);
	self->cmd.memory = KXFER_BENCH_MEMORY_MR_EACH;
	self->cmd.length = 4096;
	self->cmd.count = 500;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_EQ(500, self->cmd.operations);
	EXPECT_EQ(2, self->cmd.nr_wr);
	self->cmd.invalidate = KXFER_BENCH_INVALIDATE_LOCAL;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_EQ(2, self->cmd.nr_wr);
	self->cmd.flags = KXFER_BENCH_F_MR_POOL;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_EQ(2, self->cmd.nr_wr);
	/* The run leaves no MR behind; MRs of links always exist. */
	EXPECT_EQ(self->mrs, kx_counter(self->fd, "live_mrs"));
}

/* Each operation is counted once, and none was faster or slower than the run. */
static bool holds(const uint32_t *histogram, const struct kxfer_bench *cmd)
{
	uint64_t sum = 0, first;
	uint32_t i;

	for (i = 0; i < KXFER_BENCH_NR_BUCKETS; i++) {
		first = i < 256 ? i : (uint64_t)(128 + i % 128) << (i / 128 - 1);
		sum += histogram[i];
		if (histogram[i] && (!first || first > cmd->total_ns))
			return false;
	}
	return sum == cmd->operations;
}

TEST_F(bench, counts_operations_by_their_time)
{
	static uint32_t histogram[KXFER_BENCH_NR_BUCKETS + 1];
	static const struct { uint32_t depth, list, signal; } ways[] = {
		{ 1, 1, 1 }, { 8, 4, 1 }, { 7, 3, 5 }, { 64, 16, 32 },
	};
	struct kxfer_bench cmd;
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		memset(histogram, 0, sizeof(histogram));
		cmd = deep(&self->cmd, KXFER_OP_READ, ways[i].depth, ways[i].list,
			   ways[i].signal);
		cmd.warm_up = 13;
		cmd.count = 211;
		cmd.nr_buckets = KXFER_BENCH_NR_BUCKETS;
		cmd.histogram = (uintptr_t)histogram;
		ASSERT_EQ(0, bench(self->fd, &cmd));
		EXPECT_EQ(211, cmd.operations);
		EXPECT_TRUE(holds(histogram, &cmd)) {
			TH_LOG("way %zu", i);
		}
		EXPECT_EQ(0, histogram[KXFER_BENCH_NR_BUCKETS]);
	}
}

TEST_F(bench, of_a_nop_needs_no_peer)
{
	struct kxfer_bench cmd = empty(&self->cmd);
	int fd = kx_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bench(fd, &cmd));
	EXPECT_EQ(10, cmd.operations);
	EXPECT_EQ(0, cmd.nr_wr);
	close(fd);
}

TEST_F(bench, leaves_the_lane_to_jobs)
{
	struct kxfer_bench cmd = deep(&self->cmd, KXFER_OP_READ, 64, 8, 1);
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, bench(self->fd, &cmd));
		rig_prepare(&self->rig, KXFER_OP_READ);
		EXPECT_EQ(NULL, rig_try(&self->rig, KXFER_OP_READ, 100, 70, LENGTH / 2));
		rig_prepare(&self->rig, KXFER_OP_WRITE);
		EXPECT_EQ(NULL, rig_try(&self->rig, KXFER_OP_WRITE, 70, 100, LENGTH / 2));
		test_cmd_notify(self->fd, self->rig.target, i);
	}
}

/* ---- what is refused ---- */

/* Its kinds of memory need pages. */
TEST_F(bench, measures_no_dmabuf)
{
	struct kxfer_region_add add = {
		.size = sizeof(add),
		.flags = KXFER_REGION_F_WRITE | KXFER_REGION_F_DMABUF,
		.length = LENGTH,
		.dmabuf_fd = buffer_open_udmabuf(LENGTH),
	};
	struct kxfer_bench cmd = self->cmd;

	if (add.dmabuf_fd == -EOPNOTSUPP)
		SKIP(return, "this kernel has no udmabuf");
	ASSERT_LE(0, add.dmabuf_fd);
	ASSERT_EQ(0, kx_call(self->rig.client, KXFER_REGION_ADD, &add));
	close(add.dmabuf_fd);
	cmd.region = add.region;
	EXPECT_EQ(-EOPNOTSUPP, bench(self->rig.client, &cmd));
	cmd.memory = KXFER_BENCH_MEMORY_RW;
	EXPECT_EQ(-EOPNOTSUPP, bench(self->rig.client, &cmd));
}

#define REFUSED(err, member, value) do {			\
	struct kxfer_bench refused = self->cmd;			\
								\
	refused.member = value;					\
	EXPECT_EQ(-(err), bench(self->fd, &refused)) {		\
		TH_LOG("%s = %s", #member, #value);		\
	}							\
} while (0)

TEST_F(bench, refuses_nonsense)
{
	uint32_t sample;

	REFUSED(EOPNOTSUPP, flags, KXFER_BENCH_F_IMM);
	REFUSED(EOPNOTSUPP, flags, KXFER_BENCH_F_PONG << 1);
	self->cmd.flags = KXFER_BENCH_F_NO_INLINE;
	REFUSED(EINVAL, op, KXFER_OP_READ);
	REFUSED(EINVAL, op, KXFER_OP_NOP);
	self->cmd.flags = KXFER_BENCH_F_MR_POOL;
	REFUSED(EINVAL, memory, KXFER_BENCH_MEMORY_DEFAULT);
	REFUSED(EINVAL, memory, KXFER_BENCH_MEMORY_MR);
	REFUSED(EINVAL, memory, KXFER_BENCH_MEMORY_RW);
	REFUSED(EINVAL, op, KXFER_OP_NOP);
	self->cmd.flags = 0;
	REFUSED(EOPNOTSUPP, op, KXFER_OP_NOTIFY);
	REFUSED(EOPNOTSUPP, op, UINT_MAX);
	REFUSED(EOPNOTSUPP, memory, KXFER_BENCH_MEMORY_RW + 1);
	REFUSED(EOPNOTSUPP, memory, UINT_MAX);
	REFUSED(EINVAL, nr_buckets, KXFER_BENCH_NR_BUCKETS);
	REFUSED(EINVAL, histogram, (uintptr_t)&sample);
	REFUSED(EINVAL, depth, 0);
	REFUSED(EINVAL, depth, 257);
	REFUSED(EINVAL, depth, UINT_MAX);
	REFUSED(EINVAL, list, 0);
	REFUSED(EINVAL, list, 2);
	REFUSED(EINVAL, signal, 0);
	REFUSED(EINVAL, signal, 2);
	REFUSED(EINVAL, signal, UINT_MAX);
	REFUSED(EINVAL, length, 0);
	REFUSED(EINVAL, count, 0);
	REFUSED(EINVAL, time_limit_ms, 0);
	REFUSED(EINVAL, time_limit_ms, KXFER_BENCH_MAX_TIME_MS + 1);
	REFUSED(EINVAL, nr_samples, 1);
	REFUSED(EINVAL, samples, (uintptr_t)&sample);
	/* Several operations at once need room between them, and have no individual times. */
	REFUSED(EINVAL, depth, 2);
	self->cmd = deep(&self->cmd, KXFER_OP_WRITE, 8, 4, 5);
	REFUSED(EINVAL, signal, 6);
	self->cmd.samples = (uintptr_t)&sample;
	REFUSED(EINVAL, nr_samples, 1);
	REFUSED(EINVAL, nr_samples, KXFER_BENCH_MAX_SAMPLES + 1);
}

TEST_F(bench, on_schedule_takes_what_makes_sense)
{
	static uint32_t histogram[KXFER_BENCH_NR_BUCKETS];
	uint32_t sample;

	REFUSED(EINVAL, late_ns, 1);
	REFUSED(EINVAL, posted_histogram, (uintptr_t)histogram);
	REFUSED(EINVAL, interval_ps, 999);
	REFUSED(EINVAL, interval_ps, 60000000000001);
	REFUSED(EINVAL, interval_ps, UINT64_MAX);
	self->cmd.interval_ps = 1000;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	self->cmd.late_ns = 0;
	REFUSED(EINVAL, late_ns, INT64_MIN);
	REFUSED(EINVAL, late_ns, INT64_MAX);
	/* It is allowed only together with the other histogram. */
	REFUSED(EINVAL, posted_histogram, (uintptr_t)histogram);
	self->cmd.histogram = (uintptr_t)histogram;
	self->cmd.nr_buckets = KXFER_BENCH_NR_BUCKETS;
	REFUSED(EFAULT, posted_histogram, 8);
	self->cmd.samples = (uintptr_t)&sample;
	REFUSED(EINVAL, nr_samples, 1);
	self->cmd = deep(&self->cmd, KXFER_OP_WRITE, 8, 1, 1);
	self->cmd.samples = 0;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	self->cmd.late_ns = 0;
	REFUSED(EINVAL, signal, 2);
	self->cmd = empty(&self->cmd);
	self->cmd.histogram = 0;
	self->cmd.nr_buckets = 0;
	self->cmd.depth = 1;
	self->cmd.list = 1;
	self->cmd.stride = 0;
	REFUSED(EINVAL, interval_ps, 1000);
}

TEST_F(bench, by_rdma_rw_keeps_operations_apart)
{
	self->cmd = deep(&self->cmd, KXFER_OP_WRITE, 8, 4, 1);
	self->cmd.memory = KXFER_BENCH_MEMORY_RW;
	/* The longest cache line of any architecture, on s390x. */
	self->cmd.stride = 256;
	self->cmd.length = 256;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	REFUSED(EINVAL, signal, 2);
	REFUSED(EINVAL, length, 257);
	REFUSED(EINVAL, stride, 192);
	REFUSED(EINVAL, stride, 257);
	REFUSED(EINVAL, region_offset, 1);
	self->cmd.length = 255;
	REFUSED(EINVAL, region_offset, 2);
	self->cmd.region_offset = 1;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
	REFUSED(EOPNOTSUPP, op, KXFER_OP_FETCH_ADD);
	self->cmd = empty(&self->cmd);
	REFUSED(EINVAL, memory, KXFER_BENCH_MEMORY_RW);
}

TEST_F(bench, of_a_nop_takes_nothing_else)
{
	self->cmd = empty(&self->cmd);
	REFUSED(EINVAL, region, 1);
	REFUSED(EINVAL, target, 1);
	REFUSED(EINVAL, region_offset, 1);
	REFUSED(EINVAL, target_offset, 1);
	REFUSED(EINVAL, length, 1);
	REFUSED(EINVAL, stride, 1);
	REFUSED(EINVAL, depth, 2);
	REFUSED(EINVAL, memory, KXFER_BENCH_MEMORY_MR);
	REFUSED(EINVAL, invalidate, KXFER_BENCH_INVALIDATE_LOCAL);
}

TEST_F(bench, invalidates_what_it_registers_for_each)
{
	REFUSED(EINVAL, invalidate, KXFER_BENCH_INVALIDATE_LOCAL);
	self->cmd.memory = KXFER_BENCH_MEMORY_MR;
	REFUSED(EINVAL, invalidate, KXFER_BENCH_INVALIDATE_LOCAL);
	self->cmd.memory = KXFER_BENCH_MEMORY_MR_EACH;
	/* A peer without a responder answers no request of the run. */
	REFUSED(EINVAL, invalidate, KXFER_BENCH_INVALIDATE_REMOTE);
	REFUSED(EOPNOTSUPP, invalidate, KXFER_BENCH_INVALIDATE_REMOTE + 1);
	self->cmd.invalidate = KXFER_BENCH_INVALIDATE_LOCAL;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
}

TEST_F(bench, that_registers_needs_memory_and_a_link)
{
	self->cmd.op = KXFER_OP_NOP;
	self->cmd.memory = KXFER_BENCH_MEMORY_MR_EACH;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	REFUSED(ENOENT, region, 0);
	REFUSED(ENOENT, target, 0);
	REFUSED(EINVAL, length, 0);
	REFUSED(EINVAL, target_offset, 1);
	REFUSED(ERANGE, region_offset, LENGTH - 63);
}

TEST_F(bench, stays_within_region_and_target)
{
	REFUSED(ENOENT, region, 777777);
	REFUSED(ENOENT, target, 777777);
	REFUSED(ERANGE, length, LENGTH + 1);
	REFUSED(ERANGE, region_offset, LENGTH - 63);
	REFUSED(ERANGE, target_offset, LENGTH - 63);
	REFUSED(EOVERFLOW, region_offset, UINT64_MAX);
	REFUSED(EOVERFLOW, target_offset, UINT64_MAX - 63);
	self->cmd = deep(&self->cmd, KXFER_OP_READ, 256, 1, 1);
	self->cmd.length = 4096;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	REFUSED(ERANGE, length, 4097);
	REFUSED(ERANGE, stride, 4097);
	REFUSED(EOVERFLOW, stride, UINT64_MAX / 255 + 1);
	REFUSED(EOVERFLOW, stride, UINT64_MAX / 255);
}

TEST_F(bench, of_more_work_requests_than_a_lane_takes_is_refused)
{
	/*
	 * A megabyte of scattered pages takes several work requests: 256 such operations are
	 * too many. The bus of siw-dma makes one range of them.
	 */
	self->cmd = deep(&self->cmd, KXFER_OP_WRITE, 256, 1, 1);
	self->cmd.stride = 1;
	if (!kx_maps_dma())
		REFUSED(EINVAL, length, LENGTH - 255);
	/* Each with a REG_MR and a LOCAL_INV. */
	self->cmd.memory = KXFER_BENCH_MEMORY_MR_EACH;
	self->cmd.stride = 64;
	REFUSED(EINVAL, depth, 86);
	self->cmd.depth = 85;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
	/* The number of work requests is known only after rdma_rw has made them. */
	self->cmd = deep(&self->cmd, KXFER_OP_WRITE, 256, 1, 1);
	self->cmd.memory = KXFER_BENCH_MEMORY_RW;
	self->cmd.region = region_for_rw(&self->rig);
	self->cmd.length = 4096;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
	self->cmd.region_offset = 2048;
	self->cmd.length = 2049;
	self->cmd.depth = 255;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
}

/* The DMA API does not allow a second mapping of the same memory. */
TEST_F(bench, by_rdma_rw_of_mapped_memory_is_for_devices_without_dma)
{
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	self->cmd.memory = KXFER_BENCH_MEMORY_RW;
	EXPECT_EQ(kx_maps_dma() ? -EBUSY : 0, bench(self->fd, &self->cmd));
	self->cmd.region = region_for_rw(&self->rig);
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
}

TEST_F(bench, of_more_than_a_device_registers_at_once_is_refused)
{
	struct rig_options options = { .length = 4 * LENGTH, .here = BUFFER_SCATTERED };

	rig_close(&self->rig);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->cmd.region = self->rig.here_region;
	self->cmd.target = self->rig.target;
	self->cmd.memory = KXFER_BENCH_MEMORY_MR;
	self->fd = self->rig.client;
	REFUSED(EINVAL, length, 4 * LENGTH);
	self->cmd.memory = KXFER_BENCH_MEMORY_MR_EACH;
	REFUSED(EINVAL, length, 4 * LENGTH);
}

TEST_F(bench, heeds_the_rights)
{
	uint32_t region, target;

	ASSERT_EQ(0, kx_target_open(self->fd, self->rig.peer, self->rig.name, KXFER_RIGHT_READ,
				    &target));
	REFUSED(EACCES, target, target);
	self->cmd.op = KXFER_OP_READ;
	self->cmd.target = target;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	test_cmd_region_add(self->fd, self->rig.here.bytes, LENGTH, 0, &region);
	REFUSED(EACCES, region, region);
}

TEST_F(bench, needs_memory_for_its_samples)
{
	uint32_t *samples = kx_before_hole(4 * sizeof(*samples));

	self->cmd.nr_samples = 5;
	REFUSED(EFAULT, samples, (uintptr_t)samples);
	REFUSED(EFAULT, samples, 8);
	self->cmd.nr_samples = 4;
	self->cmd.samples = (uintptr_t)samples;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_NE(0, samples[3]);
}

TEST_F(bench, needs_memory_for_its_histogram)
{
	size_t bytes = KXFER_BENCH_NR_BUCKETS * sizeof(uint32_t);
	uint8_t *histogram = kx_before_hole(bytes);

	self->cmd.nr_buckets = KXFER_BENCH_NR_BUCKETS;
	REFUSED(EFAULT, histogram, (uintptr_t)histogram + 4);
	REFUSED(EFAULT, histogram, 8);
	self->cmd.histogram = (uintptr_t)histogram;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
	self->cmd.nr_buckets = KXFER_BENCH_NR_BUCKETS - 1;
	EXPECT_EQ(-EINVAL, bench(self->fd, &self->cmd));
}

TEST_F(bench, is_for_administrators)
{
	int status;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (kx_become_tester())
			_exit(2);
		self->cmd = empty(&self->cmd);
		_exit(bench(self->fd, &self->cmd) != -EPERM);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/* ---- on links of any context ---- */

FIXTURE(anywhere)
{
	struct rig rig;
	struct kxfer_bench cmd;
};

FIXTURE_VARIANT(anywhere)
{
	uint32_t context;
};

FIXTURE_VARIANT_ADD(anywhere, polled) { .context = KXFER_CONTEXT_POLLED };
FIXTURE_VARIANT_ADD(anywhere, workqueue) { .context = KXFER_CONTEXT_WORKQUEUE };
FIXTURE_VARIANT_ADD(anywhere, softirq) { .context = KXFER_CONTEXT_SOFTIRQ };
FIXTURE_VARIANT_ADD(anywhere, unbound) { .context = KXFER_CONTEXT_UNBOUND };

FIXTURE_SETUP(anywhere)
{
	struct rig_options options = { .length = LENGTH, .context = variant->context };

	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->cmd = (struct kxfer_bench) {
		.size = sizeof(self->cmd),
		.op = KXFER_OP_READ,
		.region = self->rig.here_region,
		.target = self->rig.target,
		.depth = 32,
		.list = 8,
		.signal = 8,
		.length = 4096,
		.stride = 4096,
		.count = 1000,
		.time_limit_ms = LONG_MS,
	};
}

FIXTURE_TEARDOWN(anywhere)
{
	rig_close(&self->rig);
}

TEST_F(anywhere, runs_move_what_they_say)
{
	uint32_t memory, signal;
	size_t i;

	for (i = 0; i < LENGTH; i++)
		self->rig.there.bytes[i] = 1 + i % 251;
	for (memory = 0; memory <= KXFER_BENCH_MEMORY_RW; memory++) {
		if (memory == KXFER_BENCH_MEMORY_RW)
			self->cmd.region = region_for_rw(&self->rig);
		for (signal = 1; signal <= (memory == KXFER_BENCH_MEMORY_RW ? 1 : 8);
		     signal += 7) {
			memset(self->rig.here.bytes, 0, LENGTH);
			self->cmd.memory = memory;
			self->cmd.signal = signal;
			ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
			EXPECT_EQ(1000, self->cmd.operations);
			EXPECT_EQ(0, memcmp(self->rig.here.bytes, self->rig.there.bytes,
					    32 * 4096));
		}
	}
}

TEST_F(anywhere, runs_time_each_operation)
{
	uint32_t samples[200] = {};
	uint64_t sum = 0;
	int i;

	self->cmd = deep(&self->cmd, KXFER_OP_READ, 1, 1, 1);
	self->cmd.count = 200;
	self->cmd.nr_samples = 200;
	self->cmd.samples = (uintptr_t)samples;
	ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
	for (i = 0; i < 200; i++)
		sum += samples[i];
	EXPECT_EQ(self->cmd.total_ns, sum);
}

TEST_F(anywhere, runs_end_with_their_time)
{
	uint64_t began_ns = kx_now_ns();

	self->cmd.count = UINT_MAX;
	self->cmd.time_limit_ms = 50;
	ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
	EXPECT_LT(0, self->cmd.operations);
	EXPECT_LE(50 * 1000000ULL, kx_now_ns() - began_ns);
	EXPECT_GT(LONG_MS * 1000000ULL / 2, kx_now_ns() - began_ns);
}

static void *run_long(void *argument)
{
	struct _test_data_anywhere *self = argument;
	sigset_t children;

	/* SIGCHLD of a command must not interrupt the run. */
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &children, NULL);
	self->cmd.count = UINT_MAX;
	return (void *)(long)bench(self->rig.client, &self->cmd);
}

/* ---- on schedule ---- */

#define MS_IN_PS	1000000000ULL

static uint32_t since_due[KXFER_BENCH_NR_BUCKETS], since_post[KXFER_BENCH_NR_BUCKETS];

static struct kxfer_bench on_schedule(const struct kxfer_bench *cmd, uint64_t interval_ps)
{
	struct kxfer_bench changed = *cmd;

	memset(since_due, 0, sizeof(since_due));
	memset(since_post, 0, sizeof(since_post));
	changed.signal = 1;
	changed.interval_ps = interval_ps;
	changed.nr_buckets = KXFER_BENCH_NR_BUCKETS;
	changed.histogram = (uintptr_t)since_due;
	changed.posted_histogram = (uintptr_t)since_post;
	return changed;
}

/* first value of a bucket */
static uint64_t value_of(uint32_t i)
{
	return i < 256 ? i : (uint64_t)(128 + i % 128) << (i / 128 - 1);
}

static uint32_t sum_of(const uint32_t *histogram)
{
	uint32_t sum = 0, i;

	for (i = 0; i < KXFER_BENCH_NR_BUCKETS; i++)
		sum += histogram[i];
	return sum;
}

/* Sum of all times, each rounded down to its bucket. */
static uint64_t total_of(const uint32_t *histogram)
{
	uint64_t total = 0;
	uint32_t i;

	for (i = 0; i < KXFER_BENCH_NR_BUCKETS; i++)
		total += histogram[i] * value_of(i);
	return total;
}

/* First value of the bucket with the smallest or the greatest time. */
static uint64_t end_of(const uint32_t *histogram, bool greatest)
{
	uint32_t k, i;

	for (k = 0; k < KXFER_BENCH_NR_BUCKETS; k++) {
		i = greatest ? KXFER_BENCH_NR_BUCKETS - 1 - k : k;
		if (histogram[i])
			return value_of(i);
	}
	return 0;
}

/* No operation begins before it is due, however early the others ended. */
TEST_F(anywhere, runs_keep_a_schedule)
{
	uint32_t memory;

	for (memory = 0; memory <= KXFER_BENCH_MEMORY_RW; memory++) {
		if (memory == KXFER_BENCH_MEMORY_RW)
			self->cmd.region = region_for_rw(&self->rig);
		self->cmd.memory = memory;
		self->cmd.count = 60;
		self->cmd = on_schedule(&self->cmd, 5 * MS_IN_PS);
		self->cmd.late_ns = 0;
		ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
		EXPECT_EQ(60, self->cmd.operations);
		EXPECT_LE(59 * 5 * 1000000ULL, self->cmd.total_ns);
		EXPECT_EQ(60, sum_of(since_due));
		EXPECT_EQ(60, sum_of(since_post));
		EXPECT_LE(end_of(since_post, false), end_of(since_due, false));
		EXPECT_LE(end_of(since_post, true), end_of(since_due, true));
		/*
		 * When the last operation began, the next was not due, unless this machine
		 * stalled.
		 */
		EXPECT_LE(-5000000, self->cmd.late_ns);
	}
}

/* More operations are due at once than there is room for: each waits longer than the one before. */
TEST_F(anywhere, runs_that_do_not_keep_up_are_late)
{
	self->cmd = on_schedule(&self->cmd, 1000);
	self->cmd.depth = 2;
	self->cmd.list = 2;
	self->cmd.count = 300;
	ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
	EXPECT_EQ(300, self->cmd.operations);
	/* All were due within 0.3 us of the first. */
	EXPECT_LE(end_of(since_due, true), self->cmd.total_ns);
	EXPECT_LT(self->cmd.total_ns / 2, end_of(since_due, true));
	EXPECT_GT(end_of(since_due, true), end_of(since_post, true));
	/* At most two operations at a time (Little's law). */
	EXPECT_GE(2 * self->cmd.total_ns, total_of(since_post));
	EXPECT_LT(0, self->cmd.late_ns);
	/* The next run starts with the lateness, which its operations' times include. */
	self->cmd = on_schedule(&self->cmd, 1000);
	self->cmd.late_ns = 1000000000;
	self->cmd.count = 10;
	ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
	EXPECT_LE(990000000, end_of(since_due, false));
	EXPECT_LT(990000000, self->cmd.late_ns);
}

TEST_F(anywhere, a_schedule_ends_with_its_time)
{
	uint64_t began_ns = kx_now_ns();

	/* The first operation is due only after the time limit. */
	self->cmd = on_schedule(&self->cmd, 10 * MS_IN_PS);
	self->cmd.late_ns = -1000000000;
	self->cmd.time_limit_ms = 50;
	ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
	EXPECT_EQ(0, self->cmd.operations);
	EXPECT_LE(40 * 1000000ULL, self->cmd.total_ns);
	EXPECT_LE(self->cmd.total_ns, kx_now_ns() - began_ns);
	EXPECT_LE(-960000000, self->cmd.late_ns);
	/* The place in the schedule is kept even if the warm-up takes all the time. */
	self->cmd.warm_up = UINT_MAX;
	self->cmd.late_ns = 500000000;
	ASSERT_EQ(0, bench(self->rig.client, &self->cmd));
	EXPECT_EQ(0, self->cmd.operations);
	EXPECT_LE(500000000, self->cmd.late_ns);
	self->cmd.warm_up = 0;
	/* A signal ends a run that waits for its schedule. */
	self->cmd.late_ns = -1000000000;
	self->cmd.time_limit_ms = LONG_MS;
	ASSERT_EQ(0, kx_alarms(100, 0));
	EXPECT_EQ(-EINTR, bench(self->rig.client, &self->cmd));
	ASSERT_EQ(0, kx_alarms(0, 0));
}

/* The device is removed under REG_MRs, LOCAL_INVs and mappings. Return: NULL, or what is wrong */
static const char *ends_with_device(struct _test_data_anywhere *self, uint32_t memory,
				    const char *device, const char *netdev)
{
	const char *wrong = NULL;
	struct kxfer_query query;
	pthread_t thread;
	void *ret;

	self->cmd.memory = memory;
	self->cmd.signal = memory == KXFER_BENCH_MEMORY_RW ? 1 : self->cmd.signal;
	if (pthread_create(&thread, NULL, run_long, self))
		return "no thread";
	kx_sleep_ms(RUNNING_MS * kx_slowness());
	if (baseline_command("rdma link del %s", device))
		return "the device does not go";
	pthread_join(thread, &ret);
	if ((int)(long)ret != -ENODEV)
		wrong = strerror(-(int)(long)ret);
	else if (kx_counter(self->rig.client, "live_mrs"))
		wrong = "MRs are left";
	if (baseline_command("rdma link add %s type %s netdev %s", device, kx_provider(), netdev) ||
	    !kx_wait_until(!kx_query(self->rig.client, &query) && query.nr_devices, 5000))
		return "the device does not come back";
	return wrong;
}

TEST_F_TIMEOUT(anywhere, runs_end_when_the_device_goes, 60)
{
	char device[64], netdev[32];

	snprintf(device, sizeof(device), "%s", kx_device());
	if (geteuid() || !baseline_netdev(device, netdev, sizeof(netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	EXPECT_STREQ("", ends_with_device(self, KXFER_BENCH_MEMORY_MR_EACH, device, netdev) ?: "");
}

TEST_F_TIMEOUT(anywhere, runs_by_mrs_of_a_pool_end_when_the_device_goes, 60)
{
	char device[64], netdev[32];

	snprintf(device, sizeof(device), "%s", kx_device());
	if (geteuid() || !baseline_netdev(device, netdev, sizeof(netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	self->cmd.flags = KXFER_BENCH_F_MR_POOL;
	EXPECT_STREQ("", ends_with_device(self, KXFER_BENCH_MEMORY_MR_EACH, device, netdev) ?: "");
}

TEST_F_TIMEOUT(anywhere, runs_by_rdma_rw_end_when_the_device_goes, 60)
{
	char device[64], netdev[32];

	snprintf(device, sizeof(device), "%s", kx_device());
	if (geteuid() || !baseline_netdev(device, netdev, sizeof(netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	EXPECT_STREQ("", ends_with_device(self, KXFER_BENCH_MEMORY_RW, device, netdev) ?: "");
}

/* ---- what ends a run ---- */

static void *run_in_thread(void *arg)
{
	struct _test_data_bench *self = arg;

	return (void *)(long)bench(self->fd, &self->cmd);
}

/* Begins a run that does not end by itself. */
static bool begin(struct _test_data_bench *self, pthread_t *thread)
{
	self->cmd = deep(&self->cmd, KXFER_OP_WRITE, 32, 8, 16);
	self->cmd.count = UINT_MAX;
	if (pthread_create(thread, NULL, run_in_thread, self))
		return false;
	kx_sleep_ms(RUNNING_MS * kx_slowness());
	return true;
}

static int end(pthread_t thread)
{
	void *ret;

	return pthread_join(thread, &ret) ? -EIO : (int)(long)ret;
}

TEST_F(bench, ends_with_its_time)
{
	uint64_t began = kx_now_ns();

	self->cmd = deep(&self->cmd, KXFER_OP_READ, 32, 8, 16);
	self->cmd.count = UINT_MAX;
	self->cmd.time_limit_ms = 100;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_LT(0, self->cmd.operations);
	EXPECT_EQ(0, self->cmd.operations % 16);
	EXPECT_LE(began + 100 * 1000000ULL, kx_now_ns());
	EXPECT_GT(began + LONG_MS * 1000000ULL, kx_now_ns());
	/* A time limit ends the warm-up too. */
	self->cmd.warm_up = UINT_MAX;
	ASSERT_EQ(0, bench(self->fd, &self->cmd));
	EXPECT_EQ(0, self->cmd.operations);
	EXPECT_EQ(0, self->cmd.total_ns);
}

TEST_F(bench, ends_with_a_signal)
{
	self->cmd.count = UINT_MAX;
	ASSERT_EQ(0, kx_alarms(100, 0));
	EXPECT_EQ(-EINTR, bench(self->fd, &self->cmd));
	ASSERT_EQ(0, kx_alarms(0, 0));
	self->cmd.count = 10;
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
}

TEST_F(bench, of_a_killed_process_ends)
{
	int status;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		self->cmd.count = UINT_MAX;
		bench(self->fd, &self->cmd);
		_exit(1);
	}
	kx_sleep_ms(RUNNING_MS * kx_slowness());
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, bench(self->fd, &self->cmd));
}

TEST_F(bench, has_the_lane_for_itself)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH);
	struct kxfer_completion completion;
	struct kxfer_bench other = self->cmd;
	pthread_t thread;

	self->cmd.time_limit_ms = 2000 * kx_slowness();
	ASSERT_TRUE(begin(self, &thread));
	EXPECT_EQ(-EBUSY, bench(self->fd, &other));
	EXPECT_EQ(-EBUSY, kx_target_close(self->fd, self->rig.target));
	EXPECT_EQ(-EBUSY, kx_region_del(self->fd, self->rig.here_region));
	/* A job waits for the run, and completes then. */
	test_cmd_submit(1, self->fd, &job, 1);
	EXPECT_EQ(0, kx_reap(self->fd, &completion, 1, 0, 0));
	EXPECT_EQ(0, end(thread));
	test_cmd_reap(1, self->fd, &completion, 1, 1, RIG_WAIT_MS);
	EXPECT_EQ(0, completion.status);
	EXPECT_EQ(0, bench(self->fd, &other));
}

TEST_F(bench, is_not_begun_among_jobs)
{
	struct kxfer_completion completions[64];
	struct kxfer_job jobs[64];
	int i;

	for (i = 0; i < 64; i++)
		jobs[i] = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH);
	test_cmd_submit(64, self->fd, jobs, 64);
	i = bench(self->fd, &self->cmd);
	/* All jobs may have ended before the run. */
	EXPECT_TRUE(i == -EBUSY || kx_reap(self->fd, completions, 64, 0, 0) == 64);
	EXPECT_LE(0, kx_reap(self->fd, completions, 64, 64, RIG_WAIT_MS));
}

TEST_F(bench, ends_when_its_export_is_withdrawn)
{
	pthread_t thread;

	ASSERT_TRUE(begin(self, &thread));
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	EXPECT_EQ(-EKEYREVOKED, end(thread));
	EXPECT_EQ(-EKEYREVOKED, bench(self->fd, &self->cmd));
}

TEST_F(bench, ends_when_the_exporter_goes)
{
	pthread_t thread;

	ASSERT_TRUE(begin(self, &thread));
	close(self->rig.server);
	self->rig.server = -1;
	EXPECT_EQ(-EKEYREVOKED, end(thread));
}

TEST_F_TIMEOUT(bench, ends_when_the_device_goes, 60)
{
	char device[64], netdev[32];
	struct kxfer_query query;
	pthread_t thread;

	snprintf(device, sizeof(device), "%s", kx_device());
	if (geteuid() || !baseline_netdev(device, netdev, sizeof(netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	ASSERT_TRUE(begin(self, &thread));
	ASSERT_EQ(0, baseline_command("rdma link del %s", device));
	EXPECT_EQ(-ENODEV, end(thread));
	EXPECT_EQ(-ENODEV, bench(self->fd, &self->cmd));
	ASSERT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", device,
				      kx_provider(), netdev));
	EXPECT_TRUE(kx_wait_until(!kx_query(self->fd, &query) && query.nr_devices, 5000));
}

TEST_HARNESS_MAIN
