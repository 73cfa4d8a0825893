// SPDX-License-Identifier: GPL-2.0
/* Mailboxes: MAILBOX_ADD, SEND and RECV: each member that can be wrong, and the completions. */
#include <poll.h>
#include <stdio.h>
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
	SEND_REFUSED(EINVAL, flags, KXFER_JOB_F_APART);
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
	/* and cannot wait for a place */
	SEND_REFUSED(EINVAL, flags, KXFER_JOB_F_WAIT);
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

/* Runs a job of either side. */
static struct kxfer_completion run(int fd, struct kxfer_job job)
{
	struct kxfer_completion completion = { .status = -EPROTO };

	if (kx_submit(fd, &job, 1) == 1)
		kx_reap(fd, &completion, 1, 1, KX_TIMEOUT_MS);
	return completion;
}

/* Jobs of each kind that are refused only because nothing has their target. */
static struct kxfer_job job_of_kind(const struct post *post, uint32_t op)
{
	struct kxfer_job job = { .op = op };

	if (op == KXFER_OP_NOP)
		return job;
	job.target = 77;
	if (op == KXFER_OP_NOTIFY)
		return job;
	job.region = op == KXFER_OP_RECV ? post->inbox_region : post->outbox_region;
	job.length = op == KXFER_OP_RECV ? POST_PLACE : 8;
	return job;
}

TEST_F(mailbox, stored_is_for_messages_only)
{
	struct kxfer_query query;
	struct kxfer_job job;
	uint32_t op;

	test_cmd_query(self->post.client, &query);
	EXPECT_NE(0, query.features & KXFER_FEATURE_EAGER);
	for (op = KXFER_OP_NOP; op <= KXFER_OP_RECV; op++) {
		if (op == KXFER_OP_SEND)
			continue;
		job = job_of_kind(&self->post, op);
		if (op != KXFER_OP_NOP)
			test_err_submit(ENOENT, self->post.client, &job, 1);
		job.flags = KXFER_JOB_F_STORED;
		test_err_submit(EINVAL, self->post.client, &job, 1);
	}
}

TEST_F(mailbox, send_may_ask_for_the_answer)
{
	static const uint32_t flags[] = {
		KXFER_JOB_F_STORED, KXFER_JOB_F_STORED | KXFER_JOB_F_IMM,
		KXFER_JOB_F_STORED | KXFER_JOB_F_FENCE, KXFER_JOB_F_STORED | KXFER_JOB_F_ORDERED,
	};
	uint64_t eager = kx_counter(self->post.client, "sends_eager");
	uint64_t stored = kx_counter(self->post.client, "sends_stored");
	uint32_t i;

	for (i = 0; i < 40; i++) {
		self->send.flags = flags[i % 4];
		ASSERT_EQ(0, run(self->post.client, self->send).status);
		ASSERT_EQ(++stored, kx_counter(self->post.client, "sends_stored"));
		ASSERT_EQ(0, run(self->post.server, self->recv).status);
	}
	EXPECT_EQ(eager, kx_counter(self->post.client, "sends_eager"));
}

