// SPDX-License-Identifier: GPL-2.0
/*
 * REAP, poll(2), CANCEL, deadlines of jobs and of waits.
 *
 * A server in user space (fixture `held`) makes jobs wait by holding back its answers to
 * NOTIFY: some NOTIFYs stay posted, and all later jobs, of any kind, stay queued.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH	(64UL << 10)
#define MANY	100	/* more NOTIFYs than a lane may have unanswered */
#define ROUNDS		12
#define ROUNDS_MS	6000	/* by far: half of what waiting for a keep-alive takes */
#define NR_LATE	300	/* more than end for one hold of a lock */

FIXTURE(reap)
{
	struct kx_pair pair;
	int fd;			/* session of the client */
	struct kxfer_job job;	/* a WRITE of the whole region */
	struct kxfer_job nop;
	struct kxfer_completion done[MANY];
};

FIXTURE_SETUP(reap)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->fd = self->pair.client;
	self->nop = (struct kxfer_job) { .op = KXFER_OP_NOP, .user_data = 2 };
}

FIXTURE_TEARDOWN(reap)
{
	kx_pair_close(&self->pair);
}

/* KXFER_WAIT_F_* of reap(); each test runs in a separate process. */
static uint32_t wait_flags;

static int reap(int fd, struct kxfer_completion *done, uint32_t nr, uint32_t wait,
		uint64_t deadline_ns)
{
	struct kxfer_reap cmd = {
		.size = sizeof(cmd),
		.flags = wait_flags,
		.completions = (uintptr_t)done,
		.nr = nr,
		.wait = wait,
		.deadline_ns = deadline_ns,
	};
	int ret = kx_call(fd, KXFER_REAP, &cmd);

	return ret ? ret : (int)cmd.reaped;
}

TEST_F(reap, needs_room_in_range)
{
	EXPECT_EQ(-EINVAL, reap(self->fd, self->done, 0, 0, 0));
	EXPECT_EQ(-EINVAL, reap(self->fd, self->done, 4097, 0, 0));
	EXPECT_EQ(-EINVAL, reap(self->fd, self->done, 1, 2, 0));
}

/*
 * A caller that sleeps is woken by each completion, whether the provider works before SUBMIT
 * returns or later. A lane's CQ that is not armed is looked at every 2 s only. So rounds that
 * should take milliseconds would take seconds.
 */
TEST_F(reap, of_a_sleeper_brings_jobs_at_once)
{
	struct kxfer_job jobs[64];
	uint64_t began;
	int round, i;

	for (i = 0; i < 64; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_WRITE,
			.region = self->pair.client_region,
			.target = self->pair.target,
			.length = 1 + i * 1000,
		};
	wait_flags = KXFER_WAIT_F_SLEEP;
	began = kx_now_ns();
	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(64, kx_submit(self->fd, jobs, 64));
		for (i = 0; i < 64; i++)
			ASSERT_EQ(1, reap(self->fd, self->done, 1, 1, 0));
	}
	TH_LOG("%d rounds took %llu ms", ROUNDS,
	       (unsigned long long)(kx_now_ns() - began) / 1000000);
	EXPECT_GT(ROUNDS_MS * kx_slowness(), (kx_now_ns() - began) / 1000000);
}

TEST_F(reap, waits_in_one_way_only)
{
	wait_flags = KXFER_WAIT_F_POLL | KXFER_WAIT_F_SLEEP;
	EXPECT_EQ(-EINVAL, reap(self->fd, self->done, 1, 1, 0));
	wait_flags = KXFER_WAIT_F_ALL + 1;
	EXPECT_EQ(-EOPNOTSUPP, reap(self->fd, self->done, 1, 1, 0));
}

TEST_F(reap, of_nothing_gives_nothing)
{
	EXPECT_EQ(0, reap(self->fd, self->done, 1, 0, 0));
}

TEST_F(reap, does_not_wait_without_jobs)
{
	EXPECT_EQ(0, reap(self->fd, self->done, 1, 1, 0));
	test_cmd_submit(1, self->fd, &self->nop, 1);
	EXPECT_EQ(1, reap(self->fd, self->done, 2, 2, 0));
}

