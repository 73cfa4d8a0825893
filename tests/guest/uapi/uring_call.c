// SPDX-License-Identifier: GPL-2.0
/*
 * Calls by io_uring: they do what the ioctl does while their caller goes on, and end when nobody
 * will take their CQE.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/uring.h"

#define LENGTH		4096
#define NR_AT_ONCE	24
#define CALL_MS		60000	/* longest that a TARGET_OPEN may wait */
#define SOON_MS		5000

/* An SQE for a call with the structure @arg. NULL: the ring is full. */
static struct io_uring_sqe *prepare(struct io_uring *ring, int fd, uint32_t op, void *arg)
{
	struct kxfer_uring_call call = { .arg = (uintptr_t)arg };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		return NULL;
	/* liburing does not clear the area. */
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = op;
	memcpy(sqe->cmd, &call, sizeof(call));
	return sqe;
}

/* Return: res of the CQE, or -errno of the helper. */
static int run(struct io_uring *ring, int fd, uint32_t op, void *arg)
{
	return prepare(ring, fd, op, arg) ? uring_run(ring) : -EBUSY;
}

static struct kxfer_target_open open_of(uint32_t peer, const char *name)
{
	struct kxfer_target_open open = {
		.size = sizeof(open), .peer = peer, .timeout_ms = CALL_MS,
	};

	strcpy((char *)open.name, name);
	return open;
}

FIXTURE(call)
{
	struct kx_pair pair;
	struct io_uring ring;
	struct kxfer_target_open open;	/* of the pair's export */
	int fd;				/* session of the client */
};

FIXTURE_SETUP(call)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	/* SQEs of the ordinary size */
	ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, 0));
	self->open = open_of(self->pair.peer, self->pair.name);
	self->fd = self->pair.client;
}

FIXTURE_TEARDOWN(call)
{
	io_uring_queue_exit(&self->ring);
	kx_pair_close(&self->pair);
}

TEST_F(call, is_a_feature)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_URING_CALL);
}

TEST_F(call, opens_a_target)
{
	ASSERT_EQ(0, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &self->open));
	EXPECT_NE(self->pair.target, self->open.target);
	EXPECT_EQ(LENGTH, self->open.length);
	EXPECT_EQ(KXFER_RIGHT_READ, self->open.granted & KXFER_RIGHT_READ);
	memset(self->pair.client_memory, 0x5a, LENGTH);
	ASSERT_EQ(0, kx_transfer(self->fd, KXFER_OP_WRITE, self->pair.client_region, 0,
				 self->open.target, 0, LENGTH));
	EXPECT_EQ(0, memcmp(self->pair.client_memory, self->pair.server_memory, LENGTH));
	test_cmd_target_close(self->fd, self->open.target);
}

TEST_F(call, opens_a_peer)
{
	struct kxfer_peer_open open = {
		.size = sizeof(open), .timeout_ms = CALL_MS,
		.remote = kx_addr(kx_address(), KXFER_PORT),
	};

	ASSERT_EQ(0, run(&self->ring, self->fd, KXFER_PEER_OPEN, &open));
	EXPECT_NE(self->pair.peer, open.peer);
	self->open.peer = open.peer;
	EXPECT_EQ(0, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &self->open));
}

/* More than io_uring's threads do at once; all have been given out before the first has ended. */
TEST_F_TIMEOUT(call, many_go_on_at_once, 60)
{
	struct kxfer_target_open open[NR_AT_ONCE];
	struct io_uring_cqe cqe;
	int i, j;

	for (i = 0; i < NR_AT_ONCE; i++) {
		open[i] = self->open;
		prepare(&self->ring, self->fd, KXFER_TARGET_OPEN, &open[i])->user_data = i;
	}
	ASSERT_EQ(NR_AT_ONCE, io_uring_submit(&self->ring));
	for (i = 0; i < NR_AT_ONCE; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
		EXPECT_EQ(0, cqe.res);
	}
	for (i = 0; i < NR_AT_ONCE; i++)
		for (j = 0; j < i; j++)
			EXPECT_NE(open[i].target, open[j].target);
}