TEST_F(mailbox, send_needs_its_own_right)
{
	uint32_t export_id, target;

	test_cmd_export_add(self->post.server, self->post.inbox_region, 0, 4096,
			    KXFER_RIGHT_READ | KXFER_RIGHT_WRITE, "memory", &export_id);
	test_cmd_target_open(self->post.client, self->post.peer, "memory", 0, &target);
	SEND_REFUSED(EACCES, target, target);
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
	RECV_REFUSED(EINVAL, flags, KXFER_JOB_F_WAIT);
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

TEST_F(mailbox, recv_with_its_payload_apart_checks_both_ranges)
{
	self->recv.flags = KXFER_JOB_F_APART;
	self->recv.region_offset = 4096;
	self->recv.length = HEAD + 100;
	self->recv.target_offset = 4096 - 99;
	test_err_submit(EINVAL, self->post.server, &self->recv, 1);
	self->recv.target_offset = 4096;
	test_err_submit(EINVAL, self->post.server, &self->recv, 1);
	self->recv.target_offset = 4096 + HEAD - 1;
	test_err_submit(EINVAL, self->post.server, &self->recv, 1);
	self->recv.target_offset = POST_BYTES - 99;
	test_err_submit(ERANGE, self->post.server, &self->recv, 1);
	self->recv.target_offset = UINT64_MAX;
	test_err_submit(EOVERFLOW, self->post.server, &self->recv, 1);
	self->recv.target_offset = UINT64_MAX - 100;
	test_err_submit(ERANGE, self->post.server, &self->recv, 1);
	self->recv.target_offset = 0;
	RECV_REFUSED(ERANGE, region_offset, POST_BYTES - HEAD + 1);
	RECV_REFUSED(EOVERFLOW, region_offset, UINT64_MAX);
	RECV_REFUSED(EINVAL, length, HEAD - 1);
	RECV_REFUSED(EINVAL, flags, KXFER_JOB_F_APART | KXFER_JOB_F_IMM);
	SEND_REFUSED(EINVAL, flags, KXFER_JOB_F_APART);
	EXPECT_EQ(self->submitted, kx_counter(self->post.client, "jobs_submitted"));
	/* The last byte of the region, and the ranges next to each other. */
	self->recv.target_offset = POST_BYTES - 100;
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	EXPECT_EQ(0, run(self->post.server, self->recv).status);
	self->recv.target_offset = 4096 - 100;
	ASSERT_EQ(0, run(self->post.client, self->send).status);
	EXPECT_EQ(0, run(self->post.server, self->recv).status);
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

/* ---- messages of all kinds, of which some need no answer ---- */

#define MIXED_PLACE	8192	/* bytes of a place: the longest message and some more */
#define NR_MIXED	48
#define MIXED_BYTES	(NR_MIXED * MIXED_PLACE)
#define MIXED_CAPACITY	128
#define NR_ROUNDS	8	/* in the first there are no credits */

/* Around the lengths at which another way to send begins. */
static const uint32_t mixed_lengths[] = { 1, 992, 993, 0, 4096, 10, 4097, 100, 991, 500 };
static const uint32_t mixed_flags[] = {
	0, KXFER_JOB_F_IMM, 0, KXFER_JOB_F_STORED, 0, 0, KXFER_JOB_F_IMM | KXFER_JOB_F_STORED,
	0, 0, 0, KXFER_JOB_F_STORED,
};

FIXTURE(mixed)
{
	struct post post;
	uint8_t *outbox;
	uint8_t *inbox;
	uint32_t outbox_region;
	uint32_t inbox_region;
	uint32_t mailbox;
	uint32_t target;
	uint32_t nr_made;
	char name[KXFER_NAME_MAX + 1];
	uint64_t eager;
};

FIXTURE_VARIANT(mixed)
{
	bool at_once;
	bool waits;	/* RECVs wait for messages, not messages for RECVs */
	uint32_t want;	/* messages of a round */
};

FIXTURE_VARIANT_ADD(mixed, one_by_one) { .at_once = false, .waits = false, .want = 20 };
FIXTURE_VARIANT_ADD(mixed, at_once) { .at_once = true, .waits = false, .want = NR_MIXED };
FIXTURE_VARIANT_ADD(mixed, one_by_one_into_waiting_recvs) {
	.at_once = false, .waits = true, .want = NR_MIXED,
};
FIXTURE_VARIANT_ADD(mixed, at_once_into_waiting_recvs) {
	.at_once = true, .waits = true, .want = NR_MIXED,
};

/* Another mailbox of the pair, and a target on it. Return: 0 or -errno. */
static int make_mailbox(FIXTURE_DATA(mixed) *self, uint32_t capacity, uint32_t max_bytes)
{
	snprintf(self->name, sizeof(self->name), "mixed-%d-%u", (int)getpid(), self->nr_made++);
	return kx_mailbox_add(self->post.server, self->name, capacity, max_bytes,
			      &self->mailbox) ?:
	       kx_target_open(self->post.client, self->post.peer, self->name, 0, &self->target);
}

static int end_mailbox(FIXTURE_DATA(mixed) *self)
{
	return kx_target_close(self->post.client, self->target) ?:
	       kx_export_del(self->post.server, self->mailbox);
}

FIXTURE_SETUP(mixed)
{
	ASSERT_EQ(0, post_open(&self->post, CAPACITY, MAX_BYTES));
	self->outbox = kx_alloc(MIXED_BYTES);
	self->inbox = kx_alloc(MIXED_BYTES);
	test_cmd_region_add(self->post.client, self->outbox, MIXED_BYTES, 0,
			    &self->outbox_region);
	test_cmd_region_add(self->post.server, self->inbox, MIXED_BYTES, KXFER_REGION_F_WRITE,
			    &self->inbox_region);
	ASSERT_EQ(0, make_mailbox(self, MIXED_CAPACITY, MIXED_PLACE));
	self->eager = kx_counter(self->post.client, "sends_eager");
}

FIXTURE_TEARDOWN(mixed)
{
	post_close(&self->post);
	kx_free(self->outbox, MIXED_BYTES);
	kx_free(self->inbox, MIXED_BYTES);
}

static uint64_t nr_eager(FIXTURE_DATA(mixed) *self)
{
	return kx_counter(self->post.client, "sends_eager") - self->eager;
}

#define EXPECT_SOME_EAGER(least) ({					\
	if (strcmp(kx_provider(), "siw"))				\
		EXPECT_LE(least, nr_eager(self));			\
	if (!strcmp(kx_provider(), "siw"))				\
		EXPECT_EQ(0, nr_eager(self));				\
})

