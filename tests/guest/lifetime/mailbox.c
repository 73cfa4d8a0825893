// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes, their senders or their owners end while messages are on their way and RECVs wait:
 * each job ends once, and nothing is left behind.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/fault.h"
#include "harness/module.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/post.h"
#include "rigs/uring.h"

#define CAPACITY	8
#define NR_JOBS		64	/* more than a lane has slots */
#define ROUNDS		10

FIXTURE(mailbox)
{
	struct post post;
	struct baseline baseline;
	int fd;
};

FIXTURE_SETUP(mailbox)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, post_open(&self->post, CAPACITY, KXFER_MESSAGE_MAX));
	post_close(&self->post);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, post_open(&self->post, CAPACITY, KXFER_MESSAGE_MAX));
}

FIXTURE_TEARDOWN(mailbox)
{
	const char *left;

	post_close(&self->post);
	if (self->fd < 0)
		return;
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	close(self->fd);
}

static int submit_flagged(const struct post *post, uint32_t flags)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t i;

	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = post_send(post, i, i * 15);
		jobs[i].flags = flags;
	}
	return kx_submit(post->client, jobs, NR_JOBS);
}

static int submit_sends(const struct post *post)
{
	return submit_flagged(post, 0);
}

static int submit_recvs(const struct post *post)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t i;

	for (i = 0; i < NR_JOBS; i++)
		jobs[i] = post_recv(post, i);
	return kx_submit(post->server, jobs, NR_JOBS);
}

/* Counts all NR_JOBS of a session by status. Return: 0, or -errno of an unexpected status. */
static int count_ends(int fd, int good, int other, uint32_t *nr_good)
{
	struct kxfer_completion done[NR_JOBS];
	int i, n = kx_reap(fd, done, NR_JOBS, NR_JOBS, KX_TIMEOUT_MS);

	*nr_good = 0;
	if (n != NR_JOBS)
		return n < 0 ? n : -EIO;
	for (i = 0; i < n; i++) {
		if (done[i].status != good && done[i].status != other && done[i].status != -EAGAIN)
			return done[i].status ? done[i].status : -EPROTO;
		*nr_good += done[i].status == good;
	}
	return 0;
}

/* Runs another sender and receiver in a process until it is killed. */
static pid_t in_child(int (*run)(const struct post *post))
{
	int ready[2];
	char byte;
	pid_t child;

	if (pipe(ready))
		return -1;
	child = fork();
	if (!child) {
		struct post own;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (post_open(&own, CAPACITY, KXFER_MESSAGE_MAX) || run(&own) != NR_JOBS)
			_exit(1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		child = -1;
	close(ready[0]);
	return child;
}

TEST_F_TIMEOUT(mailbox, sender_is_killed, 60)
{
	pid_t child = in_child(submit_sends);
	int status;

	ASSERT_LT(0, child);
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, &status, 0));
}

TEST_F_TIMEOUT(mailbox, receiver_is_killed_while_it_waits, 60)
{
	pid_t child = in_child(submit_recvs);
	int status;

	ASSERT_LT(0, child);
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, &status, 0));
}

TEST_F_TIMEOUT(mailbox, owner_closes_with_messages_on_their_way, 60)
{
	uint32_t stored;

	ASSERT_EQ(NR_JOBS, submit_recvs(&self->post));
	ASSERT_EQ(NR_JOBS, submit_sends(&self->post));
	close(self->post.server);
	self->post.server = -1;
	EXPECT_EQ(0, count_ends(self->post.client, 0, -EKEYREVOKED, &stored));
}

/*
 * Withdraws a mailbox while messages with @flags are on their way, and counts those that were
 * sent and those that were received. Return: 0 or -errno.
 */
