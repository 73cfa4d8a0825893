// SPDX-License-Identifier: GPL-2.0
/*
 * The pattern that all data tests rely on: each kind of fault that it distinguishes is
 * injected, and has to be found, named and located.
 */
#include <string.h>

#include "harness/pattern.h"
#include "kselftest_harness.h"

#define LENGTH	65536
#define SEED	0x123
#define NEW	7
#define OLD	6

/* Memory begins at an odd address, and its streams within a word. */
FIXTURE(pattern)
{
	uint8_t memory[LENGTH + 16];
	uint8_t *bytes;
	struct pattern want;
	struct pattern before;
	struct pattern_fault fault;
};

FIXTURE_SETUP(pattern)
{
	self->bytes = self->memory + 3;
	self->want = (struct pattern) { .seed = SEED, .generation = NEW, .offset = 4099 };
	self->before = (struct pattern) { .seed = SEED, .generation = OLD, .offset = 4099 };
	pattern_fill(self->bytes, LENGTH, &self->want);
}

FIXTURE_TEARDOWN(pattern)
{
}

static enum pattern_fault_kind look(struct _test_data_pattern *self)
{
	return pattern_check(self->bytes, LENGTH, &self->want, &self->before, &self->fault);
}

#define EXPECT_FAULT(_kind, _first, _last) do {				\
	EXPECT_STREQ(pattern_kind_name(_kind), pattern_kind_name(look(self)));	\
	EXPECT_EQ((size_t)(_first), self->fault.first);			\
	EXPECT_EQ((size_t)(_last), self->fault.last);			\
} while (0)

TEST_F(pattern, good_memory_is_good)
{
	EXPECT_EQ(PATTERN_GOOD, look(self));
	EXPECT_EQ(0, self->fault.nr_bytes);
}

TEST_F(pattern, good_at_every_length_and_phase)
{
	struct pattern part;
	size_t at, length;

	for (at = 0; at < 17; at++) {
		for (length = 1; length < 40; length++) {
			part = pattern_at(&self->want, at);
			ASSERT_EQ(PATTERN_GOOD,
				  pattern_check(self->bytes + at, length, &part, NULL, NULL));
		}
	}
}

TEST_F(pattern, every_single_bit_is_seen)
{
	size_t bit;

	for (bit = 0; bit < 64 * 8; bit++) {
		self->bytes[1000 + bit / 8] ^= 1 << bit % 8;
		ASSERT_EQ(PATTERN_CORRUPT, pattern_check(self->bytes, LENGTH, &self->want, NULL,
							 &self->fault));
		ASSERT_EQ(1000 + bit / 8, self->fault.first);
		ASSERT_EQ(1, self->fault.nr_bytes);
		self->bytes[1000 + bit / 8] ^= 1 << bit % 8;
	}
}

TEST_F(pattern, corrupt_zeroes)
{
	memset(self->bytes + 512, 0, 512);
	EXPECT_FAULT(PATTERN_CORRUPT, 512, 1023);
}

TEST_F(pattern, corrupt_last_byte)
{
	self->bytes[LENGTH - 1] ^= 0x10;
	EXPECT_FAULT(PATTERN_CORRUPT, LENGTH - 1, LENGTH - 1);
}

TEST_F(pattern, stale_range_of_before)
{
	struct pattern old = pattern_at(&self->before, 4096);

	pattern_fill(self->bytes + 4096, 4096, &old);
	EXPECT_STREQ("stale", pattern_kind_name(look(self)));
	EXPECT_LE(4096, self->fault.first);
	EXPECT_GE(8191, self->fault.last);
	EXPECT_LT(4000, self->fault.nr_bytes);
}

TEST_F(pattern, stale_rest_from_within_a_word_on)
{
	struct pattern old = pattern_at(&self->before, 808);

	pattern_fill(self->bytes + 808, LENGTH - 808, &old);
	EXPECT_FAULT(PATTERN_STALE, 808, LENGTH - 1);
}

TEST_F(pattern, stale_generation_that_nobody_named)
{
	/* 4099 + 805 is the beginning of a word: whole words show their generation. */
	struct pattern older = pattern_at(&self->want, 805);

	older.generation = 3;
	pattern_fill(self->bytes + 805, 64, &older);
	EXPECT_STREQ("stale", pattern_kind_name(look(self)));
	EXPECT_EQ(3, self->fault.holds.generation);
	EXPECT_EQ(4099 + 805, self->fault.holds.offset);
}

