// SPDX-License-Identifier: GPL-2.0
/*
 * Long messages stay with their senders until they are READ. Meanwhile the sender, the
 * receiver, the mailbox or the device ends, in each state of the message. Each job ends once,
 * RECVs outlive links, and nothing is left behind.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/fault.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/post.h"

#define HEAD		sizeof(struct kxfer_message)
#define BYTES		(64u << 10)
#define PLACE		(BYTES + 4096)
#define NR_JOBS		24	/* more than may be in flight */
#define NR_OWN		(KXFER_WIRE_OFFERS / 2)	/* limit of one session alone */
#define SPACE		(NR_JOBS * PLACE)
#define ROUNDS		10

/* A sender and a receiver of long messages. */
struct mail {
	struct post post;
	uint8_t *from;
	uint8_t *to;
	uint32_t from_region;
	uint32_t to_region;
	uint32_t mailbox;
	uint32_t target;
	char name[KXFER_NAME_MAX + 1];
};

static int mailbox_open(struct mail *mail)
{
	return kx_mailbox_add(mail->post.server, mail->name, NR_JOBS, KXFER_MESSAGE_LONG_MAX,
			      &mail->mailbox) ?:
	       kx_target_open(mail->post.client, mail->post.peer, mail->name, 0,
			      &mail->target);
}

static int mail_open(struct mail *mail)
{
	int ret = post_open(&mail->post, 1, 1);

	snprintf(mail->name, sizeof(mail->name), "long-%d", (int)getpid());
	mail->from = kx_alloc(SPACE);
	mail->to = kx_alloc(SPACE);
	if (ret || !mail->from || !mail->to)
		return ret ?: -ENOMEM;
	return kx_region_add(mail->post.client, mail->from, SPACE, 0, &mail->from_region) ?:
	       kx_region_add(mail->post.server, mail->to, SPACE, KXFER_REGION_F_WRITE,
			     &mail->to_region) ?:
	       mailbox_open(mail);
}

static void mail_close(struct mail *mail)
{
	post_close(&mail->post);
	kx_free(mail->from, SPACE);
	kx_free(mail->to, SPACE);
}

static struct kxfer_job send_job(const struct mail *mail, uint32_t i)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_SEND, .region = mail->from_region, .target = mail->target,
		.region_offset = i * PLACE, .length = BYTES, .user_data = i,
	};
}

static struct kxfer_job recv_job(const struct mail *mail, uint32_t i)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_RECV, .region = mail->to_region, .target = mail->mailbox,
		.region_offset = i * PLACE, .length = PLACE, .user_data = i,
	};
}

static int submit_sends(const struct mail *mail, uint32_t nr)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t i;

	for (i = 0; i < nr; i++)
		jobs[i] = send_job(mail, i);
	return kx_submit(mail->post.client, jobs, nr);
}

static int submit_recvs(const struct mail *mail, uint32_t nr)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t i;

	for (i = 0; i < nr; i++)
		jobs[i] = recv_job(mail, i);
	return kx_submit(mail->post.server, jobs, nr);
}

/* Counts @nr jobs of a session by status. Return: 0, or -errno of an unexpected status. */
static int count_ends(int fd, uint32_t nr, int good, int other, uint32_t *nr_good)
{
	struct kxfer_completion done[NR_JOBS];
	int i, n = kx_reap(fd, done, nr, nr, KX_TIMEOUT_MS);

	*nr_good = 0;
	if (n != (int)nr)
		return n < 0 ? n : -EIO;
	for (i = 0; i < n; i++) {
		if (done[i].status != good && done[i].status != other)
			return done[i].status ?: -EPROTO;
		*nr_good += done[i].status == good;
	}
	return 0;
}

/* Waits until the peer has recorded @nr messages more than @before. */
#define wait_until_stored(mail, before, nr)						\
	kx_wait_until(kx_counter((mail)->post.server, "sends_stored") >= (before) + (nr),	\
		      KX_TIMEOUT_MS)

FIXTURE(long_message)
{
	struct mail mail;
	struct baseline baseline;
	uint64_t stored;
	int fd;
};

