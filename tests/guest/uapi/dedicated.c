// SPDX-License-Identifier: GPL-2.0
/*
 * DEDICATED_OPEN, _CLOSE and _STATUS, and BENCH on dedicated connections: messages arrive and
 * their surroundings do not change, which requests are refused with which errno, and how either
 * side ends a connection.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "peers/sender.h"

#define NR_CLOSED	20	/* connections that are closed while they are made */
#define MANY_SLOTS	200
#define RW_LENGTH	(256 * 4096)	/* bytes that rdma_rw registers at once */
#define RUNNING_MS	150	/* a started run is in progress by then */

FIXTURE(dedicated)
{
	struct sender sender;
};

FIXTURE_SETUP(dedicated)
{
	ASSERT_EQ(0, sender_open(&self->sender, KXFER_TRANSPORT_RC));
}

FIXTURE_TEARDOWN(dedicated)
{
	const char *left = sender_close(&self->sender);

	EXPECT_EQ(NULL, left) {
		TH_LOG("%s", left);
	}
}

/* ---- what works ---- */

TEST_F(dedicated, sends)
{
	uint32_t context;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_DIRECT; context++) {
		self->sender.open.context = context;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		test_sends(&self->sender);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
	}
}

/* Only the calls poll the CQ, also for work requests besides the operations. */
TEST_F(dedicated, completes_where_its_calls_wait)
{
	uint32_t memory;

	self->sender.open.context = KXFER_CONTEXT_DIRECT;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.op = KXFER_OP_WRITE;
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 4 * SENDER_SLOTS;
	for (memory = KXFER_BENCH_MEMORY_DEFAULT; memory <= KXFER_BENCH_MEMORY_RW; memory++) {
		self->sender.bench.memory = memory;
		EXPECT_EQ(0, sender_run(&self->sender));
		EXPECT_EQ(4 * SENDER_SLOTS, self->sender.bench.operations);
	}
	EXPECT_EQ(0, sender_hang_up(&self->sender));
	EXPECT_TRUE(sender_is_alone(&self->sender));
}

/* On schedule too, a completion is found when it comes, not when the next operation is due. */
TEST_F(dedicated, completes_where_its_calls_wait_before_the_next_is_due)
{
	static uint32_t histogram[KXFER_BENCH_NR_BUCKETS];
	uint32_t i, soon = 0;

	self->sender.open.context = KXFER_CONTEXT_DIRECT;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.op = KXFER_OP_WRITE;
	self->sender.bench.count = 20;
	self->sender.bench.interval_ps = 100 * 1000000000ULL;
	self->sender.bench.nr_buckets = KXFER_BENCH_NR_BUCKETS;
	self->sender.bench.histogram = (uintptr_t)histogram;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(20, self->sender.bench.operations);
	/* Count times below 67 ms, because a busy host delays emulated CPUs. */
	for (i = 0; i < 20 * 128; i++)
		soon += histogram[i];
	EXPECT_LE(10, soon);
}

/* Number of CQs of the device with a given owner. */
static int count_cqs(const char *of)
{
	char command[160];
	FILE *pipe;
	int nr = -1;

	snprintf(command, sizeof(command),
		 "rdma resource show cq | grep -w '%s' | grep -c '\\[%s\\]'", kx_device(), of);
	pipe = popen(command, "r");
	if (!pipe)
		return -1;
	if (fscanf(pipe, "%d", &nr) != 1)
		nr = -1;
	pclose(pipe);
	return nr;
}

/* As count_cqs(), when two looks agree: the links of an earlier test may still be ending. */
static int settled_cqs(const char *of)
{
	int before, nr = count_cqs(of), tries = 0;

	do {
		before = nr;
		usleep(200000);
		nr = count_cqs(of);
	} while (nr != before && ++tries < 50);
	return nr;
}

TEST_F(dedicated, completes_on_a_cq_of_the_pool)
{
	uint32_t context;
	int own = settled_cqs("kxfer");

	ASSERT_LE(0, own);
	self->sender.open.flags |= KXFER_DEDICATED_F_CQ_POOL;
	for (context = KXFER_CONTEXT_WORKQUEUE; context <= KXFER_CONTEXT_UNBOUND; context++) {
		self->sender.open.context = context;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		EXPECT_EQ(own, count_cqs("kxfer"));
		EXPECT_LE(1, count_cqs("ib_core"));
		test_sends(&self->sender);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
	}
	self->sender.open.flags &= ~KXFER_DEDICATED_F_CQ_POOL;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	EXPECT_EQ(own + 1, count_cqs("kxfer"));
}

/*
 * Each connection takes room on a CQ of the pool, two hundred of 8192 completions, and returns
 * it; without that, so many connections would need a second CQ.
 */