TEST_F(reap, takes_no_more_than_there_is_room_for)
{
	struct kxfer_job nops[8];
	int i;

	for (i = 0; i < 8; i++) {
		nops[i] = self->nop;
		nops[i].user_data = i;
	}
	test_cmd_submit(8, self->fd, nops, 8);
	EXPECT_EQ(3, reap(self->fd, self->done, 3, 0, 0));
	EXPECT_EQ(5, reap(self->fd, self->done + 3, 8, 0, 0));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i, self->done[i].user_data);
}

TEST_F(reap, leaves_what_it_cannot_store)
{
	struct kxfer_completion *cut = kx_before_hole(2 * sizeof(*cut));
	struct kxfer_job nops[5] = { self->nop, self->nop, self->nop, self->nop, self->nop };

	test_cmd_submit(5, self->fd, nops, 5);
	EXPECT_EQ(-EFAULT, reap(self->fd, NULL, 5, 0, 0));
	EXPECT_EQ(2, reap(self->fd, cut, 5, 0, 0));
	EXPECT_EQ(3, reap(self->fd, self->done, 5, 0, 0));
}

/* Memory that the process has not touched yet, and more than is stored at once. */
TEST_F(reap, brings_memory_in)
{
	const size_t bytes = 4096 * sizeof(struct kxfer_completion);
	struct kxfer_completion *fresh;
	struct kxfer_job nops[250];
	int i;

	fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, fresh);
	for (i = 0; i < 250; i++) {
		nops[i] = self->nop;
		nops[i].user_data = i;
	}
	test_cmd_submit(250, self->fd, nops, 250);
	EXPECT_EQ(249, reap(self->fd, fresh, 249, 0, 0));
	EXPECT_EQ(1, reap(self->fd, fresh + 249, 4096 - 249, 0, 0));
	for (i = 0; i < 250; i++)
		EXPECT_EQ(i, fresh[i].user_data);
	munmap(fresh, bytes);
}

static _Atomic bool memory_stays;

static void *drop_memory(void *memory)
{
	while (!memory_stays)
		madvise(memory, 4096, MADV_DONTNEED);
	return NULL;
}

/* Memory that another thread takes away again and again keeps no caller. */
TEST_F(reap, is_not_kept_by_memory_that_goes)
{
	struct kxfer_completion *memory;
	pthread_t thread;
	int i, ret;

	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_EQ(0, pthread_create(&thread, NULL, drop_memory, memory));
	for (i = 0; i < 1000; i++) {
		test_cmd_submit(1, self->fd, &self->nop, 1);
		ret = reap(self->fd, memory, 1, 0, 0);
		if (ret == -EFAULT)
			ret = reap(self->fd, self->done, 1, 0, 0);
		ASSERT_EQ(1, ret);
	}
	memory_stays = true;
	pthread_join(thread, NULL);
	munmap(memory, 4096);
}

/* ---- poll(2) ---- */

static int events_of(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&poll_fd, 1, ms) < 0 ? -errno : poll_fd.revents;
}

TEST_F(reap, is_announced_by_poll)
{
	EXPECT_EQ(POLLOUT, events_of(self->fd, 0));
	test_cmd_submit(1, self->fd, &self->nop, 1);
	EXPECT_EQ(POLLIN | POLLOUT, events_of(self->fd, 0));
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 0, 0));
	EXPECT_EQ(POLLOUT, events_of(self->fd, 0));
}

TEST_F(reap, poll_tells_a_full_queue)
{
	struct kxfer_job *nops = calloc(256, sizeof(*nops));
	int n;

	for (n = 0; n < 4096; n += 256)
		test_cmd_submit(256, self->fd, nops, 256);
	EXPECT_EQ(POLLIN, events_of(self->fd, 0));
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 0, 0));
	EXPECT_EQ(POLLIN | POLLOUT, events_of(self->fd, 0));
	free(nops);
}

