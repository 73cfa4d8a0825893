// SPDX-License-Identifier: GPL-2.0
/* Mailboxes: MAILBOX_ADD, SEND and RECV: each member that can be wrong, and the completions. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rigs/post.h"
#include "rigs/ring.h"

#define CAPACITY	4
#define MAX_BYTES	100
#define HEAD		sizeof(struct kxfer_message)

FIXTURE(mailbox)
{
	struct post post;
	struct kxfer_job send;	/* valid jobs; tests change one member */
	struct kxfer_job recv;
	uint64_t submitted;
};

FIXTURE_SETUP(mailbox)
{
	ASSERT_EQ(0, post_open(&self->post, CAPACITY, MAX_BYTES));
	self->send = post_send(&self->post, 0, 10);
	self->recv = post_recv(&self->post, 0);
	self->submitted = kx_counter(self->post.client, "jobs_submitted");
}

FIXTURE_TEARDOWN(mailbox)
{
	post_close(&self->post);
}

/* ---- making one ---- */

static struct kxfer_mailbox_add good_add(void)
{
	return (struct kxfer_mailbox_add) {
		.size = sizeof(struct kxfer_mailbox_add),
		.name = "another",
		.capacity = 1,
		.max_bytes = 1,
	};
}

#define ADD_REFUSED(err, member, value) ({					\
	struct kxfer_mailbox_add bad__ = good_add();				\
										\
	bad__.member = (value);							\
	EXPECT_EQ(-(err), kx_call(self->post.server, KXFER_MAILBOX_ADD, &bad__)); \
})

TEST_F(mailbox, is_a_feature)
{
	struct kxfer_query query;

	test_cmd_query(self->post.client, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_MAILBOX);
	EXPECT_NE(0, query.features & KXFER_FEATURE_LONG_MESSAGE);
}

TEST_F(mailbox, add_checks_each_field)
{
	struct kxfer_mailbox_add cmd = good_add();

	ADD_REFUSED(EINVAL, size, offsetof(struct kxfer_mailbox_add, cookie) - 8);
	ADD_REFUSED(EOPNOTSUPP, flags, 1);
	ADD_REFUSED(EINVAL, name[0], 0);
	ADD_REFUSED(EINVAL, name[0], '@');
	ADD_REFUSED(EINVAL, name[KXFER_NAME_MAX], 'x');
	ADD_REFUSED(EINVAL, name[20], 'x');
	ADD_REFUSED(EINVAL, rules, 8);
	ADD_REFUSED(EINVAL, nr_rules, 1);
	ADD_REFUSED(EDQUOT, nr_rules, UINT32_MAX);
	ADD_REFUSED(EINVAL, rule_stride, sizeof(struct kxfer_rule));
	ADD_REFUSED(EINVAL, message_size, 1);
	ADD_REFUSED(EINVAL, message_size, KXFER_MESSAGE_SIZE_MIN - 8);
	ADD_REFUSED(EINVAL, message_size, KXFER_MESSAGE_SIZE_MIN + 4);
	ADD_REFUSED(EINVAL, message_size, 264);
	ADD_REFUSED(EINVAL, message_size, UINT32_MAX - 7);
	ADD_REFUSED(EINVAL, capacity, 0);
	ADD_REFUSED(EDQUOT, capacity, KXFER_MAILBOX_MAX + 1);
	ADD_REFUSED(EDQUOT, capacity, UINT32_MAX);
	ADD_REFUSED(EINVAL, max_bytes, 0);
	ADD_REFUSED(EDQUOT, max_bytes, KXFER_MESSAGE_LONG_MAX + 1);
	ADD_REFUSED(EDQUOT, max_bytes, UINT32_MAX);
	EXPECT_EQ(0, kx_call(self->post.server, KXFER_MAILBOX_ADD, &cmd));
	EXPECT_NE(0, cmd.export_id);
}

TEST_F(mailbox, takes_the_greatest_there_is)
{
	uint32_t id;

	test_cmd_mailbox_add(self->post.server, "greatest", KXFER_MAILBOX_MAX,
			     KXFER_MESSAGE_LONG_MAX, &id);
	test_cmd_export_del(self->post.server, id);
}

