// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that falls silent: its packets are dropped without an answer. All jobs end with
 * ECONNRESET, and nothing is delayed for longer than 15 s. A link to another peer goes on. When
 * the peer is back, TARGET_OPEN connects anew.
 *
 * Method: see harness/second.h.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/second.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB		(1024u * 1024)
#define LENGTH		(8 * MIB)	/* so long that the jobs cannot end in time */
#define NR_JOBS		64
#define BOUND_MS	(20000 * kx_slowness())	/* 10 s, and the endings on a busy host */

static bool is_siw(void)
{
	return !strcmp(kx_provider(), "siw");
}

FIXTURE(silence)
{
	struct rig rig;
	struct baseline baseline;
	int fd;
};

FIXTURE_SETUP(silence)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.address = SECOND_ADDRESS,
	};

	self->rig = (struct rig) { .server = -1, .client = -1 };
	if (!second_available())
		SKIP(return, "needs root and the network of the test machine");
	second_add();
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(kx_wait_until(!rig_open(&self->rig, &options) ||
				  (rig_close(&self->rig), false), 10000));
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(silence)
{
	second_add();
	rig_close(&self->rig);
	close(self->fd);
	second_remove();
}

static int submit_many(const struct rig *rig)
{
	struct kxfer_job jobs[NR_JOBS];
	int i;

	for (i = 0; i < NR_JOBS; i++)
		jobs[i] = rig_job(rig, KXFER_OP_READ, 0, 0, LENGTH);
	return kx_submit(rig->client, jobs, NR_JOBS);
}

static uint64_t ms_since(uint64_t before)
{
	return (kx_now_ns() - before) / 1000000;
}

TEST_F_TIMEOUT(silence, jobs_end_and_target_open_connects_anew, 90)
{
	struct rig_options options = { .length = LENGTH };
	struct kxfer_completion done[NR_JOBS + 1];
	struct kxfer_job late;
	struct rig other;
	int i, reset = 0, well = 0;
	uint64_t before;

	ASSERT_EQ(0, rig_open(&other, &options));
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig));
	ASSERT_EQ(0, second_silence());
	before = kx_now_ns();
	/* On a slow machine the other jobs may have ended by now. */
	late = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, 64);
	ASSERT_EQ(1, kx_submit(self->rig.client, &late, 1));
	/* The link from the node's first address to itself is a different link. */
	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, rig_move(&other, KXFER_OP_WRITE, 0, 0, 65536));
	ASSERT_EQ(NR_JOBS + 1, kx_reap(self->rig.client, done, NR_JOBS + 1, NR_JOBS + 1,
				       RIG_WAIT_MS));
	TH_LOG("jobs had ended after %llu ms", (unsigned long long)ms_since(before));
	EXPECT_GT(BOUND_MS, ms_since(before));
	for (i = 0; i < NR_JOBS + 1; i++) {
		well += done[i].status == 0;
		reset += done[i].status == -ECONNRESET;
	}
	EXPECT_EQ(NR_JOBS + 1, well + reset);
	EXPECT_LT(0, reset);
	/* A target of a broken link stays broken, and reports that at once. */
	EXPECT_EQ(-ECONNRESET, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 1));
	EXPECT_EQ(0, rig_move(&other, KXFER_OP_READ, 0, 0, LENGTH));
	rig_close(&other);

	ASSERT_EQ(0, second_add());
	ASSERT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	ASSERT_TRUE(kx_wait_until(!kx_target_open(self->rig.client, self->rig.peer,
						  self->rig.name, 0, &self->rig.target),
				  20000));
	rig_prepare(&self->rig, KXFER_OP_WRITE);
	EXPECT_EQ(NULL, rig_try(&self->rig, KXFER_OP_WRITE, 1, 2, MIB));
}

/*
 * Jobs that a flag holds until READs have ended, which never do: these jobs end with their link
 * and change nothing later, and jobs on the new target do not wait for them.
 */
