// SPDX-License-Identifier: GPL-2.0
/*
 * One user takes all of each resource: sessions, memory, regions, exports, peers, targets,
 * events, listeners. Other users work meanwhile, and nothing is left when it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "big/tenant.h"
#include "kselftest_harness.h"

#define PAGE	4096UL
#define TAKE_MS	60000

FIXTURE(session)
{
	struct stage stage;
	struct tenant tenant;
};

FIXTURE_SETUP(session)
{
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, stage_open(&self->stage));
}

FIXTURE_TEARDOWN(session)
{
	const char *left;

	tenant_end(&self->tenant);
	left = stage_close(&self->stage);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	/* The administrator can reload the module, which also resets its parameters. */
	EXPECT_EQ(0, stage_reload());
}

/* Number of objects that the greedy user got, and the errno of the first refusal. */
#define EXPECT_TAKEN(count, err) do {						\
	EXPECT_EQ(count, self->tenant.report.nr);				\
	EXPECT_EQ(err, self->tenant.report.error);				\
} while (0)

#define EXPECT_OTHERS_WORK() do {						\
	const char *wrong__ = stage_works(&self->stage);			\
										\
	EXPECT_EQ(NULL, wrong__) TH_LOG("%s", wrong__);				\
} while (0)

static void take_sessions(const struct rig *server, struct tenant_report *report)
{
	int fd;

	for (; (fd = kx_open()) >= 0; report->nr++)
		;
	report->error = -fd;
}

TEST_F_TIMEOUT(session, one_uid_has_1024_of_the_node, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_sessions, TAKE_MS));
	EXPECT_TAKEN(1024, EMFILE);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

TEST_F_TIMEOUT(session, share_is_the_administrators_to_set, 60)
{
	ASSERT_EQ(0, stage_limit("max_sessions_per_uid", 7));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_sessions, TAKE_MS));
	EXPECT_TAKEN(7, EMFILE);
	EXPECT_OTHERS_WORK();
}

/* Uses up RLIMIT_MEMLOCK with as many regions as one session may have. */
static void take_memory(const struct rig *server, struct tenant_report *report)
{
	uint8_t *memory = kx_alloc(64 * PAGE);
	int fd = kx_open(), ret;
	uint32_t id;

	while (!(ret = kx_region_add(fd, memory, 64 * PAGE, 0, &id)))
		report->nr++;
	report->error = -ret;
	/* Another session with the same memory has the same limit. */
	report->more_error = -kx_region_add(kx_open(), memory, 64 * PAGE, 0, &id);
}

TEST_F_TIMEOUT(session, memory_is_bounded_by_memlock, 60)
{
	struct rlimit limit = { 2048 * PAGE, 2048 * PAGE };

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_memory, TAKE_MS));
	EXPECT_TAKEN(2048 / 64, ENOMEM);
	EXPECT_EQ(ENOMEM, self->tenant.report.more_error);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

static void take_regions(const struct rig *server, struct tenant_report *report)
{
	uint8_t *page = kx_alloc(PAGE);
	int fd = kx_open(), ret;
	uint32_t id;

	while (!(ret = kx_region_add(fd, page, PAGE, 0, &id)))
		report->nr++;
	report->error = -ret;
}

TEST_F_TIMEOUT(session, regions_are_bounded, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_regions, TAKE_MS));
	EXPECT_TAKEN(1024, EDQUOT);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* Exports of a page in one session after the other; @more counts in the first session only. */
static void take_exports(const struct rig *server, struct tenant_report *report)
{
	uint8_t *page = kx_alloc(PAGE);
	uint32_t region, id;
	char name[32];
	int fd, ret;

	do {
		fd = kx_open();
		ret = kx_region_add(fd, page, PAGE, 0, &region);
		while (!ret) {
			snprintf(name, sizeof(name), "greedy-%u", report->nr);
			ret = kx_export_add(fd, region, 0, PAGE, KXFER_RIGHT_READ, name,
					    &id);
			if (!ret)
				report->nr++;
		}
		if (!report->more)
			report->more = report->nr;
	} while (report->nr % 1024 == 0 && report->nr < 4096);
	fd = kx_open();
	ret = kx_region_add(fd, page, PAGE, 0, &region) ?:
	      kx_export_add(fd, region, 0, PAGE, KXFER_RIGHT_READ, "one-more", &id);
	report->error = -ret;
}

TEST_F_TIMEOUT(session, exports_are_bounded, 90)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_exports, TAKE_MS));
	EXPECT_TAKEN(4096, EDQUOT);
	EXPECT_EQ(1024, self->tenant.report.more);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

#define OTHERS		32		/* sessions, each with the most exports that it may have */
#define OTHERS_EXPORTS	1024
#define NR_TIMED	15

