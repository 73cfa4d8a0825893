// SPDX-License-Identifier: GPL-2.0
/*
 * The completion ring: making and mapping it, its completions, the signals of its eventfd,
 * invalid calls, and readers that lie.
 *
 * The fixture `held_ring` makes jobs wait, as in reap.c.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "harness/slow.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/ring.h"

#define ENTRIES	16
#define LENGTH	(64UL << 10)
#define PORT	kx_own_port()
#define MANY	100	/* more NOTIFYs than a lane may have unanswered */

/* Submits NOPs whose user_data count from @first. Return: jobs accepted, or -errno. */
static int submit_nops(int fd, uint64_t first, uint32_t nr)
{
	struct kxfer_job jobs[256] = {};
	uint32_t i;

	for (i = 0; i < nr; i++)
		jobs[i].user_data = first + i;
	return kx_submit(fd, jobs, nr);
}

/*
 * Takes all completions and checks that they are NOPs counted from @first. Return: number, or
 * -1.
 */
static int take_nops(struct kx_ring *ring, uint64_t first)
{
	struct kxfer_completion done[256];
	uint32_t nr = kx_ring_take(ring, done, 256), i;

	for (i = 0; i < nr; i++)
		if (done[i].user_data != first + i || done[i].status || done[i].bytes ||
		    done[i].op != KXFER_OP_NOP || !done[i].submitted_ns ||
		    done[i].completed_ns < done[i].submitted_ns)
			return -1;
	return nr;
}

static int events_of(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&poll_fd, 1, 0) < 0 ? -errno : poll_fd.revents;
}

/* ---- making it ---- */

FIXTURE(ring)
{
	int fd;
	struct kx_ring ring;
};

FIXTURE_SETUP(ring)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(ring)
{
	kx_ring_unmap(&self->ring);
	close(self->fd);
}

TEST_F(ring, has_a_power_of_two_of_entries)
{
	static const uint32_t bad[] = { 0, 3, 6, 4095, 4097, 8192, 1U << 31, UINT32_MAX };
	uint32_t entries;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		test_err_ring_make(EINVAL, self->fd, bad[i], KX_NO_EVENTFD, &self->ring);
	for (entries = 1; entries <= 4096; entries *= 2) {
		struct kx_ring ring;

		fd = kx_open();
		test_cmd_ring_open(fd, entries, KX_NO_EVENTFD, &ring);
		EXPECT_EQ(entries, ring.shared->entries);
		EXPECT_EQ(entries - 1, ring.shared->mask);
		EXPECT_EQ(0, ring.shared->head);
		EXPECT_EQ(0, ring.shared->tail);
		EXPECT_EQ(0, ring.bytes % sysconf(_SC_PAGESIZE));
		EXPECT_LE(sizeof(*ring.shared) + entries * sizeof(*ring.slots), ring.bytes);
		EXPECT_EQ(0, ring.slots[entries - 1].user_data);
		kx_ring_unmap(&ring);
		close(fd);
	}
}

TEST_F(ring, is_told_by_query)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_CQ_RING);
}

TEST_F(ring, takes_an_eventfd_and_nothing_else)
{
	struct kxfer_cq_ring cmd = { .size = sizeof(cmd), .entries = 1 };
	int event = eventfd(0, EFD_CLOEXEC);

	ASSERT_LE(0, event);
	cmd.eventfd = event;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_CQ_RING, &cmd));
	test_err_ring_make(EBADF, self->fd, 1, -2, &self->ring);
	test_err_ring_make(EBADF, self->fd, 1, 9999, &self->ring);
	test_err_ring_make(EINVAL, self->fd, 1, self->fd, &self->ring);
	test_cmd_ring_make(self->fd, 1, event, &self->ring);
}

TEST_F(ring, is_made_once)
{
	test_cmd_ring_make(self->fd, 1, KX_NO_EVENTFD, &self->ring);
	test_err_ring_make(EEXIST, self->fd, 1, KX_NO_EVENTFD, &self->ring);
	test_cmd_submit(1, self->fd, &(struct kxfer_job) {}, 1);
	test_err_ring_make(EEXIST, self->fd, 1, KX_NO_EVENTFD, &self->ring);
}

