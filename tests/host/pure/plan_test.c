// SPDX-License-Identifier: GPL-2.0
/*
 * Cutting a transfer into work requests: every small case, the borders of large ones, random
 * ones. plan_model.h defines a correct plan.
 */
#include <kunit/test.h>

#include "base/plan.c"
#include "plan_model.h"
#include "random.h"

#define MAX_PIECES	64

/* A table in memory of the test case. */
struct table {
	struct kxfer_extent extents[MAX_PIECES];
	u32 nr;
	u64 length;
};

static void add_piece(struct table *table, u64 addr, u32 length, u32 key)
{
	table->extents[table->nr++] = (struct kxfer_extent) {
		.start = table->length,
		.addr = addr,
		.length = length,
		.key = key,
	};
	table->length += length;
}

static struct table *new_table(struct kunit *test)
{
	struct table *table = kunit_kmalloc_array(test, 1, sizeof(*table), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, table);
	table->nr = 0;
	table->length = 0;
	return table;
}

static struct table *one_piece(struct kunit *test, u64 addr, u32 length, u32 key)
{
	struct table *table = new_table(test);

	add_piece(table, addr, length, key);
	return table;
}

static const struct kxfer_plan_limits no_limits = { KXFER_PLAN_MAX_SGE, U64_MAX, 0 };

static struct plan_input input_of(const struct table *local, u64 from,
				  const struct table *remote, u64 to, u64 length,
				  struct kxfer_plan_limits limits)
{
	return (struct plan_input) {
		.local = local->extents,
		.nr_local = local->nr,
		.from = from,
		.remote = remote->extents,
		.nr_remote = remote->nr,
		.to = to,
		.length = length,
		.limits = limits,
	};
}

static int init_of(struct kxfer_plan *plan, const struct plan_input *in)
{
	return kxfer_plan_init(plan, in->local, in->nr_local, in->from, in->remote,
			       in->nr_remote, in->to, in->length, &in->limits);
}

/* Return: whether the plan is correct; reports a fault to the test case. */
static bool good(struct kunit *test, const struct plan_input *in)
{
	const char *wrong = plan_wrong(in, U32_MAX);

	if (wrong)
		KUNIT_FAIL(test, "%s: %u, %u extents, %llu -> %llu, %llu bytes, limits %u %llu %u",
			   wrong, in->nr_local, in->nr_remote, in->from, in->to, in->length,
			   in->limits.max_sge, in->limits.max_wr_bytes,
			   in->limits.border_bytes);
	return !wrong;
}

/* Work request number @index of a transfer, in memory of the test case. */
static struct kxfer_wr_desc *wr_of(struct kunit *test, const struct plan_input *in, u32 index)
{
	struct kxfer_wr_desc *wr = kunit_kmalloc_array(test, 1, sizeof(*wr), GFP_KERNEL);
	struct kxfer_plan plan;

	KUNIT_ASSERT_NOT_NULL(test, wr);
	good(test, in);
	KUNIT_ASSERT_EQ(test, init_of(&plan, in), 0);
	do {
		KUNIT_ASSERT_TRUE(test, kxfer_plan_next(&plan, wr));
	} while (index--);
	return wr;
}

static u32 nr_wrs(struct kunit *test, const struct plan_input *in)
{
	struct kxfer_plan plan;
	struct kxfer_wr_desc wr;
	u32 nr = 0;

	good(test, in);
	KUNIT_ASSERT_EQ(test, init_of(&plan, in), 0);
	while (kxfer_plan_next(&plan, &wr))
		nr++;
	return nr;
}

#define SMALL	5	/* bytes of the tables that are tried exhaustively */

/*
 * Table number @code over SMALL bytes: at each byte the extent continues, or another one begins
 * after a gap, or an abutting one begins. Return: false after the last table.
 */