TEST_F(mailbox, shares_names_with_exports)
{
	uint32_t id;

	test_err_mailbox_add(EEXIST, self->post.server, self->post.name, 1, 1, &id);
	test_err_export_add(EEXIST, self->post.server, self->post.inbox_region, 0, 1,
			    KXFER_RIGHT_READ, self->post.name, &id);
	test_cmd_export_add(self->post.server, self->post.inbox_region, 0, 1,
			    KXFER_RIGHT_READ, "taken", &id);
	test_err_mailbox_add(EEXIST, self->post.server, "taken", 1, 1, &id);
}

TEST_F(mailbox, rules_give_no_other_right)
{
	struct kxfer_rule rule = { .rights = KXFER_RIGHT_READ };
	uint32_t id;

	EXPECT_EQ(-EINVAL, kx_mailbox_add_rules(self->post.server, "ruled", 1, 1, &rule, 1,
						&id));
	rule.rights = KXFER_RIGHT_SEND | KXFER_RIGHT_WRITE;
	EXPECT_EQ(-EINVAL, kx_mailbox_add_rules(self->post.server, "ruled", 1, 1, &rule, 1,
						&id));
	rule.rights = KXFER_RIGHT_SEND << 1;
	EXPECT_EQ(-EOPNOTSUPP, kx_mailbox_add_rules(self->post.server, "ruled", 1, 1, &rule,
						    1, &id));
	rule.rights = KXFER_RIGHT_SEND;
	EXPECT_EQ(0, kx_mailbox_add_rules(self->post.server, "ruled", 1, 1, &rule, 1, &id));
}

TEST_F(mailbox, memory_has_no_right_to_send)
{
	uint32_t id;

	test_err_export_add(EOPNOTSUPP, self->post.server, self->post.inbox_region, 0, 1,
			    KXFER_RIGHT_SEND, "memory", &id);
	test_err_export_add(EOPNOTSUPP, self->post.server, self->post.inbox_region, 0, 1,
			    KXFER_RIGHT_ANY, "memory", &id);
}

TEST_F(mailbox, holds_no_content)
{
	test_err_export_set(EOPNOTSUPP, self->post.server, self->post.mailbox, 0, NULL, NULL);
	test_err_export_set(EOPNOTSUPP, self->post.server, self->post.mailbox, 1, NULL, NULL);
}

TEST_F(mailbox, is_shown_as_an_export)
{
	struct kxfer_info_export info = { .id = 0 };
	uint64_t cursor = 0;

	while (strcmp((char *)info.name, self->post.name))
		ASSERT_EQ(1, kx_info(self->post.server, KXFER_INFO_EXPORTS, &info,
				     sizeof(info), 1, &cursor));
	EXPECT_EQ(MAX_BYTES, info.length);
	EXPECT_EQ(KXFER_RIGHT_SEND, info.rights);
	EXPECT_EQ(1, info.nr_links);
	EXPECT_EQ(1, info.nr_grants);
	EXPECT_EQ(0, info.content.generation);
}

/* ---- opening it ---- */

TEST_F(mailbox, opens_as_a_target)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = self->post.peer,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	struct kxfer_content content;

	strcpy((char *)cmd.name, self->post.name);
	ASSERT_EQ(0, kx_call(self->post.client, KXFER_TARGET_OPEN, &cmd));
	EXPECT_EQ(KXFER_RIGHT_SEND, cmd.granted);
	EXPECT_EQ(0, cmd.nr_keys);
	EXPECT_EQ(MAX_BYTES, cmd.length);
	test_cmd_target_info(self->post.client, cmd.target, 0, KX_TIMEOUT_MS, &content);
	EXPECT_EQ(0, content.generation);
	test_cmd_send(self->post.client, self->post.outbox_region, 0, 1, cmd.target);
	test_cmd_target_close(self->post.client, cmd.target);
}

TEST_F(mailbox, is_listed_to_peers)
{
	struct kxfer_peer_export exports[16];
	uint64_t cursor = 0;
	int n = kx_peer_list(self->post.client, self->post.peer, exports, 16, &cursor), i;

	for (i = 0; i < n && strcmp((char *)exports[i].name, self->post.name); i++)
		;
	ASSERT_LT(i, n);
	EXPECT_EQ(MAX_BYTES, exports[i].length);
	EXPECT_EQ(KXFER_RIGHT_SEND, exports[i].rights);
}