TEST_F_TIMEOUT(dedicated, gives_back_what_it_had_of_the_pool, 120)
{
	int cqs, i;

	self->sender.open.flags |= KXFER_DEDICATED_F_CQ_POOL;
	self->sender.open.context = KXFER_CONTEXT_SOFTIRQ;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	cqs = count_cqs("ib_core");
	EXPECT_LE(1, cqs);
	for (i = 0; i < 2 * NR_CLOSED; i++) {
		ASSERT_EQ(0, sender_hang_up(&self->sender));
		ASSERT_TRUE(sender_is_alone(&self->sender));
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		self->sender.bench.depth = SENDER_SLOTS;
		ASSERT_EQ(0, sender_run(&self->sender));
	}
	EXPECT_EQ(cqs, count_cqs("ib_core"));
}

TEST_F(dedicated, sends_and_writes_with_immediate)
{
	self->sender.open.flags |= KXFER_DEDICATED_F_IMM;
	self->sender.bench.flags = KXFER_BENCH_F_IMM;
	if (!strncmp(kx_provider(), "siw", 3)) {
		EXPECT_EQ(-EOPNOTSUPP, sender_dedicate(&self->sender));
		self->sender.open.op = KXFER_OP_WRITE;
		EXPECT_EQ(-EOPNOTSUPP, sender_dedicate(&self->sender));
		return;
	}
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_sends(&self->sender);
	ASSERT_EQ(0, sender_hang_up(&self->sender));
	self->sender.open.op = KXFER_OP_WRITE;
	self->sender.bench.op = KXFER_OP_WRITE;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_sends(&self->sender);
}

TEST_F(dedicated, sends_from_registered_memory)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR;
	test_sends(&self->sender);
}

TEST_F(dedicated, sends_from_memory_that_is_registered_for_each)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR_EACH;
	test_sends(&self->sender);
	self->sender.bench.invalidate = KXFER_BENCH_INVALIDATE_LOCAL;
	ASSERT_EQ(0, sender_hang_up(&self->sender));
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_sends(&self->sender);
}

/* Each slot has an MR; the number of work requests depends on the operations in flight. */
TEST_F(dedicated, registers_for_each_of_more_slots_than_are_in_flight)
{
	struct sender *sender = &self->sender;
	uint8_t *here = kx_alloc(MANY_SLOTS * SENDER_STRIDE);

	ASSERT_NE(NULL, here);
	ASSERT_EQ(0, kx_region_add(sender->fd, here, MANY_SLOTS * SENDER_STRIDE, 0,
				   &sender->bench.region));
	sender->open.length = MANY_SLOTS * SENDER_STRIDE;
	sender->open.slots = MANY_SLOTS;
	sender->open.receives = MANY_SLOTS;
	ASSERT_EQ(0, sender_dedicate(sender));
	sender->bench.memory = KXFER_BENCH_MEMORY_MR_EACH;
	sender->bench.count = 2 * MANY_SLOTS;
	EXPECT_EQ(0, sender_run(sender));
	EXPECT_EQ(3, sender->bench.nr_wr);
	sender->bench.depth = 85;
	EXPECT_EQ(0, sender_run(sender));
	/* With a REG_MR and a LOCAL_INV each, 86 operations are too many for a lane. */
	test_err_run(EINVAL, sender, depth, 86);
	EXPECT_TRUE(!sender->responder.wrong);
}

TEST_F(dedicated, reads_and_writes)
{
	struct kxfer_dedicated_status status;

	self->sender.open.op = KXFER_OP_READ;
	self->sender.open.receives = 0;
	self->sender.open.slots = 0;
	self->sender.open.bytes = 0;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.op = KXFER_OP_WRITE;
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 2 * SENDER_SLOTS;
	ASSERT_EQ(0, sender_run(&self->sender));
	memset(self->sender.here, 0, SENDER_LENGTH);
	self->sender.bench.op = KXFER_OP_READ;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_TRUE(sender_landed(&self->sender));
	EXPECT_NE(0, memcmp(self->sender.here,
			    self->sender.here + SENDER_LENGTH - SENDER_BYTES, SENDER_BYTES));
	/* A run that only registers sends nothing to the peer. */
	self->sender.bench.op = KXFER_OP_NOP;
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR_EACH;
	EXPECT_EQ(0, sender_run(&self->sender));
	/* The responder has no receives for messages. */
	EXPECT_EQ(-EINVAL, sender_look(&self->sender, &status));
	self->sender.bench.op = KXFER_OP_SEND;
	EXPECT_EQ(-EINVAL, sender_run(&self->sender));
}

