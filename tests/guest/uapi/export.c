// SPDX-License-Identifier: GPL-2.0
/*
 * EXPORT_ADD, EXPORT_DEL and EXPORT_SET: names, ranges, rights, rules, content.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define PAGE	4096UL
#define LENGTH	(4 * PAGE)

FIXTURE(export)
{
	int fd;
	uint32_t region;	/* region that is writable */
	uint32_t frozen;	/* region that is not writable */
	uint32_t id;
	char *memory;
};

FIXTURE_SETUP(export)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	test_cmd_region_add(self->fd, self->memory, LENGTH, KXFER_REGION_F_WRITE,
			    &self->region);
	test_cmd_region_add(self->fd, self->memory, LENGTH, 0, &self->frozen);
}

FIXTURE_TEARDOWN(export)
{
	close(self->fd);
}

/* A valid call; tests change one member. */
static struct kxfer_export_add good(uint32_t region)
{
	struct kxfer_export_add cmd = {
		.size = sizeof(cmd),
		.region = region,
		.rights = KXFER_RIGHT_READ,
		.length = PAGE,
		.name = "good",
	};

	return cmd;
}

/* tests/guest/netns has what peers see of such names. */
TEST_F(export, has_a_name_in_its_network_namespace_only)
{
	uint32_t region;
	int inside;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	inside = kx_open();
	ASSERT_LE(0, inside);
	test_cmd_region_add(inside, self->memory, LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_export_add(inside, region, 0, PAGE, KXFER_RIGHT_READ, "inside", &self->id);
	test_err_export_add(EEXIST, inside, region, 0, PAGE, KXFER_RIGHT_READ, "inside",
			    &self->id);
	EXPECT_EQ(-EEXIST, kx_mailbox_add(inside, "inside", 1, 1, &self->id));
	EXPECT_EQ(0, kx_mailbox_add(inside, "post", 1, 1, &self->id));
	/* The file of the session counts, not the caller: this one was opened outside. */
	test_cmd_export_add(self->fd, self->region, 0, PAGE, KXFER_RIGHT_READ, "inside",
			    &self->id);
	EXPECT_EQ(0, kx_mailbox_add(self->fd, "post", 1, 1, &self->id));
	close(inside);
}

TEST_F(export, takes_every_character_of_names)
{
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ,
			    "abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJKLMNOPQRSTUVWXYZ",
			    &self->id);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "0123456789_-",
			    &self->id);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, ".", &self->id);
}

TEST_F(export, takes_a_name_of_63_bytes)
{
	char name[KXFER_NAME_MAX + 1] = "";

	memset(name, 'n', KXFER_NAME_MAX);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, name, &self->id);
}

TEST_F(export, refuses_a_name_without_end)
{
	struct kxfer_export_add cmd = good(self->region);

	memset(cmd.name, 'n', sizeof(cmd.name));
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
}

TEST_F(export, refuses_an_empty_name)
{
	test_err_export_add(EINVAL, self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "",
			    &self->id);
}

TEST_F(export, refuses_other_characters_in_names)
{
	static const char *const names[] = {
		"a b", "a/b", "@ping", "a\n", "a\x7f", "\xc3\xa4", "a*", "a:b", "[a]", "a\\b",
		"\xe4", "a\xfc", "\xff",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		test_err_export_add(EINVAL, self->fd, self->region, 0, 1, KXFER_RIGHT_READ,
				    names[i], &self->id);
}

TEST_F(export, refuses_bytes_behind_the_end_of_a_name)
{
	struct kxfer_export_add cmd = good(self->region);

	cmd.name[KXFER_NAME_MAX] = 'x';
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
}

TEST_F(export, refuses_a_name_that_is_taken)
{
	int other = kx_open();
	uint32_t region, id;

	ASSERT_LE(0, other);
	test_cmd_region_add(other, self->memory, PAGE, 0, &region);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "taken",
			    &self->id);
	test_err_export_add(EEXIST, self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "taken",
			    &id);
	test_err_export_add(EEXIST, other, region, 0, 1, KXFER_RIGHT_READ, "taken", &id);
	test_cmd_export_add(other, region, 0, 1, KXFER_RIGHT_READ, "Taken", &id);
	close(other);
}

