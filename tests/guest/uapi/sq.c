// SPDX-License-Identifier: GPL-2.0
/*
 * The submission ring: making and mapping it, ENTER, invalid calls, and processes that write in it
 * what they like, at any time.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/ring.h"

#define ENTRIES		8
#define COMPLETIONS	16
#define LENGTH		(64UL << 10)
#define RUN_MS		1500
#define UNKNOWN_FLAG	(1U << 31)

/* Both rings of one session. */
struct rings {
	int fd;
	struct kx_ring ring;
	struct kx_sq sq;
};

static int open_rings(struct rings *rings, int fd, uint32_t completions, uint32_t jobs)
{
	rings->fd = fd;
	return kx_ring_open(fd, completions, KX_NO_EVENTFD, &rings->ring) ?:
	       kx_sq_open(fd, jobs, &rings->sq);
}

static void unmap_rings(struct rings *rings)
{
	kx_sq_unmap(&rings->sq);
	kx_ring_unmap(&rings->ring);
}

static uint32_t put_nops(struct rings *rings, uint64_t first, uint32_t nr)
{
	struct kxfer_job jobs[257] = {};
	uint32_t i;

	for (i = 0; i < nr; i++)
		jobs[i].user_data = first + i;
	return kx_sq_put(&rings->sq, jobs, nr);
}

/* Takes all completions, which count from @first. Return: their number, or -1. */
static int take_nops(struct rings *rings, uint64_t first)
{
	struct kxfer_completion done[256];
	uint32_t nr = kx_ring_take(&rings->ring, done, 256), i;

	for (i = 0; i < nr; i++)
		if (done[i].user_data != first + i || done[i].status)
			return -1;
	return nr;
}

/* ---- making and mapping it ---- */

FIXTURE(sq)
{
	struct rings rings;
	int fd;
};

FIXTURE_SETUP(sq)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_ring_open(self->fd, COMPLETIONS, KX_NO_EVENTFD, &self->rings.ring);
	self->rings.fd = self->fd;
}

FIXTURE_TEARDOWN(sq)
{
	unmap_rings(&self->rings);
	close(self->fd);
}

TEST_F(sq, is_told_by_query)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_SQ_RING);
}

TEST_F(sq, comes_after_a_completion_ring)
{
	int fd = kx_open();

	test_err_sq_make(EINVAL, fd, ENTRIES, &self->rings.sq);
	test_err_enter(EINVAL, fd, 0);
	close(fd);
	test_err_enter(EINVAL, self->fd, 0);
	test_cmd_sq_make(self->fd, ENTRIES, &self->rings.sq);
	test_cmd_enter(0, self->fd, 0);
}

TEST_F(sq, has_a_power_of_two_of_entries_up_to_one_SUBMIT)
{
	static const uint32_t bad[] = { 0, 3, 255, 257, 512, 1U << 31, UINT32_MAX };
	struct kxfer_sq_ring cmd = { .size = sizeof(cmd), .entries = 1, .__reserved = 1 };
	struct kxfer_query query;
	struct rings rings;
	uint32_t entries;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		test_err_sq_make(EINVAL, self->fd, bad[i], &self->rings.sq);
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_SQ_RING, &cmd));
	test_cmd_query(self->fd, &query);
	ASSERT_EQ(256, query.max_jobs_per_submit);
	for (entries = 1; entries <= 256; entries *= 2) {
		fd = kx_open();
		ASSERT_EQ(0, open_rings(&rings, fd, 256, entries));
		EXPECT_EQ(entries, rings.sq.shared->entries);
		EXPECT_EQ(entries - 1, rings.sq.shared->mask);
		EXPECT_LE(sizeof(*rings.sq.shared) + entries * sizeof(struct kxfer_job),
			  rings.sq.bytes);
		EXPECT_EQ(entries, put_nops(&rings, 0, entries + 1));
		EXPECT_EQ((int)entries, kx_enter(fd, entries));
		EXPECT_EQ((int)entries, take_nops(&rings, 0));
		unmap_rings(&rings);
		close(fd);
	}
}

TEST_F(sq, is_made_once)
{
	struct kx_sq other;

	test_cmd_sq_open(self->fd, ENTRIES, &self->rings.sq);
	test_err_sq_make(EEXIST, self->fd, ENTRIES, &other);
	ASSERT_EQ(1, put_nops(&self->rings, 0, 1));
	test_cmd_enter(1, self->fd, 1);
	test_err_sq_make(EEXIST, self->fd, ENTRIES, &other);
}

