// SPDX-License-Identifier: GPL-2.0
/*
 * NOTIFY: a cookie that arrives after the data of its lane, and the information in its event; a
 * full queue of events; the order of completions. The same of WRITEs with KXFER_JOB_F_NOTIFY.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB	(1024u * 1024)
#define LENGTH	(4 * MIB)

FIXTURE(notify)
{
	struct rig rig;
};

FIXTURE_SETUP(notify)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.there = BUFFER_SCATTERED,
	};

	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(notify)
{
	rig_close(&self->rig);
}

static struct kxfer_job notify_job(const struct rig *rig, uint64_t cookie)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_NOTIFY,
		.target = rig->target,
		.user_data = cookie,
		.cookie = cookie,
	};
}

/*
 * Does @rounds of WRITEs of @length in @pieces with a NOTIFY after them, in one call that does
 * not wait. The exporter checks the data as soon as it has the event.
 */
static void push_rounds(struct __test_metadata *_metadata, struct rig *rig, int rounds,
			size_t length, uint32_t pieces)
{
	struct pattern old = { .seed = 0x111 }, new = { .seed = 0x111 };
	struct kxfer_completion done[64];
	struct pattern_fault fault;
	struct kxfer_event event;
	struct kxfer_job jobs[64];
	char text[320];
	uint32_t i;
	int round;

	pattern_fill(rig->there.bytes, length, &old);
	for (round = 1; round <= rounds; round++) {
		new.generation = round % 256;
		pattern_fill(rig->here.bytes, length, &new);
		for (i = 0; i < pieces; i++) {
			size_t from = length * i / pieces, to = length * (i + 1) / pieces;

			jobs[i] = rig_job(rig, KXFER_OP_WRITE, from, from, to - from);
		}
		jobs[pieces] = notify_job(rig, 7000 + round);
		ASSERT_EQ((int)pieces + 1, kx_submit(rig->client, jobs, pieces + 1));
		ASSERT_EQ(1, kx_event_reap(rig->server, &event, 1, KX_TIMEOUT_MS));
		ASSERT_EQ(PATTERN_GOOD, pattern_check(rig->there.bytes, length, &new, &old,
						      &fault)) {
			TH_LOG("round %d: %s", round,
			       pattern_describe(&new, &fault, text, sizeof(text)));
		}
		ASSERT_EQ(7000 + (uint64_t)round, event.cookie);
		ASSERT_EQ((int)pieces + 1, kx_reap(rig->client, done, pieces + 1, pieces + 1,
						   KX_TIMEOUT_MS));
		for (i = 0; i <= pieces; i++)
			ASSERT_EQ(0, done[i].status);
		old = new;
	}
}

TEST_F(notify, arrives_behind_one_byte)
{
	push_rounds(_metadata, &self->rig, 100, 1, 1);
}

TEST_F(notify, arrives_behind_a_page)
{
	push_rounds(_metadata, &self->rig, 100, 4097, 1);
}

TEST_F(notify, arrives_behind_many_writes)
{
	push_rounds(_metadata, &self->rig, 30, 50000, 50);
}

TEST_F(notify, arrives_behind_four_MiB)
{
	push_rounds(_metadata, &self->rig, 5, LENGTH, 3);
}

static struct kxfer_job write_notify_job(const struct rig *rig, uint64_t from, uint64_t length,
					 uint64_t cookie)
{
	struct kxfer_job job = rig_job(rig, KXFER_OP_WRITE, from, from, length);

	job.flags = KXFER_JOB_F_NOTIFY;
	job.cookie = cookie;
	job.user_data = cookie;
	return job;
}

/* WRITEs of several lengths, each with its notification: the data is there with the event. */
TEST_F(notify, of_a_write_arrives_behind_its_data)
{
	static const uint32_t lengths[] = { 1, 64, 4097, 65536, 3 * MIB + 5 };
	struct pattern old = { .seed = 0x333 }, new = { .seed = 0x333 };
	struct kxfer_completion done;
	struct pattern_fault fault;
	struct kxfer_event event;
	struct kxfer_job job;
	uint32_t i;

	for (i = 0; i < 5 * 8; i++) {
		uint32_t length = lengths[i % 5];

		new.generation = i + 1;
		pattern_fill(self->rig.there.bytes, length, &old);
		pattern_fill(self->rig.here.bytes, length, &new);
		job = write_notify_job(&self->rig, 0, length, 500 + i);
		ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
		ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, KX_TIMEOUT_MS));
		ASSERT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, length, &new, &old,
						      &fault));
		ASSERT_EQ(500 + (uint64_t)i, event.cookie);
		ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, KX_TIMEOUT_MS));
		ASSERT_EQ(0, done.status);
		ASSERT_EQ(length, done.bytes);
		ASSERT_EQ(KXFER_OP_WRITE, done.op);
	}
}