TEST_F(mailbox, grants_no_other_right)
{
	uint32_t right, target;

	for (right = 1; right <= KXFER_RIGHT_ANY; right++)
		if (right != KXFER_RIGHT_SEND)
			test_err_target_open(EACCES, self->post.client, self->post.peer,
					     self->post.name, right, &target);
	test_err_target_open(EOPNOTSUPP, self->post.client, self->post.peer, self->post.name,
			     KXFER_RIGHT_SEND << 1, &target);
	test_err_target_open(EACCES, self->post.client, self->post.peer, KXFER_PING_NAME,
			     KXFER_RIGHT_SEND, &target);
}

TEST_F(mailbox, takes_nothing_but_messages)
{
	uint32_t region;

	test_cmd_region_add(self->post.client, self->post.outbox, 4096, KXFER_REGION_F_WRITE,
			    &region);
	test_err_transfer(EACCES, self->post.client, KXFER_OP_READ, region, 0,
			  self->post.target, 0, 1);
	test_err_transfer(EACCES, self->post.client, KXFER_OP_WRITE, region, 0,
			  self->post.target, 0, 1);
	test_err_notify(EACCES, self->post.client, self->post.target, 1);
	if (kx_has_atomics())
		test_err_atomic(EACCES, self->post.client, KXFER_OP_FETCH_ADD, region, 0,
				self->post.target, 0, 1, 0);
}

/* ---- sending ---- */

/* Each member is tried alone, so that one error does not hide another. */
#define REFUSED(err, fd, good, member, value) ({			\
	struct kxfer_job bad__ = (good);				\
									\
	bad__.member = (value);						\
	test_err_submit(err, fd, &bad__, 1);				\
})
#define SEND_REFUSED(err, member, value) \
	REFUSED(err, self->post.client, self->send, member, value)
#define RECV_REFUSED(err, member, value) \
	REFUSED(err, self->post.server, self->recv, member, value)

TEST_F(mailbox, send_checks_each_field)
{
	SEND_REFUSED(EINVAL, flags, KXFER_JOB_F_LOCAL_ONLY);
	SEND_REFUSED(EINVAL, flags, KXFER_JOB_F_BATCH);
	SEND_REFUSED(EOPNOTSUPP, flags, KXFER_JOB_F_ALL + 1);
	SEND_REFUSED(ENOENT, region, 0);
	SEND_REFUSED(ENOENT, region, 77);
	SEND_REFUSED(ENOENT, target, 0);
	SEND_REFUSED(ENOENT, target, 77);
	SEND_REFUSED(ERANGE, region_offset, POST_BYTES - 9);
	SEND_REFUSED(EOVERFLOW, region_offset, UINT64_MAX);
	SEND_REFUSED(EINVAL, target_offset, 1);
	SEND_REFUSED(EMSGSIZE, length, MAX_BYTES + 1);
	SEND_REFUSED(EMSGSIZE, length, KXFER_MESSAGE_MAX + 1);
	SEND_REFUSED(EMSGSIZE, length, UINT64_MAX);
	SEND_REFUSED(EINVAL, cookie, 1);
	SEND_REFUSED(EINVAL, compare_add, 1);
	SEND_REFUSED(EINVAL, swap, 1);
	self->send.flags = KXFER_JOB_F_IMM;
	SEND_REFUSED(EINVAL, cookie, 1ULL << 32);
	EXPECT_EQ(self->submitted, kx_counter(self->post.client, "jobs_submitted"));
}

TEST_F(mailbox, send_of_nothing_names_no_memory)
{
	self->send = post_send(&self->post, 0, 0);
	SEND_REFUSED(EINVAL, region, self->post.outbox_region);
	SEND_REFUSED(EINVAL, region_offset, 1);
	test_cmd_submit(1, self->post.client, &self->send, 1);
}

TEST_F(mailbox, immediate_is_for_messages_only)
{
	struct kxfer_job job = self->send;

	job.flags = KXFER_JOB_F_IMM;
	for (job.op = KXFER_OP_NOP; job.op <= KXFER_OP_RECV; job.op++)
		if (job.op != KXFER_OP_SEND)
			test_err_submit(EINVAL, self->post.client, &job, 1);
}

TEST_F(mailbox, send_needs_its_own_right)
{
	uint32_t export_id, target;

	test_cmd_export_add(self->post.server, self->post.inbox_region, 0, 4096,
			    KXFER_RIGHT_READ | KXFER_RIGHT_WRITE, "memory", &export_id);
	test_cmd_target_open(self->post.client, self->post.peer, "memory", 0, &target);
	SEND_REFUSED(EACCES, target, target);
}