FIXTURE_SETUP(long_message)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, mail_open(&self->mail));
	mail_close(&self->mail);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, mail_open(&self->mail));
	self->stored = kx_counter(self->fd, "sends_stored");
}

FIXTURE_TEARDOWN(long_message)
{
	const char *left;

	mail_close(&self->mail);
	if (self->fd < 0)
		return;
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	close(self->fd);
}

/* ---- while the message waits for a RECV ---- */

TEST_F_TIMEOUT(long_message, waiting_is_cancelled, 60)
{
	struct kxfer_job brief = send_job(&self->mail, 0), recv = recv_job(&self->mail, 0);
	struct kxfer_completion done;
	uint32_t none;

	ASSERT_EQ(NR_JOBS, submit_sends(&self->mail, NR_JOBS));
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, NR_OWN));
	/* Jobs that are not posted are cancelled at once, the others are taken back. */
	ASSERT_LE(0, kx_cancel(self->mail.post.client, 0, KXFER_CANCEL_F_ALL));
	EXPECT_EQ(0, count_ends(self->mail.post.client, NR_JOBS, -ECANCELED, -ECANCELED,
				&none));
	/* Their places are free again, so the next message is the first. */
	brief.user_data = 77;
	brief.length = 5;
	brief.flags = KXFER_JOB_F_IMM;
	brief.cookie = 5;
	test_cmd_submit(1, self->mail.post.client, &brief, 1);
	test_cmd_reap(1, self->mail.post.client, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
	test_cmd_submit(1, self->mail.post.server, &recv, 1);
	test_cmd_reap(1, self->mail.post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(HEAD + 5, done.bytes);
}

TEST_F_TIMEOUT(long_message, waiting_has_a_deadline, 60)
{
	struct kxfer_job send = send_job(&self->mail, 0);
	uint64_t before = kx_now_ns();
	struct kxfer_completion done;

	send.deadline_ns = kx_deadline_ns(100);
	test_cmd_submit(1, self->mail.post.client, &send, 1);
	test_cmd_reap(1, self->mail.post.client, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ETIMEDOUT, done.status);
	EXPECT_LE(100000000, kx_now_ns() - before);
}

TEST_F_TIMEOUT(long_message, waiting_holds_its_region_and_target, 60)
{
	struct kxfer_completion done;

	ASSERT_EQ(1, submit_sends(&self->mail, 1));
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, 1));
	test_err_region_del(EBUSY, self->mail.post.client, self->mail.from_region);
	test_err_target_close(EBUSY, self->mail.post.client, self->mail.target);
	ASSERT_EQ(1, submit_recvs(&self->mail, 1));
	test_cmd_reap(1, self->mail.post.client, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
	test_cmd_region_del(self->mail.post.client, self->mail.from_region);
	test_cmd_target_close(self->mail.post.client, self->mail.target);
}

TEST_F_TIMEOUT(long_message, waiting_is_told_of_the_withdrawal, 60)
{
	uint32_t nr;

	ASSERT_EQ(4, submit_sends(&self->mail, 4));
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, 4));
	test_cmd_export_del(self->mail.post.server, self->mail.mailbox);
	EXPECT_EQ(0, count_ends(self->mail.post.client, 4, -EKEYREVOKED, -EKEYREVOKED, &nr));
}

TEST_F_TIMEOUT(long_message, waiting_ends_with_its_sender, 60)
{
	struct kxfer_job recv = recv_job(&self->mail, 0);

	ASSERT_EQ(NR_JOBS, submit_sends(&self->mail, NR_JOBS));
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, NR_OWN));
	close(self->mail.post.client);
	self->mail.post.client = -1;
	/* The mailbox is empty. */
	recv.user_data = 9;
	test_cmd_submit(1, self->mail.post.server, &recv, 1);
	test_cmd_cancel(1, self->mail.post.server, 9, 0);
}