/* More than there are slots, of a session that also READs: each ends once, events in order. */
TEST_F(notify, of_many_writes_keep_their_order)
{
	struct kxfer_completion done[240];
	struct kxfer_event events[160];
	struct kxfer_job jobs[240];
	bool seen[240] = {};
	int taken, got, i, n = 0;

	for (i = 0; i < 240; i++) {
		jobs[i] = write_notify_job(&self->rig, i * 8192, 5000, n);
		if (i % 3 == 2)
			jobs[i] = rig_job(&self->rig, KXFER_OP_READ, MIB + i * 4096, i * 4096, 100);
		else
			n++;
		jobs[i].user_data = i;
	}
	ASSERT_EQ(240, kx_submit(self->rig.client, jobs, 240));
	ASSERT_EQ(240, kx_reap(self->rig.client, done, 240, 240, KX_TIMEOUT_MS));
	for (i = 0; i < 240; i++) {
		ASSERT_EQ(0, done[i].status);
		ASSERT_FALSE(seen[done[i].user_data]);
		seen[done[i].user_data] = true;
	}
	for (taken = 0; taken < n; taken += got) {
		got = kx_event_reap(self->rig.server, events + taken, n - taken, KX_TIMEOUT_MS);
		ASSERT_LT(0, got);
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ((uint64_t)i, events[i].cookie);
	EXPECT_EQ(0, kx_event_reap(self->rig.server, events, 1, 0));
}

TEST_F(notify, of_a_write_that_finds_the_queue_full_says_so)
{
	struct pattern old = { .seed = 0x444 }, new = { .seed = 0x444, .generation = 1 };
	struct kxfer_completion done;
	struct pattern_fault fault;
	struct kxfer_query query;
	struct kxfer_job job;
	uint32_t i;

	test_cmd_query(self->rig.client, &query);
	EXPECT_TRUE(query.features & KXFER_FEATURE_WRITE_NOTIFY);
	for (i = 0; i < query.max_events; i++)
		test_cmd_notify(self->rig.client, self->rig.target, i);
	pattern_fill(self->rig.there.bytes, 9000, &old);
	pattern_fill(self->rig.here.bytes, 9000, &new);
	job = write_notify_job(&self->rig, 0, 9000, 1);
	ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(-EAGAIN, done.status);
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, 9000, &new, &old, &fault));
}

TEST_F(notify, is_of_writes_alone)
{
	static const uint32_t others[] = {
		KXFER_OP_READ, KXFER_OP_NOTIFY, KXFER_OP_SEND, KXFER_OP_COMPARE_SWAP,
		KXFER_OP_FETCH_ADD, KXFER_OP_NOP, KXFER_OP_RECV,
	};
	struct kxfer_job job = write_notify_job(&self->rig, 0, 8, 0);
	uint32_t i;

	for (i = 0; i < 7; i++) {
		job.op = others[i];
		EXPECT_EQ(-EINVAL, kx_submit(self->rig.client, &job, 1));
	}
	job = write_notify_job(&self->rig, 0, 8, 5);
	job.flags = 0;
	EXPECT_EQ(-EINVAL, kx_submit(self->rig.client, &job, 1));
	job.flags = KXFER_JOB_F_NOTIFY | KXFER_JOB_F_IMM;
	EXPECT_EQ(-EINVAL, kx_submit(self->rig.client, &job, 1));
}