/* Completions wait in memory that grows with their number. */
TEST_F(reap, takes_many_in_their_order)
{
	struct kxfer_completion *done = calloc(1024, sizeof(*done));
	struct kxfer_job nops[64] = {};
	uint64_t next = 0, taken = 0;
	int i, n, round;

	ASSERT_NE(NULL, done);
	/* Some are taken before it grows, so that the others do not begin at its first place. */
	for (round = 1; round <= 16; round++) {
		for (i = 0; i < 64; i++)
			nops[i].user_data = next++;
		test_cmd_submit(64, self->fd, nops, 64);
		n = reap(self->fd, done, 5, 0, 0);
		ASSERT_EQ(5, n);
		for (i = 0; i < n; i++)
			EXPECT_EQ(taken++, done[i].user_data);
	}
	while ((n = reap(self->fd, done, 1024, 0, 0)) > 0)
		for (i = 0; i < n; i++)
			EXPECT_EQ(taken++, done[i].user_data);
	EXPECT_EQ(1024, taken);
	free(done);
}

/* ---- cancelling ---- */

TEST_F(reap, cancel_of_nothing_is_an_error_unless_all_is_meant)
{
	test_err_cancel(ENOENT, self->fd, 12345, 0);
	test_cmd_cancel(0, self->fd, 0, KXFER_CANCEL_F_ALL);
	test_cmd_submit(1, self->fd, &self->nop, 1);
	test_err_cancel(ENOENT, self->fd, self->nop.user_data, 0);
}

TEST_F(reap, cancel_takes_either_user_data_or_all)
{
	test_err_cancel(EINVAL, self->fd, 1, KXFER_CANCEL_F_ALL);
	test_err_cancel(EOPNOTSUPP, self->fd, 1, 1U << 1);
}

/* ---- jobs that do not end ---- */

FIXTURE(held)
{
	struct raw_server server;
	int fd;
	uint32_t region;
	uint32_t target;
	struct kxfer_job job;	/* a NOTIFY */
	struct kxfer_job write;
	struct kxfer_completion done[MANY + 1];
};

FIXTURE_VARIANT(held)
{
	uint32_t wait_flags;
};

FIXTURE_VARIANT_ADD(held, by_default) { .wait_flags = 0 };
FIXTURE_VARIANT_ADD(held, polled_for) { .wait_flags = KXFER_WAIT_F_POLL };
FIXTURE_VARIANT_ADD(held, slept_for) { .wait_flags = KXFER_WAIT_F_SLEEP };

FIXTURE_SETUP(held)
{
	uint16_t port = kx_own_port();
	void *memory = kx_alloc(LENGTH);
	uint32_t peer;

	wait_flags = variant->wait_flags;
	raw_server_init(&self->server);
	self->server.withhold = true;
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_region_add(self->fd, memory, LENGTH, KXFER_REGION_F_WRITE, &self->region);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "window", 0, &self->target);
	self->job = (struct kxfer_job) { .op = KXFER_OP_NOTIFY, .target = self->target };
	self->write = (struct kxfer_job) {
		.op = KXFER_OP_WRITE,
		.region = self->region,
		.target = self->target,
		.length = LENGTH,
		.user_data = 4242,
	};
}

FIXTURE_TEARDOWN(held)
{
	self->server.withhold = false;
	close(self->fd);
	raw_server_stop(&self->server);
}

/* Submits @nr copies of a job, whose user_data count from 0. */
static uint32_t submit_many(int fd, const struct kxfer_job *job, uint32_t nr)
{
	struct kxfer_job jobs[256];
	uint32_t done = 0, n, i;

	while (done < nr) {
		n = nr - done < 256 ? nr - done : 256;
		for (i = 0; i < n; i++) {
			jobs[i] = *job;
			jobs[i].user_data = done + i;
		}
		if (kx_submit(fd, jobs, n) != (int)n)
			break;
		done += n;
	}
	return done;
}

static void *submit_later(void *argument)
{
	int *fd = argument;
	struct kxfer_job nops[2] = { { .op = KXFER_OP_NOP }, { .op = KXFER_OP_NOP } };

	kx_sleep_ms(5);
	kx_submit(*fd, nops, 2);
	return NULL;
}

TEST_F(held, jobs_keep_region_and_target_busy)
{
	ASSERT_EQ(MANY - 1, submit_many(self->fd, &self->job, MANY - 1));
	test_cmd_submit(1, self->fd, &self->write, 1);
	test_err_region_del(EBUSY, self->fd, self->region);
	test_err_target_close(EBUSY, self->fd, self->target);
	self->server.withhold = false;
	test_cmd_reap(MANY, self->fd, self->done, MANY, MANY, KX_TIMEOUT_MS);
	test_cmd_target_close(self->fd, self->target);
	test_cmd_region_del(self->fd, self->region);
}

