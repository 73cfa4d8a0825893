// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs that outlive their link: which go on, which end, in what order, and how long they wait.
 *
 * Method: a work request that cannot be posted breaks the link. Without a listener no other link
 * can be made, and jobs wait; each end of the waiting is tried.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/fault.h"
#include "harness/module.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define LENGTH		(16 * 1024 * 1024)
#define SHORT		64
#define LONG_MS		30000	/* loss_ms: longer than any link takes to come back */
#define BRIEF_MS	800	/* loss_ms that passes */
#define DOWN_MS		300	/* for which the link is kept away */
#define SLACK_MS	(4000 * kx_slowness())	/* a step of the line's work, and the load */
#define NR_JOBS		32

FIXTURE(line)
{
	struct rig rig;
	int fd;
	uint64_t kept;
	uint64_t resumed;
};

/* A link of an earlier test, which stays for half a minute, could be the one that breaks. */
FIXTURE_SETUP(line)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.loss_ms = LONG_MS,
	};

	self->rig.client = -1;
	self->rig.server = -1;
	self->fd = -1;
	if (!fault_available() || !module_available())
		SKIP(return, "needs root, debugfs and the module file");
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->kept = kx_counter(self->fd, "jobs_kept");
	self->resumed = kx_counter(self->fd, "jobs_resumed");
}

FIXTURE_TEARDOWN(line)
{
	fault_reset();
	rig_close(&self->rig);
	close(self->fd);
}

static uint64_t nr_kept(struct _test_data_line *self)
{
	return kx_counter(self->fd, "jobs_kept") - self->kept;
}

static uint64_t nr_resumed(struct _test_data_line *self)
{
	return kx_counter(self->fd, "jobs_resumed") - self->resumed;
}

/* The next work request that is posted breaks its link. */
static void break_next(void)
{
	fault_arm("LANE_POST_SEND", 1);
}

/* A request of the client breaks its link, under no job. */
static void break_link(struct rig *rig)
{
	struct kxfer_peer_export export;
	uint64_t cursor = 0;

	break_next();
	kx_peer_list(rig->client, rig->peer, &export, 1, &cursor);
	fault_arm("LANE_POST_SEND", 0);
}

static int nr_links(int fd)
{
	struct kxfer_info_link links[8];
	uint64_t cursor = 0;

	return kx_info(fd, KXFER_INFO_LINKS, links, sizeof(links[0]), 8, &cursor);
}

/* Breaks the link, and lets no other be made. Return: whether it is gone. */
static bool take_link_away(struct _test_data_line *self)
{
	if (kx_listen_del(self->rig.server, self->rig.listener))
		return false;
	break_link(&self->rig);
	return kx_wait_until(!nr_links(self->fd), 20000);
}

static int bring_link_back(struct _test_data_line *self)
{
	return kx_listen_add(self->rig.server, kx_addr(kx_address(), KXFER_PORT), 0,
			     &self->rig.listener);
}

static struct kxfer_job job_of(const struct rig *rig, uint32_t op, uint32_t flags, uint64_t number)
{
	struct kxfer_job job = rig_job(rig, op, number * SHORT, number * SHORT, SHORT);

	if (op == KXFER_OP_NOTIFY)
		job = (struct kxfer_job) { .op = op, .target = rig->target, .cookie = number };
	job.flags = flags;
	job.user_data = number;
	return job;
}

/* Reaps jobs whose user_data are below @nr. @status: by user_data. Return: 0 or -errno. */
static int reap_all(int fd, int *status, uint32_t nr, uint32_t wait_ms)
{
	struct kxfer_completion done[NR_JOBS];
	uint32_t i;
	int ret = kx_reap(fd, done, nr, nr, wait_ms);

	if (ret != (int)nr)
		return ret < 0 ? ret : -EPROTO;
	for (i = 0; i < nr; i++)
		status[i] = 1;
	for (i = 0; i < nr; i++) {
		if (done[i].user_data >= nr || status[done[i].user_data] != 1)
			return -EPROTO;
		status[done[i].user_data] = done[i].status;
	}
	return 0;
}

/* Submits a job whose first post breaks the link. Return: its status, or -errno of the calls. */
static int end_of_broken(struct _test_data_line *self, const struct kxfer_job *job)
{
	int status, ret;

	break_next();
	ret = kx_submit(self->rig.client, job, 1);
	if (ret != 1)
		return ret ?: -EPROTO;
	return reap_all(self->rig.client, &status, 1, LONG_MS) ?: status;
}