TEST_F(export, frees_its_name_when_deleted)
{
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "again",
			    &self->id);
	test_cmd_export_del(self->fd, self->id);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "again",
			    &self->id);
}

TEST_F(export, frees_its_name_with_its_session)
{
	int other = kx_open();
	uint32_t region, id;

	ASSERT_LE(0, other);
	test_cmd_region_add(other, self->memory, PAGE, 0, &region);
	test_cmd_export_add(other, region, 0, 1, KXFER_RIGHT_READ, "passing", &id);
	close(other);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "passing",
			    &self->id);
}

TEST_F(export, that_failed_takes_no_name)
{
	test_err_export_add(ERANGE, self->fd, self->region, 0, LENGTH + 1, KXFER_RIGHT_READ,
			    "failed", &self->id);
	test_cmd_export_add(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_READ, "failed",
			    &self->id);
}

TEST_F(export, needs_a_right)
{
	test_err_export_add(EINVAL, self->fd, self->region, 0, 1, 0, "none", &self->id);
}

TEST_F(export, refuses_unknown_rights)
{
	test_err_export_add(EOPNOTSUPP, self->fd, self->region, 0, 1, 1U << 3, "unknown",
			    &self->id);
	test_err_export_add(EOPNOTSUPP, self->fd, self->region, 0, 1,
			    KXFER_RIGHT_READ | 1U << 31, "unknown", &self->id);
}

TEST_F(export, of_a_read_only_region_cannot_be_written)
{
	test_err_export_add(EACCES, self->fd, self->frozen, 0, 1, KXFER_RIGHT_WRITE,
			    "frozen", &self->id);
	test_err_export_add(EACCES, self->fd, self->frozen, 0, 1, KXFER_RIGHT_ATOMIC,
			    "frozen", &self->id);
	test_err_export_add(EACCES, self->fd, self->frozen, 0, 1, KXFER_RIGHT_ALL,
			    "frozen", &self->id);
	test_cmd_export_add(self->fd, self->frozen, 0, 1, KXFER_RIGHT_READ, "frozen",
			    &self->id);
}

TEST_F(export, needs_a_byte)
{
	test_err_export_add(EINVAL, self->fd, self->region, 0, 0, KXFER_RIGHT_READ, "empty",
			    &self->id);
}

TEST_F(export, stays_inside_its_region)
{
	test_err_export_add(ERANGE, self->fd, self->region, 1, LENGTH, KXFER_RIGHT_READ,
			    "outside", &self->id);
	test_err_export_add(ERANGE, self->fd, self->region, LENGTH, 1, KXFER_RIGHT_READ,
			    "outside", &self->id);
	test_cmd_export_add(self->fd, self->region, LENGTH - 1, 1, KXFER_RIGHT_READ,
			    "inside", &self->id);
}

TEST_F(export, refuses_a_range_that_wraps)
{
	test_err_export_add(EOVERFLOW, self->fd, self->region, UINT64_MAX, 2,
			    KXFER_RIGHT_READ, "wraps", &self->id);
	test_err_export_add(EOVERFLOW, self->fd, self->region, 2, UINT64_MAX,
			    KXFER_RIGHT_READ, "wraps", &self->id);
}

TEST_F(export, needs_a_region_of_its_session)
{
	int other = kx_open();

	ASSERT_LE(0, other);
	test_err_export_add(ENOENT, self->fd, 77, 0, 1, KXFER_RIGHT_READ, "x", &self->id);
	test_err_export_add(ENOENT, self->fd, 0, 0, 1, KXFER_RIGHT_READ, "x", &self->id);
	test_err_export_add(ENOENT, other, self->region, 0, 1, KXFER_RIGHT_READ, "x",
			    &self->id);
	close(other);
}

TEST_F(export, may_overlap_another)
{
	test_cmd_export_add(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_READ, "one",
			    &self->id);
	test_cmd_export_add(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_ALL, "two",
			    &self->id);
}

