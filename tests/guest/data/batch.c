// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs that complete together (KXFER_JOB_F_BATCH), and WRITEs short enough to be carried in
 * their work requests: each has its data and its completion, and no more work requests are
 * signalled than needed.
 */
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define NR		32
#define SLOT		5000u	/* bytes between two jobs */
#define LENGTH		(NR * SLOT)

FIXTURE(batch)
{
	struct rig rig;
};

FIXTURE_VARIANT(batch)
{
	uint32_t context;
};

FIXTURE_VARIANT_ADD(batch, polled)
{
	.context = KXFER_CONTEXT_POLLED,
};

FIXTURE_VARIANT_ADD(batch, workqueue)
{
	.context = KXFER_CONTEXT_WORKQUEUE,
};

FIXTURE_VARIANT_ADD(batch, softirq)
{
	.context = KXFER_CONTEXT_SOFTIRQ,
};

FIXTURE_SETUP(batch)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.context = variant->context,
	};

	self->rig = (struct rig) { .server = -1, .client = -1 };
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(batch)
{
	rig_close(&self->rig);
}

/* Submits the jobs by one call. Return: -errno of the first that failed, or 0. */
static int run(const struct rig *rig, struct kxfer_job *jobs, uint32_t nr)
{
	struct kxfer_completion done[NR];
	bool seen[NR] = {};
	uint32_t i;
	int ret;

	for (i = 0; i < nr; i++)
		jobs[i].user_data = i;
	ret = kx_submit(rig->client, jobs, nr);
	if (ret != (int)nr)
		return ret < 0 ? ret : -EIO;
	ret = kx_reap(rig->client, done, nr, nr, KX_TIMEOUT_MS);
	if (ret != (int)nr)
		return ret < 0 ? ret : -ETIMEDOUT;
	for (i = 0; i < nr; i++) {
		if (done[i].status)
			return done[i].status;
		if (done[i].user_data >= nr || seen[done[i].user_data] ||
		    done[i].bytes != jobs[done[i].user_data].length)
			return -EPROTO;
		seen[done[i].user_data] = true;
	}
	/* There is no further completion. */
	return kx_reap(rig->client, done, nr, 0, 0) > 0 ? -EPROTO : 0;
}

static void fill(struct kxfer_job *jobs, const struct rig *rig, uint32_t op, uint32_t length,
		 uint32_t flags)
{
	uint32_t i;

	for (i = 0; i < NR; i++) {
		jobs[i] = rig_job(rig, op, i * SLOT, i * SLOT, length);
		jobs[i].flags = flags;
	}
}

/* Completions of work requests that NR jobs take. */
static int64_t completions_of(const struct rig *rig, uint32_t op, uint32_t flags)
{
	uint64_t before = rig_posted(rig).completions;
	struct kxfer_job jobs[NR];
	int ret;

	fill(jobs, rig, op, 100, flags);
	ret = run(rig, jobs, NR);
	return ret ?: (int64_t)(rig_posted(rig).completions - before);
}

static bool is_siw(void)
{
	return !strcmp(kx_provider(), "siw");
}

/* A post has room for 32 work requests; on iWARP a WRITE takes two. */
TEST_F(batch, of_writes_has_one_completion_a_post)
{
	EXPECT_EQ(NR, completions_of(&self->rig, KXFER_OP_WRITE, 0));
	EXPECT_EQ(is_siw() ? 2 : 1,
		  completions_of(&self->rig, KXFER_OP_WRITE, KXFER_JOB_F_BATCH));
}

/* On iWARP each READ is followed by the invalidation of its sink. */
TEST_F(batch, of_reads_has_one_completion_a_post)
{
	EXPECT_EQ(NR, completions_of(&self->rig, KXFER_OP_READ, 0));
	EXPECT_EQ(is_siw() ? NR : 1,
		  completions_of(&self->rig, KXFER_OP_READ, KXFER_JOB_F_BATCH));
}

TEST_F(batch, a_job_that_wants_its_own_completion_ends_those_before)
{
	struct kxfer_job jobs[NR];
	uint64_t before;

	fill(jobs, &self->rig, KXFER_OP_WRITE, 100, KXFER_JOB_F_BATCH | KXFER_JOB_F_LOCAL_ONLY);
	jobs[10].flags = KXFER_JOB_F_LOCAL_ONLY;
	jobs[20].flags = KXFER_JOB_F_LOCAL_ONLY;
	before = rig_posted(&self->rig).completions;
	ASSERT_EQ(0, run(&self->rig, jobs, NR));
	EXPECT_EQ(3, rig_posted(&self->rig).completions - before);
}

static bool same(const struct kxfer_job *job, const struct rig *rig)
{
	return !memcmp(rig->here.bytes + job->region_offset,
		       rig->there.bytes + job->target_offset, job->length);
}

TEST_F(batch, of_all_kinds_moves_all_bytes)
{
	struct kxfer_job jobs[NR];
	uint32_t round, i;
	size_t n;

	srand(7);
	for (round = 0; round < 50; round++) {
		for (n = 0; n < LENGTH; n++) {
			self->rig.here.bytes[n] = rand();
			self->rig.there.bytes[n] = rand();
		}
		for (i = 0; i < NR; i++) {
			jobs[i] = rig_job(&self->rig,
					  rand() % 2 ? KXFER_OP_READ : KXFER_OP_WRITE,
					  i * SLOT + rand() % 100, i * SLOT + rand() % 100,
					  1 + rand() % (rand() % 2 ? 100 : SLOT - 100));
			jobs[i].flags = rand() % 4 ? KXFER_JOB_F_BATCH : 0;
		}
		ASSERT_EQ(0, run(&self->rig, jobs, NR));
		for (i = 0; i < NR; i++)
			ASSERT_TRUE(same(&jobs[i], &self->rig));
	}
}

/* Also across page borders of the memory here, and up to lengths that no device carries inline. */
TEST_F(batch, short_writes_are_right)
{
	uint32_t length, at;
	const char *wrong;

	rig_prepare(&self->rig, KXFER_OP_WRITE);
	for (length = 1; length <= 1100; length += length < 70 ? 1 : 41) {
		for (at = 4096 - length; at <= 4096; at += length < 9 ? 1 : length / 3) {
			wrong = rig_try(&self->rig, KXFER_OP_WRITE, at, 3000, length);
			if (wrong)
				TH_LOG("%u bytes at %u: %s", length, at, wrong);
			ASSERT_EQ(NULL, wrong);
		}
	}
}

TEST_HARNESS_MAIN