TEST_F_TIMEOUT(call, waits_for_new_content, 60)
{
	struct kxfer_target_info info = {
		.size = sizeof(info), .target = self->pair.target,
		.timeout_ms = CALL_MS, .min_generation = 1,
	};
	static const uint8_t sha256[KXFER_SHA256_SIZE];
	struct io_uring_cqe cqe;
	uint64_t generation;

	prepare(&self->ring, self->fd, KXFER_TARGET_INFO, &info);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(-ETIME, uring_wait(&self->ring, &cqe, NULL, 200));
	test_cmd_export_set(self->pair.server, self->pair.export_id, 17, sha256, &generation);
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, KX_TIMEOUT_MS));
	EXPECT_EQ(0, cqe.res);
	EXPECT_EQ(17, info.content.length);
}

TEST_F(call, works_in_every_ring_that_does_not_poll)
{
	static const unsigned int kinds[] = {
		IORING_SETUP_SQE128, IORING_SETUP_CQE32, IORING_SETUP_SQPOLL,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	};
	struct io_uring ring;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct io_uring_params params = { .flags = kinds[i], .sq_thread_idle = 1000 };

		ASSERT_EQ(0, io_uring_queue_init_params(4, &ring, &params));
		EXPECT_EQ(0, run(&ring, self->fd, KXFER_TARGET_OPEN, &self->open));
		io_uring_queue_exit(&ring);
	}
}

TEST_F(call, does_not_poll)
{
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_IOPOLL));
	EXPECT_EQ(-EOPNOTSUPP, run(&ring, self->fd, KXFER_TARGET_OPEN, &self->open));
	io_uring_queue_exit(&ring);
}

TEST_F(call, refuses_what_the_ioctl_refuses)
{
	struct kxfer_target_open open;

	open = open_of(self->pair.peer, "no-such-export");
	EXPECT_EQ(-ENOENT, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &open));
	open = open_of(77, self->pair.name);
	EXPECT_EQ(-ENOENT, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &open));
	open = self->open;
	open.flags = 1;
	EXPECT_EQ(-EOPNOTSUPP, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &open));
	open = self->open;
	open.size = 4;
	EXPECT_EQ(-EINVAL, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &open));
	EXPECT_EQ(-EFAULT, run(&self->ring, self->fd, KXFER_TARGET_OPEN, (void *)8));
	EXPECT_EQ(-EFAULT, run(&self->ring, self->fd, KXFER_TARGET_OPEN, NULL));
}

TEST_F(call, refuses_a_bad_command_area)
{
	struct kxfer_uring_call bad = { .arg = (uintptr_t)&self->open, .__reserved = 1 };
	struct io_uring_sqe *sqe;

	sqe = prepare(&self->ring, self->fd, KXFER_TARGET_OPEN, &self->open);
	memcpy(sqe->cmd, &bad, sizeof(bad));
	EXPECT_EQ(-EINVAL, uring_run(&self->ring));
	sqe = prepare(&self->ring, self->fd, KXFER_TARGET_OPEN, &self->open);
	sqe->rw_flags = 1;	/* IORING_URING_CMD_FIXED */
	EXPECT_GT(0, uring_run(&self->ring));
	EXPECT_EQ(0, run(&self->ring, self->fd, KXFER_TARGET_OPEN, &self->open));
}

/* Calls that do not wait for a peer, those of the engine, and numbers that are no call. */
TEST_F_TIMEOUT(call, is_one_of_those_that_wait, 60)
{
	uint8_t structure[256] = {};
	unsigned int nr;
	uint32_t op;

	for (nr = 0; nr <= 0xff; nr++) {
		op = _IO(KXFER_TYPE, nr);
		if (op == KXFER_PEER_OPEN || op == KXFER_TARGET_OPEN || op == KXFER_TARGET_INFO ||
		    op == KXFER_URING_CMD_JOB)
			continue;
		structure[0] = sizeof(structure) - 1;
		ASSERT_EQ(-ENOTTY, run(&self->ring, self->fd, op, structure)) TH_LOG("0x%x", nr);
	}
	EXPECT_EQ(-ENOTTY, run(&self->ring, self->fd, _IO('x', KXFER_CMD_TARGET_OPEN), structure));
}

/* ---- a peer that does not answer ---- */

FIXTURE(silent)
{
	struct raw_server server;
	struct baseline baseline;	/* with the link up */
	struct io_uring ring;
	struct kxfer_target_open open;
	int fd;				/* session of the call */
	int reader;			/* session that only reads counters */
};

static bool swallow_grant(struct raw_server *server, struct raw_lane *lane,
			  const struct kxfer_wire_header *message, uint32_t length)
{
	(void)server, (void)lane, (void)length;
	return message->type == KXFER_WIRE_GRANT;
}