TEST_F(export, is_deleted_once_and_by_its_session)
{
	int other = kx_open();

	ASSERT_LE(0, other);
	test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "once",
			    &self->id);
	test_err_export_del(ENOENT, other, self->id);
	test_cmd_export_del(self->fd, self->id);
	test_err_export_del(ENOENT, self->fd, self->id);
	test_err_export_del(ENOENT, self->fd, 0);
	close(other);
}

TEST_F(export, beyond_the_number_allowed_is_refused)
{
	struct kxfer_query query;
	char name[KXFER_NAME_MAX + 1];
	uint32_t i;

	test_cmd_query(self->fd, &query);
	for (i = 0; i < query.max_exports; i++) {
		snprintf(name, sizeof(name), "many-%u", i);
		test_cmd_export_add(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, name,
				    &self->id);
	}
	test_err_export_add(EDQUOT, self->fd, self->region, 0, 1, KXFER_RIGHT_READ,
			    "one-too-many", &self->id);
}

/* ---- rules ---- */

static int add_rule(int fd, uint32_t region, const struct kxfer_rule *rule, uint32_t *id)
{
	return kx_export_add_rules(fd, region, 0, 1, KXFER_RIGHT_READ, "ruled", rule, 1, id);
}

TEST_F(export, takes_rules_of_every_kind)
{
	struct kxfer_rule rules[] = {
		{ .match = KXFER_RULE_ADDR, .rights = KXFER_RIGHT_READ, .prefix_len = 32,
		  .addr = kx_addr("10.77.0.1", 0) },
		{ .match = KXFER_RULE_ADDR, .rights = 0, .prefix_len = 128,
		  .addr = kx_addr("fd77::1", 0) },
		{ .match = KXFER_RULE_UID | KXFER_RULE_GID, .rights = KXFER_RIGHT_READ,
		  .uid = 1000, .gid = 1000 },
		{ .match = KXFER_RULE_ADDR, .prefix_len = 0, .addr = kx_addr("0.0.0.0", 0) },
		{ .match = 0, .rights = 0 },
	};

	test_cmd_export_add_rules(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "kinds",
				  rules, 5, &self->id);
}

TEST_F(export, refuses_a_rule_with_unknown_conditions)
{
	struct kxfer_rule rule = { .match = 1U << 5 };

	EXPECT_EQ(-EOPNOTSUPP, add_rule(self->fd, self->region, &rule, &self->id));
}

TEST_F(export, refuses_a_rule_with_unknown_rights)
{
	struct kxfer_rule rule = { .rights = KXFER_RIGHT_ANY + 1 };

	EXPECT_EQ(-EOPNOTSUPP, add_rule(self->fd, self->region, &rule, &self->id));
}

TEST_F(export, refuses_a_rule_with_more_rights_than_its_own)
{
	struct kxfer_rule rule = { .rights = KXFER_RIGHT_ALL };

	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &rule, &self->id));
	rule.rights = KXFER_RIGHT_SEND;
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &rule, &self->id));
}

/* The device of a future link is unknown, so only a grant can refuse the right. */
TEST_F(export, may_have_the_right_to_atomics_alone)
{
	struct kxfer_rule rule = { .rights = KXFER_RIGHT_ATOMIC };

	test_cmd_export_add(self->fd, self->region, 1, 1, KXFER_RIGHT_ATOMIC, "atomic",
			    &self->id);
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &rule, &self->id));
	test_cmd_export_add_rules(self->fd, self->region, 0, 1, KXFER_RIGHT_ALL, "rule",
				  &rule, 1, &self->id);
}

TEST_F(export, refuses_a_rule_with_a_reserved_member)
{
	struct kxfer_rule rule = { .__reserved = 1 };

	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &rule, &self->id));
}

TEST_F(export, refuses_a_rule_with_members_that_do_not_count)
{
	struct kxfer_rule uid = { .uid = 1 }, gid = { .gid = 1 };
	struct kxfer_rule prefix = { .prefix_len = 8 };
	struct kxfer_rule addr = { .addr = kx_addr("10.0.0.0", 0) };

	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &uid, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &gid, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &prefix, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &addr, &self->id));
}

