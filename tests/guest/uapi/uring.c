// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs by io_uring: which jobs are refused with which errno, that they move the same bytes as
 * SUBMIT, in every kind of ring, and that each job has exactly one CQE.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/uring.h"

#define LENGTH	(64UL << 10)
#define NR_HELD	64		/* more than a lane has slots for NOTIFYs */
#define NR_RACES	60

FIXTURE(uring)
{
	struct kx_pair pair;
	struct io_uring ring;
	int fd;			/* session of the client */
	struct kxfer_job job;	/* a WRITE of the whole region; tests change one member */
};

FIXTURE_SETUP(uring)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	ASSERT_EQ(0, uring_open(&self->ring, 0));
	self->fd = self->pair.client;
	self->job = (struct kxfer_job) {
		.op = KXFER_OP_WRITE,
		.region = self->pair.client_region,
		.target = self->pair.target,
		.length = LENGTH,
		.user_data = 42,
	};
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	kx_pair_close(&self->pair);
}

#define test_cmd_job(job)	ASSERT_EQ(0, uring_one(&self->ring, self->fd, job))
#define test_err_job(err, job)	EXPECT_EQ(-(err), uring_one(&self->ring, self->fd, job))

/* ---- what works ---- */

TEST_F(uring, is_a_feature)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_URING);
}

TEST_F(uring, moves_bytes_and_tells_so)
{
	struct kxfer_completion completion;
	struct io_uring_cqe cqe;

	memset(self->pair.client_memory, 0x5a, LENGTH);
	ASSERT_NE(NULL, uring_job(&self->ring, self->fd, &self->job));
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
	EXPECT_EQ(42, cqe.user_data);
	EXPECT_EQ(0, cqe.res);
	EXPECT_EQ(0, cqe.flags);
	EXPECT_EQ(0, memcmp(self->pair.client_memory, self->pair.server_memory, LENGTH));
	/* The completion is reported once, as a CQE. */
	test_cmd_reap(0, self->fd, &completion, 1, 0, 0);
}

TEST_F(uring, of_a_nop_completes_at_once)
{
	uint64_t before = kx_counter(self->fd, "jobs_completed");
	struct kxfer_job nop = { .op = KXFER_OP_NOP };

	test_cmd_job(&nop);
	EXPECT_EQ(before + 1, kx_counter(self->fd, "jobs_completed"));
}

TEST_F(uring, hands_over_a_notify)
{
	struct kxfer_job job = {
		.op = KXFER_OP_NOTIFY, .target = self->pair.target, .cookie = 99,
	};
	struct kxfer_event event;

	test_cmd_job(&job);
	test_cmd_event_reap(1, self->pair.server, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(99, event.cookie);
}

TEST_F(uring, sends_and_receives)
{
	const struct kxfer_message *message = (void *)self->pair.server_memory;
	struct kxfer_job send = {
		.op = KXFER_OP_SEND, .flags = KXFER_JOB_F_IMM, .cookie = 88,
		.region = self->pair.client_region, .length = 100, .user_data = 1,
	};
	struct kxfer_job recv = {
		.op = KXFER_OP_RECV, .region = self->pair.server_region, .length = 4096,
		.user_data = 2,
	};
	struct io_uring_cqe cqe;
	int i;

	test_cmd_mailbox_add(self->pair.server, "by-uring", 1, 100, &recv.target);
	test_cmd_target_open(self->fd, self->pair.peer, "by-uring", 0, &send.target);
	memset(self->pair.client_memory, 0x5a, 100);
	/* First a RECV that waits for the message, then a RECV that finds the message waiting. */
	ASSERT_NE(NULL, uring_job(&self->ring, self->pair.server, &recv));
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_NE(NULL, uring_job(&self->ring, self->fd, &send));
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
		EXPECT_EQ(0, cqe.res);
	}
	EXPECT_EQ(88, message->immediate);
	test_cmd_job(&send);
	test_err_job(EAGAIN, &send);
	memset(self->pair.server_memory, 0, 4096);
	ASSERT_EQ(0, uring_one(&self->ring, self->pair.server, &recv));
	EXPECT_EQ(100, message->bytes);
	EXPECT_EQ(0, memcmp(message + 1, self->pair.client_memory, 100));
	/* Jobs that SUBMIT refuses are refused here too. */
	recv.length = 1;
	EXPECT_EQ(-EINVAL, uring_one(&self->ring, self->pair.server, &recv));
	send.length = 101;
	test_err_job(EMSGSIZE, &send);
}

