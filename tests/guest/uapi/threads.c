// SPDX-License-Identifier: GPL-2.0
/*
 * Several threads submit to one session and reap from it, or one of them reads its completion
 * ring: each user_data comes back once, whichever thread takes it. For KCSAN these calls race
 * most often.
 *
 * The ring's reader checks the order of memory accesses: it takes completions without a system
 * call while the kernel writes others, and leaves nonsense in each slot that it has read. A
 * completion that is read before it was written, or overwritten before it was read, is nonsense
 * or comes twice.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "rigs/ring.h"

#define NR_SUBMITTERS	2
#define NR_REAPERS	2
#define BATCH		16
#define LENGTH		4096
#define RING_ENTRIES	64	/* wraps around often, and is full at times */
#define RUN_MS		3000
#define MAX_JOBS	(1u << 20)	/* ends a run earlier on a fast machine */

/*
 * By default KCSAN stops at one access in 4,000 for 80 us, to catch an access of another CPU.
 * That is too rare and too short for emulated CPUs, but with more stops tests that move many
 * bytes make no progress. With these values it sees the race of tests/mutants/data-race every 2
 * s.
 */
#define KCSAN		"/sys/module/kcsan/parameters"
#define KCSAN_RUN_MS	15000

FIXTURE(threads)
{
	struct kx_pair pair;
	struct kx_ring ring;
	bool kcsan;
	_Atomic uint8_t *seen;		/* number of completions, by user_data */
	atomic_uint next;		/* next user_data */
	atomic_uint nr_accepted;
	atomic_uint nr_reaped;
	atomic_int error;		/* first error, -errno; ends all threads */
	atomic_bool enough;
	atomic_bool all_submitted;
};

/* Stops at each @every-th access, for some microseconds. */
static int kcsan_watch(int every, int task_us, int interrupt_us)
{
	return baseline_command("cd " KCSAN " && echo %d >skip_watch && echo %d >udelay_task && "
				"echo %d >udelay_interrupt", every, task_us, interrupt_us);
}

FIXTURE_SETUP(threads)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->seen = calloc(MAX_JOBS, 1);
	ASSERT_NE(NULL, self->seen);
	self->kcsan = !access(KCSAN, W_OK);
	if (self->kcsan)
		ASSERT_EQ(0, kcsan_watch(500, 300, 100));
}

FIXTURE_TEARDOWN(threads)
{
	if (self->kcsan)
		EXPECT_EQ(0, kcsan_watch(4000, 80, 20));
	kx_pair_close(&self->pair);
	free((void *)self->seen);
}

static void note_error(struct _test_data_threads *self, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&self->error, &none, error);
}

static void fill_batch(struct _test_data_threads *self, struct kxfer_job *jobs, uint32_t first)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		jobs[i] = (struct kxfer_job) { .op = KXFER_OP_NOP, .user_data = first + i };
		if (i % 4)
			continue;
		jobs[i].op = KXFER_OP_READ;
		jobs[i].region = self->pair.client_region;
		jobs[i].target = self->pair.target;
		jobs[i].length = 64;
	}
}

/* Submits a whole batch, however often the session is full. */
static void *submit_batches(void *argument)
{
	struct _test_data_threads *self = argument;
	struct kxfer_job jobs[BATCH];
	int done, ret;

	while (!self->enough && !self->error) {
		uint32_t first = atomic_fetch_add(&self->next, BATCH);

		if (first + BATCH > MAX_JOBS)
			break;
		fill_batch(self, jobs, first);
		for (done = 0; done < BATCH && !self->error; ) {
			ret = kx_submit(self->pair.client, jobs + done, BATCH - done);
			if (ret > 0)
				done += ret;
			else if (ret == -EAGAIN)
				kx_sleep_ms(1);
			else
				note_error(self, ret);
		}
		atomic_fetch_add(&self->nr_accepted, done);
	}
	return NULL;
}