TEST_F(ring, is_made_before_there_are_completions)
{
	struct kxfer_completion done;

	test_cmd_submit(1, self->fd, &(struct kxfer_job) {}, 1);
	test_err_ring_make(EBUSY, self->fd, 1, KX_NO_EVENTFD, &self->ring);
	test_cmd_reap(1, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
	test_cmd_ring_make(self->fd, 1, KX_NO_EVENTFD, &self->ring);
}

TEST_F(ring, goes_with_its_session)
{
	uint64_t live = kx_counter(self->fd, "live_rings");
	int fd = kx_open();

	test_cmd_ring_make(fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(live + 1, kx_counter(self->fd, "live_rings"));
	test_err_ring_make(EEXIST, fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(live + 1, kx_counter(self->fd, "live_rings"));
	close(fd);
	EXPECT_EQ(live, kx_counter(self->fd, "live_rings"));
}

/* ---- mapping it ---- */

static int map_error(const struct kx_ring *ring, int fd, long more, int protection, int flags,
		     uint64_t offset)
{
	void *at = mmap(NULL, ring->bytes + more, protection, flags, fd, offset);

	if (at == MAP_FAILED)
		return errno;
	munmap(at, ring->bytes + more);
	return 0;
}

TEST_F(ring, is_mapped_whole_shared_and_not_executable)
{
	const int rw = PROT_READ | PROT_WRITE;
	struct kx_ring *ring = &self->ring;
	long page = sysconf(_SC_PAGESIZE);
	int other = kx_open();

	test_cmd_ring_make(self->fd, 256, KX_NO_EVENTFD, ring);
	EXPECT_EQ(EINVAL, map_error(ring, other, 0, rw, MAP_SHARED, ring->offset));
	EXPECT_EQ(EINVAL, map_error(ring, self->fd, -page, rw, MAP_SHARED, ring->offset));
	EXPECT_EQ(EINVAL, map_error(ring, self->fd, page, rw, MAP_SHARED, ring->offset));
	EXPECT_EQ(EINVAL, map_error(ring, self->fd, 0, rw, MAP_SHARED, ring->offset + page));
	EXPECT_EQ(EINVAL, map_error(ring, self->fd, 0, rw, MAP_SHARED, 1ULL << 43));
	EXPECT_EQ(EINVAL, map_error(ring, self->fd, 0, rw, MAP_PRIVATE, ring->offset));
	EXPECT_EQ(EINVAL, map_error(ring, self->fd, 0, PROT_READ, MAP_PRIVATE, ring->offset));
	EXPECT_EQ(EACCES, map_error(ring, self->fd, 0, rw | PROT_EXEC, MAP_SHARED,
				    ring->offset));
	EXPECT_EQ(EACCES, map_error(ring, self->fd, 0, PROT_EXEC, MAP_SHARED, ring->offset));
	EXPECT_EQ(0, map_error(ring, self->fd, 0, PROT_READ, MAP_SHARED, ring->offset));
	EXPECT_EQ(0, map_error(ring, self->fd, 0, rw, MAP_SHARED, ring->offset));
	close(other);
}

TEST_F(ring, stays_as_it_was_mapped)
{
	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(-1, mprotect(self->ring.shared, self->ring.bytes, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(self->ring.shared, self->ring.bytes,
				     2 * self->ring.bytes, MREMAP_MAYMOVE));
	EXPECT_EQ(0, mprotect(self->ring.shared, self->ring.bytes, PROT_READ));
	EXPECT_EQ(ENTRIES, self->ring.shared->entries);
}

TEST_F(ring, may_be_mapped_for_reading_where_that_is_all_the_file_allows)
{
	int fd = open(KX_NODE, O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	test_cmd_ring_make(fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(EACCES, map_error(&self->ring, fd, 0, PROT_READ | PROT_WRITE, MAP_SHARED,
				    self->ring.offset));
	EXPECT_EQ(0, map_error(&self->ring, fd, 0, PROT_READ, MAP_SHARED, self->ring.offset));
	close(fd);
}

TEST_F(ring, may_be_mapped_twice)
{
	struct kx_ring second;

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	second = self->ring;
	ASSERT_EQ(0, kx_ring_map(self->fd, &second));
	ASSERT_EQ(2, submit_nops(self->fd, 0, 2));
	EXPECT_EQ(2, take_nops(&second, 0));
	EXPECT_EQ(0, kx_ring_unread(&self->ring));
	kx_ring_unmap(&second);
}

TEST_F(ring, is_not_inherited_but_may_be_mapped_by_a_child)
{
	int status = 0;
	pid_t child;

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	ASSERT_EQ(1, submit_nops(self->fd, 7, 1));
	child = fork();
	if (!child) {
		if (kx_ring_map(self->fd, &self->ring) || take_nops(&self->ring, 7) != 1)
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, kx_ring_unread(&self->ring));
	/* User-mode Linux: a child's process on the host has the maps of its parent. */
	if (!access("/proc/exitcode", F_OK))
		return;
	child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile uint32_t *)&self->ring.shared->tail);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

TEST_F(ring, goes_on_without_a_mapping)
{
	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	kx_ring_unmap(&self->ring);
	ASSERT_EQ(3, submit_nops(self->fd, 0, 3));
	ASSERT_EQ(0, kx_ring_map(self->fd, &self->ring));
	EXPECT_EQ(3, take_nops(&self->ring, 0));
}

TEST_F(ring, may_lose_a_page)
{
	test_cmd_ring_open(self->fd, 4096, KX_NO_EVENTFD, &self->ring);
	ASSERT_EQ(0, munmap((char *)self->ring.shared + self->ring.bytes / 2 / 4096 * 4096,
			    4096));
	ASSERT_EQ(3, submit_nops(self->fd, 0, 3));
	EXPECT_EQ(3, take_nops(&self->ring, 0));
}

/* ---- completions in the ring ---- */

TEST_F(ring, holds_completions_in_order)
{
	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(0, take_nops(&self->ring, 0));
	ASSERT_EQ(5, submit_nops(self->fd, 100, 5));
	EXPECT_EQ(5, take_nops(&self->ring, 100));
	EXPECT_EQ(0, take_nops(&self->ring, 0));
}

TEST_F(ring, wraps_around)
{
	uint64_t next = 0;
	int round;

	test_cmd_ring_open(self->fd, 8, KX_NO_EVENTFD, &self->ring);
	for (round = 0; round < 500; round++) {
		int nr = 1 + round % 8;

		ASSERT_EQ(nr, submit_nops(self->fd, next, nr));
		ASSERT_EQ(nr, take_nops(&self->ring, next));
		next += nr;
	}
	EXPECT_EQ(next, self->ring.shared->tail);
}

TEST_F(ring, of_one_entry_works)
{
	uint64_t i;

	test_cmd_ring_open(self->fd, 1, KX_NO_EVENTFD, &self->ring);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, submit_nops(self->fd, i, 1));
		test_err_submit(EAGAIN, self->fd, &(struct kxfer_job) {}, 1);
		ASSERT_EQ(1, take_nops(&self->ring, i));
	}
}

TEST_F(ring, that_is_full_takes_no_job_until_it_is_read)
{
	struct kxfer_completion done[3];

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(ENTRIES, submit_nops(self->fd, 0, ENTRIES + 4));
	EXPECT_EQ(-EAGAIN, submit_nops(self->fd, 0, 1));
	EXPECT_EQ(POLLIN, events_of(self->fd));
	EXPECT_EQ(3, kx_ring_take(&self->ring, done, 3));
	EXPECT_EQ(2, done[2].user_data);
	EXPECT_EQ(POLLIN | POLLOUT, events_of(self->fd));
	EXPECT_EQ(3, submit_nops(self->fd, ENTRIES, 4));
	EXPECT_EQ(-EAGAIN, submit_nops(self->fd, 0, 1));
	EXPECT_EQ(ENTRIES, take_nops(&self->ring, 3));
	EXPECT_EQ(POLLOUT, events_of(self->fd));
}

TEST_F(ring, gives_the_share_of_a_uid_back_at_once)
{
	uint64_t next;

	test_cmd_ring_open(self->fd, 256, KX_NO_EVENTFD, &self->ring);
	ASSERT_EQ(0, kx_become_tester());
	for (next = 0; next < 33000; next += 256) {
		ASSERT_EQ(256, submit_nops(self->fd, next, 256));
		ASSERT_EQ(256, take_nops(&self->ring, next));
	}
}

TEST_F(ring, is_announced_by_poll)
{
	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	EXPECT_EQ(POLLOUT, events_of(self->fd));
	ASSERT_EQ(1, submit_nops(self->fd, 0, 1));
	EXPECT_EQ(POLLIN | POLLOUT, events_of(self->fd));
	EXPECT_EQ(1, take_nops(&self->ring, 0));
	EXPECT_EQ(POLLOUT, events_of(self->fd));
}

TEST_F(ring, shows_what_is_unread_in_the_list_of_sessions)
{
	struct kxfer_info_session info[64];
	uint64_t cursor = 0;
	int n, i, found = 0;

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	ASSERT_EQ(5, submit_nops(self->fd, 0, 5));
	ASSERT_EQ(2, kx_ring_take(&self->ring, (struct kxfer_completion[2]) {}, 2));
	n = kx_info(self->fd, KXFER_INFO_SESSIONS, info, sizeof(*info), 64, &cursor);
	for (i = 0; i < n; i++)
		found += info[i].pid == (uint32_t)getpid() && info[i].nr_done == 3;
	EXPECT_EQ(1, found);
}

TEST_F(ring, leaves_nothing_to_submit_and_reap)
{
	struct kxfer_job nop = { .op = KXFER_OP_NOP };
	struct kxfer_completion done;
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)&nop,
		.nr_jobs = 1,
		.stride = sizeof(nop),
	};

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	cmd.completions = (uintptr_t)&done;
	cmd.nr_completions = 1;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	cmd.completions = 0;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	cmd.nr_completions = 0;
	cmd.wait = ENTRIES + 1;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	EXPECT_EQ(0, self->ring.shared->tail);
	test_err_reap(EINVAL, self->fd, &done, 1, 0, 0);
	test_err_reap(EINVAL, self->fd, &done, 0, 0, 0);
	test_err_reap(EINVAL, self->fd, NULL, 1, 0, 0);
	test_err_ring_wait(EINVAL, self->fd, ENTRIES + 1, 0);
	test_cmd_ring_wait(self->fd, 0, 0);
	/* Without jobs in flight the call does not wait. */
	test_cmd_ring_wait(self->fd, ENTRIES, 0);
	cmd.wait = ENTRIES;
	EXPECT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(0, cmd.reaped);
	EXPECT_EQ(1, kx_ring_unread(&self->ring));
	test_cmd_ring_wait(self->fd, 1, 0);
}

/* ---- readers that lie ---- */

TEST_F(ring, counts_no_head_that_is_none)
{
	static const int32_t lies[] = { 1, 2, ENTRIES, ENTRIES + 1, INT32_MAX, INT32_MIN };
	volatile struct kxfer_ring *shared;
	uint32_t tail;
	size_t i;

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	shared = self->ring.shared;
	ASSERT_EQ(ENTRIES, submit_nops(self->fd, 0, ENTRIES));
	tail = shared->tail;
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		/* Ahead of tail, and further behind it than there are entries. */
		shared->head = tail + lies[i];
		EXPECT_EQ(-EAGAIN, submit_nops(self->fd, 0, 1));
		EXPECT_EQ(POLLIN, events_of(self->fd));
		shared->head = tail - ENTRIES - lies[i];
		EXPECT_EQ(-EAGAIN, submit_nops(self->fd, 0, 1));
	}
	shared->head = tail;
	ASSERT_EQ(ENTRIES, submit_nops(self->fd, 100, ENTRIES));
	EXPECT_EQ(ENTRIES, take_nops(&self->ring, 100));
}