TEST_F_TIMEOUT(silence, held_jobs_end_with_their_link, 90)
{
	const uint32_t flags[2] = { KXFER_JOB_F_FENCE, KXFER_JOB_F_ORDERED };
	struct kxfer_completion done[NR_JOBS + 2];
	struct kxfer_job held[2];
	int i;

	memset(self->rig.there.bytes, 0x11, 64);
	memset(self->rig.here.bytes + LENGTH - 64, 0x22, 64);
	ASSERT_EQ(0, second_silence());
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig));
	for (i = 0; i < 2; i++) {
		held[i] = rig_job(&self->rig, KXFER_OP_WRITE, LENGTH - 64, 0, 64);
		held[i].flags = flags[i];
		held[i].user_data = 1 + i;
	}
	ASSERT_EQ(2, kx_submit(self->rig.client, held, 2));
	ASSERT_EQ(NR_JOBS + 2, kx_reap(self->rig.client, done, NR_JOBS + 2, NR_JOBS + 2,
				       RIG_WAIT_MS));
	for (i = 0; i < NR_JOBS + 2; i++)
		EXPECT_EQ(-ECONNRESET, done[i].status);

	ASSERT_EQ(0, second_add());
	ASSERT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	ASSERT_TRUE(kx_wait_until(!kx_target_open(self->rig.client, self->rig.peer,
						  self->rig.name, 0, &self->rig.target),
				  20000));
	EXPECT_EQ(0x11, self->rig.there.bytes[0]);
	held[1].target = self->rig.target;
	ASSERT_EQ(1, kx_submit(self->rig.client, &held[1], 1));
	ASSERT_EQ(1, kx_reap(self->rig.client, done, 1, 1, RIG_WAIT_MS));
	EXPECT_EQ(0, done[0].status);
	EXPECT_EQ(0x22, self->rig.there.bytes[63]);
}

struct closer {
	int fd;
	uint64_t ms;
};

static void *close_and_time(void *argument)
{
	struct closer *closer = argument;
	uint64_t before = kx_now_ns();

	close(closer->fd);
	closer->ms = ms_since(before);
	return NULL;
}

/* Closes both ends at once: one releases jobs, the other an export. */
static void close_both(struct __test_metadata *_metadata, struct rig *rig)
{
	struct closer client = { .fd = rig->client };
	struct closer server = { .fd = rig->server };
	pthread_t threads[2];

	ASSERT_EQ(0, pthread_create(&threads[0], NULL, close_and_time, &server));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, close_and_time, &client));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	rig->client = -1;
	rig->server = -1;
	TH_LOG("close() took %llu ms at the client, %llu ms at the exporter",
	       (unsigned long long)client.ms, (unsigned long long)server.ms);
	EXPECT_GT(BOUND_MS, client.ms);
	EXPECT_GT(BOUND_MS, server.ms);
	rig_close(rig);
	EXPECT_EQ(0, baseline_pinned_kib());
}

TEST_F_TIMEOUT(silence, close_returns_at_both_ends, 90)
{
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig));
	ASSERT_EQ(0, second_silence());
	close_both(_metadata, &self->rig);
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
	EXPECT_EQ(1, kx_counter(self->fd, "live_sessions"));
}

/* The socket accepts the WRITE, but the placement READ is never answered. */
TEST_F_TIMEOUT(silence, close_does_not_wait_for_a_fence_for_ever, 90)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, 65536);
	struct kxfer_completion done;

	if (!is_siw())
		SKIP(return, "iWARP alone has WRITEs that complete before they are placed");
	job.flags = KXFER_JOB_F_LOCAL_ONLY;
	ASSERT_EQ(0, second_silence());
	ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, BOUND_MS));
	EXPECT_EQ(0, done.status);
	close_both(_metadata, &self->rig);
}

TEST_F_TIMEOUT(silence, idle_link_is_found_dead, 90)
{
	uint64_t lost = kx_counter(self->fd, "links_lost"), before = kx_now_ns();
	struct kxfer_content content;

	ASSERT_EQ(0, second_silence());
	EXPECT_TRUE(kx_wait_until(kx_target_info(self->rig.client, self->rig.target, 0, 100,
						 &content) == -ECONNRESET, BOUND_MS));
	TH_LOG("found after %llu ms", (unsigned long long)ms_since(before));
	EXPECT_LT(lost, kx_counter(self->fd, "links_lost"));
	EXPECT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	EXPECT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	EXPECT_GT(BOUND_MS, ms_since(before));
}