/* Runs a job of either side. */
static struct kxfer_completion run(int fd, struct kxfer_job job)
{
	struct kxfer_completion completion = { .status = -EPROTO };

	if (kx_submit(fd, &job, 1) == 1)
		kx_reap(fd, &completion, 1, 1, KX_TIMEOUT_MS);
	return completion;
}

TEST_F(mailbox, completions_tell_what_happened)
{
	struct kxfer_completion sent, received;

	self->send.user_data = 41;
	self->recv.user_data = 42;
	sent = run(self->post.client, self->send);
	EXPECT_EQ(41, sent.user_data);
	EXPECT_EQ(10, sent.bytes);
	EXPECT_EQ(0, sent.status);
	EXPECT_EQ(KXFER_OP_SEND, sent.op);
	EXPECT_LE(sent.submitted_ns, sent.completed_ns);
	received = run(self->post.server, self->recv);
	EXPECT_EQ(42, received.user_data);
	EXPECT_EQ(HEAD + 10, received.bytes);
	EXPECT_EQ(0, received.status);
	EXPECT_EQ(KXFER_OP_RECV, received.op);
	EXPECT_LE(received.submitted_ns, received.completed_ns);
}

TEST_F(mailbox, record_tells_who_sent_what)
{
	const struct kxfer_message *message = post_message(&self->post, 0);
	uint64_t before = kx_now_ns();

	self->send.flags = KXFER_JOB_F_IMM;
	self->send.cookie = 0xfedcba98;
	memset(self->post.inbox, 0xee, POST_PLACE);
	memcpy(self->post.outbox, "0123456789", 10);
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	ASSERT_EQ(0, run(self->post.server, self->recv).status);
	EXPECT_LE(before, message->time_ns);
	EXPECT_GE(kx_now_ns(), message->time_ns);
	EXPECT_EQ(10, message->bytes);
	EXPECT_EQ(KXFER_MESSAGE_F_IMM, message->flags);
	EXPECT_EQ(0xfedcba98, message->immediate);
	EXPECT_EQ(0, message->__reserved);
	EXPECT_EQ(AF_INET, message->peer.family);
	EXPECT_EQ(0, memcmp(message->peer.addr, kx_addr(kx_address(), 0).addr, 16));
	EXPECT_EQ(geteuid(), message->uid);
	EXPECT_EQ(getegid(), message->gid);
	EXPECT_EQ(0, message->word);
	EXPECT_EQ(0, memcmp(message + 1, "0123456789", 10));
	EXPECT_EQ(0xee, self->post.inbox[HEAD + 10]);
}

/* ---- the word of the sender ---- */

#define WORD	0x0123456789abcdefULL

/* Opens an export with a word; @size: that of the caller's structure. */
static int open_with_word(const struct post *post, const char *name, uint64_t word,
			  uint32_t size, uint32_t *target)
{
	struct kxfer_target_open cmd = {
		.size = size,
		.peer = post->peer,
		.timeout_ms = KX_TIMEOUT_MS,
		.word = word,
	};
	int ret;

	strcpy((char *)cmd.name, name);
	ret = kx_call(post->client, KXFER_TARGET_OPEN, &cmd);
	*target = cmd.target;
	return ret;
}

TEST_F(mailbox, record_tells_the_word_of_each_target)
{
	static const uint64_t words[] = { WORD, UINT64_MAX, 0, 1 };
	const struct kxfer_message *message = post_message(&self->post, 0);
	uint32_t targets[4], i, round;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, open_with_word(&self->post, self->post.name, words[i],
					    sizeof(struct kxfer_target_open), &targets[i]));
	for (round = 0; round < 2; round++)
		for (i = 0; i < 4; i++) {
			self->send.target = targets[i];
			ASSERT_EQ(0, run(self->post.client, self->send).status);
			ASSERT_EQ(0, run(self->post.server, self->recv).status);
			EXPECT_EQ(words[i], message->word);
		}
}

TEST_F(mailbox, record_of_an_older_sender_has_no_word)
{
	const struct kxfer_message *message = post_message(&self->post, 0);

	ASSERT_EQ(0, open_with_word(&self->post, self->post.name, WORD,
				    offsetof(struct kxfer_target_open, word),
				    &self->send.target));
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	ASSERT_EQ(0, run(self->post.server, self->recv).status);
	EXPECT_EQ(0, message->word);
}