/* The first job maps the region for the device, which may sleep. */
TEST_F(uring, works_with_a_region_that_was_never_used)
{
	struct kxfer_job job = self->job;
	int i;

	for (i = 0; i < 8; i++) {
		test_cmd_region_add(self->fd, self->pair.client_memory, LENGTH, 0, &job.region);
		test_cmd_job(&job);
		test_cmd_region_del(self->fd, job.region);
	}
}

TEST_F(uring, with_wide_cqes_tells_the_time)
{
	struct kxfer_job nop = { .op = KXFER_OP_NOP }, bad = self->job;
	const struct kxfer_job *jobs[] = { &self->job, &nop, &bad };
	uint64_t before, ended[3];
	struct io_uring_cqe cqe;
	struct io_uring ring;
	int i;

	bad.region = 77;
	ASSERT_EQ(0, uring_open(&ring, IORING_SETUP_CQE32));
	before = kx_now_ns();
	for (i = 0; i < 3; i++) {
		ASSERT_NE(NULL, uring_job(&ring, self->fd, jobs[i]));
		ASSERT_EQ(1, io_uring_submit(&ring));
		ASSERT_EQ(0, uring_wait(&ring, &cqe, &ended[i], KX_TIMEOUT_MS));
		EXPECT_EQ(i == 2 ? -ENOENT : 0, cqe.res);
	}
	EXPECT_LE(before, ended[0]);
	EXPECT_LE(ended[0], ended[1]);
	EXPECT_GE(kx_now_ns(), ended[1]);
	/* the refused job */
	EXPECT_EQ(0, ended[2]);
	io_uring_queue_exit(&ring);
}

TEST_F(uring, mixes_with_submit_and_reap)
{
	struct kxfer_completion done[64];
	struct kxfer_job job = self->job;
	struct io_uring_cqe cqe;
	int i, n, nr = 0;

	job.length = 64;
	for (i = 0; i < 64; i++) {
		job.user_data = i;
		ASSERT_NE(NULL, uring_job(&self->ring, self->fd, &job));
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		job.user_data = 1000 + i;
		test_cmd_submit(1, self->fd, &job, 1);
	}
	/* A pending CQE interrupts the wait, like a signal. */
	for (i = 0; nr < 64 && i < 1000; i++) {
		n = kx_reap(self->fd, done + nr, 64 - nr, 64 - nr, KX_TIMEOUT_MS);
		if (n != -EINTR)
			ASSERT_LT(0, n);
		nr += n > 0 ? n : 0;
	}
	ASSERT_EQ(64, nr);
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(0, done[i].status);
		EXPECT_LE(1000, done[i].user_data);
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
		EXPECT_EQ(0, cqe.res);
		EXPECT_GT(64, cqe.user_data);
	}
}

/* ---- the command ---- */

TEST_F(uring, needs_wide_sqes)
{
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	sqe = io_uring_get_sqe(&ring);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->fd;
	sqe->cmd_op = KXFER_URING_CMD_JOB;
	EXPECT_EQ(-EINVAL, uring_run(&ring));
	io_uring_queue_exit(&ring);
}

TEST_F(uring, refuses_an_unknown_command)
{
	static const uint32_t unknown[] = {
		0, KXFER_SUBMIT, KXFER_URING_CMD_JOB + 1, KXFER_URING_CMD_JOB | 1U << 31,
	};
	size_t i;

	for (i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		uring_job(&self->ring, self->fd, &self->job)->cmd_op = unknown[i];
		EXPECT_EQ(-ENOTTY, uring_run(&self->ring));
	}
}

/* These members were reserved before, so older callers left zeros there. */
TEST_F(uring, refuses_operands_with_a_transfer)
{
	struct io_uring_sqe *sqe;
	int i;

	for (i = KXFER_JOB_SIZE_MIN; i < (int)sizeof(struct kxfer_uring_job); i++) {
		sqe = uring_job(&self->ring, self->fd, &self->job);
		((uint8_t *)sqe->cmd)[i] = 1;
		EXPECT_EQ(-EINVAL, uring_run(&self->ring));
	}
}

