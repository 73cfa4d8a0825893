/* SPDX-License-Identifier: MIT */
/*
 * Jobs by io_uring, for tests that link with liburing. Every wait has a time limit.
 */
#ifndef KXFER_TEST_URING_H
#define KXFER_TEST_URING_H

#include <liburing.h>
#include <string.h>

#include "harness/kxfer_test.h"

#define URING_ENTRIES	256

static inline int uring_open(struct io_uring *ring, unsigned int flags)
{
	struct io_uring_params params = {
		.flags = flags | IORING_SETUP_SQE128,
		.sq_thread_idle = 1000,
	};

	return io_uring_queue_init_params(URING_ENTRIES, ring, &params);
}

/* An SQE for @job, which may be changed before it is submitted. NULL: the ring is full. */
static inline struct io_uring_sqe *uring_job(struct io_uring *ring, int fd,
					     const struct kxfer_job *job)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		return NULL;
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = KXFER_URING_CMD_JOB;
	sqe->user_data = job->user_data;
	memcpy(sqe->cmd, job, sizeof(*job));
	return sqe;
}

/*
 * Copies the next CQE, and its big_cqe[0] if the ring has that. A polling ring returns early
 * when other tasks want the CPU. Return: 0 or -errno.
 */
static inline int uring_wait(struct io_uring *ring, struct io_uring_cqe *copy, uint64_t *big,
			     uint32_t ms)
{
	struct __kernel_timespec timeout = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000L,
	};
	uint64_t end = kx_deadline_ns(ms);
	struct io_uring_cqe *cqe;
	int ret;

	do
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &timeout);
	while (ret && ring->flags & IORING_SETUP_IOPOLL && kx_now_ns() < end);
	if (ret)
		return ret;
	memcpy(copy, cqe, sizeof(*copy));
	if (ring->flags & IORING_SETUP_CQE32 && big)
		*big = cqe->big_cqe[0];
	io_uring_cqe_seen(ring, cqe);
	return 0;
}

/* Submits the ring and waits for one CQE. Return: its res, or -errno of the helper. */
static inline int uring_run(struct io_uring *ring)
{
	struct io_uring_cqe cqe;
	int ret = io_uring_submit(ring);

	if (ret >= 0)
		ret = uring_wait(ring, &cqe, NULL, KX_TIMEOUT_MS);
	return ret ? ret : cqe.res;
}

/* Runs one job. Return: res of its CQE, or -errno of the helper. */
static inline int uring_one(struct io_uring *ring, int fd, const struct kxfer_job *job)
{
	return uring_job(ring, fd, job) ? uring_run(ring) : -EBUSY;
}

#endif /* KXFER_TEST_URING_H */