/* ---- which jobs go on ---- */

TEST_F(line, a_read_goes_on)
{
	const char *wrong;

	rig_prepare(&self->rig, KXFER_OP_READ);
	break_next();
	wrong = rig_try(&self->rig, KXFER_OP_READ, 0, 4096, 3000);
	ASSERT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	EXPECT_EQ(1, nr_kept(self));
	EXPECT_EQ(1, nr_resumed(self));
}

TEST_F(line, a_write_goes_on_if_it_may_be_repeated)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, KXFER_JOB_F_IDEMPOTENT, 0);

	memset(self->rig.here.bytes, 0x5a, SHORT);
	EXPECT_EQ(0, end_of_broken(self, &job));
	EXPECT_EQ(0, memcmp(self->rig.there.bytes, self->rig.here.bytes, SHORT));
	EXPECT_EQ(1, nr_resumed(self));
}

TEST_F(line, a_write_that_was_posted_ends)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);

	EXPECT_EQ(-ECONNRESET, end_of_broken(self, &job));
	EXPECT_EQ(0, nr_kept(self));
	/* The line is not broken: the next job finds another link. */
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, SHORT));
}

TEST_F(line, a_notify_that_was_posted_ends)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_NOTIFY, 0, 0);

	EXPECT_EQ(-ECONNRESET, end_of_broken(self, &job));
	EXPECT_EQ(0, nr_kept(self));
}

/* The jobs behind the first wait for its end. */
TEST_F(line, what_counts_on_a_job_that_ended_ends_too)
{
	struct kxfer_job jobs[] = {
		job_of(&self->rig, KXFER_OP_WRITE, 0, 0),
		job_of(&self->rig, KXFER_OP_NOTIFY, KXFER_JOB_F_ORDERED, 1),
		job_of(&self->rig, KXFER_OP_WRITE, 0, 2),
		job_of(&self->rig, KXFER_OP_READ, KXFER_JOB_F_FENCE, 3),
		job_of(&self->rig, KXFER_OP_READ, 0, 4),
		job_of(&self->rig, KXFER_OP_WRITE, KXFER_JOB_F_IDEMPOTENT, 5),
	};
	struct kxfer_event event;
	int status[6], i;

	break_next();
	test_cmd_submit(6, self->rig.client, jobs, 6);
	ASSERT_EQ(0, reap_all(self->rig.client, status, 6, LONG_MS));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(-ECONNRESET, status[i]) {
			TH_LOG("job %d", i);
		}
	EXPECT_EQ(0, status[4]);
	EXPECT_EQ(0, status[5]);
	EXPECT_EQ(0, kx_event_reap(self->rig.server, &event, 1, 0));
}

/* A job that is submitted before its user can know of the end of another counts on it, too. */
TEST_F(line, what_comes_before_the_end_is_known_ends_too)
{
	struct kxfer_job jobs[] = {
		job_of(&self->rig, KXFER_OP_WRITE, 0, 0),
		job_of(&self->rig, KXFER_OP_NOTIFY, 0, 1),
		job_of(&self->rig, KXFER_OP_READ, 0, 2),
		job_of(&self->rig, KXFER_OP_NOTIFY, 0, 3),
	};
	struct kxfer_event event;
	int status[4], i;

	break_next();
	test_cmd_submit(1, self->rig.client, &jobs[0], 1);
	ASSERT_TRUE(kx_wait_until(kx_counter(self->fd, "jobs_failed") == 1, 20000));
	/* Some come while there is no link, one when there is another. */
	test_cmd_submit(2, self->rig.client, &jobs[1], 2);
	ASSERT_TRUE(kx_wait_until(kx_counter(self->fd, "jobs_resumed") == 1, 20000));
	test_cmd_submit(1, self->rig.client, &jobs[3], 1);
	ASSERT_EQ(0, reap_all(self->rig.client, status, 4, LONG_MS));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(i == 2 ? 0 : -ECONNRESET, status[i]);
	EXPECT_EQ(0, kx_event_reap(self->rig.server, &event, 1, 0));
	/* Now it is known. */
	test_cmd_notify(self->rig.client, self->rig.target, 4);
	ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, 1000));
	EXPECT_EQ(4, event.cookie);
}

