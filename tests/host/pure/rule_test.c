// SPDX-License-Identifier: GPL-2.0
/* Access rules and the addresses in them, compared with the reference of rule_model.h. */
#include <kunit/test.h>

#include "base/addr.c"
#include "base/rule.c"

#include "random.h"
#include "rule_model.h"

#define ALLOW_READ	KXFER_RIGHT_READ
#define ALLOW_WRITE	KXFER_RIGHT_WRITE

static struct kxfer_addr ipv4(u8 a, u8 b, u8 c, u8 d)
{
	return (struct kxfer_addr) { .family = AF_INET, .addr = { a, b, c, d } };
}

static struct kxfer_addr ipv6(u8 first, u8 last)
{
	struct kxfer_addr addr = { .family = AF_INET6 };

	addr.addr[0] = first;
	addr.addr[15] = last;
	return addr;
}

static struct kxfer_rule network(struct kxfer_addr addr, u32 prefix_len, u32 rights)
{
	return (struct kxfer_rule) {
		.match = KXFER_RULE_ADDR,
		.rights = rights,
		.prefix_len = prefix_len,
		.addr = addr,
	};
}

static void addr_forms(struct kunit *test)
{
	struct kxfer_addr addr = ipv4(10, 77, 0, 1);

	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), 0);
	addr.addr[4] = 1;
	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), -EINVAL);
	addr = ipv4(10, 77, 0, 1);
	addr.addr[15] = 1;
	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), -EINVAL);
	addr = ipv4(10, 77, 0, 1);
	addr.scope_id = 1;
	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), -EINVAL);
	addr = ipv6(0xfe, 1);
	addr.scope_id = 1;
	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), 0);
	addr.family = 0;
	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), -EINVAL);
	addr.family = AF_UNIX;
	KUNIT_EXPECT_EQ(test, kxfer_addr_check(&addr), -EINVAL);
}

static void addr_equal_in_all_its_parts(struct kunit *test)
{
	struct kxfer_addr a = ipv6(0xfe, 1), b = a;

	KUNIT_EXPECT_TRUE(test, kxfer_addr_equal(&a, &b));
	b.port = 1;
	KUNIT_EXPECT_FALSE(test, kxfer_addr_equal(&a, &b));
	b = a;
	b.scope_id = 1;
	KUNIT_EXPECT_FALSE(test, kxfer_addr_equal(&a, &b));
	b = a;
	b.family = AF_INET;
	KUNIT_EXPECT_FALSE(test, kxfer_addr_equal(&a, &b));
	b = a;
	b.addr[15]++;
	KUNIT_EXPECT_FALSE(test, kxfer_addr_equal(&a, &b));
}

static void addr_comes_back_from_a_sockaddr(struct kunit *test)
{
	struct kxfer_addr addrs[] = { ipv4(10, 77, 0, 1), ipv6(0xfe, 1), { 0 } }, back;
	struct sockaddr_storage storage;
	u32 i;

	addrs[0].port = 7625;
	addrs[1].port = 1;
	addrs[1].scope_id = 3;
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		kxfer_addr_to_sockaddr(&addrs[i], &storage);
		KUNIT_EXPECT_EQ(test, (u32)storage.ss_family, (u32)addrs[i].family);
		kxfer_addr_from_sockaddr(&back, &storage);
		KUNIT_EXPECT_TRUE(test, kxfer_addr_equal(&addrs[i], &back));
	}
	storage.ss_family = AF_UNIX;
	kxfer_addr_from_sockaddr(&back, &storage);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(&back, 0, sizeof(back)));
}

static void addr_prefix_of_each_length(struct kunit *test)
{
	struct kxfer_addr net = ipv6(0xfd, 0x77), addr;
	u32 prefix, bit, bits;

	for (bits = 32; bits <= 128; bits += 96) {
		net.family = bits == 32 ? AF_INET : AF_INET6;
		for (prefix = 0; prefix <= bits; prefix++)
			for (bit = 0; bit < bits; bit++) {
				addr = net;
				addr.addr[bit / 8] ^= 0x80 >> bit % 8;
				KUNIT_ASSERT_EQ(test, kxfer_addr_in_network(&addr, &net, prefix),
						(bool)(bit >= prefix));
			}
		KUNIT_EXPECT_TRUE(test, kxfer_addr_in_network(&net, &net, bits));
		KUNIT_EXPECT_FALSE(test, kxfer_addr_in_network(&net, &net, bits + 1));
		KUNIT_EXPECT_FALSE(test, kxfer_addr_in_network(&net, &net, U32_MAX));
	}
	addr = ipv4(0, 0, 0, 0);
	net = ipv6(0, 0);
	KUNIT_EXPECT_FALSE(test, kxfer_addr_in_network(&addr, &net, 0));
}

