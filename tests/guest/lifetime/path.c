// SPDX-License-Identifier: GPL-2.0
/*
 * Peers with two paths: jobs go on over the other when the link breaks, and go back to the first
 * when that works again.
 *
 * Method: two addresses of this node, each with a listener. The first path is taken away without
 * its listener, so that a link over it breaks and no other can be made; or by silence
 * (harness/second.h).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/fault.h"
#include "harness/module.h"
#include "harness/second.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define FIRST		SECOND_ADDRESS	/* of the node; the first path */
#define LENGTH		(1024 * 1024)
#define SHORT		64
#define LONG_MS		30000	/* loss_ms */
#define HOME_MS		(20000 * kx_slowness())	/* until the first is taken again, at the most */
#define HELD_MS		(3000 * kx_slowness())	/* a job that was held back, at the most */
#define NR_PLACES	64
#define NR_DEEP		16
#define MESSAGE		(64 * 1024)	/* where messages are, in both buffers */

FIXTURE(path)
{
	struct rig rig;
	int fd;
	uint64_t second;
	uint64_t changed;
};

FIXTURE_SETUP(path)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.loss_ms = LONG_MS,
		.address = FIRST,
		/* So that the peer sees another address over each path. */
		.local = FIRST,
		.via = kx_address(),
	};

	self->rig = (struct rig) { .server = -1, .client = -1 };
	self->fd = -1;
	if (!fault_available() || !module_available() || !second_available())
		SKIP(return, "needs root, debugfs, the module file and the test machine's network");
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	second_add();
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	/* The device needs a moment for the GID of a new address. */
	ASSERT_TRUE(kx_wait_until(!rig_open(&self->rig, &options) ||
				  (rig_close(&self->rig), false), 10000));
	ASSERT_EQ(0, kx_listen_add(self->rig.server, kx_addr(kx_address(), KXFER_PORT), 0,
				   &self->second));
	self->changed = kx_counter(self->fd, "paths_changed");
}

FIXTURE_TEARDOWN(path)
{
	fault_reset();
	second_add();
	rig_close(&self->rig);
	close(self->fd);
	second_remove();
}

static uint64_t nr_changes(struct _test_data_path *self)
{
	return kx_counter(self->fd, "paths_changed") - self->changed;
}

static int move(struct _test_data_path *self, uint32_t op)
{
	return rig_move(&self->rig, op, 0, 0, SHORT);
}

/* Jobs of the initiator's links to an address, so far; -1: there is no such link. */
static int64_t bytes_over(int fd, const char *address)
{
	struct kxfer_addr remote = kx_addr(address, KXFER_PORT);
	struct kxfer_info_link links[8];
	uint64_t cursor = 0;
	int64_t bytes = -1;
	int i, nr;

	nr = kx_info(fd, KXFER_INFO_LINKS, links, sizeof(links[0]), 8, &cursor);
	for (i = 0; i < nr; i++)
		if (links[i].flags & KXFER_LINK_INITIATOR && links[i].state == KXFER_LINK_LIVE &&
		    !memcmp(&links[i].remote, &remote, sizeof(remote)))
			bytes = links[i].bytes_read + links[i].bytes_written;
	return bytes;
}

/* Whether the next job goes to an address. */
static bool goes_over(struct _test_data_path *self, const char *address)
{
	int64_t before = bytes_over(self->fd, address);

	return !move(self, KXFER_OP_READ) && before >= 0 &&
	       bytes_over(self->fd, address) == before + SHORT;
}

/* Breaks the link of the first path, over which no other can be made. Return: 0 or -errno. */
static int take_first_away(struct _test_data_path *self)
{
	int ret = kx_listen_del(self->rig.server, self->rig.listener);

	if (ret)
		return ret;
	fault_arm("LANE_POST_SEND", 1);
	return move(self, KXFER_OP_READ);
}

static int bring_first_back(struct _test_data_path *self)
{
	return kx_listen_add(self->rig.server, kx_addr(FIRST, KXFER_PORT), 0,
			     &self->rig.listener);
}

/* ---- away ---- */

TEST_F(path, the_first_one_is_taken)
{
	EXPECT_TRUE(goes_over(self, FIRST));
	EXPECT_EQ(0, nr_changes(self));
}

