// SPDX-License-Identifier: GPL-2.0
/*
 * Claims of a device that its user must not rely on. Only on siw-dma (tests/guest/dma). It
 * claims that a registration may have 262,144 pages, and joins pages in one segment like an
 * IOMMU. It complains of a registration as long as it claims to allow, of a CQ that is armed
 * while it contains completions, and of a range that is synced at a wrong address.
 */
#include <stdio.h>
#include <string.h>

#include "harness/fault.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB		(1024u * 1024)
#define LENGTH		(8 * MIB)
#define COMPLAINTS	"/sys/kernel/debug/siw-dma/complaints"
#define NR_JOBS		64	/* more than one poll of a CQ takes */
#define ROUNDS		3
#define LATE_MS		200

FIXTURE(claims)
{
	struct rig rig;
	long before;
};

static long complaints(void)
{
	FILE *file = fopen(COMPLAINTS, "re");
	long nr = -1;

	if (file && fscanf(file, "%ld", &nr) != 1)
		nr = -1;
	if (file)
		fclose(file);
	return nr;
}

FIXTURE_SETUP(claims)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.there = BUFFER_SCATTERED,
	};

	self->rig.client = -1;
	self->rig.server = -1;
	self->before = complaints();
	if (self->before < 0)
		SKIP(return, "no device here claims more than it has; siw-dma does");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(claims)
{
	if (self->before < 0)
		return;
	rig_close(&self->rig);
	EXPECT_EQ(self->before, complaints());
}

/* Registrations have the module's length of 511 pages, not the length that the device claims. */
TEST_F(claims, registrations_have_a_cap)
{
	EXPECT_LE(LENGTH / (511 * 4096), self->rig.nr_keys);
	rig_prepare(&self->rig, KXFER_OP_WRITE);
	EXPECT_EQ(NULL, rig_try(&self->rig, KXFER_OP_WRITE, 5, 3, 3 * MIB));
	rig_prepare(&self->rig, KXFER_OP_READ);
	EXPECT_EQ(NULL, rig_try(&self->rig, KXFER_OP_READ, 5, 3, 3 * MIB));
}

/*
 * All jobs complete while the CQ is not polled, because the work is delayed. A session that
 * waits for the first job polls 16 completions, and leaves the others in the CQ.
 */
TEST_F(claims, a_CQ_that_is_left_full_is_not_armed)
{
	struct kxfer_completion done[NR_JOBS];
	struct kxfer_job jobs[NR_JOBS];
	int i, round, n;

	if (!fault_available())
		SKIP(return, "needs debugfs");
	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = rig_job(&self->rig, KXFER_OP_WRITE, i * 8, i * 8, 8);
		jobs[i].flags = KXFER_JOB_F_LOCAL_ONLY;
	}
	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(0, delay_arm("CQ_WORK", 4 * LATE_MS, 1));
		ASSERT_EQ(NR_JOBS, kx_submit(self->rig.client, jobs, NR_JOBS));
		kx_sleep_ms(LATE_MS);
		n = kx_reap(self->rig.client, done, NR_JOBS, 1, RIG_WAIT_MS);
		ASSERT_LE(1, n);
		if (n < NR_JOBS)
			ASSERT_EQ(NR_JOBS - n, kx_reap(self->rig.client, done, NR_JOBS - n,
						       NR_JOBS - n, RIG_WAIT_MS));
	}
	ASSERT_EQ(0, fault_reset());
}

/* Pages that are scattered for the CPU are one segment of the device. */
TEST_F(claims, ranges_are_synced_page_by_page)
{
	uint32_t at;

	for (at = 0; at < 16; at++) {
		EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, at * 4096 + 100, at, 20000));
		EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, at * 4096 + 100, at, 20000));
	}
}

TEST_HARNESS_MAIN
