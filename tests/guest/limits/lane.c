// SPDX-License-Identifier: GPL-2.0
/*
 * One user takes all of a link that all users share: the lane with long jobs, its slots, the
 * control messages, the works. Other users get their turn meanwhile.
 */
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "big/tenant.h"
#include "kselftest_harness.h"

#define PAGE	4096UL
#define TAKE_MS	60000
#define BATCH	256

FIXTURE(lane)
{
	struct stage stage;
	struct tenant tenant;
};

FIXTURE_SETUP(lane)
{
	struct rlimit limit = { 64 << 20, 64 << 20 };

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, stage_open(&self->stage));
}

FIXTURE_TEARDOWN(lane)
{
	const char *left;

	tenant_end(&self->tenant);
	left = stage_close(&self->stage);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	EXPECT_EQ(0, stage_reload());
}

#define EXPECT_OTHERS_WORK() do {						\
	const char *wrong__ = stage_works(&self->stage);			\
										\
	EXPECT_EQ(NULL, wrong__) TH_LOG("%s", wrong__);				\
} while (0)

static int open_client(struct rig *rig, const struct rig *server)
{
	*rig = *server;
	rig->client = -1;
	return rig_open_client(rig);
}

static int submit_all(struct rig *rig, uint32_t op, uint64_t length, uint32_t *nr)
{
	struct kxfer_job jobs[BATCH];
	int i, ret;

	for (i = 0; i < BATCH; i++)
		jobs[i] = rig_job(rig, op, 0, 0, length);
	while ((ret = kx_submit(rig->client, jobs, BATCH)) > 0)
		*nr += ret;
	return -ret;
}

/* 4096 jobs of 4 MiB: a minute and more of work for the lane. */
static void take_lane(const struct rig *server, struct tenant_report *report)
{
	struct rig rig;

	report->error = -open_client(&rig, server);
	if (!report->error)
		report->error = submit_all(&rig, KXFER_OP_WRITE, STAGE_LENGTH / 2,
					   &report->nr);
}

/* On all lanes of the node, which may have some of earlier tests that idle. */
static uint32_t queued(int fd)
{
	struct kxfer_info_lane lanes[64];
	uint64_t cursor = 0;
	uint32_t nr = 0;
	int i, n;

	do {
		n = kx_info(fd, KXFER_INFO_LANES, lanes, sizeof(*lanes), 64, &cursor);
		for (i = 0; i < n; i++)
			nr += lanes[i].nr_queued;
	} while (n > 0);
	return nr;
}

TEST_F_TIMEOUT(lane, one_session_does_not_have_it_to_itself, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_lane, TAKE_MS));
	EXPECT_EQ(4096, self->tenant.report.nr);
	EXPECT_EQ(EAGAIN, self->tenant.report.error);
	EXPECT_OTHERS_WORK();
	/* Most of these jobs are still queued, so the others did not wait for them. */
	EXPECT_LT(1000, queued(self->stage.fd));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

TEST_F_TIMEOUT(lane, device_goes_while_it_is_full, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_lane, TAKE_MS));
	EXPECT_LT(1000, queued(self->stage.fd));
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* Completions that are never reaped, in as many sessions as needed. */
static void take_jobs(const struct rig *server, struct tenant_report *report)
{
	struct kxfer_job jobs[BATCH] = {};
	int fd, ret;

	do {
		fd = kx_open();
		if (fd < 0)
			break;
		while ((ret = kx_submit(fd, jobs, BATCH)) > 0)
			report->nr += ret;
		if (!report->more)
			report->more = report->nr;
	} while (ret == -EAGAIN);
	report->error = fd < 0 ? -fd : -ret;
}

TEST_F_TIMEOUT(lane, completions_not_taken_are_bounded, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_jobs, TAKE_MS));
	EXPECT_EQ(32768, self->tenant.report.nr);
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	EXPECT_EQ(4096, self->tenant.report.more);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* Jobs queued after long ones, each with a different deadline far away. */
static void take_deadlines(const struct rig *server, struct tenant_report *report)
{
	struct kxfer_job jobs[BATCH];
	struct rig rig;
	int i, ret;

	report->error = -open_client(&rig, server);
	if (report->error)
		return;
	do {
		for (i = 0; i < BATCH; i++) {
			jobs[i] = rig_job(&rig, KXFER_OP_WRITE, 0, 0, STAGE_LENGTH / 2);
			jobs[i].deadline_ns = kx_deadline_ns(2000 + 2 * report->nr + 2 * i);
		}
		ret = kx_submit(rig.client, jobs, BATCH);
		report->nr += ret > 0 ? ret : 0;
	} while (ret > 0);
	report->error = -ret;
}