TEST_F(dedicated, reads_and_writes_by_rdma_rw)
{
	uint32_t context;

	self->sender.bench.memory = KXFER_BENCH_MEMORY_RW;
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 2 * SENDER_SLOTS;
	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_DIRECT; context++) {
		self->sender.open.context = context;
		if (context == KXFER_CONTEXT_SOFTIRQ)
			self->sender.open.flags |= KXFER_DEDICATED_F_CQ_POOL;
		if (context == KXFER_CONTEXT_DIRECT)
			self->sender.open.flags &= ~KXFER_DEDICATED_F_CQ_POOL;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		self->sender.bench.op = KXFER_OP_WRITE;
		ASSERT_EQ(0, sender_run(&self->sender));
		memset(self->sender.here, 0, SENDER_LENGTH);
		self->sender.bench.op = KXFER_OP_READ;
		ASSERT_EQ(0, sender_run(&self->sender));
		EXPECT_TRUE(sender_landed(&self->sender));
		EXPECT_NE(0, self->sender.here[1]);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
		ASSERT_TRUE(sender_is_alone(&self->sender));
	}
	/* rdma_rw is not used for messages. */
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_err_run(EOPNOTSUPP, &self->sender, op, KXFER_OP_SEND);
}

/*
 * A READ longer than an MR, whose rest would be a few bytes across a page of the peer: siw's
 * responder sends those wrong.
 */
TEST_F(dedicated, reads_by_several_mrs_of_rdma_rw)
{
	struct sender *sender = &self->sender;
	uint8_t *here = kx_alloc(2 * RW_LENGTH);
	uint32_t i;

	ASSERT_NE(NULL, here);
	memset(here, 0, 2 * RW_LENGTH);
	ASSERT_EQ(0, kx_region_add(sender->fd, here, 2 * RW_LENGTH, KXFER_REGION_F_WRITE,
				   &sender->bench.region));
	sender->open.length = 2 * RW_LENGTH;
	ASSERT_EQ(0, sender_dedicate(sender));
	for (i = 0; i < 2 * RW_LENGTH; i++)
		sender->responder.memory[i] = 1 + i % 251;
	sender->bench.op = KXFER_OP_READ;
	sender->bench.memory = KXFER_BENCH_MEMORY_RW;
	sender->bench.target_offset = 4096 - 10;
	sender->bench.length = RW_LENGTH + 14;
	sender->bench.count = 1;
	ASSERT_EQ(0, sender_run(sender));
	EXPECT_EQ(0, memcmp(here, sender->responder.memory + 4096 - 10, RW_LENGTH + 14));
	EXPECT_EQ(0, here[RW_LENGTH + 14]);
}

TEST_F(dedicated, counts)
{
	self->sender.open.op = KXFER_OP_FETCH_ADD;
	self->sender.open.receives = 0;
	self->sender.open.slots = 0;
	self->sender.open.bytes = 0;
	self->sender.bench.op = KXFER_OP_FETCH_ADD;
	self->sender.bench.length = 8;
	if (!kx_has_atomics()) {
		EXPECT_EQ(-EOPNOTSUPP, sender_dedicate(&self->sender));
		return;
	}
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(20, *(uint64_t *)self->sender.responder.memory);
	/* The connection was not opened for this operation. */
	self->sender.bench.op = KXFER_OP_COMPARE_SWAP;
	self->sender.bench.words = (uintptr_t)&(uint64_t) { 0 };
	EXPECT_EQ(-EACCES, sender_run(&self->sender));
}

TEST_F(dedicated, is_told_of_as_a_link)
{
	struct kxfer_info_link link;
	uint64_t cursor;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	cursor = self->sender.open.link - 1;
	ASSERT_EQ(1, kx_info(self->sender.fd, KXFER_INFO_LINKS, &link, sizeof(link), 1, &cursor));
	EXPECT_EQ(self->sender.open.link, link.id);
	EXPECT_EQ(KXFER_LINK_INITIATOR | KXFER_LINK_DEDICATED, link.flags);
	EXPECT_EQ(KXFER_LINK_LIVE, link.state);
	EXPECT_EQ(1, link.nr_lanes);
	EXPECT_EQ(0, link.in_flight_kib);
}

/* Operations begin when they are due, although the responder has few receives. */
static void check_schedule(struct __test_metadata *_metadata, struct _test_data_dedicated *self,
			   uint32_t receives)
{
	static uint32_t since_due[KXFER_BENCH_NR_BUCKETS], since_post[KXFER_BENCH_NR_BUCKETS];
	struct kxfer_dedicated_status status;
	uint64_t due = 0, posted = 0;
	uint32_t i;

	self->sender.open.receives = receives;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = receives < SENDER_SLOTS ? receives : SENDER_SLOTS;
	self->sender.bench.interval_ps = 2000000000;
	self->sender.bench.count = 100;
	self->sender.bench.late_ns = 0;
	self->sender.bench.nr_buckets = KXFER_BENCH_NR_BUCKETS;
	self->sender.bench.histogram = (uintptr_t)since_due;
	self->sender.bench.posted_histogram = (uintptr_t)since_post;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(100, self->sender.bench.operations);
	EXPECT_LE(99 * 2000000ULL, self->sender.bench.total_ns);
	for (i = 0; i < KXFER_BENCH_NR_BUCKETS; i++) {
		due += since_due[i];
		posted += since_post[i];
	}
	EXPECT_EQ(100, due);
	EXPECT_EQ(100, posted);
	ASSERT_TRUE(kx_wait_until(sender_settled(&self->sender, &status), KX_TIMEOUT_MS));
	EXPECT_EQ(100, status.sent);
	EXPECT_EQ(0, status.wrong);
	EXPECT_TRUE(sender_landed(&self->sender));
	ASSERT_EQ(0, sender_hang_up(&self->sender));
}