TEST_F(sq, goes_with_its_session)
{
	uint64_t live = kx_counter(self->fd, "live_rings");
	struct rings rings;
	int fd = kx_open();

	ASSERT_EQ(0, open_rings(&rings, fd, COMPLETIONS, ENTRIES));
	EXPECT_EQ(live + 2, kx_counter(self->fd, "live_rings"));
	ASSERT_EQ(1, put_nops(&rings, 7, 1));
	close(fd);
	/* A mapping keeps the session. */
	EXPECT_EQ(live + 2, kx_counter(self->fd, "live_rings"));
	kx_ring_unmap(&rings.ring);
	EXPECT_EQ(live + 2, kx_counter(self->fd, "live_rings"));
	kx_sq_unmap(&rings.sq);
	EXPECT_EQ(live, kx_counter(self->fd, "live_rings"));
}

static int map_error(int fd, uint64_t bytes, int protection, int flags, uint64_t offset)
{
	void *at = mmap(NULL, bytes, protection, flags, fd, offset);

	if (at == MAP_FAILED)
		return errno;
	munmap(at, bytes);
	return 0;
}

TEST_F(sq, is_mapped_whole_shared_and_not_executable)
{
	const int rw = PROT_READ | PROT_WRITE;
	long page = sysconf(_SC_PAGESIZE);
	struct kx_sq sq;
	uint64_t at;

	/* Where the ring will be there is nothing before it is made. */
	EXPECT_EQ(EINVAL, map_error(self->fd, page, rw, MAP_SHARED, 1UL << 28));
	test_cmd_sq_make(self->fd, 256, &sq);
	at = sq.offset;
	EXPECT_NE(self->rings.ring.offset, at);
	EXPECT_EQ(0, map_error(self->fd, sq.bytes, rw, MAP_SHARED, at));
	EXPECT_EQ(0, map_error(self->fd, sq.bytes, PROT_READ, MAP_SHARED, at));
	EXPECT_EQ(EINVAL, map_error(self->fd, sq.bytes - page, rw, MAP_SHARED, at));
	EXPECT_EQ(EINVAL, map_error(self->fd, sq.bytes + page, rw, MAP_SHARED, at));
	EXPECT_EQ(EINVAL, map_error(self->fd, sq.bytes, rw, MAP_SHARED, at + page));
	EXPECT_EQ(EINVAL, map_error(self->fd, sq.bytes, rw, MAP_SHARED, at - page));
	EXPECT_EQ(EINVAL, map_error(self->fd, sq.bytes, rw, MAP_PRIVATE, at));
	EXPECT_EQ(EINVAL, map_error(self->fd, sq.bytes, rw, MAP_SHARED, 0));
	EXPECT_EQ(EACCES, map_error(self->fd, sq.bytes, rw | PROT_EXEC, MAP_SHARED, at));
}

/* ---- ENTER ---- */

FIXTURE(enter)
{
	struct rings rings;
	int fd;
};

FIXTURE_SETUP(enter)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, open_rings(&self->rings, self->fd, COMPLETIONS, ENTRIES));
}

FIXTURE_TEARDOWN(enter)
{
	unmap_rings(&self->rings);
	close(self->fd);
}

TEST_F(enter, accepts_jobs_in_order)
{
	struct kxfer_sq *shared = self->rings.sq.shared;

	ASSERT_EQ(5, put_nops(&self->rings, 100, 5));
	test_cmd_enter(5, self->fd, 0);
	EXPECT_EQ(5, shared->head);
	EXPECT_EQ(0, shared->error);
	EXPECT_EQ(5, take_nops(&self->rings, 100));
	test_cmd_enter(0, self->fd, 0);
	EXPECT_EQ(0, take_nops(&self->rings, 0));
}

TEST_F(enter, wraps_around)
{
	uint64_t next = 0;
	int round;

	for (round = 0; round < 500; round++) {
		uint32_t nr = 1 + round % ENTRIES;

		ASSERT_EQ(nr, put_nops(&self->rings, next, nr));
		test_cmd_enter(nr, self->fd, nr);
		ASSERT_EQ((int)nr, take_nops(&self->rings, next));
		next += nr;
	}
	EXPECT_EQ(next, self->rings.sq.shared->head);
}