static void rule_names_a_key(struct kunit *test)
{
	struct kxfer_rule rule = { .match = KXFER_RULE_KEY };

	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
	memset(rule.key, 'k', KXFER_NAME_MAX);
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), 0);
	rule.key[KXFER_NAME_MAX] = 'k';
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
	rule.key[KXFER_NAME_MAX] = 0;
	rule.key[3] = '/';
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
	rule.key[3] = 0;
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
	memset(rule.key + 3, 0, sizeof(rule.key) - 3);
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), 0);
	rule.match = 0;
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
	rule.match = KXFER_RULE_KEY | KXFER_RULE_NO_UIDS;
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), 0);
	rule.match |= KXFER_RULE_UID;
	KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
}

static u32 decide(const struct kxfer_rule *rules, u32 nr, const struct kxfer_addr *addr, u32 uid,
		  u32 gid)
{
	struct kxfer_claim claim = { .addr = *addr, .uid = uid, .gid = gid };

	return kxfer_rule_decide(rules, nr, &claim);
}

static void rules_of_a_key(struct kunit *test)
{
	struct kxfer_rule rules[] = {
		{ .match = KXFER_RULE_KEY | KXFER_RULE_NO_UIDS, .rights = ALLOW_WRITE,
		  .key = "guest" },
		{ .match = KXFER_RULE_KEY, .rights = ALLOW_READ, .key = "node" },
	};
	u8 guest[KXFER_NAME_MAX + 1] = "guest", node[KXFER_NAME_MAX + 1] = "node";
	struct kxfer_claim claim = { .addr = ipv4(10, 0, 0, 1), .uid = 5, .gid = 6 };

	KUNIT_EXPECT_EQ(test, kxfer_rule_decide(rules, 2, &claim), 0U);
	claim.key = node;
	KUNIT_EXPECT_EQ(test, kxfer_rule_decide(rules, 2, &claim), ALLOW_READ);
	KUNIT_EXPECT_EQ(test, claim.uid, 5U);
	claim.key = guest;
	KUNIT_EXPECT_EQ(test, kxfer_rule_decide(rules, 2, &claim), ALLOW_WRITE);
	KUNIT_EXPECT_EQ(test, claim.uid, KXFER_UID_UNKNOWN);
	KUNIT_EXPECT_EQ(test, claim.gid, KXFER_UID_UNKNOWN);
	/* A longer or shorter name is a different name. */
	strcpy((char *)node, "nod");
	claim.key = node;
	KUNIT_EXPECT_EQ(test, kxfer_rule_decide(rules, 2, &claim), 0U);
	strcpy((char *)node, "nodes");
	KUNIT_EXPECT_EQ(test, kxfer_rule_decide(rules, 2, &claim), 0U);
}

static void rule_check_verdicts(struct kunit *test)
{
	struct kxfer_rule rules[] = {
		{ .rights = ALLOW_READ },
		{ .rights = 0 },
		network(ipv4(10, 0, 0, 0), 32, ALLOW_READ),
		network(ipv6(0xfd, 0), 128, ALLOW_READ),
		{ .match = KXFER_RULE_UID, .uid = U32_MAX },
		{ .match = KXFER_RULE_GID, .gid = 7 },
		{ .match = KXFER_RULE_KEY, .key = "a.Key_of-1" },
		{ .match = KXFER_RULE_NO_UIDS },
	};
	struct kxfer_rule rule;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rules[i], ALLOW_READ), 0);
		rule = rules[i];
		rule.match |= 32;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EOPNOTSUPP);
		rule = rules[i];
		rule.rights |= 16;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EOPNOTSUPP);
		rule = rules[i];
		rule.rights |= KXFER_RIGHT_ATOMIC;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.rights |= KXFER_RIGHT_SEND;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.rights |= ALLOW_WRITE;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.__reserved = 1;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.addr.port = 1;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.prefix_len = rule.match & KXFER_RULE_ADDR ? rule.prefix_len + 1 : 1;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.match &= ~KXFER_RULE_UID;
		rule.uid = 1;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
		rule = rules[i];
		rule.match &= ~KXFER_RULE_GID;
		rule.gid = 1;
		KUNIT_EXPECT_EQ(test, kxfer_rule_check(&rule, ALLOW_READ), -EINVAL);
	}
}

