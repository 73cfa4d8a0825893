// SPDX-License-Identifier: GPL-2.0
/* Rights and rules of exports: which peers get in, with which rights, and which users see what. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define LENGTH	4096UL
#define TESTER	KX_TESTER
#define OTHER	1001
#define GROUP	104

FIXTURE(rules)
{
	int server;
	uint32_t region;
	uint64_t listener, listener6;
	uint32_t export_id;
	void *memory;
};

FIXTURE_SETUP(rules)
{
	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	self->server = kx_open();
	ASSERT_LE(0, self->server);
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	test_cmd_listen_add(self->server, kx_addr(kx_address(), 0), 0, &self->listener);
	test_cmd_listen_add(self->server, kx_addr(kx_address6(), 0), 0, &self->listener6);
	test_cmd_region_add(self->server, self->memory, LENGTH, KXFER_REGION_F_WRITE,
			    &self->region);
}

FIXTURE_TEARDOWN(rules)
{
	close(self->server);
	chmod(KX_NODE, 0600);
}

static int open_as(uint32_t uid, uint32_t gid)
{
	int fd;

	if (setegid(gid) || seteuid(uid))
		return -errno;
	fd = kx_open();
	if (seteuid(0) || setegid(0))
		return -errno;
	return fd;
}

/* Opens the export as a user and closes it. Return: granted rights, or -errno. */
static int rights_from(const char *address, uint32_t uid, uint32_t gid, uint32_t rights)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.rights = rights,
		.name = "ruled",
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int fd = open_as(uid, gid);
	int ret;

	if (fd < 0)
		return fd;
	ret = kx_peer_open(fd, kx_addr(address, 0), &cmd.peer);
	if (!ret)
		ret = kx_call(fd, KXFER_TARGET_OPEN, &cmd);
	close(fd);
	return ret ? ret : (int)cmd.granted;
}

static int rights_of(uint32_t uid, uint32_t gid)
{
	return rights_from(kx_address(), uid, gid, 0);
}

static int export_with(int server, uint32_t region, const struct kxfer_rule *rules,
		       uint32_t nr, uint32_t *id)
{
	return kx_export_add_rules(server, region, 0, LENGTH, KXFER_RIGHT_ALL, "ruled",
				   rules, nr, id);
}

#define EXPORT(...) ({								\
	const struct kxfer_rule rules[] = { __VA_ARGS__ };			\
										\
	ASSERT_EQ(0, export_with(self->server, self->region, rules,		\
				 sizeof(rules) / sizeof(*rules), &self->export_id)); \
})

#define REFUSED	(-EACCES)
#define READ	((int)KXFER_RIGHT_READ)
#define WRITE	((int)KXFER_RIGHT_WRITE)
/* all rights that the device has */
#define ALL	((int)(kx_has_atomics() ? KXFER_RIGHT_ALL : KXFER_RIGHT_READ | KXFER_RIGHT_WRITE))

/* ---- rights ---- */

TEST_F(rules, none_let_everybody_in)
{
	ASSERT_EQ(0, export_with(self->server, self->region, NULL, 0, &self->export_id));
	EXPECT_EQ(ALL, rights_of(0, 0));
	EXPECT_EQ(ALL, rights_of(TESTER, TESTER));
	EXPECT_EQ(ALL, rights_of(OTHER, OTHER));
}