TEST_F(path, jobs_go_on_over_the_other)
{
	uint64_t begin = kx_now_ns();

	ASSERT_EQ(0, take_first_away(self));
	EXPECT_GT(HELD_MS * 1000000ull, kx_now_ns() - begin);
	EXPECT_EQ(1, nr_changes(self));
	EXPECT_TRUE(goes_over(self, kx_address()));
	EXPECT_EQ(1, kx_counter(self->fd, "jobs_resumed"));
}

/* The exporter's end of the old link takes longer. The new one comes from another address. */
TEST_F(path, the_peer_ends_the_link_over_the_other_path_first)
{
	struct delay_counts counts = {};
	uint64_t begin = kx_now_ns();

	ASSERT_EQ(0, delay_arm("FENCE_WAIT", 1, 1));
	ASSERT_EQ(0, delay_arm("EXPORT_WITHDRAW", 2000, 1));
	ASSERT_EQ(0, take_first_away(self));
	EXPECT_LE(kx_least_ns(2000), kx_now_ns() - begin);
	ASSERT_EQ(0, delay_counts("FENCE_WAIT", &counts));
	EXPECT_LE(1, counts.hits);
	EXPECT_TRUE(goes_over(self, kx_address()));
}

TEST_F_TIMEOUT(path, jobs_go_on_when_the_first_falls_silent, 90)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, SHORT);
	struct kxfer_completion done;

	job.flags = KXFER_JOB_F_IDEMPOTENT;
	memset(self->rig.here.bytes, 0x3c, SHORT);
	ASSERT_EQ(0, second_silence());
	ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, LONG_MS));
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(0x3c, self->rig.there.bytes[SHORT - 1]);
	EXPECT_EQ(1, nr_changes(self));
	EXPECT_TRUE(goes_over(self, kx_address()));
}

TEST_F(path, a_target_is_opened_over_the_other)
{
	uint32_t target;

	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, self->rig.name, 0, &target));
	self->rig.target = target;
	EXPECT_TRUE(goes_over(self, kx_address()));
}

/* ---- and back ---- */

static bool delay_is_under_way(const char *site)
{
	struct delay_counts counts;

	return !delay_counts(site, &counts) && counts.now;
}

TEST_F_TIMEOUT(path, the_first_one_is_taken_again, 120)
{
	uint64_t lost, slowest = 0, begin;

	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(1, nr_changes(self));
	lost = kx_counter(self->fd, "links_lost");
	ASSERT_EQ(0, bring_first_back(self));
	/* Jobs run all the while: none ends, and none waits for long. */
	for (uint64_t end = kx_now_ns() + HOME_MS * 1000000ull;
	     nr_changes(self) == 1 && kx_now_ns() < end; kx_sleep_ms(1)) {
		begin = kx_now_ns();
		ASSERT_EQ(0, move(self, KXFER_OP_WRITE));
		if (kx_now_ns() - begin > slowest)
			slowest = kx_now_ns() - begin;
	}
	EXPECT_EQ(2, nr_changes(self));
	TH_LOG("slowest job: %llu ms", (unsigned long long)slowest / 1000000);
	EXPECT_GT(HELD_MS * 1000000ull, slowest);
	EXPECT_TRUE(goes_over(self, FIRST));
	EXPECT_EQ(lost, kx_counter(self->fd, "links_lost"));
	/* The target is the one of before. */
	EXPECT_EQ(1, kx_counter(self->fd, "live_targets"));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_grants") == 2, 5000));
}

/* Jobs that are held back wait for no lost link: a short loss_ms does not end them. */
TEST_F_TIMEOUT(path, jobs_that_are_held_back_are_not_lost, 120)
{
	const uint32_t brief_ms = 1000 * kx_slowness();

	close(self->rig.client);
	buffer_free(&self->rig.here);
	self->rig.options.loss_ms = brief_ms;
	ASSERT_EQ(0, rig_open_client(&self->rig));
	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, delay_arm("LINE_MOVE", 2 * brief_ms, 1));
	ASSERT_EQ(0, bring_first_back(self));
	ASSERT_TRUE(kx_wait_until(delay_is_under_way("LINE_MOVE"), HOME_MS));
	EXPECT_EQ(0, move(self, KXFER_OP_WRITE));
	EXPECT_TRUE(kx_wait_until(nr_changes(self) == 2, HOME_MS));
}