TEST_F_TIMEOUT(long_message, waiting_ends_with_its_receiver, 60)
{
	uint32_t nr;

	ASSERT_EQ(4, submit_sends(&self->mail, 4));
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, 4));
	close(self->mail.post.server);
	self->mail.post.server = -1;
	EXPECT_EQ(0, count_ends(self->mail.post.client, 4, -EKEYREVOKED, -EKEYREVOKED, &nr));
}

TEST_F_TIMEOUT(long_message, waiting_leaves_room_for_other_sessions, 60)
{
	struct kxfer_job jobs[NR_JOBS], send = send_job(&self->mail, 0);
	struct kxfer_job recv = recv_job(&self->mail, 0);
	struct kxfer_completion done;
	int i, fd = kx_open();
	uint32_t peer;

	/* Bulk jobs of all sessions share a lane. */
	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = send_job(&self->mail, i);
		jobs[i].length = BYTES + 1;
	}
	test_cmd_submit(NR_JOBS, self->mail.post.client, jobs, NR_JOBS);
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, NR_OWN));
	test_cmd_mailbox_add(self->mail.post.server, "long-other", 1, KXFER_MESSAGE_LONG_MAX,
			     &recv.target);
	test_cmd_region_add(fd, self->mail.from, SPACE, 0, &send.region);
	test_cmd_peer_open(fd, kx_addr(kx_address(), KXFER_PORT), &peer);
	test_cmd_target_open(fd, peer, "long-other", KXFER_RIGHT_SEND, &send.target);
	send.length = BYTES + 1;
	test_cmd_submit(1, fd, &send, 1);
	test_cmd_submit(1, self->mail.post.server, &recv, 1);
	test_cmd_reap(1, fd, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
	test_cmd_reap(1, self->mail.post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(HEAD + BYTES + 1, done.bytes);
	close(fd);
}

/* ---- while the message is READ, or about to be ---- */

TEST_F_TIMEOUT(long_message, is_withdrawn_on_its_way, 60)
{
	uint32_t round, sent, received;

	for (round = 0; round < ROUNDS; round++) {
		if (round)
			ASSERT_EQ(0, mailbox_open(&self->mail));
		ASSERT_EQ(NR_JOBS, submit_recvs(&self->mail, NR_JOBS));
		ASSERT_EQ(NR_JOBS, submit_sends(&self->mail, NR_JOBS));
		kx_sleep_ms(round);
		test_cmd_export_del(self->mail.post.server, self->mail.mailbox);
		ASSERT_EQ(0, count_ends(self->mail.post.client, NR_JOBS, 0, -EKEYREVOKED,
					&sent));
		ASSERT_EQ(0, count_ends(self->mail.post.server, NR_JOBS, 0, -EKEYREVOKED,
					&received));
		ASSERT_EQ(sent, received);
		test_cmd_target_close(self->mail.post.client, self->mail.target);
	}
}

TEST_F_TIMEOUT(long_message, is_cancelled_on_its_way_by_either_end, 60)
{
	uint32_t round, sent, received;

	for (round = 0; round < 2 * ROUNDS; round++) {
		ASSERT_EQ(NR_JOBS, submit_recvs(&self->mail, NR_JOBS));
		ASSERT_EQ(NR_JOBS, submit_sends(&self->mail, NR_JOBS));
		kx_sleep_ms(round / 2);
		kx_cancel(round % 2 ? self->mail.post.client : self->mail.post.server, 0,
			  KXFER_CANCEL_F_ALL);
		kx_cancel(round % 2 ? self->mail.post.server : self->mail.post.client, 0,
			  KXFER_CANCEL_F_ALL);
		ASSERT_EQ(0, count_ends(self->mail.post.client, NR_JOBS, 0, -ECANCELED, &sent));
		ASSERT_EQ(0, count_ends(self->mail.post.server, NR_JOBS, 0, -ECANCELED,
					&received));
		ASSERT_EQ(sent, received);
	}
}

/* The second READ does not begin during the first, so its message ends after the first. */
TEST_F_TIMEOUT(long_message, fails_in_its_turn, 60)
{
	struct kxfer_completion done[2];
	uint32_t sent;

	if (!fault_available())
		SKIP(return, "needs a module with faults");
	ASSERT_EQ(2, submit_sends(&self->mail, 2));
	ASSERT_TRUE(wait_until_stored(&self->mail, self->stored, 2));
	ASSERT_EQ(0, fault_arm("FETCH_MAP", 2));
	ASSERT_EQ(2, submit_recvs(&self->mail, 2));
	test_cmd_reap(2, self->mail.post.server, done, 2, 2, KX_TIMEOUT_MS);
	fault_reset();
	EXPECT_EQ(0, done[0].user_data);
	EXPECT_EQ(0, done[0].status);
	EXPECT_EQ(1, done[1].user_data);
	EXPECT_EQ(-EIO, done[1].status);
	EXPECT_EQ(0, count_ends(self->mail.post.client, 2, 0, -EREMOTEIO, &sent));
	EXPECT_EQ(1, sent);
}

TEST_F_TIMEOUT(long_message, is_closed_on_its_way, 120)
{
	uint32_t round, received;

	for (round = 0; round < ROUNDS; round++) {
		if (round)
			ASSERT_EQ(0, mail_open(&self->mail));
		ASSERT_EQ(NR_JOBS, submit_recvs(&self->mail, NR_JOBS));
		ASSERT_EQ(NR_JOBS, submit_sends(&self->mail, NR_JOBS));
		kx_sleep_ms(round);
		if (round % 2) {
			close(self->mail.post.client);
			self->mail.post.client = -1;
			kx_cancel(self->mail.post.server, 0, KXFER_CANCEL_F_ALL);
			ASSERT_EQ(0, count_ends(self->mail.post.server, NR_JOBS, 0, -ECANCELED,
						&received));
		} else {
			close(self->mail.post.server);
			self->mail.post.server = -1;
			ASSERT_EQ(0, count_ends(self->mail.post.client, NR_JOBS, 0,
						-EKEYREVOKED, &received));
		}
		mail_close(&self->mail);
	}
}

/* RECVs do not belong to a link: those that were being filled wait again. */
TEST_F_TIMEOUT(long_message, device_is_removed, 120)
{
	char netdev[32], name[64];
	uint32_t sent, received;

	snprintf(name, sizeof(name), "%s", kx_device());
	if (!baseline_netdev(name, netdev, sizeof(netdev)))
		SKIP(return, "needs a software RDMA device to remove");
	ASSERT_EQ(NR_JOBS, submit_recvs(&self->mail, NR_JOBS));
	ASSERT_EQ(NR_JOBS, submit_sends(&self->mail, NR_JOBS));
	ASSERT_EQ(0, baseline_command("rdma link del %s", name));
	EXPECT_EQ(0, count_ends(self->mail.post.client, NR_JOBS, 0, -ENODEV, &sent));
	kx_cancel(self->mail.post.server, 0, KXFER_CANCEL_F_ALL);
	EXPECT_EQ(0, count_ends(self->mail.post.server, NR_JOBS, 0, -ECANCELED, &received));
	EXPECT_LE(sent, received);
	ASSERT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", name,
				      kx_provider(), netdev));
	/* The baseline counted objects of the old device. */
	close(self->fd);
	self->fd = -1;
	post_close(&self->mail.post);
	ASSERT_TRUE(kx_wait_until(!post_open(&self->mail.post, 1, 1) ||
				  (post_close(&self->mail.post), false), KX_TIMEOUT_MS));
}

