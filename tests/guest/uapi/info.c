// SPDX-License-Identifier: GPL-2.0
/* INFO: kinds, cursors, strides, and which users see which members. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define LENGTH	8192UL

FIXTURE(info)
{
	struct kx_pair pair;
	int fd;
	struct kxfer_info cmd;
	struct kxfer_info_counter counters[128];
};

FIXTURE_SETUP(info)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->fd = self->pair.client;
	self->cmd = (struct kxfer_info) {
		.size = sizeof(self->cmd),
		.kind = KXFER_INFO_COUNTERS,
		.stride = sizeof(self->counters[0]),
		.records = (uintptr_t)self->counters,
		.nr = 128,
	};
}

FIXTURE_TEARDOWN(info)
{
	kx_pair_close(&self->pair);
}

TEST_F(info, refuses_an_unknown_kind)
{
	self->cmd.kind = 0;
	EXPECT_EQ(-EOPNOTSUPP, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.kind = KXFER_INFO_LATENCIES + 1;
	EXPECT_EQ(-EOPNOTSUPP, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.kind = UINT32_MAX;
	EXPECT_EQ(-EOPNOTSUPP, kx_call(self->fd, KXFER_INFO, &self->cmd));
}

TEST_F(info, needs_a_stride_in_range)
{
	self->cmd.nr = 1;
	self->cmd.stride = 7;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.stride = 4097;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.stride = 8;
	EXPECT_EQ(0, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.stride = 4096;
	EXPECT_EQ(0, kx_call(self->fd, KXFER_INFO, &self->cmd));
}

TEST_F(info, needs_room_in_range)
{
	self->cmd.nr = 0;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.nr = 1025;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_INFO, &self->cmd));
}

TEST_F(info, that_cannot_be_stored_fails)
{
	self->cmd.records = 8;
	EXPECT_EQ(-EFAULT, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.records = (uintptr_t)kx_before_hole(sizeof(self->counters[0]));
	EXPECT_EQ(-EFAULT, kx_call(self->fd, KXFER_INFO, &self->cmd));
	self->cmd.nr = 1;
	EXPECT_EQ(0, kx_call(self->fd, KXFER_INFO, &self->cmd));
}

TEST_F(info, goes_on_behind_its_cursor)
{
	uint64_t cursor = 0, last = 0;
	uint32_t nr = 0;

	while (nr < 128 && kx_info(self->fd, KXFER_INFO_COUNTERS, self->counters,
				   sizeof(self->counters[0]), 1, &cursor) == 1) {
		EXPECT_LT(last, self->counters[0].id);
		last = self->counters[0].id;
		nr++;
	}
	EXPECT_LT(20, nr);
	EXPECT_GT(128, nr);
	ASSERT_EQ(0, kx_call(self->fd, KXFER_INFO, &self->cmd));
	EXPECT_EQ(nr, self->cmd.nr);
}

TEST_F(info, leaves_its_cursor_at_the_end)
{
	uint64_t cursor = 0, before;

	ASSERT_LT(0, kx_info(self->fd, KXFER_INFO_COUNTERS, self->counters,
			     sizeof(self->counters[0]), 128, &cursor));
	before = cursor;
	test_cmd_info(0, self->fd, KXFER_INFO_COUNTERS, self->counters,
		      sizeof(self->counters[0]), 128, &cursor);
	EXPECT_EQ(before, cursor);
	cursor = UINT64_MAX;
	test_cmd_info(0, self->fd, KXFER_INFO_COUNTERS, self->counters,
		      sizeof(self->counters[0]), 128, &cursor);
	EXPECT_EQ(UINT64_MAX, cursor);
}

TEST_F(info, cuts_records_to_the_stride)
{
	uint64_t ids[128], cursor = 0;
	int nr = kx_info(self->fd, KXFER_INFO_COUNTERS, ids, 8, 128, &cursor), i;

	ASSERT_LT(20, nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(i + 1, ids[i]);
}

TEST_F(info, fills_records_up_to_the_stride_with_zeros)
{
	struct { struct kxfer_info_counter counter; uint8_t tail[64]; } wide[2], zero = { 0 };
	uint64_t cursor = 0;

	memset(wide, 0xff, sizeof(wide));
	test_cmd_info(2, self->fd, KXFER_INFO_COUNTERS, wide, sizeof(wide[0]), 2, &cursor);
	EXPECT_EQ(1, wide[0].counter.id);
	EXPECT_EQ(2, wide[1].counter.id);
	EXPECT_EQ(0, memcmp(wide[0].tail, zero.tail, 64));
	EXPECT_EQ(0, memcmp(wide[1].tail, zero.tail, 64));
}

TEST_F(info, shows_the_device)
{
	struct kxfer_info_device device;
	uint64_t cursor = 0;
	uint32_t kind;

	test_cmd_info(1, self->fd, KXFER_INFO_DEVICES, &device, sizeof(device), 1, &cursor);
	EXPECT_STREQ(kx_device(), (char *)device.name);
	kind = strcmp(kx_provider(), "siw") ? KXFER_DEVICE_ROCE : KXFER_DEVICE_IWARP;
	if (!kx_maps_dma())
		kind |= KXFER_DEVICE_VIRT_DMA;
	EXPECT_EQ(kind | KXFER_DEVICE_USABLE,
		  device.flags & ~KXFER_DEVICE_ATOMIC);
	EXPECT_EQ(1, device.nr_ports);
	EXPECT_LE(2, device.nr_links);
	EXPECT_LE(1, device.nr_mappings);
	EXPECT_LT(0, device.max_msg_bytes);
	test_cmd_info(0, self->fd, KXFER_INFO_DEVICES, &device, sizeof(device), 1, &cursor);
}

/* One lane for bulk, and for small jobs one per CPU, by default up to three. */
static uint32_t nr_lanes(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return 1 + (cpus < 3 ? cpus : 3);
}

