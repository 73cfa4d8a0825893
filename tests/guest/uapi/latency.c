// SPDX-License-Identifier: GPL-2.0
/*
 * INFO_LATENCIES: each job of a lane is counted once, by its own time; which users see it.
 *
 * A completion has both of its job's times. So what the records have to be is computed from the
 * completions, and compared exactly.
 */
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "rigs/post.h"

#define LENGTH	(1024 * 1024UL)
#define NR	64
#define RECORDS	128
#define WAIT_MS	200

/* What is counted of an op on all lanes. */
struct sums {
	uint64_t nr_failed;
	uint64_t sum_ns;
	uint64_t buckets[KXFER_LATENCY_BUCKETS];
};

FIXTURE(latency)
{
	struct kx_pair pair;
	int fd;
	struct kxfer_completion done[NR];
	struct sums before;
};

FIXTURE_SETUP(latency)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->fd = self->pair.client;
}

FIXTURE_TEARDOWN(latency)
{
	kx_pair_close(&self->pair);
}

/* Reads one record a call, so that each is found by its cursor. Return: records, or -errno. */
static int add_up(int fd, uint32_t op, struct sums *sums)
{
	struct kxfer_info_latency record;
	uint64_t cursor = 0, last = 0;
	int nr, records = 0, i;

	*sums = (struct sums) { 0 };
	while ((nr = kx_info(fd, KXFER_INFO_LATENCIES, &record, sizeof(record), 1, &cursor)) == 1) {
		if (record.id <= last || record.id != cursor || record.id >> 3 != record.lane ||
		    record.lane >> 4 != record.link || (record.id & 7) != record.op)
			return -EPROTO;
		last = record.id;
		records++;
		if (record.op != op)
			continue;
		sums->nr_failed += record.nr_failed;
		sums->sum_ns += record.sum_ns;
		for (i = 0; i < KXFER_LATENCY_BUCKETS; i++)
			sums->buckets[i] += record.buckets[i];
	}
	return nr < 0 ? nr : records;
}

/* As the uapi header says, and not as the module computes it. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t i = 0;

	while (i + 1 < KXFER_LATENCY_BUCKETS && ns >= (5ULL + i % 4) << (8 + i / 4))
		i++;
	return i;
}

static void run_jobs(struct __test_metadata *_metadata, FIXTURE_DATA(latency) *self, uint32_t op,
		     uint64_t length)
{
	struct kxfer_job jobs[NR] = { 0 };
	uint32_t i;

	for (i = 0; i < NR; i++)
		jobs[i] = (struct kxfer_job) {
			.op = op,
			.user_data = i,
			.region = length ? self->pair.client_region : 0,
			.target = self->pair.target,
			.length = length,
		};
	test_cmd_submit(NR, self->fd, jobs, NR);
	test_cmd_reap(NR, self->fd, self->done, NR, NR, KX_TIMEOUT_MS);
}

/* The records have grown by the jobs of @done and nothing else. */
static void expect_counted(struct __test_metadata *_metadata, FIXTURE_DATA(latency) *self,
			   uint32_t op)
{
	struct sums after, expected = self->before;
	uint32_t i;

	for (i = 0; i < NR; i++) {
		uint64_t ns = self->done[i].completed_ns - self->done[i].submitted_ns;

		ASSERT_EQ(0, self->done[i].status);
		expected.sum_ns += ns;
		expected.buckets[bucket_of(ns)]++;
	}
	ASSERT_LE(1, add_up(self->fd, op, &after));
	EXPECT_EQ(expected.nr_failed, after.nr_failed);
	EXPECT_EQ(expected.sum_ns, after.sum_ns);
	for (i = 0; i < KXFER_LATENCY_BUCKETS; i++)
		EXPECT_EQ(expected.buckets[i], after.buckets[i])
			TH_LOG("bucket %u", i);
}

static void run_and_compare(struct __test_metadata *_metadata, FIXTURE_DATA(latency) *self,
			    uint32_t op, uint64_t length)
{
	ASSERT_LE(0, add_up(self->fd, op, &self->before));
	run_jobs(_metadata, self, op, length);
	expect_counted(_metadata, self, op);
}

/* Jobs of one work request, which the module ends in another way than longer ones. */
TEST_F(latency, of_short_jobs)
{
	run_and_compare(_metadata, self, KXFER_OP_READ, 64);
	run_and_compare(_metadata, self, KXFER_OP_WRITE, 64);
}