TEST_F(uring, takes_both_operands_of_an_atomic)
{
	uint64_t *here = (uint64_t *)self->pair.client_memory;
	uint64_t *there = (uint64_t *)self->pair.server_memory;
	struct kxfer_job job = {
		.op = KXFER_OP_COMPARE_SWAP,
		.region = self->pair.client_region,
		.target = self->pair.target,
		.length = 8,
		.compare_add = 0x0102030405060708,
		.swap = 0x1112131415161718,
	};

	*there = job.compare_add;
	uring_job(&self->ring, self->fd, &job);
	if (!kx_has_atomics()) {
		EXPECT_EQ(-EOPNOTSUPP, uring_run(&self->ring));
		EXPECT_EQ(job.compare_add, *there);
		return;
	}
	EXPECT_EQ(0, uring_run(&self->ring));
	EXPECT_EQ(job.compare_add, *here);
	EXPECT_EQ(job.swap, *there);
}

TEST_F(uring, refuses_registered_buffers)
{
	struct iovec buffer = { self->pair.client_memory, LENGTH };
	struct io_uring_sqe *sqe;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &buffer, 1));
	sqe = uring_job(&self->ring, self->fd, &self->job);
	sqe->rw_flags = 1;	/* IORING_URING_CMD_FIXED */
	EXPECT_EQ(-EOPNOTSUPP, uring_run(&self->ring));
}