TEST_F(export, refuses_a_rule_with_a_malformed_network)
{
	struct kxfer_rule family = { .match = KXFER_RULE_ADDR, .addr.family = 1 };
	struct kxfer_rule none = { .match = KXFER_RULE_ADDR };
	struct kxfer_rule port = { .match = KXFER_RULE_ADDR,
				   .addr = kx_addr("10.0.0.0", 1) };
	struct kxfer_rule longer = { .match = KXFER_RULE_ADDR, .prefix_len = 33,
				     .addr = kx_addr("10.0.0.0", 0) };
	struct kxfer_rule longer6 = { .match = KXFER_RULE_ADDR, .prefix_len = 129,
				      .addr = kx_addr("fd77::", 0) };

	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &family, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &none, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &port, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &longer, &self->id));
	EXPECT_EQ(-EINVAL, add_rule(self->fd, self->region, &longer6, &self->id));
}

TEST_F(export, refuses_more_rules_than_allowed)
{
	static struct kxfer_rule rules[4096];
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	ASSERT_GT(4096, query.max_rules);
	test_err_export_add_rules(EDQUOT, self->fd, self->region, 0, 1, KXFER_RIGHT_READ,
				  "many", rules, query.max_rules + 1, &self->id);
	test_cmd_export_add_rules(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "many",
				  rules, query.max_rules, &self->id);
}

TEST_F(export, refuses_rules_that_cannot_be_read)
{
	struct kxfer_rule *cut = kx_before_hole(sizeof(*cut));

	ASSERT_NE(NULL, cut);
	test_err_export_add_rules(EFAULT, self->fd, self->region, 0, 1, KXFER_RIGHT_READ,
				  "cut", cut, 2, &self->id);
	test_err_export_add_rules(EFAULT, self->fd, self->region, 0, 1, KXFER_RIGHT_READ,
				  "cut", NULL, 1, &self->id);
	test_cmd_export_add_rules(self->fd, self->region, 0, 1, KXFER_RIGHT_READ, "cut",
				  cut, 1, &self->id);
}

/* Rules of older and newer callers have the caller's length. */
TEST_F(export, takes_rules_by_their_stride)
{
	struct { struct kxfer_rule rule; uint8_t more[16]; } rules[2] = {
		{ .rule = { .match = KXFER_RULE_UID, .uid = 1 } },
		{ .rule = { .rights = KXFER_RIGHT_READ } },
	};
	struct kxfer_export_add cmd = good(self->region);
	uint32_t stride;

	cmd.rules = (uintptr_t)rules;
	cmd.nr_rules = 2;
	for (stride = 0; stride < KXFER_RULE_SIZE_MIN; stride += 8) {
		cmd.rule_stride = stride;
		EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	}
	cmd.rule_stride = sizeof(rules[0]) + 4;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	cmd.rule_stride = 264;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	cmd.rule_stride = sizeof(rules[0]);
	rules[1].more[15] = 1;
	EXPECT_EQ(-E2BIG, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	rules[1].more[15] = 0;
	/* The second rule is read at its stride: a rule may not grant what the export does not. */
	rules[1].rule.rights = KXFER_RIGHT_WRITE;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	rules[1].rule.rights = KXFER_RIGHT_READ;
	EXPECT_EQ(0, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
}

TEST_F(export, refuses_what_is_out_of_range)
{
	struct kxfer_export_add cmd = good(self->region);

	cmd.rule_stride = sizeof(struct kxfer_rule);
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	cmd.rule_stride = 0;
	cmd.nr_events = KXFER_EVENTS_MAX + 1;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	cmd.nr_events = UINT32_MAX;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
}

/* ---- content ---- */

TEST_F(export, counts_its_generations)
{
	uint8_t digest[KXFER_SHA256_SIZE] = { 1, 2, 3 };
	uint64_t generation = 0;

	test_cmd_export_add(self->fd, self->region, 0, PAGE, KXFER_RIGHT_READ, "content",
			    &self->id);
	test_cmd_export_set(self->fd, self->id, PAGE, digest, &generation);
	EXPECT_EQ(1, generation);
	test_cmd_export_set(self->fd, self->id, 0, NULL, &generation);
	EXPECT_EQ(2, generation);
}

TEST_F(export, refuses_content_longer_than_itself)
{
	test_cmd_export_add(self->fd, self->region, 0, PAGE, KXFER_RIGHT_READ, "content",
			    &self->id);
	test_err_export_set(ERANGE, self->fd, self->id, PAGE + 1, NULL, NULL);
}

TEST_F(export, refuses_content_with_a_generation)
{
	struct kxfer_export_set cmd = { .size = sizeof(cmd), .content.generation = 1 };

	test_cmd_export_add(self->fd, self->region, 0, PAGE, KXFER_RIGHT_READ, "content",
			    &self->id);
	cmd.export_id = self->id;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_EXPORT_SET, &cmd));
}

