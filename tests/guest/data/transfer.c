// SPDX-License-Identifier: GPL-2.0
/*
 * READ and WRITE jobs over a link of the node with itself: every length around a border that
 * the module or the device has, every alignment, kinds of memory, many jobs a call. After each
 * transfer the moved range, its neighbours and the source are checked; at the end the whole
 * sink.
 */
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB		(1024u * 1024)
#define LENGTH		(10 * MIB)
#define PIECE		MIB		/* longest RDMA message of a job */

static const char *skip_reason(int ret)
{
	return ret == -EOPNOTSUPP ? "this kernel has no such memory" :
				    "no memory of that kind is free";
}

static bool is_dmabuf(enum buffer_kind kind)
{
	return kind == BUFFER_UDMABUF || kind == BUFFER_HEAP;
}

/* Kinds of memory that a kernel may lack or may have run out of. */
static bool may_lack(enum buffer_kind kind)
{
	return kind == BUFFER_HUGETLB || kind == BUFFER_THP || is_dmabuf(kind);
}

FIXTURE(transfer)
{
	struct rig rig;
	struct kxfer_info_device device;
};

FIXTURE_VARIANT(transfer)
{
	uint32_t op;
	enum buffer_kind here;
	enum buffer_kind there;
};

FIXTURE_VARIANT_ADD(transfer, read_into_scattered)
{
	.op = KXFER_OP_READ, .here = BUFFER_SCATTERED, .there = BUFFER_SCATTERED,
};

FIXTURE_VARIANT_ADD(transfer, write_from_scattered)
{
	.op = KXFER_OP_WRITE, .here = BUFFER_SCATTERED, .there = BUFFER_SCATTERED,
};

FIXTURE_VARIANT_ADD(transfer, read_into_huge)
{
	.op = KXFER_OP_READ, .here = BUFFER_THP, .there = BUFFER_HUGETLB,
};

FIXTURE_VARIANT_ADD(transfer, write_from_huge)
{
	.op = KXFER_OP_WRITE, .here = BUFFER_HUGETLB, .there = BUFFER_THP,
};

FIXTURE_VARIANT_ADD(transfer, read_huge_into_scattered)
{
	.op = KXFER_OP_READ, .here = BUFFER_SCATTERED, .there = BUFFER_THP,
};

FIXTURE_VARIANT_ADD(transfer, write_scattered_to_shared)
{
	.op = KXFER_OP_WRITE, .here = BUFFER_SCATTERED, .there = BUFFER_SHARED,
};

FIXTURE_VARIANT_ADD(transfer, read_between_dmabufs_of_memfds)
{
	.op = KXFER_OP_READ, .here = BUFFER_UDMABUF, .there = BUFFER_UDMABUF,
};

FIXTURE_VARIANT_ADD(transfer, write_between_dmabufs_of_the_heap)
{
	.op = KXFER_OP_WRITE, .here = BUFFER_HEAP, .there = BUFFER_HEAP,
};

FIXTURE_SETUP(transfer)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = variant->here,
		.there = variant->there,
		/* The export begins within a page and within a word. */
		.export_offset = 4096 + 13,
	};
	uint64_t cursor = 0;
	int ret = rig_open(&self->rig, &options);

	if ((ret == -ENOMEM || ret == -EOPNOTSUPP) &&
	    (may_lack(variant->here) || may_lack(variant->there)))
		SKIP(return, "%s", skip_reason(ret));
	ASSERT_EQ(0, ret);
	ASSERT_EQ(1, kx_info(self->rig.client, KXFER_INFO_DEVICES, &self->device,
			     sizeof(self->device), 1, &cursor));
	rig_prepare(&self->rig, variant->op);
}

FIXTURE_TEARDOWN(transfer)
{
	rig_close(&self->rig);
}

/* One transfer; the variant says the reason of a failure. */
#define TRY(_here, _there, _length) do {					\
	uint64_t here__ = (_here), there__ = (_there), length__ = (_length);	\
	const char *wrong__ = rig_try(&self->rig, variant->op, here__, there__, length__); \
										\
	if (wrong__)								\
		TH_LOG("here %llu there %llu length %llu: %s",			\
		       (unsigned long long)here__, (unsigned long long)there__,	\
		       (unsigned long long)length__, wrong__);			\
	ASSERT_EQ(NULL, wrong__);						\
} while (0)

#define NOTHING_ELSE_TOUCHED() do {						\
	const char *wrong__ = rig_untouched(&self->rig, variant->op);		\
										\
	if (wrong__)								\
		TH_LOG("%s", wrong__);						\
	ASSERT_EQ(NULL, wrong__);						\
} while (0)