TEST_F(ring, counts_no_head_that_goes_back)
{
	volatile struct kxfer_ring *shared;

	test_cmd_ring_open(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring);
	shared = self->ring.shared;
	ASSERT_EQ(8, submit_nops(self->fd, 0, 8));
	shared->head = 8;
	EXPECT_EQ(POLLOUT, events_of(self->fd));
	shared->head = 0;
	EXPECT_EQ(POLLOUT, events_of(self->fd));
	EXPECT_EQ(ENTRIES, submit_nops(self->fd, 8, ENTRIES + 1));
	shared->head = 8;
	EXPECT_EQ(ENTRIES, take_nops(&self->ring, 8));
}

TEST_F(ring, does_not_believe_what_is_written_over_it)
{
	test_cmd_ring_open(self->fd, 256, KX_NO_EVENTFD, &self->ring);
	ASSERT_EQ(8, submit_nops(self->fd, 0, 8));
	memset(self->ring.shared, 0xff, self->ring.bytes);
	ASSERT_EQ(248, submit_nops(self->fd, 8, 249));
	/* The kernel uses its own copy of tail, and never reads entries and mask. */
	EXPECT_EQ(256, self->ring.shared->tail);
	EXPECT_EQ(UINT32_MAX, self->ring.shared->mask);
	self->ring.shared->mask = 255;
	self->ring.shared->head = 8;
	EXPECT_EQ(248, take_nops(&self->ring, 8));
	ASSERT_EQ(256, submit_nops(self->fd, 0, 256));
	EXPECT_EQ(256, take_nops(&self->ring, 0));
}