TEST_F(mailbox, word_is_for_mailboxes_only)
{
	uint64_t grants = kx_counter(self->post.client, "live_grants");
	uint64_t targets = kx_counter(self->post.client, "live_targets");
	uint32_t export_id, target;

	test_cmd_export_add(self->post.server, self->post.inbox_region, 0, 4096,
			    KXFER_RIGHT_READ, "memory", &export_id);
	EXPECT_EQ(-EINVAL, open_with_word(&self->post, "memory", WORD,
					  sizeof(struct kxfer_target_open), &target));
	EXPECT_EQ(-EINVAL, open_with_word(&self->post, KXFER_PING_NAME, 1,
					  sizeof(struct kxfer_target_open), &target));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->post.client, "live_grants") == grants &&
				  kx_counter(self->post.client, "live_targets") == targets,
				  KX_TIMEOUT_MS));
	EXPECT_EQ(0, open_with_word(&self->post, "memory", 0,
				    sizeof(struct kxfer_target_open), &target));
}

TEST_F(mailbox, immediate_of_0_is_one)
{
	const struct kxfer_message *message = post_message(&self->post, 0);

	self->send.flags = KXFER_JOB_F_IMM;
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	ASSERT_EQ(0, run(self->post.server, self->recv).status);
	EXPECT_EQ(KXFER_MESSAGE_F_IMM, message->flags);
	EXPECT_EQ(0, message->immediate);
	self->send.flags = 0;
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	ASSERT_EQ(0, run(self->post.server, self->recv).status);
	EXPECT_EQ(0, message->flags);
}

TEST_F(mailbox, that_is_full_refuses_and_loses_nothing)
{
	const struct kxfer_message *message = post_message(&self->post, 0);
	uint64_t stored = kx_counter(self->post.client, "sends_stored");
	uint64_t refused = kx_counter(self->post.client, "sends_refused");
	uint32_t i;

	self->send.flags = KXFER_JOB_F_IMM;
	for (i = 0; i < CAPACITY + 3; i++) {
		self->send.cookie = i;
		EXPECT_EQ(i < CAPACITY ? 0 : -EAGAIN, run(self->post.client, self->send).status);
	}
	EXPECT_EQ(stored + CAPACITY, kx_counter(self->post.client, "sends_stored"));
	EXPECT_EQ(refused + 3, kx_counter(self->post.client, "sends_refused"));
	for (i = 0; i < 3 * CAPACITY; i++) {
		ASSERT_EQ(0, run(self->post.server, self->recv).status);
		EXPECT_EQ(i, message->immediate);
		self->send.cookie = CAPACITY + i;
		EXPECT_EQ(0, run(self->post.client, self->send).status);
	}
}

TEST_F(mailbox, that_was_withdrawn_says_so)
{
	test_cmd_export_del(self->post.server, self->post.mailbox);
	test_err_send(EKEYREVOKED, self->post.client, self->post.outbox_region, 0, 1,
		      self->post.target);
	RECV_REFUSED(ENOENT, user_data, 1);
}

/* ---- receiving ---- */

TEST_F(mailbox, recv_checks_each_field)
{
	uint32_t frozen, export_id;

	test_cmd_region_add(self->post.server, self->post.inbox, POST_BYTES, 0, &frozen);
	test_cmd_export_add(self->post.server, frozen, 0, 4096, KXFER_RIGHT_READ, "memory",
			    &export_id);
	RECV_REFUSED(EINVAL, flags, KXFER_JOB_F_LOCAL_ONLY);
	RECV_REFUSED(EINVAL, flags, KXFER_JOB_F_BATCH);
	RECV_REFUSED(EINVAL, flags, KXFER_JOB_F_IMM);
	RECV_REFUSED(EOPNOTSUPP, flags, KXFER_JOB_F_ALL + 1);
	RECV_REFUSED(ENOENT, region, 0);
	RECV_REFUSED(ENOENT, region, 77);
	RECV_REFUSED(EACCES, region, frozen);
	RECV_REFUSED(ENOENT, target, 0);
	RECV_REFUSED(ENOENT, target, 77);
	RECV_REFUSED(ENOENT, target, export_id);
	RECV_REFUSED(ERANGE, region_offset, POST_BYTES);
	RECV_REFUSED(EOVERFLOW, region_offset, UINT64_MAX);
	RECV_REFUSED(EINVAL, target_offset, 1);
	RECV_REFUSED(EINVAL, length, 0);
	RECV_REFUSED(EINVAL, length, HEAD - 1);
	RECV_REFUSED(ERANGE, length, POST_BYTES + 1);
	RECV_REFUSED(EINVAL, cookie, 1);
	RECV_REFUSED(EINVAL, compare_add, 1);
	RECV_REFUSED(EINVAL, swap, 1);
	EXPECT_EQ(self->submitted, kx_counter(self->post.client, "jobs_submitted"));
}