/* Each WRITE ends once, whatever of it was done when its export went. */
TEST_F(notify, of_writes_to_an_export_that_goes_end)
{
	struct kxfer_completion done[128];
	struct kxfer_job jobs[128];
	bool seen[128] = {};
	int i, refused = 0;

	for (i = 0; i < 128; i++) {
		jobs[i] = write_notify_job(&self->rig, i * 16384, 16000, 0);
		jobs[i].user_data = i;
	}
	ASSERT_EQ(128, kx_submit(self->rig.client, jobs, 128));
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	ASSERT_EQ(128, kx_reap(self->rig.client, done, 128, 128, KX_TIMEOUT_MS));
	for (i = 0; i < 128; i++) {
		ASSERT_TRUE(!done[i].status || done[i].status == -EKEYREVOKED) {
			TH_LOG("status %d", done[i].status);
		}
		refused += done[i].status != 0;
		ASSERT_FALSE(seen[done[i].user_data]);
		seen[done[i].user_data] = true;
	}
	TH_LOG("%d of 128 ended with EKEYREVOKED", refused);
	test_cmd_target_close(self->rig.client, self->rig.target);
}

TEST_F(notify, tells_who_sent_it)
{
	struct kxfer_event event;
	uint64_t before = kx_now_ns();

	test_cmd_notify(self->rig.client, self->rig.target, 0xfedcba9876543210ull);
	ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(KXFER_EVENT_NOTIFY, event.type);
	EXPECT_EQ(self->rig.export_id, event.export_id);
	EXPECT_EQ(0xfedcba9876543210ull, event.cookie);
	EXPECT_EQ(geteuid(), event.uid);
	EXPECT_EQ(getegid(), event.gid);
	EXPECT_EQ(AF_INET, event.peer.family);
	EXPECT_EQ(0, memcmp(event.peer.addr, kx_addr(kx_address(), 0).addr, 16));
	EXPECT_GT(1024, event.peer.port);
	EXPECT_LE(before, event.time_ns);
	EXPECT_GE(kx_now_ns(), event.time_ns);
}

TEST_F(notify, poll_says_priority_data)
{
	struct pollfd poller = { .fd = self->rig.server, .events = POLLPRI };
	struct kxfer_event event;

	EXPECT_EQ(0, poll(&poller, 1, 0));
	test_cmd_notify(self->rig.client, self->rig.target, 1);
	EXPECT_EQ(1, poll(&poller, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(POLLPRI, poller.revents);
	ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, 0));
	EXPECT_EQ(0, poll(&poller, 1, 0));
}

#define NR_UNPOLLED	10

/*
 * No work request of a job is under way then, only a message. A CQ that counted as idle would not
 * be armed: the answer would be found by the keep-alive, after one second on average.
 */
TEST_F_TIMEOUT(notify, completes_soon_though_no_caller_polls_for_it, 120)
{
	struct pollfd poll_fd = { .fd = self->rig.client, .events = POLLIN };
	struct kxfer_job job = notify_job(&self->rig, 1);
	struct kxfer_completion done;
	uint64_t began = kx_now_ns();
	int i;

	for (i = 0; i < NR_UNPOLLED; i++) {
		ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
		ASSERT_EQ(1, poll(&poll_fd, 1, KX_TIMEOUT_MS));
		ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 0, 0));
		EXPECT_EQ(0, done.status);
	}
	EXPECT_GT(NR_UNPOLLED * 250 * kx_slowness(), (kx_now_ns() - began) / 1000000);
}

TEST_F(notify, goes_to_the_export_meant)
{
	struct kxfer_event event;
	uint32_t second, target;

	test_cmd_export_add(self->rig.server, self->rig.there_region, 4096, 4096,
			    KXFER_RIGHT_ALL, "notify-second", &second);
	test_cmd_target_open(self->rig.client, self->rig.peer, "notify-second", 0, &target);
	test_cmd_notify(self->rig.client, target, 2);
	ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(second, event.export_id);
}

TEST_F(notify, without_write_right_is_refused)
{
	struct kxfer_job job;
	uint32_t target;

	test_cmd_target_open(self->rig.client, self->rig.peer, self->rig.name,
			     KXFER_RIGHT_READ, &target);
	job = notify_job(&self->rig, 3);
	job.target = target;
	EXPECT_EQ(-EACCES, kx_submit(self->rig.client, &job, 1));
}