/* The message number @nr of a mixture, in place @place. */
static struct kxfer_job mixed_send(FIXTURE_DATA(mixed) *self, uint32_t place, uint32_t nr)
{
	uint32_t length = mixed_lengths[nr % (sizeof(mixed_lengths) / 4)];
	uint32_t flags = mixed_flags[nr % (sizeof(mixed_flags) / 4)];
	struct kxfer_job job = {
		.op = KXFER_OP_SEND, .target = self->target, .flags = flags, .length = length,
		.cookie = flags & KXFER_JOB_F_IMM ? nr : 0,
	};

	if (!length)
		return job;
	job.region = self->outbox_region;
	job.region_offset = place * MIXED_PLACE;
	self->outbox[place * MIXED_PLACE] = nr;
	self->outbox[place * MIXED_PLACE + length - 1] = nr;
	return job;
}

static struct kxfer_job mixed_recv(FIXTURE_DATA(mixed) *self, uint32_t place)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_RECV, .target = self->mailbox, .region = self->inbox_region,
		.region_offset = place * MIXED_PLACE, .length = MIXED_PLACE,
		.user_data = place,
	};
}

/* Whether a message arrived as number @nr. */
static bool is_number(FIXTURE_DATA(mixed) *self, uint32_t place, uint32_t nr)
{
	const struct kxfer_job sent = mixed_send(self, place, nr);
	const struct kxfer_message *message = (void *)(self->inbox + place * MIXED_PLACE);
	const uint8_t *payload = (const uint8_t *)(message + 1);

	if (message->bytes != sent.length || message->immediate != sent.cookie ||
	    message->flags != (sent.flags & KXFER_JOB_F_IMM ? KXFER_MESSAGE_F_IMM : 0))
		return false;
	return !sent.length ||
	       (payload[0] == (uint8_t)nr && payload[sent.length - 1] == (uint8_t)nr);
}

static void submit_mixed_recvs(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self,
			       uint32_t want)
{
	struct kxfer_job jobs[NR_MIXED];
	uint32_t i;

	for (i = 0; i < want; i++)
		jobs[i] = mixed_recv(self, i);
	test_cmd_submit(want, self->post.server, jobs, want);
}

