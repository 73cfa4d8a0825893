// SPDX-License-Identifier: MIT
/*
 * What a job by io_uring costs, compared with io_uring's own NOP and with SUBMIT.
 *
 * usage: uring [SECONDS]      prints lines WAY OPERATION SIZE DEPTH LIST NANOSECONDS
 *
 * Each call of io_uring_enter() or SUBMIT hands in DEPTH operations and waits for all of them;
 * nothing else is in flight. Each figure is the time of one operation, the median of ROUNDS
 * runs. Under scripts/vm/run --deterministic guest time counts instructions. Needs the right to
 * listen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "rigs/uring.h"

#define DEPTH	32
#define ROUNDS	5
#define LENGTH	4096UL
#define BYTES	64

static struct kx_pair pair;
static struct kxfer_job job;	/* measured combination */
static int fd;			/* file descriptor; 0: registered with the ring */

static void die(const char *what, int error)
{
	fprintf(stderr, "uring: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static unsigned int take(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int head, nr = 0;

	io_uring_for_each_cqe(ring, head, cqe) {
		if (cqe->res)
			die("a job", cqe->res);
		nr++;
	}
	io_uring_cq_advance(ring, nr);
	return nr;
}

static void enter(struct io_uring *ring)
{
	int ret = io_uring_submit_and_wait(ring, DEPTH);
	struct io_uring_cqe *cqe;
	unsigned int nr;

	if (ret != DEPTH)
		die("io_uring_submit_and_wait", ret);
	nr = take(ring);
	/* A polling ring returns early if other tasks want the CPU. */
	while (nr < DEPTH && ring->flags & IORING_SETUP_IOPOLL) {
		ret = io_uring_wait_cqe(ring, &cqe);
		if (ret && ret != -EAGAIN)
			die("io_uring_wait_cqe", ret);
		nr += take(ring);
	}
	if (nr != DEPTH)
		die("completions are missing", ENODATA);
}

static void by_nop(struct io_uring *ring)
{
	struct io_uring_sqe *sqe;
	int i;

	for (i = 0; i < DEPTH; i++) {
		sqe = io_uring_get_sqe(ring);
		if (!sqe)
			die("the ring is full", ENOBUFS);
		io_uring_prep_nop(sqe);
	}
	enter(ring);
}

static void by_command(struct io_uring *ring)
{
	struct io_uring_sqe *sqe;
	int i;

	for (i = 0; i < DEPTH; i++) {
		sqe = uring_job(ring, fd, &job);
		if (!sqe)
			die("the ring is full", ENOBUFS);
		if (!fd)
			sqe->flags = IOSQE_FIXED_FILE;
	}
	enter(ring);
}

static void by_submit(struct io_uring *ring)
{
	struct kxfer_completion done[DEPTH];
	struct kxfer_job jobs[DEPTH];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = DEPTH,
		.stride = sizeof(jobs[0]),
		.completions = (uintptr_t)done,
		.nr_completions = DEPTH,
		.wait = DEPTH,
	};
	int i, ret;

	for (i = 0; i < DEPTH; i++)
		jobs[i] = job;
	ret = kx_call(pair.client, KXFER_SUBMIT, &cmd);
	if (ret || cmd.reaped != DEPTH)
		die("SUBMIT", ret ? ret : -ENODATA);
	for (i = 0; i < DEPTH; i++)
		if (done[i].status)
			die("a job", done[i].status);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double measure(struct io_uring *ring, void (*once)(struct io_uring *ring), double seconds)
{
	double rounds[ROUNDS];
	uint64_t began, now, nr;
	int i;

	for (i = 0; i < 10; i++)
		once(ring);
	for (i = 0; i < ROUNDS; i++) {
		nr = 0;
		began = kx_now_ns();
		do {
			once(ring);
			nr += DEPTH;
			now = kx_now_ns();
		} while (now - began < seconds * 1e9 / ROUNDS);
		rounds[i] = (double)(now - began) / nr;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), compare);
	return rounds[ROUNDS / 2];
}

static void tell(const char *way, const char *operation, uint32_t bytes, double ns)
{
	printf("%s %s %u %d %d %.1f\n", way, operation, bytes, DEPTH, DEPTH, ns);
}

/* The same job by each way. */
static void compare_ways(struct io_uring *ring, struct io_uring *polled, uint32_t op,
			 const char *name, double seconds)
{
	uint32_t bytes = op == KXFER_OP_NOP ? 0 : BYTES;

	job = (struct kxfer_job) { .op = op };
	if (bytes) {
		job.region = pair.client_region;
		job.target = pair.target;
		job.length = bytes;
	}
	fd = 0;
	tell("uring_registered", name, bytes, measure(ring, by_command, seconds));
	fd = pair.client;
	tell("uring", name, bytes, measure(ring, by_command, seconds));
	tell("uring_iopoll", name, bytes, measure(polled, by_command, seconds));
	tell("submit", name, bytes, measure(NULL, by_submit, seconds));
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	struct io_uring narrow, wide, polled;
	int ret;

	ret = kx_pair_open(&pair, LENGTH, KXFER_RIGHT_ALL);
	if (ret)
		die("kx_pair_open", ret);
	ret = io_uring_queue_init(DEPTH, &narrow, 0);
	if (!ret)
		ret = uring_open(&wide, 0);
	if (!ret)
		ret = uring_open(&polled, IORING_SETUP_IOPOLL);
	if (!ret)
		ret = io_uring_register_files(&wide, &pair.client, 1);
	if (ret)
		die("io_uring", ret);
	tell("io_uring", "nop", 0, measure(&narrow, by_nop, seconds));
	compare_ways(&wide, &polled, KXFER_OP_NOP, "nop", seconds);
	compare_ways(&wide, &polled, KXFER_OP_READ, "read", seconds);
	compare_ways(&wide, &polled, KXFER_OP_WRITE, "write", seconds);
	kx_pair_close(&pair);
	return 0;
}