TEST_F(line, what_was_not_posted_goes_on_in_order)
{
	struct kxfer_job jobs[NR_JOBS];
	struct kxfer_event events[NR_JOBS];
	int status[NR_JOBS], i;

	jobs[0] = job_of(&self->rig, KXFER_OP_READ, 0, 0);
	for (i = 1; i < NR_JOBS; i++)
		jobs[i] = job_of(&self->rig, i % 2 ? KXFER_OP_WRITE : KXFER_OP_NOTIFY,
				 i == 1 ? KXFER_JOB_F_FENCE : 0, i);
	memset(self->rig.here.bytes, 0x21, NR_JOBS * SHORT);
	break_next();
	test_cmd_submit(NR_JOBS, self->rig.client, jobs, NR_JOBS);
	ASSERT_EQ(0, reap_all(self->rig.client, status, NR_JOBS, LONG_MS));
	for (i = 0; i < NR_JOBS; i++)
		EXPECT_EQ(0, status[i]);
	ASSERT_EQ(NR_JOBS / 2 - 1, kx_event_reap(self->rig.server, events, NR_JOBS, 1000));
	for (i = 0; i < NR_JOBS / 2 - 1; i++)
		EXPECT_EQ(2 * (i + 1), events[i].cookie);
	/* With two CPUs the lane may be closed before the later jobs come to it. */
	EXPECT_LE(1, nr_kept(self));
	EXPECT_EQ(NR_JOBS, nr_resumed(self));
	EXPECT_EQ(0, memcmp(self->rig.there.bytes + SHORT, self->rig.here.bytes + SHORT, SHORT));
}

/* Its work requests are several posts: the second breaks the link. */
TEST_F(line, a_long_read_goes_on_behind_what_it_has)
{
	uint64_t before = kx_counter(self->fd, "wr_posted"), whole, broken;
	const char *wrong;

	rig_prepare(&self->rig, KXFER_OP_READ);
	ASSERT_EQ(NULL, rig_try(&self->rig, KXFER_OP_READ, 0, 0, LENGTH));
	whole = kx_counter(self->fd, "wr_posted") - before;
	before += whole;
	fault_arm("LANE_POST_SEND", 2);
	wrong = rig_try(&self->rig, KXFER_OP_READ, 0, 0, LENGTH);
	ASSERT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	broken = kx_counter(self->fd, "wr_posted") - before;
	EXPECT_EQ(1, nr_kept(self));
	/* Twice what was posted before the break, at the most. */
	EXPECT_LE(whole, broken);
	EXPECT_GT(2 * whole, broken);
}

/* ---- how long they wait ---- */

TEST_F(line, jobs_wait_for_a_link_and_keep_their_objects)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	struct kxfer_completion done;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(1, self->rig.client, &job, 1);
	test_err_reap(ETIMEDOUT, self->rig.client, &done, 1, 1, DOWN_MS);
	test_err_target_close(EBUSY, self->rig.client, self->rig.target);
	test_err_region_del(EBUSY, self->rig.client, self->rig.here_region);
	ASSERT_EQ(0, bring_link_back(self));
	test_cmd_reap(1, self->rig.client, &done, 1, 1, LONG_MS);
	EXPECT_EQ(0, done.status);
	test_cmd_target_close(self->rig.client, self->rig.target);
	test_cmd_region_del(self->rig.client, self->rig.here_region);
	test_cmd_peer_close(self->rig.client, self->rig.peer);
}

TEST_F(line, a_waiting_job_ends_at_its_deadline)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	uint64_t begin = kx_now_ns();
	int status;

	ASSERT_TRUE(take_link_away(self));
	begin = kx_now_ns();
	job.deadline_ns = kx_deadline_ns(DOWN_MS);
	test_cmd_submit(1, self->rig.client, &job, 1);
	ASSERT_EQ(0, reap_all(self->rig.client, &status, 1, LONG_MS));
	EXPECT_EQ(-ETIMEDOUT, status);
	EXPECT_LE(kx_least_ns(DOWN_MS), kx_now_ns() - begin);
	EXPECT_GT((uint64_t)(DOWN_MS + SLACK_MS) * 1000000, kx_now_ns() - begin);
}