FIXTURE_SETUP(silent)
{
	uint16_t port = kx_own_port();
	uint32_t peer;

	raw_server_init(&self->server);
	self->server.intercept = swallow_grant;
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	self->reader = kx_open();
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	ASSERT_EQ(0, baseline_take(self->reader, &self->baseline));
	self->open = open_of(peer, "window");
	ASSERT_EQ(0, io_uring_queue_init(4, &self->ring, 0));
}

FIXTURE_TEARDOWN(silent)
{
	close(self->fd);
	close(self->reader);
	raw_server_stop(&self->server);
}

/* Returns when the call waits for its answer. */
static int begin(FIXTURE_DATA(silent) *self)
{
	prepare(&self->ring, self->fd, KXFER_TARGET_OPEN, &self->open)->user_data = 7;
	if (io_uring_submit(&self->ring) != 1)
		return -EIO;
	return kx_wait_until(kx_counter(self->reader, "live_targets") > 0, KX_TIMEOUT_MS) ?
	       0 : -ETIMEDOUT;
}

static bool ends(FIXTURE_DATA(silent) *self)
{
	return kx_wait_until(kx_counter(self->reader, "live_targets") == 0,
			     SOON_MS * kx_slowness());
}

TEST_F_TIMEOUT(silent, call_is_cancelled, 60)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	int i, res = 0;

	ASSERT_EQ(0, begin(self));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 7, 0);
	sqe->user_data = 8;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, SOON_MS * kx_slowness()));
		if (cqe.user_data == 7)
			res = cqe.res;
	}
	EXPECT_EQ(-EINTR, res);
	EXPECT_TRUE(ends(self));
	io_uring_queue_exit(&self->ring);
}

TEST_F_TIMEOUT(silent, ring_is_closed, 60)
{
	ASSERT_EQ(0, begin(self));
	io_uring_queue_exit(&self->ring);
	EXPECT_TRUE(ends(self));
}

TEST_F_TIMEOUT(silent, file_and_ring_are_closed, 60)
{
	uint64_t sessions = kx_counter(self->reader, "live_sessions");

	ASSERT_EQ(0, begin(self));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(sessions, kx_counter(self->reader, "live_sessions"));
	io_uring_queue_exit(&self->ring);
	EXPECT_TRUE(kx_wait_until(kx_counter(self->reader, "live_sessions") == sessions - 1,
				  SOON_MS * kx_slowness()));
}

/* Runs a child with a ring of its own that calls, then calls @end in it. */
static pid_t start_child(FIXTURE_DATA(silent) *self, void (*end)(void))
{
	pid_t child = fork();

	if (child)
		return child;
	if (io_uring_queue_init(4, &self->ring, 0) || begin(self))
		_exit(1);
	end();
	_exit(2);
}

static void expect_child(struct __test_metadata *_metadata, FIXTURE_DATA(silent) *self,
			 pid_t child, int want)
{
	uint64_t end = kx_deadline_ns(SOON_MS * kx_slowness());
	int status = -1;
	pid_t ended;

	ASSERT_LT(0, child);
	io_uring_queue_exit(&self->ring);
	while (!(ended = waitpid(child, &status, WNOHANG)) && kx_now_ns() < end)
		usleep(20000);
	EXPECT_EQ(child, ended);
	EXPECT_EQ(want, status);
	if (!ended)
		kill(child, SIGKILL);
	EXPECT_TRUE(ends(self));
}

static void be_killed(void)
{
	kill(getpid(), SIGKILL);
}

static void become_another(void)
{
	execl("/bin/true", "true", NULL);
}

static void exit_well(void)
{
	_exit(0);
}

TEST_F_TIMEOUT(silent, process_is_killed, 60)
{
	expect_child(_metadata, self, start_child(self, be_killed), SIGKILL);
}

TEST_F_TIMEOUT(silent, process_exits, 60)
{
	expect_child(_metadata, self, start_child(self, exit_well), 0);
}

TEST_F_TIMEOUT(silent, process_becomes_another, 60)
{
	expect_child(_metadata, self, start_child(self, become_another), 0);
}

TEST_F_TIMEOUT(silent, peer_breaks_the_link, 60)
{
	struct io_uring_cqe cqe;

	ASSERT_EQ(0, begin(self));
	raw_server_stop(&self->server);
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, NULL, 30000));
	EXPECT_EQ(-ECONNRESET, cqe.res);
	EXPECT_TRUE(ends(self));
	io_uring_queue_exit(&self->ring);
}

TEST_HARNESS_MAIN
