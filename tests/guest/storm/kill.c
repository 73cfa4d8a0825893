// SPDX-License-Identifier: GPL-2.0
/* Many processes with many jobs in flight each are killed at random. */
#include <stdlib.h>
#include <unistd.h>

#include "big/storm.h"
#include "harness/baseline.h"
#include "kselftest_harness.h"

#define LENGTH		(128u * 1024)
#define NR_JOBS		64
#define READY_MS	30000

FIXTURE(kill)
{
	struct rig rig;
	struct storm storm;
	struct baseline baseline;
};

FIXTURE_SETUP(kill)
{
	struct rig_options options = { .length = LENGTH };

	self->rig.server = -1;
	if (geteuid())
		SKIP(return, "needs root");
	/* The links must be up before anything is counted. */
	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	ASSERT_EQ(0, storm_connect(&self->rig));
	ASSERT_EQ(0, baseline_take(self->rig.server, &self->baseline));
}

FIXTURE_TEARDOWN(kill)
{
	storm_end(&self->storm);
	rig_close(&self->rig);
}

TEST_F_TIMEOUT(kill, nothing_of_the_killed_is_left, 3600)
{
	uint32_t nr = storm_amount(16, 64), seconds = storm_amount(6, 300), killed = 0;
	uint64_t jobs = kx_counter(self->rig.server, "jobs_completed");
	unsigned int seed = getpid();
	const char *wrong;
	uint64_t end;

	ASSERT_EQ(0, storm_start(&self->storm, &self->rig, nr, NR_JOBS));
	end = kx_deadline_ns(seconds * 1000);
	while (kx_now_ns() < end) {
		kx_sleep_ms(rand_r(&seed) % 60);
		ASSERT_EQ(0, storm_replace(&self->storm, rand_r(&seed) % nr));
		killed++;
	}
	/* Jobs were completed, and still are. */
	EXPECT_TRUE(storm_blows(self->rig.server, READY_MS));
	jobs = kx_counter(self->rig.server, "jobs_completed") - jobs;
	TH_LOG("%u processes, %u times one was killed in %u s, %llu jobs done", nr, killed,
	       seconds, (unsigned long long)jobs);
	EXPECT_LT(seconds / 2, killed * kx_slowness());
	/* Operations of each kind were completed too. */
	EXPECT_TRUE(kx_wait_until(!mix_lacks(self->storm.done), READY_MS)) {
		TH_LOG("%s was not done", mix_lacks(self->storm.done));
	}
	TH_LOG("%s", mix_tell(self->storm.done));
	storm_end(&self->storm);
	wrong = baseline_wait(self->rig.server, &self->baseline, BASELINE_WAIT_MS);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

TEST_HARNESS_MAIN