TEST_F(transfer, memory_is_of_the_kind_meant)
{
	uint32_t pages = LENGTH / 4096;

	if (variant->here == BUFFER_SCATTERED)
		EXPECT_LT(pages * 9 / 10, self->rig.here_segments);
	if (variant->here == BUFFER_HUGETLB)
		EXPECT_GE(LENGTH / BUFFER_HUGE, self->rig.here_segments);
	if (variant->there == BUFFER_SCATTERED)
		EXPECT_LT(pages * 9 / 10, self->rig.there_segments);
	if (variant->there == BUFFER_HUGETLB)
		EXPECT_GE(LENGTH / BUFFER_HUGE, self->rig.there_segments);
	if (is_dmabuf(variant->here))
		EXPECT_EQ(0, self->rig.here_segments);
	if (!is_dmabuf(variant->here))
		EXPECT_LE(1, self->rig.here_segments);
	EXPECT_GE(pages, self->rig.here_segments);
}

TEST_F(transfer, every_length_to_130_bytes)
{
	uint64_t length;

	for (length = 1; length <= 130; length++)
		TRY(length % 7, 3 * length, length);
	NOTHING_ELSE_TOUCHED();
}

TEST_F(transfer, lengths_around_a_page)
{
	static const uint64_t middles[] = { 512, 1024, 2048, 4096, 8192, 65536 };
	size_t i;
	int d;

	for (i = 0; i < sizeof(middles) / sizeof(middles[0]); i++)
		for (d = -2; d <= 2; d++)
			TRY(4096, 8192 - 13, middles[i] + d);
	NOTHING_ELSE_TOUCHED();
}

TEST_F(transfer, short_lengths_across_a_page)
{
	static const uint64_t lengths[] = { 2, 3, 8, 16, 31, 32, 33, 40 };
	uint64_t before;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (before = 1; before < lengths[i]; before++)
			TRY(7, 3 * 4096 - 13 - before, lengths[i]);
	NOTHING_ELSE_TOUCHED();
}

TEST_F_TIMEOUT(transfer, lengths_around_the_scatter_gather_limit, 60)
{
	uint64_t sges = variant->op == KXFER_OP_READ ? self->device.max_sge_rd :
						       self->device.max_send_sge;
	uint64_t limits[] = { sges, 2 * sges, 32, 64 };
	size_t i;
	int d;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (d = -1; d <= 1; d++) {
			TRY(4096, 11, limits[i] * 4096 + d);
			TRY(4097, 4096, limits[i] * 4096 + d);
		}
	}
}

TEST_F_TIMEOUT(transfer, lengths_around_a_registration, 60)
{
	uint64_t pages = self->device.max_fast_reg_pages, less, bytes;
	int d;

	/* The module may leave the last page of a registration unused. */
	for (less = 0; less <= 1; less++) {
		bytes = (pages - less) * 4096;
		for (d = -1; d <= 1; d++) {
			/*
			 * From the start of the export, and across the end of the first
			 * registration.
			 */
			TRY(0, 0, bytes + d);
			TRY(17, bytes - 70000, 140000 + d);
			TRY(5, bytes - 13 - 8 + d, 16);
			TRY(9, bytes - 13 - 1 + d, 1);
		}
	}
	NOTHING_ELSE_TOUCHED();
}

TEST_F_TIMEOUT(transfer, lengths_around_a_message, 60)
{
	uint64_t message = self->device.max_msg_bytes;
	int d;

	for (d = -1; d <= 1; d++) {
		TRY(1, 2, PIECE + d);
		TRY(4096, 4096 - 13, PIECE + d);
		if (message + 8192 < LENGTH)
			TRY(3, 1, message + d);
	}
	NOTHING_ELSE_TOUCHED();
}

TEST_F_TIMEOUT(transfer, every_alignment, 60)
{
	static const uint64_t offsets[] = { 0, 1, 2, 3, 4, 7, 8, 63, 64, 2048, 4091, 4095 };
	static const uint64_t lengths[] = { 1, 5, 4096, 12289 };
	size_t n = sizeof(offsets) / sizeof(offsets[0]), here, there, length;

	for (here = 0; here < n; here++)
		for (there = 0; there < n; there++)
			for (length = 0; length < 4; length++)
				TRY(offsets[here], offsets[there], lengths[length]);
	NOTHING_ELSE_TOUCHED();
}

TEST_F(transfer, first_and_last_byte)
{
	uint64_t last_there = self->rig.export_length - 1;

	TRY(0, 0, 1);
	TRY(LENGTH - 1, last_there, 1);
	TRY(0, last_there, 1);
	TRY(LENGTH - 1, 0, 1);
	TRY(LENGTH - 4096, last_there - 4095, 4096);
	TRY(LENGTH - 5000, last_there - 4999, 5000);
	NOTHING_ELSE_TOUCHED();
}