/* ---- the patience that a caller asks for ---- */

/* Return: ms until the client's end of the link is gone, or until @bound_ms. */
static uint64_t ms_until_lost(struct _test_data_silence *self, uint64_t bound_ms)
{
	uint64_t before = kx_now_ns();
	struct kxfer_content content;

	kx_wait_until(kx_target_info(self->rig.client, self->rig.target, 0, 100, &content) ==
		      -ECONNRESET, bound_ms);
	return ms_since(before);
}

static int open_again(struct _test_data_silence *self, const struct rig_options *options)
{
	rig_close(&self->rig);
	return rig_open(&self->rig, options);
}

TEST_F_TIMEOUT(silence, of_a_second_is_found_in_two, 90)
{
	struct rig_options options = {
		.length = LENGTH,
		.address = SECOND_ADDRESS,
		.silence_ms = 1000,
	};
	uint64_t ms;

	ASSERT_EQ(0, open_again(self, &options));
	ASSERT_EQ(0, second_silence());
	ms = ms_until_lost(self, BOUND_MS);
	TH_LOG("found after %llu ms", (unsigned long long)ms);
	EXPECT_GT(2000 + 1000 * kx_slowness(), ms);
}

/* RoCE alone: TCP acknowledges for siw. Without a choice all tries take 4.3 s. */
TEST_F_TIMEOUT(silence, is_found_when_the_device_gives_up, 90)
{
	struct rig_options options = {
		.length = LENGTH,
		.address = SECOND_ADDRESS,
		.ack_timeout = 14,
		.retry_count = 1,
	};
	uint64_t ms;

	if (is_siw())
		SKIP(return, "the device of iWARP is TCP");
	ASSERT_EQ(0, open_again(self, &options));
	ASSERT_EQ(0, second_silence());
	ms = ms_until_lost(self, BOUND_MS);
	TH_LOG("found after %llu ms", (unsigned long long)ms);
	EXPECT_GT(2000 + 1000 * kx_slowness(), ms);
}

/*
 * By then the link would have been given up; a patient one finds its peer again. TCP repeats its
 * segments 12.8 s after the first one. An rxe without its address fails to send.
 */
TEST_F_TIMEOUT(silence, of_twelve_seconds_is_survived_by_the_patient, 90)
{
	struct rig_options options = {
		.length = LENGTH,
		.address = SECOND_ADDRESS,
		.silence_ms = 30000,
		.listen_silence_ms = 30000,
	};

	if (!is_siw())
		SKIP(return, "the peer is not silent here: it is gone");
	ASSERT_EQ(0, open_again(self, &options));
	ASSERT_EQ(0, second_silence());
	sleep(12);
	ASSERT_EQ(0, second_add());
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 65536));
}

/* Of the two ends of a link the accepted one is judged by what its listener asks for. */
static int nr_accepted(int fd)
{
	struct kxfer_info_link links[64];
	uint64_t cursor = 0;
	int i, nr = 0, n = kx_info(fd, KXFER_INFO_LINKS, links, sizeof(links[0]), 64, &cursor);

	for (i = 0; i < n; i++)
		nr += !(links[i].flags & KXFER_LINK_INITIATOR) && links[i].nr_grants &&
		      links[i].state == KXFER_LINK_LIVE;
	return nr;
}

TEST_F_TIMEOUT(silence, is_found_by_the_listener_s_patience, 90)
{
	struct rig_options options = {
		.length = LENGTH,
		.address = SECOND_ADDRESS,
		.silence_ms = 30000,
		.ack_timeout = 20,
		.listen_silence_ms = 1000,
	};
	uint64_t before;

	ASSERT_EQ(0, open_again(self, &options));
	ASSERT_TRUE(kx_wait_until(nr_accepted(self->fd) == 1, BOUND_MS));
	ASSERT_EQ(0, second_silence());
	before = kx_now_ns();
	EXPECT_TRUE(kx_wait_until(!nr_accepted(self->fd), BOUND_MS));
	TH_LOG("found after %llu ms", (unsigned long long)ms_since(before));
	EXPECT_GT(2000 + 1000 * kx_slowness(), ms_since(before));
}

TEST_HARNESS_MAIN