/* Only the waiting task takes completions of a polling ring. */
TEST_F(uring, that_polls_says_what_a_job_of_each_kind_came_to)
{
	struct kxfer_job nop = { .op = KXFER_OP_NOP };
	struct kxfer_job notify = {
		.op = KXFER_OP_NOTIFY, .target = self->pair.target, .cookie = 9,
	};
	struct kxfer_job wrong = self->job;
	struct kxfer_event event;
	struct io_uring ring;

	wrong.region = 77;
	ASSERT_EQ(0, uring_open(&ring, IORING_SETUP_IOPOLL));
	EXPECT_EQ(0, uring_one(&ring, self->fd, &self->job));
	EXPECT_EQ(0, uring_one(&ring, self->fd, &nop));
	EXPECT_EQ(-ENOENT, uring_one(&ring, self->fd, &wrong));
	EXPECT_EQ(0, uring_one(&ring, self->fd, &notify));
	EXPECT_EQ(1, kx_event_reap(self->pair.server, &event, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(0, uring_one(&ring, self->fd, &self->job));
	io_uring_queue_exit(&ring);
}

/* ---- the job ---- */

TEST_F(uring, refuses_what_submit_refuses)
{
	const struct kxfer_job good = self->job;
	struct kxfer_job job;
	uint32_t frozen;

	job = good;
	job.op = KXFER_OP_RECV + 1;
	test_err_job(EOPNOTSUPP, &job);
	job = good;
	job.flags = 1U << 31;
	test_err_job(EOPNOTSUPP, &job);
	job = good;
	job.length = 0;
	test_err_job(EINVAL, &job);
	job = good;
	job.cookie = 1;
	test_err_job(EINVAL, &job);
	job = (struct kxfer_job) { .op = KXFER_OP_NOP, .length = 1 };
	test_err_job(EINVAL, &job);
	job = good;
	job.region = 77;
	test_err_job(ENOENT, &job);
	job = good;
	job.target = 0;
	test_err_job(ENOENT, &job);
	job = good;
	job.region_offset = 1;
	test_err_job(ERANGE, &job);
	job = good;
	job.target_offset = 1;
	test_err_job(ERANGE, &job);
	job = good;
	job.target_offset = UINT64_MAX;
	test_err_job(EOVERFLOW, &job);
	test_cmd_region_add(self->fd, self->pair.client_memory, LENGTH, 0, &frozen);
	job = good;
	job.region = frozen;
	job.op = KXFER_OP_READ;
	test_err_job(EACCES, &job);
	EXPECT_EQ(-ENOENT, uring_one(&self->ring, self->pair.server, &good));
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
	test_cmd_job(&good);
}

TEST_F(uring, of_a_full_session_is_told_to_reap)
{
	static struct kxfer_completion done[4096];
	struct kxfer_job *nops = calloc(256, sizeof(*nops));
	int n;

	for (n = 0; n < 4096; n += 256)
		test_cmd_submit(256, self->fd, nops, 256);
	test_err_job(EAGAIN, &self->job);
	test_cmd_job(&nops[0]);
	test_cmd_reap(4096, self->fd, done, 4096, 0, 0);
	test_cmd_job(&self->job);
	free(nops);
}

TEST_F(uring, breaks_a_chain_at_a_job_that_is_refused)
{
	struct kxfer_job bad = self->job, behind = self->job;
	int res[2] = { 1, 1 }, i;
	struct io_uring_cqe cqe;

	bad.region = 77;
	bad.user_data = 0;
	behind.user_data = 1;
	uring_job(&self->ring, self->fd, &bad)->flags = IOSQE_IO_LINK;
	uring_job(&self->ring, self->fd, &behind);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
		ASSERT_GT(2, cqe.user_data);
		res[cqe.user_data] = cqe.res;
	}
	EXPECT_EQ(-ENOENT, res[0]);
	EXPECT_EQ(-ECANCELED, res[1]);
}

/*
 * Another thread writes the job while the kernel reads it: the executed job is inside the
 * region and the target, whatever was read.
 */
struct scribbler {
	struct kxfer_job *job;	/* job in the SQE */
	atomic_bool enough;
};

static void *scribble(void *argument)
{
	struct scribbler *scribbler = argument;
	volatile struct kxfer_job *job = scribbler->job;

	while (!scribbler->enough) {
		job->length = 4096;
		job->target_offset = UINT64_MAX - 4096;
		job->region_offset = LENGTH;
		job->op = KXFER_OP_READ;
		job->length = UINT64_MAX;
		job->target_offset = 0;
		job->region_offset = 0;
		job->op = KXFER_OP_WRITE;
		job->length = 4096;
	}
	return NULL;
}

static void race(struct __test_metadata *_metadata, struct _test_data_uring *self,
		 unsigned int ring_flags, unsigned int sqe_flags)
{
	struct scribbler scribbler = {};
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	pthread_t thread;
	int i, res, well = 0;

	ASSERT_EQ(0, uring_open(&ring, ring_flags));
	for (i = 0; i < NR_RACES; i++) {
		sqe = uring_job(&ring, self->fd, &self->job);
		sqe->flags = sqe_flags;
		scribbler.job = (struct kxfer_job *)sqe->cmd;
		scribbler.enough = false;
		ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &scribbler));
		/* On one CPU the writing thread needs a turn too. */
		sched_yield();
		res = uring_run(&ring);
		scribbler.enough = true;
		pthread_join(thread, NULL);
		well += !res;
		ASSERT_TRUE(res == 0 || res == -ERANGE || res == -EOVERFLOW || res == -EINVAL);
	}
	TH_LOG("%d of %d were carried out", well, NR_RACES);
	io_uring_queue_exit(&ring);
}

TEST_F_TIMEOUT(uring, copies_the_job_once, 60)
{
	uint8_t *guard = self->pair.client_memory;

	memset(guard, 0x11, LENGTH);
	memset(self->pair.server_memory, 0x22, LENGTH);
	self->job.length = 4096;
	race(_metadata, self, 0, 0);
	race(_metadata, self, 0, IOSQE_ASYNC);
	race(_metadata, self, IORING_SETUP_SQPOLL, 0);
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
	test_cmd_job(&self->job);
}

/* ---- every kind of ring ---- */

#define NR_JOBS		1024
#define CHUNK		64

FIXTURE(kinds)
{
	struct kx_pair pair;
	struct io_uring ring;
	int fd;
	uint8_t *seen;
};

FIXTURE_VARIANT(kinds)
{
	unsigned int ring_flags;
	unsigned int sqe_flags;
	bool fixed;
};

FIXTURE_VARIANT_ADD(kinds, plain) { };
FIXTURE_VARIANT_ADD(kinds, cooperative) { .ring_flags = IORING_SETUP_COOP_TASKRUN };
FIXTURE_VARIANT_ADD(kinds, deferred) {
	.ring_flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};