static void add_exports(struct __test_metadata *_metadata, int fd)
{
	uint8_t *page = kx_alloc(PAGE);
	char name[KXFER_NAME_MAX + 1];
	uint32_t region, id, i;

	ASSERT_NE(NULL, page);
	test_cmd_region_add(fd, page, PAGE, 0, &region);
	for (i = 0; i < OTHERS_EXPORTS; i++) {
		snprintf(name, sizeof(name), "other-%d-%u", fd, i);
		test_cmd_export_add(fd, region, 0, PAGE, KXFER_RIGHT_READ, name, &id);
	}
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Median time to add an export, which includes the lookup of its name. */
static uint64_t time_of_add(struct __test_metadata *_metadata, int fd, uint32_t region)
{
	uint64_t took[NR_TIMED];
	uint32_t i, id;

	for (i = 0; i < NR_TIMED; i++) {
		took[i] = kx_now_ns();
		test_cmd_export_add(fd, region, 0, PAGE, KXFER_RIGHT_READ, "timed", &id);
		took[i] = kx_now_ns() - took[i];
		ASSERT_EQ(0, kx_export_del(fd, id));
	}
	qsort(took, NR_TIMED, sizeof(took[0]), by_time);
	return took[NR_TIMED / 2];
}

/* A GRANT of a peer looks its export up in the same way. */
TEST_F_TIMEOUT(session, exports_of_others_delay_nobody, 90)
{
	int fd = kx_open(), others[OTHERS], i;
	uint8_t *page = kx_alloc(PAGE);
	uint64_t alone, beside;
	uint32_t region;

	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, page);
	ASSERT_EQ(0, stage_limit("max_exports_per_uid", (OTHERS + 1) * OTHERS_EXPORTS));
	test_cmd_region_add(fd, page, PAGE, 0, &region);
	alone = time_of_add(_metadata, fd, region);
	for (i = 0; i < OTHERS; i++) {
		others[i] = kx_open();
		ASSERT_LE(0, others[i]);
		add_exports(_metadata, others[i]);
	}
	beside = time_of_add(_metadata, fd, region);
	printf("# %llu ns alone, %llu ns beside %u others\n", (unsigned long long)alone,
	       (unsigned long long)beside, OTHERS * OTHERS_EXPORTS);
	EXPECT_GT(5 * alone, beside);
	for (i = 0; i < OTHERS; i++)
		close(others[i]);
	close(fd);
}

static void take_peers(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), ret;
	uint32_t peer;

	while (!(ret = kx_peer_open(fd, kx_addr(kx_address(), 0), &peer)))
		report->nr++;
	report->error = -ret;
}

TEST_F_TIMEOUT(session, peers_are_bounded, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_peers, TAKE_MS));
	EXPECT_TAKEN(256, EDQUOT);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* Two sessions, so that the limit of a session is not the one that is reached. */
static void take_targets(const struct rig *server, struct tenant_report *report)
{
	uint32_t peer, target;
	int i, fd, ret;

	for (i = 0; i < 2; i++) {
		fd = kx_open();
		ret = kx_peer_open(fd, kx_addr(kx_address(), 0), &peer);
		while (!ret && report->nr < 100u * (i + 1) + 100 * i) {
			ret = kx_target_open(fd, peer, server->name, 0, &target);
			if (!ret)
				report->nr++;
		}
	}
	report->error = -ret;
}

TEST_F_TIMEOUT(session, targets_are_bounded, 60)
{
	ASSERT_EQ(0, stage_limit("max_targets_per_uid", 256));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_targets, TAKE_MS));
	EXPECT_TAKEN(256, EDQUOT);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

/* An exporter that sends events to itself, and does not reap them. */
static void take_events(const struct rig *server, struct tenant_report *report)
{
	uint8_t *page = kx_alloc(PAGE);
	uint32_t region, id, peer, target;
	int fd = kx_open(), ret;

	ret = kx_region_add(fd, page, PAGE, KXFER_REGION_F_WRITE, &region) ?:
	      kx_export_add(fd, region, 0, PAGE, KXFER_RIGHT_ALL, "greedy", &id) ?:
	      kx_peer_open(fd, kx_addr(kx_address(), 0), &peer) ?:
	      kx_target_open(fd, peer, "greedy", 0, &target);
	while (!ret) {
		ret = kx_notify(fd, target, report->nr);
		if (!ret)
			report->nr++;
	}
	report->error = -ret;
}

TEST_F_TIMEOUT(session, events_are_bounded, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_events, TAKE_MS));
	EXPECT_TAKEN(256, EAGAIN);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

static void take_listeners(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), ret;
	uint64_t id;

	while (!(ret = kx_listen_add(fd, kx_addr(kx_address(), 9000 + report->nr), 0, &id)))
		report->nr++;
	report->error = -ret;
}

TEST_F_TIMEOUT(session, listeners_are_the_administrators, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_listeners, TAKE_MS));
	EXPECT_TAKEN(0, EPERM);
}

/* A runaway program of an administrator takes the listeners; another administrator deletes them. */
TEST_F_TIMEOUT(session, listeners_are_bounded, 60)
{
	struct kxfer_info_listener listeners[64];
	uint64_t cursor = 0, id;
	int nr;

	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
				  take_listeners, TAKE_MS));
	EXPECT_TAKEN(64 - 1, EDQUOT);
	EXPECT_OTHERS_WORK();
	nr = kx_info(self->stage.fd, KXFER_INFO_LISTENERS, listeners, sizeof(*listeners),
		     64, &cursor);
	ASSERT_EQ(64, nr);
	test_cmd_listen_del(self->stage.fd, listeners[nr - 1].id);
	test_cmd_listen_add(self->stage.fd, kx_addr(kx_address(), 8999), 0, &id);
	test_cmd_listen_del(self->stage.fd, id);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

TEST_HARNESS_MAIN