static int withdraw(const struct post *post, uint32_t flags, uint32_t *sent,
		    uint32_t *received)
{
	int ret;

	if (submit_recvs(post) != NR_JOBS || submit_flagged(post, flags) != NR_JOBS)
		return -EIO;
	ret = kx_export_del(post->server, post->mailbox);
	return ret ?: count_ends(post->client, 0, -EKEYREVOKED, sent) ?:
	       count_ends(post->server, 0, -EKEYREVOKED, received);
}

static int renew(struct post *post)
{
	return kx_target_close(post->client, post->target) ?:
	       kx_mailbox_add(post->server, post->name, CAPACITY, KXFER_MESSAGE_MAX,
			      &post->mailbox) ?:
	       kx_target_open(post->client, post->peer, post->name, 0, &post->target);
}

/* Stored messages were received. For the others the SEND failed. */
TEST_F_TIMEOUT(mailbox, is_withdrawn_with_messages_on_their_way, 60)
{
	uint32_t sent, received, round;

	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(0, withdraw(&self->post, KXFER_JOB_F_STORED, &sent, &received));
		ASSERT_EQ(sent, received);
		ASSERT_EQ(0, renew(&self->post));
	}
}

/* A message that found the mailbox withdrawn is dropped, after its SEND may have completed. */
TEST_F_TIMEOUT(mailbox, is_withdrawn_with_eager_messages_on_their_way, 60)
{
	uint32_t sent, received, round;

	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(0, withdraw(&self->post, 0, &sent, &received));
		ASSERT_GE(sent, received);
		ASSERT_EQ(0, renew(&self->post));
	}
}

/* CANCEL and messages compete for the waiting RECVs. */
TEST_F_TIMEOUT(mailbox, recvs_are_cancelled_while_messages_come, 60)
{
	uint32_t stored, received, round;

	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(NR_JOBS, submit_recvs(&self->post));
		ASSERT_EQ(NR_JOBS, submit_sends(&self->post));
		kx_cancel(self->post.server, 0, KXFER_CANCEL_F_ALL);
		ASSERT_EQ(0, count_ends(self->post.client, 0, -EAGAIN, &stored));
		ASSERT_EQ(0, count_ends(self->post.server, 0, -ECANCELED, &received));
		/* The other stored messages are still in the mailbox. */
		for (; received < stored; received++)
			test_cmd_recv(self->post.server, self->post.mailbox,
				      self->post.inbox_region, 0, POST_PLACE);
	}
}

TEST_F_TIMEOUT(mailbox, device_is_removed, 120)
{
	char netdev[32], name[64];
	uint32_t stored, received;

	snprintf(name, sizeof(name), "%s", kx_device());
	if (!baseline_netdev(name, netdev, sizeof(netdev)))
		SKIP(return, "needs a software RDMA device to remove");
	ASSERT_EQ(NR_JOBS, submit_recvs(&self->post));
	ASSERT_EQ(NR_JOBS, submit_sends(&self->post));
	ASSERT_EQ(0, baseline_command("rdma link del %s", name));
	EXPECT_EQ(0, count_ends(self->post.client, 0, -ENODEV, &stored));
	/* RECVs without a message still wait, because they do not belong to a link. */
	kx_cancel(self->post.server, 0, KXFER_CANCEL_F_ALL);
	EXPECT_EQ(0, count_ends(self->post.server, 0, -ECANCELED, &received));
	EXPECT_LE(stored, received);
	ASSERT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", name,
				      kx_provider(), netdev));
	/* The baseline counted objects of the old device. */
	close(self->fd);
	self->fd = -1;
	post_close(&self->post);
	ASSERT_TRUE(kx_wait_until(!post_open(&self->post, 1, 1) ||
				  (post_close(&self->post), false), KX_TIMEOUT_MS));
	test_cmd_send(self->post.client, self->post.outbox_region, 0, 1, self->post.target);
}