/* Whether this is the completion of the job that fill_batch() made. */
static void look_at(struct _test_data_threads *self, const struct kxfer_completion *done)
{
	bool read = done->user_data % BATCH % 4 == 0;

	if (done->status)
		note_error(self, done->status);
	else if (done->user_data >= MAX_JOBS)
		note_error(self, -ERANGE);
	else if (done->op != (read ? KXFER_OP_READ : KXFER_OP_NOP) ||
		 done->bytes != (read ? 64 : 0) || done->completed_ns < done->submitted_ns)
		note_error(self, -EPROTO);
	else
		atomic_fetch_add(&self->seen[done->user_data], 1);
}

static bool more_to_come(struct _test_data_threads *self)
{
	return !self->error && (!self->all_submitted || self->nr_reaped < self->nr_accepted);
}

static void *reap_all(void *argument)
{
	struct _test_data_threads *self = argument;
	struct kxfer_completion done[BATCH];
	int i, n;

	while (more_to_come(self)) {
		n = kx_reap(self->pair.client, done, BATCH, 1, KX_TIMEOUT_MS);
		if (n < 0)
			note_error(self, n);
		for (i = 0; i < n; i++)
			look_at(self, &done[i]);
		atomic_fetch_add(&self->nr_reaped, n > 0 ? n : 0);
	}
	return NULL;
}

static void *read_ring(void *argument)
{
	struct _test_data_threads *self = argument;
	struct kxfer_completion done[BATCH];
	uint64_t last_ns = kx_now_ns();
	int i, n;

	while (more_to_come(self)) {
		n = kx_ring_take(&self->ring, done, BATCH);
		for (i = 0; i < n; i++)
			look_at(self, &done[i]);
		atomic_fetch_add(&self->nr_reaped, n);
		if (n)
			last_ns = kx_now_ns();
		else if (kx_now_ns() - last_ns > KX_TIMEOUT_MS * 1000000ull)
			note_error(self, -ETIMEDOUT);
		else
			sched_yield();
	}
	return NULL;
}

static void run_threads(struct __test_metadata *_metadata, struct _test_data_threads *self,
			void *(*take)(void *), uint32_t nr_takers)
{
	pthread_t submitters[NR_SUBMITTERS], takers[NR_REAPERS];
	uint32_t i, accepted;

	for (i = 0; i < nr_takers; i++)
		ASSERT_EQ(0, pthread_create(&takers[i], NULL, take, self));
	for (i = 0; i < NR_SUBMITTERS; i++)
		ASSERT_EQ(0, pthread_create(&submitters[i], NULL, submit_batches, self));
	kx_wait_until(self->error || self->next >= MAX_JOBS,
		      self->kcsan ? KCSAN_RUN_MS : RUN_MS);
	self->enough = true;
	for (i = 0; i < NR_SUBMITTERS; i++)
		pthread_join(submitters[i], NULL);
	self->all_submitted = true;
	for (i = 0; i < nr_takers; i++)
		pthread_join(takers[i], NULL);

	accepted = self->nr_accepted;
	TH_LOG("%u jobs", accepted);
	EXPECT_EQ(0, self->error);
	EXPECT_LT(BATCH, accepted);
	EXPECT_EQ(accepted, self->nr_reaped);
	for (i = 0; i < MAX_JOBS; i++)
		ASSERT_EQ(i < accepted, self->seen[i]);
}

TEST_F_TIMEOUT(threads, of_a_session_see_each_completion_once, 60)
{
	run_threads(_metadata, self, reap_all, NR_REAPERS);
}

TEST_F_TIMEOUT(threads, see_each_completion_once_in_the_ring, 60)
{
	test_cmd_ring_open(self->pair.client, RING_ENTRIES, KX_NO_EVENTFD, &self->ring);
	run_threads(_metadata, self, read_ring, 1);
	EXPECT_EQ(self->nr_accepted, self->ring.shared->tail);
	kx_ring_unmap(&self->ring);
}

TEST_HARNESS_MAIN
