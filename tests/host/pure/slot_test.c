// SPDX-License-Identifier: GPL-2.0
/*
 * Slots of a channel: each path through a slot by hand, and two channels that exchange messages
 * with all events in any order (slot_model.h).
 */
#include <kunit/test.h>

#include "base/slot.c"

#include "random.h"
#include "slot_model.h"

#define ASKED	KXFER_WIRE_GRANT
#define ANSWER	(KXFER_WIRE_GRANT | KXFER_WIRE_ANSWER)

static struct kxfer_request_slot posted_slot(struct kunit *test)
{
	struct kxfer_request_slot slot = { 0 };

	KUNIT_EXPECT_TRUE(test, kxfer_request_take(&slot));
	kxfer_request_posted(&slot, ASKED, 7);
	return slot;
}

/* The three events of a slot, in each of six orders. */
static void slot_is_free_after_three_things_in_any_order(struct kunit *test)
{
	static const char orders[][4] = { "asp", "aps", "sap", "spa", "pas", "psa" };
	u32 i, step;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		struct kxfer_request_slot slot = posted_slot(test);
		bool freed = false, abandoned = false;

		for (step = 0; step < 3; step++) {
			KUNIT_ASSERT_TRUE(test, slot.busy && !freed);
			switch (orders[i][step]) {
			case 'a':
				KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 7),
						abandoned ? KXFER_ANSWER_ABANDONED :
						KXFER_ANSWER_WANTED);
				if (abandoned)
					freed = kxfer_request_put(&slot);
				break;
			case 's':
				freed = kxfer_request_sent(&slot);
				break;
			case 'p':
				abandoned = kxfer_request_abandon(&slot);
				freed = !abandoned && kxfer_request_put(&slot);
				break;
			}
		}
		KUNIT_EXPECT_TRUE(test, freed);
		KUNIT_EXPECT_FALSE(test, slot.busy);
		KUNIT_EXPECT_TRUE(test, kxfer_request_take(&slot));
		KUNIT_EXPECT_FALSE(test, slot.abandoned);
	}
}

static void slot_busy_is_not_given_twice(struct kunit *test)
{
	struct kxfer_request_slot slot = { 0 };

	KUNIT_EXPECT_TRUE(test, kxfer_request_take(&slot));
	KUNIT_EXPECT_FALSE(test, kxfer_request_take(&slot));
	KUNIT_EXPECT_TRUE(test, kxfer_request_put(&slot));
	KUNIT_EXPECT_FALSE(test, kxfer_request_put(&slot));
	KUNIT_EXPECT_TRUE(test, kxfer_request_take(&slot));
}

static void slot_that_could_not_be_posted_is_free_when_put(struct kunit *test)
{
	struct kxfer_request_slot slot = posted_slot(test);

	kxfer_request_not_posted(&slot);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 7), KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_TRUE(test, kxfer_request_put(&slot));
}

static void slot_takes_one_answer_of_its_type_and_sequence(struct kunit *test)
{
	struct kxfer_request_slot slot = posted_slot(test);

	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 6), KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 8), KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 7 | 1ULL << 32),
			KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ASKED, 7), KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER + 1, 7),
			KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 7), KXFER_ANSWER_WANTED);
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 7), KXFER_ANSWER_UNASKED);
}

static void slot_never_used_takes_no_answer(struct kunit *test)
{
	struct kxfer_request_slot slot = { 0 };

	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, KXFER_WIRE_ANSWER, 0),
			KXFER_ANSWER_UNASKED);
	KUNIT_EXPECT_TRUE(test, kxfer_request_take(&slot));
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, KXFER_WIRE_ANSWER, 0),
			KXFER_ANSWER_UNASKED);
}

static void slot_of_an_abandoned_answer_is_held_while_that_is_looked_at(struct kunit *test)
{
	struct kxfer_request_slot slot = posted_slot(test);

	KUNIT_EXPECT_TRUE(test, kxfer_request_abandon(&slot));
	KUNIT_EXPECT_EQ(test, kxfer_request_answered(&slot, ANSWER, 7), KXFER_ANSWER_ABANDONED);
	KUNIT_EXPECT_FALSE(test, kxfer_request_sent(&slot));
	KUNIT_EXPECT_FALSE(test, kxfer_request_take(&slot));
	KUNIT_EXPECT_TRUE(test, kxfer_request_put(&slot));
}