static bool make_small(struct table *table, u32 code, u32 choices)
{
	struct kxfer_extent *last;
	u32 i;

	table->nr = 0;
	table->length = 0;
	add_piece(table, 1000, 1, 7);
	for (i = 1; i < SMALL; i++, code /= choices) {
		last = &table->extents[table->nr - 1];
		if (code % choices == 0) {
			last->length++;
			table->length++;
		} else {
			add_piece(table, last->addr + last->length + (code % choices == 1 ? 10 : 0),
				  1, last->key + 1);
		}
	}
	return !code;
}

static bool all_limits_good(struct kunit *test, struct plan_input in)
{
	for (in.limits.max_sge = 1; in.limits.max_sge <= 3; in.limits.max_sge++)
		for (in.limits.max_wr_bytes = 1; in.limits.max_wr_bytes <= in.length;
		     in.limits.max_wr_bytes++)
			if (!good(test, &in))
				return false;
	return true;
}

static bool all_ranges_good(struct kunit *test, const struct table *local,
			    const struct table *remote)
{
	struct plan_input in = input_of(local, 0, remote, 0, 0, no_limits);

	for (in.length = 1; in.length <= SMALL; in.length++)
		for (in.from = 0; in.from + in.length <= SMALL; in.from++)
			for (in.to = 0; in.to + in.length <= SMALL; in.to++)
				if (!all_limits_good(test, in))
					return false;
	return true;
}

static void plan_every_small_case(struct kunit *test)
{
	struct table *remote = new_table(test), *local = new_table(test);
	u32 here, there;

	for (here = 0; make_small(local, here, 3); here++)
		for (there = 0; make_small(remote, there, 2); there++)
			if (!all_ranges_good(test, local, remote))
				return;
	KUNIT_EXPECT_EQ(test, here, 81U);
}

static void plan_remote_extents_that_abut_are_kept_apart_by_their_keys(struct kunit *test)
{
	struct table *local = one_piece(test, 50, SMALL, 0), *remote = new_table(test);
	u32 code;

	for (code = 0; make_small(remote, code, 3); code++)
		if (!all_ranges_good(test, local, remote))
			return;
}

static void plan_one_byte_is_one_work_request(struct kunit *test)
{
	struct plan_input in = input_of(one_piece(test, 100, 1, 0), 0,
					one_piece(test, 200, 1, 5), 0, 1, no_limits);
	struct kxfer_wr_desc *wr = wr_of(test, &in, 0);

	KUNIT_EXPECT_EQ(test, nr_wrs(test, &in), 1U);
	KUNIT_EXPECT_EQ(test, wr->remote_addr, 200ULL);
	KUNIT_EXPECT_EQ(test, wr->rkey, 5U);
	KUNIT_EXPECT_EQ(test, wr->nr_sge, 1U);
	KUNIT_EXPECT_EQ(test, wr->sge[0].addr, 100ULL);
	KUNIT_EXPECT_EQ(test, wr->sge[0].length, 1U);
}

static void plan_single_pages_share_a_work_request_up_to_the_sge_limit(struct kunit *test)
{
	struct table *pages = new_table(test);
	struct plan_input in;
	u32 i;

	for (i = 0; i < 64; i++)
		add_piece(pages, i * 8192ULL, 4096, 0);
	in = input_of(pages, 0, one_piece(test, 0, 64 * 4096, 1), 0, 64 * 4096,
		      (struct kxfer_plan_limits) { 30, U64_MAX, 0 });
	KUNIT_EXPECT_EQ(test, nr_wrs(test, &in), 3U);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->nr_sge, 30U);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->length, 30 * 4096ULL);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 2)->nr_sge, 4U);
}

static void plan_sge_limit_beyond_the_descriptor_is_brought_down(struct kunit *test)
{
	struct table *bytes = new_table(test);
	struct plan_input in;
	u32 i;

	for (i = 0; i < 2 * KXFER_PLAN_MAX_SGE; i++)
		add_piece(bytes, i * 2, 1, 0);
	in = input_of(bytes, 0, one_piece(test, 0, bytes->nr, 1), 0, bytes->nr,
		      (struct kxfer_plan_limits) { U32_MAX, U64_MAX, 0 });
	KUNIT_EXPECT_EQ(test, nr_wrs(test, &in), 2U);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->nr_sge, (u32)KXFER_PLAN_MAX_SGE);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 1)->nr_sge, (u32)KXFER_PLAN_MAX_SGE);
}