TEST_F(dedicated, sends_on_schedule)
{
	uint32_t context;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_SOFTIRQ; context++) {
		self->sender.open.context = context;
		check_schedule(_metadata, self, SENDER_RECEIVES);
		check_schedule(_metadata, self, 1);
	}
}

/* A list of all slots; each has one work request, in this list and the next. */
TEST_F(dedicated, sends_lists_of_all_slots)
{
	struct kxfer_dedicated_status status;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = 2 * SENDER_SLOTS;
	self->sender.bench.list = SENDER_SLOTS;
	self->sender.bench.count = 10 * SENDER_SLOTS;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(10 * SENDER_SLOTS, self->sender.bench.operations);
	ASSERT_TRUE(kx_wait_until(sender_settled(&self->sender, &status), KX_TIMEOUT_MS));
	EXPECT_EQ(10 * SENDER_SLOTS, status.sent);
	EXPECT_EQ(0, status.wrong);
}

/* A peer that is silent for 30 s loses the link. */
TEST_F_TIMEOUT(dedicated, waits_for_its_schedule_longer_than_for_a_peer, 120)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 3;
	self->sender.bench.interval_ps = 1000000000;
	self->sender.bench.late_ns = -36000000000LL;
	self->sender.bench.time_limit_ms = 60000;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(3, self->sender.bench.operations);
	EXPECT_EQ(0, sender_hang_up(&self->sender));
}

/* ---- what is refused ---- */

TEST_F(dedicated, refuses_a_connection_that_makes_no_sense)
{
	test_err_dedicate(EOPNOTSUPP, &self->sender, flags, KXFER_DEDICATED_F_CQ_POOL << 1);
	test_err_dedicate(EOPNOTSUPP, &self->sender, context, KXFER_CONTEXT_DIRECT + 1);
	test_err_dedicate(EINVAL, &self->sender, flags, KXFER_DEDICATED_F_CQ_POOL);
	self->sender.open.context = KXFER_CONTEXT_DIRECT;
	test_err_dedicate(EINVAL, &self->sender, flags, KXFER_DEDICATED_F_CQ_POOL);
	self->sender.open.context = KXFER_CONTEXT_POLLED;
	test_err_dedicate(EINVAL, &self->sender, timeout_ms, 0);
	test_err_dedicate(EINVAL, &self->sender, timeout_ms, 60001);
	test_err_dedicate(EINVAL, &self->sender, remote.family, 0);
	test_err_dedicate(EINVAL, &self->sender, remote.port, 0);
	test_err_dedicate(EINVAL, &self->sender, local.port, 1);
	test_err_dedicate(EINVAL, &self->sender, local, kx_addr(kx_address(), 1));
	test_err_dedicate(EADDRNOTAVAIL, &self->sender, device[0], 'x');
	test_err_dedicate(EINVAL, &self->sender, length, 0);
	test_err_dedicate(EINVAL, &self->sender, length, KXFER_DEDICATED_MAX_BYTES + 1ULL);
	test_err_dedicate(ERANGE, &self->sender, length, SENDER_LENGTH - 1);
	test_err_dedicate(EOPNOTSUPP, &self->sender, op, KXFER_OP_NOP);
	test_err_dedicate(EOPNOTSUPP, &self->sender, op, KXFER_OP_NOTIFY);
	test_err_dedicate(EOPNOTSUPP, &self->sender, op, KXFER_OP_RECV);
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_WRITE);
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_READ);
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_FETCH_ADD);
	test_err_dedicate(EINVAL, &self->sender, receives, 0);
	test_err_dedicate(EINVAL, &self->sender, receives, KXFER_DEDICATED_MAX_RECEIVES + 1);
	test_err_dedicate(EINVAL, &self->sender, slots, 0);
	test_err_dedicate(EINVAL, &self->sender, slots, KXFER_DEDICATED_MAX_SLOTS + 1);
	test_err_dedicate(EINVAL, &self->sender, bytes, 0);
	test_err_dedicate(ERANGE, &self->sender, bytes, UINT32_MAX);
	ASSERT_EQ(0, sender_dedicate(&self->sender));
}

