// SPDX-License-Identifier: GPL-2.0
/*
 * What a call costs that moves nothing: nanoseconds for getppid(2), KXFER_NOP, a SUBMIT and an
 * ENTER that wait for one NOP job and for 32, and the empty loop of KXFER_BENCH. Prints lines
 * "NAME COUNT NANOSECONDS", the time of one of COUNT.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/kxfer.h>
#include <linux/kxfer_bench.h>

#define ROUNDS		2000
#define MAX_JOBS	32

static int fd;
static int ring_fd;	/* a session with both rings */
static struct kxfer_ring *ring;
static struct kxfer_sq *sq;
static struct kxfer_job jobs[MAX_JOBS];
static struct kxfer_completion completions[MAX_JOBS];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static int do_syscall(unsigned int nr)
{
	(void)nr;
	return syscall(SYS_getppid) < 0;
}

static int do_nop(unsigned int nr)
{
	struct kxfer_nop nop = { .size = sizeof(nop) };

	(void)nr;
	return ioctl(fd, KXFER_NOP, &nop);
}

static int do_submit(unsigned int nr)
{
	struct kxfer_submit submit = {
		.size = sizeof(submit),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = nr,
		.stride = sizeof(jobs[0]),
		.completions = (uintptr_t)completions,
		.nr_completions = nr,
		.wait = nr,
	};

	return ioctl(fd, KXFER_SUBMIT, &submit) || submit.reaped != nr;
}

/* A process writes its job into the ring, and reads there what came of it. */
static int do_enter(unsigned int nr)
{
	struct kxfer_job *slots = (struct kxfer_job *)(sq + 1);
	const struct kxfer_completion *done = (struct kxfer_completion *)(ring + 1);
	uint32_t tail = sq->tail, head = ring->head, i;

	for (i = 0; i < nr; i++)
		slots[tail++ & sq->mask] = jobs[i];
	__atomic_store_n(&sq->tail, tail, __ATOMIC_RELEASE);
	if (ioctl(ring_fd, KXFER_ENTER, (unsigned long)nr) != (int)nr)
		return 1;
	for (; head != __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE); head++)
		completions[head % MAX_JOBS] = done[head & ring->mask];
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	return 0;
}

static void *map(uint64_t offset, uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

/* Return: 0, or 1 after printing the reason. */
static int open_rings(void)
{
	struct kxfer_cq_ring cq_ring = { .size = sizeof(cq_ring), .entries = 64 };
	struct kxfer_sq_ring sq_ring = { .size = sizeof(sq_ring), .entries = 64 };

	ring_fd = open("/dev/kxfer", O_RDWR | O_CLOEXEC);
	if (ring_fd >= 0 && !ioctl(ring_fd, KXFER_CQ_RING, &cq_ring) &&
	    !ioctl(ring_fd, KXFER_SQ_RING, &sq_ring)) {
		ring = map(cq_ring.offset, cq_ring.bytes);
		sq = map(sq_ring.offset, sq_ring.bytes);
	}
	if (ring && sq)
		return 0;
	perror("nop: rings");
	return 1;
}

/* Return: 0, or 1 after printing the reason. */
static int measure(const char *name, int (*call)(unsigned int nr), unsigned int nr)
{
	uint64_t began_ns = 0;
	int i;

	for (i = -ROUNDS / 10; i < ROUNDS; i++) {
		if (i == 0)
			began_ns = now_ns();
		if (call(nr)) {
			fprintf(stderr, "nop: %s: %s\n", name, strerror(errno));
			return 1;
		}
	}
	printf("%s %u %.1f\n", name, nr, (double)(now_ns() - began_ns) / ROUNDS / nr);
	return 0;
}

static int measure_loop(void)
{
	struct kxfer_bench bench = {
		.size = sizeof(bench),
		.op = KXFER_OP_NOP,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.warm_up = ROUNDS / 10,
		.count = ROUNDS,
		.time_limit_ms = KXFER_BENCH_MAX_TIME_MS,
	};

	/* An older module has no such call. */
	if (ioctl(fd, KXFER_BENCH, &bench))
		return errno != ENOTTY;
	printf("bench_nop 1 %.1f\n", (double)bench.total_ns / bench.operations);
	return 0;
}

int main(void)
{
	fd = open("/dev/kxfer", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror("nop: /dev/kxfer");
		return 1;
	}
	return measure("getppid", do_syscall, 1) || measure("nop_call", do_nop, 1) ||
	       measure("nop_job", do_submit, 1) || measure("nop_job", do_submit, MAX_JOBS) ||
	       open_rings() || measure("nop_enter", do_enter, 1) ||
	       measure("nop_enter", do_enter, MAX_JOBS) || measure_loop();
}