/* Gets the record of an export. */
static bool find_export(int fd, const char *name, struct kxfer_info_export *info)
{
	uint64_t cursor = 0;

	while (kx_info(fd, KXFER_INFO_EXPORTS, info, sizeof(*info), 1, &cursor) == 1)
		if (!strcmp((char *)info->name, name))
			return true;
	return false;
}

TEST_F(export, is_shown_with_what_it_is)
{
	struct kxfer_info_export info;

	test_cmd_export_add(self->fd, self->region, 1, PAGE, KXFER_RIGHT_ALL, "shown",
			    &self->id);
	test_cmd_export_set(self->fd, self->id, 5, NULL, NULL);
	ASSERT_TRUE(find_export(self->fd, "shown", &info));
	EXPECT_EQ(PAGE, info.length);
	EXPECT_EQ(KXFER_RIGHT_ALL, info.rights);
	EXPECT_EQ(0, info.nr_rules);
	EXPECT_EQ(0, info.owner_uid);
	EXPECT_EQ(getpid(), info.owner_pid);
	EXPECT_EQ(0, info.nr_grants);
	EXPECT_EQ(1, info.content.generation);
	EXPECT_EQ(5, info.content.length);
	EXPECT_EQ(0, info.cookie);
}

/* ---- its cookie ---- */

TEST_F(export, is_shown_with_its_cookie)
{
	struct kxfer_export_add cmd = good(self->region);
	struct kxfer_info_export info;

	cmd.cookie = UINT64_MAX - 1;
	ASSERT_EQ(0, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	ASSERT_TRUE(find_export(self->fd, "good", &info));
	EXPECT_EQ(UINT64_MAX - 1, info.cookie);
	test_cmd_export_set(self->fd, cmd.export_id, 5, NULL, NULL);
	ASSERT_TRUE(find_export(self->fd, "good", &info));
	EXPECT_EQ(UINT64_MAX - 1, info.cookie);
}

/* What lies past its structure is no cookie. */
TEST_F(export, of_an_older_caller_has_no_cookie)
{
	struct kxfer_export_add cmd = good(self->region);
	struct kxfer_info_export info;

	cmd.size = offsetof(struct kxfer_export_add, cookie);
	cmd.cookie = 7;
	ASSERT_EQ(0, kx_call(self->fd, KXFER_EXPORT_ADD, &cmd));
	EXPECT_EQ(7, cmd.cookie);
	ASSERT_TRUE(find_export(self->fd, "good", &info));
	EXPECT_EQ(0, info.cookie);
}

/* A record of an older caller ends before the cookie. */
TEST_F(export, is_shown_to_an_older_caller)
{
	struct kxfer_info_export info = { .cookie = 7 };
	struct kxfer_info cmd = {
		.size = sizeof(cmd),
		.kind = KXFER_INFO_EXPORTS,
		.stride = offsetof(struct kxfer_info_export, cookie),
		.records = (uintptr_t)&info,
		.nr = 1,
	};
	struct kxfer_export_add add = good(self->region);

	add.cookie = 99;
	ASSERT_EQ(0, kx_call(self->fd, KXFER_EXPORT_ADD, &add));
	do {
		ASSERT_EQ(0, kx_call(self->fd, KXFER_INFO, &cmd));
		ASSERT_EQ(1, cmd.nr);
	} while (strcmp((char *)info.name, "good"));
	EXPECT_EQ(PAGE, info.length);
	EXPECT_EQ(7, info.cookie);
}

TEST_HARNESS_MAIN