/* Of a job that was posted, and waits, it is not known whether it had an effect. */
TEST_F(line, a_posted_job_that_waits_ends_with_its_link_at_its_deadline)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_READ, 0, 0);
	int status;

	ASSERT_EQ(0, kx_listen_del(self->rig.server, self->rig.listener));
	break_next();
	job.deadline_ns = kx_deadline_ns(2000);
	test_cmd_submit(1, self->rig.client, &job, 1);
	ASSERT_TRUE(kx_wait_until(nr_kept(self) == 1, 20000));
	test_cmd_cancel(0, self->rig.client, job.user_data, 0);
	ASSERT_EQ(0, reap_all(self->rig.client, &status, 1, LONG_MS));
	EXPECT_EQ(-ECONNRESET, status);
}

TEST_F(line, a_waiting_job_can_be_cancelled)
{
	struct kxfer_job jobs[] = {
		job_of(&self->rig, KXFER_OP_WRITE, 0, 0),
		job_of(&self->rig, KXFER_OP_NOTIFY, 0, 1),
	};
	struct kxfer_completion done;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(2, self->rig.client, jobs, 2);
	test_cmd_cancel(1, self->rig.client, 1, 0);
	test_cmd_reap(1, self->rig.client, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(1, done.user_data);
	EXPECT_EQ(-ECANCELED, done.status);
	ASSERT_EQ(0, bring_link_back(self));
	test_cmd_reap(1, self->rig.client, &done, 1, 1, LONG_MS);
	EXPECT_EQ(0, done.user_data);
	EXPECT_EQ(0, done.status);
}

TEST_F(line, a_session_with_waiting_jobs_can_be_closed)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	uint64_t begin;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(1, self->rig.client, &job, 1);
	kx_sleep_ms(DOWN_MS);
	begin = kx_now_ns();
	close(self->rig.client);
	self->rig.client = -1;
	EXPECT_GT((uint64_t)SLACK_MS * 1000000, kx_now_ns() - begin);
	EXPECT_TRUE(kx_wait_until(!kx_counter(self->fd, "live_jobs"), 1000));
}

TEST_F(line, new_jobs_wait_behind_those_that_wait)
{
	struct kxfer_event events[4];
	struct kxfer_job job;
	int status[4], i;

	ASSERT_TRUE(take_link_away(self));
	for (i = 0; i < 2; i++) {
		job = job_of(&self->rig, KXFER_OP_NOTIFY, 0, i);
		test_cmd_submit(1, self->rig.client, &job, 1);
	}
	ASSERT_EQ(0, delay_arm("TARGET_RENEW", 500, 1));
	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_TRUE(kx_wait_until(nr_links(self->fd), LONG_MS));
	for (; i < 4; i++) {
		job = job_of(&self->rig, KXFER_OP_NOTIFY, 0, i);
		test_cmd_submit(1, self->rig.client, &job, 1);
	}
	ASSERT_EQ(0, reap_all(self->rig.client, status, 4, LONG_MS));
	ASSERT_EQ(4, kx_event_reap(self->rig.server, events, 4, 1000));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, status[i]);
		EXPECT_EQ(i, events[i].cookie);
	}
}

/* ---- what they find ---- */

TEST_F(line, a_withdrawn_export_ends_its_jobs)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	int status;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(1, self->rig.client, &job, 1);
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_EQ(0, reap_all(self->rig.client, &status, 1, LONG_MS));
	EXPECT_EQ(-EKEYREVOKED, status);
	EXPECT_EQ(-EKEYREVOKED, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, SHORT));
}

TEST_F(line, a_withdrawn_export_ends_jobs_that_were_posted)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_READ, 0, 0);
	int status;

	ASSERT_EQ(0, kx_listen_del(self->rig.server, self->rig.listener));
	break_next();
	test_cmd_submit(1, self->rig.client, &job, 1);
	ASSERT_TRUE(kx_wait_until(nr_kept(self) == 1 && !nr_links(self->fd), 20000));
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_EQ(0, reap_all(self->rig.client, &status, 1, LONG_MS));
	EXPECT_EQ(-EKEYREVOKED, status);
}