TEST_F(enter, stops_at_a_job_that_is_refused)
{
	struct kxfer_job jobs[3] = { { .user_data = 0 }, { .op = 99 }, { .user_data = 1 } };
	struct kxfer_sq *shared = self->rings.sq.shared;

	ASSERT_EQ(3, kx_sq_put(&self->rings.sq, jobs, 3));
	test_cmd_enter(1, self->fd, 3);
	EXPECT_EQ(1, shared->head);
	EXPECT_EQ(EOPNOTSUPP, shared->error);
	test_err_enter(EOPNOTSUPP, self->fd, 0);
	EXPECT_EQ(1, shared->head);
	EXPECT_EQ(EOPNOTSUPP, shared->error);
	/* It is dropped, with the one behind it. */
	shared->tail = shared->head;
	test_cmd_enter(0, self->fd, 0);
	EXPECT_EQ(0, shared->error);
	ASSERT_EQ(1, put_nops(&self->rings, 1, 1));
	test_cmd_enter(1, self->fd, 2);
	EXPECT_EQ(2, take_nops(&self->rings, 0));
}

TEST_F(enter, refuses_a_tail_that_is_none)
{
	static const uint32_t lies[] = { ENTRIES + 1, ENTRIES + 2, INT32_MAX, 1U << 31,
					 UINT32_MAX };
	struct kxfer_sq *shared = self->rings.sq.shared;
	size_t i;

	ASSERT_EQ(3, put_nops(&self->rings, 0, 3));
	test_cmd_enter(3, self->fd, 3);
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		shared->tail = shared->head + lies[i];
		test_err_enter(EINVAL, self->fd, 0);
		EXPECT_EQ(3, shared->head);
	}
	shared->tail = 2;
	test_err_enter(EINVAL, self->fd, 0);
	shared->tail = 3;
	ASSERT_EQ(1, put_nops(&self->rings, 3, 1));
	test_cmd_enter(1, self->fd, 4);
	EXPECT_EQ(4, take_nops(&self->rings, 0));
}

TEST_F(enter, does_not_believe_what_is_written_over_it)
{
	struct kxfer_sq *shared = self->rings.sq.shared;

	ASSERT_EQ(2, put_nops(&self->rings, 0, 2));
	shared->head = 77;
	shared->mask = UINT32_MAX;
	shared->entries = 1U << 31;
	test_cmd_enter(2, self->fd, 2);
	EXPECT_EQ(2, shared->head);
	shared->mask = ENTRIES - 1;
	ASSERT_EQ(ENTRIES, put_nops(&self->rings, 2, ENTRIES));
	test_cmd_enter(ENTRIES, self->fd, 2 + ENTRIES);
	EXPECT_EQ(2 + ENTRIES, take_nops(&self->rings, 0));
}

TEST_F(enter, refuses_what_it_does_not_know_and_accepts_nothing_then)
{
	struct kxfer_sq *shared = self->rings.sq.shared;

	ASSERT_EQ(1, put_nops(&self->rings, 0, 1));
	test_err_enter(EINVAL, self->fd, COMPLETIONS + 1);
	test_err_enter(EINVAL, self->fd, -1UL);
	test_err_enter(EINVAL, self->fd, -1UL << (4 * sizeof(long)));
	shared->flags = UNKNOWN_FLAG;
	test_err_enter(EOPNOTSUPP, self->fd, 0);
	shared->flags = KXFER_WAIT_F_POLL | KXFER_WAIT_F_SLEEP;
	test_err_enter(EINVAL, self->fd, 0);
	EXPECT_EQ(0, shared->head);
	EXPECT_EQ(0, self->rings.ring.shared->tail);
	shared->flags = KXFER_WAIT_F_POLL;
	test_cmd_enter(1, self->fd, COMPLETIONS);
}

TEST_F(enter, accepts_what_has_room_in_the_completion_ring)
{
	uint32_t i;

	for (i = 0; i < COMPLETIONS; i += ENTRIES) {
		ASSERT_EQ(ENTRIES, put_nops(&self->rings, i, ENTRIES));
		test_cmd_enter(ENTRIES, self->fd, 0);
	}
	ASSERT_EQ(ENTRIES, put_nops(&self->rings, COMPLETIONS, ENTRIES));
	test_err_enter(EAGAIN, self->fd, 0);
	EXPECT_EQ(3, kx_ring_take(&self->rings.ring, (struct kxfer_completion[3]) {}, 3));
	test_cmd_enter(3, self->fd, 0);
	EXPECT_EQ(EAGAIN, self->rings.sq.shared->error);
	EXPECT_EQ(COMPLETIONS, take_nops(&self->rings, 3));
	test_cmd_enter(ENTRIES - 3, self->fd, 0);
	EXPECT_EQ(ENTRIES - 3, take_nops(&self->rings, COMPLETIONS + 3));
}

