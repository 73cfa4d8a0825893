// SPDX-License-Identifier: GPL-2.0
/*
 * Links between the same two addresses, made and broken one after the other. A control connection
 * comes from one of 359 reserved ports, and TCP, below iWARP, refuses that of an ended connection
 * for a minute: without another try, two links of 80 would come from the same port in all but one
 * run of 13,000.
 */
#include <unistd.h>

#include "harness/fault.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define NR_LINKS	80
#define ENDED_MS	10000

FIXTURE(anew)
{
	struct rig rig;
	int fd;
};

FIXTURE_SETUP(anew)
{
	struct rig_options options = { .length = 65536 };

	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(anew)
{
	fault_reset();
	rig_close(&self->rig);
	close(self->fd);
}

/* A SEND that fails breaks the link. */
static void break_link(struct rig *rig)
{
	struct kxfer_peer_export export;
	uint64_t cursor = 0;

	fault_arm("LANE_POST_SEND", 1);
	kx_peer_list(rig->client, rig->peer, &export, 1, &cursor);
	fault_arm("LANE_POST_SEND", 0);
}

TEST_F_TIMEOUT(anew, each_of_many_links_can_be_made, 120)
{
	int i;

	for (i = 0; i < NR_LINKS; i++) {
		break_link(&self->rig);
		close(self->rig.client);
		buffer_free(&self->rig.here);
		ASSERT_TRUE(kx_wait_until(!kx_counter(self->fd, "live_links"), ENDED_MS));
		ASSERT_EQ(0, rig_open_client(&self->rig)) {
			TH_LOG("link %d", i);
		}
	}
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 65536));
}

TEST_HARNESS_MAIN