static pid_t in_child(int (*run)(const struct mail *mail, uint32_t nr))
{
	int ready[2];
	char byte;
	pid_t child;

	if (pipe(ready))
		return -1;
	child = fork();
	if (!child) {
		struct mail own;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mail_open(&own) || submit_recvs(&own, NR_JOBS / 2) != NR_JOBS / 2 ||
		    run(&own, NR_JOBS) != NR_JOBS || write(ready[1], "", 1) != 1)
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

TEST_F_TIMEOUT(long_message, process_is_killed, 120)
{
	uint32_t round;
	int status;

	for (round = 0; round < 4; round++) {
		pid_t child = in_child(submit_sends);

		ASSERT_LT(0, child);
		kx_sleep_ms(round);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
	}
}

/* ---- a peer with arbitrary answers ---- */

/* Reactions of the peer to an OFFER and to a TAKE_BACK. */
struct ways {
	int offer;		/* status of the answer, or -1: no answer */
	int take_back;
	int early;		/* status of a FETCHED before the answer; -1: none */
	bool twice;		/* FETCHED is sent twice */
	uint32_t id;		/* added to the id in FETCHED */
	volatile bool refuse;	/* refuse an OFFER that may not have arrived */
	volatile bool refused;
	uint32_t nr_offers;
	uint32_t nr_take_backs;
};

FIXTURE(peer)
{
	struct raw_server server;
	struct ways ways;
	uint8_t *memory;
	uint64_t errors;
	int fd;
	struct kxfer_job send;
};

static void say_fetched(struct raw_server *server, uint32_t id, uint32_t status)
{
	struct kxfer_wire_fetched fetched = { .id = htobe32(id), .status = htobe32(status) };

	raw_post_request(&server->lanes[1],
			 raw_header(KXFER_WIRE_FETCHED, id % 8, sizeof(fetched), 1000 + id),
			 &fetched, sizeof(fetched));
}

static int answer(struct raw_server *server, const struct kxfer_wire_header *request,
		  const void *payload, void *bytes, uint16_t *length)
{
	struct kxfer_wire_grant_answer *grant = bytes;
	struct ways *ways = server->context;
	int ret;

	if (request->type == KXFER_WIRE_OFFER) {
		const struct kxfer_wire_offer *offer = payload;
		uint32_t id = be32toh(offer->id) + ways->id;

		ways->nr_offers++;
		if (ways->early >= 0)
			say_fetched(server, id, ways->early);
		if (ways->twice)
			say_fetched(server, id, ways->early);
		return ways->offer;
	}
	if (request->type == KXFER_WIRE_TAKE_BACK) {
		ways->nr_take_backs++;
		return ways->take_back;
	}
	ret = raw_default_answer(server, request, bytes, length);
	if (request->type == KXFER_WIRE_GRANT) {
		grant->length = htobe64(KXFER_MESSAGE_LONG_MAX);
		grant->rights = htobe32(KXFER_RIGHT_SEND);
		grant->nr_keys = 0;
	}
	return ret;
}

FIXTURE_SETUP(peer)
{
	uint16_t port = kx_own_port();
	uint32_t peer;

	self->ways = (struct ways) { .early = -1 };
	raw_server_init(&self->server);
	self->server.answer = answer;
	self->server.context = &self->ways;
	self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_LONG);
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->memory = kx_alloc(BYTES);
	ASSERT_NE(NULL, self->memory);
	self->send = (struct kxfer_job) { .op = KXFER_OP_SEND, .length = BYTES };
	test_cmd_region_add(self->fd, self->memory, BYTES, 0, &self->send.region);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "mailbox", KXFER_RIGHT_SEND, &self->send.target);
	self->errors = kx_counter(self->fd, "protocol_errors");
}