/* An idle peer goes back, too, with all its targets. */
TEST_F_TIMEOUT(path, targets_without_jobs_go_back_as_well, 120)
{
	uint32_t first = self->rig.target, second;

	ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, self->rig.name, 0, &second));
	ASSERT_EQ(0, take_first_away(self));
	self->rig.target = second;
	ASSERT_TRUE(goes_over(self, kx_address()));
	ASSERT_EQ(0, bring_first_back(self));
	ASSERT_TRUE(kx_wait_until(nr_changes(self) == 2, HOME_MS));
	EXPECT_TRUE(kx_wait_until(goes_over(self, FIRST), HELD_MS));
	self->rig.target = first;
	EXPECT_TRUE(goes_over(self, FIRST));
}

TEST_F_TIMEOUT(path, a_peer_that_was_opened_over_the_other_goes_to_the_first, 120)
{
	ASSERT_EQ(0, take_first_away(self));
	close(self->rig.client);
	buffer_free(&self->rig.here);
	ASSERT_EQ(0, rig_open_client(&self->rig));
	ASSERT_TRUE(goes_over(self, kx_address()));
	EXPECT_EQ(1, nr_changes(self));
	ASSERT_EQ(0, bring_first_back(self));
	ASSERT_TRUE(kx_wait_until(nr_changes(self) == 2, HOME_MS));
	EXPECT_TRUE(kx_wait_until(goes_over(self, FIRST), HELD_MS));
}

/* An exporter may know one address of the peer alone. */
TEST_F_TIMEOUT(path, a_target_that_the_first_one_does_not_give_keeps_the_peer, 120)
{
	const struct kxfer_rule rule = {
		.match = KXFER_RULE_ADDR,
		.rights = KXFER_RIGHT_ALL,
		.prefix_len = 32,
		.addr = kx_addr(kx_address(), 0),
	};
	uint32_t export_id, target;
	uint64_t end;

	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, kx_export_add_rules(self->rig.server, self->rig.there_region, 0, LENGTH,
					 KXFER_RIGHT_ALL, "path-ruled", &rule, 1, &export_id));
	ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, "path-ruled", 0, &target));
	ASSERT_EQ(0, bring_first_back(self));
	for (end = kx_now_ns() + 8000000000ull; kx_now_ns() < end; kx_sleep_ms(10)) {
		ASSERT_EQ(0, move(self, KXFER_OP_READ));
		ASSERT_EQ(0, kx_transfer(self->rig.client, KXFER_OP_READ, self->rig.here_region,
					 0, target, 0, SHORT));
	}
	EXPECT_EQ(1, nr_changes(self));
	ASSERT_EQ(0, kx_target_close(self->rig.client, target));
	ASSERT_TRUE(kx_wait_until(nr_changes(self) == 2, 60000));
	EXPECT_TRUE(kx_wait_until(goes_over(self, FIRST), HELD_MS));
}

/* Two peers have the two paths crossed; one goes back while the other is busy on its own. */
TEST_F_TIMEOUT(path, a_peer_goes_back_beside_one_that_stays, 120)
{
	struct kxfer_path via = { .remote = kx_addr(FIRST, KXFER_PORT),
				  .local = kx_addr(FIRST, 0) };
	struct kxfer_peer_open crossed = {
		.size = sizeof(crossed),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = LONG_MS,
		.via = (uintptr_t)&via,
		.nr_via = 1,
	};
	struct kxfer_completion done[NR_DEEP];
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, MESSAGE, MESSAGE, MESSAGE);
	uint32_t flying = 0;
	uint64_t end;
	int nr;

	ASSERT_EQ(0, kx_call(self->rig.client, KXFER_PEER_OPEN, &crossed));
	ASSERT_EQ(0, kx_target_open(self->rig.client, crossed.peer, self->rig.name, 0,
				    &job.target));
	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, bring_first_back(self));
	for (end = kx_now_ns() + HOME_MS * 1000000ull;
	     nr_changes(self) == 1 && kx_now_ns() < end; flying -= nr) {
		for (; flying < NR_DEEP; flying++)
			ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
		nr = kx_reap(self->rig.client, done, NR_DEEP / 2, 1, KX_TIMEOUT_MS);
		ASSERT_LT(0, nr);
	}
	EXPECT_EQ(2, nr_changes(self));
	ASSERT_EQ((int)flying, kx_reap(self->rig.client, done, flying, flying, KX_TIMEOUT_MS));
	EXPECT_TRUE(kx_wait_until(goes_over(self, FIRST), HELD_MS));
}