/* ---- its eventfd ---- */

static int64_t count_of(int event)
{
	uint64_t count;

	if (read(event, &count, sizeof(count)) == sizeof(count))
		return count;
	return errno == EAGAIN ? 0 : -errno;
}

TEST_F(ring, tells_its_eventfd_once_until_it_is_read)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct kxfer_completion done[2];

	test_cmd_ring_open(self->fd, ENTRIES, event, &self->ring);
	EXPECT_EQ(0, count_of(event));
	ASSERT_EQ(5, submit_nops(self->fd, 0, 5));
	EXPECT_EQ(1, count_of(event));
	ASSERT_EQ(1, submit_nops(self->fd, 5, 1));
	EXPECT_EQ(0, count_of(event));
	EXPECT_EQ(2, kx_ring_take(&self->ring, done, 2));
	ASSERT_EQ(1, submit_nops(self->fd, 6, 1));
	EXPECT_EQ(0, count_of(event));
	EXPECT_EQ(5, take_nops(&self->ring, 2));
	ASSERT_EQ(3, submit_nops(self->fd, 7, 3));
	EXPECT_EQ(1, count_of(event));
	EXPECT_EQ(3, take_nops(&self->ring, 7));
	/* Each completion finds the ring empty. */
	ASSERT_EQ(1, submit_nops(self->fd, 10, 1));
	EXPECT_EQ(1, take_nops(&self->ring, 10));
	ASSERT_EQ(1, submit_nops(self->fd, 11, 1));
	EXPECT_EQ(2, count_of(event));
	close(event);
}