FIXTURE_TEARDOWN(peer)
{
	close(self->fd);
	raw_server_stop(&self->server);
	kx_free(self->memory, BYTES);
}

static int ends_with(int fd, struct kxfer_job job)
{
	struct kxfer_completion done = { .status = -EPROTO };

	if (kx_submit(fd, &job, 1) == 1)
		kx_reap(fd, &done, 1, 1, KX_TIMEOUT_MS);
	return done.status;
}

TEST_F_TIMEOUT(peer, refusal_is_told, 60)
{
	self->ways.offer = KXFER_WIRE_BUSY;
	EXPECT_EQ(-EAGAIN, ends_with(self->fd, self->send));
	self->ways.offer = KXFER_WIRE_REVOKED;
	EXPECT_EQ(-EKEYREVOKED, ends_with(self->fd, self->send));
	self->ways.offer = 999;
	EXPECT_EQ(-EREMOTEIO, ends_with(self->fd, self->send));
	EXPECT_EQ(self->errors, kx_counter(self->fd, "protocol_errors"));
}

TEST_F_TIMEOUT(peer, that_cannot_let_a_message_wait_gets_none_that_would, 60)
{
	self->send.flags = KXFER_JOB_F_WAIT;
	EXPECT_EQ(-EOPNOTSUPP, kx_submit(self->fd, &self->send, 1));
	self->send.flags = 0;
	self->ways.early = KXFER_WIRE_OK;
	EXPECT_EQ(0, ends_with(self->fd, self->send));
}