TEST_F(rules, none_keep_a_read_only_export_read_only)
{
	uint32_t peer, target, region;
	int fd = kx_open();

	ASSERT_LE(0, fd);
	test_cmd_export_add(self->server, self->region, 0, LENGTH, KXFER_RIGHT_READ,
			    "frozen", &self->export_id);
	test_cmd_region_add(fd, self->memory, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	test_err_target_open(EACCES, fd, peer, "frozen", KXFER_RIGHT_WRITE, &target);
	test_err_target_open(EACCES, fd, peer, "frozen", KXFER_RIGHT_ALL, &target);
	test_cmd_target_open(fd, peer, "frozen", 0, &target);
	test_err_transfer(EACCES, fd, KXFER_OP_WRITE, region, 0, target, 0, 1);
	test_err_notify(EACCES, fd, target, 1);
	test_cmd_transfer(fd, KXFER_OP_READ, region, 0, target, 0, LENGTH);
	close(fd);
}

TEST_F(rules, none_keep_a_write_only_export_write_only)
{
	uint32_t peer, target, region;
	int fd = kx_open();

	ASSERT_LE(0, fd);
	test_cmd_export_add(self->server, self->region, 0, LENGTH, KXFER_RIGHT_WRITE,
			    "inbox", &self->export_id);
	test_cmd_region_add(fd, self->memory, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	test_err_target_open(EACCES, fd, peer, "inbox", KXFER_RIGHT_READ, &target);
	test_cmd_target_open(fd, peer, "inbox", 0, &target);
	test_err_transfer(EACCES, fd, KXFER_OP_READ, region, 0, target, 0, 1);
	test_cmd_transfer(fd, KXFER_OP_WRITE, region, 0, target, 0, LENGTH);
	close(fd);
}

TEST_F(rules, give_fewer_rights_than_the_export_has)
{
	EXPORT({ .rights = KXFER_RIGHT_READ });
	EXPECT_EQ(READ, rights_of(TESTER, TESTER));
	EXPECT_EQ(READ, rights_from(kx_address(), TESTER, TESTER, KXFER_RIGHT_READ));
	EXPECT_EQ(REFUSED, rights_from(kx_address(), TESTER, TESTER, KXFER_RIGHT_WRITE));
	EXPECT_EQ(REFUSED, rights_from(kx_address(), TESTER, TESTER, KXFER_RIGHT_ALL));
}

TEST_F(rules, without_rights_refuse)
{
	EXPORT({ .rights = 0 });
	EXPECT_EQ(REFUSED, rights_of(0, 0));
	EXPECT_EQ(REFUSED, rights_of(TESTER, TESTER));
}

/* ---- users and groups ---- */

TEST_F(rules, by_uid)
{
	EXPORT({ .match = KXFER_RULE_UID, .uid = TESTER, .rights = KXFER_RIGHT_ALL });
	EXPECT_EQ(ALL, rights_of(TESTER, TESTER));
	EXPECT_EQ(REFUSED, rights_of(OTHER, OTHER));
	EXPECT_EQ(REFUSED, rights_of(OTHER, TESTER));
	EXPECT_EQ(REFUSED, rights_of(0, 0));
}

TEST_F(rules, by_uid_know_root_too)
{
	EXPORT({ .match = KXFER_RULE_UID, .uid = 0, .rights = KXFER_RIGHT_ALL });
	EXPECT_EQ(ALL, rights_of(0, 0));
	EXPECT_EQ(REFUSED, rights_of(TESTER, TESTER));
}

TEST_F(rules, by_gid)
{
	EXPORT({ .match = KXFER_RULE_GID, .gid = GROUP, .rights = KXFER_RIGHT_ALL });
	EXPECT_EQ(ALL, rights_of(TESTER, GROUP));
	EXPECT_EQ(ALL, rights_of(OTHER, GROUP));
	EXPECT_EQ(REFUSED, rights_of(TESTER, TESTER));
	EXPECT_EQ(REFUSED, rights_of(0, 0));
}

TEST_F(rules, with_two_conditions_need_both)
{
	EXPORT({ .match = KXFER_RULE_UID | KXFER_RULE_GID, .uid = TESTER, .gid = GROUP,
	       .rights = KXFER_RIGHT_ALL });
	EXPECT_EQ(ALL, rights_of(TESTER, GROUP));
	EXPECT_EQ(REFUSED, rights_of(TESTER, TESTER));
	EXPECT_EQ(REFUSED, rights_of(OTHER, GROUP));
}

TEST_F(rules, decide_by_the_first_that_matches)
{
	EXPORT({ .match = KXFER_RULE_UID, .uid = TESTER, .rights = 0 },
	       { .match = KXFER_RULE_UID, .uid = OTHER, .rights = KXFER_RIGHT_READ },
	       { .rights = KXFER_RIGHT_ALL },
	       { .match = KXFER_RULE_UID, .uid = OTHER, .rights = 0 });
	EXPECT_EQ(REFUSED, rights_of(TESTER, TESTER));
	EXPECT_EQ(READ, rights_of(OTHER, OTHER));
	EXPECT_EQ(ALL, rights_of(0, 0));
}

TEST_F(rules, in_another_order_decide_otherwise)
{
	EXPORT({ .rights = KXFER_RIGHT_WRITE },
	       { .match = KXFER_RULE_UID, .uid = TESTER, .rights = 0 });
	EXPECT_EQ(WRITE, rights_of(TESTER, TESTER));
}

TEST_F(rules, that_do_not_match_refuse)
{
	EXPORT({ .match = KXFER_RULE_UID, .uid = 4711, .rights = KXFER_RIGHT_ALL },
	       { .match = KXFER_RULE_GID, .gid = 4711, .rights = KXFER_RIGHT_ALL });
	EXPECT_EQ(REFUSED, rights_of(0, 0));
	EXPECT_EQ(REFUSED, rights_of(TESTER, TESTER));
}

/* ---- mailboxes ---- */

TEST_F(rules, of_a_mailbox_say_who_may_send)
{
	const struct kxfer_rule rules[] = {
		{ .match = KXFER_RULE_UID, .uid = TESTER, .rights = KXFER_RIGHT_SEND },
		{ .match = KXFER_RULE_UID, .uid = OTHER, .rights = 0 },
		{ .match = KXFER_RULE_GID, .gid = GROUP, .rights = KXFER_RIGHT_SEND },
	};

	ASSERT_EQ(0, kx_mailbox_add_rules(self->server, "ruled", 1, 1, rules, 3,
					  &self->export_id));
	EXPECT_EQ((int)KXFER_RIGHT_SEND, rights_of(TESTER, TESTER));
	EXPECT_EQ((int)KXFER_RIGHT_SEND, rights_of(4711, GROUP));
	EXPECT_EQ(REFUSED, rights_of(OTHER, GROUP));
	EXPECT_EQ(REFUSED, rights_of(0, 0));
	EXPECT_EQ((int)KXFER_RIGHT_SEND,
		  rights_from(kx_address(), TESTER, TESTER, KXFER_RIGHT_SEND));
	EXPECT_EQ(REFUSED, rights_from(kx_address(), TESTER, TESTER, KXFER_RIGHT_WRITE));
}

/* ---- addresses ---- */

static int rights_in(int server, uint32_t region, const char *network, uint32_t prefix_len,
		     const char *from)
{
	struct kxfer_rule rule = {
		.match = KXFER_RULE_ADDR,
		.rights = KXFER_RIGHT_ALL,
		.prefix_len = prefix_len,
		.addr = kx_addr(network, 0),
	};
	uint32_t id;
	int ret = export_with(server, region, &rule, 1, &id);

	if (ret)
		return ret;
	ret = rights_from(from, 0, 0, 0);
	kx_export_del(server, id);
	return ret;
}

#define EXPECT_IN(network, prefix_len, from) \
	EXPECT_EQ(ALL, rights_in(self->server, self->region, network, prefix_len, from))
#define EXPECT_OUT(network, prefix_len, from) \
	EXPECT_EQ(REFUSED, rights_in(self->server, self->region, network, prefix_len, from))

TEST_F(rules, by_address)
{
	EXPECT_IN("10.77.0.1", 32, "10.77.0.1");
	EXPECT_OUT("10.77.0.2", 32, "10.77.0.1");
	EXPECT_OUT("10.77.1.1", 32, "10.77.0.1");
}

TEST_F(rules, by_network_of_whole_bytes)
{
	EXPECT_IN("10.77.0.0", 24, "10.77.0.1");
	EXPECT_IN("10.0.0.0", 8, "10.77.0.1");
	EXPECT_OUT("10.77.1.0", 24, "10.77.0.1");
	EXPECT_OUT("11.0.0.0", 8, "10.77.0.1");
}

TEST_F(rules, by_network_of_odd_bits)
{
	EXPECT_IN("10.77.0.0", 31, "10.77.0.1");
	EXPECT_OUT("10.77.0.2", 31, "10.77.0.1");
	EXPECT_IN("10.77.0.0", 25, "10.77.0.1");
	EXPECT_OUT("10.77.0.128", 25, "10.77.0.1");
	EXPECT_IN("10.64.0.0", 11, "10.77.0.1");
	EXPECT_OUT("10.32.0.0", 11, "10.77.0.1");
	EXPECT_OUT("138.77.0.1", 1, "10.77.0.1");
}

TEST_F(rules, by_network_of_no_bits_match_the_family)
{
	EXPECT_IN("0.0.0.0", 0, "10.77.0.1");
	EXPECT_IN("::", 0, "fd77::1");
	EXPECT_OUT("::", 0, "10.77.0.1");
	EXPECT_OUT("0.0.0.0", 0, "fd77::1");
}

TEST_F(rules, by_IPv6_network)
{
	EXPECT_IN("fd77::1", 128, "fd77::1");
	EXPECT_OUT("fd77::2", 128, "fd77::1");
	EXPECT_IN("fd77::", 64, "fd77::1");
	EXPECT_OUT("fd78::", 64, "fd77::1");
	EXPECT_IN("fd77::", 127, "fd77::1");
	EXPECT_OUT("fd77::2", 127, "fd77::1");
}

/* ---- listing ---- */

/* Finds an export in the list of a user. Return: its rights, or -ENOENT. */
static int listed_to(uint32_t uid, uint32_t gid, const char *name)
{
	struct kxfer_peer_export exports[16];
	int fd = open_as(uid, gid), ret, i, rights = -ENOENT;
	uint64_t cursor = 0;
	uint32_t peer;

	if (fd < 0)
		return fd;
	ret = kx_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	while (!ret && (ret = kx_peer_list(fd, peer, exports, 16, &cursor)) > 0) {
		for (i = 0; i < ret; i++)
			if (!strcmp((char *)exports[i].name, name))
				rights = exports[i].rights;
		ret = 0;
	}
	close(fd);
	return ret ? ret : rights;
}

TEST_F(rules, hide_from_the_list_what_they_refuse)
{
	EXPORT({ .match = KXFER_RULE_UID, .uid = TESTER, .rights = KXFER_RIGHT_READ },
	       { .match = KXFER_RULE_GID, .gid = GROUP, .rights = KXFER_RIGHT_ALL });
	EXPECT_EQ(READ, listed_to(TESTER, TESTER, "ruled"));
	EXPECT_EQ(ALL, listed_to(OTHER, GROUP, "ruled"));
	EXPECT_EQ(-ENOENT, listed_to(OTHER, OTHER, "ruled"));
	EXPECT_EQ(-ENOENT, listed_to(0, 0, "ruled"));
}

TEST_F(rules, do_not_list_the_builtin_export)
{
	EXPECT_EQ(-ENOENT, listed_to(0, 0, KXFER_PING_NAME));
}

TEST_HARNESS_MAIN