TEST_F(ring, keeps_its_eventfd)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), twin = dup(event);

	test_cmd_ring_open(self->fd, ENTRIES, event, &self->ring);
	close(event);
	ASSERT_EQ(1, submit_nops(self->fd, 0, 1));
	EXPECT_EQ(1, count_of(twin));
	close(twin);
	EXPECT_EQ(1, take_nops(&self->ring, 0));
	ASSERT_EQ(1, submit_nops(self->fd, 1, 1));
}

struct reaper {
	int fd;
	struct kxfer_completion *to;
	int ret;
};

static void *reap_one(void *argument)
{
	struct reaper *reaper = argument;

	reaper->ret = kx_reap(reaper->fd, reaper->to, 1, 1, KX_TIMEOUT_MS);
	return NULL;
}

/*
 * A completion is the session's until it is stored: one for which memory has to be brought in
 * can be taken by another REAP, and as long as it is there no ring is made.
 */
TEST_F(ring, is_made_when_no_completion_is_left_though_a_reap_waits_for_memory)
{
	struct reaper reaper = { .fd = self->fd };
	struct kxfer_completion done;
	struct kx_slow slow;
	pthread_t reaping;
	int ret;

	ret = kx_slow_open(&slow);
	if (slow.fd < 0)
		SKIP(return, "no userfaultfd in this kernel");
	ASSERT_EQ(0, ret);
	reaper.to = (void *)(slow.pages + KX_SLOW_PAGE);
	ASSERT_EQ(1, submit_nops(self->fd, 7, 1));
	ASSERT_EQ(0, pthread_create(&reaping, NULL, reap_one, &reaper));
	EXPECT_TRUE(kx_slow_is_waited_for(&slow));
	EXPECT_EQ(-EBUSY, kx_ring_make(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring));
	test_cmd_reap(1, self->fd, &done, 1, 0, 0);
	EXPECT_EQ(7, done.user_data);
	EXPECT_EQ(0, kx_ring_make(self->fd, ENTRIES, KX_NO_EVENTFD, &self->ring));
	EXPECT_EQ(0, kx_slow_take_away(&slow));
	pthread_join(reaping, NULL);
	EXPECT_EQ(-EFAULT, reaper.ret);
	kx_slow_close(&slow);
}