TEST_F(line, another_export_of_that_name_is_not_taken_for_it)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	int status;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(1, self->rig.client, &job, 1);
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	test_cmd_export_add(self->rig.server, self->rig.there_region, 0, LENGTH, KXFER_RIGHT_ALL,
			    self->rig.name, &self->rig.export_id);
	memset(self->rig.here.bytes, 0x5a, SHORT);
	memset(self->rig.there.bytes, 0, SHORT);
	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_EQ(0, reap_all(self->rig.client, &status, 1, LONG_MS));
	EXPECT_EQ(-EKEYREVOKED, status);
	EXPECT_EQ(0, self->rig.there.bytes[0]);
}

/* The exporter's end takes two seconds more: until then no job goes on. */
TEST_F(line, the_peer_ends_the_old_link_first)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_READ, 0, 0);
	struct delay_counts counts = {};
	uint64_t begin = kx_now_ns();

	ASSERT_EQ(0, delay_arm("FENCE_WAIT", 1, 1));
	ASSERT_EQ(0, delay_arm("EXPORT_WITHDRAW", 2000, 1));
	EXPECT_EQ(0, end_of_broken(self, &job));
	EXPECT_LE(kx_least_ns(2000), kx_now_ns() - begin);
	ASSERT_EQ(0, delay_counts("FENCE_WAIT", &counts));
	EXPECT_LE(1, counts.hits);
}

/* ---- messages ---- */

static int open_mailbox(struct _test_data_line *self, const char *name, uint32_t *target)
{
	uint32_t mailbox;

	return kx_mailbox_add(self->rig.server, name, NR_JOBS, SHORT, &mailbox) ?:
	       kx_target_open(self->rig.client, self->rig.peer, name, KXFER_RIGHT_SEND, target) ?:
	       (int)-mailbox;
}

/* They wait; none is doubled, lost, or overtakes another. */
TEST_F(line, messages_go_on_in_order)
{
	struct kxfer_completion done[NR_JOBS];
	int status[NR_JOBS], i, ret;
	const size_t place = sizeof(struct kxfer_message) + SHORT;
	uint32_t target;
	struct kxfer_job job = {
		.op = KXFER_OP_SEND, .region = self->rig.here_region, .length = SHORT,
	};

	ret = open_mailbox(self, "line-mailbox", &target);
	ASSERT_GT(0, ret);
	job.target = target;
	ASSERT_TRUE(take_link_away(self));
	for (i = 0; i < NR_JOBS; i++) {
		self->rig.here.bytes[i * SHORT] = i;
		job.region_offset = i * SHORT;
		job.user_data = i;
		test_cmd_submit(1, self->rig.client, &job, 1);
	}
	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_EQ(0, reap_all(self->rig.client, status, NR_JOBS, LONG_MS));
	job = (struct kxfer_job) {
		.op = KXFER_OP_RECV, .region = self->rig.there_region, .target = -ret,
		.length = place,
	};
	for (i = 0; i < NR_JOBS; i++) {
		EXPECT_EQ(0, status[i]);
		job.region_offset = i * place;
		job.user_data = i;
		test_cmd_submit(1, self->rig.server, &job, 1);
	}
	test_cmd_reap(NR_JOBS, self->rig.server, done, NR_JOBS, NR_JOBS, LONG_MS);
	for (i = 0; i < NR_JOBS; i++)
		EXPECT_EQ(i, self->rig.there.bytes[i * place + sizeof(struct kxfer_message)]);
}

/* ---- keys ---- */

TEST_F(line, jobs_go_on_over_links_with_a_key)
{
	const char *const keys[] = { "line-key", NULL };
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = kx_addr(kx_address(), kx_own_port()),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = LONG_MS,
		.key = "line-key",
	};
	struct delay_counts counts = {};
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_READ, 0, 0);
	uint64_t listener;

	if (access("/proc/keys", F_OK))
		SKIP(return, "the kernel has no keyrings");
	ASSERT_EQ(0, kx_key_add("line-key", 7, 32));
	ASSERT_EQ(0, kx_listen_add_keys(self->rig.server, open.remote, keys, &listener));
	ASSERT_EQ(0, kx_call(self->rig.client, KXFER_PEER_OPEN, &open));
	test_cmd_target_open(self->rig.client, open.peer, self->rig.name, 0, &job.target);
	/* The passive end takes a second more, and is asked for. */
	ASSERT_EQ(0, delay_arm("FENCE_WAIT", 1, 1));
	ASSERT_EQ(0, delay_arm("EXPORT_WITHDRAW", 1000, 1));
	EXPECT_EQ(0, end_of_broken(self, &job));
	ASSERT_EQ(0, delay_counts("FENCE_WAIT", &counts));
	EXPECT_LE(1, counts.hits);
	kx_key_del("line-key");
}