/* ---- messages ---- */

static int open_mailbox(struct _test_data_path *self, uint32_t places, uint32_t *target)
{
	uint32_t mailbox;

	return kx_mailbox_add(self->rig.server, "path-mailbox", places, SHORT, &mailbox) ?:
	       kx_target_open(self->rig.client, self->rig.peer, "path-mailbox", KXFER_RIGHT_SEND,
			      target) ?: (int)-mailbox;
}

static void send(struct __test_metadata *_metadata, struct rig *rig, uint32_t target,
		 uint64_t number, uint32_t flags)
{
	struct kxfer_job job = {
		.op = KXFER_OP_SEND, .flags = flags, .region = rig->here_region,
		.region_offset = MESSAGE, .target = target, .length = sizeof(number),
		.user_data = number,
	};

	memcpy(rig->here.bytes + MESSAGE, &number, sizeof(number));
	ASSERT_EQ(1, kx_submit(rig->client, &job, 1));
}

/* Takes a message. Return: its number, or -errno. */
static int64_t receive(struct rig *rig, uint32_t mailbox)
{
	struct kxfer_job job = {
		.op = KXFER_OP_RECV, .region = rig->there_region, .region_offset = MESSAGE,
		.target = mailbox, .length = sizeof(struct kxfer_message) + SHORT,
	};
	struct kxfer_completion done;
	uint64_t number;
	int ret;

	ret = kx_submit(rig->server, &job, 1);
	if (ret != 1)
		return ret ?: -EPROTO;
	ret = kx_reap(rig->server, &done, 1, 1, 5000);
	if (ret != 1 || done.status)
		return ret < 0 ? ret : done.status;
	memcpy(&number, rig->there.bytes + MESSAGE + sizeof(struct kxfer_message),
	       sizeof(number));
	return number;
}

/* None is lost, doubled, or overtaken by one that goes over the other path. */
TEST_F_TIMEOUT(path, messages_keep_their_order, 120)
{
	struct kxfer_completion done;
	uint64_t number = 0, taken = 0;
	uint32_t target;
	int mailbox;

	mailbox = -open_mailbox(self, NR_PLACES, &target);
	ASSERT_LT(0, mailbox);
	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, bring_first_back(self));
	for (uint64_t end = kx_now_ns() + HOME_MS * 1000000ull;
	     nr_changes(self) == 1 && kx_now_ns() < end;) {
		for (; number < taken + NR_PLACES / 2; number++) {
			send(_metadata, &self->rig, target, number, 0);
			ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, KX_TIMEOUT_MS));
			ASSERT_EQ(0, done.status);
		}
		for (; taken < number; taken++)
			ASSERT_EQ((int64_t)taken, receive(&self->rig, mailbox));
	}
	EXPECT_EQ(2, nr_changes(self));
	TH_LOG("%llu messages", (unsigned long long)number);
	EXPECT_LT(NR_PLACES, number);
}

/* A job that does not end keeps the peer where it is, and holds no other back for long. */
TEST_F_TIMEOUT(path, a_job_that_does_not_end_keeps_the_peer_where_it_is, 180)
{
	struct kxfer_completion done;
	struct kxfer_job job;
	uint64_t begin, end;
	uint32_t target;
	int mailbox;

	mailbox = -open_mailbox(self, 1, &target);
	ASSERT_LT(0, mailbox);
	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, bring_first_back(self));
	/* The second ends when it is received. */
	send(_metadata, &self->rig, target, 0, 0);
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, KX_TIMEOUT_MS));
	ASSERT_EQ(0, done.status);
	send(_metadata, &self->rig, target, 1, KXFER_JOB_F_WAIT);
	for (end = kx_now_ns() + 12000000000ull; kx_now_ns() < end; kx_sleep_ms(20)) {
		begin = kx_now_ns();
		job = rig_job(&self->rig, KXFER_OP_READ, 0, 0, SHORT);
		job.user_data = 2;
		ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
		ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, LONG_MS));
		ASSERT_EQ(0, done.status);
		ASSERT_EQ(2, done.user_data);
		ASSERT_GT(HELD_MS * 1000000ull, kx_now_ns() - begin);
	}
	EXPECT_EQ(1, nr_changes(self));
	EXPECT_EQ(0, receive(&self->rig, mailbox));
	EXPECT_EQ(1, receive(&self->rig, mailbox));
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, LONG_MS));
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(1, done.user_data);
	ASSERT_TRUE(kx_wait_until(nr_changes(self) == 2, 60000));
	EXPECT_TRUE(kx_wait_until(goes_over(self, FIRST), HELD_MS));
}