FIXTURE_VARIANT_ADD(kinds, sqpoll) { .ring_flags = IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(kinds, iopoll) { .ring_flags = IORING_SETUP_IOPOLL };
FIXTURE_VARIANT_ADD(kinds, iopoll_wide_cqes) {
	.ring_flags = IORING_SETUP_IOPOLL | IORING_SETUP_CQE32,
};
FIXTURE_VARIANT_ADD(kinds, iopoll_sqpoll) {
	.ring_flags = IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL,
};
FIXTURE_VARIANT_ADD(kinds, wide_cqes) { .ring_flags = IORING_SETUP_CQE32 };
FIXTURE_VARIANT_ADD(kinds, registered_file) { .fixed = true };
FIXTURE_VARIANT_ADD(kinds, asynchronous) { .sqe_flags = IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(kinds, drained) { .sqe_flags = IOSQE_IO_DRAIN };

FIXTURE_SETUP(kinds)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	ASSERT_EQ(0, uring_open(&self->ring, variant->ring_flags));
	self->fd = self->pair.client;
	if (variant->fixed) {
		ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->fd, 1));
		self->fd = 0;
	}
	self->seen = calloc(NR_JOBS, 1);
	ASSERT_NE(NULL, self->seen);
}

FIXTURE_TEARDOWN(kinds)
{
	io_uring_queue_exit(&self->ring);
	kx_pair_close(&self->pair);
	free(self->seen);
}

static int take_cqe(FIXTURE_DATA(kinds) *self)
{
	struct io_uring_cqe cqe;
	int ret = uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS);

	if (ret)
		return ret;
	if (cqe.user_data >= NR_JOBS || self->seen[cqe.user_data]++)
		return -EEXIST;
	return cqe.res;
}

TEST_F_TIMEOUT(kinds, of_ring_give_each_job_one_cqe, 60)
{
	struct kxfer_job job = {
		.op = KXFER_OP_WRITE,
		.region = self->pair.client_region,
		.target = self->pair.target,
		.length = CHUNK,
	};
	struct io_uring_cqe *extra;
	struct io_uring_sqe *sqe;
	uint32_t i, taken = 0;

	for (i = 0; i < LENGTH; i++)
		self->pair.client_memory[i] = i * 7 + i / 256;
	for (i = 0; i < NR_JOBS; i++) {
		/* Each chunk goes to a different place, and none twice. */
		job.region_offset = i * CHUNK;
		job.target_offset = (NR_JOBS - 1 - i) * CHUNK;
		job.user_data = i;
		sqe = uring_job(&self->ring, self->fd, &job);
		ASSERT_NE(NULL, sqe);
		sqe->flags |= variant->sqe_flags | (variant->fixed ? IOSQE_FIXED_FILE : 0);
		if (i % 128 != 127)
			continue;
		ASSERT_LE(0, io_uring_submit(&self->ring));
		for (; taken <= i; taken++)
			ASSERT_EQ(0, take_cqe(self));
	}
	EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&self->ring, &extra));
	for (i = 0; i < NR_JOBS; i++)
		ASSERT_EQ(0, memcmp(self->pair.client_memory + i * CHUNK,
				    self->pair.server_memory + (NR_JOBS - 1 - i) * CHUNK,
				    CHUNK));
	EXPECT_EQ(0, kx_counter(self->pair.client, "live_jobs"));
}

/* ---- jobs that do not end ---- */

FIXTURE(held)
{
	struct raw_server server;	/* holds its answers to NOTIFY back */
	struct io_uring ring;
	int fd;
	uint32_t target;
};

FIXTURE_SETUP(held)
{
	uint16_t port = kx_own_port();
	uint32_t peer;

	raw_server_init(&self->server);
	self->server.withhold = true;
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	ASSERT_EQ(0, uring_open(&self->ring, 0));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "window", 0, &self->target);
}

FIXTURE_TEARDOWN(held)
{
	self->server.withhold = false;
	if (self->fd >= 0)
		close(self->fd);
	io_uring_queue_exit(&self->ring);
	raw_server_stop(&self->server);
}

/* Some of the jobs are posted, the others queued. */
static int submit_held(FIXTURE_DATA(held) *self)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY, .target = self->target };

	for (job.user_data = 0; job.user_data < NR_HELD; job.user_data++)
		uring_job(&self->ring, self->fd, &job);
	return io_uring_submit(&self->ring);
}