/* ---- the device ---- */

/* The removal of a device waits for the users of mappings, and so not for jobs that wait. */
TEST_F(line, jobs_wait_for_the_device_to_come_back)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, KXFER_JOB_F_IDEMPOTENT, 0);
	uint64_t charged = kx_counter(self->fd, "live_charges");
	char netdev[32];
	uint32_t peer;
	int status[2];

	if (!baseline_netdev(kx_device(), netdev, sizeof(netdev)))
		SKIP(return, "needs a software RDMA device to remove");
	ASSERT_EQ(0, kx_listen_del(self->rig.server, self->rig.listener));
	memset(self->rig.here.bytes, 0x17, SHORT);
	break_next();
	test_cmd_submit(1, self->rig.client, &job, 1);
	ASSERT_TRUE(kx_wait_until(nr_kept(self) == 1, 20000));
	ASSERT_EQ(0, baseline_command("rdma link del %s", kx_device()));
	job.user_data = 1;
	test_cmd_submit(1, self->rig.client, &job, 1);
	kx_sleep_ms(DOWN_MS);
	EXPECT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", kx_device(),
				      kx_provider(), netdev));
	ASSERT_TRUE(kx_wait_until(!bring_link_back(self), LONG_MS));
	ASSERT_EQ(0, reap_all(self->rig.client, status, 2, LONG_MS));
	EXPECT_EQ(0, status[0]);
	EXPECT_EQ(0, status[1]);
	EXPECT_EQ(0x17, self->rig.there.bytes[SHORT - 1]);
	if (!charged)
		return;
	/* The line's work would charge the root cgroup. */
	EXPECT_EQ(0, kx_counter(self->fd, "live_charges"));
	test_cmd_peer_open(self->rig.client, kx_addr(kx_address(), KXFER_PORT), &peer);
	EXPECT_EQ(1, kx_counter(self->fd, "live_charges"));
}

/* ---- TARGET_INFO ---- */

static void *bring_back_later(void *arg)
{
	struct _test_data_line *self = arg;

	kx_sleep_ms(DOWN_MS);
	return (void *)(long)bring_link_back(self);
}

TEST_F(line, target_info_waits_for_a_link)
{
	struct kxfer_content content;
	pthread_t thread;
	void *ret;

	ASSERT_TRUE(take_link_away(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, bring_back_later, self));
	EXPECT_EQ(0, kx_target_info(self->rig.client, self->rig.target, 0, LONG_MS, &content));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	ASSERT_EQ(NULL, ret);
	/* The target is that of the new link: a job needs no other one. */
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, SHORT));
	EXPECT_EQ(0, nr_resumed(self));
}

TEST_F(line, target_info_waits_for_a_link_as_long_as_it_may)
{
	struct kxfer_content content;
	uint64_t begin;

	ASSERT_TRUE(take_link_away(self));
	begin = kx_now_ns();
	EXPECT_EQ(-ETIMEDOUT, kx_target_info(self->rig.client, self->rig.target, 0, BRIEF_MS,
					     &content));
	EXPECT_LE(kx_least_ns(BRIEF_MS), kx_now_ns() - begin);
	EXPECT_GT((BRIEF_MS + SLACK_MS) * 1000000ULL, kx_now_ns() - begin);
}

TEST_F(line, target_info_of_a_withdrawn_export_ends)
{
	struct kxfer_content content;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	ASSERT_EQ(0, bring_link_back(self));
	EXPECT_EQ(-EKEYREVOKED, kx_target_info(self->rig.client, self->rig.target, 0, LONG_MS,
					       &content));
}

/* ---- the story ---- */

static bool find_line(struct _test_data_line *self, struct kxfer_info_line *line)
{
	uint64_t cursor = 0;

	return kx_info(self->fd, KXFER_INFO_LINES, line, sizeof(*line), 1, &cursor) == 1;
}