TEST_F(held, jobs_let_a_reap_end_at_its_deadline)
{
	uint64_t deadline = kx_deadline_ns(20);

	test_cmd_submit(1, self->fd, &self->job, 1);
	EXPECT_EQ(-ETIMEDOUT, reap(self->fd, self->done, 1, 1, deadline));
	EXPECT_LE(deadline, kx_now_ns());
	EXPECT_EQ(-ETIMEDOUT, reap(self->fd, self->done, 1, 1, 1));
	self->server.withhold = false;
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(KX_TIMEOUT_MS)));
}

TEST_F(held, jobs_let_a_reap_take_what_there_is_at_its_deadline)
{
	struct kxfer_job jobs[2] = { self->job, { .op = KXFER_OP_NOP, .user_data = 2 } };

	test_cmd_submit(2, self->fd, jobs, 2);
	EXPECT_EQ(1, reap(self->fd, self->done, 2, 2, kx_deadline_ns(5)));
	EXPECT_EQ(2, self->done[0].user_data);
}

static void set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

TEST_F_TIMEOUT(held, jobs_are_not_waited_for_with_O_NONBLOCK, 30)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.flags = variant->wait_flags,
		.jobs = (uintptr_t)&self->job,
		.nr_jobs = 1,
		.stride = sizeof(self->job),
		.completions = (uintptr_t)self->done,
		.nr_completions = 1,
		.wait = 1,
		.deadline_ns = kx_deadline_ns(5000),
	};
	uint64_t before = kx_now_ns();

	set_nonblock(self->fd, true);
	EXPECT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(0, cmd.reaped);
	EXPECT_EQ(-EAGAIN, reap(self->fd, self->done, 1, 1, kx_deadline_ns(5000)));
	EXPECT_GT(before + 2000000000ULL, kx_now_ns());
	set_nonblock(self->fd, false);
	self->server.withhold = false;
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(KX_TIMEOUT_MS)));
}

TEST_F(held, jobs_let_a_reap_be_interrupted)
{
	test_cmd_submit(1, self->fd, &self->job, 1);
	ASSERT_EQ(0, kx_alarms(5, 0));
	EXPECT_EQ(-EINTR, reap(self->fd, self->done, 1, 1, 0));
	ASSERT_EQ(0, kx_alarms(5, SA_RESTART));
	EXPECT_EQ(-EINTR, reap(self->fd, self->done, 1, 1, 0));
	ASSERT_EQ(0, kx_alarms(0, 0));
	self->server.withhold = false;
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(KX_TIMEOUT_MS)));
	EXPECT_EQ(0, self->done[0].status);
}

TEST_F(held, jobs_are_accepted_though_the_waiting_is_ended)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)&self->job,
		.nr_jobs = 1,
		.stride = sizeof(self->job),
		.completions = (uintptr_t)self->done,
		.nr_completions = 4,
		.wait = 4,
	};

	ASSERT_EQ(0, kx_alarms(5, 0));
	EXPECT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	ASSERT_EQ(0, kx_alarms(0, 0));
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(0, cmd.reaped);
	cmd.deadline_ns = kx_deadline_ns(5);
	EXPECT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(0, cmd.reaped);
	self->server.withhold = false;
	EXPECT_EQ(2, reap(self->fd, self->done, 4, 4, kx_deadline_ns(KX_TIMEOUT_MS)));
}

TEST_F(held, jobs_let_a_reap_see_those_of_another_thread)
{
	pthread_t thread;

	test_cmd_submit(1, self->fd, &self->job, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit_later, &self->fd));
	EXPECT_EQ(2, reap(self->fd, self->done, 2, 2, kx_deadline_ns(KX_TIMEOUT_MS)));
	pthread_join(thread, NULL);
}

