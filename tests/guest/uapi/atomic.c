// SPDX-License-Identifier: GPL-2.0
/*
 * COMPARE_SWAP and FETCH_ADD: which jobs are refused, with which errno, and that nothing is
 * posted then. On a device without atomics all of them are refused.
 */
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define LENGTH	(64UL << 10)
#define WORD	8

static const uint32_t ops[] = { KXFER_OP_COMPARE_SWAP, KXFER_OP_FETCH_ADD };

#define each_op(op)	for (size_t i__ = 0; i__ < 2 && ((op) = ops[i__], true); i__++)

FIXTURE(atomic)
{
	struct kx_pair pair;
	int fd;			/* session of the client */
	struct kxfer_job job;	/* a FETCH_ADD on the first word; tests change one member */
	uint64_t *here;
	uint64_t *there;
	uint64_t posted;
};

FIXTURE_SETUP(atomic)
{
	if (!kx_has_atomics())
		SKIP(return, "the device has no atomics");
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->fd = self->pair.client;
	self->here = (uint64_t *)self->pair.client_memory;
	self->there = (uint64_t *)self->pair.server_memory;
	self->job = (struct kxfer_job) {
		.op = KXFER_OP_FETCH_ADD,
		.region = self->pair.client_region,
		.target = self->pair.target,
		.length = WORD,
		.user_data = 42,
		.compare_add = 1,
	};
	self->posted = kx_counter(self->fd, "wr_posted");
}

FIXTURE_TEARDOWN(atomic)
{
	kx_pair_close(&self->pair);
}

/* Each member is tried alone, so that one error does not hide another. */
#define REFUSED(err, member, value) do {				\
	struct kxfer_job bad__ = self->job;				\
									\
	each_op(bad__.op) {						\
		bad__.member = (value);					\
		test_err_submit(err, self->fd, &bad__, 1);		\
	}								\
	EXPECT_EQ(self->posted, kx_counter(self->fd, "wr_posted"));	\
} while (0)

TEST_F(atomic, is_a_feature)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_ATOMIC);
}

TEST_F(atomic, moves_a_word_and_tells_so)
{
	uint64_t before = kx_counter(self->fd, "atomics");
	struct kxfer_completion completion;

	each_op(self->job.op) {
		*self->there = 5;
		test_cmd_submit(1, self->fd, &self->job, 1);
		test_cmd_reap(1, self->fd, &completion, 1, 1, KX_TIMEOUT_MS);
		EXPECT_EQ(42, completion.user_data);
		EXPECT_EQ(WORD, completion.bytes);
		EXPECT_EQ(0, completion.status);
		EXPECT_EQ(self->job.op, completion.op);
		EXPECT_EQ(5, *self->here);
	}
	EXPECT_EQ(before + 2, kx_counter(self->fd, "atomics"));
}

TEST_F(atomic, is_of_eight_bytes)
{
	static const uint64_t lengths[] = { 0, 1, 4, 7, 9, 16, 4096, UINT64_MAX };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		REFUSED(EINVAL, length, lengths[i]);
}

TEST_F(atomic, needs_an_aligned_word_there)
{
	int at;

	for (at = 1; at < WORD; at++) {
		REFUSED(EINVAL, target_offset, at);
		REFUSED(EINVAL, target_offset, 4096 - at);
	}
	test_cmd_atomic(self->fd, KXFER_OP_FETCH_ADD, self->pair.client_region, 0,
			self->pair.target, 4096 - WORD, 1, 0);
	EXPECT_EQ(1, self->there[4096 / WORD - 1]);
}

TEST_F(atomic, needs_an_aligned_word_here)
{
	int at;

	for (at = 1; at < WORD; at++) {
		REFUSED(EINVAL, region_offset, at);
		REFUSED(EINVAL, region_offset, 4096 - at);
	}
	self->there[0] = 77;
	test_cmd_atomic(self->fd, KXFER_OP_FETCH_ADD, self->pair.client_region, 4096 - WORD,
			self->pair.target, 0, 1, 0);
	EXPECT_EQ(77, self->here[4096 / WORD - 1]);
}