TEST_F(dedicated, refuses_a_run_that_it_was_not_opened_for)
{
	struct kxfer_dedicated_status status;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_err_run(ENOENT, &self->sender, dedicated, self->sender.open.dedicated + 1);
	test_err_run(EOPNOTSUPP, &self->sender, dedicated, 0);
	test_err_run(EINVAL, &self->sender, target, 1);
	test_err_run(EINVAL, &self->sender, invalidate, 1);
	test_err_run(EINVAL, &self->sender, flags, KXFER_BENCH_F_IMM);
	test_err_run(EINVAL, &self->sender, flags, KXFER_BENCH_F_NO_INLINE);
	test_err_run(EOPNOTSUPP, &self->sender, flags, KXFER_BENCH_F_PONG << 1);
	test_err_run(EINVAL, &self->sender, length, SENDER_BYTES - 1);
	test_err_run(EINVAL, &self->sender, length, SENDER_BYTES + 1);
	test_err_run(EINVAL, &self->sender, stride, 0);
	test_err_run(EINVAL, &self->sender, target_offset, 8);
	test_err_run(EINVAL, &self->sender, depth, SENDER_RECEIVES + 1);
	self->sender.bench.depth = 2 * SENDER_SLOTS;
	test_err_run(EINVAL, &self->sender, list, SENDER_SLOTS + 1);
	self->sender.bench.depth = 1;
	test_err_run(ERANGE, &self->sender, region_offset, SENDER_STRIDE);
	self->sender.bench.length = 8;
	test_err_run(EACCES, &self->sender, op, KXFER_OP_FETCH_ADD);
	self->sender.bench.length = SENDER_BYTES;
	EXPECT_EQ(0, sender_run(&self->sender));
	self->sender.open.dedicated++;
	EXPECT_EQ(-ENOENT, sender_look(&self->sender, &status));
	EXPECT_EQ(-ENOENT, sender_hang_up(&self->sender));
}

TEST_F(dedicated, heeds_what_may_be_written)
{
	self->sender.open.flags = 0;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_err_run(EACCES, &self->sender, op, KXFER_OP_WRITE);
	test_err_run(ERANGE, &self->sender, stride, 1UL << 40);
	EXPECT_EQ(0, sender_run(&self->sender));
}

TEST_F(dedicated, has_a_limit)
{
	struct kxfer_dedicated_open good = self->sender.open;
	uint16_t port = self->sender.responder.port;

	/* Nothing listens on that port; a failed open takes no id. */
	self->sender.open.remote.port = port == 65535 ? 1024 : port + 1;
	EXPECT_EQ(-ECONNREFUSED, sender_dedicate(&self->sender));
	EXPECT_EQ(0, self->sender.open.refusal);
	self->sender.open = good;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	EXPECT_EQ(1, self->sender.open.dedicated);
	/* The responder has one connection already, and refuses without a reason. */
	EXPECT_EQ(-ECONNREFUSED, sender_dedicate(&self->sender));
}

static int as_tester(struct _test_data_dedicated *self)
{
	struct kxfer_dedicated_status status;
	int status_of_child;
	pid_t child = fork();

	if (!child) {
		if (kx_become_tester())
			_exit(2);
		_exit(sender_dedicate(&self->sender) != -EPERM ||
		      sender_look(&self->sender, &status) != -EPERM);
	}
	return waitpid(child, &status_of_child, 0) == child ? status_of_child : -1;
}

TEST_F(dedicated, is_for_administrators)
{
	EXPECT_EQ(0, as_tester(self));
}

/* ---- a responder that misbehaves ---- */

static int dedicate_with(struct _test_data_dedicated *self,
			 const struct responder_manners *manners)
{
	return sender_begin(&self->sender, manners) ?: sender_dedicate(&self->sender);
}

TEST_F(dedicated, tells_why_it_was_refused)
{
	struct responder_manners manners = { .refusal = EDQUOT };

	EXPECT_EQ(-EREMOTEIO, dedicate_with(self, &manners));
	EXPECT_EQ(EDQUOT, self->sender.open.refusal);
	/* A number that is no errno is not reported as a reason. */
	manners.refusal = 1 << 20;
	EXPECT_EQ(-ECONNREFUSED, dedicate_with(self, &manners));
	EXPECT_EQ(0, self->sender.open.refusal);
}

TEST_F(dedicated, believes_no_answer_that_makes_no_sense)
{
	EXPECT_EQ(-EPROTO, dedicate_with(self, &(struct responder_manners) { .foreign = true }));
	EXPECT_EQ(-EPROTO, dedicate_with(self, &(struct responder_manners) { .version = 3 }));
	EXPECT_EQ(-EPROTO, dedicate_with(self, &(struct responder_manners) { .short_by = 1 }));
	EXPECT_EQ(-EPROTO, dedicate_with(self, &(struct responder_manners) { .wraps = true }));
}

TEST_F(dedicated, ends_with_one_that_counts_what_was_not_sent)
{
	struct kxfer_dedicated_status status;

	ASSERT_EQ(0, dedicate_with(self, &(struct responder_manners) { .invents = 1 }));
	EXPECT_EQ(-ECONNRESET, sender_look(&self->sender, &status));
	EXPECT_EQ(-ECONNRESET, sender_run(&self->sender));
}