/* A message that waits is a long one. */
TEST_F_TIMEOUT(peer, that_claims_half_of_it_gets_none_that_would_wait, 60)
{
	uint16_t port = kx_own_port() + 1;
	struct kxfer_job send = self->send;
	struct raw_server half;
	uint32_t peer;

	raw_server_init(&half);
	half.answer = answer;
	half.context = &self->ways;
	half.welcome.features = htobe32(KXFER_WIRE_FEATURE_WAIT);
	ASSERT_EQ(0, raw_server_start(&half, port));
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "mailbox", KXFER_RIGHT_SEND, &send.target);
	send.length = 4;
	send.flags = KXFER_JOB_F_WAIT;
	EXPECT_EQ(-EOPNOTSUPP, kx_submit(self->fd, &send, 1));
	raw_server_stop(&half);
}

TEST_F_TIMEOUT(peer, FETCHED_may_overtake_the_answer, 60)
{
	uint32_t i;

	self->ways.early = KXFER_WIRE_OK;
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, ends_with(self->fd, self->send));
	self->ways.early = KXFER_WIRE_REVOKED;
	EXPECT_EQ(-EKEYREVOKED, ends_with(self->fd, self->send));
	self->ways.early = KXFER_WIRE_DEVICE;
	EXPECT_EQ(-EREMOTEIO, ends_with(self->fd, self->send));
	EXPECT_EQ(self->errors, kx_counter(self->fd, "protocol_errors"));
}

TEST_F_TIMEOUT(peer, takes_back_what_it_is_asked_to, 60)
{
	struct kxfer_completion done;

	self->send.deadline_ns = kx_deadline_ns(50);
	EXPECT_EQ(-ETIMEDOUT, ends_with(self->fd, self->send));
	EXPECT_EQ(1, self->ways.nr_take_backs);
	self->send.deadline_ns = 0;
	test_cmd_submit(1, self->fd, &self->send, 1);
	ASSERT_TRUE(kx_wait_until(self->ways.nr_offers == 2, KX_TIMEOUT_MS));
	test_cmd_reap(0, self->fd, &done, 1, 0, 0);
	EXPECT_EQ(0, kx_cancel(self->fd, 0, KXFER_CANCEL_F_ALL));
	test_cmd_reap(1, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ECANCELED, done.status);
	EXPECT_EQ(self->errors, kx_counter(self->fd, "protocol_errors"));
}

/* The peer accepts the OFFER and never READs the message: the job ends with the link. */
TEST_F_TIMEOUT(peer, that_never_ends_a_message_loses_the_link, 120)
{
	struct kxfer_completion done = {};
	uint64_t before = kx_now_ns();

	self->ways.take_back = KXFER_WIRE_BUSY;
	test_cmd_submit(1, self->fd, &self->send, 1);
	ASSERT_TRUE(kx_wait_until(self->ways.nr_offers == 1, KX_TIMEOUT_MS));
	kx_cancel(self->fd, 0, KXFER_CANCEL_F_ALL);
	test_err_reap(ETIMEDOUT, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
	test_cmd_reap(1, self->fd, &done, 1, 1, 60000);
	EXPECT_EQ(-ECONNRESET, done.status);
	EXPECT_LE(25000000000ULL, kx_now_ns() - before);
}

#define COSTS_THE_LINK() ({								\
	EXPECT_EQ(-ECONNRESET, ends_with(self->fd, self->send));			\
	EXPECT_EQ(self->errors + 1, kx_counter(self->fd, "protocol_errors"));		\
})

TEST_F_TIMEOUT(peer, FETCHED_of_nothing_costs_the_link, 60)
{
	self->ways.early = KXFER_WIRE_OK;
	self->ways.id = 1;
	COSTS_THE_LINK();
}

