// SPDX-License-Identifier: GPL-2.0
/* LISTEN_ADD and LISTEN_DEL: addresses, rights, and the owner of a listener. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define PORT	7655

FIXTURE(listener)
{
	int fd;
	uint64_t id;
};

FIXTURE_SETUP(listener)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(listener)
{
	close(self->fd);
}

/* Finds the record of a listener by id. */
static bool find(int fd, uint64_t id, struct kxfer_info_listener *info)
{
	uint64_t cursor = 0;

	while (kx_info(fd, KXFER_INFO_LISTENERS, info, sizeof(*info), 1, &cursor) == 1)
		if (info->id == id)
			return true;
	return false;
}

TEST_F(listener, is_shown_with_its_device)
{
	struct kxfer_info_listener info;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	ASSERT_TRUE(find(self->fd, self->id, &info));
	EXPECT_EQ(PORT, info.addr.port);
	EXPECT_EQ(1, info.active);
	EXPECT_EQ(0, info.flags);
	EXPECT_STREQ(kx_device(), (char *)info.device);
}

TEST_F(listener, has_a_port_of_its_own_accord)
{
	struct kxfer_info_listener info;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), 0), 0, &self->id);
	ASSERT_TRUE(find(self->fd, self->id, &info));
	EXPECT_EQ(KXFER_PORT, info.addr.port);
}

static int add(int fd, uint32_t silence_ms, uint32_t ack_timeout, uint64_t *id)
{
	struct kxfer_listen_add cmd = {
		.size = sizeof(cmd),
		.addr = kx_addr(kx_address(), PORT),
		.silence_ms = silence_ms,
		.ack_timeout = ack_timeout,
	};
	int ret = kx_call(fd, KXFER_LISTEN_ADD, &cmd);

	*id = cmd.listener;
	return ret;
}

TEST_F(listener, shows_its_patience)
{
	struct kxfer_info_listener info;

	ASSERT_EQ(0, add(self->fd, 0, 0, &self->id));
	ASSERT_TRUE(find(self->fd, self->id, &info));
	EXPECT_EQ(8000, info.silence_ms);
	EXPECT_EQ(17, info.ack_timeout);
	ASSERT_EQ(0, kx_listen_del(self->fd, self->id));
	ASSERT_EQ(0, add(self->fd, KXFER_SILENCE_MAX_MS, KXFER_ACK_TIMEOUT_MIN, &self->id));
	ASSERT_TRUE(find(self->fd, self->id, &info));
	EXPECT_EQ(KXFER_SILENCE_MAX_MS, info.silence_ms);
	EXPECT_EQ(KXFER_ACK_TIMEOUT_MIN, info.ack_timeout);
}

TEST_F(listener, refuses_a_patience_out_of_range)
{
	EXPECT_EQ(-EINVAL, add(self->fd, KXFER_SILENCE_MIN_MS - 1, 0, &self->id));
	EXPECT_EQ(-EINVAL, add(self->fd, KXFER_SILENCE_MAX_MS + 1, 0, &self->id));
	EXPECT_EQ(-EINVAL, add(self->fd, 0, KXFER_ACK_TIMEOUT_MIN - 1, &self->id));
	EXPECT_EQ(-EINVAL, add(self->fd, 0, KXFER_ACK_TIMEOUT_MAX + 1, &self->id));
}

TEST_F(listener, takes_IPv6)
{
	test_cmd_listen_add(self->fd, kx_addr(kx_address6(), PORT), 0, &self->id);
}

TEST_F(listener, takes_any_address)
{
	struct kxfer_info_listener info;

	test_cmd_listen_add(self->fd, kx_addr("0.0.0.0", PORT), 0, &self->id);
	ASSERT_TRUE(find(self->fd, self->id, &info));
	EXPECT_STREQ("", (char *)info.device);
	test_cmd_listen_add(self->fd, kx_addr("::", PORT), 0, &self->id);
}

TEST_F(listener, refuses_an_address_in_use)
{
	uint64_t other;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	test_err_listen_add(EADDRINUSE, self->fd, kx_addr(kx_address(), PORT), 0, &other);
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT + 1), 0, &other);
}

TEST_F(listener, refuses_what_a_wildcard_takes_and_a_wildcard_over_it)
{
	uint64_t other;

	test_cmd_listen_add(self->fd, kx_addr("0.0.0.0", PORT), 0, &self->id);
	test_err_listen_add(EADDRINUSE, self->fd, kx_addr(kx_address(), PORT), 0, &other);
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT + 1), 0, &other);
	test_err_listen_add(EADDRINUSE, self->fd, kx_addr("0.0.0.0", PORT + 1), 0, &other);
	test_cmd_listen_add(self->fd, kx_addr("::", PORT + 1), 0, &other);
}

TEST_F(listener, refuses_an_address_of_another_node)
{
	test_err_listen_add(EADDRNOTAVAIL, self->fd, kx_addr("10.77.0.99", PORT), 0,
			    &self->id);
	test_err_listen_add(EADDRNOTAVAIL, self->fd, kx_addr("fd77::99", PORT), 0,
			    &self->id);
}