TEST_F(mailbox, is_read_by_its_owner_only)
{
	struct kxfer_job job = self->recv;
	uint32_t region;

	test_cmd_region_add(self->post.client, self->post.outbox, POST_BYTES,
			    KXFER_REGION_F_WRITE, &region);
	job.region = region;
	for (job.target = 0; job.target < 8; job.target++)
		test_err_submit(ENOENT, self->post.client, &job, 1);
}

TEST_F(mailbox, recv_waits_for_a_message)
{
	struct kxfer_completion done;

	test_cmd_submit(1, self->post.server, &self->recv, 1);
	test_err_reap(ETIMEDOUT, self->post.server, &done, 1, 1, 50);
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(HEAD + 10, done.bytes);
}

TEST_F(mailbox, poll_says_when_a_message_came)
{
	struct pollfd poller = { .fd = self->post.server, .events = POLLIN };

	test_cmd_submit(1, self->post.server, &self->recv, 1);
	EXPECT_EQ(0, poll(&poller, 1, 0));
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	EXPECT_EQ(1, poll(&poller, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(POLLIN, poller.revents);
}

TEST_F(mailbox, completions_of_both_land_in_rings)
{
	struct kx_ring sent = {}, received = {};
	struct kxfer_completion done;

	test_cmd_ring_open(self->post.client, 2, KX_NO_EVENTFD, &sent);
	test_cmd_ring_open(self->post.server, 2, KX_NO_EVENTFD, &received);
	test_cmd_submit(1, self->post.server, &self->recv, 1);
	test_cmd_submit(1, self->post.client, &self->send, 1);
	test_cmd_ring_wait(self->post.server, 1, KX_TIMEOUT_MS);
	test_cmd_ring_wait(self->post.client, 1, KX_TIMEOUT_MS);
	ASSERT_EQ(1, kx_ring_take(&sent, &done, 1));
	EXPECT_EQ(KXFER_OP_SEND, done.op);
	EXPECT_EQ(0, done.status);
	ASSERT_EQ(1, kx_ring_take(&received, &done, 1));
	EXPECT_EQ(KXFER_OP_RECV, done.op);
	EXPECT_EQ(HEAD + 10, done.bytes);
	kx_ring_unmap(&sent);
	kx_ring_unmap(&received);
}

TEST_F(mailbox, recv_is_cancelled)
{
	struct kxfer_completion done;

	self->recv.user_data = 7;
	test_cmd_submit(1, self->post.server, &self->recv, 1);
	test_err_cancel(ENOENT, self->post.server, 8, 0);
	test_cmd_cancel(1, self->post.server, 7, 0);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ECANCELED, done.status);
	EXPECT_EQ(0, done.bytes);
	EXPECT_EQ(7, done.user_data);
	/* The failed RECV takes no message with it. */
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	EXPECT_EQ(0, run(self->post.server, self->recv).status);
}

TEST_F(mailbox, recv_ends_at_its_deadline)
{
	struct kxfer_completion done;
	struct kxfer_job late = self->recv;
	uint64_t before = kx_now_ns();

	late.deadline_ns = kx_deadline_ns(100);
	late.user_data = 1;
	self->recv.user_data = 2;
	test_cmd_submit(1, self->post.server, &self->recv, 1);
	test_cmd_submit(1, self->post.server, &late, 1);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-ETIMEDOUT, done.status);
	EXPECT_EQ(1, done.user_data);
	EXPECT_LE(100000000, kx_now_ns() - before);
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(2, done.user_data);
}

