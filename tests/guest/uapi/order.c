// SPDX-License-Identifier: GPL-2.0
/*
 * KXFER_JOB_F_FENCE and _ORDERED: which jobs accept them, what they wait for and what not, and
 * how waiting jobs end. The test decides when the peer answers a NOTIFY. Until then that job is
 * known to be in flight.
 */
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/uring.h"

#define PORT		(KXFER_PORT + 11)
#define LENGTH		4096u
#define HELD_MS		100	/* a job that has not ended by then is held */
#define NR_ROUNDS	40
#define NR_MANY		64	/* more than a lane has slots */

enum { NOTIFY = 1, HELD, BEHIND };	/* user_data */

FIXTURE(order)
{
	struct raw_server server;
	int fd;
	uint8_t *memory;
	uint32_t region;
	uint32_t peer;
	uint32_t target;
};

static int open_client(uint8_t *memory, uint32_t *region, uint32_t *peer, uint32_t *target)
{
	int fd = kx_open(), ret;

	ret = fd < 0 ? fd : kx_region_add(fd, memory, LENGTH, KXFER_REGION_F_WRITE, region);
	ret = ret ?: kx_peer_open(fd, kx_addr(kx_address(), PORT), peer);
	ret = ret ?: kx_target_open(fd, *peer, "window", 0, target);
	return ret ?: fd;
}

FIXTURE_SETUP(order)
{
	self->fd = -1;
	raw_server_init(&self->server);
	self->server.withhold = true;
	ASSERT_EQ(0, raw_server_start(&self->server, PORT));
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	self->fd = open_client(self->memory, &self->region, &self->peer, &self->target);
	ASSERT_LE(0, self->fd);
	memset(self->memory, 0x5a, LENGTH);
	memset(self->server.window, 0, LENGTH);
}

FIXTURE_TEARDOWN(order)
{
	self->server.withhold = false;
	if (self->fd >= 0)
		close(self->fd);
	raw_server_stop(&self->server);
	kx_free(self->memory, LENGTH);
}

static struct kxfer_job make(const struct _test_data_order *self, uint32_t op, uint32_t flags,
			     uint64_t user_data)
{
	struct kxfer_job job = {
		.op = op,
		.flags = flags,
		.target = self->target,
		.user_data = user_data,
	};

	if (op != KXFER_OP_NOTIFY) {
		job.region = self->region;
		job.length = 8;
	}
	return job;
}

/* Submits a NOTIFY without an answer, a job with @flags after it, then a plain job. */
static int submit_held(const struct _test_data_order *self, uint32_t op, uint32_t flags)
{
	struct kxfer_job jobs[] = {
		make(self, KXFER_OP_NOTIFY, 0, NOTIFY),
		make(self, op, flags, HELD),
		make(self, KXFER_OP_WRITE, 0, BEHIND),
	};

	return kx_submit(self->fd, jobs, 3);
}

#define EXPECT_NOTHING_ENDS(fd) do {						\
	struct kxfer_completion none__;						\
										\
	test_err_reap(ETIMEDOUT, fd, &none__, 1, 1, HELD_MS);			\
} while (0)

/* Checks the completions of @nr jobs: one of each user_data from @first on, in any order. */
static void expect_ends(struct __test_metadata *_metadata, int fd, uint64_t first, int nr,
			int status)
{
	struct kxfer_completion done[NR_MANY + 1];
	uint64_t seen = 0;
	int i;

	test_cmd_reap(nr, fd, done, nr, nr, KX_TIMEOUT_MS);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(status, done[i].status);
		ASSERT_GT((uint64_t)nr, done[i].user_data - first);
		seen |= 1ULL << (done[i].user_data - first);
	}
	EXPECT_EQ((1ULL << nr) - 1, seen);
}