TEST_F(enter, goes_with_SUBMIT)
{
	struct kxfer_job nop = { .user_data = 1 };

	ASSERT_EQ(1, put_nops(&self->rings, 0, 1));
	test_cmd_enter(1, self->fd, 0);
	test_cmd_submit(1, self->fd, &nop, 1);
	ASSERT_EQ(1, put_nops(&self->rings, 2, 1));
	test_cmd_enter(1, self->fd, 3);
	EXPECT_EQ(3, take_nops(&self->rings, 0));
}

TEST_F(enter, does_not_wait_for_what_was_read)
{
	ASSERT_EQ(4, put_nops(&self->rings, 0, 4));
	test_cmd_enter(4, self->fd, 4);
	EXPECT_EQ(4, take_nops(&self->rings, 0));
	/* No job is in flight, so there is nothing to wait for. */
	test_cmd_enter(0, self->fd, 4);
	EXPECT_EQ(0, take_nops(&self->rings, 0));
}

TEST_F(enter, has_no_other_way_in)
{
	struct kxfer_nop nop = { .size = sizeof(nop) };

	/* The argument is a number, also if it looks like a structure. */
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_ENTER, &nop));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, KXFER_ENTER | 4U << 16, &nop));
}

/* Threads that ENTER all the time, while one writes jobs. */
struct crowd {
	struct rings *rings;
	atomic_bool enough;
	atomic_int error;
	atomic_ullong accepted;
};

static void *enter_often(void *argument)
{
	struct crowd *crowd = argument;
	int ret;

	while (!crowd->enough) {
		ret = kx_enter(crowd->rings->fd, 0);
		if (ret > 0)
			crowd->accepted += ret;
		else if (ret < 0 && ret != -EAGAIN)
			crowd->error = ret;
	}
	return NULL;
}

TEST_F_TIMEOUT(enter, may_be_called_by_several_threads_at_once, 60)
{
	uint64_t end = kx_deadline_ns(RUN_MS), put = 0, taken = 0;
	struct crowd crowd = { .rings = &self->rings };
	pthread_t threads[2];
	int i, n = 0;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, enter_often, &crowd));
	while (kx_now_ns() < end && n >= 0) {
		put += put_nops(&self->rings, put, 3);
		n = take_nops(&self->rings, taken);
		taken += n;
	}
	EXPECT_TRUE(kx_wait_until(self->rings.sq.shared->head == (uint32_t)put, KX_TIMEOUT_MS));
	crowd.enough = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	n = take_nops(&self->rings, taken);
	EXPECT_LE(0, n);
	EXPECT_EQ(put, taken + n);
	EXPECT_EQ(put, crowd.accepted);
	EXPECT_EQ(0, crowd.error);
	EXPECT_LT(100, put);
}

/* ---- waiting ---- */

FIXTURE(held_enter)
{
	struct raw_server server;
	struct rings rings;
	struct kxfer_job job;	/* a NOTIFY */
	int fd;
};

FIXTURE_SETUP(held_enter)
{
	uint16_t port = kx_own_port();
	uint32_t peer, target;

	raw_server_init(&self->server);
	self->server.withhold = true;
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, open_rings(&self->rings, self->fd, COMPLETIONS, ENTRIES));
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "window", 0, &target);
	self->job = (struct kxfer_job) { .op = KXFER_OP_NOTIFY, .target = target };
}

FIXTURE_TEARDOWN(held_enter)
{
	self->server.withhold = false;
	unmap_rings(&self->rings);
	close(self->fd);
	raw_server_stop(&self->server);
}

TEST_F(held_enter, waits_until_the_deadline)
{
	struct kxfer_sq *shared = self->rings.sq.shared;

	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &self->job, 1));
	shared->deadline_ns = kx_deadline_ns(5);
	test_cmd_enter(1, self->fd, 1);
	EXPECT_LE(shared->deadline_ns, kx_now_ns());
	EXPECT_EQ(0, kx_ring_unread(&self->rings.ring));
	shared->deadline_ns = kx_deadline_ns(5);
	test_err_enter(ETIMEDOUT, self->fd, 1);
	self->server.withhold = false;
	shared->deadline_ns = kx_deadline_ns(KX_TIMEOUT_MS);
	test_cmd_enter(0, self->fd, 1);
	EXPECT_EQ(1, kx_ring_unread(&self->rings.ring));
}

