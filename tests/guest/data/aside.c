// SPDX-License-Identifier: MIT
/*
 * The owner of a CQ steps aside: a session polls for its job, gives the CPU to the provider's own
 * tasks, and comes back late. No other session, withdrawal or end of the link waits for it.
 *
 * The delay stands where the owner gives the CPU away, so it comes back as late as a task whose
 * cgroup has used up its share of the CPU.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness/fault.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB		(1024u * 1024)
#define AWAY_MS		6000
#define SOON_MS		3000	/* for jobs of 33 MiB in all, less than AWAY_MS */
#define NR_JOBS		32
#define TRIES		50	/* until the provider is late enough for the owner */

FIXTURE(aside)
{
	struct rig rig;
	struct rig other;
	pthread_t thread;
	bool waiting;
	struct kxfer_completion done;
	int reaped;
	bool ended;
};

/* All jobs here are bulk jobs, so both sessions are on one lane. */
FIXTURE_SETUP(aside)
{
	struct rig_options options = { .length = MIB };

	self->rig.client = -1;
	self->rig.server = -1;
	self->other.client = -1;
	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->other = self->rig;
	self->other.client = -1;
	ASSERT_EQ(0, rig_open_client(&self->other));
}

FIXTURE_TEARDOWN(aside)
{
	if (!fault_available())
		return;
	fault_reset();
	if (self->waiting)
		pthread_join(self->thread, NULL);
	if (self->other.client >= 0) {
		close(self->other.client);
		buffer_free(&self->other.here);
	}
	rig_close(&self->rig);
}

static void *wait_for_job(void *data)
{
	FIXTURE_DATA(aside) *self = data;
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, 0, 0, MIB);
	struct kxfer_submit submit = {
		.size = sizeof(submit),
		.jobs = (uintptr_t)&job,
		.stride = sizeof(job),
		.nr_jobs = 1,
		.completions = (uintptr_t)&self->done,
		.nr_completions = 1,
		.wait = 1,
		.flags = KXFER_WAIT_F_POLL,
	};

	self->reaped = kx_call(self->rig.client, KXFER_SUBMIT, &submit);
	if (!self->reaped)
		self->reaped = submit.reaped;
	__atomic_store_n(&self->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_away(void)
{
	struct delay_counts counts;

	return !delay_counts("CQ_AWAY", &counts) && counts.now;
}

/* Looks until the job is done: a machine with other loads may take long to start the thread. */
static bool goes_away(FIXTURE_DATA(aside) *self)
{
	while (!__atomic_load_n(&self->ended, __ATOMIC_ACQUIRE)) {
		if (is_away())
			return true;
		usleep(1000);
	}
	return false;
}

/* Return: whether the owner of the CQ is away now, in a thread that waits for its job. */
static bool send_away(FIXTURE_DATA(aside) *self)
{
	int i;

	delay_arm("CQ_AWAY", AWAY_MS, 1);
	for (i = 0; i < TRIES; i++) {
		self->ended = false;
		self->waiting = !pthread_create(&self->thread, NULL, wait_for_job, self);
		if (!self->waiting)
			return false;
		if (goes_away(self))
			return true;
		pthread_join(self->thread, NULL);
		self->waiting = false;
	}
	return false;
}

/* On one CPU an owner has to: rxe works in a kworker since Linux 6.4. */
static bool has_to_step_aside(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	return !strcmp(kx_provider(), "rxe") && sysconf(_SC_NPROCESSORS_ONLN) == 1 &&
	       !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       major * 1000 + minor >= 6004;
}

static bool back(FIXTURE_DATA(aside) *self)
{
	pthread_join(self->thread, NULL);
	self->waiting = false;
	return self->reaped == 1 && !self->done.status;
}

TEST_F(aside, another_session_does_not_wait_for_an_owner_that_is_away)
{
	uint64_t began;

	if (!send_away(self)) {
		ASSERT_FALSE(has_to_step_aside());
		SKIP(return, "the provider works before the owner looks");
	}
	began = kx_now_ns();
	EXPECT_EQ(0, rig_move(&self->other, KXFER_OP_WRITE, 0, 0, MIB));
	EXPECT_GT(SOON_MS, (kx_now_ns() - began) / 1000000);
	EXPECT_TRUE(is_away());
	EXPECT_TRUE(back(self));
	EXPECT_EQ(0, memcmp(self->rig.here.bytes, self->rig.there.bytes, MIB));
}

TEST_F(aside, a_link_ends_while_the_owner_is_away)
{
	uint64_t began;

	if (!send_away(self)) {
		ASSERT_FALSE(has_to_step_aside());
		SKIP(return, "the provider works before the owner looks");
	}
	ASSERT_EQ(0, fault_arm("LANE_POST_SEND", 1));
	began = kx_now_ns();
	EXPECT_EQ(-ECONNRESET, rig_move(&self->other, KXFER_OP_WRITE, 0, 0, MIB));
	EXPECT_GT(SOON_MS, (kx_now_ns() - began) / 1000000);
	EXPECT_TRUE(is_away());
	pthread_join(self->thread, NULL);
	self->waiting = false;
	EXPECT_EQ(1, self->reaped);
}

TEST_F(aside, a_withdrawal_does_not_wait_for_an_owner_that_is_away)
{
	uint64_t began;

	if (!send_away(self)) {
		ASSERT_FALSE(has_to_step_aside());
		SKIP(return, "the provider works before the owner looks");
	}
	began = kx_now_ns();
	EXPECT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	EXPECT_GT(SOON_MS, (kx_now_ns() - began) / 1000000);
	EXPECT_TRUE(is_away());
	EXPECT_TRUE(back(self));
}

TEST_F(aside, an_owner_stays_while_another_session_has_jobs)
{
	struct kxfer_completion done[NR_JOBS];
	struct kxfer_job jobs[NR_JOBS];
	struct kxfer_reap reap = {
		.size = sizeof(reap),
		.completions = (uintptr_t)done,
		.nr = NR_JOBS,
		.wait = NR_JOBS,
		.flags = KXFER_WAIT_F_SLEEP,
		.deadline_ns = kx_deadline_ns(RIG_WAIT_MS),
	};
	uint64_t began = kx_now_ns();
	int i;

	for (i = 0; i < NR_JOBS; i++)
		jobs[i] = rig_job(&self->other, KXFER_OP_WRITE, 0, 0, MIB);
	ASSERT_EQ(NR_JOBS, kx_submit(self->other.client, jobs, NR_JOBS));
	ASSERT_EQ(0, delay_arm("CQ_AWAY", AWAY_MS, 1));
	self->waiting = !pthread_create(&self->thread, NULL, wait_for_job, self);
	ASSERT_TRUE(self->waiting);
	/* Asleep, lest this thread be the one that steps aside. */
	ASSERT_EQ(0, kx_call(self->other.client, KXFER_REAP, &reap));
	ASSERT_EQ(NR_JOBS, reap.reaped);
	EXPECT_GT(SOON_MS, (done[NR_JOBS - 1].completed_ns - began) / 1000000);
	EXPECT_TRUE(back(self));
}

TEST_HARNESS_MAIN
