// SPDX-License-Identifier: GPL-2.0
/*
 * Making or ending the mapping of a region for a device takes time in proportion to its size.
 * Only the removal of the device and the end of the region wait for it, and they leave nothing
 * behind.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/fault.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define LENGTH		(64 * 1024)
#define LATE_MS		3000
#define SOON_MS		1500	/* far less than LATE_MS, and long for a job */
#define END_MS		15000

FIXTURE(mapping)
{
	struct rig slow;
	struct rig other;
	pthread_t thread;
	char name[64];
	char netdev[32];
	bool device_gone;
	uint64_t regions;	/* regions of the module itself */
	int moved;
	uint32_t mapped;	/* region */
	int fd;
};

FIXTURE_SETUP(mapping)
{
	struct rig_options options = { .length = LENGTH, .here = BUFFER_SCATTERED };

	if (!fault_available())
		SKIP(return, "needs the module's sites in debugfs");
	snprintf(self->name, sizeof(self->name), "%s", kx_device());
	if (!baseline_netdev(self->name, self->netdev, sizeof(self->netdev)))
		SKIP(return, "needs a software RDMA device to remove");
	ASSERT_EQ(0, fault_reset());
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->regions = kx_counter(self->fd, "live_regions");
	ASSERT_EQ(0, rig_open(&self->slow, &options));
	/* Another session of the same server. */
	self->other = self->slow;
	self->other.server = -1;
	self->other.there = (struct buffer) { 0 };
	ASSERT_EQ(0, rig_open_client(&self->other));
}

FIXTURE_TEARDOWN(mapping)
{
	if (!self->netdev[0])
		return;
	fault_reset();
	rig_close(&self->slow);
	rig_close(&self->other);
	if (self->device_gone)
		EXPECT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", self->name,
					      kx_provider(), self->netdev));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_regions") == self->regions,
				  END_MS));
	close(self->fd);
}

/* Number of tasks that are being delayed at a site. */
static int nr_late(const char *site)
{
	struct delay_counts counts;

	return delay_counts(site, &counts) ? -1 : counts.now;
}

/* The first job, which makes the mapping here. */
static void *move_slowly(void *argument)
{
	FIXTURE_DATA(mapping) *self = argument;

	self->moved = rig_move(&self->slow, KXFER_OP_WRITE, 0, 0, LENGTH);
	return NULL;
}

static void begin_slow_job(struct __test_metadata *_metadata, FIXTURE_DATA(mapping) *self,
			   const char *site)
{
	ASSERT_EQ(0, delay_arm(site, LATE_MS, 1));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, move_slowly, self));
	ASSERT_TRUE(kx_wait_until(nr_late(site) == 1, LATE_MS));
}

static void *remove_device(void *argument)
{
	FIXTURE_DATA(mapping) *self = argument;

	self->device_gone = !baseline_command("rdma link del %s", self->name);
	return NULL;
}

TEST_F_TIMEOUT(mapping, that_takes_long_keeps_no_other_waiting, 60)
{
	uint64_t begin;

	begin_slow_job(_metadata, self, "MAPPING_MAKE");
	begin = kx_now_ns();
	EXPECT_EQ(0, rig_move(&self->other, KXFER_OP_WRITE, 0, 0, LENGTH));
	EXPECT_EQ(0, kx_region_del(self->other.client, self->other.here_region));
	EXPECT_GT(SOON_MS * 1000000ULL, kx_now_ns() - begin);
	/* The delay must still last, or the test has proved nothing. */
	EXPECT_EQ(1, nr_late("MAPPING_MAKE"));
	pthread_join(self->thread, NULL);
	EXPECT_EQ(0, self->moved);
}

/* Two jobs in one call: the region of the second is not mapped yet. */
static void *submit_two(void *argument)
{
	FIXTURE_DATA(mapping) *self = argument;
	struct kxfer_job jobs[2];

	jobs[0] = rig_job(&self->slow, KXFER_OP_WRITE, 0, 0, 64);
	jobs[0].region = self->mapped;
	/* A job without an order would be posted before the second is looked at (quick.c). */
	jobs[0].flags = KXFER_JOB_F_ORDERED;
	jobs[1] = rig_job(&self->slow, KXFER_OP_WRITE, 0, 0, LENGTH);
	self->moved = kx_submit(self->slow.client, jobs, 2);
	return NULL;
}

TEST_F_TIMEOUT(mapping, that_takes_long_does_not_hold_jobs_of_the_same_call, 60)
{
	struct kxfer_completion done;

	ASSERT_EQ(0, kx_region_add(self->slow.client, self->slow.here.bytes, 4096, 0,
				   &self->mapped));
	ASSERT_EQ(0, kx_transfer(self->slow.client, KXFER_OP_WRITE, self->mapped, 0,
				 self->slow.target, 0, 64));
	ASSERT_EQ(0, delay_arm("MAPPING_MAKE", LATE_MS, 1));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, submit_two, self));
	ASSERT_TRUE(kx_wait_until(nr_late("MAPPING_MAKE") == 1, LATE_MS));
	EXPECT_EQ(1, kx_reap(self->slow.client, &done, 1, 1, SOON_MS));
	EXPECT_EQ(0, done.status);
	/* The delay must still last, or the test has proved nothing. */
	EXPECT_EQ(1, nr_late("MAPPING_MAKE"));
	pthread_join(self->thread, NULL);
	EXPECT_EQ(2, self->moved);
	EXPECT_EQ(1, kx_reap(self->slow.client, &done, 1, 1, END_MS));
	EXPECT_EQ(0, done.status);
}

static void remove_device_meanwhile(struct __test_metadata *_metadata,
				    FIXTURE_DATA(mapping) *self, const char *site)
{
	begin_slow_job(_metadata, self, site);
	remove_device(self);
	EXPECT_TRUE(self->device_gone);
	EXPECT_EQ(0, nr_late(site));
	EXPECT_EQ(0, kx_counter(self->fd, "live_mappings"));
	pthread_join(self->thread, NULL);
	EXPECT_NE(0, self->moved);
}

TEST_F_TIMEOUT(mapping, is_made_while_the_device_goes, 60)
{
	remove_device_meanwhile(_metadata, self, "MAPPING_MAKE");
}

/* The device removes the mapping and waits for its user before the maker returns. */
TEST_F_TIMEOUT(mapping, is_taken_out_before_its_maker_returns, 60)
{
	remove_device_meanwhile(_metadata, self, "MAPPING_STORED");
}

static bool last_is_being_ended(uint64_t nr)
{
	struct delay_counts counts;

	return !delay_counts("MAPPING_END", &counts) && counts.delayed == (int)nr && counts.now;
}

/* The mapping here was made last; the device ends mappings in the order of their creation. */
TEST_F_TIMEOUT(mapping, is_ended_by_the_device_while_its_region_goes, 60)
{
	uint64_t nr;

	ASSERT_EQ(0, rig_move(&self->slow, KXFER_OP_WRITE, 0, 0, LENGTH));
	nr = kx_counter(self->fd, "live_mappings");
	ASSERT_EQ(0, delay_arm("MAPPING_END", LATE_MS / 3, 0));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, remove_device, self));
	ASSERT_TRUE(kx_wait_until(last_is_being_ended(nr), nr * LATE_MS));
	EXPECT_EQ(0, kx_region_del(self->slow.client, self->slow.here_region));
	EXPECT_EQ(0, nr_late("MAPPING_END"));
	pthread_join(self->thread, NULL);
	EXPECT_TRUE(self->device_gone);
	EXPECT_EQ(0, kx_counter(self->fd, "live_mappings"));
}

TEST_HARNESS_MAIN