/* Takes all CQEs. Return: number with ECANCELED; -1 if something is wrong. */
static int count_cancelled(FIXTURE_DATA(held) *self)
{
	bool seen[NR_HELD] = { false };
	struct io_uring_cqe cqe;
	int i, cancelled = 0;

	for (i = 0; i < NR_HELD; i++) {
		if (uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS) ||
		    cqe.user_data >= NR_HELD || seen[cqe.user_data] ||
		    (cqe.res && cqe.res != -ECANCELED))
			return -1;
		seen[cqe.user_data] = true;
		cancelled += cqe.res != 0;
	}
	return cancelled;
}

TEST_F_TIMEOUT(held, jobs_are_cancelled_while_queued, 60)
{
	int cancelled;

	ASSERT_EQ(NR_HELD, submit_held(self));
	test_cmd_cancel(1, self->fd, NR_HELD - 1, 0);
	test_err_cancel(ENOENT, self->fd, NR_HELD - 1, 0);
	test_cmd_cancel(0, self->fd, 0, 0);
	cancelled = 1 + kx_cancel(self->fd, 0, KXFER_CANCEL_F_ALL);
	EXPECT_LT(1, cancelled);
	EXPECT_GT(NR_HELD, cancelled);
	self->server.withhold = false;
	EXPECT_EQ(cancelled, count_cancelled(self));
}

TEST_F_TIMEOUT(held, jobs_end_at_their_deadline, 60)
{
	struct kxfer_job late = {
		.op = KXFER_OP_NOTIFY, .target = self->target, .user_data = 99,
	};
	struct io_uring_cqe cqe;

	ASSERT_EQ(NR_HELD, submit_held(self));
	late.deadline_ns = kx_deadline_ns(20);
	uring_job(&self->ring, self->fd, &late);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
	EXPECT_EQ(99, cqe.user_data);
	EXPECT_EQ(-ETIMEDOUT, cqe.res);
	EXPECT_LE(late.deadline_ns, kx_now_ns());
	self->server.withhold = false;
	EXPECT_EQ(0, count_cancelled(self));
}

/* io_uring cannot cancel a command that it has handed over. */
TEST_F_TIMEOUT(held, jobs_are_not_for_async_cancel, 60)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;

	ASSERT_EQ(NR_HELD, submit_held(self));
	sqe = io_uring_get_sqe(&self->ring);
	memset(sqe, 0, 2 * sizeof(*sqe));
	io_uring_prep_cancel64(sqe, NR_HELD - 1, 0);
	sqe->user_data = 99;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
	EXPECT_EQ(99, cqe.user_data);
	EXPECT_TRUE(cqe.res == -ENOENT || cqe.res == -EALREADY);
	self->server.withhold = false;
	EXPECT_EQ(0, count_cancelled(self));
}

/* REAP waits for completions of SUBMIT only, and stops waiting when none can come. */
TEST_F_TIMEOUT(held, jobs_are_not_reaped, 60)
{
	struct kxfer_completion done;

	ASSERT_EQ(NR_HELD, submit_held(self));
	test_err_reap(ETIMEDOUT, self->fd, &done, 1, 1, 50);
	self->server.withhold = false;
	EXPECT_EQ(0, count_cancelled(self));
	test_cmd_reap(0, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
}

/* The file stays open until its jobs have ended, and then ends with all its objects. */
TEST_F_TIMEOUT(held, jobs_outlive_the_close_of_their_file, 60)
{
	int other = kx_open();
	uint64_t sessions = kx_counter(other, "live_sessions");

	ASSERT_EQ(NR_HELD, submit_held(self));
	close(self->fd);
	self->fd = -1;
	kx_sleep_ms(600);
	EXPECT_EQ(sessions, kx_counter(other, "live_sessions"));
	EXPECT_EQ(NR_HELD, kx_counter(other, "live_jobs"));
	self->server.withhold = false;
	EXPECT_EQ(0, count_cancelled(self));
	EXPECT_TRUE(kx_wait_until(kx_counter(other, "live_sessions") == sessions - 1,
				  KX_TIMEOUT_MS));
	close(other);
}

TEST_HARNESS_MAIN