static void rules_the_first_that_matches_decides(struct kunit *test)
{
	struct kxfer_rule rules[] = {
		network(ipv4(10, 77, 0, 1), 32, 0),
		{ .match = KXFER_RULE_UID | KXFER_RULE_GID, .uid = 5, .gid = 6,
		  .rights = ALLOW_WRITE },
		network(ipv4(10, 77, 0, 0), 16, ALLOW_READ),
	};
	struct kxfer_addr refused = ipv4(10, 77, 0, 1), near = ipv4(10, 77, 9, 9);
	struct kxfer_addr far = ipv4(10, 78, 0, 1);

	KUNIT_EXPECT_EQ(test, decide(rules, 3, &refused, 5, 6), 0U);
	KUNIT_EXPECT_EQ(test, decide(rules, 3, &near, 5, 6), ALLOW_WRITE);
	KUNIT_EXPECT_EQ(test, decide(rules, 3, &near, 5, 7), ALLOW_READ);
	KUNIT_EXPECT_EQ(test, decide(rules, 3, &near, 6, 6), ALLOW_READ);
	KUNIT_EXPECT_EQ(test, decide(rules, 3, &far, 5, 6), ALLOW_WRITE);
	KUNIT_EXPECT_EQ(test, decide(rules, 3, &far, 0, 0), 0U);
	KUNIT_EXPECT_EQ(test, decide(rules, 0, &near, 5, 6), 0U);
}

/* Few values for each part, so that rules match often. */
static struct kxfer_rule random_rule(u64 *random)
{
	struct kxfer_rule rule = {
		.match = random_below(random, 16),
		.rights = random_below(random, 4),
	};
	u32 bits;

	if (rule.match & KXFER_RULE_UID)
		rule.uid = random_below(random, 3);
	if (rule.match & KXFER_RULE_GID)
		rule.gid = random_below(random, 3);
	if (rule.match & KXFER_RULE_KEY)
		rule.key[0] = 'a' + random_below(random, 2);
	if (rule.match & KXFER_RULE_ADDR) {
		rule.addr = random_below(random, 2) ? ipv4(10, next_random(random), 0, 0) :
			    ipv6(0xfd, next_random(random));
		bits = rule.addr.family == AF_INET ? 32 : 128;
		rule.prefix_len = random_below(random, bits + 1);
	}
	return rule;
}

static void rules_agree_with_the_reference(struct kunit *test)
{
	struct kxfer_rule rules[4];
	u32 round, nr, i, matched = 0;
	u64 random = 5;

	for (round = 0; round < 50000; round++) {
		u8 key[KXFER_NAME_MAX + 1] = { 'a' + random_below(&random, 2) };
		struct kxfer_claim claim = {
			.addr = random_below(&random, 2) ?
				ipv4(10, next_random(&random), 0, 0) :
				ipv6(0xfd, next_random(&random)),
			.key = random_below(&random, 3) ? key : NULL,
			.uid = random_below(&random, 3),
			.gid = random_below(&random, 3),
		};
		u32 rights;

		nr = random_below(&random, 5);
		for (i = 0; i < nr; i++) {
			rules[i] = random_rule(&random);
			KUNIT_ASSERT_EQ(test, kxfer_rule_check(&rules[i], KXFER_RIGHT_ALL), 0);
			KUNIT_ASSERT_TRUE(test, !wrong_rule(&rules[i], KXFER_RIGHT_ALL));
		}
		rights = kxfer_rule_decide(rules, nr, &claim);
		KUNIT_ASSERT_EQ(test, rights, model_decide(rules, nr, &claim));
		matched += !!rights;
	}
	/* Both verdicts have to occur often, or the comparison proves nothing. */
	KUNIT_EXPECT_GE(test, matched, 10000U);
	KUNIT_EXPECT_LE(test, matched, 40000U);
}

static struct kunit_case rule_cases[] = {
	KUNIT_CASE(addr_forms),
	KUNIT_CASE(addr_equal_in_all_its_parts),
	KUNIT_CASE(addr_comes_back_from_a_sockaddr),
	KUNIT_CASE(addr_prefix_of_each_length),
	KUNIT_CASE(rule_check_verdicts),
	KUNIT_CASE(rule_names_a_key),
	KUNIT_CASE(rules_of_a_key),
	KUNIT_CASE(rules_the_first_that_matches_decides),
	KUNIT_CASE(rules_agree_with_the_reference),
	{}
};

static struct kunit_suite rule_suite = {
	.name = "rule",
	.test_cases = rule_cases,
};
kunit_test_suite(rule_suite);