TEST_F(listener, refuses_an_address_without_a_device)
{
	ASSERT_EQ(0, system("ip link add lonely type dummy && ip link set lonely up && "
			    "ip addr add 192.0.2.1/24 dev lonely"));
	EXPECT_EQ(-EADDRNOTAVAIL, kx_listen_add(self->fd, kx_addr("192.0.2.1", PORT), 0,
						&self->id));
	ASSERT_EQ(0, system("ip link del lonely"));
}

TEST_F(listener, refuses_malformed_addresses)
{
	struct kxfer_addr none = { .family = 0 }, unix_domain = { .family = 1 };
	struct kxfer_addr stray = kx_addr(kx_address(), PORT);
	struct kxfer_addr scope = kx_addr(kx_address(), PORT);

	stray.addr[4] = 1;
	scope.scope_id = 1;
	test_err_listen_add(EINVAL, self->fd, none, 0, &self->id);
	test_err_listen_add(EINVAL, self->fd, unix_domain, 0, &self->id);
	test_err_listen_add(EINVAL, self->fd, stray, 0, &self->id);
	test_err_listen_add(EINVAL, self->fd, scope, 0, &self->id);
}

TEST_F(listener, needs_a_capability)
{
	ASSERT_EQ(0, kx_become_tester());
	test_err_listen_add(EPERM, self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	test_err_listen_add(EPERM, self->fd, kx_addr(kx_address(), PORT),
			    KXFER_LISTEN_F_KEEP, &self->id);
}

TEST_F(listener, is_deleted_with_a_capability_only)
{
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	ASSERT_EQ(0, kx_become_tester());
	test_err_listen_del(EPERM, self->fd, self->id);
}

TEST_F(listener, is_deleted_once)
{
	test_err_listen_del(ENOENT, self->fd, 0);
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	test_cmd_listen_del(self->fd, self->id);
	test_err_listen_del(ENOENT, self->fd, self->id);
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
}

TEST_F(listener, may_be_deleted_by_another_session)
{
	int other = kx_open();

	ASSERT_LE(0, other);
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	test_cmd_listen_del(other, self->id);
	close(other);
}

TEST_F(listener, ends_with_its_session)
{
	struct kxfer_info_listener info;
	int other = kx_open();

	ASSERT_LE(0, other);
	test_cmd_listen_add(other, kx_addr(kx_address(), PORT), 0, &self->id);
	close(other);
	EXPECT_FALSE(find(self->fd, self->id, &info));
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
}

TEST_F(listener, that_is_kept_outlives_its_session)
{
	struct kxfer_info_listener info;
	int other = kx_open();
	uint32_t peer;

	ASSERT_LE(0, other);
	test_cmd_listen_add(other, kx_addr(kx_address(), PORT), KXFER_LISTEN_F_KEEP,
			    &self->id);
	close(other);
	EXPECT_TRUE(find(self->fd, self->id, &info));
	EXPECT_EQ(KXFER_LISTEN_F_KEEP, info.flags);
	EXPECT_EQ(0, kx_peer_open(self->fd, kx_addr(kx_address(), PORT), &peer));
	test_cmd_listen_del(self->fd, self->id);
}

TEST_F(listener, leaves_its_links_when_deleted)
{
	uint32_t peer, target;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT), 0, &self->id);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), PORT), &peer);
	test_cmd_listen_del(self->fd, self->id);
	test_cmd_target_open(self->fd, peer, KXFER_PING_NAME, 0, &target);
}

TEST_F(listener, counts_links_accepted)
{
	struct kxfer_info_listener info;
	uint32_t peer;

	/* A separate port, because a link to another port would be shared. */
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), PORT + 2), 0, &self->id);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), PORT + 2), &peer);
	ASSERT_TRUE(find(self->fd, self->id, &info));
	EXPECT_LE(1, info.nr_accepted);
	EXPECT_EQ(0, info.nr_refused);
}

TEST_F(listener, beyond_the_number_allowed_is_refused)
{
	struct kxfer_query query;
	uint32_t i = 0;
	int ret = 0;

	test_cmd_query(self->fd, &query);
	while (!ret && i <= query.max_listeners)
		ret = kx_listen_add(self->fd, kx_addr(kx_address(), 20000 + i++), 0,
				    &self->id);
	EXPECT_EQ(-EDQUOT, ret);
	EXPECT_EQ(query.max_listeners, kx_counter(self->fd, "live_listeners"));
}

/* tests/guest/netns has more of them. */
TEST_F(listener, needs_a_key_and_a_session_in_another_network_namespace)
{
	int inside;

	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	inside = kx_open();
	ASSERT_LE(0, inside);
	test_err_listen_add(EACCES, inside, kx_addr("127.0.0.1", PORT), 0, &self->id);
	test_err_listen_add(EACCES, inside, kx_addr("127.0.0.1", PORT), KXFER_LISTEN_F_ANY_PORT,
			    &self->id);
	test_err_listen_add(EOPNOTSUPP, inside, kx_addr("127.0.0.1", PORT),
			    KXFER_LISTEN_F_KEEP, &self->id);
	close(inside);
}

TEST_HARNESS_MAIN
