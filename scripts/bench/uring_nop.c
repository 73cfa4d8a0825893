// SPDX-License-Identifier: MIT
/*
 * What a NOP by io_uring costs, with 1 and with 32 a system call, to compare with kxfer's NOP
 * jobs. Prints lines "uring_nop COUNT NANOSECONDS", the time of one of COUNT.
 */
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS	2000

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* One system call that hands in @nr and waits for @nr. Return: 0 or -errno. */
static int run_once(struct io_uring *ring, unsigned int nr)
{
	struct io_uring_cqe *cqe;
	unsigned int i, head, seen = 0;
	int ret;

	for (i = 0; i < nr; i++)
		io_uring_prep_nop(io_uring_get_sqe(ring));
	ret = io_uring_submit_and_wait(ring, nr);
	if (ret < 0)
		return ret;
	io_uring_for_each_cqe(ring, head, cqe)
		seen += cqe->res == 0;
	io_uring_cq_advance(ring, seen);
	return seen == nr ? 0 : -1;
}

static int measure(struct io_uring *ring, unsigned int nr)
{
	uint64_t began_ns = 0;
	int i, ret;

	for (i = -ROUNDS / 10; i < ROUNDS; i++) {
		if (i == 0)
			began_ns = now_ns();
		ret = run_once(ring, nr);
		if (ret) {
			fprintf(stderr, "uring_nop: %s\n", strerror(-ret));
			return 1;
		}
	}
	printf("uring_nop %u %.1f\n", nr, (double)(now_ns() - began_ns) / ROUNDS / nr);
	return 0;
}

int main(void)
{
	struct io_uring ring;
	int ret;

	ret = io_uring_queue_init(64, &ring, 0);
	if (ret) {
		fprintf(stderr, "uring_nop: io_uring_queue_init: %s\n", strerror(-ret));
		return 1;
	}
	ret = measure(&ring, 1) || measure(&ring, 32);
	io_uring_queue_exit(&ring);
	return ret;
}
