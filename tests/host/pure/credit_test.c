// SPDX-License-Identifier: GPL-2.0
/* Credits of a lane, compared with a plain count of outstanding ones. */
#include <kunit/test.h>

#include "base/credit.h"
#include "random.h"

static void credits_begin_with_all(struct kunit *test)
{
	struct kxfer_credits credits;

	kxfer_credits_init(&credits, 256);
	KUNIT_EXPECT_EQ(test, credits.left, 256U);
	KUNIT_EXPECT_FALSE(test, kxfer_credits_give(&credits, 1));
	KUNIT_EXPECT_TRUE(test, kxfer_credits_take(&credits, 256));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_take(&credits, 1));
	KUNIT_EXPECT_EQ(test, credits.left, 0U);
}

static void credits_of_a_control_qp_are_none(struct kunit *test)
{
	struct kxfer_credits credits;

	kxfer_credits_init(&credits, 0);
	KUNIT_EXPECT_FALSE(test, kxfer_credits_take(&credits, 1));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_give(&credits, 1));
	KUNIT_EXPECT_EQ(test, kxfer_credits_room(&credits, 32, 0), 0U);
}

static void credits_refused_are_not_touched(struct kunit *test)
{
	struct kxfer_credits credits;

	kxfer_credits_init(&credits, 10);
	KUNIT_EXPECT_TRUE(test, kxfer_credits_take(&credits, 4));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_take(&credits, 7));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_take(&credits, U32_MAX));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_give(&credits, 5));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_give(&credits, U32_MAX));
	KUNIT_EXPECT_FALSE(test, kxfer_credits_give(&credits, U32_MAX - 5));
	KUNIT_EXPECT_EQ(test, credits.left, 6U);
	KUNIT_EXPECT_EQ(test, credits.max, 10U);
}

static void credits_room_is_what_a_chain_can_use(struct kunit *test)
{
	struct kxfer_credits credits;
	u32 left, chain, extra, room;

	for (left = 0; left < 40; left++)
		for (chain = 1; chain < 40; chain++)
			for (extra = 0; extra < 4; extra++) {
				kxfer_credits_init(&credits, left);
				room = kxfer_credits_room(&credits, chain, extra);
				if (!room) {
					/* One more would not have fitted. */
					KUNIT_ASSERT_TRUE(test, 1 + extra > left ||
							  1 + extra > chain);
					continue;
				}
				KUNIT_ASSERT_TRUE(test, room + extra <= left &&
						  room + extra <= chain);
				KUNIT_ASSERT_TRUE(test, room + extra == left ||
						  room + extra == chain);
			}
}

static void credits_agree_with_a_count(struct kunit *test)
{
	struct kxfer_credits credits;
	u32 out = 0, round, nr;
	u64 random = 3;
	bool ok;

	kxfer_credits_init(&credits, 100);
	for (round = 0; round < 50000; round++) {
		nr = random_below(&random, 130);
		if (random_below(&random, 2)) {
			ok = kxfer_credits_take(&credits, nr);
			KUNIT_ASSERT_EQ(test, ok, (bool)(out + nr <= 100));
			out += ok ? nr : 0;
		} else {
			ok = kxfer_credits_give(&credits, nr);
			KUNIT_ASSERT_EQ(test, ok, (bool)(nr <= out));
			out -= ok ? nr : 0;
		}
		KUNIT_ASSERT_EQ(test, credits.left + out, 100U);
	}
}

static struct kunit_case credit_cases[] = {
	KUNIT_CASE(credits_begin_with_all),
	KUNIT_CASE(credits_of_a_control_qp_are_none),
	KUNIT_CASE(credits_refused_are_not_touched),
	KUNIT_CASE(credits_room_is_what_a_chain_can_use),
	KUNIT_CASE(credits_agree_with_a_count),
	{}
};

static struct kunit_suite credit_suite = {
	.name = "credit",
	.test_cases = credit_cases,
};
kunit_test_suite(credit_suite);