/*
 * Sends @want messages from number @nr on, at once or one by one. A long one may complete
 * only when it is received. Return: number of completions reaped.
 */
static uint32_t send_mixed(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self,
			   uint32_t nr, uint32_t want, bool at_once)
{
	struct kxfer_completion done = { .user_data = 0 };
	struct kxfer_job jobs[NR_MIXED];
	uint32_t i, reaped = 0;

	for (i = 0; i < want; i++) {
		jobs[i] = mixed_send(self, i, nr + i);
		jobs[i].user_data = i;
	}
	if (at_once) {
		EXPECT_EQ((int)want, kx_submit(self->post.client, jobs, want));
		return 0;
	}
	for (i = 0; i < want; i++) {
		EXPECT_EQ(1, kx_submit(self->post.client, &jobs[i], 1));
		if (jobs[i].length > KXFER_MESSAGE_MAX)
			continue;
		do {
			if (kx_reap(self->post.client, &done, 1, 1, KX_TIMEOUT_MS) != 1)
				return reaped;
			EXPECT_EQ(0, done.status);
			reaped++;
		} while (done.user_data != i);
	}
	return reaped;
}

static void expect_sent(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self,
			uint32_t nr)
{
	struct kxfer_completion done;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		test_cmd_reap(1, self->post.client, &done, 1, 1, KX_TIMEOUT_MS);
		ASSERT_EQ(0, done.status);
	}
}

/* The completions of the RECVs and the messages are in the order of the SENDs. */
static void expect_in_order(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self,
			    uint32_t nr, uint32_t want)
{
	struct kxfer_completion done[NR_MIXED];
	uint32_t i;

	test_cmd_reap(want, self->post.server, done, want, want, KX_TIMEOUT_MS);
	for (i = 0; i < want; i++) {
		ASSERT_EQ(0, done[i].status);
		ASSERT_EQ(i, done[i].user_data);
		ASSERT_TRUE(is_number(self, i, nr + i)) {
			TH_LOG("another message than number %u", nr + i);
		}
	}
}

TEST_F_TIMEOUT(mixed, messages_keep_their_order, 60)
{
	uint32_t round, nr = 0, reaped, want = variant->want;

	for (round = 0; round < NR_ROUNDS; round++, nr += want) {
		if (variant->waits)
			submit_mixed_recvs(_metadata, self, want);
		reaped = send_mixed(_metadata, self, nr, want, variant->at_once);
		if (!variant->waits)
			submit_mixed_recvs(_metadata, self, want);
		expect_in_order(_metadata, self, nr, want);
		expect_sent(_metadata, self, want - reaped);
	}
	EXPECT_SOME_EAGER(want);
}

/**
 * struct tally - messages that came to mailboxes, or were to
 * @stored: those that got a place
 * @refused: those that did not
 */
struct tally {
	uint64_t stored;
	uint64_t refused;
};

static struct tally take_tally(FIXTURE_DATA(mixed) *self)
{
	return (struct tally) {
		.stored = kx_counter(self->post.server, "sends_stored"),
		.refused = kx_counter(self->post.server, "sends_refused"),
	};
}

/* Whether @nr messages have come, or were refused, since @before. */
static bool have_come(FIXTURE_DATA(mixed) *self, const struct tally *before, uint32_t nr)
{
	struct tally now = take_tally(self);

	return now.stored + now.refused == before->stored + before->refused + nr;
}

/* Sends @nr messages at once and waits until they have come. Return: places they got, or -1. */
static int send_and_count(FIXTURE_DATA(mixed) *self, const struct kxfer_job *jobs, uint32_t nr)
{
	struct tally before = take_tally(self);

	if (kx_submit(self->post.client, jobs, nr) != (int)nr ||
	    !kx_wait_until(have_come(self, &before, nr), KX_TIMEOUT_MS))
		return -1;
	return take_tally(self).stored - before.stored;
}

/*
 * Sends @want messages from number *@nr on, at once, or one by one until one is refused. Return:
 * messages that got a place, or -1.
 */