TEST_F_TIMEOUT(mailbox, io_uring_is_closed_while_recvs_wait, 60)
{
	struct kxfer_job recv = post_recv(&self->post, 0);
	struct io_uring ring;
	int i;

	ASSERT_EQ(0, uring_open(&ring, 0));
	for (i = 0; i < 8; i++)
		ASSERT_NE(NULL, uring_job(&ring, self->post.server, &recv));
	ASSERT_EQ(8, io_uring_submit(&ring));
	io_uring_queue_exit(&ring);
	EXPECT_TRUE(kx_wait_until(!kx_counter(self->post.client, "live_jobs"), KX_TIMEOUT_MS));
}

TEST_F_TIMEOUT(mailbox, module_goes_behind_it, 60)
{
	if (!module_available())
		SKIP(return, "needs root and the module file");
	ASSERT_EQ(NR_JOBS, submit_recvs(&self->post));
	ASSERT_EQ(NR_JOBS, submit_sends(&self->post));
	close(self->fd);
	self->fd = -1;
	post_close(&self->post);
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	ASSERT_EQ(0, post_open(&self->post, 1, 1));
	test_cmd_send(self->post.client, self->post.outbox_region, 0, 1, self->post.target);
}

/* ---- senders that end when their messages have been sent, and not been handled ---- */

#define NR_EAGER	20	/* messages, for which the sender has credits */
#define EAGER_PLACES	160
#define NR_BEFORE	80	/* answered messages: a lane has RECVs for eager ones afterwards */
#define LATE_MS		100
#define NR_LATE		10

enum late_end { TARGET_CLOSED, SESSION_CLOSED, KILLED };

FIXTURE(late)
{
	struct post post;
	int fd;
};

FIXTURE_VARIANT(late)
{
	enum late_end end;
	const char *site;	/* where the receiver or the sender is late */
};

FIXTURE_VARIANT_ADD(late, target_is_closed) { TARGET_CLOSED, "CONTROL_WORK" };
FIXTURE_VARIANT_ADD(late, target_is_closed_late) { TARGET_CLOSED, "TARGET_RELEASE" };
FIXTURE_VARIANT_ADD(late, target_is_closed_with_completions_late) { TARGET_CLOSED, "CQ_WORK" };
FIXTURE_VARIANT_ADD(late, session_is_closed) { SESSION_CLOSED, "CONTROL_WORK" };
FIXTURE_VARIANT_ADD(late, session_is_closed_with_completions_late) { SESSION_CLOSED, "CQ_WORK" };
FIXTURE_VARIANT_ADD(late, sender_is_killed) { KILLED, "CONTROL_WORK" };
FIXTURE_VARIANT_ADD(late, sender_is_killed_with_completions_late) { KILLED, "CQ_WORK" };

FIXTURE_SETUP(late)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, post_open(&self->post, EAGER_PLACES, KXFER_MESSAGE_MAX));
	if (!fault_available())
		SKIP(return, "needs debugfs");
}

FIXTURE_TEARDOWN(late)
{
	if (fault_available())
		fault_reset();
	post_close(&self->post);
	close(self->fd);
}

/* Return: messages of @post's mailbox that wait, which are taken; or -errno. */
static int take_all(const struct post *post)
{
	int nr = 0;

	while (nr <= EAGER_PLACES) {
		struct kxfer_job recv = post_recv(post, 0);
		struct kxfer_completion done = { .status = -EPROTO };

		recv.deadline_ns = kx_deadline_ns(100);
		if (kx_submit(post->server, &recv, 1) != 1 ||
		    kx_reap(post->server, &done, 1, 1, KX_TIMEOUT_MS) != 1)
			return -EIO;
		if (done.status == -ETIMEDOUT)
			return nr;
		if (done.status)
			return done.status;
		nr++;
	}
	return nr;
}

/* Gets credits for a target of a session: sends NR_BEFORE messages. Return: 0 or -errno. */
static int get_credits(const struct post *post, int fd, uint32_t region, uint32_t target)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < NR_BEFORE; i++)
		ret = kx_send(fd, region, 0, 1, target);
	return ret;
}

/*
 * Sends NR_EAGER messages, some of them answered, and ends in one of three ways when all have
 * completed.
 */
