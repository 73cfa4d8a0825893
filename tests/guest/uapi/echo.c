// SPDX-License-Identifier: GPL-2.0
/*
 * BENCH with KXFER_BENCH_F_PING and _PONG: WRITEs that go there and back, with the kernel at both
 * ends; what is refused; and that no end waits longer than its call says.
 *
 * Method: both ends are sessions of this process. Each has memory of two halves: what goes out,
 * and what comes in. The second end has a type of service of its own, so that its lane is not that
 * of the first.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define HALF		8192UL
#define LONG_MS		30000	/* longer than any run here that has an answer */
#define SHORT_MS	200
#define TOS		60

struct end {
	int fd;
	uint8_t *memory;
	uint32_t region;
	uint32_t export_id;
	uint32_t target;
};

FIXTURE(echo)
{
	struct rig rig;		/* for its listener */
	struct end ping;
	struct end pong;
};

static int end_offer(struct end *end, const char *name)
{
	end->fd = kx_open();
	end->memory = kx_alloc(2 * HALF);
	if (end->fd < 0)
		return end->fd;
	return kx_region_add(end->fd, end->memory, 2 * HALF, KXFER_REGION_F_WRITE,
			     &end->region) ?:
	       kx_export_add(end->fd, end->region, 0, 2 * HALF,
			     KXFER_RIGHT_READ | KXFER_RIGHT_WRITE, name, &end->export_id);
}

static int end_open(struct end *end, const char *name, uint32_t tos)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), 0),
		.flags = tos ? KXFER_PEER_F_TOS : 0,
		.tos = tos,
		.timeout_ms = KX_TIMEOUT_MS,
	};

	return kx_call(end->fd, KXFER_PEER_OPEN, &cmd) ?:
	       kx_target_open(end->fd, cmd.peer, name, KXFER_RIGHT_READ | KXFER_RIGHT_WRITE,
			      &end->target);
}

FIXTURE_SETUP(echo)
{
	struct rig_options options = { .length = 4096 };

	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	ASSERT_EQ(0, end_offer(&self->ping, "echo-ping"));
	ASSERT_EQ(0, end_offer(&self->pong, "echo-pong"));
	ASSERT_EQ(0, end_open(&self->ping, "echo-pong", 0));
	ASSERT_EQ(0, end_open(&self->pong, "echo-ping", TOS));
}

FIXTURE_TEARDOWN(echo)
{
	close(self->ping.fd);
	close(self->pong.fd);
	rig_close(&self->rig);
}

static struct kxfer_bench run_of(const struct end *end, uint32_t flags, uint64_t length,
				 uint32_t count)
{
	return (struct kxfer_bench) {
		.size = sizeof(struct kxfer_bench),
		.flags = flags,
		.op = KXFER_OP_WRITE,
		.region = end->region,
		.target = end->target,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.target_offset = HALF,
		.echo_offset = HALF,
		.echo = 1,
		.length = length,
		.count = count,
		.time_limit_ms = LONG_MS,
	};
}

static int bench(const struct end *end, struct kxfer_bench *cmd)
{
	return kx_call(end->fd, KXFER_BENCH, cmd);
}

/* A run of the other end, in a thread of its own. */
struct answering {
	const struct end *end;
	struct kxfer_bench cmd;
	uint32_t wanted;	/* calls go on until so many are answered, or for LONG_MS */
	uint32_t done;
	int error;
	pthread_t thread;
};

static void *answer(void *arg)
{
	struct answering *answering = arg;
	uint64_t until_ns = kx_deadline_ns(LONG_MS);

	while (!answering->error && answering->done < answering->wanted && kx_now_ns() < until_ns) {
		answering->cmd.count = answering->wanted - answering->done;
		answering->error = bench(answering->end, &answering->cmd);
		if (!answering->error)
			answering->done += answering->cmd.operations;
	}
	return NULL;
}

static struct answering answers_of(const struct end *end, uint64_t length, uint32_t wanted)
{
	return (struct answering) {
		.end = end,
		.cmd = run_of(end, KXFER_BENCH_F_PONG, length, wanted),
		.wanted = wanted,
	};
}

static int answer_begin(struct answering *answering)
{
	return pthread_create(&answering->thread, NULL, answer, answering);
}

static void wipe(struct end *end, uint8_t out)
{
	memset(end->memory, out, HALF);
	memset(end->memory + HALF, 0, HALF);
}

/* ---- what works ---- */