TEST_F_TIMEOUT(peer, FETCHED_of_no_id_costs_the_link, 60)
{
	self->ways.early = KXFER_WIRE_OK;
	self->ways.id = KXFER_WIRE_OFFERS;
	COSTS_THE_LINK();
}

TEST_F_TIMEOUT(peer, FETCHED_and_refused_costs_the_link, 60)
{
	self->ways.early = KXFER_WIRE_OK;
	self->ways.offer = KXFER_WIRE_BUSY;
	COSTS_THE_LINK();
}

TEST_F_TIMEOUT(peer, TAKE_BACK_of_a_known_one_cannot_fail, 60)
{
	self->send.deadline_ns = kx_deadline_ns(50);
	self->ways.take_back = KXFER_WIRE_NO_ENTRY;
	COSTS_THE_LINK();
}

/* Answers the second request of the lane, which is an OFFER, whether it has arrived or not. */
static void refuse_early(struct raw_server *server)
{
	struct kxfer_wire_header answer =
		raw_header(KXFER_WIRE_OFFER | KXFER_WIRE_ANSWER, 1, 0, 2);
	struct ways *ways = server->context;

	if (!ways->refuse)
		return;
	ways->refuse = false;
	answer.status = htobe16(KXFER_WIRE_BUSY);
	ways->refused = !raw_post_request(&server->lanes[1], answer, NULL, 0);
}

/*
 * The peer posts no RECV, so a short message blocks the send queue, including the registration
 * after it. The peer's refusal of the message does not mean that the device has done the
 * registration.
 */
TEST_F_TIMEOUT(peer, that_refuses_what_was_not_sent_waits_for_the_device, 60)
{
	struct kxfer_job jobs[2] = { self->send, self->send };
	uint64_t sent = kx_counter(self->fd, "sends_sent");
	uint16_t port = kx_own_port() + 1;
	struct kxfer_completion done = { };
	struct raw_server deaf;
	uint32_t peer, i;
	int early;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "a device that waits for a receiver: iWARP has none");
	raw_server_init(&deaf);
	deaf.answer = answer;
	deaf.idle = refuse_early;
	deaf.context = &self->ways;
	deaf.no_data_receives = true;
	deaf.welcome.features = htobe32(KXFER_WIRE_FEATURE_LONG);
	ASSERT_EQ(0, raw_server_start(&deaf, port));
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "mailbox", KXFER_RIGHT_SEND, &jobs[0].target);
	jobs[1].target = jobs[0].target;
	jobs[0].length = 4;
	test_cmd_submit(2, self->fd, jobs, 2);
	ASSERT_TRUE(kx_wait_until(kx_counter(self->fd, "sends_sent") == sent + 2,
				  KX_TIMEOUT_MS));
	self->ways.refuse = true;
	ASSERT_TRUE(kx_wait_until(self->ways.refused, KX_TIMEOUT_MS));
	/* rxe of 6.12 gives the peer up after a while, rxe of 6.1 does not. */
	early = kx_reap(self->fd, &done, 1, 1, 2000);
	EXPECT_EQ(early == 1 ? -ECONNRESET : 0, done.status);
	EXPECT_TRUE(early == 1 || early == -ETIMEDOUT);
	EXPECT_EQ(self->errors, kx_counter(self->fd, "protocol_errors"));
	raw_server_stop(&deaf);
	for (i = early == 1; i < 2; i++) {
		test_cmd_reap(1, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
		EXPECT_EQ(-ECONNRESET, done.status);
	}
}

TEST_F_TIMEOUT(peer, vanishes_with_a_message_in_its_hands, 60)
{
	struct kxfer_completion done;

	test_cmd_submit(1, self->fd, &self->send, 1);
	ASSERT_TRUE(kx_wait_until(self->ways.nr_offers == 1, KX_TIMEOUT_MS));
	raw_server_stop(&self->server);
	test_cmd_reap(1, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ECONNRESET, done.status);
}

TEST_HARNESS_MAIN
