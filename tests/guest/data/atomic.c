// SPDX-License-Identifier: GPL-2.0
/*
 * COMPARE_SWAP and FETCH_ADD over a link of the node with itself: the new value of the word,
 * the returned old value, that no other byte changes, and that concurrent atomics of many
 * sessions are serialized.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define WORD		8u
#define LENGTH		(5u * 1024 * 1024)	/* more than two registrations of rxe */
#define PAGE		4096u
#define NR_SESSIONS	6
#define NR_TURNS	64			/* atomics of a call, and in flight */
#define NR_ROUNDS	40

FIXTURE(atomic)
{
	struct rig rig;
	int fd;
};

FIXTURE_SETUP(atomic)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.there = BUFFER_SCATTERED,
		.export_offset = PAGE + 16,
	};

	if (!kx_has_atomics())
		SKIP(return, "the device has no atomics");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->fd = self->rig.client;
}

FIXTURE_TEARDOWN(atomic)
{
	rig_close(&self->rig);
}

/* The word at an offset of the region, or of the target. */
static uint64_t *word_here(const struct rig *rig, uint64_t offset)
{
	return (uint64_t *)(rig->here.bytes + offset);
}

static uint64_t *word_there(const struct rig *rig, uint64_t offset)
{
	return (uint64_t *)(rig->there.bytes + rig->options.export_offset + offset);
}

static int fetch_add(const struct rig *rig, uint64_t here, uint64_t there, uint64_t add)
{
	return kx_atomic(rig->client, KXFER_OP_FETCH_ADD, rig->here_region, here, rig->target,
			 there, add, 0);
}

static int compare_swap(const struct rig *rig, uint64_t here, uint64_t there,
			uint64_t compare, uint64_t swap)
{
	return kx_atomic(rig->client, KXFER_OP_COMPARE_SWAP, rig->here_region, here,
			 rig->target, there, compare, swap);
}