/* Whether the line has told an event; the last one of its kind counts. */
static bool has_told(struct _test_data_line *self, uint32_t type, struct kxfer_line_event *event)
{
	struct kxfer_info_line line;
	bool told = false;
	int i;

	if (!find_line(self, &line))
		return false;
	for (i = 0; i < KXFER_LINE_EVENTS; i++) {
		if (line.events[i].type != type)
			continue;
		*event = line.events[i];
		told = true;
	}
	return told;
}

TEST_F(line, tells_its_story)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	struct kxfer_line_event event;
	struct kxfer_info_line line;
	int status[2];

	ASSERT_TRUE(find_line(self, &line));
	EXPECT_EQ(self->rig.peer, line.peer);
	EXPECT_EQ(self->rig.link, line.link);
	EXPECT_EQ(LONG_MS, line.loss_ms);
	EXPECT_EQ(0, line.flags);
	EXPECT_EQ(1, line.nr_events);
	EXPECT_EQ(KXFER_LINE_OPENED, line.events[0].type);
	EXPECT_EQ(self->rig.link, line.events[0].link);
	EXPECT_EQ(0, line.events[1].type);

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(1, self->rig.client, &job, 1);
	job.user_data = 1;
	test_cmd_submit(1, self->rig.client, &job, 1);
	ASSERT_TRUE(kx_wait_until(has_told(self, KXFER_LINE_TRIED, &event) && event.nr > 1,
				  LONG_MS));
	EXPECT_EQ(-ECONNREFUSED, event.error);
	ASSERT_TRUE(find_line(self, &line));
	EXPECT_EQ(KXFER_LINE_DOWN, line.flags);
	EXPECT_EQ(2, line.nr_waiting);
	ASSERT_TRUE(has_told(self, KXFER_LINE_BROKE, &event));
	EXPECT_EQ(self->rig.link, event.link);
	EXPECT_GT(0, event.error);
	EXPECT_EQ(1, event.nr);
	EXPECT_TRUE(has_told(self, KXFER_LINE_WAITED, &event));

	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_EQ(0, reap_all(self->rig.client, status, 2, LONG_MS));
	ASSERT_TRUE(kx_wait_until(has_told(self, KXFER_LINE_RESUMED, &event) && event.nr == 2,
				  SLACK_MS));
	ASSERT_TRUE(find_line(self, &line));
	EXPECT_EQ(0, line.nr_waiting);
	EXPECT_NE(self->rig.link, line.link);
	EXPECT_EQ(line.link, event.link);
	ASSERT_TRUE(has_told(self, KXFER_LINE_CONNECTED, &event));
	EXPECT_EQ(line.link, event.link);
	ASSERT_TRUE(has_told(self, KXFER_LINE_RENEWED, &event));
	EXPECT_EQ(line.link, event.link);
	EXPECT_EQ(1, event.nr);
	EXPECT_GT(kx_now_ns(), event.age_ns);
	ASSERT_TRUE(has_told(self, KXFER_LINE_BROKE, &event));
	EXPECT_EQ(1, event.nr);
}

TEST_F(line, tells_of_a_withdrawn_export)
{
	struct kxfer_job job = job_of(&self->rig, KXFER_OP_WRITE, 0, 0);
	struct kxfer_line_event event;
	int status;

	ASSERT_TRUE(take_link_away(self));
	test_cmd_submit(1, self->rig.client, &job, 1);
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	ASSERT_EQ(0, bring_link_back(self));
	ASSERT_EQ(0, reap_all(self->rig.client, &status, 1, LONG_MS));
	ASSERT_TRUE(has_told(self, KXFER_LINE_REVOKED, &event));
	EXPECT_EQ(-ENOENT, event.error);
	EXPECT_EQ(1, event.nr);
}

/* Whatever happens a line keeps its last events, in order, and no more. */
TEST_F_TIMEOUT(line, keeps_its_last_events, 180)
{
	struct kxfer_info_line line;
	int i;

	for (i = 0; i < KXFER_LINE_EVENTS; i++) {
		break_next();
		ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, SHORT));
	}
	ASSERT_TRUE(find_line(self, &line));
	EXPECT_LT(2 * KXFER_LINE_EVENTS, line.nr_events);
	for (i = 0; i < KXFER_LINE_EVENTS; i++) {
		EXPECT_NE(0, line.events[i].type);
		if (i)
			EXPECT_LE(line.events[i].age_ns, line.events[i - 1].age_ns);
	}
}