TEST_F(dedicated, waits_for_receives_no_longer_than_its_time)
{
	struct responder_manners manners = { .lazy = true };
	struct kxfer_bench *bench = &self->sender.bench;
	uint64_t start = kx_now_ns();
	uint32_t context;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_SOFTIRQ; context++) {
		ASSERT_EQ(0, sender_begin(&self->sender, &manners));
		self->sender.open.context = context;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		bench->depth = SENDER_SLOTS;
		bench->list = 1;
		bench->signal = 3;
		bench->count = 2 * SENDER_RECEIVES;
		bench->time_limit_ms = 300;
		ASSERT_EQ(0, sender_run(&self->sender));
		/* The run ends with the last signalled message that has a receive. */
		EXPECT_EQ(SENDER_RECEIVES / 3 * 3, bench->operations);
		EXPECT_EQ(SENDER_RECEIVES / 3 * 3, self->sender.responder.received);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
	}
	EXPECT_LE(600000000, kx_now_ns() - start);
}

TEST_F(dedicated, waits_on_schedule_for_receives_no_longer_than_its_time)
{
	struct responder_manners manners = { .lazy = true };
	struct kxfer_bench *bench = &self->sender.bench;
	uint32_t context;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_SOFTIRQ; context++) {
		ASSERT_EQ(0, sender_begin(&self->sender, &manners));
		self->sender.open.context = context;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		bench->depth = SENDER_SLOTS;
		bench->interval_ps = 1000000000;
		bench->count = 2 * SENDER_RECEIVES;
		bench->time_limit_ms = 300;
		ASSERT_EQ(0, sender_run(&self->sender));
		EXPECT_EQ(SENDER_RECEIVES, bench->operations);
		/* The next operation has been due since its turn. */
		EXPECT_LE(200000000, bench->late_ns);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
	}
}

/* ---- ends ---- */

struct runner {
	struct sender *sender;
	pthread_t thread;
	volatile bool ended;
	int ret;
};

static void *run_long(void *context)
{
	struct runner *runner = context;

	runner->ret = sender_run(runner->sender);
	runner->ended = true;
	return NULL;
}

static int start(struct runner *runner, struct sender *sender)
{
	int ret;

	*runner = (struct runner) { .sender = sender };
	sender->bench.depth = SENDER_SLOTS;
	sender->bench.count = UINT32_MAX;
	ret = pthread_create(&runner->thread, NULL, run_long, runner);
	kx_sleep_ms(RUNNING_MS);
	return ret ? ret : runner->ended ? runner->ret : 0;
}

TEST_F(dedicated, is_busy_while_a_run_is_on_it)
{
	struct kxfer_dedicated_status status;
	struct kxfer_bench second;
	struct runner runner;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.time_limit_ms = 1000;
	second = self->sender.bench;
	ASSERT_EQ(0, start(&runner, &self->sender));
	EXPECT_EQ(-EBUSY, sender_hang_up(&self->sender));
	EXPECT_EQ(-EBUSY, sender_look(&self->sender, &status));
	EXPECT_EQ(-EBUSY, kx_call(self->sender.fd, KXFER_BENCH, &second));
	EXPECT_EQ(-EBUSY, kx_region_del(self->sender.fd, self->sender.region));
	pthread_join(runner.thread, NULL);
	EXPECT_EQ(0, runner.ret);
	ASSERT_EQ(0, sender_look(&self->sender, &status));
	EXPECT_EQ(0, sender_hang_up(&self->sender));
	EXPECT_EQ(-ENOENT, sender_look(&self->sender, &status));
}

TEST_F(dedicated, ends_a_run_when_the_responder_goes)
{
	struct runner runner;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, start(&runner, &self->sender));
	responder_close(&self->sender.responder);
	ASSERT_TRUE(kx_wait_until(runner.ended, SENDER_LONG_MS));
	pthread_join(runner.thread, NULL);
	EXPECT_EQ(-ECONNRESET, runner.ret);
	EXPECT_EQ(-ECONNRESET, sender_run(&self->sender));
	EXPECT_EQ(0, sender_hang_up(&self->sender));
}

TEST_F(dedicated, ends_a_run_with_a_signal)
{
	struct kxfer_dedicated_status status;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = UINT32_MAX;
	ASSERT_EQ(0, kx_alarms(RUNNING_MS, 0));
	EXPECT_EQ(-EINTR, sender_run(&self->sender));
	ASSERT_EQ(0, kx_alarms(0, 0));
	/* The connection stays. */
	EXPECT_TRUE(kx_wait_until(sender_settled(&self->sender, &status), KX_TIMEOUT_MS));
	EXPECT_EQ(0, status.wrong);
}