TEST_F(pattern, stale_tail_shorter_than_a_word)
{
	struct pattern old = pattern_at(&self->before, LENGTH - 3);

	pattern_fill(self->bytes + LENGTH - 3, 3, &old);
	EXPECT_FAULT(PATTERN_STALE, LENGTH - 3, LENGTH - 1);
}

TEST_F(pattern, misplaced_by_a_page)
{
	struct pattern other = pattern_at(&self->want, 8192);

	pattern_fill(self->bytes + 4096, 4096, &other);
	EXPECT_STREQ("misplaced", pattern_kind_name(look(self)));
}

TEST_F(pattern, misplaced_by_a_word_says_from_where)
{
	struct pattern other = pattern_at(&self->want, 805 + 8);

	pattern_fill(self->bytes + 805, 64, &other);
	EXPECT_STREQ("misplaced", pattern_kind_name(look(self)));
	EXPECT_EQ(4099 + 805 + 8, self->fault.holds.offset);
}

TEST_F(pattern, misplaced_by_bytes)
{
	size_t by;

	for (by = 1; by < 8; by++) {
		pattern_fill(self->bytes, LENGTH, &self->want);
		memmove(self->bytes + 2000 + by, self->bytes + 2000, 512);
		ASSERT_STREQ("misplaced", pattern_kind_name(look(self)));
	}
}

TEST_F(pattern, misplaced_swapped_pages)
{
	uint8_t page[4096];

	memcpy(page, self->bytes + 4096, 4096);
	memcpy(self->bytes + 4096, self->bytes + 8192, 4096);
	memcpy(self->bytes + 8192, page, 4096);
	EXPECT_STREQ("misplaced", pattern_kind_name(look(self)));
}

TEST_F(pattern, torn_word_half_old_half_new)
{
	struct pattern old = pattern_at(&self->before, 805);

	/* The first five bytes of the word at 805 are old, the others new. */
	pattern_fill(self->bytes + 805, 5, &old);
	EXPECT_FAULT(PATTERN_TORN, 805, 809);
}

TEST_F(pattern, torn_last_byte)
{
	struct pattern old = pattern_at(&self->before, LENGTH - 1);

	pattern_fill(self->bytes + LENGTH - 1, 1, &old);
	EXPECT_FAULT(PATTERN_TORN, LENGTH - 1, LENGTH - 1);
}

TEST_F(pattern, foreign_data_of_another_seed)
{
	struct pattern other = { .seed = 0x777, .generation = NEW, .offset = 4099 + 805 };

	pattern_fill(self->bytes + 805, 64, &other);
	EXPECT_STREQ("foreign", pattern_kind_name(look(self)));
	EXPECT_EQ(0x777, self->fault.holds.seed);
}

TEST_F(pattern, generations_and_seeds_differ_in_every_place)
{
	struct pattern a = { .seed = 1, .generation = 1 }, b = { .seed = 1, .generation = 2 };
	struct pattern c = { .seed = 2, .generation = 1 };
	size_t same_ab = 0, same_ac = 0, same_shift = 0, i;
	static uint8_t x[LENGTH], y[LENGTH], z[LENGTH];

	pattern_fill(x, LENGTH, &a);
	pattern_fill(y, LENGTH, &b);
	pattern_fill(z, LENGTH, &c);
	for (i = 0; i < LENGTH - 8; i++) {
		same_ab += x[i] == y[i];
		same_ac += x[i] == z[i];
		same_shift += x[i] == x[i + 8];
	}
	/* One byte in 256 is equal by chance. */
	EXPECT_GT(LENGTH / 100, same_ab);
	EXPECT_GT(LENGTH / 100, same_ac);
	EXPECT_GT(LENGTH / 100, same_shift);
}

TEST_F(pattern, a_fault_in_words)
{
	char text[320];

	self->bytes[805] ^= 1;
	look(self);
	pattern_describe(&self->want, &self->fault, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "corrupt: bytes 805 to 805, 1 of them wrong; found "));
	EXPECT_NE(NULL, strstr(text, "wanted seed 291 generation 7 stream byte 4904"));
}

TEST_HARNESS_MAIN