TEST_F(echo, bytes_go_there_and_back)
{
	static const uint64_t lengths[] = { 1, 64, 4096, HALF };
	struct answering answering;
	struct kxfer_bench cmd;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		wipe(&self->ping, 0xaa);
		wipe(&self->pong, 0xbb);
		answering = answers_of(&self->pong, lengths[i], 120);
		ASSERT_EQ(0, answer_begin(&answering));
		cmd = run_of(&self->ping, KXFER_BENCH_F_PING, lengths[i], 100);
		cmd.warm_up = 20;
		EXPECT_EQ(0, bench(&self->ping, &cmd));
		ASSERT_EQ(0, pthread_join(answering.thread, NULL));
		EXPECT_EQ(0, answering.error);
		EXPECT_EQ(100, cmd.operations);
		EXPECT_LT(0, cmd.total_ns);
		EXPECT_EQ(120, answering.done);
		EXPECT_EQ(121, cmd.echo);
		EXPECT_EQ(121, answering.cmd.echo);
		EXPECT_EQ(120, self->ping.memory[HALF + lengths[i] - 1]);
		EXPECT_EQ(120, self->pong.memory[HALF + lengths[i] - 1]);
		if (lengths[i] > 1) {
			EXPECT_EQ(0xbb, self->ping.memory[HALF]);
			EXPECT_EQ(0xaa, self->pong.memory[HALF + lengths[i] - 2]);
		}
		if (lengths[i] < HALF)
			EXPECT_EQ(0, self->pong.memory[HALF + lengths[i]]);
	}
}

/* A sample is a whole round trip: there, and back. */
TEST_F(echo, samples_are_round_trips)
{
	static uint32_t samples[300], histogram[KXFER_BENCH_NR_BUCKETS];
	struct answering answering = answers_of(&self->pong, 64, 300);
	struct kxfer_bench cmd = run_of(&self->ping, KXFER_BENCH_F_PING, 64, 300);
	uint64_t sum = 0, counted = 0;
	int i;

	cmd.samples = (uintptr_t)samples;
	cmd.nr_samples = 300;
	cmd.histogram = (uintptr_t)histogram;
	cmd.nr_buckets = KXFER_BENCH_NR_BUCKETS;
	/* The last byte goes round once and a bit. */
	cmd.echo = UINT_MAX - 20;
	answering.cmd.echo = cmd.echo;
	ASSERT_EQ(0, answer_begin(&answering));
	EXPECT_EQ(0, bench(&self->ping, &cmd));
	ASSERT_EQ(0, pthread_join(answering.thread, NULL));
	EXPECT_EQ(300, cmd.operations);
	ASSERT_EQ(300, cmd.nr_samples);
	EXPECT_EQ(279, cmd.echo);
	for (i = 0; i < 300; i++)
		sum += samples[i];
	EXPECT_EQ(cmd.total_ns, sum);
	for (i = 0; i < KXFER_BENCH_NR_BUCKETS; i++)
		counted += histogram[i];
	EXPECT_EQ(300, counted);
}

TEST_F(echo, an_answerer_goes_on_from_call_to_call)
{
	struct kxfer_bench cmd = run_of(&self->ping, KXFER_BENCH_F_PING, 64, 50);
	struct answering answering = answers_of(&self->pong, 64, 500);
	int i;

	answering.cmd.time_limit_ms = 1;
	ASSERT_EQ(0, answer_begin(&answering));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, bench(&self->ping, &cmd));
		ASSERT_EQ(50, cmd.operations);
	}
	ASSERT_EQ(0, pthread_join(answering.thread, NULL));
	EXPECT_EQ(0, answering.error);
	EXPECT_EQ(500, answering.done);
	EXPECT_EQ(501, cmd.echo);
}

/* ---- without the other end ---- */

TEST_F(echo, what_is_not_answered_is_not_done)
{
	struct kxfer_bench cmd = run_of(&self->ping, KXFER_BENCH_F_PING, 64, 10);
	uint64_t begun = kx_now_ns();

	cmd.time_limit_ms = SHORT_MS;
	ASSERT_EQ(0, bench(&self->ping, &cmd));
	EXPECT_EQ(0, cmd.operations);
	EXPECT_EQ(1, cmd.echo);
	EXPECT_GT(LONG_MS * 1000000ull, kx_now_ns() - begun);
	/* Also while it warms up. */
	cmd.warm_up = 10;
	ASSERT_EQ(0, bench(&self->ping, &cmd));
	EXPECT_EQ(0, cmd.operations);
	EXPECT_EQ(1, cmd.echo);
	/* An answer that came late is that of the same operation, and not of the next. */
	cmd.warm_up = 0;
	self->ping.memory[HALF + 63] = 1;
	ASSERT_EQ(0, bench(&self->ping, &cmd));
	EXPECT_EQ(1, cmd.operations);
	EXPECT_EQ(2, cmd.echo);
}

/* The other end has not seen the first operation when the run ends, or it has. */
TEST_F(echo, both_ends_go_on_after_a_pause_of_one)
{
	struct answering answering = answers_of(&self->pong, 64, 40);
	struct kxfer_bench cmd = run_of(&self->ping, KXFER_BENCH_F_PING, 64, 20);

	cmd.time_limit_ms = SHORT_MS;
	ASSERT_EQ(0, bench(&self->ping, &cmd));
	ASSERT_EQ(0, cmd.operations);
	ASSERT_EQ(0, answer_begin(&answering));
	cmd.time_limit_ms = LONG_MS;
	EXPECT_EQ(0, bench(&self->ping, &cmd));
	EXPECT_EQ(20, cmd.operations);
	EXPECT_EQ(0, bench(&self->ping, &cmd));
	EXPECT_EQ(20, cmd.operations);
	EXPECT_EQ(41, cmd.echo);
	ASSERT_EQ(0, pthread_join(answering.thread, NULL));
	EXPECT_EQ(40, answering.done);
}