/* If an export begins within a word, no offset leads to an aligned word. */
TEST_F(atomic, is_aligned_where_it_was_exported)
{
	uint32_t export_id, target, begin;
	uint64_t at;
	char name[16];

	for (begin = 1; begin < WORD; begin++) {
		snprintf(name, sizeof(name), "begin-%u", begin);
		test_cmd_export_add(self->pair.server, self->pair.server_region, begin, 64,
				    KXFER_RIGHT_ATOMIC, name, &export_id);
		test_cmd_target_open(self->fd, self->pair.peer, name, 0, &target);
		for (at = 0; at < WORD; at++)
			EXPECT_EQ((begin + at) % WORD ? -EINVAL : 0,
				  kx_atomic(self->fd, KXFER_OP_FETCH_ADD,
					    self->pair.client_region, 0, target, at, 1, 0));
		EXPECT_EQ(begin, self->there[1]);
	}
	EXPECT_EQ(0, self->there[0]);
	EXPECT_EQ(self->posted + WORD - 1, kx_counter(self->fd, "wr_posted"));
}

TEST_F(atomic, is_aligned_where_the_region_is)
{
	uint32_t region, begin;
	uint64_t at;

	for (begin = 1; begin < WORD; begin++) {
		test_cmd_region_add(self->fd, self->pair.client_memory + begin, 64,
				    KXFER_REGION_F_WRITE, &region);
		for (at = 0; at < WORD; at++)
			EXPECT_EQ((begin + at) % WORD ? -EINVAL : 0,
				  kx_atomic(self->fd, KXFER_OP_FETCH_ADD, region, at,
					    self->pair.target, 0, 1, 0));
		EXPECT_EQ(begin - 1, self->here[1]);
	}
	EXPECT_EQ(0, self->here[0]);
}

TEST_F(atomic, stays_inside_region_and_target)
{
	REFUSED(ERANGE, region_offset, LENGTH);
	REFUSED(ERANGE, region_offset, LENGTH - 4);
	REFUSED(EOVERFLOW, region_offset, UINT64_MAX - 7);
	REFUSED(ERANGE, target_offset, LENGTH);
	REFUSED(ERANGE, target_offset, LENGTH - 4);
	REFUSED(EOVERFLOW, target_offset, UINT64_MAX - 7);
	test_cmd_atomic(self->fd, KXFER_OP_FETCH_ADD, self->pair.client_region, LENGTH - WORD,
			self->pair.target, LENGTH - WORD, 1, 0);
	EXPECT_EQ(1, self->there[LENGTH / WORD - 1]);
}

TEST_F(atomic, needs_a_region_and_a_target)
{
	REFUSED(ENOENT, region, 0);
	REFUSED(ENOENT, region, 77);
	REFUSED(ENOENT, target, 0);
	REFUSED(ENOENT, target, 77);
}

TEST_F(atomic, needs_its_own_right)
{
	static const uint32_t rights[] = {
		KXFER_RIGHT_READ, KXFER_RIGHT_WRITE, KXFER_RIGHT_READ | KXFER_RIGHT_WRITE,
	};
	uint32_t target;
	size_t i;

	for (i = 0; i < sizeof(rights) / sizeof(*rights); i++) {
		test_cmd_target_open(self->fd, self->pair.peer, self->pair.name, rights[i],
				     &target);
		REFUSED(EACCES, target, target);
	}
}

TEST_F(atomic, right_is_for_nothing_else)
{
	uint32_t target;

	test_cmd_target_open(self->fd, self->pair.peer, self->pair.name, KXFER_RIGHT_ATOMIC,
			     &target);
	test_cmd_atomic(self->fd, KXFER_OP_FETCH_ADD, self->pair.client_region, 0, target, 0,
			1, 0);
	test_err_transfer(EACCES, self->fd, KXFER_OP_READ, self->pair.client_region, 0, target,
			  0, WORD);
	test_err_transfer(EACCES, self->fd, KXFER_OP_WRITE, self->pair.client_region, 0, target,
			  0, WORD);
	test_err_notify(EACCES, self->fd, target, 1);
}

TEST_F(atomic, needs_a_writable_region)
{
	uint32_t frozen;

	test_cmd_region_add(self->fd, self->pair.client_memory, LENGTH, 0, &frozen);
	REFUSED(EACCES, region, frozen);
}

TEST_F(atomic, takes_flags_of_completion_and_order)
{
	REFUSED(EINVAL, flags, KXFER_JOB_F_LOCAL_ONLY);
	REFUSED(EINVAL, flags, KXFER_JOB_F_ALL);
	REFUSED(EOPNOTSUPP, flags, KXFER_JOB_F_ALL + 1);
	self->job.flags = KXFER_JOB_F_BATCH | KXFER_JOB_F_FENCE | KXFER_JOB_F_ORDERED;
	each_op(self->job.op)
		test_cmd_submit(1, self->fd, &self->job, 1);
}

TEST_F(atomic, has_no_cookie)
{
	REFUSED(EINVAL, cookie, 1);
}

