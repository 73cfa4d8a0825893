// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT under a timer signal a thousand times a second: whatever the signal interrupts, no job
 * is submitted twice, none is lost, and each completes once.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define LENGTH	4096UL
#define BATCH	32
#define MAX_MS	20000

FIXTURE(storm)
{
	struct kx_pair pair;
	uint32_t jobs;
	uint32_t wait_flags;
	uint8_t *seen;
	uint64_t next;
	uint64_t reaped;
	uint64_t twice;
	uint64_t failed;
	uint64_t interrupted;
};

FIXTURE_VARIANT(storm)
{
	uint32_t op;
	uint32_t jobs;	/* enough for many signals */
	int sa_flags;
	bool wait;
	uint32_t wait_flags;	/* KXFER_WAIT_F_* */
};

FIXTURE_VARIANT_ADD(storm, nops) { .op = KXFER_OP_NOP, .jobs = 131072, .wait = true };
FIXTURE_VARIANT_ADD(storm, writes) { .op = KXFER_OP_WRITE, .jobs = 4096, .wait = true };
FIXTURE_VARIANT_ADD(storm, reads) { .op = KXFER_OP_READ, .jobs = 4096, .wait = true };
FIXTURE_VARIANT_ADD(storm, notifies) { .op = KXFER_OP_NOTIFY, .jobs = 4096, .wait = true };
FIXTURE_VARIANT_ADD(storm, writes_with_restart) {
	.op = KXFER_OP_WRITE, .jobs = 4096, .wait = true, .sa_flags = SA_RESTART,
};
FIXTURE_VARIANT_ADD(storm, reads_polled_for) {
	.op = KXFER_OP_READ, .jobs = 4096, .wait = true, .wait_flags = KXFER_WAIT_F_POLL,
};
FIXTURE_VARIANT_ADD(storm, writes_slept_for) {
	.op = KXFER_OP_WRITE, .jobs = 4096, .wait = true, .wait_flags = KXFER_WAIT_F_SLEEP,
};
FIXTURE_VARIANT_ADD(storm, writes_and_reap) { .op = KXFER_OP_WRITE, .jobs = 4096 };

static volatile uint64_t nr_signals;

static void on_alarm(int signal)
{
	nr_signals++;
}

static int signals(int sa_flags, int every_us)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = sa_flags };
	struct itimerval timer = {
		.it_interval.tv_usec = every_us,
		.it_value.tv_usec = every_us,
	};

	return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL);
}

FIXTURE_SETUP(storm)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->jobs = variant->jobs;
	self->wait_flags = variant->wait_flags;
	self->seen = calloc(self->jobs, 1);
	ASSERT_NE(NULL, self->seen);
}

FIXTURE_TEARDOWN(storm)
{
	signals(0, 0);
	kx_pair_close(&self->pair);
	free(self->seen);
}

static void note(FIXTURE_DATA(storm) *self, const struct kxfer_completion *done,
		 uint32_t nr, uint32_t op)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		self->twice += done[i].user_data >= self->jobs ||
			       self->seen[done[i].user_data % self->jobs]++;
		/* A NOTIFY to an exporter that is too slow ends with EAGAIN. */
		self->failed += done[i].status &&
				!(op == KXFER_OP_NOTIFY && done[i].status == -EAGAIN);
	}
	self->reaped += nr;
}

static int submit_batch(FIXTURE_DATA(storm) *self, uint32_t op, bool wait,
			struct kxfer_completion *done)
{
	struct kxfer_job jobs[BATCH];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.flags = self->wait_flags,
		.jobs = (uintptr_t)jobs,
		.nr_jobs = BATCH,
		.stride = sizeof(jobs[0]),
		.completions = wait ? (uintptr_t)done : 0,
		.nr_completions = wait ? BATCH : 0,
		.wait = wait ? BATCH : 0,
	};
	bool transfer = op == KXFER_OP_READ || op == KXFER_OP_WRITE;
	uint32_t i;
	int ret;

	for (i = 0; i < BATCH; i++)
		jobs[i] = (struct kxfer_job) {
			.op = op,
			.region = transfer ? self->pair.client_region : 0,
			.target = op == KXFER_OP_NOP ? 0 : self->pair.target,
			.length = transfer ? LENGTH : 0,
			.user_data = self->next + i,
		};
	ret = kx_call(self->pair.client, KXFER_SUBMIT, &cmd);
	if (ret)
		return ret;
	self->next += cmd.accepted;
	note(self, done, cmd.reaped, op);
	return cmd.error ? -(int)cmd.error : 0;
}

/* The exporter's end of NOTIFY; reaps all events. */
static void drain_events(int fd)
{
	static struct kxfer_event events[256];

	kx_event_reap(fd, events, 256, 0);
}

static int reap_some(FIXTURE_DATA(storm) *self, uint32_t op,
		     struct kxfer_completion *done)
{
	int nr = kx_reap(self->pair.client, done, BATCH, 1, 1000);

	if (nr > 0)
		note(self, done, nr, op);
	return nr < 0 ? nr : 0;
}

TEST_F_TIMEOUT(storm, completes_each_job_once, 90)
{
	uint64_t submitted = kx_counter(self->pair.client, "jobs_submitted");
	uint64_t end = kx_deadline_ns(MAX_MS * kx_slowness());
	struct kxfer_completion done[BATCH];
	uint64_t missing = 0, i;
	int ret;

	ASSERT_EQ(0, signals(variant->sa_flags, 1000));
	while (self->next < self->jobs && kx_now_ns() < end) {
		ret = submit_batch(self, variant->op, variant->wait, done);
		ASSERT_TRUE(ret == 0 || ret == -EINTR || ret == -EAGAIN);
		self->interrupted += ret == -EINTR;
		drain_events(self->pair.server);
		if (!variant->wait || ret == -EAGAIN)
			reap_some(self, variant->op, done);
	}
	while (self->reaped < self->next && kx_now_ns() < end) {
		ret = reap_some(self, variant->op, done);
		ASSERT_TRUE(ret == 0 || ret == -EINTR);
	}
	ASSERT_EQ(0, signals(0, 0));
	EXPECT_EQ(self->jobs, self->next);
	EXPECT_EQ(self->jobs, self->reaped);
	EXPECT_EQ(0, self->twice);
	EXPECT_EQ(0, self->failed);
	for (i = 0; i < self->jobs; i++)
		missing += !self->seen[i];
	EXPECT_EQ(0, missing);
	EXPECT_EQ(submitted + self->jobs, kx_counter(self->pair.client, "jobs_submitted"));
	EXPECT_LT(0, nr_signals);
}

TEST_HARNESS_MAIN
