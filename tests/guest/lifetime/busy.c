// SPDX-License-Identifier: GPL-2.0
/* An object in use cannot be deleted, and can be deleted as soon as it is not in use. */
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB	(1024u * 1024)
#define LENGTH	(4 * MIB)
#define NR_JOBS	64

FIXTURE(busy)
{
	struct rig rig;
	struct baseline baseline;
	int fd;
};

FIXTURE_SETUP(busy)
{
	struct rig_options options = { .length = LENGTH, .here = BUFFER_SCATTERED };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(busy)
{
	const char *left;

	rig_close(&self->rig);
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	close(self->fd);
}

/* Starts jobs that take long enough to be observed; 256 MiB. */
static int keep_busy(struct rig *rig)
{
	struct kxfer_job jobs[NR_JOBS];
	int i;

	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = rig_job(rig, i % 2 ? KXFER_OP_READ : KXFER_OP_WRITE, 0, 0, LENGTH);
		jobs[i].user_data = i;
	}
	return kx_submit(rig->client, jobs, NR_JOBS);
}

/* Cancels queued jobs and waits for the others. Return: number of jobs that ended, or -errno */
static int calm_down(struct rig *rig, int *cancelled)
{
	struct kxfer_completion done[NR_JOBS];
	int i, n, ret = kx_cancel(rig->client, 0, KXFER_CANCEL_F_ALL);

	if (ret < 0)
		return ret;
	*cancelled = ret;
	n = kx_reap(rig->client, done, NR_JOBS, NR_JOBS, RIG_WAIT_MS);
	for (i = 0; i < n; i++)
		if (done[i].status && done[i].status != -ECANCELED)
			return done[i].status;
	return n;
}

TEST_F_TIMEOUT(busy, region_with_jobs, 60)
{
	int cancelled;

	ASSERT_EQ(NR_JOBS, keep_busy(&self->rig));
	test_err_region_del(EBUSY, self->rig.client, self->rig.here_region);
	ASSERT_EQ(NR_JOBS, calm_down(&self->rig, &cancelled));
	EXPECT_LT(0, cancelled);
	EXPECT_EQ(0, kx_region_del(self->rig.client, self->rig.here_region));
}

TEST_F_TIMEOUT(busy, target_with_jobs, 60)
{
	int cancelled;

	ASSERT_EQ(NR_JOBS, keep_busy(&self->rig));
	test_err_target_close(EBUSY, self->rig.client, self->rig.target);
	ASSERT_EQ(NR_JOBS, calm_down(&self->rig, &cancelled));
	EXPECT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	EXPECT_EQ(-ENOENT, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 1));
}

TEST_F(busy, peer_with_targets)
{
	test_err_peer_close(EBUSY, self->rig.client, self->rig.peer);
	ASSERT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	EXPECT_EQ(0, kx_peer_close(self->rig.client, self->rig.peer));
	test_err_peer_close(ENOENT, self->rig.client, self->rig.peer);
}

TEST_F(busy, region_with_an_export)
{
	test_err_region_del(EBUSY, self->rig.server, self->rig.there_region);
	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	EXPECT_EQ(0, kx_region_del(self->rig.server, self->rig.there_region));
}

TEST_F_TIMEOUT(busy, cancel_ends_what_is_queued_only, 60)
{
	struct kxfer_completion done[NR_JOBS];
	int i, ok = 0, gone = 0, cancelled;

	ASSERT_EQ(NR_JOBS, keep_busy(&self->rig));
	cancelled = kx_cancel(self->rig.client, 0, KXFER_CANCEL_F_ALL);
	ASSERT_LT(0, cancelled);
	ASSERT_EQ(NR_JOBS, kx_reap(self->rig.client, done, NR_JOBS, NR_JOBS, RIG_WAIT_MS));
	for (i = 0; i < NR_JOBS; i++) {
		ok += done[i].status == 0;
		gone += done[i].status == -ECANCELED;
		EXPECT_EQ(done[i].status ? 0 : LENGTH, done[i].bytes);
	}
	EXPECT_EQ(cancelled, gone);
	EXPECT_EQ(NR_JOBS, ok + gone);
	EXPECT_LT(0, ok);
}

TEST_F_TIMEOUT(busy, deadline_ends_what_is_queued_only, 60)
{
	struct kxfer_completion done[NR_JOBS];
	struct kxfer_job jobs[NR_JOBS];
	int i, late = 0, ok = 0;

	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH);
		jobs[i].deadline_ns = kx_deadline_ns(30);
	}
	ASSERT_EQ(NR_JOBS, kx_submit(self->rig.client, jobs, NR_JOBS));
	ASSERT_EQ(NR_JOBS, kx_reap(self->rig.client, done, NR_JOBS, NR_JOBS, RIG_WAIT_MS));
	for (i = 0; i < NR_JOBS; i++) {
		late += done[i].status == -ETIMEDOUT;
		ok += done[i].status == 0;
	}
	EXPECT_EQ(NR_JOBS, late + ok);
	EXPECT_LT(0, late);
	EXPECT_LT(0, ok);
}

TEST_F_TIMEOUT(busy, close_with_jobs_frees_all, 60)
{
	uint64_t before;

	ASSERT_EQ(NR_JOBS, keep_busy(&self->rig));
	before = kx_now_ns();
	close(self->rig.client);
	self->rig.client = -1;
	/* Queued jobs end at once, posted jobs soon. */
	EXPECT_GT(15000, (kx_now_ns() - before) / 1000000);
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
}

TEST_HARNESS_MAIN