/* In any order: with two CPUs the second job may end before the first is reported. */
static void expect_held_and_behind(struct __test_metadata *_metadata,
				   const struct kxfer_completion *done, int held_status)
{
	int held = done[0].user_data == HELD ? 0 : 1;

	EXPECT_EQ(HELD, done[held].user_data);
	EXPECT_EQ(held_status, done[held].status);
	EXPECT_EQ(BEHIND, done[!held].user_data);
	EXPECT_EQ(0, done[!held].status);
}

/* ---- which jobs take them ---- */

TEST_F(order, is_a_feature)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_ORDER);
}

static const uint32_t flags_of_order[] = {
	KXFER_JOB_F_FENCE, KXFER_JOB_F_ORDERED, KXFER_JOB_F_FENCE | KXFER_JOB_F_ORDERED,
};

#define each_flags(flags) \
	for (size_t i__ = 0; i__ < 3 && ((flags) = flags_of_order[i__]); i__++)

TEST_F(order, is_for_what_goes_to_the_peer)
{
	static const uint32_t ops[] = { KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_NOTIFY };
	struct kxfer_job job;
	uint32_t flags, i;

	self->server.withhold = false;
	each_flags(flags) {
		for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
			job = make(self, ops[i], flags, 1);
			test_cmd_submit(1, self->fd, &job, 1);
			expect_ends(_metadata, self->fd, 1, 1, 0);
		}
		job = make(self, KXFER_OP_WRITE, flags | KXFER_JOB_F_BATCH | KXFER_JOB_F_LOCAL_ONLY,
			   1);
		test_cmd_submit(1, self->fd, &job, 1);
		expect_ends(_metadata, self->fd, 1, 1, 0);
	}
}

TEST_F(order, is_not_for_the_rest)
{
	struct kxfer_job job = { .op = KXFER_OP_NOP };
	uint32_t flags, mailbox;

	each_flags(flags) {
		job.flags = flags;
		test_err_submit(EINVAL, self->fd, &job, 1);
	}
	test_cmd_mailbox_add(self->fd, "order", 1, 100, &mailbox);
	job = (struct kxfer_job) {
		.op = KXFER_OP_RECV, .target = mailbox, .region = self->region, .length = LENGTH,
	};
	each_flags(flags) {
		job.flags = flags;
		test_err_submit(EINVAL, self->fd, &job, 1);
		/* The flags do not make invalid jobs valid. */
		job = make(self, KXFER_OP_READ, flags | KXFER_JOB_F_LOCAL_ONLY, 1);
		test_err_submit(EINVAL, self->fd, &job, 1);
		job = make(self, KXFER_OP_NOTIFY, flags | KXFER_JOB_F_BATCH, 1);
		test_err_submit(EINVAL, self->fd, &job, 1);
		job = make(self, KXFER_OP_WRITE, flags | (KXFER_JOB_F_ALL + 1), 1);
		test_err_submit(EOPNOTSUPP, self->fd, &job, 1);
		job.op = KXFER_OP_RECV;
		job.target = mailbox;
		job.length = LENGTH;
	}
}

/* ---- what they wait for ---- */

static const uint32_t held_ops[] = { KXFER_OP_WRITE, KXFER_OP_READ, KXFER_OP_NOTIFY };

TEST_F(order, ordered_waits_for_what_has_not_ended)
{
	uint64_t posted;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		self->server.withhold = true;
		memset(self->server.window, 0, 8);
		posted = kx_counter(self->fd, "wr_posted");
		ASSERT_EQ(3, submit_held(self, held_ops[i], KXFER_JOB_F_ORDERED));
		EXPECT_NOTHING_ENDS(self->fd);
		EXPECT_EQ(posted, kx_counter(self->fd, "wr_posted"));
		EXPECT_EQ(0, self->server.window[0]);
		self->server.withhold = false;
		expect_ends(_metadata, self->fd, NOTIFY, 3, 0);
	}
}