TEST_F(info, shows_both_ends_of_a_link)
{
	struct kxfer_info_link links[256];
	uint64_t cursor = 0;
	int nr = kx_info(self->fd, KXFER_INFO_LINKS, links, sizeof(links[0]), 256, &cursor), i;
	int initiators = 0, accepted = 0;

	ASSERT_LE(2, nr);
	for (i = 0; i < nr; i++) {
		if (links[i].state != KXFER_LINK_LIVE || !links[i].nr_grants)
			continue;
		if (links[i].flags & KXFER_LINK_INITIATOR) {
			initiators++;
			EXPECT_EQ(KXFER_PORT, links[i].remote.port);
			EXPECT_LE(1, links[i].nr_sessions);
		} else {
			accepted++;
			EXPECT_GT(1024, links[i].remote.port);
		}
		EXPECT_EQ(nr_lanes(), links[i].nr_lanes);
		EXPECT_STREQ(kx_device(), (char *)links[i].device);
	}
	EXPECT_EQ(1, initiators);
	EXPECT_EQ(1, accepted);
}

TEST_F(info, counts_bytes_of_a_link)
{
	struct kxfer_info_link before = { 0 }, after = { 0 };
	uint64_t cursor = 0;
	int nr;

	while ((nr = kx_info(self->fd, KXFER_INFO_LINKS, &before, sizeof(before), 1,
			     &cursor)) == 1)
		if (before.flags & KXFER_LINK_INITIATOR && before.nr_grants &&
		    before.state == KXFER_LINK_LIVE)
			break;
	ASSERT_EQ(1, nr);
	test_cmd_transfer(self->fd, KXFER_OP_WRITE, self->pair.client_region, 0,
			  self->pair.target, 0, 1000);
	test_cmd_transfer(self->fd, KXFER_OP_READ, self->pair.client_region, 0,
			  self->pair.target, 0, 10);
	cursor = before.id - 1;
	test_cmd_info(1, self->fd, KXFER_INFO_LINKS, &after, sizeof(after), 1, &cursor);
	EXPECT_EQ(before.id, after.id);
	EXPECT_EQ(before.bytes_written + 1000, after.bytes_written);
	EXPECT_EQ(before.bytes_read + 10, after.bytes_read);
	EXPECT_EQ(0, after.nr_jobs);
}

static bool is_made_here(int fd, uint64_t id)
{
	uint64_t cursor = id - 1;
	struct kxfer_info_link link;

	return kx_info(fd, KXFER_INFO_LINKS, &link, sizeof(link), 1, &cursor) == 1 &&
	       link.id == id && link.flags & KXFER_LINK_INITIATOR;
}

TEST_F(info, shows_lanes_with_all_credits_when_idle)
{
	struct kxfer_info_lane lanes[256];
	uint64_t cursor = 0;
	int nr = kx_info(self->fd, KXFER_INFO_LANES, lanes, sizeof(lanes[0]), 256, &cursor), i;

	ASSERT_LE(4, nr);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(lanes[i].max_credits, lanes[i].credits);
		EXPECT_EQ(0, lanes[i].nr_queued);
		EXPECT_EQ(0, lanes[i].nr_posted);
		/*
		 * Only lanes that this node made have credits, because jobs belong to the
		 * initiator.
		 */
		EXPECT_EQ(lanes[i].index && is_made_here(self->fd, lanes[i].link),
			  lanes[i].max_credits > 0);
	}
}