TEST_F(latency, of_long_jobs)
{
	run_and_compare(_metadata, self, KXFER_OP_READ, LENGTH);
	run_and_compare(_metadata, self, KXFER_OP_WRITE, LENGTH);
}

TEST_F(latency, of_messages)
{
	run_and_compare(_metadata, self, KXFER_OP_NOTIFY, 0);
}

TEST_F(latency, of_atomics)
{
	if (!kx_has_atomics())
		SKIP(return, "the device has no atomics");
	run_and_compare(_metadata, self, KXFER_OP_FETCH_ADD, 8);
}

/* The second message waits until the first is received: its time is in a high bucket. */
TEST_F(latency, of_a_job_that_waited)
{
	struct kxfer_completion done[2];
	struct kxfer_job jobs[2];
	struct sums after;
	struct post post;
	uint64_t ns;

	ASSERT_EQ(0, post_open(&post, 1, POST_PLACE / 2));
	ASSERT_LE(0, add_up(post.client, KXFER_OP_SEND, &self->before));
	jobs[0] = post_send(&post, 0, 100);
	jobs[1] = post_send(&post, 1, 100);
	jobs[1].flags = KXFER_JOB_F_WAIT;
	test_cmd_submit(2, post.client, jobs, 2);
	kx_sleep_ms(WAIT_MS);
	jobs[0] = post_recv(&post, 0);
	jobs[1] = post_recv(&post, 1);
	test_cmd_submit(2, post.server, jobs, 2);
	test_cmd_reap(2, post.client, done, 2, 2, KX_TIMEOUT_MS);
	ASSERT_EQ(1, done[1].user_data);
	ns = done[1].completed_ns - done[1].submitted_ns;
	EXPECT_LE(WAIT_MS * 900000ULL, ns);
	ASSERT_LE(1, add_up(post.client, KXFER_OP_SEND, &after));
	EXPECT_LE(1, after.buckets[bucket_of(ns)] - self->before.buckets[bucket_of(ns)]);
	EXPECT_EQ(self->before.sum_ns + ns + done[0].completed_ns - done[0].submitted_ns,
		  after.sum_ns);
	test_cmd_reap(2, post.server, done, 2, 2, KX_TIMEOUT_MS);
	post_close(&post);
}

/* One that fails counts as failed, and in no bucket. */
TEST_F(latency, leaves_out_the_time_of_a_job_that_failed)
{
	struct kxfer_query query;
	struct sums after;
	uint32_t i;

	test_cmd_query(self->pair.server, &query);
	for (i = 0; i < query.max_events; i++)
		test_cmd_notify(self->fd, self->pair.target, i);
	ASSERT_LE(1, add_up(self->fd, KXFER_OP_NOTIFY, &self->before));
	test_err_notify(EAGAIN, self->fd, self->pair.target, 0);
	ASSERT_LE(1, add_up(self->fd, KXFER_OP_NOTIFY, &after));
	EXPECT_EQ(self->before.nr_failed + 1, after.nr_failed);
	EXPECT_EQ(self->before.sum_ns, after.sum_ns);
	EXPECT_EQ(0, memcmp(self->before.buckets, after.buckets, sizeof(after.buckets)));
}

/* The lists of one call and of one call a record are the same. */
TEST_F(latency, lists_many_records_in_a_call)
{
	struct kxfer_info_latency records[RECORDS];
	uint64_t cursor = 0;
	struct sums sums;
	int nr, i;

	run_jobs(_metadata, self, KXFER_OP_READ, 64);
	run_jobs(_metadata, self, KXFER_OP_WRITE, LENGTH);
	nr = kx_info(self->fd, KXFER_INFO_LATENCIES, records, sizeof(records[0]), RECORDS, &cursor);
	ASSERT_LE(2, nr);
	EXPECT_EQ(nr, add_up(self->fd, KXFER_OP_READ, &sums));
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, records[i].__reserved);
}

/* As with lanes: those of the links on which the user has a peer. */
TEST_F(latency, is_for_users_of_the_link)
{
	struct sums sums;
	int other;

	run_jobs(_metadata, self, KXFER_OP_READ, 64);
	other = kx_open();
	ASSERT_LE(0, other);
	ASSERT_EQ(0, kx_become_tester());
	EXPECT_LE(1, add_up(self->fd, KXFER_OP_READ, &sums));
	EXPECT_EQ(0, add_up(self->pair.server, KXFER_OP_READ, &sums));
	EXPECT_EQ(0, add_up(other, KXFER_OP_READ, &sums));
	close(other);
}

TEST_HARNESS_MAIN