TEST_F(order, fence_waits_for_no_notify)
{
	struct kxfer_completion done[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		self->server.withhold = true;
		ASSERT_EQ(3, submit_held(self, held_ops[i], KXFER_JOB_F_FENCE));
		test_cmd_reap(2, self->fd, done, 2, 2, KX_TIMEOUT_MS);
		/* In any order, because the sink of an iWARP READ is invalidated first. */
		EXPECT_EQ(HELD + BEHIND, done[0].user_data + done[1].user_data);
		EXPECT_EQ(0, done[0].status | done[1].status);
		EXPECT_NOTHING_ENDS(self->fd);
		self->server.withhold = false;
		expect_ends(_metadata, self->fd, NOTIFY, 1, 0);
	}
}

TEST_F(order, ordered_finds_nothing_to_wait_for)
{
	struct kxfer_job job = make(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, 1);

	test_cmd_submit(1, self->fd, &job, 1);
	expect_ends(_metadata, self->fd, 1, 1, 0);
}

/* Each job waits for the one before, so all run one by one. */
TEST_F(order, many_ordered_ones_go_one_by_one)
{
	struct kxfer_completion done[NR_MANY];
	struct kxfer_job jobs[NR_MANY];
	int i;

	self->server.withhold = false;
	for (i = 0; i < NR_MANY; i++) {
		jobs[i] = make(self, held_ops[i % 3], flags_of_order[i % 2 ? 1 : 2], i);
		if (jobs[i].op != KXFER_OP_NOTIFY)
			jobs[i].flags |= KXFER_JOB_F_BATCH;
	}
	ASSERT_EQ(NR_MANY, kx_submit(self->fd, jobs, NR_MANY));
	ASSERT_EQ(NR_MANY, kx_reap(self->fd, done, NR_MANY, NR_MANY, KX_TIMEOUT_MS));
	for (i = 0; i < NR_MANY; i++) {
		EXPECT_EQ(0, done[i].status);
		EXPECT_EQ((uint64_t)i, done[i].user_data);
	}
}

/* The jobs share a lane, because a link with this peer has only one. */
TEST_F(order, others_do_not_wait)
{
	struct _test_data_order other = *self;
	struct kxfer_job job;

	other.fd = open_client(self->memory, &other.region, &other.peer, &other.target);
	ASSERT_LE(0, other.fd);
	ASSERT_EQ(3, submit_held(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED));
	job = make(&other, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, 7);
	test_cmd_submit(1, other.fd, &job, 1);
	expect_ends(_metadata, other.fd, 7, 1, 0);
	EXPECT_NOTHING_ENDS(self->fd);
	close(other.fd);
}

/* ---- how they end ---- */

TEST_F(order, what_waits_is_cancelled_and_lets_others_go)
{
	struct kxfer_completion done[2];

	ASSERT_EQ(3, submit_held(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED));
	EXPECT_NOTHING_ENDS(self->fd);
	test_cmd_cancel(1, self->fd, HELD, 0);
	test_cmd_reap(2, self->fd, done, 2, 2, KX_TIMEOUT_MS);
	expect_held_and_behind(_metadata, done, -ECANCELED);
	self->server.withhold = false;
	expect_ends(_metadata, self->fd, NOTIFY, 1, 0);
}

/* The first job must wait for another reason than a slot. */
TEST_F(order, what_waits_for_a_slot_is_cancelled_and_others_keep_their_order)
{
	struct kxfer_job jobs[KXFER_WIRE_DATA_SLOTS + 2];
	struct kxfer_completion done;
	uint64_t i;

	for (i = 0; i <= KXFER_WIRE_DATA_SLOTS; i++)
		jobs[i] = make(self, KXFER_OP_NOTIFY, 0, NOTIFY + i);
	jobs[i] = make(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, NOTIFY + i);
	test_cmd_submit(i + 1, self->fd, jobs, i + 1);
	EXPECT_NOTHING_ENDS(self->fd);
	test_cmd_cancel(1, self->fd, NOTIFY + KXFER_WIRE_DATA_SLOTS, 0);
	test_cmd_reap(1, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ECANCELED, done.status);
	EXPECT_NOTHING_ENDS(self->fd);
	self->server.withhold = false;
	expect_ends(_metadata, self->fd, NOTIFY, KXFER_WIRE_DATA_SLOTS, 0);
	expect_ends(_metadata, self->fd, NOTIFY + KXFER_WIRE_DATA_SLOTS + 1, 1, 0);
}

