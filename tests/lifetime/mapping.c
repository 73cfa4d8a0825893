// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of regions for devices take as long as the memory is large, to make and to end.
 * Nobody else waits for that; the removal of the device and the end of the region do, and
 * leave nothing behind.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "baseline.h"
#include "fault.h"
#include "kselftest_harness.h"
#include "rig.h"

#define LENGTH		(64 * 1024)
#define LATE_MS		3000
#define SOON_MS		1500	/* far less than that, and much for a job */
#define END_MS		15000

FIXTURE(mapping)
{
	struct rig slow;
	struct rig other;
	pthread_t thread;
	char name[64];
	char netdev[32];
	bool device_gone;
	uint64_t regions;	/* the module's own */
	int moved;
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
	/* Another session, of the same server. */
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

/* How many tasks are late there. */
static int nr_late(const char *site)
{
	struct delay_counts counts;

	return delay_counts(site, &counts) ? -1 : counts.now;
}

/* The first job: it makes the mapping here. */
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
	/* Or else it was nothing. */
	EXPECT_EQ(1, nr_late("MAPPING_MAKE"));
	pthread_join(self->thread, NULL);
	EXPECT_EQ(0, self->moved);
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

/* The device takes it out, and waits for its user, before its maker returns. */
TEST_F_TIMEOUT(mapping, is_taken_out_before_its_maker_returns, 60)
{
	remove_device_meanwhile(_metadata, self, "MAPPING_STORED");
}

static bool last_is_being_ended(uint64_t nr)
{
	struct delay_counts counts;

	return !delay_counts("MAPPING_END", &counts) && counts.delayed == (int)nr && counts.now;
}

/* The mapping here was made last; the device ends them in the order in which they came. */
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
