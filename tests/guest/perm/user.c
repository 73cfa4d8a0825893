// SPDX-License-Identifier: GPL-2.0
/* A user without rights: which users may open the node, and what they can do. */
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH	4096UL
#define GROUP	104	/* group rdma */

FIXTURE(user)
{
	int server;
	uint64_t listener;
	uint32_t region;
	uint32_t export_id;
	uint8_t *memory;
};

FIXTURE_SETUP(user)
{
	self->server = kx_open();
	ASSERT_LE(0, self->server);
	self->memory = kx_alloc(LENGTH);
	test_cmd_listen_add(self->server, kx_addr(kx_address(), 0), 0, &self->listener);
	test_cmd_region_add(self->server, self->memory, LENGTH, KXFER_REGION_F_WRITE,
			    &self->region);
	test_cmd_export_add(self->server, self->region, 0, LENGTH, KXFER_RIGHT_ALL, "user",
			    &self->export_id);
}

/* A privileged parent does this, because the tests end without privileges. */
static void restore_node(void)
{
	chmod(KX_NODE, 0600);
	if (chown(KX_NODE, 0, 0))
		perror(KX_NODE);
}

FIXTURE_TEARDOWN_PARENT(user)
{
	close(self->server);
	restore_node();
}

TEST_F(user, cannot_open_the_node_of_root)
{
	ASSERT_EQ(0, kx_become_tester());
	EXPECT_EQ(-EACCES, kx_open());
}

TEST_F(user, of_the_group_may_open_a_node_of_the_group)
{
	gid_t group = GROUP;

	ASSERT_EQ(0, chown(KX_NODE, 0, GROUP));
	ASSERT_EQ(0, chmod(KX_NODE, 0660));
	ASSERT_EQ(0, setgroups(1, &group));
	ASSERT_EQ(0, setresgid(KX_TESTER, KX_TESTER, KX_TESTER));
	ASSERT_EQ(0, setresuid(KX_TESTER, KX_TESTER, KX_TESTER));
	EXPECT_LE(0, kx_open());
}

TEST_F(user, of_no_group_cannot_open_a_node_of_the_group)
{
	ASSERT_EQ(0, chown(KX_NODE, 0, GROUP));
	ASSERT_EQ(0, chmod(KX_NODE, 0660));
	ASSERT_EQ(0, kx_become_tester());
	EXPECT_EQ(-EACCES, kx_open());
}

