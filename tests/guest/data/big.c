// SPDX-License-Identifier: GPL-2.0
/*
 * Exports and jobs larger than any single registration or message: 64 MiB in one job, and an
 * export of 1 GiB of which both ends and 64 places are moved. Exports of huge pages, which a
 * device may register as pages of 2 MiB.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/fault.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB	(1024ull * 1024)
#define GIB	(1024 * MIB)

#define MOVE(_rig, _op, _here, _there, _length) do {			\
	const char *wrong__ = rig_try(_rig, _op, _here, _there, _length);	\
									\
	if (wrong__)							\
		TH_LOG("here %llu there %llu length %llu: %s",		\
		       (unsigned long long)(_here), (unsigned long long)(_there), \
		       (unsigned long long)(_length), wrong__);		\
	ASSERT_EQ(NULL, wrong__);					\
} while (0)

FIXTURE(big)
{
	struct rig rig;
};

FIXTURE_SETUP(big)
{
	self->rig = (struct rig) { .server = -1, .client = -1 };
}

FIXTURE_TEARDOWN(big)
{
	rig_close(&self->rig);
}

static uint32_t registration_pages(struct rig *rig)
{
	struct kxfer_info_device device;
	uint64_t cursor = 0;

	if (kx_info(rig->client, KXFER_INFO_DEVICES, &device, sizeof(device), 1, &cursor) != 1)
		return 0;
	return device.max_fast_reg_pages;
}

/* As many registrations as the device's limit requires, give or take a page of each. */
static void expect_few_keys(struct __test_metadata *_metadata, struct rig *rig,
			    uint64_t length)
{
	uint64_t pages = registration_pages(rig);

	ASSERT_LT(2, pages);
	EXPECT_LE((length / 4096 + pages - 1) / pages, rig->nr_keys);
	EXPECT_GE(length / 4096 / (pages - 1) + 2, rig->nr_keys);
}

TEST_F_TIMEOUT(big, one_job_of_64_MiB, 120)
{
	struct rig_options options = {
		.length = 64 * MIB + 8192,
		.here = BUFFER_SCATTERED,
		.there = BUFFER_SCATTERED,
		.export_offset = 77,
	};

	if (buffer_free_memory() < 300 * MIB)
		SKIP(return, "less than 300 MiB of memory are free");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	rig_prepare(&self->rig, KXFER_OP_WRITE);
	MOVE(&self->rig, KXFER_OP_WRITE, 4095, 1, 64 * MIB);
	ASSERT_EQ(NULL, rig_untouched(&self->rig, KXFER_OP_WRITE));
	rig_prepare(&self->rig, KXFER_OP_READ);
	MOVE(&self->rig, KXFER_OP_READ, 3, 4097, 64 * MIB);
	ASSERT_EQ(NULL, rig_untouched(&self->rig, KXFER_OP_READ));
}

TEST_F_TIMEOUT(big, jobs_of_64_MiB_in_all_kinds_of_cuts, 120)
{
	struct rig_options options = { .length = 64 * MIB };
	static const uint64_t cuts[] = { 64 * MIB, MIB, MIB - 1, 3 * MIB + 4097, 257 * 4096 };
	struct pattern pattern = { .seed = 0x444 };
	struct kxfer_completion done[256];
	struct kxfer_job jobs[256];
	size_t c;

	if (buffer_free_memory() < 300 * MIB)
		SKIP(return, "less than 300 MiB of memory are free");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	for (c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		uint32_t nr = 0;
		uint64_t at;

		pattern.generation = c + 1;
		pattern_fill(self->rig.here.bytes, 64 * MIB, &pattern);
		for (at = 0; at < 64 * MIB; at += cuts[c]) {
			uint64_t length = cuts[c] < 64 * MIB - at ? cuts[c] : 64 * MIB - at;

			jobs[nr++] = rig_job(&self->rig, KXFER_OP_WRITE, at, at, length);
		}
		ASSERT_EQ((int)nr, kx_submit(self->rig.client, jobs, nr));
		ASSERT_EQ((int)nr, kx_reap(self->rig.client, done, nr, nr, RIG_WAIT_MS));
		while (nr--)
			ASSERT_EQ(0, done[nr].status);
		ASSERT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, 64 * MIB, &pattern,
						      NULL, NULL));
	}
}