TEST_F(held, jobs_wake_a_poll_when_they_end)
{
	struct pollfd poll_fd = { .fd = self->fd, .events = POLLIN };

	test_cmd_submit(1, self->fd, &self->job, 1);
	EXPECT_EQ(0, poll(&poll_fd, 1, 5));
	self->server.withhold = false;
	EXPECT_EQ(1, poll(&poll_fd, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(POLLIN, poll_fd.revents);
}

TEST_F(held, jobs_that_are_queued_are_cancelled_by_user_data)
{
	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	test_cmd_cancel(1, self->fd, MANY - 1, 0);
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 0, 0));
	EXPECT_EQ(MANY - 1, self->done[0].user_data);
	EXPECT_EQ(-ECANCELED, self->done[0].status);
	EXPECT_EQ(0, self->done[0].bytes);
	test_err_cancel(ENOENT, self->fd, MANY - 1, 0);
}

TEST_F(held, jobs_of_every_kind_are_cancelled_while_queued)
{
	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	test_cmd_submit(1, self->fd, &self->write, 1);
	test_cmd_cancel(1, self->fd, 4242, 0);
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 0, 0));
	EXPECT_EQ(4242, self->done[0].user_data);
	EXPECT_EQ(-ECANCELED, self->done[0].status);
	EXPECT_EQ(KXFER_OP_WRITE, self->done[0].op);
	test_cmd_region_del(self->fd, self->region);
}

TEST_F(held, jobs_that_are_posted_are_not_cancelled)
{
	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	test_cmd_cancel(0, self->fd, 0, 0);
	ASSERT_LT(0, kx_cancel(self->fd, 0, KXFER_CANCEL_F_ALL));
	test_cmd_cancel(0, self->fd, 0, KXFER_CANCEL_F_ALL);
	self->server.withhold = false;
	ASSERT_LT(1, reap(self->fd, self->done, MANY, MANY, kx_deadline_ns(KX_TIMEOUT_MS)));
}

TEST_F(held, jobs_complete_once_each_though_some_are_cancelled)
{
	uint32_t cancelled = 0, bad = 0, seen[MANY] = { 0 }, i;

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	cancelled = kx_cancel(self->fd, 0, KXFER_CANCEL_F_ALL);
	EXPECT_LT(0, cancelled);
	EXPECT_GT(MANY, cancelled);
	self->server.withhold = false;
	ASSERT_EQ(MANY, reap(self->fd, self->done, MANY, MANY,
			     kx_deadline_ns(KX_TIMEOUT_MS)));
	for (i = 0; i < MANY; i++) {
		cancelled -= self->done[i].status == -ECANCELED;
		bad += self->done[i].status && self->done[i].status != -ECANCELED;
		bad += self->done[i].user_data >= MANY ||
		       seen[self->done[i].user_data % MANY]++;
	}
	EXPECT_EQ(0, cancelled);
	EXPECT_EQ(0, bad);
}

TEST_F(held, jobs_that_are_queued_end_at_their_deadline)
{
	struct kxfer_job late = self->write;

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	late.user_data = 4711;
	late.deadline_ns = kx_deadline_ns(20);
	test_cmd_submit(1, self->fd, &late, 1);
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(5000)));
	EXPECT_EQ(4711, self->done[0].user_data);
	EXPECT_EQ(-ETIMEDOUT, self->done[0].status);
	EXPECT_EQ(0, self->done[0].bytes);
	EXPECT_LE(late.deadline_ns, self->done[0].completed_ns);
}

/* A WRITE of one piece, of objects used before, could be posted at once if it overtook them. */
TEST_F(held, jobs_are_not_overtaken_by_short_ones)
{
	self->write.length = 64;
	test_cmd_submit(1, self->fd, &self->write, 1);
	ASSERT_EQ(1, reap(self->fd, self->done, 1, 1, 0));
	submit_many(self->fd, &self->job, MANY);
	test_cmd_submit(1, self->fd, &self->write, 1);
	kx_sleep_ms(50);
	EXPECT_EQ(0, reap(self->fd, self->done, 1, 0, 0));
	test_cmd_cancel(1, self->fd, self->write.user_data, 0);
	ASSERT_EQ(1, reap(self->fd, self->done, 1, 1, 0));
	EXPECT_EQ(-ECANCELED, self->done[0].status);
}