static void plan_message_limit_cuts_and_the_last_is_short(struct kunit *test)
{
	struct table *ten = one_piece(test, 0, 10, 1);
	struct plan_input in = input_of(ten, 0, ten, 0, 10,
					(struct kxfer_plan_limits) { 4, 4, 0 });

	KUNIT_EXPECT_EQ(test, nr_wrs(test, &in), 3U);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->length, 4ULL);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 1)->length, 4ULL);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 2)->length, 2ULL);
}

static void plan_short_work_requests_do_not_cross_a_page_of_the_peer(struct kunit *test)
{
	static const struct {
		u64 addr;
		u32 length;
		u32 border_bytes;
		u64 first;	/* length of the first work request */
		u32 nr;
	} cases[] = {
		{ 4087, 16, 32, 9, 2 },
		{ 4095, 2, 32, 1, 2 },
		{ 4065, 32, 32, 31, 2 },
		/* far from a border, up to one, from one, and never cut */
		{ 4000, 32, 32, 32, 1 },
		{ 4087, 9, 32, 9, 1 },
		{ 4096, 16, 32, 16, 1 },
		{ 4064, 33, 32, 33, 1 },
		{ 4064, 20000, 32, 20000, 1 },
		/* A long work request that begins near a border is cut there once. */
		{ 4090, 20000, 32, 6, 2 },
		{ 4087, 16, 0, 16, 1 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan_input in =
			input_of(one_piece(test, 0, cases[i].length, 0), 0,
				 one_piece(test, cases[i].addr, cases[i].length, 1), 0,
				 cases[i].length, (struct kxfer_plan_limits)
				 { 1, U64_MAX, cases[i].border_bytes });

		KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->length, cases[i].first);
		KUNIT_EXPECT_EQ(test, nr_wrs(test, &in), cases[i].nr);
	}
}

static void plan_no_cut_by_another_limit_makes_a_short_work_request_cross(struct kunit *test)
{
	struct table *local = new_table(test), *remote = one_piece(test, 0, 100, 1);
	struct kxfer_wr_desc wr;
	struct kxfer_plan plan;
	u64 max_bytes, addr;

	add_piece(local, 0, 40, 0);
	add_piece(local, 100, 7, 0);
	add_piece(local, 200, 53, 0);
	for (max_bytes = 1; max_bytes < 70; max_bytes++)
		for (addr = 4000; addr < 4200; addr++) {
			struct plan_input in = input_of(local, 0, remote, 0, 100,
							(struct kxfer_plan_limits)
							{ 1, max_bytes, 32 });

			remote->extents[0].addr = addr;
			KUNIT_ASSERT_EQ(test, init_of(&plan, &in), 0);
			while (kxfer_plan_next(&plan, &wr)) {
				u64 last = wr.remote_addr + wr.length - 1;

				if (wr.length <= 32)
					KUNIT_ASSERT_EQ(test, wr.remote_addr >> 12, last >> 12);
			}
		}
}

static void plan_finished_stays_finished_and_leaves_the_descriptor_alone(struct kunit *test)
{
	struct table *byte = one_piece(test, 0, 1, 1);
	struct plan_input in = input_of(byte, 0, byte, 0, 1, no_limits);
	struct kxfer_plan plan;
	struct kxfer_wr_desc wr;

	KUNIT_ASSERT_EQ(test, init_of(&plan, &in), 0);
	KUNIT_ASSERT_TRUE(test, kxfer_plan_next(&plan, &wr));
	wr.length = 77;
	KUNIT_EXPECT_FALSE(test, kxfer_plan_next(&plan, &wr));
	KUNIT_EXPECT_FALSE(test, kxfer_plan_next(&plan, &wr));
	KUNIT_EXPECT_EQ(test, wr.length, 77ULL);
}

