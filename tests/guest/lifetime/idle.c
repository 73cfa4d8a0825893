// SPDX-License-Identifier: GPL-2.0
/* An idle link is closed after half a minute, and then nothing at all is left on the device. */
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define IDLE_MS	30000

FIXTURE(idle)
{
	struct rig rig;
	int fd;
};

FIXTURE_SETUP(idle)
{
	struct rig_options options = { .length = 65536 };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(idle)
{
	rig_close(&self->rig);
	close(self->fd);
}

TEST_F_TIMEOUT(idle, link_is_closed_and_nothing_is_left, 90)
{
	uint64_t lost = kx_counter(self->fd, "links_lost");
	struct kx_live live;
	uint64_t before;
	uint32_t i;

	ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 65536));
	rig_close(&self->rig);
	before = kx_now_ns();
	ASSERT_LE(2, kx_counter(self->fd, "live_links"));
	ASSERT_TRUE(kx_wait_until(!kx_counter(self->fd, "live_links"), IDLE_MS + 10000));
	EXPECT_LE(IDLE_MS - 1000, (kx_now_ns() - before) / 1000000);
	/* The link was not counted as lost, at either end. */
	EXPECT_EQ(lost, kx_counter(self->fd, "links_lost"));
	ASSERT_EQ(0, kx_live_take(self->fd, &live));
	for (i = 0; i < live.nr; i++) {
		const char *name = (const char *)live.counters[i].name;
		/* This session, and the built-in export with its region. */
		bool one = !strcmp(name, "live_sessions") || !strcmp(name, "live_regions") ||
			   !strcmp(name, "live_exports");

		/* A mapping for a device stays: that of the built-in region, if it was used. */
		if (!strcmp(name, "live_mappings") && live.counters[i].value == 1)
			continue;
		EXPECT_EQ(one, live.counters[i].value) {
			TH_LOG("%s", name);
		}
	}
	EXPECT_EQ(0, baseline_command("rdma resource show qp | grep -q kxfer && exit 1; exit 0"));
	EXPECT_EQ(0, baseline_command("rdma resource show cq | grep -q kxfer && exit 1; exit 0"));
}

TEST_F(idle, link_is_taken_again_while_it_is_up)
{
	struct rig_options options = { .length = 65536 };
	uint64_t made = 0;
	int i;

	for (i = 0; i < 20; i++) {
		rig_close(&self->rig);
		ASSERT_EQ(0, rig_open(&self->rig, &options));
		ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 65536));
		/* A link is counted a little after it can be used. */
		if (!i)
			made = kx_counter(self->fd, "links_made");
	}
	EXPECT_EQ(made, kx_counter(self->fd, "links_made"));
}

TEST_F(idle, sessions_share_one_link)
{
	uint64_t links = kx_counter(self->fd, "live_links");
	struct rig rigs[8];
	int i;

	for (i = 0; i < 8; i++) {
		rigs[i] = self->rig;
		ASSERT_EQ(0, rig_open_client(&rigs[i]));
		EXPECT_EQ(self->rig.link, rigs[i].link);
		EXPECT_EQ(0, rig_move(&rigs[i], KXFER_OP_READ, 0, 0, 65536));
	}
	EXPECT_EQ(links, kx_counter(self->fd, "live_links"));
	for (i = 0; i < 8; i++) {
		close(rigs[i].client);
		buffer_free(&rigs[i].here);
	}
}

TEST_HARNESS_MAIN