TEST_F_TIMEOUT(transfer, random_ranges, 60)
{
	unsigned int seed = 20240617, i;

	for (i = 0; i < 100; i++) {
		uint64_t most = 1ull << (rand_r(&seed) % 21);
		uint64_t length = 1 + rand_r(&seed) % most;
		uint64_t here = rand_r(&seed) % (LENGTH - length);
		uint64_t there = rand_r(&seed) % (self->rig.export_length - length);

		TRY(here, there, length);
	}
	NOTHING_ELSE_TOUCHED();
}

#define JOBS_MAX	256
#define JOB_BYTES	3001

/*
 * Submits @nr jobs in one call, in a shuffled order, each for a separate piece; every other
 * piece stays untouched.
 */
static int submit_pieces(struct rig *rig, uint32_t op, uint32_t nr)
{
	struct kxfer_job jobs[JOBS_MAX];
	uint32_t i, piece;

	for (i = 0; i < nr; i++) {
		piece = (i * 37 + 11) % nr;
		if (nr % 37 == 0)
			piece = i;
		jobs[i] = rig_job(rig, op, 2 * piece * JOB_BYTES, 2 * piece * JOB_BYTES,
				  JOB_BYTES);
		jobs[i].user_data = 1000 + piece;
	}
	return kx_submit(rig->client, jobs, nr);
}

static void run_pieces(struct __test_metadata *_metadata, struct _test_data_transfer *self,
		       const struct _fixture_variant_transfer *variant, uint32_t nr)
{
	uint8_t *there = self->rig.there.bytes + self->rig.options.export_offset;
	uint8_t *source = variant->op == KXFER_OP_READ ? there : self->rig.here.bytes;
	uint8_t *sink = variant->op == KXFER_OP_READ ? self->rig.here.bytes : there;
	struct pattern new = { .seed = 0x3a5, .generation = nr % 251 };
	struct pattern old = { .seed = 0x3a6, .generation = nr % 251 };
	struct kxfer_completion done[JOBS_MAX];
	bool seen[JOBS_MAX] = { 0 };
	struct pattern_fault fault;
	uint32_t i, piece;

	pattern_fill(source, 2 * nr * JOB_BYTES, &new);
	pattern_fill(sink, 2 * nr * JOB_BYTES, &old);
	ASSERT_EQ((int)nr, submit_pieces(&self->rig, variant->op, nr));
	ASSERT_EQ((int)nr, kx_reap(self->rig.client, done, nr, nr, RIG_WAIT_MS));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, done[i].status);
		ASSERT_EQ(JOB_BYTES, done[i].bytes);
		piece = done[i].user_data - 1000;
		ASSERT_GT(nr, piece);
		ASSERT_FALSE(seen[piece]);
		seen[piece] = true;
	}
	for (i = 0; i < 2 * nr; i++) {
		const struct pattern *is = i % 2 ? &old : &new;
		struct pattern want = pattern_at(is, (uint64_t)i * JOB_BYTES);

		ASSERT_EQ(PATTERN_GOOD, pattern_check(sink + i * JOB_BYTES, JOB_BYTES, &want,
						      NULL, &fault)) {
			TH_LOG("piece %u of %u jobs is %s", i, nr, pattern_kind_name(fault.kind));
		}
	}
	/* No completion comes twice. */
	EXPECT_EQ(0, kx_reap(self->rig.client, done, 1, 0, 0));
}

TEST_F(transfer, one_job_a_call)
{
	run_pieces(_metadata, self, variant, 1);
}

TEST_F(transfer, two_to_seventeen_jobs_a_call)
{
	uint32_t nr;

	for (nr = 2; nr <= 17; nr++)
		run_pieces(_metadata, self, variant, nr);
}

TEST_F(transfer, jobs_around_a_chain_of_32)
{
	uint32_t nr;

	for (nr = 31; nr <= 33; nr++)
		run_pieces(_metadata, self, variant, nr);
}

TEST_F(transfer, jobs_as_many_as_a_call_takes)
{
	run_pieces(_metadata, self, variant, 255);
	run_pieces(_metadata, self, variant, 256);
}

TEST_F_TIMEOUT(transfer, ten_MiB_at_once_again_and_again, 60)
{
	uint64_t length = self->rig.export_length;
	int i;

	for (i = 0; i < 3; i++)
		TRY(i, 0, length - i);
}

TEST_HARNESS_MAIN