static void plan_copy_goes_on_by_itself(struct kunit *test)
{
	struct table *eight = one_piece(test, 0, 8, 1);
	struct plan_input in = input_of(eight, 0, eight, 0, 8,
					(struct kxfer_plan_limits) { 1, 3, 0 });
	struct kxfer_wr_desc wr, again;
	struct kxfer_plan plan, copy;

	KUNIT_ASSERT_EQ(test, init_of(&plan, &in), 0);
	KUNIT_ASSERT_TRUE(test, kxfer_plan_next(&plan, &wr));
	copy = plan;
	KUNIT_ASSERT_TRUE(test, kxfer_plan_next(&plan, &wr));
	KUNIT_EXPECT_EQ(test, kxfer_plan_left(&copy), 5ULL);
	KUNIT_ASSERT_TRUE(test, kxfer_plan_next(&copy, &again));
	KUNIT_EXPECT_EQ(test, again.remote_addr, wr.remote_addr);
	KUNIT_EXPECT_EQ(test, again.length, wr.length);
}

static void plan_longest_extent_is_one_work_request(struct kunit *test)
{
	struct plan_input in = input_of(one_piece(test, 1, U32_MAX, 0), 0,
					one_piece(test, U64_MAX - U32_MAX, U32_MAX, 9), 0,
					U32_MAX, no_limits);
	struct kxfer_wr_desc *wr = wr_of(test, &in, 0);

	KUNIT_EXPECT_EQ(test, nr_wrs(test, &in), 1U);
	KUNIT_EXPECT_EQ(test, wr->length, (u64)U32_MAX);
	KUNIT_EXPECT_EQ(test, wr->sge[0].length, (u32)U32_MAX);
	KUNIT_EXPECT_EQ(test, wr->remote_addr, U64_MAX - U32_MAX);
}

/* 16 GiB in extents that abut on both sides, out of step by a byte. */
static void plan_merged_sges_never_outgrow_32_bits(struct kunit *test)
{
	struct table *local = new_table(test), *remote = new_table(test);
	struct kxfer_wr_desc wr;
	struct kxfer_plan plan;
	struct plan_input in;
	u64 at = 0;
	u32 i;

	for (i = 0; i < 4; i++)
		add_piece(local, 4096 + (u64)i * U32_MAX, U32_MAX, 0);
	add_piece(remote, 0, 1, 1);
	for (i = 0; i < 3; i++)
		add_piece(remote, 1 + (u64)i * U32_MAX, U32_MAX, 2 + i);
	in = input_of(local, 5, remote, 0, remote->length, no_limits);
	good(test, &in);
	KUNIT_ASSERT_EQ(test, init_of(&plan, &in), 0);
	while (kxfer_plan_next(&plan, &wr)) {
		KUNIT_EXPECT_EQ(test, wr.nr_sge, 1U);
		KUNIT_EXPECT_EQ(test, wr.sge[0].length, wr.length);
		KUNIT_EXPECT_EQ(test, wr.sge[0].addr, 4096 + 5 + at);
		KUNIT_EXPECT_EQ(test, wr.remote_addr, at);
		at += wr.length;
	}
	KUNIT_EXPECT_EQ(test, at, remote->length);
}

/* Tables too long for struct table. */
static struct kxfer_extent *long_table(struct kunit *test, u32 nr)
{
	struct kxfer_extent *table = kunit_kmalloc_array(test, nr, sizeof(*table), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, table);
	return table;
}

static void plan_offsets_beyond_four_gib_find_their_extent(struct kunit *test)
{
	static const u32 indexes[] = { 0, 1, 2, 2499, 2500, 4998, 4999 };
	struct kxfer_extent *table = long_table(test, 5000);
	u32 i;

	for (i = 0; i < 5000; i++)
		table[i] = (struct kxfer_extent) { (u64)i << 30, (i + 1ULL) << 40, 1U << 30, i };
	for (i = 0; i < ARRAY_SIZE(indexes); i++) {
		u64 index = indexes[i];
		struct plan_input in = {
			table, 5000, (index << 30) + 3, table, 5000, (index << 30) + 7, 16,
			no_limits,
		};
		struct kxfer_wr_desc *wr = wr_of(test, &in, 0);

		KUNIT_EXPECT_EQ(test, wr->sge[0].addr, ((index + 1) << 40) + 3);
		KUNIT_EXPECT_EQ(test, wr->remote_addr, ((index + 1) << 40) + 7);
		KUNIT_EXPECT_EQ(test, (u64)wr->rkey, index);
	}
}