/* ---- jobs that do not end at once ---- */

FIXTURE(held_ring)
{
	struct raw_server server;
	int fd;
	int observer;
	int event;
	struct kx_ring ring;
	struct kxfer_job job;	/* a NOTIFY */
	struct kxfer_completion done[MANY];
};

FIXTURE_SETUP(held_ring)
{
	uint32_t peer, target;

	raw_server_init(&self->server);
	self->server.withhold = true;
	ASSERT_EQ(0, raw_server_start(&self->server, PORT));
	self->observer = kx_open();
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->event = eventfd(0, EFD_CLOEXEC);
	test_cmd_ring_open(self->fd, 128, self->event, &self->ring);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), PORT), &peer);
	test_cmd_target_open(self->fd, peer, "window", 0, &target);
	self->job = (struct kxfer_job) { .op = KXFER_OP_NOTIFY, .target = target };
}

FIXTURE_TEARDOWN(held_ring)
{
	self->server.withhold = false;
	kx_ring_unmap(&self->ring);
	if (self->fd >= 0)
		close(self->fd);
	close(self->observer);
	close(self->event);
	raw_server_stop(&self->server);
}

static int submit_many(int fd, const struct kxfer_job *job, uint32_t nr)
{
	struct kxfer_job jobs[MANY];
	uint32_t i;

	for (i = 0; i < nr; i++) {
		jobs[i] = *job;
		jobs[i].user_data = i;
	}
	return kx_submit(fd, jobs, nr);
}

static int take_all(struct kx_ring *ring, struct kxfer_completion *done, int nr)
{
	uint64_t end = kx_deadline_ns(KX_TIMEOUT_MS);
	int taken = 0;

	while (taken < nr && kx_now_ns() < end)
		taken += kx_ring_take(ring, done + taken, nr - taken);
	return taken;
}

TEST_F(held_ring, is_not_made_while_jobs_are_in_flight)
{
	struct kx_ring ring;
	uint32_t peer;
	int fd = kx_open();

	test_cmd_peer_open(fd, kx_addr(kx_address(), PORT), &peer);
	test_cmd_target_open(fd, peer, "window", 0, &self->job.target);
	test_cmd_submit(1, fd, &self->job, 1);
	test_err_ring_make(EBUSY, fd, 1, KX_NO_EVENTFD, &ring);
	self->server.withhold = false;
	close(fd);
}

/* A thread that reaps two completions of a session with one job in flight. */
struct waiter {
	int fd;
	pthread_t thread;
	_Atomic pid_t tid;
	int ret;
	struct kxfer_completion done[2];
};

static void *reap_two(void *argument)
{
	struct waiter *waiter = argument;

	waiter->tid = gettid();
	waiter->ret = kx_reap(waiter->fd, waiter->done, 2, 1, KX_TIMEOUT_MS);
	return NULL;
}

