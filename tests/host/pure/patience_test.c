// SPDX-License-Identifier: GPL-2.0
/* How long a link waits for its peer: every choice, and what is chosen for the caller. */
#include <kunit/test.h>

#include "base/patience.c"

static u64 total_us(const struct kxfer_patience *patience)
{
	return (u64)(patience->retry_count + 1) * 4096 * (1ULL << patience->ack_timeout) / 1000;
}

static void patience_without_a_choice_is_the_usual_one(struct kunit *test)
{
	struct kxfer_patience patience;

	KUNIT_ASSERT_EQ(test, kxfer_patience_init(&patience, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, patience.silence_ms, 8000U);
	KUNIT_EXPECT_EQ(test, patience.ack_timeout, 17U);
	KUNIT_EXPECT_EQ(test, patience.retry_count, 7U);
	KUNIT_EXPECT_EQ(test, kxfer_patience_keepalive_ms(&patience), 2000U);
}

static void patience_out_of_range_is_refused(struct kunit *test)
{
	struct kxfer_patience patience;
	u32 value;

	for (value = 1; value < 70; value++) {
		KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, 0, value, 0),
				value < 8 || value > 20 ? -EINVAL : 0);
		KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, 0, 0, value),
				value > 7 ? -EINVAL : 0);
		KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, value * 500, 0, 0),
				value < 2 || value > 60 ? -EINVAL : 0);
	}
	KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, 999, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, 30001, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, U32_MAX, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, 0, U32_MAX, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kxfer_patience_init(&patience, 0, 0, U32_MAX), -EINVAL);
}

static void patience_that_is_chosen_is_kept(struct kunit *test)
{
	struct kxfer_patience patience;

	KUNIT_ASSERT_EQ(test, kxfer_patience_init(&patience, 1234, 9, 2), 0);
	KUNIT_EXPECT_EQ(test, patience.silence_ms, 1234U);
	KUNIT_EXPECT_EQ(test, patience.ack_timeout, 9U);
	KUNIT_EXPECT_EQ(test, patience.retry_count, 2U);
}

/* All tries take half of the silence, or more, and the timeout is the shortest that does. */
static void patience_of_a_device_follows_from_the_silence(struct kunit *test)
{
	struct kxfer_patience patience;
	u32 silence_ms, retry_count;

	for (silence_ms = 1000; silence_ms <= 30000; silence_ms += 500) {
		for (retry_count = 1; retry_count <= 7; retry_count++) {
			KUNIT_ASSERT_EQ(test, kxfer_patience_init(&patience, silence_ms, 0,
								  retry_count), 0);
			KUNIT_EXPECT_LE(test, patience.ack_timeout, 20U);
			if (patience.ack_timeout < 20)
				KUNIT_EXPECT_GE(test, total_us(&patience) / 1000,
						(u64)silence_ms / 2);
			KUNIT_EXPECT_TRUE(test, total_us(&patience) / 2000 < silence_ms / 2);
		}
	}
}

static void patience_has_four_pings_in_it(struct kunit *test)
{
	struct kxfer_patience patience;
	u32 silence_ms;

	for (silence_ms = 1000; silence_ms <= 30000; silence_ms += 100) {
		KUNIT_ASSERT_EQ(test, kxfer_patience_init(&patience, silence_ms, 0, 0), 0);
		KUNIT_EXPECT_LE(test, 4 * kxfer_patience_keepalive_ms(&patience), silence_ms);
		KUNIT_EXPECT_GE(test, kxfer_patience_keepalive_ms(&patience), 250U);
		KUNIT_EXPECT_LE(test, kxfer_patience_keepalive_ms(&patience), 2000U);
	}
}

static struct kunit_case patience_cases[] = {
	KUNIT_CASE(patience_without_a_choice_is_the_usual_one),
	KUNIT_CASE(patience_out_of_range_is_refused),
	KUNIT_CASE(patience_that_is_chosen_is_kept),
	KUNIT_CASE(patience_of_a_device_follows_from_the_silence),
	KUNIT_CASE(patience_has_four_pings_in_it),
	{}
};

static struct kunit_suite patience_suite = {
	.name = "patience",
	.test_cases = patience_cases,
};
kunit_test_suite(patience_suite);
