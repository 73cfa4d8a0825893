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

static int submit_sends(const struct post *post)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t i;

	for (i = 0; i < NR_JOBS; i++)
		jobs[i] = post_send(post, i, i * 15);
	return kx_submit(post->client, jobs, NR_JOBS);
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

/* Stored messages were received. For the others the SEND failed. */
TEST_F_TIMEOUT(mailbox, is_withdrawn_with_messages_on_their_way, 60)
{
	uint32_t stored, received, round;

	for (round = 0; round < ROUNDS; round++) {
		if (round) {
			test_cmd_mailbox_add(self->post.server, self->post.name, CAPACITY,
					     KXFER_MESSAGE_MAX, &self->post.mailbox);
			test_cmd_target_open(self->post.client, self->post.peer,
					     self->post.name, 0, &self->post.target);
		}
		ASSERT_EQ(NR_JOBS, submit_recvs(&self->post));
		ASSERT_EQ(NR_JOBS, submit_sends(&self->post));
		test_cmd_export_del(self->post.server, self->post.mailbox);
		ASSERT_EQ(0, count_ends(self->post.client, 0, -EKEYREVOKED, &stored));
		ASSERT_EQ(0, count_ends(self->post.server, 0, -EKEYREVOKED, &received));
		ASSERT_EQ(stored, received);
		test_cmd_target_close(self->post.client, self->post.target);
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

TEST_HARNESS_MAIN