TEST_F(dedicated, goes_with_its_session)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, sender_run(&self->sender));
	close(self->sender.fd);
	self->sender.fd = kx_open();
	EXPECT_TRUE(sender_links_are_gone(&self->sender, self->sender.fd));
	EXPECT_TRUE(sender_is_alone(&self->sender));
}

/*
 * Closes a connection as soon as it has an id, which is easy to guess. OPEN must not access it
 * any more.
 */
static void *close_what_comes(void *context)
{
	struct _test_data_dedicated *self = context;
	struct kxfer_id id = { .size = sizeof(id), .id = 1 };
	uint32_t closed = 0;

	while (closed < NR_CLOSED)
		closed += !kx_call(self->sender.fd, KXFER_DEDICATED_CLOSE, &id);
	return NULL;
}

TEST_F_TIMEOUT(dedicated, is_closed_by_another_thread_as_it_opens, 120)
{
	pthread_t closer;
	uint32_t i;

	ASSERT_EQ(0, pthread_create(&closer, NULL, close_what_comes, self));
	for (i = 0; i < NR_CLOSED; i++) {
		EXPECT_EQ(0, sender_dedicate(&self->sender));
		EXPECT_EQ(1, self->sender.open.dedicated);
		EXPECT_TRUE(sender_is_alone(&self->sender));
	}
	EXPECT_EQ(0, pthread_join(closer, NULL));
}

/* ---- messages that are answered ---- */

static void wants_answers(struct _test_data_dedicated *self)
{
	self->sender.open.flags |= KXFER_DEDICATED_F_ANSWERED;
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR_EACH;
	self->sender.bench.invalidate = KXFER_BENCH_INVALIDATE_REMOTE;
}

TEST_F(dedicated, sends_what_the_responder_invalidates_on_a_cq_of_the_pool)
{
	wants_answers(self);
	self->sender.open.flags |= KXFER_DEDICATED_F_CQ_POOL;
	self->sender.open.context = KXFER_CONTEXT_SOFTIRQ;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_sends(&self->sender);
}

TEST_F_TIMEOUT(dedicated, sends_what_the_responder_invalidates, 120)
{
	uint32_t context;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_DIRECT; context++) {
		self->sender.open.context = context;
		wants_answers(self);
		self->sender.bench.flags = context % 2 ? KXFER_BENCH_F_MR_POOL : 0;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		test_sends(&self->sender);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
	}
}

/* A few bytes that begin ten before the end of a page. */
static void send_across(struct __test_metadata *_metadata, struct _test_data_dedicated *self,
			int expected)
{
	uint32_t offset = SENDER_STRIDE - 10, slots = SENDER_SLOTS / 2, slot;
	struct kxfer_dedicated_status status;

	self->sender.open.bytes = 32;
	self->sender.open.slots = slots;
	self->sender.bench.length = 32;
	self->sender.bench.region_offset = offset;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(expected, sender_run(&self->sender));
	ASSERT_TRUE(kx_wait_until(sender_settled(&self->sender, &status), KX_TIMEOUT_MS));
	EXPECT_EQ(0, status.wrong);
	for (slot = 0; slot < slots && !expected; slot++)
		EXPECT_EQ(0, memcmp(self->sender.here + offset + slot * SENDER_STRIDE,
				    self->sender.responder.memory + slot * SENDER_STRIDE, 32)) {
			TH_LOG("slot %u", slot);
		}
	ASSERT_EQ(0, sender_hang_up(&self->sender));
	ASSERT_TRUE(sender_is_alone(&self->sender));
}

/* siw sends such bytes wrong, except after a command, so exactly these runs are refused there. */
TEST_F(dedicated, sends_a_few_registered_bytes_across_a_page_as_they_are_or_not_at_all)
{
	int across = strncmp(kx_provider(), "siw", 3) ? 0 : -EINVAL;
	uint32_t memory;

	for (memory = 0; memory <= KXFER_BENCH_MEMORY_MR_EACH; memory++) {
		self->sender.bench.memory = memory;
		send_across(_metadata, self, memory ? across : 0);
	}
	wants_answers(self);
	send_across(_metadata, self, 0);
}

TEST_F(dedicated, reads_and_writes_beside_messages_that_are_answered)
{
	wants_answers(self);
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = SENDER_SLOTS;
	test_err_run(EINVAL, &self->sender, op, KXFER_OP_WRITE);
	test_err_run(EINVAL, &self->sender, op, KXFER_OP_NOP);
	self->sender.bench.op = KXFER_OP_WRITE;
	self->sender.bench.invalidate = KXFER_BENCH_INVALIDATE_LOCAL;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(3, self->sender.bench.nr_wr);
	memset(self->sender.here, 0, SENDER_LENGTH);
	self->sender.bench.op = KXFER_OP_READ;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(3, self->sender.bench.nr_wr);
	EXPECT_TRUE(sender_landed(&self->sender));
}