static int fill(FIXTURE_DATA(mixed) *self, uint32_t *nr, int want, bool at_once)
{
	struct kxfer_job jobs[NR_MIXED];
	int i, got = 1, sum = 0;

	for (i = 0; i < want; i++)
		jobs[i] = mixed_send(self, i, (*nr)++);
	if (at_once)
		return send_and_count(self, jobs, want);
	for (i = 0; got == 1 && i < want; i++) {
		got = send_and_count(self, &jobs[i], 1);
		sum += got;
	}
	return got < 0 ? -1 : sum;
}

/* Receives @want messages. Return: 0 or -errno. */
static int take(FIXTURE_DATA(mixed) *self, uint32_t want)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < want; i++)
		ret = run(self->post.server, mixed_recv(self, 0)).status;
	return ret;
}

/* Each SEND has the status that its message deserved: @stored were taken. */
static void expect_ends(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self,
			uint32_t stored)
{
	struct kxfer_completion done;
	uint32_t good = 0;

	/* Without a job in flight it does not wait. */
	while (kx_reap(self->post.client, &done, 1, 1, KX_TIMEOUT_MS) == 1) {
		ASSERT_TRUE(!done.status || done.status == -EAGAIN);
		good += !done.status;
	}
	EXPECT_EQ(stored, good);
}

/* The lane has RECVs for eager messages, and a new sender gets credits at once. */
static void grow_lane(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self)
{
	uint32_t round;

	for (round = 0; round < 2; round++) {
		submit_mixed_recvs(_metadata, self, NR_MIXED);
		send_mixed(_metadata, self, 0, NR_MIXED, true);
		expect_in_order(_metadata, self, 0, NR_MIXED);
		expect_sent(_metadata, self, NR_MIXED);
	}
}

/* In more there could be more long ones than a session has under way at a time (8). */
static const uint32_t capacities[] = { 1, 2, 3, 4, 5, 8, 13, 16, 20 };

#define NR_CAPACITIES	(sizeof(capacities) / sizeof(*capacities))

/* Of one sender, whatever it sends and how much of it is under way. */
TEST_F_TIMEOUT(mixed, mailbox_takes_as_many_as_it_has_places, 120)
{
	uint32_t i, nr = 0, capacity;

	if (variant->waits)
		SKIP(return, "needs no RECVs");
	grow_lane(_metadata, self);
	for (i = 0; i < NR_CAPACITIES; i++) {
		capacity = capacities[i];
		ASSERT_EQ(0, end_mailbox(self));
		ASSERT_EQ(0, make_mailbox(self, capacity, MIXED_PLACE));
		EXPECT_EQ(capacity, fill(self, &nr, NR_MIXED, variant->at_once)) {
			TH_LOG("places of a mailbox of %u", capacity);
		}
		/* Nor any later. */
		EXPECT_EQ(0, fill(self, &nr, NR_MIXED, variant->at_once));
		ASSERT_EQ(0, take(self, (capacity + 1) / 2));
		EXPECT_EQ((capacity + 1) / 2, fill(self, &nr, NR_MIXED, variant->at_once));
		ASSERT_EQ(0, take(self, capacity));
		expect_ends(_metadata, self, capacity + (capacity + 1) / 2);
	}
	EXPECT_SOME_EAGER(1);
}

/*
 * A mailbox in which a sender has credits: places beyond the KXFER_WIRE_DATA_SLOTS that are kept
 * for nobody. The first two messages ask for credits, use one and leave some.
 */
#define ROOMY	40

static void make_roomy(struct __test_metadata *_metadata, FIXTURE_DATA(mixed) *self,
		       uint32_t max_bytes)
{
	int i;

	grow_lane(_metadata, self);
	ASSERT_EQ(0, end_mailbox(self));
	ASSERT_EQ(0, make_mailbox(self, ROOMY, max_bytes));
	self->eager = kx_counter(self->post.client, "sends_eager");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, run(self->post.client, mixed_send(self, 0, 0)).status);
	EXPECT_SOME_EAGER(1);
}

