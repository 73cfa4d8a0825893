// SPDX-License-Identifier: GPL-2.0
/*
 * Lines look for new links in works of the kernel, which may do all. They take no more for a user
 * than its calls could, and one user's works are not many at a time.
 *
 * Method: a user opens the node twice over one link; one of the two has another address as well,
 * and would make a second link. A work request that cannot be posted breaks the first. The user may
 * not arrange for that: a child of root does when it is asked.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/tenant.h"
#include "harness/fault.h"
#include "kselftest_harness.h"

#define TAKE_MS		60000
#define LOSS_MS		4000	/* until a job without a link ends */
#define SETTLE_MS	10000	/* until a link that broke is gone */
#define BREAKS_MS	30000
#define LENGTH		64
#define TOS		100	/* so that no other session has the link */

/* From the tenant to the child that breaks its link, and back. */
static int asked[2], done[2];

FIXTURE(lines)
{
	struct stage stage;
	struct tenant tenant;
	pid_t breaker;
};

/* Breaks a link whenever it is asked; ends when nobody can ask any more. */
static pid_t start_breaker(void)
{
	pid_t pid;
	char c;

	if (pipe(asked) || pipe(done))
		return -1;
	pid = fork();
	if (pid) {
		close(asked[0]);
		close(done[1]);
		return pid;
	}
	close(asked[1]);
	close(done[0]);
	while (read(asked[0], &c, 1) == 1) {
		fault_arm("LANE_POST_SEND", 1);
		if (write(done[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

FIXTURE_SETUP(lines)
{
	uint64_t listener;

	if (geteuid() || !fault_available())
		SKIP(return, "needs root and debugfs");
	ASSERT_EQ(0, stage_reload());
	ASSERT_EQ(0, stage_open(&self->stage));
	test_cmd_listen_add(self->stage.fd, kx_addr(kx_address6(), 0), 0, &listener);
	self->breaker = start_breaker();
	ASSERT_LT(0, self->breaker);
}

FIXTURE_TEARDOWN(lines)
{
	tenant_end(&self->tenant);
	close(asked[1]);
	close(done[0]);
	waitpid(self->breaker, NULL, 0);
	fault_reset();
	rig_close(&self->stage.rig);
	close(self->stage.fd);
	EXPECT_EQ(0, stage_reload());
}

static void arrange_for_break(void)
{
	char c = 0;

	if (write(asked[1], &c, 1) != 1 || read(done[0], &c, 1) != 1)
		_exit(1);
}

/* @via: another address of the node, or NULL. Return: 0 or -errno */
static int open_line(int fd, const struct rig *server, const char *via, uint32_t *target)
{
	struct kxfer_path path = {};
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), 0),
		.flags = KXFER_PEER_F_TOS,
		.tos = TOS,
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = LOSS_MS,
	};
	int ret;

	if (via) {
		path.remote = kx_addr(via, 0);
		cmd.via = (uintptr_t)&path;
		cmd.nr_via = 1;
	}
	ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);
	return ret ?: kx_target_open(fd, cmd.peer, server->name, KXFER_RIGHT_READ, target);
}

static struct kxfer_job read_job(uint32_t region, uint32_t target)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_READ,
		.region = region,
		.target = target,
		.length = LENGTH,
	};
}

/* Two lines whose link breaks. @more: jobs that went on. */
static void lose_link(const struct rig *server, struct tenant_report *report)
{
	struct kxfer_completion completions[2] = {};
	struct kxfer_job jobs[2];
	uint32_t region, i;
	int fd = kx_open();

	report->error = -kx_region_add(fd, kx_alloc(4096), 4096, KXFER_REGION_F_WRITE, &region);
	for (i = 0; !report->error && i < 2; i++) {
		jobs[i] = read_job(region, 0);
		report->error = -open_line(fd, server, i ? kx_address6() : NULL, &jobs[i].target);
	}
	if (report->error)
		return;
	arrange_for_break();
	report->nr = kx_submit(fd, jobs, 2);
	kx_reap(fd, completions, 2, 2, BREAKS_MS);
	for (i = 0; i < 2; i++)
		if (!completions[i].status)
			report->more++;
}

/* Links that work and are the tenant's; one that broke stays while a line has its targets there. */
static uint32_t nr_links(struct _test_data_lines *self)
{
	struct kxfer_info_link links[16];
	uint32_t found = 0;
	uint64_t cursor = 0;
	int i, nr;

	nr = kx_info(self->stage.fd, KXFER_INFO_LINKS, links, sizeof(links[0]), 16, &cursor);
	for (i = 0; i < nr; i++)
		if (links[i].flags & KXFER_LINK_INITIATOR && links[i].state == KXFER_LINK_LIVE &&
		    links[i].tos == TOS)
			found++;
	return found;
}

/* The other path needs a second link; or one over it comes first, and the first line has none. */
TEST_F_TIMEOUT(lines, make_no_more_links_than_calls, 120)
{
	int i;

	ASSERT_EQ(0, stage_limit("max_links_per_uid", 1));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL, lose_link,
				  TAKE_MS));
	ASSERT_EQ(0, self->tenant.report.error);
	EXPECT_EQ(2, self->tenant.report.nr);
	EXPECT_LE(1, self->tenant.report.more);
	EXPECT_TRUE(kx_wait_until(nr_links(self) == 1, SETTLE_MS));
	for (i = 0; i < 20; i++) {
		EXPECT_GE(1, nr_links(self));
		kx_sleep_ms(100);
	}
}

TEST_F_TIMEOUT(lines, may_make_two_links_where_calls_may, 120)
{
	ASSERT_EQ(0, stage_limit("max_links_per_uid", 2));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL, lose_link,
				  TAKE_MS));
	ASSERT_EQ(0, self->tenant.report.error);
	EXPECT_EQ(2, self->tenant.report.more);
	/* The second link may be gone: its line goes back to its first path after some time. */
	EXPECT_LE(1, kx_counter(self->stage.fd, "paths_changed"));
}

/* With no work at a time there is no turn, and jobs wait until they are lost. */
TEST_F_TIMEOUT(lines, of_a_user_take_turns, 120)
{
	ASSERT_EQ(0, stage_limit("max_reconnects_per_uid", 0));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL, lose_link,
				  TAKE_MS));
	ASSERT_EQ(0, self->tenant.report.error);
	EXPECT_EQ(2, self->tenant.report.nr);
	EXPECT_EQ(0, self->tenant.report.more);
}

/* The same share binds nobody with CAP_SYS_RESOURCE. */
TEST_F_TIMEOUT(lines, of_root_do_not, 120)
{
	ASSERT_EQ(0, stage_limit("max_reconnects_per_uid", 0));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL, lose_link, TAKE_MS));
	ASSERT_EQ(0, self->tenant.report.error);
	EXPECT_EQ(2, self->tenant.report.more);
}

TEST_HARNESS_MAIN