/* The interface has an MTU of 9000 bytes. */
static uint32_t path_mtu(void)
{
	return strcmp(kx_provider(), "siw") ? 4096 : 0;
}

/* Both ends are of this module: its links have eager messages, but not on iWARP. */
static uint32_t link_messages(void)
{
	return strcmp(kx_provider(), "siw") ? KXFER_LINK_EAGER : 0;
}

/* Finds the newest link, because others may be left from earlier tests. */
static bool find_link(int fd, uint32_t flags, struct kxfer_info_link *link)
{
	struct kxfer_info_link links[256];
	uint64_t cursor = 0;
	int nr = kx_info(fd, KXFER_INFO_LINKS, links, sizeof(links[0]), 256, &cursor);

	while (nr-- > 0)
		if (links[nr].state == KXFER_LINK_LIVE && links[nr].nr_grants &&
		    (links[nr].flags & KXFER_LINK_INITIATOR) == flags) {
			*link = links[nr];
			return true;
		}
	return false;
}

TEST_F(info, tells_the_path_mtu_of_each_lane)
{
	struct kxfer_info_lane lanes[256];
	uint64_t cursor = 0;
	int nr = kx_info(self->fd, KXFER_INFO_LANES, lanes, sizeof(lanes[0]), 256, &cursor), i;

	ASSERT_LE(4, nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(path_mtu(), lanes[i].path_mtu);
}

/* Each end has its own silence and ack timeout; the initiator decides on the retries of both. */
TEST_F(info, tells_the_patience_of_both_ends_of_a_link)
{
	bool roce = strcmp(kx_provider(), "siw");
	struct kxfer_listen_add listen = {
		.size = sizeof(listen),
		.addr = kx_addr(kx_address(), 7656),
		.silence_ms = 20000,
	};
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = listen.addr,
		.timeout_ms = KX_TIMEOUT_MS,
		.silence_ms = 3000,
		.ack_timeout = 14,
		.retry_count = 5,
		.in_flight_kib = 9000,
	};
	struct kxfer_info_link link;
	uint64_t cursor;

	ASSERT_EQ(0, kx_call(self->fd, KXFER_LISTEN_ADD, &listen));
	ASSERT_EQ(0, kx_call(self->fd, KXFER_PEER_OPEN, &open));
	cursor = open.link - 1;
	test_cmd_info(1, self->fd, KXFER_INFO_LINKS, &link, sizeof(link), 1, &cursor);
	EXPECT_EQ(open.link, link.id);
	EXPECT_EQ(3000, link.silence_ms);
	EXPECT_EQ(roce ? 14 : 0, link.ack_timeout);
	EXPECT_EQ(roce ? 5 : 0, link.retry_count);
	EXPECT_EQ(9000, link.in_flight_kib);
	/* The other end was made while the first one connected. */
	test_cmd_info(1, self->fd, KXFER_INFO_LINKS, &link, sizeof(link), 1, &cursor);
	EXPECT_FALSE(link.flags & KXFER_LINK_INITIATOR);
	EXPECT_EQ(20000, link.silence_ms);
	EXPECT_EQ(roce ? 19 : 0, link.ack_timeout);
	EXPECT_EQ(roce ? 5 : 0, link.retry_count);
	EXPECT_EQ(0, link.in_flight_kib);
}

/* On this node both ends have the same address; on RoCE the GID contains it. */
TEST_F(info, tells_the_gids_of_a_link)
{
	static const uint32_t ends[] = { KXFER_LINK_INITIATOR, 0 };
	static const uint8_t none[KXFER_GID_SIZE];
	struct kxfer_info_link link;
	size_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(find_link(self->fd, ends[i], &link));
		if (!strcmp(kx_provider(), "siw")) {
			EXPECT_EQ(0, memcmp(none, link.sgid, sizeof(none)));
			EXPECT_EQ(0, memcmp(none, link.dgid, sizeof(none)));
			continue;
		}
		EXPECT_EQ(0, memcmp(link.local.addr, link.sgid + 12, 4));
		EXPECT_EQ(0, memcmp(link.remote.addr, link.dgid + 12, 4));
		EXPECT_EQ(2, link.gid_type);
	}
}

static bool find_session(int fd, int pid, struct kxfer_info_session *info)
{
	uint64_t cursor = 0;

	while (kx_info(fd, KXFER_INFO_SESSIONS, info, sizeof(*info), 1, &cursor) == 1)
		if ((int)info->pid == pid && info->nr_targets)
			return true;
	return false;
}