static int send_and_end(const struct post *post, int fd, uint32_t region, uint32_t target,
			enum late_end end)
{
	struct kxfer_completion done[NR_EAGER];
	struct kxfer_job jobs[NR_EAGER];
	uint32_t i;

	for (i = 0; i < NR_EAGER; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_SEND, .region = region, .target = target,
			.length = 1 + i, .flags = i % 3 ? 0 : KXFER_JOB_F_STORED,
		};
	if (kx_submit(fd, jobs, NR_EAGER) != NR_EAGER ||
	    kx_reap(fd, done, NR_EAGER, NR_EAGER, KX_TIMEOUT_MS) != NR_EAGER)
		return -EIO;
	for (i = 0; i < NR_EAGER; i++)
		if (done[i].status)
			return done[i].status;
	if (end == TARGET_CLOSED)
		return kx_target_close(fd, target);
	if (end == SESSION_CLOSED)
		close(fd);
	else
		kill(getpid(), SIGKILL);
	return 0;
}

/* A sender in a process. Exits with 0, or is killed; 1: something failed. */
static void run_sender(const struct post *post, const char *site, enum late_end end)
{
	void *memory = kx_alloc(4096);
	uint32_t region, peer, target;
	int fd = kx_open();

	if (!memory || fd < 0 || kx_region_add(fd, memory, 4096, 0, &region) ||
	    kx_peer_open(fd, kx_addr(kx_address(), KXFER_PORT), &peer) ||
	    kx_target_open(fd, peer, post->name, KXFER_RIGHT_SEND, &target) ||
	    get_credits(post, fd, region, target))
		_exit(1);
	/* What was sent so far is taken meanwhile, and there are places again. */
	if (take_all(post) != NR_BEFORE || delay_arm(site, LATE_MS, NR_LATE))
		_exit(2);
	_exit(send_and_end(post, fd, region, target, end) ? 3 : 0);
}

/* Each message that was sent is there, although its grant ended right behind it. */
TEST_F_TIMEOUT(late, sender_loses_no_message, 60)
{
	uint64_t eager = kx_counter(self->fd, "sends_eager");
	uint64_t errors = kx_counter(self->fd, "protocol_errors");
	uint64_t grants = kx_counter(self->fd, "live_grants");
	struct delay_counts counts;
	int status, round;
	pid_t child;

	for (round = 0; round < 3; round++) {
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			run_sender(&self->post, variant->site, variant->end);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		/* The raw status of a process that was killed is the signal. */
		ASSERT_EQ(variant->end == KILLED ? SIGKILL : 0, status);
		EXPECT_EQ(NR_EAGER, take_all(&self->post));
		ASSERT_EQ(0, delay_counts(variant->site, &counts));
		EXPECT_LT(0, counts.delayed);
		ASSERT_EQ(0, fault_reset());
		EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_grants") == grants,
					  KX_TIMEOUT_MS));
	}
	EXPECT_EQ(errors, kx_counter(self->fd, "protocol_errors"));
	if (!strcmp(kx_provider(), "siw"))
		EXPECT_EQ(eager, kx_counter(self->fd, "sends_eager"));
	if (strcmp(kx_provider(), "siw"))
		EXPECT_LE(eager + 3 * (NR_EAGER / 2), kx_counter(self->fd, "sends_eager"));
}

/* ---- a peer whose mailbox does not exist ---- */

FIXTURE(peer)
{
	struct raw_server server;
	int status;		/* status of its answers to SENDs; -1: it disconnects */
	int fd;
	uint32_t target;
};