TEST_F(atomic, that_adds_swaps_nothing)
{
	self->job.swap = 1;
	test_err_submit(EINVAL, self->fd, &self->job, 1);
	EXPECT_EQ(self->posted, kx_counter(self->fd, "wr_posted"));
}

/* The bytes after a job of 64 bytes are the next job, not operands. */
TEST_F(atomic, of_callers_who_know_no_operands_has_zeros)
{
	struct kxfer_job job = self->job;
	char old[3][KXFER_JOB_SIZE_MIN];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)old,
		.nr_jobs = 2,
		.stride = KXFER_JOB_SIZE_MIN,
	};
	struct kxfer_completion completions[2];

	memset(old, 0xff, sizeof(old));
	memcpy(old[0], &job, KXFER_JOB_SIZE_MIN);
	job.op = KXFER_OP_COMPARE_SWAP;
	job.region_offset = WORD;
	memcpy(old[1], &job, KXFER_JOB_SIZE_MIN);
	self->there[0] = 9;
	ASSERT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	ASSERT_EQ(2, cmd.accepted);
	test_cmd_reap(2, self->fd, completions, 2, 2, KX_TIMEOUT_MS);
	EXPECT_EQ(9, self->there[0]);
	EXPECT_EQ(9, self->here[0]);
	EXPECT_EQ(9, self->here[1]);
}

TEST_F(atomic, on_ping_is_refused)
{
	uint32_t ping;

	test_err_target_open(EACCES, self->fd, self->pair.peer, KXFER_PING_NAME,
			     KXFER_RIGHT_ATOMIC, &ping);
	test_cmd_target_open(self->fd, self->pair.peer, KXFER_PING_NAME, 0, &ping);
	REFUSED(EACCES, target, ping);
}

/* ---- runs of atomics ---- */

#define NR_WORDS	7	/* words of a run */
#define STRIDE		72	/* bytes between two words */

/* A run on words that are @STRIDE apart. */
static struct kxfer_bench run_of(const struct _test_data_atomic *self, uint32_t op,
				 uint64_t *words)
{
	return (struct kxfer_bench) {
		.size = sizeof(struct kxfer_bench),
		.op = op,
		.region = self->job.region,
		.target = self->job.target,
		.depth = NR_WORDS,
		.list = 3,
		.signal = 2,
		.length = WORD,
		.stride = STRIDE,
		.warm_up = 4,
		.count = 2 * NR_WORDS + 1,
		.time_limit_ms = KX_TIMEOUT_MS,
		.words = op == KXFER_OP_COMPARE_SWAP ? (uintptr_t)words : 0,
	};
}

/* How often a slot had its turn, including the warm-up. */
static uint64_t turns(const struct kxfer_bench *cmd, uint32_t slot)
{
	return (cmd->warm_up + cmd->count - slot + NR_WORDS - 1) / NR_WORDS;
}

#define AT(memory, slot)	((memory)[(slot) * STRIDE / WORD])

TEST_F(atomic, is_benched)
{
	uint64_t words[NR_WORDS];
	struct kxfer_bench cmd;
	uint32_t op, memory, i;

	for (memory = 0; memory <= KXFER_BENCH_MEMORY_MR_EACH; memory++)
		each_op(op) {
			for (i = 0; i < NR_WORDS; i++)
				words[i] = AT(self->there, i) = 1000 + i;
			memset(self->here, 0, LENGTH);
			cmd = run_of(self, op, words);
			cmd.memory = memory;
			ASSERT_EQ(0, kx_call(self->fd, KXFER_BENCH, &cmd));
			EXPECT_EQ(cmd.count, cmd.operations);
			for (i = 0; i < NR_WORDS; i++) {
				EXPECT_EQ(1000 + i + turns(&cmd, i), AT(self->there, i));
				EXPECT_EQ(AT(self->there, i) - 1, AT(self->here, i));
				EXPECT_EQ(cmd.words ? AT(self->there, i) : 1000 + i,
					  words[i]);
			}
		}
}

TEST_F(atomic, of_a_run_swaps_only_what_is_as_thought)
{
	uint64_t words[NR_WORDS] = { 5, 6 };
	struct kxfer_bench cmd = run_of(self, KXFER_OP_COMPARE_SWAP, words);

	AT(self->there, 0) = 5;
	AT(self->there, 1) = 5;
	ASSERT_EQ(0, kx_call(self->fd, KXFER_BENCH, &cmd));
	EXPECT_EQ(5 + turns(&cmd, 0), AT(self->there, 0));
	EXPECT_EQ(5, AT(self->there, 1));
}