TEST_F(atomic, fetch_add_adds_and_brings_what_was)
{
	static const uint64_t sums[][2] = {
		{ 0, 0 }, { 0, 1 }, { 1, 0 }, { 0xffffffff, 1 }, { 0x0123456789abcdef, 0x1111 },
		{ UINT64_MAX, 1 }, { 5, UINT64_MAX }, { 1ULL << 63, 1ULL << 63 },
		{ UINT64_MAX, UINT64_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
		*word_there(&self->rig, 0) = sums[i][0];
		*word_here(&self->rig, 0) = ~sums[i][0];
		ASSERT_EQ(0, fetch_add(&self->rig, 0, 0, sums[i][1]));
		EXPECT_EQ(sums[i][0] + sums[i][1], *word_there(&self->rig, 0));
		EXPECT_EQ(sums[i][0], *word_here(&self->rig, 0));
	}
}

TEST_F(atomic, compare_swap_swaps_what_is_as_expected)
{
	static const uint64_t swaps[][2] = {
		{ 0, 1 }, { 1, 0 }, { UINT64_MAX, 0 }, { 0x0123456789abcdef, 0xfedcba9876543210 },
		{ 7, 7 },
	};
	size_t i;

	for (i = 0; i < sizeof(swaps) / sizeof(*swaps); i++) {
		*word_there(&self->rig, 0) = swaps[i][0];
		*word_here(&self->rig, 0) = ~swaps[i][0];
		ASSERT_EQ(0, compare_swap(&self->rig, 0, 0, swaps[i][0], swaps[i][1]));
		EXPECT_EQ(swaps[i][1], *word_there(&self->rig, 0));
		EXPECT_EQ(swaps[i][0], *word_here(&self->rig, 0));
	}
}

/* Expects a value that differs in one bit, for each bit. */
TEST_F(atomic, compare_swap_leaves_what_is_not)
{
	uint64_t is = 0x0123456789abcdef;
	int bit;

	*word_there(&self->rig, 0) = is;
	for (bit = 0; bit < 64; bit++) {
		*word_here(&self->rig, 0) = 0;
		ASSERT_EQ(0, compare_swap(&self->rig, 0, 0, is ^ 1ULL << bit, bit));
		EXPECT_EQ(is, *word_there(&self->rig, 0));
		EXPECT_EQ(is, *word_here(&self->rig, 0));
	}
}

static void fill(void *memory, size_t length, uint32_t seed)
{
	struct pattern pattern = { .seed = seed };

	pattern_fill(memory, length, &pattern);
}

/* Around the ends of pages and registrations, which are not at round offsets. */
TEST_F(atomic, changes_its_word_and_no_other_byte)
{
	uint64_t export_length = LENGTH - PAGE - 16, at;
	uint8_t *here = malloc(LENGTH), *there = malloc(LENGTH);
	struct rig *rig = &self->rig;

	ASSERT_LT(2, rig->nr_keys);
	ASSERT_TRUE(here && there);
	fill(rig->here.bytes, LENGTH, 1);
	fill(rig->there.bytes, LENGTH, 2);
	memcpy(here, rig->here.bytes, LENGTH);
	memcpy(there, rig->there.bytes, LENGTH);
	for (at = 0; at + WORD <= export_length; at += at % (PAGE / 2) ? WORD : PAGE / 2 - WORD) {
		uint64_t *expect = (uint64_t *)(there + rig->options.export_offset + at);
		uint64_t from = LENGTH - WORD - at;

		memcpy(here + from, expect, WORD);
		*expect += 0x8000000000000001;
		ASSERT_EQ(0, fetch_add(rig, from, at, 0x8000000000000001));
	}
	EXPECT_EQ(0, memcmp(here, rig->here.bytes, LENGTH));
	EXPECT_EQ(0, memcmp(there, rig->there.bytes, LENGTH));
	free(here);
	free(there);
}

/* ---- order ---- */

static struct kxfer_job add_one(const struct rig *rig, uint32_t turn, uint32_t flags)
{
	struct kxfer_job job = rig_job(rig, KXFER_OP_FETCH_ADD, (uint64_t)turn * WORD, 0, WORD);

	job.flags = flags;
	job.user_data = turn;
	job.compare_add = 1;
	return job;
}

static bool all_well(int fd, uint32_t nr)
{
	struct kxfer_completion done[NR_TURNS + 2];
	uint32_t i;

	if (kx_reap(fd, done, nr, nr, KX_TIMEOUT_MS) != (int)nr)
		return false;
	for (i = 0; i < nr; i++)
		if (done[i].status)
			return false;
	return true;
}

TEST_F(atomic, of_one_session_come_in_order)
{
	struct kxfer_job jobs[NR_TURNS];
	uint32_t flags, round, i;

	*word_there(&self->rig, 0) = 0;
	for (round = 0; round < NR_ROUNDS; round++) {
		flags = round % 2 ? KXFER_JOB_F_BATCH : 0;
		for (i = 0; i < NR_TURNS; i++)
			jobs[i] = add_one(&self->rig, i, flags);
		test_cmd_submit(NR_TURNS, self->fd, jobs, NR_TURNS);
		ASSERT_TRUE(all_well(self->fd, NR_TURNS));
		for (i = 0; i < NR_TURNS; i++)
			ASSERT_EQ(round * NR_TURNS + i, *word_here(&self->rig, i * WORD));
	}
	EXPECT_EQ(NR_ROUNDS * NR_TURNS, *word_there(&self->rig, 0));
}

/* A WRITE before the atomic is seen, and a READ after it sees its result, all in one call. */
TEST_F(atomic, comes_behind_a_write_and_before_a_read)
{
	struct rig *rig = &self->rig;
	uint32_t round;

	for (round = 0; round < NR_ROUNDS; round++) {
		struct kxfer_job jobs[3] = {
			rig_job(rig, KXFER_OP_WRITE, 0, 0, 3 * PAGE),
			add_one(rig, 3 * PAGE / WORD, 0),
			rig_job(rig, KXFER_OP_READ, 4 * PAGE, 0, 3 * PAGE),
		};
		uint64_t last = 3 * PAGE - WORD;

		jobs[1].target_offset = last;
		*word_here(rig, last) = round * 100;
		test_cmd_submit(3, self->fd, jobs, 3);
		ASSERT_TRUE(all_well(self->fd, 3));
		ASSERT_EQ(round * 100, *word_here(rig, 3 * PAGE));
		ASSERT_EQ(round * 100 + 1, *word_here(rig, 4 * PAGE + last));
		ASSERT_EQ(round * 100 + 1, *word_there(rig, last));
	}
}

/* ---- many at once ---- */

struct contender {
	const struct rig *rig;
	pthread_barrier_t *start;
	pthread_t thread;
	uint32_t number;
	int fd;
	uint32_t region;
	uint32_t target;
	uint64_t *words;	/* old value that each atomic returned */
	const char *wrong;
};

/* A separate session, which may use another lane. */
static int join(struct contender *contender)
{
	uint32_t peer;
	int ret;

	contender->words = kx_alloc(NR_ROUNDS * NR_TURNS * WORD);
	contender->fd = kx_open();
	if (contender->fd < 0 || !contender->words)
		return -ENOMEM;
	ret = kx_region_add(contender->fd, contender->words, NR_ROUNDS * NR_TURNS * WORD,
			    KXFER_REGION_F_WRITE, &contender->region);
	if (!ret)
		ret = kx_peer_open(contender->fd, kx_addr(kx_address(), KXFER_PORT), &peer);
	return ret ?: kx_target_open(contender->fd, peer, contender->rig->name,
				     KXFER_RIGHT_ATOMIC, &contender->target);
}

static void *add_many(void *argument)
{
	struct contender *contender = argument;
	struct kxfer_job jobs[NR_TURNS];
	uint32_t round, i;

	pthread_barrier_wait(contender->start);
	for (round = 0; round < NR_ROUNDS && !contender->wrong; round++) {
		for (i = 0; i < NR_TURNS; i++) {
			jobs[i] = add_one(contender->rig, round * NR_TURNS + i, 0);
			jobs[i].region = contender->region;
			jobs[i].target = contender->target;
		}
		if (kx_submit(contender->fd, jobs, NR_TURNS) != NR_TURNS)
			contender->wrong = "a call was refused";
		else if (!all_well(contender->fd, NR_TURNS))
			contender->wrong = "a job failed";
	}
	return NULL;
}

/* A session that finds the word free has won the round; the word then holds its number. */
static void *swap_many(void *argument)
{
	struct contender *contender = argument;
	uint32_t round;

	for (round = 0; round < NR_ROUNDS; round++) {
		pthread_barrier_wait(contender->start);
		if (!contender->wrong &&
		    kx_atomic(contender->fd, KXFER_OP_COMPARE_SWAP, contender->region,
			      (uint64_t)round * WORD, contender->target,
			      (uint64_t)round * WORD, 0, contender->number + 1))
			contender->wrong = "a job failed";
	}
	return NULL;
}

static void contend(struct __test_metadata *_metadata, const struct rig *rig,
		    struct contender *contenders, void *(*work)(void *))
{
	pthread_barrier_t start;
	uint32_t i;

	memset(rig->there.bytes, 0, 2 * PAGE);
	ASSERT_EQ(0, pthread_barrier_init(&start, NULL, NR_SESSIONS));
	for (i = 0; i < NR_SESSIONS; i++) {
		contenders[i] = (struct contender) {
			.rig = rig, .start = &start, .number = i,
		};
		ASSERT_EQ(0, join(&contenders[i]));
	}
	for (i = 0; i < NR_SESSIONS; i++)
		ASSERT_EQ(0, pthread_create(&contenders[i].thread, NULL, work, &contenders[i]));
	for (i = 0; i < NR_SESSIONS; i++)
		pthread_join(contenders[i].thread, NULL);
	for (i = 0; i < NR_SESSIONS; i++) {
		EXPECT_EQ(NULL, contenders[i].wrong);
		close(contenders[i].fd);
	}
	pthread_barrier_destroy(&start);
}

/* The sum is exact, and each smaller number was returned once. */
TEST_F_TIMEOUT(atomic, fetch_adds_of_many_sessions_add_up, 120)
{
	static uint8_t seen[NR_SESSIONS * NR_ROUNDS * NR_TURNS];
	struct contender contenders[NR_SESSIONS];
	uint32_t i, n;
	uint64_t was;

	contend(_metadata, &self->rig, contenders, add_many);
	EXPECT_EQ(sizeof(seen), *word_there(&self->rig, 0));
	for (i = 0; i < NR_SESSIONS; i++)
		for (n = 0; n < NR_ROUNDS * NR_TURNS; n++) {
			was = contenders[i].words[n];
			ASSERT_GT(sizeof(seen), was);
			ASSERT_EQ(0, seen[was]);
			seen[was] = 1;
			ASSERT_TRUE(!n || was > contenders[i].words[n - 1]);
		}
}

TEST_F_TIMEOUT(atomic, compare_swap_lets_one_of_many_win, 120)
{
	struct contender contenders[NR_SESSIONS];
	uint64_t winner, was;
	uint32_t round, i;

	contend(_metadata, &self->rig, contenders, swap_many);
	for (round = 0; round < NR_ROUNDS; round++) {
		winner = *word_there(&self->rig, (uint64_t)round * WORD);
		ASSERT_LT(0, winner);
		ASSERT_GE(NR_SESSIONS, winner);
		for (i = 0; i < NR_SESSIONS; i++) {
			was = contenders[i].words[round];
			ASSERT_EQ(i + 1 == winner ? 0 : winner, was);
		}
	}
}

TEST_HARNESS_MAIN