static void plan_offset_at_a_border_belongs_to_the_later_extent(struct kunit *test)
{
	struct table *table = new_table(test);
	struct plan_input in;

	add_piece(table, 100, 4, 1);
	add_piece(table, 200, 4, 2);
	add_piece(table, 300, 4, 3);
	in = input_of(table, 3, table, 3, 1, no_limits);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->rkey, 1U);
	in = input_of(table, 4, table, 4, 1, no_limits);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->rkey, 2U);
	in = input_of(table, 7, table, 8, 1, no_limits);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->rkey, 3U);
	KUNIT_EXPECT_EQ(test, wr_of(test, &in, 0)->sge[0].addr, 203ULL);
}

static void plan_init_refuses(struct kunit *test)
{
	static const struct {
		u64 from;
		u64 to;
		u64 length;
		struct kxfer_plan_limits limits;
		int error;
	} cases[] = {
		/* No bytes, and limits that allow no work request. */
		{ 0, 0, 0, { 1, 1, 0 }, -EINVAL },
		{ 8, 8, 0, { 1, 1, 0 }, -EINVAL },
		{ 0, 0, 8, { 0, 8, 0 }, -EINVAL },
		{ 0, 0, 8, { 1, 0, 0 }, -EINVAL },
		/* Local ends that wrap around. */
		{ U64_MAX, 0, 1, { 1, 1, 0 }, -EOVERFLOW },
		{ 8, 0, U64_MAX - 7, { 1, 1, 0 }, -EOVERFLOW },
		{ U64_MAX, 0, U64_MAX, { 1, 1, 0 }, -EOVERFLOW },
		/* Remote ends that wrap around. */
		{ 0, U64_MAX, 1, { 1, 1, 0 }, -EOVERFLOW },
		{ 0, 1, U64_MAX, { 1, 1, 0 }, -EOVERFLOW },
		/* The largest ends that do not wrap around. */
		{ U64_MAX - 1, 0, 1, { 1, 1, 0 }, -ERANGE },
		{ 0, U64_MAX - 1, 1, { 1, 1, 0 }, -ERANGE },
		{ 0, 0, U64_MAX, { 1, 1, 0 }, -ERANGE },
		/* One byte too far, on either side. */
		{ 0, 0, 9, { 1, 1, 0 }, -ERANGE },
		{ 8, 0, 1, { 1, 1, 0 }, -ERANGE },
		{ 0, 8, 1, { 1, 1, 0 }, -ERANGE },
		{ 1, 0, 8, { 1, 1, 0 }, -ERANGE },
		{ 0, 1, 8, { 1, 1, 0 }, -ERANGE },
		{ 7, 7, 1, { 1, 1, 0 }, 0 },
		{ 0, 0, 8, { 1, 1, 0 }, 0 },
	};
	struct table *eight = new_table(test);
	struct kxfer_plan plan;
	u32 i;

	add_piece(eight, 0, 3, 1);
	add_piece(eight, 10, 5, 2);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan_input in = input_of(eight, cases[i].from, eight, cases[i].to,
						cases[i].length, cases[i].limits);

		KUNIT_EXPECT_EQ(test, init_of(&plan, &in), cases[i].error);
	}
}