/* The places that are kept for a sender are for its answered messages too. */
TEST_F(mixed, mailbox_takes_as_many_with_answers)
{
	struct kxfer_job job;
	uint32_t i;

	if (variant->waits || variant->at_once)
		SKIP(return, "one variant is enough");
	make_roomy(_metadata, self, MIXED_PLACE);
	job = mixed_send(self, 0, 0);
	job.flags = KXFER_JOB_F_STORED;
	for (i = 2; i < ROOMY; i++) {
		EXPECT_EQ(0, run(self->post.client, job).status) {
			TH_LOG("message %u", i);
		}
	}
	EXPECT_EQ(-EAGAIN, run(self->post.client, job).status);
}

#define BULK		(100u * 1024)	/* goes by another lane than shorter messages */
#define NR_BULK		6	/* all under way at a time, and no more than a sender has credits */

/* Another sender takes all places but those that are kept. */
static int take_the_others(FIXTURE_DATA(mixed) *self)
{
	struct kxfer_job job = mixed_send(self, 0, 0);
	int i, ret;

	ret = kx_target_open(self->post.client, self->post.peer, self->name, 0, &job.target);
	for (i = 0; !ret && i < ROOMY; i++)
		ret = run(self->post.client, job).status;
	return ret;
}

/* The places that are kept for a sender are for its long messages too. */
TEST_F(mixed, mailbox_takes_as_many_by_another_lane)
{
	struct kxfer_job jobs[NR_BULK];
	uint32_t i;

	if (variant->waits || variant->at_once)
		SKIP(return, "one variant is enough");
	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "iWARP has no eager messages, and keeps no places");
	make_roomy(_metadata, self, BULK);
	EXPECT_EQ(-EAGAIN, take_the_others(self));
	for (i = 0; i < NR_BULK; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_SEND, .region = self->outbox_region,
			.target = self->target, .length = BULK,
		};
	EXPECT_EQ(NR_BULK, send_and_count(self, jobs, NR_BULK));
}

/* As many as there are places for: none is refused. */
TEST_F_TIMEOUT(mixed, mailbox_refuses_none_that_has_a_place, 120)
{
	uint32_t i, nr = 0, capacity;

	if (variant->waits)
		SKIP(return, "needs no RECVs");
	grow_lane(_metadata, self);
	for (i = 0; i < NR_CAPACITIES; i++) {
		capacity = capacities[i];
		ASSERT_EQ(0, end_mailbox(self));
		ASSERT_EQ(0, make_mailbox(self, capacity, MIXED_PLACE));
		EXPECT_EQ(capacity, fill(self, &nr, capacity, variant->at_once)) {
			TH_LOG("places of a mailbox of %u", capacity);
		}
		ASSERT_EQ(0, take(self, capacity));
		expect_ends(_metadata, self, capacity);
	}
}

/* An answer is asked for by STORED, IMM and messages without bytes; others need none. */
TEST_F(mixed, messages_with_a_credit_need_no_answer)
{
	struct kxfer_job job;
	uint32_t i;

	if (variant->waits || variant->at_once)
		SKIP(return, "one variant is enough");
	grow_lane(_metadata, self);
	/* On siw the longer ones complete when they are received. */
	submit_mixed_recvs(_metadata, self, 8);
	self->eager = kx_counter(self->post.client, "sends_eager");
	for (i = 0; i < 5; i++) {
		job = mixed_send(self, 0, i);
		job.flags |= KXFER_JOB_F_STORED;
		if (job.length > KXFER_MESSAGE_MAX)
			continue;
		ASSERT_EQ(0, run(self->post.client, job).status);
	}
	EXPECT_EQ(0, nr_eager(self));
	for (i = 0; i < 3; i++) {
		job = mixed_send(self, 0, 0);
		job.length = i ? MIXED_PLACE >> i : 1;
		ASSERT_EQ(0, run(self->post.client, job).status);
	}
	EXPECT_SOME_EAGER(3);
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