static bool sleeps(pid_t tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

static void begin_to_wait(struct __test_metadata *_metadata, struct kxfer_job *job,
			  struct waiter *waiter)
{
	uint32_t peer;

	waiter->fd = kx_open();
	test_cmd_peer_open(waiter->fd, kx_addr(kx_address(), PORT), &peer);
	test_cmd_target_open(waiter->fd, peer, "window", 0, &job->target);
	test_cmd_submit(1, waiter->fd, job, 1);
	ASSERT_EQ(0, pthread_create(&waiter->thread, NULL, reap_two, waiter));
	EXPECT_TRUE(kx_wait_until(waiter->tid && sleeps(waiter->tid), KX_TIMEOUT_MS));
}

/* Runs with real-time priority, so that no other task of this CPU runs in between. */
static bool make_a_ring_before_it_wakes(const struct waiter *waiter, struct kx_ring *ring)
{
	struct kxfer_completion done;

	return kx_cancel(waiter->fd, 0, KXFER_CANCEL_F_ALL) == 1 &&
	       kx_reap(waiter->fd, &done, 1, 0, 0) == 1 &&
	       !kx_ring_open(waiter->fd, ENTRIES, KX_NO_EVENTFD, ring) &&
	       submit_nops(waiter->fd, 0, 4) == 4;
}

static bool overtake(const struct waiter *waiter, struct kx_ring *ring)
{
	struct sched_param first = { .sched_priority = 1 }, none = {};
	bool ok;

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		return false;
	ok = make_a_ring_before_it_wakes(waiter, ring);
	sched_setscheduler(0, SCHED_OTHER, &none);
	return ok;
}

/*
 * A waiting REAP has one job, which is cancelled. Before the waiter runs, another thread has
 * reaped the job, and has made a ring that already contains completions. Only a queued job can
 * be cancelled, so another session holds all slots of the lane, and lanes are few.
 */
TEST_F(held_ring, gives_nothing_to_a_reap_that_began_before_it)
{
	struct waiter waiters[8] = {};
	struct kx_ring ring;
	bool late = false;
	cpu_set_t one;
	int nr, i;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	for (nr = 0; nr < 8 && !late; nr++) {
		begin_to_wait(_metadata, &self->job, &waiters[nr]);
		late = overtake(&waiters[nr], &ring);
	}
	self->server.withhold = false;
	for (i = 0; i < nr; i++)
		pthread_join(waiters[i].thread, NULL);
	ASSERT_TRUE(late);
	EXPECT_EQ(0, waiters[nr - 1].ret);
	EXPECT_EQ(4, take_nops(&ring, 0));
	kx_ring_unmap(&ring);
	for (i = 0; i < nr; i++)
		close(waiters[i].fd);
}

TEST_F(held_ring, keeps_room_for_jobs_in_flight)
{
	struct kxfer_job nop = { .op = KXFER_OP_NOP, .user_data = MANY };

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	ASSERT_EQ(28, submit_nops(self->fd, 0, 29));
	ASSERT_EQ(28, kx_ring_take(&self->ring, self->done, MANY));
	ASSERT_EQ(28, submit_nops(self->fd, 0, 29));
	test_err_submit(EAGAIN, self->fd, &nop, 1);
	self->server.withhold = false;
	test_cmd_ring_wait(self->fd, 128, KX_TIMEOUT_MS);
	EXPECT_EQ(128, kx_ring_unread(&self->ring));
}

TEST_F(held_ring, is_waited_for_by_submit_and_reap)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)&self->job,
		.nr_jobs = 1,
		.stride = sizeof(self->job),
		.wait = 2,
		.deadline_ns = kx_deadline_ns(5),
	};

	ASSERT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	EXPECT_LE(cmd.deadline_ns, kx_now_ns());
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(0, cmd.reaped);
	test_err_ring_wait(ETIMEDOUT, self->fd, 1, 5);
	EXPECT_EQ(0, kx_ring_unread(&self->ring));
	self->server.withhold = false;
	cmd.deadline_ns = kx_deadline_ns(KX_TIMEOUT_MS);
	ASSERT_EQ(0, kx_call(self->fd, KXFER_SUBMIT, &cmd));
	EXPECT_EQ(2, kx_ring_unread(&self->ring));
}

TEST_F(held_ring, lets_a_reap_be_interrupted)
{
	test_cmd_submit(1, self->fd, &self->job, 1);
	ASSERT_EQ(0, kx_alarms(5, 0));
	test_err_ring_wait(EINTR, self->fd, 1, 0);
	ASSERT_EQ(0, kx_alarms(0, 0));
}

TEST_F(held_ring, waits_for_what_is_unread_not_for_what_was)
{
	ASSERT_EQ(4, submit_nops(self->fd, 0, 4));
	ASSERT_EQ(4, kx_ring_take(&self->ring, self->done, 4));
	test_cmd_submit(1, self->fd, &self->job, 1);
	test_err_ring_wait(ETIMEDOUT, self->fd, 1, 5);
}

