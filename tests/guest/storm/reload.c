// SPDX-License-Identifier: GPL-2.0
/* The module is removed and loaded again, many times, with links up and kept listeners. */
#include <unistd.h>

#include "big/storm.h"
#include "harness/baseline.h"
#include "harness/module.h"
#include "kselftest_harness.h"

#define LENGTH		(256u * 1024)
#define NR_WORKERS	3
#define NR_JOBS		64
#define READY_MS	30000
#define BLOW_MS		200	/* long enough for more than the first jobs */

FIXTURE(reload)
{
	struct rig rig;
	struct storm storm;
};

FIXTURE_SETUP(reload)
{
	self->rig.client = -1;
	self->rig.server = -1;
	if (!module_available())
		SKIP(return, "needs root and the module file; set KXFER_MODULE to it");
	/* The reload clears the counts of earlier tests. */
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
}

FIXTURE_TEARDOWN(reload)
{
	storm_end(&self->storm);
	rig_close(&self->rig);
	if (access(KX_NODE, F_OK))
		module_insert("");
}

TEST_F_TIMEOUT(reload, goes_each_time_and_comes_back_as_new, 3600)
{
	struct rig_options options = { .length = LENGTH };
	uint32_t rounds = storm_amount(3, 100), i;
	uint64_t listener;

	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, rig_open_server(&self->rig, &options));
		self->rig.client = -1;
		ASSERT_EQ(0, kx_listen_add(self->rig.server, kx_addr(kx_address6(), KXFER_PORT),
					   KXFER_LISTEN_F_KEEP, &listener));
		/* Nothing of the earlier module is left. */
		EXPECT_EQ(0, kx_counter(self->rig.server, "live_links"));
		EXPECT_EQ(0, kx_counter(self->rig.server, "jobs_submitted"));
		EXPECT_EQ(2, kx_counter(self->rig.server, "live_listeners"));
		ASSERT_EQ(0, storm_start(&self->storm, &self->rig, NR_WORKERS, NR_JOBS));
		ASSERT_TRUE(storm_blows(self->rig.server, READY_MS)) {
			TH_LOG("round %u: no job gets done", i);
		}
		kx_sleep_ms(BLOW_MS);
		TH_LOG("%s", mix_tell(self->storm.done));
		storm_end(&self->storm);
		rig_close(&self->rig);
		ASSERT_EQ(0, module_remove_soon());
		ASSERT_EQ(0, module_insert(""));
	}
	TH_LOG("removed and loaded %u times", i);
}

TEST_HARNESS_MAIN