static void plan_init_looks_at_each_table(struct kunit *test)
{
	struct table *eight = one_piece(test, 0, 8, 1), *nine = one_piece(test, 0, 9, 1);
	struct table *none = new_table(test);
	struct plan_input in = input_of(eight, 0, nine, 0, 9, no_limits);
	struct kxfer_plan plan;

	KUNIT_EXPECT_EQ(test, init_of(&plan, &in), -ERANGE);
	in = input_of(nine, 0, eight, 0, 9, no_limits);
	KUNIT_EXPECT_EQ(test, init_of(&plan, &in), -ERANGE);
	in = input_of(nine, 0, nine, 0, 9, no_limits);
	KUNIT_EXPECT_EQ(test, init_of(&plan, &in), 0);
	in = input_of(none, 0, nine, 0, 1, no_limits);
	KUNIT_EXPECT_EQ(test, init_of(&plan, &in), -ERANGE);
	in = input_of(nine, 0, none, 0, 1, no_limits);
	KUNIT_EXPECT_EQ(test, init_of(&plan, &in), -ERANGE);
}

/* An atomic can be posted only for an aligned word in one piece. */
static void plan_is_a_word_or_not(struct kunit *test)
{
	struct table *whole = one_piece(test, 0x1000, 64, 1), *odd = one_piece(test, 0x1004, 64, 1);
	struct table *cut = one_piece(test, 0x1000, 12, 1);
	static const struct {
		u64 from, to;
		u32 length;
		bool local_cut, remote_cut, remote_odd, is_word;
	} cases[] = {
		{ 0, 0, 8, false, false, false, true },
		{ 0, 8, 8, false, false, false, true },
		{ 0, 56, 8, false, false, false, true },
		{ 3, 8, 8, false, false, false, true },
		{ 0, 8, 7, false, false, false, false },
		{ 0, 8, 9, false, false, false, false },
		{ 0, 8, 16, false, false, false, false },
		{ 0, 1, 8, false, false, false, false },
		{ 0, 4, 8, false, false, false, false },
		{ 0, 0, 8, false, false, true, false },
		{ 0, 4, 8, false, false, true, true },
		{ 8, 0, 8, true, false, false, false },
		{ 4, 0, 8, true, false, false, true },
		{ 12, 0, 8, true, false, false, true },
		{ 0, 0, 8, false, true, false, true },
		{ 0, 8, 8, false, true, false, false },
	};
	struct plan_input in;
	struct kxfer_plan plan;
	u32 i;

	add_piece(cut, 0x2000, 52, 2);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct table *remote = cases[i].remote_cut ? cut : whole;

		if (cases[i].remote_odd)
			remote = odd;
		in = input_of(cases[i].local_cut ? cut : whole, cases[i].from, remote,
			      cases[i].to, cases[i].length, no_limits);
		KUNIT_ASSERT_EQ(test, init_of(&plan, &in), 0);
		KUNIT_EXPECT_EQ(test, kxfer_plan_is_word(&plan, 8), cases[i].is_word);
	}
}

/* A table of @total bytes in at most MAX_PIECES pieces, some of which abut. */
static void make_random(struct table *table, u64 *random, u32 total)
{
	u32 most = 1 + random_below(random, 2 * total / MAX_PIECES + 8), length;
	u64 addr = next_random(random) >> 16;

	table->nr = 0;
	table->length = 0;
	while (table->length < total) {
		length = 1 + random_below(random, most);
		if (table->nr == MAX_PIECES - 1 || length > total - table->length)
			length = total - table->length;
		if (random_below(random, 3))
			addr = next_random(random) >> 16;
		add_piece(table, addr, length, next_random(random));
		addr += length;
	}
}

static void plan_random_transfers(struct kunit *test)
{
	struct table *local = new_table(test), *remote = new_table(test);
	u64 random = 1;
	u32 round;

	for (round = 0; round < 20000; round++) {
		u32 total = 1 + random_below(&random, round % 8 ? 300 : 1 << 20);
		u32 length = 1 + random_below(&random, total);
		struct kxfer_plan_limits limits = {
			.max_sge = 1 + random_below(&random, 40),
			.max_wr_bytes = 1 + total / 50 + random_below(&random, 2 * total),
			.border_bytes = random_below(&random, 2) ? random_below(&random, 64) : 0,
		};
		struct plan_input in;

		make_random(local, &random, total);
		make_random(remote, &random, total);
		in = input_of(local, random_below(&random, total - length + 1), remote,
			      random_below(&random, total - length + 1), length, limits);
		if (!good(test, &in))
			return;
	}
}