/* A peer that is closed has no line any more; sessions of other users never saw it. */
TEST_F(line, is_shown_to_its_user_as_long_as_it_is_there)
{
	struct kxfer_info_line line;
	uint64_t cursor = 0;

	ASSERT_EQ(0, kx_become_tester());
	EXPECT_EQ(0, kx_info(self->fd, KXFER_INFO_LINES, &line, sizeof(line), 1, &cursor));
	EXPECT_EQ(1, kx_info(self->rig.client, KXFER_INFO_LINES, &line, sizeof(line), 1, &cursor));
	EXPECT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	ASSERT_EQ(0, kx_peer_close(self->rig.client, self->rig.peer));
	cursor = 0;
	EXPECT_EQ(0, kx_info(self->rig.client, KXFER_INFO_LINES, &line, sizeof(line), 1, &cursor));
}

/* ---- many breaks ---- */

TEST_F_TIMEOUT(line, jobs_outlive_several_links, 120)
{
	const char *wrong;
	int i;

	rig_prepare(&self->rig, KXFER_OP_READ);
	for (i = 0; i < 6; i++) {
		fault_arm("LANE_POST_SEND", 1 + i % 3);
		wrong = rig_try(&self->rig, KXFER_OP_READ, 4096, 100, LENGTH - 8192);
		ASSERT_EQ(NULL, wrong) {
			TH_LOG("break %d: %s", i, wrong);
		}
	}
	fault_arm("LANE_POST_SEND", 0);
	EXPECT_LE(3, nr_kept(self));
}

FIXTURE(brief)
{
	struct _test_data_line line;
};

FIXTURE_SETUP(brief)
{
	struct rig_options options = { .length = LENGTH, .loss_ms = BRIEF_MS };

	self->line.rig.client = -1;
	self->line.rig.server = -1;
	self->line.fd = -1;
	if (!fault_available() || !module_available())
		SKIP(return, "needs root, debugfs and the module file");
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	self->line.fd = kx_open();
	ASSERT_LE(0, self->line.fd);
	ASSERT_EQ(0, rig_open(&self->line.rig, &options));
}

FIXTURE_TEARDOWN(brief)
{
	fault_reset();
	rig_close(&self->line.rig);
	close(self->line.fd);
}

TEST_F(brief, a_link_that_is_lost_for_too_long_ends_its_jobs)
{
	struct rig *rig = &self->line.rig;
	struct kxfer_job jobs[] = {
		job_of(rig, KXFER_OP_WRITE, 0, 0),
		job_of(rig, KXFER_OP_NOTIFY, 0, 1),
	};
	struct kxfer_line_event event;
	uint64_t begin;
	int status[2];

	ASSERT_TRUE(take_link_away(&self->line));
	begin = kx_now_ns();
	test_cmd_submit(2, rig->client, jobs, 2);
	ASSERT_EQ(0, reap_all(rig->client, status, 2, LONG_MS));
	EXPECT_LE(kx_least_ns(BRIEF_MS), kx_now_ns() - begin);
	EXPECT_GT((uint64_t)(BRIEF_MS + SLACK_MS) * 1000000, kx_now_ns() - begin);
	EXPECT_EQ(-ECONNRESET, status[0]);
	EXPECT_EQ(-ECONNRESET, status[1]);
	ASSERT_TRUE(has_told(&self->line, KXFER_LINE_LOST, &event));
	EXPECT_EQ(2, event.nr);
	/* A later job looks for a link again. */
	ASSERT_EQ(0, bring_link_back(&self->line));
	EXPECT_EQ(0, rig_move(rig, KXFER_OP_WRITE, 0, 0, SHORT));
}

TEST_F(brief, a_link_that_is_lost_for_too_long_ends_target_info)
{
	struct rig *rig = &self->line.rig;
	struct kxfer_content content;
	uint64_t begin;

	ASSERT_TRUE(take_link_away(&self->line));
	begin = kx_now_ns();
	EXPECT_EQ(-ECONNRESET, kx_target_info(rig->client, rig->target, 0, LONG_MS, &content));
	EXPECT_LE(kx_least_ns(BRIEF_MS), kx_now_ns() - begin);
	EXPECT_GT((uint64_t)(BRIEF_MS + SLACK_MS) * 1000000, kx_now_ns() - begin);
}

TEST_HARNESS_MAIN