/* Another peer of the session, whose first path is the one that stands in. Return: 0 or -errno */
static int open_another(struct _test_data_path *self, uint32_t *target)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = LONG_MS,
	};
	int ret = kx_call(self->rig.client, KXFER_PEER_OPEN, &cmd);

	return ret ?: kx_target_open(self->rig.client, cmd.peer, "path-mailbox",
				     KXFER_RIGHT_SEND, target);
}

/* It stays on the link that broke, because no job of it waits for another. */
TEST_F_TIMEOUT(path, a_target_without_jobs_does_not_keep_it, 120)
{
	uint32_t target;

	ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, self->rig.name,
				    KXFER_RIGHT_READ, &target));
	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, bring_first_back(self));
	EXPECT_TRUE(kx_wait_until(nr_changes(self) == 2, HOME_MS));
	EXPECT_TRUE(goes_over(self, FIRST));
	EXPECT_EQ(0, kx_transfer(self->rig.client, KXFER_OP_READ, self->rig.here_region, 0,
				 target, 0, SHORT));
}

TEST_F_TIMEOUT(path, a_job_of_another_peer_of_the_session_does_not_keep_it, 120)
{
	struct kxfer_completion done;
	uint32_t target, mailbox;

	ASSERT_EQ(0, kx_mailbox_add(self->rig.server, "path-mailbox", 1, SHORT, &mailbox));
	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, open_another(self, &target));
	ASSERT_EQ(0, bring_first_back(self));
	send(_metadata, &self->rig, target, 0, 0);
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, KX_TIMEOUT_MS));
	ASSERT_EQ(0, done.status);
	/* It ends when it is received. */
	send(_metadata, &self->rig, target, 1, KXFER_JOB_F_WAIT);
	EXPECT_TRUE(kx_wait_until(nr_changes(self) == 2, HOME_MS));
	EXPECT_EQ(0, receive(&self->rig, mailbox));
	EXPECT_EQ(1, receive(&self->rig, mailbox));
	ASSERT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, LONG_MS));
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(1, done.user_data);
	EXPECT_TRUE(goes_over(self, FIRST));
}

/* ---- endings ---- */

TEST_F_TIMEOUT(path, a_session_is_closed_while_it_goes_back, 60)
{
	uint64_t begin;

	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, delay_arm("LINE_MOVE", 1500, 1));
	ASSERT_EQ(0, bring_first_back(self));
	ASSERT_TRUE(kx_wait_until(delay_is_under_way("LINE_MOVE"), HOME_MS));
	begin = kx_now_ns();
	close(self->rig.client);
	self->rig.client = -1;
	EXPECT_GT(6000000000ull * kx_slowness(), kx_now_ns() - begin);
	EXPECT_TRUE(kx_wait_until(!kx_counter(self->fd, "live_peers"), 1000));
}

TEST_F_TIMEOUT(path, the_first_breaks_again_while_it_is_taken, 120)
{
	uint64_t end;

	ASSERT_EQ(0, take_first_away(self));
	ASSERT_EQ(0, delay_arm("TARGET_RENEW", 1000, 1));
	ASSERT_EQ(0, bring_first_back(self));
	ASSERT_TRUE(kx_wait_until(delay_is_under_way("TARGET_RENEW"), HOME_MS));
	/* The next work request breaks its link: that of the way back, or the one that is left. */
	ASSERT_EQ(0, kx_listen_del(self->rig.server, self->rig.listener));
	fault_arm("LANE_POST_SEND", 1);
	for (end = kx_now_ns() + 10000000000ull; kx_now_ns() < end; kx_sleep_ms(50))
		ASSERT_EQ(0, move(self, KXFER_OP_READ));
	/* In the first case the peer has gone over the other again; there is no third. */
	EXPECT_TRUE(goes_over(self, nr_changes(self) == 2 ? FIRST : kx_address()));
}

TEST_HARNESS_MAIN