TEST_F(held_enter, waits_for_what_is_unread_not_for_what_was)
{
	struct kxfer_job jobs[2] = { self->job, {} };

	ASSERT_EQ(4, put_nops(&self->rings, 0, 4));
	test_cmd_enter(4, self->fd, 4);
	ASSERT_EQ(4, take_nops(&self->rings, 0));
	/* The NOP is one; so were the four, which are read. */
	ASSERT_EQ(2, kx_sq_put(&self->rings.sq, jobs, 2));
	self->rings.sq.shared->deadline_ns = kx_deadline_ns(5);
	test_cmd_enter(2, self->fd, 2);
	EXPECT_LE(self->rings.sq.shared->deadline_ns, kx_now_ns());
	EXPECT_EQ(1, kx_ring_unread(&self->rings.ring));
}

/* So that even jobs that need no batch make the call look at what was read. */
TEST_F(held_enter, waits_for_what_is_unread_behind_NOPs)
{
	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &self->job, 1));
	test_cmd_enter(1, self->fd, 0);
	ASSERT_EQ(4, put_nops(&self->rings, 0, 4));
	test_cmd_enter(4, self->fd, 4);
	ASSERT_EQ(4, take_nops(&self->rings, 0));
	ASSERT_EQ(1, put_nops(&self->rings, 4, 1));
	self->rings.sq.shared->deadline_ns = kx_deadline_ns(5);
	test_cmd_enter(1, self->fd, 2);
	EXPECT_LE(self->rings.sq.shared->deadline_ns, kx_now_ns());
}

TEST_F(held_enter, may_be_interrupted)
{
	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &self->job, 1));
	ASSERT_EQ(0, kx_alarms(5, 0));
	test_cmd_enter(1, self->fd, 1);
	ASSERT_EQ(0, kx_alarms(5, 0));
	test_err_enter(EINTR, self->fd, 1);
	ASSERT_EQ(0, kx_alarms(0, 0));
}

TEST_F(held_enter, does_not_wait_if_it_may_not)
{
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, fcntl(self->fd, F_GETFL) | O_NONBLOCK));
	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &self->job, 1));
	test_cmd_enter(1, self->fd, 1);
	test_err_enter(EAGAIN, self->fd, 1);
}

static void *wait_for_one(void *argument)
{
	struct rings *rings = argument;

	return (void *)(long)kx_enter(rings->fd, 1);
}

TEST_F(held_enter, that_waits_keeps_no_other_waiting)
{
	void *ret = NULL;
	pthread_t waiter;

	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &self->job, 1));
	ASSERT_EQ(0, pthread_create(&waiter, NULL, wait_for_one, &self->rings));
	ASSERT_TRUE(kx_wait_until(self->rings.sq.shared->head == 1, KX_TIMEOUT_MS));
	ASSERT_EQ(1, put_nops(&self->rings, 7, 1));
	test_cmd_enter(1, self->fd, 0);
	pthread_join(waiter, &ret);
	EXPECT_EQ(1, (long)ret);
	EXPECT_EQ(1, take_nops(&self->rings, 7));
}

/* ---- transfers ---- */

FIXTURE(moving)
{
	struct kx_pair pair;
	struct rings rings;
};

FIXTURE_SETUP(moving)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	ASSERT_EQ(0, open_rings(&self->rings, self->pair.client, 512, 256));
}

FIXTURE_TEARDOWN(moving)
{
	unmap_rings(&self->rings);
	kx_pair_close(&self->pair);
}

static struct kxfer_job transfer(const struct kx_pair *pair, uint32_t op, uint64_t at,
				 uint64_t length)
{
	return (struct kxfer_job) {
		.op = op,
		.region = pair->client_region,
		.target = pair->target,
		.region_offset = at,
		.target_offset = at,
		.length = length,
		.user_data = at,
	};
}

static void fill(uint8_t *memory, size_t length, uint8_t seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		memory[i] = seed + i + i / 251;
}