/* No job is posted because the job that it waited for was just cancelled. */
TEST_F(order, all_that_waits_is_cancelled_at_once)
{
	ASSERT_EQ(3, submit_held(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED));
	test_cmd_cancel(2, self->fd, 0, KXFER_CANCEL_F_ALL);
	expect_ends(_metadata, self->fd, HELD, 2, -ECANCELED);
	EXPECT_EQ(0, self->server.window[0]);
	self->server.withhold = false;
	expect_ends(_metadata, self->fd, NOTIFY, 1, 0);
}

TEST_F(order, what_waits_ends_at_its_deadline_and_lets_others_go)
{
	struct kxfer_job jobs[] = {
		make(self, KXFER_OP_NOTIFY, 0, NOTIFY),
		make(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, HELD),
		make(self, KXFER_OP_WRITE, 0, BEHIND),
	};
	struct kxfer_completion done[2];

	jobs[1].deadline_ns = kx_deadline_ns(50);
	test_cmd_submit(3, self->fd, jobs, 3);
	test_cmd_reap(2, self->fd, done, 2, 2, KX_TIMEOUT_MS);
	expect_held_and_behind(_metadata, done, -ETIMEDOUT);
	self->server.withhold = false;
	expect_ends(_metadata, self->fd, NOTIFY, 1, 0);
}

/* A failed job has ended too, so jobs after it run. */
TEST_F(order, goes_behind_what_failed)
{
	struct kxfer_job jobs[] = {
		make(self, KXFER_OP_NOTIFY, 0, NOTIFY),
		make(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, HELD),
		make(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, BEHIND),
	};

	test_cmd_submit(3, self->fd, jobs, 3);
	test_cmd_cancel(1, self->fd, HELD, 0);
	expect_ends(_metadata, self->fd, HELD, 1, -ECANCELED);
	EXPECT_NOTHING_ENDS(self->fd);
	self->server.withhold = false;
	expect_ends(_metadata, self->fd, NOTIFY, 1, 0);
	expect_ends(_metadata, self->fd, BEHIND, 1, 0);
}

TEST_F(order, what_waits_ends_with_its_link)
{
	ASSERT_EQ(3, submit_held(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED));
	raw_server_stop(&self->server);
	expect_ends(_metadata, self->fd, NOTIFY, 3, -ECONNRESET);
	raw_server_init(&self->server);
	ASSERT_EQ(0, raw_server_start(&self->server, PORT));
}

TEST_F(order, what_waits_ends_with_its_session)
{
	uint64_t live = kx_counter(self->fd, "live_jobs");
	int observer = kx_open();

	ASSERT_EQ(3, submit_held(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED));
	/* close() waits for posted jobs: for the answer, or the end of the link. */
	self->server.withhold = false;
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(live, kx_counter(observer, "live_jobs"));
	close(observer);
}

TEST_F_TIMEOUT(order, what_waits_does_not_hold_up_close, 60)
{
	uint64_t before;

	ASSERT_EQ(3, submit_held(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED));
	before = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	EXPECT_GT(15000000000ULL * kx_slowness(), kx_now_ns() - before);
	EXPECT_EQ(0, self->server.window[0]);
}