TEST_F(user, with_the_node_transfers)
{
	uint32_t peer, target, region;
	uint8_t *memory = kx_alloc(LENGTH);
	int fd;

	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	ASSERT_EQ(0, kx_become_tester());
	fd = kx_open();
	ASSERT_LE(0, fd);
	memset(memory, 0x77, LENGTH);
	test_cmd_region_add(fd, memory, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	test_cmd_target_open(fd, peer, "user", 0, &target);
	test_cmd_transfer(fd, KXFER_OP_WRITE, region, 0, target, 0, LENGTH);
	EXPECT_EQ(0, memcmp(memory, self->memory, LENGTH));
	test_cmd_transfer(fd, KXFER_OP_READ, region, 0, target, 0, LENGTH);
}

TEST_F(user, with_the_node_exports)
{
	uint8_t *memory = kx_alloc(LENGTH);
	uint32_t region, id;
	int fd;

	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	ASSERT_EQ(0, kx_become_tester());
	fd = kx_open();
	ASSERT_LE(0, fd);
	test_cmd_region_add(fd, memory, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_export_add(fd, region, 0, LENGTH, KXFER_RIGHT_ALL, "of-user", &id);
	test_err_export_add(EEXIST, fd, region, 0, LENGTH, KXFER_RIGHT_ALL, "user", &id);
}

static int list_links(int fd, struct kxfer_info_link *links, uint32_t nr)
{
	uint64_t cursor = 0;

	return kx_info(fd, KXFER_INFO_LINKS, links, sizeof(*links), nr, &cursor);
}

TEST_F(user, sees_the_links_of_all_its_sessions)
{
	struct kxfer_info_link links[4];
	struct kxfer_info_lane lanes[64];
	uint32_t peer, target;
	uint64_t cursor = 0;
	int fd, looker;

	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	ASSERT_EQ(0, kx_become_tester());
	fd = kx_open();
	looker = kx_open();
	ASSERT_TRUE(fd >= 0 && looker >= 0);
	EXPECT_EQ(0, list_links(looker, links, 4));
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	/* Only this end of the link: the export is root's. */
	test_cmd_target_open(fd, peer, "user", 0, &target);
	ASSERT_EQ(1, list_links(looker, links, 4));
	EXPECT_EQ(KXFER_LINK_INITIATOR, links[0].flags & ~KXFER_LINK_EAGER);
	EXPECT_LE(2, kx_info(looker, KXFER_INFO_LANES, lanes, sizeof(lanes[0]), 64, &cursor));
	EXPECT_EQ(links[0].id, lanes[0].link);
	/* The link stays for a while, but the user is no longer one of its users. */
	close(fd);
	EXPECT_EQ(0, list_links(looker, links, 4));
}

/* root holds an export of its own and one of the user over the same link. */
TEST_F(user, sees_of_an_accepted_link_what_its_own_exports_have)
{
	int client = kx_open(), fd, looker;
	struct kxfer_info_link links[4];
	uint32_t peer, target, region, id;

	ASSERT_LE(0, client);
	test_cmd_peer_open(client, kx_addr(kx_address(), 0), &peer);
	test_cmd_target_open(client, peer, "user", 0, &target);
	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	ASSERT_EQ(0, kx_become_tester());
	fd = kx_open();
	looker = kx_open();
	ASSERT_TRUE(fd >= 0 && looker >= 0);
	test_cmd_region_add(fd, kx_alloc(LENGTH), LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_export_add(fd, region, 0, LENGTH, KXFER_RIGHT_ALL, "of-user", &id);
	EXPECT_EQ(0, list_links(looker, links, 4));
	test_cmd_target_open(client, peer, "of-user", 0, &target);
	ASSERT_EQ(1, list_links(looker, links, 4));
	EXPECT_EQ(0, links[0].flags & ~KXFER_LINK_EAGER);
	EXPECT_EQ(1, links[0].nr_grants);
	EXPECT_EQ(0, links[0].idle_ns);
	test_cmd_target_open(client, peer, "of-user", KXFER_RIGHT_READ, &target);
	ASSERT_EQ(1, list_links(looker, links, 4));
	EXPECT_EQ(2, links[0].nr_grants);
}

TEST_F(user, with_the_node_does_not_listen)
{
	uint64_t listener;
	int fd;

	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	ASSERT_EQ(0, kx_become_tester());
	fd = kx_open();
	ASSERT_LE(0, fd);
	test_err_listen_add(EPERM, fd, kx_addr(kx_address(), 7777), 0, &listener);
	test_err_listen_add(EPERM, fd, kx_addr(kx_address(), 7777), KXFER_LISTEN_F_ANY_PORT,
			    &listener);
	test_err_listen_del(EPERM, fd, self->listener);
}

TEST_F(user, is_told_to_the_exporter)
{
	struct kxfer_event event;
	uint32_t peer, target;
	int fd;

	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	ASSERT_EQ(0, kx_become_tester());
	fd = kx_open();
	ASSERT_LE(0, fd);
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	test_cmd_target_open(fd, peer, "user", 0, &target);
	test_cmd_notify(fd, target, 5);
	test_cmd_event_reap(1, self->server, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(KX_TESTER, event.uid);
	EXPECT_EQ(KX_TESTER, event.gid);
}

TEST_F(user, is_who_opened_the_session)
{
	struct kxfer_event event;
	uint32_t peer, target;
	int fd = kx_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kx_become_tester());
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	test_cmd_target_open(fd, peer, "user", 0, &target);
	test_cmd_notify(fd, target, 5);
	test_cmd_event_reap(1, self->server, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, event.uid);
	EXPECT_EQ(0, event.gid);
}

/* This is the premise of trusting source ports below 1024. */
TEST_F(user, cannot_bind_a_reserved_port_itself)
{
	uint8_t cookie[KXFER_WIRE_COOKIE_SIZE] = { 1 };
	struct kxfer_wire_hello hello = raw_hello_data(KXFER_WIRE_CONTROL, cookie, 1);
	struct raw_lane lane;

	ASSERT_EQ(0, chmod("/dev/infiniband/rdma_cm", 0666));
	ASSERT_EQ(0, chmod("/dev/infiniband/uverbs0", 0666));
	ASSERT_EQ(0, kx_become_tester());
	EXPECT_EQ(-EACCES, raw_lane_connect(&lane, KXFER_PORT, 600, &hello, sizeof(hello),
					    NULL));
	EXPECT_EQ(0, lane.refusal);
	EXPECT_EQ(-ECONNREFUSED, raw_lane_connect(&lane, KXFER_PORT, 0, &hello,
						  sizeof(hello), NULL));
	EXPECT_EQ(KXFER_REFUSAL_PORT, lane.refusal);
}

TEST_HARNESS_MAIN