TEST_F(big, export_of_several_registrations)
{
	struct rig_options options = {
		.length = 8 * MIB,
		.there = BUFFER_SCATTERED,
		.export_offset = 100,
		.export_length = 5 * MIB,
	};

	ASSERT_EQ(0, rig_open(&self->rig, &options));
	expect_few_keys(_metadata, &self->rig, 5 * MIB);
	rig_prepare(&self->rig, KXFER_OP_WRITE);
	MOVE(&self->rig, KXFER_OP_WRITE, 0, 0, 5 * MIB);
	ASSERT_EQ(NULL, rig_untouched(&self->rig, KXFER_OP_WRITE));
}

TEST_F(big, export_ends_where_it_says)
{
	struct rig_options options = {
		.length = MIB, .export_offset = 5000, .export_length = 10001,
	};

	ASSERT_EQ(0, rig_open(&self->rig, &options));
	EXPECT_EQ(-ERANGE, rig_move(&self->rig, KXFER_OP_WRITE, 0, 10000, 2));
	EXPECT_EQ(-ERANGE, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 10002));
	rig_prepare(&self->rig, KXFER_OP_WRITE);
	MOVE(&self->rig, KXFER_OP_WRITE, 7, 10000, 1);
	MOVE(&self->rig, KXFER_OP_WRITE, 7, 0, 10001);
	ASSERT_EQ(NULL, rig_untouched(&self->rig, KXFER_OP_WRITE));
}

TEST_F_TIMEOUT(big, export_of_1_GiB, 360)
{
	struct rig_options options = {
		.length = GIB,
		.there = buffer_scattered_limit() < GIB ? BUFFER_PLAIN : BUFFER_SCATTERED,
	};
	unsigned int seed = 4711, i;
	uint32_t ops[] = { KXFER_OP_WRITE, KXFER_OP_READ };
	struct pattern fresh = { .seed = 0x555 };
	uint64_t at, length;

	if (buffer_free_memory() < GIB + 400 * MIB)
		SKIP(return, "less than 1.4 GiB of memory are free");
	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	/* The buffer at this end is small. */
	self->rig.options.length = 3 * 65536;
	ASSERT_EQ(0, rig_open_client(&self->rig));
	expect_few_keys(_metadata, &self->rig, GIB);
	for (i = 0; i < 66; i++) {
		uint32_t op = ops[i % 2];
		uint8_t *there;

		length = 1 + rand_r(&seed) % 65536;
		at = ((uint64_t)rand_r(&seed) << 16 ^ rand_r(&seed)) % (GIB - length);
		at = i == 0 ? 0 : i == 1 ? GIB - length : at;
		there = self->rig.there.bytes + at;
		fresh.generation = i;
		fresh.offset = at;
		pattern_fill(op == KXFER_OP_WRITE ? self->rig.here.bytes + i : there, length,
			     &fresh);
		ASSERT_EQ(0, rig_move(&self->rig, op, i, at, length));
		ASSERT_EQ(PATTERN_GOOD, pattern_check(op == KXFER_OP_WRITE ? there :
						      self->rig.here.bytes + i, length, &fresh,
						      NULL, NULL)) {
			TH_LOG("op %u at %llu length %llu", op, (unsigned long long)at,
			       (unsigned long long)length);
		}
	}
}

/* ---- huge pages ---- */

#define HUGE	((uint64_t)BUFFER_HUGE)

FIXTURE(huge)
{
	struct rig rig;
};