/* Answers come at the same time; each job ends once. */
TEST_F_TIMEOUT(order, cancel_races_with_the_answer, 60)
{
	struct kxfer_completion done[3];
	uint32_t round, i, seen, cancelled = 0;
	int ret;

	for (round = 0; round < NR_ROUNDS; round++) {
		self->server.withhold = true;
		ASSERT_EQ(3, submit_held(self, held_ops[round % 2], KXFER_JOB_F_ORDERED));
		self->server.withhold = false;
		if (round % 4)
			usleep(round * 20);
		ret = kx_cancel(self->fd, HELD, 0);
		ASSERT_TRUE(ret == 0 || ret == 1 || ret == -ENOENT);
		ASSERT_EQ(3, kx_reap(self->fd, done, 3, 3, KX_TIMEOUT_MS));
		for (i = seen = 0; i < 3; i++) {
			seen |= 1u << done[i].user_data;
			ASSERT_EQ(done[i].user_data == HELD && ret == 1 ? -ECANCELED : 0,
				  done[i].status);
		}
		ASSERT_EQ(1u << NOTIFY | 1u << HELD | 1u << BEHIND, seen);
		cancelled += ret == 1;
	}
	TH_LOG("%u of %u were cancelled", cancelled, NR_ROUNDS);
}

/* ---- by io_uring ---- */

TEST_F(order, holds_jobs_of_io_uring)
{
	struct kxfer_job jobs[] = {
		make(self, KXFER_OP_NOTIFY, 0, NOTIFY),
		make(self, KXFER_OP_WRITE, KXFER_JOB_F_ORDERED, HELD),
		make(self, KXFER_OP_READ, 0, BEHIND),
	};
	struct io_uring ring;
	struct io_uring_cqe cqe;
	int i;

	ASSERT_EQ(0, uring_open(&ring, 0));
	for (i = 0; i < 3; i++)
		ASSERT_NE(NULL, uring_job(&ring, self->fd, &jobs[i]));
	ASSERT_EQ(3, io_uring_submit(&ring));
	EXPECT_EQ(-ETIME, uring_wait(&ring, &cqe, NULL, HELD_MS));
	EXPECT_EQ(0, self->server.window[0]);
	self->server.withhold = false;
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, uring_wait(&ring, &cqe, NULL, KX_TIMEOUT_MS));
		EXPECT_EQ(0, cqe.res);
	}
	io_uring_queue_exit(&ring);
}

/* A chain goes on after a successful job; jobs outside the chain are waited for too. */
TEST_F(order, adds_to_chains_of_io_uring)
{
	struct kxfer_job notify = make(self, KXFER_OP_NOTIFY, 0, NOTIFY);
	struct kxfer_job jobs[] = {
		make(self, KXFER_OP_WRITE, 0, HELD),
		make(self, KXFER_OP_READ, KXFER_JOB_F_ORDERED, BEHIND),
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct io_uring ring;

	ASSERT_EQ(0, uring_open(&ring, 0));
	test_cmd_submit(1, self->fd, &notify, 1);
	sqe = uring_job(&ring, self->fd, &jobs[0]);
	ASSERT_NE(NULL, sqe);
	sqe->flags |= IOSQE_IO_LINK;
	ASSERT_NE(NULL, uring_job(&ring, self->fd, &jobs[1]));
	ASSERT_EQ(2, io_uring_submit(&ring));
	ASSERT_EQ(0, uring_wait(&ring, &cqe, NULL, KX_TIMEOUT_MS));
	EXPECT_EQ(HELD, cqe.user_data);
	EXPECT_EQ(-ETIME, uring_wait(&ring, &cqe, NULL, HELD_MS));
	self->server.withhold = false;
	ASSERT_EQ(0, uring_wait(&ring, &cqe, NULL, KX_TIMEOUT_MS));
	EXPECT_EQ(BEHIND, cqe.user_data);
	EXPECT_EQ(0, cqe.res);
	expect_ends(_metadata, self->fd, NOTIFY, 1, 0);
	io_uring_queue_exit(&ring);
}

TEST_HARNESS_MAIN