TEST_F(dedicated, refuses_answers_that_it_was_not_opened_for)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR_EACH;
	test_err_run(EINVAL, &self->sender, invalidate, KXFER_BENCH_INVALIDATE_REMOTE);
	test_err_run(EOPNOTSUPP, &self->sender, invalidate, KXFER_BENCH_INVALIDATE_REMOTE + 1);
	test_err_run(EINVAL, &self->sender, depth, SENDER_SLOTS + 1);
	self->sender.bench.invalidate = KXFER_BENCH_INVALIDATE_LOCAL;
	test_err_run(EINVAL, &self->sender, memory, KXFER_BENCH_MEMORY_MR);
	EXPECT_EQ(0, sender_run(&self->sender));
	ASSERT_EQ(0, sender_hang_up(&self->sender));
	wants_answers(self);
	test_err_dedicate(EINVAL, &self->sender, flags,
			  KXFER_DEDICATED_F_ANSWERED | KXFER_DEDICATED_F_IMM);
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_READ);
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_err_run(EINVAL, &self->sender, invalidate, KXFER_BENCH_INVALIDATE_DEFERRED);
	test_err_run(EINVAL, &self->sender, invalidate, KXFER_BENCH_INVALIDATE_LOCAL);
	test_err_run(EINVAL, &self->sender, memory, KXFER_BENCH_MEMORY_DEFAULT);
	self->sender.bench.invalidate = KXFER_BENCH_INVALIDATE_DEFERRED;
	test_err_run(EINVAL, &self->sender, memory, KXFER_BENCH_MEMORY_DEFAULT);
}

TEST_F(dedicated, ends_with_a_wrong_answer)
{
	static const struct responder_manners manners[] = {
		{ .plain = true }, { .other = true }, { .swaps = true }, { .twice = true },
		{ .wordy = true },
	};
	uint32_t i;

	for (i = 0; i < sizeof(manners) / sizeof(*manners); i++) {
		ASSERT_EQ(0, sender_begin(&self->sender, &manners[i]));
		wants_answers(self);
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		self->sender.bench.count = SENDER_RECEIVES;
		self->sender.bench.depth = 2;
		EXPECT_EQ(-ECONNRESET, sender_run(&self->sender)) {
			TH_LOG("manners %u", i);
		}
		EXPECT_EQ(0, sender_hang_up(&self->sender));
	}
}

TEST_F(dedicated, is_not_done_before_the_answer)
{
	struct responder_manners manners = { .mute = true };
	struct runner runner;

	ASSERT_EQ(0, sender_begin(&self->sender, &manners));
	wants_answers(self);
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, start(&runner, &self->sender));
	ASSERT_TRUE(kx_wait_until(self->sender.responder.received == SENDER_SLOTS, KX_TIMEOUT_MS));
	EXPECT_FALSE(runner.ended);
	responder_close(&self->sender.responder);
	ASSERT_TRUE(kx_wait_until(runner.ended, SENDER_LONG_MS));
	pthread_join(runner.thread, NULL);
	EXPECT_EQ(-ECONNRESET, runner.ret);
	EXPECT_EQ(0, sender_hang_up(&self->sender));
}

/* Waiting for all messages in flight would take two seconds each. */
TEST_F_TIMEOUT(dedicated, lets_a_killed_process_go_though_the_responder_answers_slowly, 60)
{
	struct responder_manners manners = { .rest_ms = 2000 };
	uint32_t context;
	uint64_t start;
	int status;
	pid_t child;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_WORKQUEUE; context++) {
		ASSERT_EQ(0, sender_begin(&self->sender, &manners));
		wants_answers(self);
		self->sender.open.context = context;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		self->sender.bench.depth = SENDER_SLOTS;
		self->sender.bench.count = UINT32_MAX;
		child = fork();
		ASSERT_LE(0, child);
		if (!child) {
			sender_run(&self->sender);
			_exit(1);
		}
		/* By the second message the run has posted as many as it may. */
		ASSERT_TRUE(kx_wait_until(self->sender.responder.received == 2, KX_TIMEOUT_MS));
		start = kx_now_ns();
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_GT(SENDER_SLOTS * 1000000000ULL, kx_now_ns() - start);
		/* The connection of the killed process has ended. */
		EXPECT_EQ(-ECONNRESET, sender_run(&self->sender));
		EXPECT_EQ(0, sender_hang_up(&self->sender));
	}
}

TEST_F(dedicated, ends_a_run_whose_answers_are_taken_back)
{
	struct runner runner;

	wants_answers(self);
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, start(&runner, &self->sender));
	responder_close(&self->sender.responder);
	ASSERT_TRUE(kx_wait_until(runner.ended, SENDER_LONG_MS));
	pthread_join(runner.thread, NULL);
	EXPECT_EQ(-ECONNRESET, runner.ret);
	EXPECT_EQ(0, sender_hang_up(&self->sender));
}

TEST_HARNESS_MAIN