/* WRITEs whose notifications find no slot do not keep another session from the lane. */
TEST_F(held, notifications_of_writes_hold_up_no_other_session)
{
	uint32_t peer, region, target;
	int other = kx_open();

	ASSERT_LE(0, other);
	self->write.length = 64;
	self->write.flags = KXFER_JOB_F_NOTIFY;
	submit_many(self->fd, &self->write, MANY);
	test_cmd_region_add(other, kx_alloc(LENGTH), LENGTH, KXFER_REGION_F_WRITE, &region);
	test_cmd_peer_open(other, kx_addr(kx_address(), kx_own_port()), &peer);
	test_cmd_target_open(other, peer, "window", 0, &target);
	test_cmd_transfer(other, KXFER_OP_READ, region, 0, target, 0, 64);
	test_cmd_transfer(other, KXFER_OP_READ, region, 0, target, 0, 64);
	close(other);
}

TEST_F(held, jobs_that_are_queued_end_each_at_its_own_deadline)
{
	struct kxfer_job late = self->write;
	uint64_t deadlines[3];
	int i;

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	for (i = 0; i < 3; i++) {
		deadlines[i] = kx_deadline_ns(300 - 100 * i);
		late.user_data = 4711 + i;
		late.deadline_ns = deadlines[i];
		test_cmd_submit(1, self->fd, &late, 1);
	}
	ASSERT_EQ(3, reap(self->fd, self->done, 3, 3, kx_deadline_ns(5000)));
	for (i = 0; i < 3; i++) {
		ASSERT_LE(4711, self->done[i].user_data);
		ASSERT_GE(4713, self->done[i].user_data);
		EXPECT_LE(deadlines[self->done[i].user_data - 4711],
			  self->done[i].completed_ns);
		EXPECT_EQ(-ETIMEDOUT, self->done[i].status);
	}
}

/* More than the module ends for one hold of the lane's lock. */
TEST_F(held, jobs_that_are_late_all_end)
{
	struct kxfer_job late = self->write;
	uint32_t i, n, left = NR_LATE;

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	late.deadline_ns = kx_deadline_ns(50);
	ASSERT_EQ(NR_LATE, submit_many(self->fd, &late, NR_LATE));
	for (; left; left -= n) {
		n = left < MANY ? left : MANY;
		ASSERT_EQ((int)n, reap(self->fd, self->done, n, n, kx_deadline_ns(5000)));
		for (i = 0; i < n; i++)
			EXPECT_EQ(-ETIMEDOUT, self->done[i].status);
	}
	self->server.withhold = false;
	test_cmd_reap(MANY, self->fd, self->done, MANY, MANY, KX_TIMEOUT_MS);
}

TEST_F(held, jobs_that_are_cancelled_leave_no_deadline)
{
	struct kxfer_job late = self->write;

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	late.user_data = 4711;
	late.deadline_ns = kx_deadline_ns(50);
	test_cmd_submit(1, self->fd, &late, 1);
	test_cmd_cancel(1, self->fd, 4711, 0);
	ASSERT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(5000)));
	EXPECT_EQ(-ECANCELED, self->done[0].status);
	/* This job reuses the memory of the cancelled one. */
	late.deadline_ns = kx_deadline_ns(100);
	test_cmd_submit(1, self->fd, &late, 1);
	ASSERT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(5000)));
	EXPECT_EQ(-ETIMEDOUT, self->done[0].status);
	EXPECT_LE(late.deadline_ns, self->done[0].completed_ns);
	self->server.withhold = false;
	test_cmd_reap(MANY, self->fd, self->done, MANY, MANY, KX_TIMEOUT_MS);
}

TEST_F(held, jobs_that_are_posted_go_on_past_their_deadline)
{
	self->job.deadline_ns = kx_deadline_ns(20);
	test_cmd_submit(1, self->fd, &self->job, 1);
	EXPECT_EQ(-ETIMEDOUT, reap(self->fd, self->done, 1, 1, kx_deadline_ns(100)));
	self->server.withhold = false;
	EXPECT_EQ(1, reap(self->fd, self->done, 1, 1, kx_deadline_ns(KX_TIMEOUT_MS)));
	EXPECT_EQ(0, self->done[0].status);
}

TEST_F(held, jobs_end_with_their_session)
{
	int other = kx_open();
	uint64_t live = kx_counter(other, "live_jobs");

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	EXPECT_EQ(live + MANY, kx_counter(other, "live_jobs"));
	self->server.withhold = false;
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(live, kx_counter(other, "live_jobs"));
	close(other);
}

TEST_HARNESS_MAIN