TEST_F(held_ring, gets_jobs_that_are_cancelled_once_each)
{
	uint32_t seen[MANY] = {}, bad = 0, i;
	int cancelled;

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	cancelled = kx_cancel(self->fd, 0, KXFER_CANCEL_F_ALL);
	ASSERT_LT(0, cancelled);
	EXPECT_EQ(cancelled, kx_ring_unread(&self->ring));
	self->server.withhold = false;
	ASSERT_EQ(MANY, take_all(&self->ring, self->done, MANY));
	for (i = 0; i < MANY; i++) {
		cancelled -= self->done[i].status == -ECANCELED;
		bad += self->done[i].user_data >= MANY ||
		       seen[self->done[i].user_data % MANY]++;
	}
	EXPECT_EQ(0, cancelled);
	EXPECT_EQ(0, bad);
}

TEST_F(held_ring, gets_jobs_that_end_at_their_deadline)
{
	struct kxfer_job late = self->job;

	ASSERT_EQ(MANY - 1, submit_many(self->fd, &self->job, MANY - 1));
	late.user_data = 4711;
	late.deadline_ns = kx_deadline_ns(20);
	test_cmd_submit(1, self->fd, &late, 1);
	test_cmd_ring_wait(self->fd, 1, KX_TIMEOUT_MS);
	ASSERT_EQ(1, kx_ring_take(&self->ring, self->done, MANY));
	EXPECT_EQ(4711, self->done[0].user_data);
	EXPECT_EQ(-ETIMEDOUT, self->done[0].status);
}

TEST_F(held_ring, wakes_a_poll_and_the_eventfd)
{
	struct pollfd both[2] = {
		{ .fd = self->fd, .events = POLLIN }, { .fd = self->event, .events = POLLIN },
	};

	test_cmd_submit(1, self->fd, &self->job, 1);
	EXPECT_EQ(0, poll(both, 2, 5));
	self->server.withhold = false;
	ASSERT_LT(0, poll(both, 2, KX_TIMEOUT_MS));
	EXPECT_EQ(1, poll(&both[0], 1, KX_TIMEOUT_MS));
	EXPECT_EQ(1, poll(&both[1], 1, KX_TIMEOUT_MS));
	EXPECT_EQ(1, count_of(self->event));
	EXPECT_EQ(1, kx_ring_take(&self->ring, self->done, MANY));
}

static void *read_by_eventfd(void *argument)
{
	struct _test_data_held_ring *self = argument;
	long taken = 0;
	uint32_t n;

	while (taken < MANY && count_of(self->event) > 0)
		while ((n = kx_ring_take(&self->ring, self->done + taken, 3)))
			taken += n;
	return (void *)taken;
}

TEST_F(held_ring, never_lets_a_reader_sleep_that_reads_to_the_end)
{
	void *taken = NULL;
	pthread_t reader;

	self->server.withhold = false;
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_by_eventfd, self));
	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	pthread_join(reader, &taken);
	EXPECT_EQ(MANY, (long)taken);
}

TEST_F(held_ring, mapped_keeps_a_closed_session_at_work)
{
	uint64_t sessions = kx_counter(self->observer, "live_sessions");

	ASSERT_EQ(2, submit_many(self->fd, &self->job, 2));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(sessions, kx_counter(self->observer, "live_sessions"));
	EXPECT_EQ(0, kx_ring_unread(&self->ring));
	self->server.withhold = false;
	EXPECT_EQ(2, take_all(&self->ring, self->done, 2));
	kx_ring_unmap(&self->ring);
	EXPECT_EQ(sessions - 1, kx_counter(self->observer, "live_sessions"));
}

TEST_F(held_ring, ends_jobs_in_flight_when_it_is_the_last_to_go)
{
	uint64_t jobs = kx_counter(self->observer, "live_jobs");

	ASSERT_EQ(MANY, submit_many(self->fd, &self->job, MANY));
	EXPECT_EQ(jobs + MANY, kx_counter(self->observer, "live_jobs"));
	self->server.withhold = false;
	close(self->fd);
	self->fd = -1;
	kx_ring_unmap(&self->ring);
	EXPECT_EQ(jobs, kx_counter(self->observer, "live_jobs"));
}

TEST_HARNESS_MAIN