TEST_F(echo, what_does_not_come_is_not_answered)
{
	struct kxfer_bench cmd = run_of(&self->pong, KXFER_BENCH_F_PONG, 64, 10);

	cmd.time_limit_ms = SHORT_MS;
	ASSERT_EQ(0, bench(&self->pong, &cmd));
	EXPECT_EQ(0, cmd.operations);
	EXPECT_EQ(1, cmd.echo);
	EXPECT_EQ(0, self->ping.memory[HALF + 63]);
}

/* Longer than work that is under way may take. */
TEST_F_TIMEOUT(echo, an_end_that_listens_keeps_its_link, 90)
{
	struct kxfer_bench cmd = run_of(&self->pong, KXFER_BENCH_F_PONG, 64, 10);

	cmd.time_limit_ms = 35000;
	ASSERT_EQ(0, bench(&self->pong, &cmd));
	EXPECT_EQ(0, cmd.operations);
	EXPECT_EQ(0, kx_transfer(self->pong.fd, KXFER_OP_READ, self->pong.region, 0,
				 self->pong.target, 0, 64));
}

TEST_F(echo, ends_with_a_signal)
{
	struct kxfer_bench cmd = run_of(&self->pong, KXFER_BENCH_F_PONG, 64, 10);

	ASSERT_EQ(0, kx_alarms(100, 0));
	EXPECT_EQ(-EINTR, bench(&self->pong, &cmd));
	cmd = run_of(&self->ping, KXFER_BENCH_F_PING, 64, 10);
	EXPECT_EQ(-EINTR, bench(&self->ping, &cmd));
	ASSERT_EQ(0, kx_alarms(0, 0));
}

TEST_F(echo, ends_when_the_peer_withdraws_its_memory)
{
	struct answering answering = answers_of(&self->pong, 64, 10);

	ASSERT_EQ(0, answer_begin(&answering));
	kx_sleep_ms(150);
	EXPECT_EQ(0, kx_export_del(self->ping.fd, self->ping.export_id));
	ASSERT_EQ(0, pthread_join(answering.thread, NULL));
	EXPECT_EQ(-EKEYREVOKED, answering.error);
}

TEST_F(echo, the_region_stays_until_the_run_ends)
{
	struct answering answering = answers_of(&self->pong, 64, 1);

	answering.cmd.time_limit_ms = 1000;
	ASSERT_EQ(0, answer_begin(&answering));
	kx_sleep_ms(150);
	EXPECT_EQ(-EBUSY, kx_region_del(self->pong.fd, self->pong.region));
	EXPECT_EQ(-EBUSY, kx_target_close(self->pong.fd, self->pong.target));
	self->pong.memory[HALF + 63] = 1;
	ASSERT_EQ(0, pthread_join(answering.thread, NULL));
	EXPECT_EQ(0, answering.error);
}

/* ---- what is refused ---- */

TEST_F(echo, refuses_what_is_no_round_trip)
{
	const struct kxfer_bench good = run_of(&self->pong, KXFER_BENCH_F_PONG, 64, 1);
	struct kxfer_bench bad[10];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[0].flags |= KXFER_BENCH_F_PING;
	bad[1].op = KXFER_OP_READ;
	bad[2].depth = 2;
	bad[2].stride = 64;
	bad[3].interval_ps = 1000000;
	bad[4].memory = KXFER_BENCH_MEMORY_MR_EACH;
	bad[5].memory = KXFER_BENCH_MEMORY_RW;
	bad[6].flags = 0;
	bad[7].flags = 0;
	bad[7].echo = 0;
	bad[8].__reserved = 1;
	bad[9].op = KXFER_OP_FETCH_ADD;
	bad[9].length = 8;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(-EINVAL, bench(&self->pong, &bad[i])) {
			TH_LOG("run %zu", i);
		}
}

TEST_F(echo, refuses_memory_that_it_may_not_use)
{
	struct kxfer_bench cmd = run_of(&self->pong, KXFER_BENCH_F_PONG, 64, 1);
	uint32_t region;

	cmd.echo_offset = 2 * HALF - 63;
	EXPECT_EQ(-ERANGE, bench(&self->pong, &cmd));
	cmd.echo_offset = UINT64_MAX - 8;
	EXPECT_EQ(-EOVERFLOW, bench(&self->pong, &cmd));
	cmd.echo_offset = HALF;
	ASSERT_EQ(0, kx_region_add(self->pong.fd, self->pong.memory, 2 * HALF, 0, &region));
	cmd.region = region;
	EXPECT_EQ(-EACCES, bench(&self->pong, &cmd));
}

TEST_HARNESS_MAIN