/* More than the module ends for one hold of the mailbox's lock. */
TEST_F(mailbox, recvs_that_are_late_all_end)
{
	struct kxfer_completion done[200];
	struct kxfer_job late[200];
	int i;

	self->recv.deadline_ns = kx_deadline_ns(100);
	for (i = 0; i < 200; i++)
		late[i] = self->recv;
	test_cmd_submit(200, self->post.server, late, 200);
	test_cmd_reap(200, self->post.server, done, 200, 200, KX_TIMEOUT_MS);
	for (i = 0; i < 200; i++)
		EXPECT_EQ(-ETIMEDOUT, done[i].status);
}

TEST_F(mailbox, recv_too_short_leaves_the_message)
{
	struct kxfer_completion done;
	struct kxfer_job brief = self->recv;

	memset(self->post.inbox, 0xee, POST_PLACE);
	brief.length = HEAD + 9;
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	done = run(self->post.server, brief);
	EXPECT_EQ(-EMSGSIZE, done.status);
	EXPECT_EQ(0, done.bytes);
	EXPECT_EQ(0xee, self->post.inbox[0]);
	brief.length = HEAD + 10;
	ASSERT_EQ(0, run(self->post.server, brief).status);
	/* A waiting RECV that is too short fails too; the next RECV gets the message. */
	brief.length = HEAD;
	brief.user_data = 3;
	self->recv.user_data = 4;
	test_cmd_submit(1, self->post.server, &brief, 1);
	test_cmd_submit(1, self->post.server, &self->recv, 1);
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(3, done.user_data);
	EXPECT_EQ(-EMSGSIZE, done.status);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(4, done.user_data);
	EXPECT_EQ(0, done.status);
	/* Only RECVs that are too short wait, so the message is stored. */
	test_cmd_submit(1, self->post.server, &brief, 1);
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-EMSGSIZE, done.status);
	EXPECT_EQ(0, run(self->post.server, self->recv).status);
}

TEST_F(mailbox, waiting_recv_ends_with_it_and_is_withdrawn_not_failed)
{
	uint64_t withdrawn = kx_counter(self->post.server, "jobs_withdrawn");
	uint64_t failed = kx_counter(self->post.server, "jobs_failed");
	struct kxfer_completion done;

	test_cmd_submit(1, self->post.server, &self->recv, 1);
	test_cmd_export_del(self->post.server, self->post.mailbox);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(-EKEYREVOKED, done.status);
	EXPECT_EQ(withdrawn + 1, kx_counter(self->post.server, "jobs_withdrawn"));
	EXPECT_EQ(failed, kx_counter(self->post.server, "jobs_failed"));
}

TEST_F(mailbox, waiting_recv_holds_its_region)
{
	struct kxfer_completion done;

	test_cmd_submit(1, self->post.server, &self->recv, 1);
	test_err_region_del(EBUSY, self->post.server, self->post.inbox_region);
	test_cmd_cancel(1, self->post.server, 0, KXFER_CANCEL_F_ALL);
	test_cmd_reap(1, self->post.server, &done, 1, 1, KX_TIMEOUT_MS);
	test_cmd_region_del(self->post.server, self->post.inbox_region);
}

TEST_F(mailbox, sent_message_leaves_its_region)
{
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	test_cmd_region_del(self->post.client, self->post.outbox_region);
	test_cmd_target_close(self->post.client, self->post.target);
	EXPECT_EQ(0, run(self->post.server, self->recv).status);
}

/* ---- struct kxfer_message of older and newer callers ---- */

#define SHORT_BYTES	10
#define LONG_BYTES	5000
#define CANARY		0xee

FIXTURE(sized)
{
	struct post post;
	uint32_t mailbox;
	uint32_t target;
	uint32_t head;		/* bytes before the payload */
	struct kxfer_job recv;
};

FIXTURE_VARIANT(sized)
{
	uint32_t message_size;
};

FIXTURE_VARIANT_ADD(sized, of_a_caller_before_it_grew) { .message_size = 0 };
FIXTURE_VARIANT_ADD(sized, of_the_first_release) { .message_size = KXFER_MESSAGE_SIZE_MIN };
FIXTURE_VARIANT_ADD(sized, of_this_release) { .message_size = sizeof(struct kxfer_message) };
FIXTURE_VARIANT_ADD(sized, of_a_later_release) {
	.message_size = sizeof(struct kxfer_message) + 8,
};
FIXTURE_VARIANT_ADD(sized, of_the_last_release) { .message_size = 256 };