FIXTURE_VARIANT(huge)
{
	enum buffer_kind there;
	uint64_t offset;
	uint64_t length;
	bool large;	/* the export consists of whole huge pages, but for its ends */
};

FIXTURE_VARIANT_ADD(huge, whole)
{
	.there = BUFFER_HUGETLB, .offset = 0, .length = 8 * MIB, .large = true,
};

FIXTURE_VARIANT_ADD(huge, from_the_middle)
{
	.there = BUFFER_HUGETLB, .offset = MIB + 4096 + 13, .length = 5 * MIB + 77,
	.large = true,
};

FIXTURE_VARIANT_ADD(huge, a_byte_before_a_border)
{
	.there = BUFFER_HUGETLB, .offset = HUGE - 1, .length = HUGE + 2, .large = true,
};

FIXTURE_VARIANT_ADD(huge, beside_small_pages)
{
	.there = BUFFER_MIXED, .offset = 5000, .length = 7 * MIB,
};

FIXTURE_SETUP(huge)
{
	struct rig_options options = {
		.length = 8 * MIB,
		.here = BUFFER_SCATTERED,
		.there = variant->there,
		.export_offset = variant->offset,
		.export_length = variant->length,
	};
	int ret = rig_open_server(&self->rig, &options);

	if (ret == -ENOMEM || ret == -EOPNOTSUPP)
		SKIP(return, "no huge pages are free");
	ASSERT_EQ(0, ret);
}

FIXTURE_TEARDOWN(huge)
{
	rig_close(&self->rig);
	fault_reset();
}

/* Moves ranges that end, lie around and begin at each border of a huge page. */
static void move_at_borders(struct __test_metadata *_metadata, struct rig *rig, uint32_t op)
{
	static const uint64_t lengths[] = { 1, 2, 8, 4096, 65537, HUGE, HUGE + 2 };
	uint64_t end = rig->export_length, border, start, length;
	size_t i, side;

	rig_prepare(rig, op);
	for (border = HUGE - rig->options.export_offset % HUGE; border < end; border += HUGE) {
		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			for (side = 0; side <= 2; side++) {
				length = lengths[i];
				start = border - length + side * length / 2;
				if (start + length <= end && start < end)
					MOVE(rig, op, 7 * i, start, length);
			}
		}
	}
	MOVE(rig, op, 0, 0, end);
	ASSERT_EQ(NULL, rig_untouched(rig, op));
}

/* With pages of 2 MiB there is one registration, else one for 511 pages or less. */
static void expect_keys(struct __test_metadata *_metadata, struct rig *rig, bool large)
{
	if (large && !strcmp(kx_provider(), "rxe")) {
		EXPECT_EQ(1, rig->nr_keys);
		return;
	}
	expect_few_keys(_metadata, rig, rig->export_length);
}

TEST_F_TIMEOUT(huge, pages_are_written_and_read_at_all_borders, 120)
{
	ASSERT_EQ(0, rig_open_client(&self->rig));
	expect_keys(_metadata, &self->rig, variant->large);
	move_at_borders(_metadata, &self->rig, KXFER_OP_WRITE);
	move_at_borders(_metadata, &self->rig, KXFER_OP_READ);
}

TEST_F_TIMEOUT(huge, pages_that_the_device_refuses_are_registered_as_small_ones, 120)
{
	if (!fault_available())
		SKIP(return, "needs debugfs");
	ASSERT_EQ(0, fault_arm("EXPOSURE_MAP", 1));
	if (!variant->large || strcmp(kx_provider(), "rxe")) {
		EXPECT_EQ(-EREMOTEIO, rig_open_client(&self->rig));
		return;
	}
	ASSERT_EQ(0, rig_open_client(&self->rig));
	expect_keys(_metadata, &self->rig, false);
	move_at_borders(_metadata, &self->rig, KXFER_OP_WRITE);
	move_at_borders(_metadata, &self->rig, KXFER_OP_READ);
}

TEST_HARNESS_MAIN