#define RUN_REFUSED(err, member, value) do {				\
	struct kxfer_bench bad__;					\
	uint32_t op__;							\
									\
	each_op(op__) {							\
		bad__ = run_of(self, op__, words);			\
		bad__.member = (value);					\
		EXPECT_EQ(-(err), kx_call(self->fd, KXFER_BENCH, &bad__)); \
	}								\
	EXPECT_EQ(self->posted, kx_counter(self->fd, "wr_posted"));	\
} while (0)

TEST_F(atomic, of_a_run_is_a_word_that_may_be_changed)
{
	uint64_t words[NR_WORDS] = {};
	uint32_t region, target;

	RUN_REFUSED(EINVAL, length, 4);
	RUN_REFUSED(EINVAL, length, 16);
	RUN_REFUSED(EINVAL, region_offset, 4);
	RUN_REFUSED(EINVAL, target_offset, 1);
	RUN_REFUSED(EINVAL, stride, 12);
	RUN_REFUSED(ERANGE, target_offset, LENGTH - WORD);
	test_cmd_target_open(self->fd, self->pair.peer, self->pair.name,
			     KXFER_RIGHT_READ | KXFER_RIGHT_WRITE, &target);
	RUN_REFUSED(EACCES, target, target);
	test_cmd_region_add(self->fd, self->here, LENGTH, 0, &region);
	RUN_REFUSED(EACCES, region, region);
}

TEST_F(atomic, of_a_run_has_words_if_it_compares)
{
	uint64_t *cut = kx_before_hole((NR_WORDS - 1) * WORD), words[NR_WORDS] = {};
	struct kxfer_bench cmd = run_of(self, KXFER_OP_COMPARE_SWAP, words);

	cmd.words = 0;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_BENCH, &cmd));
	cmd.words = (uintptr_t)cut;
	EXPECT_EQ(-EFAULT, kx_call(self->fd, KXFER_BENCH, &cmd));
	cmd.words = 8;
	EXPECT_EQ(-EFAULT, kx_call(self->fd, KXFER_BENCH, &cmd));
	cmd.words = (uintptr_t)words;
	cmd.op = KXFER_OP_FETCH_ADD;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_BENCH, &cmd));
	cmd.op = KXFER_OP_WRITE;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_BENCH, &cmd));
	EXPECT_EQ(self->posted, kx_counter(self->fd, "wr_posted"));
}

TEST_F(atomic, of_a_withdrawn_export_is_not_posted)
{
	test_cmd_export_del(self->pair.server, self->pair.export_id);
	EXPECT_EQ(-EKEYREVOKED, kx_atomic(self->fd, KXFER_OP_FETCH_ADD,
					  self->pair.client_region, 0, self->pair.target, 0, 1,
					  0));
	EXPECT_EQ(0, *self->there);
	EXPECT_EQ(self->posted, kx_counter(self->fd, "wr_posted"));
}

/* ---- a device without atomics ---- */

static int bench_word(const struct kx_pair *pair)
{
	struct kxfer_bench cmd = {
		.size = sizeof(cmd),
		.op = KXFER_OP_FETCH_ADD,
		.region = pair->client_region,
		.target = pair->target,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.length = WORD,
		.count = 1,
		.time_limit_ms = KX_TIMEOUT_MS,
	};

	return kx_call(pair->client, KXFER_BENCH, &cmd);
}

TEST(without_a_device_that_has_them_atomics_are_refused)
{
	struct kxfer_info_device device;
	uint64_t cursor = 0, posted;
	struct kx_pair pair;
	uint32_t op;

	ASSERT_EQ(0, kx_pair_open(&pair, LENGTH, KXFER_RIGHT_ALL));
	ASSERT_EQ(1, kx_info(pair.client, KXFER_INFO_DEVICES, &device, sizeof(device), 1,
			     &cursor));
	EXPECT_EQ(kx_has_atomics(), !!(device.flags & KXFER_DEVICE_ATOMIC));
	posted = kx_counter(pair.client, "wr_posted");
	if (!kx_has_atomics()) {
		each_op(op)
			test_err_atomic(EOPNOTSUPP, pair.client, op, pair.client_region, 0,
					pair.target, 0, 1, 0);
		EXPECT_EQ(-EOPNOTSUPP, bench_word(&pair));
		EXPECT_EQ(posted, kx_counter(pair.client, "wr_posted"));
	}
	/* Some providers stop working after an unknown operation. */
	test_cmd_transfer(pair.client, KXFER_OP_WRITE, pair.client_region, 0, pair.target, 0,
			  LENGTH);
	kx_pair_close(&pair);
}

TEST_HARNESS_MAIN