TEST_F(notify, full_queue_refuses_and_loses_nothing)
{
	struct kxfer_completion done[64];
	struct kxfer_event events[1024];
	struct kxfer_query query;
	struct kxfer_job jobs[64];
	uint32_t sent, refused = 0, n, i;
	int taken, got;

	test_cmd_query(self->rig.client, &query);
	ASSERT_GE(1000, query.max_events);
	for (sent = 0; sent < query.max_events + 20; sent += n) {
		n = query.max_events + 20 - sent < 64 ? query.max_events + 20 - sent : 64;
		for (i = 0; i < n; i++)
			jobs[i] = notify_job(&self->rig, sent + i);
		ASSERT_EQ((int)n, kx_submit(self->rig.client, jobs, n));
		ASSERT_EQ((int)n, kx_reap(self->rig.client, done, n, n, KX_TIMEOUT_MS));
		for (i = 0; i < n; i++) {
			ASSERT_EQ(done[i].user_data < query.max_events ? 0 : -EAGAIN,
				  done[i].status);
			refused += done[i].status == -EAGAIN;
		}
	}
	EXPECT_EQ(20, refused);
	for (taken = 0; taken < (int)query.max_events; taken += got) {
		got = kx_event_reap(self->rig.server, events + taken, 100, 0);
		ASSERT_LT(0, got);
	}
	for (i = 0; i < query.max_events; i++)
		ASSERT_EQ(i, events[i].cookie);
	EXPECT_EQ(0, kx_event_reap(self->rig.server, events, 1, 0));
	/* There is room again. */
	test_cmd_notify(self->rig.client, self->rig.target, 9);
	EXPECT_EQ(1, kx_event_reap(self->rig.server, events, 1, KX_TIMEOUT_MS));
}

TEST_F(notify, event_wait_ends_at_its_deadline)
{
	struct kxfer_event event;
	uint64_t before = kx_now_ns();

	EXPECT_EQ(-ETIMEDOUT, kx_event_reap(self->rig.server, &event, 1, 200));
	EXPECT_LE(190000000, kx_now_ns() - before);
}

TEST_F(notify, to_a_withdrawn_export_says_so)
{
	test_cmd_notify(self->rig.client, self->rig.target, 1);
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	test_err_notify(EKEYREVOKED, self->rig.client, self->rig.target, 2);
}

TEST_F(notify, many_at_once_keep_their_order)
{
	struct kxfer_completion done[200];
	struct kxfer_event events[200];
	struct kxfer_job jobs[200];
	int taken, got, i;

	for (i = 0; i < 200; i++)
		jobs[i] = notify_job(&self->rig, i);
	ASSERT_EQ(200, kx_submit(self->rig.client, jobs, 200));
	ASSERT_EQ(200, kx_reap(self->rig.client, done, 200, 200, KX_TIMEOUT_MS));
	for (taken = 0; taken < 200; taken += got) {
		got = kx_event_reap(self->rig.server, events + taken, 200 - taken,
				    KX_TIMEOUT_MS);
		ASSERT_LT(0, got);
	}
	for (i = 0; i < 200; i++)
		ASSERT_EQ((uint64_t)i, events[i].cookie);
}

TEST_F(notify, completions_of_writes_keep_their_order)
{
	struct kxfer_completion done[256];
	struct kxfer_job jobs[256];
	int i;

	for (i = 0; i < 256; i++) {
		jobs[i] = rig_job(&self->rig, KXFER_OP_WRITE, i * 4096, i * 4096,
				  1 + (i * 977) % 4096);
		jobs[i].user_data = i;
	}
	ASSERT_EQ(256, kx_submit(self->rig.client, jobs, 256));
	ASSERT_EQ(256, kx_reap(self->rig.client, done, 256, 256, KX_TIMEOUT_MS));
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(0, done[i].status);
		ASSERT_EQ((uint64_t)i, done[i].user_data);
		ASSERT_LE(done[i].submitted_ns, done[i].completed_ns);
	}
}

TEST_F(notify, later_write_to_the_same_place_wins)
{
	struct kxfer_completion done[32];
	struct kxfer_job jobs[32];
	struct pattern want = { .seed = 0x222, .generation = 31 };
	struct pattern_fault fault;
	int i;

	for (i = 0; i < 32; i++) {
		want.generation = i;
		pattern_fill(self->rig.here.bytes + i * 10000, 10000, &want);
		jobs[i] = rig_job(&self->rig, KXFER_OP_WRITE, i * 10000, 5, 10000);
	}
	ASSERT_EQ(32, kx_submit(self->rig.client, jobs, 32));
	ASSERT_EQ(32, kx_reap(self->rig.client, done, 32, 32, KX_TIMEOUT_MS));
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes + 5, 10000, &want, NULL,
					      &fault));
}

TEST_HARNESS_MAIN