FIXTURE_SETUP(sized)
{
	struct kxfer_mailbox_add cmd = good_add();

	ASSERT_EQ(0, post_open(&self->post, CAPACITY, MAX_BYTES));
	cmd.max_bytes = LONG_BYTES;
	cmd.message_size = variant->message_size;
	ASSERT_EQ(0, kx_call(self->post.server, KXFER_MAILBOX_ADD, &cmd));
	EXPECT_EQ(variant->message_size, cmd.message_size);
	self->mailbox = cmd.export_id;
	ASSERT_EQ(0, open_with_word(&self->post, "another", WORD,
				    sizeof(struct kxfer_target_open), &self->target));
	self->head = variant->message_size ?: KXFER_MESSAGE_SIZE_MIN;
	self->recv = post_recv(&self->post, 0);
	self->recv.target = self->mailbox;
	memset(self->post.inbox, CANARY, POST_BYTES);
	memset(self->post.outbox, 0x11, POST_BYTES);
}

FIXTURE_TEARDOWN(sized)
{
	post_close(&self->post);
}

static struct kxfer_job send_bytes(const FIXTURE_DATA(sized) *self, uint32_t bytes)
{
	struct kxfer_job job = post_send(&self->post, 0, bytes);

	job.target = self->target;
	return job;
}

/* The range of a RECV after a message, with what is known of its head and what is not. */
static void expect_message(struct __test_metadata *_metadata, FIXTURE_DATA(sized) *self,
			   uint32_t bytes)
{
	const uint8_t *inbox = self->post.inbox;
	struct kxfer_message message = { .bytes = 0 };
	uint32_t i, wrong = 0;

	memcpy(&message, inbox, self->head < HEAD ? self->head : HEAD);
	EXPECT_EQ(bytes, message.bytes);
	EXPECT_EQ(geteuid(), message.uid);
	EXPECT_EQ(getegid(), message.gid);
	EXPECT_EQ(self->head < HEAD ? 0 : WORD, message.word);
	for (i = HEAD; i < self->head; i++)
		wrong += inbox[i] != 0;
	for (i = 0; i < bytes; i++)
		wrong += inbox[self->head + i] != 0x11;
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(CANARY, inbox[self->head + bytes]);
}

TEST_F(sized, message_of_a_mailbox_comes)
{
	struct kxfer_completion received;

	ASSERT_EQ(0, run(self->post.client, send_bytes(self, SHORT_BYTES)).status);
	self->recv.length = self->head + SHORT_BYTES;
	received = run(self->post.server, self->recv);
	EXPECT_EQ(0, received.status);
	EXPECT_EQ(self->head + SHORT_BYTES, received.bytes);
	expect_message(_metadata, self, SHORT_BYTES);
}

TEST_F(sized, message_of_a_mailbox_is_waited_for)
{
	struct kxfer_completion received;

	self->recv.length = self->head + SHORT_BYTES;
	test_cmd_submit(1, self->post.server, &self->recv, 1);
	ASSERT_EQ(0, run(self->post.client, send_bytes(self, SHORT_BYTES)).status);
	test_cmd_reap(1, self->post.server, &received, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(self->head + SHORT_BYTES, received.bytes);
	expect_message(_metadata, self, SHORT_BYTES);
}

TEST_F(sized, long_message_of_a_mailbox_comes)
{
	struct kxfer_completion received;

	self->recv.length = self->head + LONG_BYTES;
	test_cmd_submit(1, self->post.server, &self->recv, 1);
	ASSERT_EQ(0, run(self->post.client, send_bytes(self, LONG_BYTES)).status);
	test_cmd_reap(1, self->post.server, &received, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, received.status);
	EXPECT_EQ(self->head + LONG_BYTES, received.bytes);
	expect_message(_metadata, self, LONG_BYTES);
}

TEST_F(sized, recv_needs_room_for_head_and_payload)
{
	ASSERT_EQ(0, run(self->post.client, send_bytes(self, SHORT_BYTES)).status);
	self->recv.length = self->head - 1;
	test_err_submit(EINVAL, self->post.server, &self->recv, 1);
	self->recv.length = self->head + SHORT_BYTES - 1;
	EXPECT_EQ(-EMSGSIZE, run(self->post.server, self->recv).status);
	self->recv.length = self->head + SHORT_BYTES;
	EXPECT_EQ(0, run(self->post.server, self->recv).status);
	expect_message(_metadata, self, SHORT_BYTES);
}

TEST_HARNESS_MAIN