/* Jobs of one piece and of many, on known objects and on new ones, by each call. */
TEST_F(moving, reads_and_writes)
{
	struct kxfer_completion done[256];
	struct kxfer_job job;
	uint32_t i, bad = 0;

	fill(self->pair.server_memory, LENGTH, 1);
	for (i = 0; i < 64; i++) {
		job = transfer(&self->pair, KXFER_OP_READ, i * 1024, 1024);
		ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &job, 1));
	}
	test_cmd_enter(64, self->pair.client, 64);
	ASSERT_EQ(64, kx_ring_take(&self->rings.ring, done, 256));
	for (i = 0; i < 64; i++)
		bad += done[i].status || done[i].bytes != 1024 || done[i].user_data != i * 1024;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(0, memcmp(self->pair.server_memory, self->pair.client_memory, LENGTH));
	fill(self->pair.client_memory, LENGTH, 2);
	job = transfer(&self->pair, KXFER_OP_WRITE, 0, LENGTH);
	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &job, 1));
	test_cmd_enter(1, self->pair.client, 1);
	ASSERT_EQ(1, kx_ring_take(&self->rings.ring, done, 1));
	EXPECT_EQ(0, done[0].status);
	EXPECT_EQ(0, memcmp(self->pair.server_memory, self->pair.client_memory, LENGTH));
}

TEST_F(moving, refuses_what_is_out_of_bounds)
{
	struct kxfer_job job = transfer(&self->pair, KXFER_OP_READ, 0, 64);
	struct kxfer_sq *shared = self->rings.sq.shared;

	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &job, 1));
	test_cmd_enter(1, self->pair.client, 1);
	job.target_offset = LENGTH - 63;
	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &job, 1));
	test_err_enter(ERANGE, self->pair.client, 0);
	shared->tail = shared->head;
	job.target_offset = 0;
	job.region_offset = -64ULL;
	ASSERT_EQ(1, kx_sq_put(&self->rings.sq, &job, 1));
	test_err_enter(EOVERFLOW, self->pair.client, 0);
	EXPECT_EQ(EOVERFLOW, shared->error);
}

/* A thread that changes jobs while the kernel reads them: to valid ones and to others. */
struct liar {
	struct _test_data_moving *self;
	atomic_bool enough;
};

static void *lie(void *argument)
{
	static const uint64_t offsets[] = { 0, LENGTH - 64, LENGTH, LENGTH - 1, 1ULL << 40,
					    -1ULL, 64 };
	static const uint64_t lengths[] = { 64, 1, LENGTH, LENGTH + 1, 0, -1ULL, 128 };
	static const uint32_t ops[] = { KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_NOP, 99 };
	struct liar *liar = argument;
	volatile struct kxfer_job *job;
	unsigned int n;

	for (n = 0; !liar->enough; n++) {
		job = &liar->self->rings.sq.jobs[n % 4];
		job->region_offset = offsets[n % 7];
		job->length = lengths[n / 3 % 7];
		job->target_offset = offsets[n / 5 % 7];
		job->op = ops[n / 11 % 4];
		job->region = liar->self->pair.client_region + !(n % 13);
		job->target = liar->self->pair.target + !(n % 17);
		job->flags = n % 19 ? 0 : n;
	}
	return NULL;
}

static bool is_refusal(int error)
{
	return error == EINVAL || error == ERANGE || error == EOVERFLOW || error == ENOENT ||
	       error == EOPNOTSUPP || error == EACCES || error == EMSGSIZE;
}

/* What the kernel has checked is what it carries out: no accepted job fails, nothing else moves. */
TEST_F_TIMEOUT(moving, is_proof_against_jobs_that_change_meanwhile, 60)
{
	uint64_t end = kx_deadline_ns(RUN_MS), protocol = kx_counter(self->pair.client,
								    "protocol_errors");
	struct kxfer_sq *shared = self->rings.sq.shared;
	struct liar liar = { .self = self };
	uint32_t accepted = 0, refused = 0, bad = 0, taken, i;
	struct kxfer_completion done[4];
	pthread_t thread;
	int ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, lie, &liar));
	while (kx_now_ns() < end) {
		__atomic_store_n(&shared->tail, shared->head + 4, __ATOMIC_RELEASE);
		ret = kx_enter(self->pair.client, 4);
		accepted += ret > 0 ? ret : 0;
		refused += ret < 4;
		bad += ret < 0 ? !is_refusal(-ret) : ret < 4 && !is_refusal(shared->error);
		shared->deadline_ns = 0;
		while ((taken = kx_ring_take(&self->rings.ring, done, 4)))
			for (i = 0; i < taken; i++)
				bad += done[i].status != 0 || done[i].bytes > LENGTH;
	}
	liar.enough = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, bad);
	EXPECT_LT(0, accepted);
	EXPECT_LT(0, refused);
	EXPECT_EQ(protocol, kx_counter(self->pair.client, "protocol_errors"));
}

TEST_HARNESS_MAIN