static int answer(struct raw_server *server, const struct kxfer_wire_header *request,
		  const void *payload, void *bytes, uint16_t *length)
{
	struct kxfer_wire_grant_answer *grant = bytes;
	const int *status = server->context;
	int ret;

	if (request->type == KXFER_WIRE_SEND && *status < 0) {
		raw_lane_close(&server->lanes[1]);
		return -1;
	}
	if (request->type == KXFER_WIRE_SEND)
		return *status;
	ret = raw_default_answer(server, request, bytes, length);
	if (request->type == KXFER_WIRE_GRANT) {
		grant->length = htobe64(100);
		grant->rights = htobe32(KXFER_RIGHT_SEND);
		grant->nr_keys = 0;
	}
	return ret;
}

FIXTURE_SETUP(peer)
{
	uint16_t port = kx_own_port();
	uint32_t peer;

	raw_server_init(&self->server);
	self->server.answer = answer;
	self->server.context = &self->status;
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "mailbox", KXFER_RIGHT_SEND, &self->target);
}

FIXTURE_TEARDOWN(peer)
{
	close(self->fd);
	raw_server_stop(&self->server);
}

TEST_F_TIMEOUT(peer, status_is_told, 60)
{
	static const struct {
		enum kxfer_wire_status wire;
		int error;
	} known[] = {
		{ KXFER_WIRE_OK, 0 }, { KXFER_WIRE_BUSY, EAGAIN },
		{ KXFER_WIRE_REVOKED, EKEYREVOKED }, { KXFER_WIRE_INVALID, EREMOTEIO },
		{ KXFER_WIRE_NO_ENTRY, EREMOTEIO }, { KXFER_WIRE_NO_ACCESS, EREMOTEIO },
		{ KXFER_WIRE_NO_MEMORY, EREMOTEIO }, { 999, EREMOTEIO },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		self->status = known[i].wire;
		test_err_send(known[i].error, self->fd, 0, 0, 0, self->target);
	}
}

TEST_F_TIMEOUT(peer, link_is_lost, 60)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t none, i;

	self->status = -1;
	for (i = 0; i < NR_JOBS; i++)
		jobs[i] = (struct kxfer_job) { .op = KXFER_OP_SEND, .target = self->target };
	ASSERT_EQ(NR_JOBS, kx_submit(self->fd, jobs, NR_JOBS));
	EXPECT_EQ(0, count_ends(self->fd, -ECONNRESET, -ECONNRESET, &none));
	EXPECT_EQ(NR_JOBS, none);
}

/* ---- a peer whose devices take messages of other lengths ---- */

#define LONGEST		100	/* bytes, over the first link */
#define LOSS_MS		30000

FIXTURE(moved)
{
	struct raw_server server;
	uint32_t longest;	/* of the grants to come */
	bool hang_up;		/* at the next message; no link is made until the test says so */
	int fd;
	uint32_t region;
	uint32_t target;
};

static int answer_by_line(struct raw_server *server, const struct kxfer_wire_header *request,
			  const void *payload, void *bytes, uint16_t *length)
{
	FIXTURE_DATA(moved) *self = server->context;
	struct kxfer_wire_grant_answer *grant = bytes;
	struct kxfer_wire_info_answer *info = bytes;
	struct kxfer_wire_identity *identity = (void *)(info + 1);
	int ret;

	if (request->type == KXFER_WIRE_SEND && self->hang_up) {
		self->hang_up = false;
		server->refuse_with = sizeof(server->refusal);
		raw_lane_close(&server->lanes[0]);
		raw_lane_close(&server->lanes[1]);
		return -1;
	}
	ret = raw_default_answer(server, request, bytes, length);
	if (request->type == KXFER_WIRE_GRANT) {
		grant->length = htobe64(self->longest);
		grant->rights = htobe32(KXFER_RIGHT_SEND);
		grant->nr_keys = 0;
	} else if (request->type == KXFER_WIRE_INFO) {
		info->length = htobe64(self->longest);
		identity->node = htobe64(1);
		identity->export = htobe64(2);
		*length = sizeof(*info) + sizeof(*identity);
	}
	return ret;
}