TEST_F(info, shows_what_a_session_has)
{
	struct kxfer_info_session info;
	struct kxfer_job nop = { .op = KXFER_OP_NOP };

	test_cmd_submit(1, self->fd, &nop, 1);
	ASSERT_TRUE(find_session(self->fd, getpid(), &info));
	EXPECT_EQ(0, info.uid);
	EXPECT_EQ(1, info.nr_regions);
	EXPECT_EQ(0, info.nr_exports);
	EXPECT_EQ(1, info.nr_peers);
	EXPECT_EQ(1, info.nr_targets);
	EXPECT_EQ(0, info.nr_jobs);
	EXPECT_EQ(1, info.nr_done);
	EXPECT_EQ(LENGTH, info.pinned_bytes);
}

/* ---- without CAP_NET_ADMIN ---- */

TEST_F(info, shows_a_user_its_own_session_only)
{
	struct kxfer_info_session sessions[64];
	uint64_t cursor = 0;

	ASSERT_EQ(0, kx_become_tester());
	test_cmd_info(1, self->fd, KXFER_INFO_SESSIONS, sessions, sizeof(sessions[0]), 64,
		      &cursor);
	EXPECT_EQ(1, sessions[0].nr_targets);
}

TEST_F(info, shows_a_user_its_own_exports_only)
{
	struct kxfer_info_export exports[64];
	uint64_t cursor = 0;

	ASSERT_EQ(0, kx_become_tester());
	test_cmd_info(0, self->pair.client, KXFER_INFO_EXPORTS, exports, sizeof(exports[0]),
		      64, &cursor);
	cursor = 0;
	test_cmd_info(1, self->pair.server, KXFER_INFO_EXPORTS, exports, sizeof(exports[0]),
		      64, &cursor);
	EXPECT_STREQ(self->pair.name, (char *)exports[0].name);
}

TEST_F(info, shows_a_user_its_own_links_and_lanes_only)
{
	struct kxfer_info_link links[256];
	struct kxfer_info_lane lanes[256];
	uint64_t cursor = 0;
	int i, nr;

	ASSERT_EQ(0, kx_become_tester());
	test_cmd_info(1, self->pair.client, KXFER_INFO_LINKS, links, sizeof(links[0]), 256,
		      &cursor);
	EXPECT_EQ(KXFER_LINK_INITIATOR | link_messages(), links[0].flags);
	cursor = 0;
	nr = kx_info(self->pair.client, KXFER_INFO_LANES, lanes, sizeof(lanes[0]), 256,
		     &cursor);
	/* The control QP and data lanes. */
	EXPECT_LE(2, nr);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(links[0].id, lanes[i].link);
		/*
		 * The control QP carries no WRITE; rxe and siw take as many inline bytes as
		 * asked for.
		 */
		EXPECT_EQ(lanes[i].index > 0, lanes[i].max_inline >= 64);
		EXPECT_EQ(!lanes[i].index, !lanes[i].max_inline);
	}
}

/* The other end of the same link, which all exporters of this node share. */
TEST_F(info, shows_an_exporter_no_more_of_a_link_than_its_own)
{
	static const uint8_t none[sizeof(((struct kxfer_info_link *)0)->key)];
	struct kxfer_info_link links[256];
	struct kxfer_info_lane lanes[256];
	uint64_t cursor = 0;

	ASSERT_EQ(0, kx_become_tester());
	test_cmd_info(1, self->pair.server, KXFER_INFO_LINKS, links, sizeof(links[0]), 256,
		      &cursor);
	EXPECT_EQ(link_messages(), links[0].flags);
	EXPECT_EQ(KXFER_LINK_LIVE, links[0].state);
	EXPECT_EQ(1, links[0].nr_grants);
	EXPECT_EQ(0, links[0].idle_ns);
	EXPECT_EQ(0, memcmp(none, links[0].key, sizeof(none)));
	cursor = 0;
	test_cmd_info(0, self->pair.server, KXFER_INFO_LANES, lanes, sizeof(lanes[0]), 256,
		      &cursor);
}

TEST_F(info, shows_anybody_devices_listeners_and_counters)
{
	struct kxfer_info_device device;
	struct kxfer_info_listener listener;
	uint64_t cursor = 0;

	ASSERT_EQ(0, kx_become_tester());
	test_cmd_info(1, self->fd, KXFER_INFO_DEVICES, &device, sizeof(device), 1, &cursor);
	cursor = 0;
	test_cmd_info(1, self->fd, KXFER_INFO_LISTENERS, &listener, sizeof(listener), 1,
		      &cursor);
	EXPECT_NE(UINT64_MAX, kx_counter(self->fd, "live_links"));
}

TEST_HARNESS_MAIN