/* 64 MiB whose pages are in random order, with registrations of 2 MiB. */
static void plan_64_mib_in_single_pages(struct kunit *test)
{
	struct kxfer_extent *pages = long_table(test, 16384);
	struct kxfer_extent *registrations = long_table(test, 32);
	struct plan_input in = {
		pages, 16384, 0, registrations, 32, 0, 16384 << 12, { 6, 1 << 20, 0 },
	};
	u64 random = 64;
	u32 i, other;

	for (i = 0; i < 16384; i++)
		pages[i] = (struct kxfer_extent) { (u64)i << 12, (i + 1ULL) << 12, 4096, 0 };
	for (i = 16384 - 1; i; i--) {
		u64 addr = pages[i].addr;

		other = random_below(&random, i + 1);
		pages[i].addr = pages[other].addr;
		pages[other].addr = addr;
	}
	for (i = 0; i < 32; i++)
		registrations[i] = (struct kxfer_extent) {
			(u64)i << 21, 0x7000000000ULL + ((u64)i << 21), 2 << 20, i + 1,
		};
	KUNIT_EXPECT_TRUE(test, good(test, &in));
	/* Almost no pages are adjacent, so each work request has six pages. */
	KUNIT_EXPECT_GE(test, nr_wrs(test, &in), 16384U / 6);
	KUNIT_EXPECT_LE(test, nr_wrs(test, &in), 16384U / 6 + 32);
}

static void extents_find_the_one_that_holds_a_byte(struct kunit *test)
{
	struct table *table = new_table(test);
	u64 random = 5, offset;
	u32 index, round;

	for (round = 0; round < 200; round++) {
		make_random(table, &random, 1 + random_below(&random, 300));
		for (offset = 0; offset < table->length; offset++) {
			index = kxfer_extents_find(table->extents, table->nr, offset);
			KUNIT_ASSERT_TRUE(test, index < table->nr);
			KUNIT_ASSERT_TRUE(test, table->extents[index].start <= offset);
			KUNIT_ASSERT_TRUE(test, offset - table->extents[index].start <
						table->extents[index].length);
		}
	}
}

static void extents_check_verdicts(struct kunit *test)
{
	static const struct {
		struct kxfer_extent table[3];
		u32 nr;
		u64 length;
		int verdict;
	} cases[] = {
		{ { { 0, 0, 1, 1 } }, 1, 1, 0 },
		{ { { 0, 500, 7, 1 }, { 7, 0, 9, 0 }, { 16, 400, 1, 3 } }, 3, 17, 0 },
		{ { { 0, 0, U32_MAX, 1 }, { U32_MAX, 0, U32_MAX, 1 } }, 2, 2ULL * U32_MAX, 0 },
		/* No extent, and empty ones. */
		{ { { 0 } }, 0, 0, -EINVAL },
		{ { { 0 } }, 0, 1, -EINVAL },
		{ { { 0, 0, 0, 1 } }, 1, 0, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 4, 8, 0, 1 } }, 2, 4, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 4, 8, 0, 1 }, { 4, 8, 4, 1 } }, 3, 8, -EINVAL },
		/* not from 0, gaps, overlaps, not sorted */
		{ { { 1, 0, 4, 1 } }, 1, 4, -EINVAL },
		{ { { U64_MAX, 0, 4, 1 } }, 1, 3, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 5, 8, 4, 1 } }, 2, 9, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 5, 8, 4, 1 } }, 2, 8, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 3, 8, 4, 1 } }, 2, 7, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 0, 8, 4, 1 } }, 2, 4, -EINVAL },
		{ { { 4, 0, 4, 1 }, { 0, 8, 4, 1 } }, 2, 8, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 8, 8, 4, 1 }, { 4, 8, 4, 1 } }, 3, 12, -EINVAL },
		{ { { 0, 0, 4, 1 }, { (1ULL << 32) + 4, 8, 4, 1 } }, 2, 8, -EINVAL },
		/* a different sum */
		{ { { 0, 0, 4, 1 }, { 4, 8, 4, 1 } }, 2, 8, 0 },
		{ { { 0, 0, 4, 1 }, { 4, 8, 4, 1 } }, 2, 7, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 4, 8, 4, 1 } }, 2, 9, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 4, 8, 4, 1 } }, 2, 0, -EINVAL },
		{ { { 0, 0, 4, 1 }, { 4, 8, 4, 1 } }, 2, (1ULL << 32) + 8, -EINVAL },
		/* addresses that wrap around, and the highest that do not */
		{ { { 0, U64_MAX, 1, 1 } }, 1, 1, -EOVERFLOW },
		{ { { 0, U64_MAX - 2, 4, 1 } }, 1, 4, -EOVERFLOW },
		{ { { 0, 0, 4, 1 }, { 4, U64_MAX - U32_MAX + 1, U32_MAX, 1 } }, 2,
		  4ULL + U32_MAX, -EOVERFLOW },
		{ { { 0, U64_MAX - 4, 4, 1 } }, 1, 4, 0 },
		{ { { 0, U64_MAX - U32_MAX, U32_MAX, 1 } }, 1, U32_MAX, 0 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (kxfer_extents_check(cases[i].table, cases[i].nr, cases[i].length) !=
		    cases[i].verdict)
			KUNIT_FAIL(test, "case %u", i);
}

