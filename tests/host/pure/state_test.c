// SPDX-License-Identifier: GPL-2.0
/* The state table of a link: all pairs of states, all paths of four steps. */
#include <kunit/test.h>

#include "base/state.c"

#define FIRST	KXFER_LINK_CONNECTING
#define LAST	KXFER_LINK_DEAD

static void state_pairs_allowed_are_these_four(struct kunit *test)
{
	u32 from, to, nr = 0;

	for (from = 0; from < 8; from++)
		for (to = 0; to < 8; to++)
			nr += kxfer_state_may_follow(from, to);
	KUNIT_EXPECT_EQ(test, nr, 4U);
	KUNIT_EXPECT_TRUE(test, kxfer_state_may_follow(KXFER_LINK_CONNECTING, KXFER_LINK_LIVE));
	KUNIT_EXPECT_TRUE(test, kxfer_state_may_follow(KXFER_LINK_CONNECTING,
						       KXFER_LINK_CLOSING));
	KUNIT_EXPECT_TRUE(test, kxfer_state_may_follow(KXFER_LINK_LIVE, KXFER_LINK_CLOSING));
	KUNIT_EXPECT_TRUE(test, kxfer_state_may_follow(KXFER_LINK_CLOSING, KXFER_LINK_DEAD));
}

static void state_values_that_do_not_exist_lead_nowhere(struct kunit *test)
{
	u32 known;

	for (known = FIRST; known <= LAST; known++) {
		KUNIT_EXPECT_FALSE(test, kxfer_state_may_follow(known, 0));
		KUNIT_EXPECT_FALSE(test, kxfer_state_may_follow(known, LAST + 1));
		KUNIT_EXPECT_FALSE(test, kxfer_state_may_follow(known, 64));
		KUNIT_EXPECT_FALSE(test, kxfer_state_may_follow(0, known));
		KUNIT_EXPECT_FALSE(test, kxfer_state_may_follow(U32_MAX, known));
	}
}

/* Whatever is requested, in any order, states only go forward, each once. */
static void state_only_goes_forward(struct kunit *test)
{
	u32 way;

	for (way = 0; way < 4 * 4 * 4 * 4 * 4 * 4; way++) {
		enum kxfer_link_state state = KXFER_LINK_CONNECTING, before;
		u32 rest = way, entered[LAST + 1] = { 0 }, step;

		for (step = 0; step < 6; step++, rest /= 4) {
			enum kxfer_link_state to = FIRST + rest % 4;

			before = state;
			if (kxfer_state_change(&state, to)) {
				KUNIT_ASSERT_EQ(test, state, to);
				KUNIT_ASSERT_TRUE(test, state > before);
				KUNIT_ASSERT_EQ(test, ++entered[to], 1U);
			} else {
				KUNIT_ASSERT_EQ(test, state, before);
			}
		}
		/* LIVE cannot be entered from a later state, and DEAD not without CLOSING. */
		if (entered[KXFER_LINK_DEAD])
			KUNIT_ASSERT_EQ(test, entered[KXFER_LINK_CLOSING], 1U);
	}
}

static void state_is_open_until_it_is_closing(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, kxfer_state_is_open(KXFER_LINK_CONNECTING));
	KUNIT_EXPECT_TRUE(test, kxfer_state_is_open(KXFER_LINK_LIVE));
	KUNIT_EXPECT_FALSE(test, kxfer_state_is_open(KXFER_LINK_CLOSING));
	KUNIT_EXPECT_FALSE(test, kxfer_state_is_open(KXFER_LINK_DEAD));
}

static struct kunit_case state_cases[] = {
	KUNIT_CASE(state_pairs_allowed_are_these_four),
	KUNIT_CASE(state_values_that_do_not_exist_lead_nowhere),
	KUNIT_CASE(state_only_goes_forward),
	KUNIT_CASE(state_is_open_until_it_is_closing),
	{}
};

static struct kunit_suite state_suite = {
	.name = "state",
	.test_cases = state_cases,
};
kunit_test_suite(state_suite);
