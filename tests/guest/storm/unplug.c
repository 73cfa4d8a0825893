// SPDX-License-Identifier: GPL-2.0
/* The RDMA device is removed and added again, many times, under load. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/storm.h"
#include "harness/baseline.h"
#include "kselftest_harness.h"

#define LENGTH		(256u * 1024)
#define NR_WORKERS	4
#define NR_JOBS		64
#define KILL_MS		50	/* time of the responder's kill, after the removal has begun */
#define BACK_MS		30000	/* for device, listener, connection, export and a job */

FIXTURE(unplug)
{
	struct rig rig;
	struct storm storm;
	struct baseline baseline;
	char device[64];
	char provider[8];
};

/*
 * The device cannot be removed before the responder ends. So the responder is killed while the
 * module releases the device.
 */
static int remove_device(struct _test_data_unplug *self)
{
	pid_t responder = self->storm.responder, killer = responder ? fork() : 0;
	int ret;

	if (responder && !killer) {
		kx_sleep_ms(rand() % KILL_MS);
		kill(responder, SIGKILL);
		_exit(0);
	}
	ret = baseline_command("rdma link del %s", self->device);
	if (responder) {
		waitpid(killer, NULL, 0);
		storm_hush(&self->storm);
	}
	return ret;
}

static int add_device(struct _test_data_unplug *self)
{
	const char *netdev = getenv("KXFER_NETDEV") ?: "dummy0";
	int ret = baseline_command("rdma link add %s type %s netdev %s", self->device,
				   self->provider, netdev);

	if (ret || !self->storm.done)
		return ret;
	return kx_wait_until(storm_respond(&self->storm), BACK_MS) ? 0 : -ETIMEDOUT;
}

static int replug(struct _test_data_unplug *self)
{
	int ret = remove_device(self);

	if (!ret && (kx_counter(self->rig.server, "live_mrs") ||
		     kx_counter(self->rig.server, "live_mappings")))
		ret = -EBUSY;
	/*
	 * A failed link keeps no object of the device, but keeps its lanes until sessions
	 * release it.
	 */
	if (!ret && !kx_wait_until(!kx_counter(self->rig.server, "live_lanes"), BACK_MS))
		ret = -ETIMEDOUT;
	return ret ?: add_device(self);
}

static bool is_listening(int fd)
{
	struct kxfer_info_listener listener;
	uint64_t cursor = 0;

	return kx_info(fd, KXFER_INFO_LISTENERS, &listener, sizeof(listener), 1, &cursor) == 1 &&
	       listener.active;
}

/* The state without a link and with a listener, which comes back some time after its device. */
static int settle(struct _test_data_unplug *self)
{
	int ret = replug(self);

	if (!ret && !kx_wait_until(is_listening(self->rig.server), BACK_MS))
		ret = -ETIMEDOUT;
	return ret;
}

FIXTURE_SETUP(unplug)
{
	struct rig_options options = { .length = LENGTH };

	if (geteuid())
		SKIP(return, "needs root");
	snprintf(self->device, sizeof(self->device), "%s", kx_device());
	snprintf(self->provider, sizeof(self->provider), "%s", kx_provider());
	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	self->rig.client = -1;
	ASSERT_EQ(0, settle(self));
	ASSERT_EQ(0, baseline_take(self->rig.server, &self->baseline));
}

FIXTURE_TEARDOWN(unplug)
{
	storm_end(&self->storm);
	rig_close(&self->rig);
}

TEST_F_TIMEOUT(unplug, load_goes_on_each_time, 3600)
{
	uint32_t rounds = storm_amount(4, 200), i;
	const char *wrong;

	ASSERT_EQ(0, storm_start(&self->storm, &self->rig, NR_WORKERS, NR_JOBS));
	for (i = 0; i < rounds; i++) {
		ASSERT_TRUE(storm_blows(self->rig.server, BACK_MS)) {
			TH_LOG("round %u: no job gets done", i);
		}
		kx_sleep_ms(i * 7 % 50);
		ASSERT_EQ(0, replug(self));
	}
	TH_LOG("removed and added %u times", i);
	TH_LOG("%s", mix_tell(self->storm.done));
	storm_end(&self->storm);
	ASSERT_EQ(0, settle(self));
	wrong = baseline_wait(self->rig.server, &self->baseline, BASELINE_WAIT_MS);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

TEST_HARNESS_MAIN