static void extents_check_finds_random_damage(struct kunit *test)
{
	struct table *table = new_table(test);
	struct kxfer_extent *victim;
	u64 random = 7;
	u32 round;

	for (round = 0; round < 20000; round++) {
		make_random(table, &random, 1 + random_below(&random, 50000));
		KUNIT_ASSERT_EQ(test, kxfer_extents_check(table->extents, table->nr,
							  table->length), 0);
		victim = &table->extents[random_below(&random, table->nr)];
		if (random_below(&random, 2))
			victim->start ^= 1ULL << random_below(&random, 64);
		else
			victim->length ^= 1U << random_below(&random, 32);
		KUNIT_ASSERT_TRUE(test, kxfer_extents_check(table->extents, table->nr,
							    table->length));
	}
}

static struct kunit_case plan_cases[] = {
	KUNIT_CASE(plan_every_small_case),
	KUNIT_CASE(plan_remote_extents_that_abut_are_kept_apart_by_their_keys),
	KUNIT_CASE(plan_one_byte_is_one_work_request),
	KUNIT_CASE(plan_single_pages_share_a_work_request_up_to_the_sge_limit),
	KUNIT_CASE(plan_sge_limit_beyond_the_descriptor_is_brought_down),
	KUNIT_CASE(plan_message_limit_cuts_and_the_last_is_short),
	KUNIT_CASE(plan_short_work_requests_do_not_cross_a_page_of_the_peer),
	KUNIT_CASE(plan_no_cut_by_another_limit_makes_a_short_work_request_cross),
	KUNIT_CASE(plan_finished_stays_finished_and_leaves_the_descriptor_alone),
	KUNIT_CASE(plan_copy_goes_on_by_itself),
	KUNIT_CASE(plan_longest_extent_is_one_work_request),
	KUNIT_CASE(plan_merged_sges_never_outgrow_32_bits),
	KUNIT_CASE(plan_offsets_beyond_four_gib_find_their_extent),
	KUNIT_CASE(plan_offset_at_a_border_belongs_to_the_later_extent),
	KUNIT_CASE(plan_init_refuses),
	KUNIT_CASE(plan_init_looks_at_each_table),
	KUNIT_CASE(plan_is_a_word_or_not),
	KUNIT_CASE(plan_random_transfers),
	KUNIT_CASE(plan_64_mib_in_single_pages),
	KUNIT_CASE(extents_find_the_one_that_holds_a_byte),
	KUNIT_CASE(extents_check_verdicts),
	KUNIT_CASE(extents_check_finds_random_damage),
	{}
};

static struct kunit_suite plan_suite = {
	.name = "plan",
	.test_cases = plan_cases,
};
kunit_test_suite(plan_suite);