FIXTURE_SETUP(moved)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), kx_own_port()),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = LOSS_MS,
	};

	self->longest = LONGEST;
	raw_server_init(&self->server);
	self->server.answer = answer_by_line;
	self->server.context = self;
	self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_RESUME);
	ASSERT_EQ(0, raw_server_start(&self->server, kx_own_port()));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, kx_call(self->fd, KXFER_PEER_OPEN, &cmd));
	test_cmd_target_open(self->fd, cmd.peer, "mailbox", KXFER_RIGHT_SEND, &self->target);
	test_cmd_region_add(self->fd, kx_alloc(2 * LONGEST), 2 * LONGEST, 0, &self->region);
}

FIXTURE_TEARDOWN(moved)
{
	close(self->fd);
	raw_server_stop(&self->server);
}

/* Breaks the link. Jobs wait until other_link(). */
static int lose_link(struct _test_data_moved *self)
{
	self->hang_up = true;
	return kx_send(self->fd, self->region, 0, 1, self->target);
}

static void other_link(struct _test_data_moved *self, uint32_t longest)
{
	self->longest = longest;
	self->server.refuse_with = 0;
}

static struct kxfer_job message_of(struct _test_data_moved *self, uint32_t length)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_SEND,
		.region = self->region,
		.target = self->target,
		.length = length,
		.user_data = length,
	};
}

TEST_F_TIMEOUT(moved, to_a_link_of_shorter_messages, 60)
{
	struct kxfer_job jobs[] = { message_of(self, LONGEST / 2), message_of(self, LONGEST) };
	struct kxfer_completion done[2];
	uint32_t i;

	ASSERT_EQ(-ECONNRESET, lose_link(self));
	ASSERT_EQ(2, kx_submit(self->fd, jobs, 2));
	other_link(self, LONGEST / 2);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(1, kx_reap(self->fd, &done[i], 1, 1, LOSS_MS));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(done[i].user_data == LONGEST ? -EMSGSIZE : 0, done[i].status);
	EXPECT_NE(done[0].user_data, done[1].user_data);
	EXPECT_EQ(-EMSGSIZE, kx_submit(self->fd, &jobs[1], 1));
	EXPECT_EQ(0, kx_send(self->fd, self->region, 0, LONGEST / 2, self->target));
}

TEST_F_TIMEOUT(moved, to_a_link_of_longer_messages, 60)
{
	struct kxfer_job job = message_of(self, LONGEST);
	struct kxfer_completion done;

	EXPECT_EQ(-EMSGSIZE, kx_send(self->fd, self->region, 0, LONGEST + 1, self->target));
	ASSERT_EQ(-ECONNRESET, lose_link(self));
	ASSERT_EQ(1, kx_submit(self->fd, &job, 1));
	other_link(self, 2 * LONGEST);
	ASSERT_EQ(1, kx_reap(self->fd, &done, 1, 1, LOSS_MS));
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(0, kx_send(self->fd, self->region, 0, 2 * LONGEST, self->target));
}

/* To wait for a place is of the link, too. */
TEST_F_TIMEOUT(moved, to_a_link_on_which_no_message_waits, 60)
{
	struct kxfer_job job = message_of(self, 1);
	struct kxfer_completion done;

	self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_RESUME |
						KXFER_WIRE_FEATURE_LONG | KXFER_WIRE_FEATURE_WAIT);
	ASSERT_EQ(-ECONNRESET, lose_link(self));
	other_link(self, LONGEST);
	ASSERT_EQ(0, kx_send(self->fd, self->region, 0, 1, self->target));
	self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_RESUME);
	ASSERT_EQ(-ECONNRESET, lose_link(self));
	job.flags = KXFER_JOB_F_WAIT;
	ASSERT_EQ(1, kx_submit(self->fd, &job, 1));
	other_link(self, LONGEST);
	ASSERT_EQ(1, kx_reap(self->fd, &done, 1, 1, LOSS_MS));
	EXPECT_EQ(-EOPNOTSUPP, done.status);
}

TEST_HARNESS_MAIN