TEST_F_TIMEOUT(lane, deadlines_cost_nobody_else_his_turn, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_deadlines, TAKE_MS));
	EXPECT_EQ(EAGAIN, self->tenant.report.error);
	/* Now deadlines pass, one every two milliseconds. */
	kx_sleep_ms(2000);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

struct caller {
	const struct rig *server;
	int fd;
	uint32_t peer;
	uint32_t target;
	volatile uint32_t calls;
};

static void *ask_for_ever(void *context)
{
	struct kxfer_peer_export exports[16];
	struct caller *caller = context;
	uint64_t cursor;

	for (;;) {
		cursor = 0;
		if (kx_target_info(caller->fd, caller->target, 0, KX_TIMEOUT_MS, NULL) ||
		    kx_peer_list(caller->fd, caller->peer, exports, 16, &cursor) < 0)
			return NULL;
		caller->calls += 2;
	}
}

/* 32 threads that send requests without a pause, and share seven slots. */
static void take_messages(const struct rig *server, struct tenant_report *report)
{
	static struct caller callers[32];
	pthread_t thread;
	uint32_t i;

	for (i = 0; i < 32; i++) {
		struct caller *c = &callers[i];

		c->fd = kx_open();
		if (kx_peer_open(c->fd, kx_addr(kx_address(), 0), &c->peer) ||
		    kx_target_open(c->fd, c->peer, server->name, 0, &c->target) ||
		    pthread_create(&thread, NULL, ask_for_ever, c))
			return;
		report->nr++;
	}
	for (i = 0; i < 32; i++)
		kx_wait_until(callers[i].calls > 2, 1000);
}

TEST_F_TIMEOUT(lane, control_messages_are_for_all, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_messages, TAKE_MS));
	EXPECT_EQ(32, self->tenant.report.nr);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* Makes an export, opens it and withdraws it under a job, for ever. */
static void *withdraw_for_ever(void *context)
{
	struct caller *caller = context;
	uint8_t *memory = kx_alloc(256 * PAGE);
	uint32_t region, id, target;
	struct kxfer_job job = { .op = KXFER_OP_READ, .length = 256 * PAGE };
	struct kxfer_completion done[16];
	char name[32];

	snprintf(name, sizeof(name), "greedy-%d", caller->fd);
	if (kx_region_add(caller->fd, memory, 256 * PAGE, KXFER_REGION_F_WRITE, &region))
		return NULL;
	for (;; caller->calls++) {
		if (kx_export_add(caller->fd, region, 0, 256 * PAGE, KXFER_RIGHT_ALL, name, &id))
			return NULL;
		if (!kx_target_open(caller->fd, caller->peer, name, 0, &target)) {
			job.region = region;
			job.target = target;
			kx_submit(caller->fd, &job, 1);
		}
		kx_export_del(caller->fd, id);
		kx_reap(caller->fd, done, 16, 1, 1000);
		kx_target_close(caller->fd, target);
	}
}

static void take_works(const struct rig *server, struct tenant_report *report)
{
	static struct caller callers[16];
	pthread_t thread;
	uint32_t i;

	for (i = 0; i < 16; i++) {
		struct caller *c = &callers[i];

		c->fd = kx_open();
		if (kx_peer_open(c->fd, kx_addr(kx_address(), 0), &c->peer) ||
		    pthread_create(&thread, NULL, withdraw_for_ever, c))
			return;
		report->nr++;
	}
	for (i = 0; i < 16; i++)
		kx_wait_until(callers[i].calls, 1000);
}

TEST_F_TIMEOUT(lane, works_are_for_all, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_works, TAKE_MS));
	EXPECT_EQ(16, self->tenant.report.nr);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

TEST_HARNESS_MAIN