static void slot_that_is_stopped_tells_who_waits(struct kunit *test)
{
	struct kxfer_request_slot slot = posted_slot(test);

	KUNIT_EXPECT_TRUE(test, kxfer_request_stop(&slot));
	KUNIT_EXPECT_FALSE(test, kxfer_request_stop(&slot));
	KUNIT_EXPECT_FALSE(test, kxfer_request_abandon(&slot));
	KUNIT_EXPECT_TRUE(test, kxfer_request_put(&slot));

	slot = posted_slot(test);
	KUNIT_EXPECT_TRUE(test, kxfer_request_abandon(&slot));
	KUNIT_EXPECT_FALSE(test, kxfer_request_stop(&slot));

	slot = posted_slot(test);
	kxfer_request_answered(&slot, ANSWER, 7);
	KUNIT_EXPECT_FALSE(test, kxfer_request_stop(&slot));
}

static void slot_of_a_reply_takes_one_request_at_a_time(struct kunit *test)
{
	struct kxfer_reply_slot slot = { 0 };

	KUNIT_EXPECT_EQ(test, kxfer_reply_arrived(&slot), KXFER_ARRIVAL_START);
	KUNIT_EXPECT_EQ(test, kxfer_reply_arrived(&slot), KXFER_ARRIVAL_TWICE);
	kxfer_reply_posted(&slot);
	KUNIT_EXPECT_FALSE(test, kxfer_reply_sent(&slot));
	KUNIT_EXPECT_EQ(test, kxfer_reply_arrived(&slot), KXFER_ARRIVAL_START);
}

static void slot_of_a_reply_defers_while_its_message_is_the_devices(struct kunit *test)
{
	struct kxfer_reply_slot slot = { 0 };

	kxfer_reply_arrived(&slot);
	kxfer_reply_posted(&slot);
	KUNIT_EXPECT_EQ(test, kxfer_reply_arrived(&slot), KXFER_ARRIVAL_DEFER);
	KUNIT_EXPECT_EQ(test, kxfer_reply_arrived(&slot), KXFER_ARRIVAL_TWICE);
	KUNIT_EXPECT_TRUE(test, kxfer_reply_sent(&slot));
	kxfer_reply_posted(&slot);
	KUNIT_EXPECT_FALSE(test, kxfer_reply_sent(&slot));
}

static void slots_of_two_channels_in_any_order(struct kunit *test)
{
	struct model *model = kunit_kmalloc_array(test, 1, sizeof(*model), GFP_KERNEL);
	u32 round, step, length;
	const char *wrong = NULL;
	u64 random = 11, bits;

	KUNIT_ASSERT_NOT_NULL(test, model);
	for (round = 0; round < 1000 && !wrong; round++) {
		model_init(model);
		length = random_below(&random, 500);
		for (step = 0; step < length && !wrong; step++) {
			bits = next_random(&random);
			wrong = model_step(model, bits, bits >> 8);
		}
		if (!wrong)
			wrong = model_finish(model);
	}
	if (wrong)
		KUNIT_FAIL(test, "round %u, step %u: %s", round, step, wrong);
}

static struct kunit_case slot_cases[] = {
	KUNIT_CASE(slot_is_free_after_three_things_in_any_order),
	KUNIT_CASE(slot_busy_is_not_given_twice),
	KUNIT_CASE(slot_that_could_not_be_posted_is_free_when_put),
	KUNIT_CASE(slot_takes_one_answer_of_its_type_and_sequence),
	KUNIT_CASE(slot_never_used_takes_no_answer),
	KUNIT_CASE(slot_of_an_abandoned_answer_is_held_while_that_is_looked_at),
	KUNIT_CASE(slot_that_is_stopped_tells_who_waits),
	KUNIT_CASE(slot_of_a_reply_takes_one_request_at_a_time),
	KUNIT_CASE(slot_of_a_reply_defers_while_its_message_is_the_devices),
	KUNIT_CASE(slots_of_two_channels_in_any_order),
	{}
};

static struct kunit_suite slot_suite = {
	.name = "slot",
	.test_cases = slot_cases,
};
kunit_test_suite(slot_suite);
