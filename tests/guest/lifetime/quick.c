// SPDX-License-Identifier: GPL-2.0
/*
 * Short jobs that are posted when they are accepted, and do not end: who sees them, and what ends
 * them.
 *
 * Method: the peer's data lanes post no RECV, and its device answers a NOTIFY "receiver not ready"
 * for ever. The jobs behind it in the send queue wait for it, though they are posted. The first of
 * them makes the mapping that the others find. Another session has a mapping already, from a READ
 * before the NOTIFY: all its jobs are quick.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/fault.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define BYTES		4096
#define NR_JOBS		16
#define FIRST		100	/* user_data of the first job behind the NOTIFY */
#define LATE_MS		5000
#define JOBS_FILE	"/sys/kernel/debug/kxfer/jobs"
#define CLOSE_MS	(20000 * kx_slowness())	/* 10 s, and the endings; stuck links take 30 s */

struct user {
	int fd;
	uint32_t region;
	uint32_t target;
};

FIXTURE(quick)
{
	struct raw_server server;
	struct user user;
	struct user other;
	uint8_t *memory;
};

static int join(struct user *user, uint16_t port, void *memory)
{
	uint32_t peer;

	user->fd = kx_open();
	if (user->fd < 0)
		return user->fd;
	return kx_region_add(user->fd, memory, BYTES, KXFER_REGION_F_WRITE, &user->region) ?:
	       kx_peer_open(user->fd, kx_addr(kx_address(), port), &peer) ?:
	       kx_target_open(user->fd, peer, "memory", KXFER_RIGHT_ALL, &user->target);
}

static int submit(const struct user *user, uint32_t nr)
{
	struct kxfer_job jobs[NR_JOBS];
	uint32_t i;
	int ret;

	for (i = 0; i < nr; i++)
		jobs[i] = (struct kxfer_job) {
			.op = i % 2 ? KXFER_OP_WRITE : KXFER_OP_READ,
			.target = user->target,
			.region = user->region,
			.region_offset = 64 * i,
			.length = 64,
			.user_data = FIRST + i,
		};
	ret = kx_submit(user->fd, jobs, 1);
	return ret == 1 && nr > 1 ? ret + kx_submit(user->fd, &jobs[1], nr - 1) : ret;
}

FIXTURE_SETUP(quick)
{
	uint16_t port = kx_own_port() + 1;
	struct kxfer_job notify = { .op = KXFER_OP_NOTIFY };
	struct kxfer_completion done;

	self->user.fd = -1;
	self->other.fd = -1;
	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "iWARP does not wait for a receiver");
	self->memory = kx_alloc(BYTES);
	raw_server_init(&self->server);
	self->server.no_data_receives = true;
	ASSERT_EQ(0, raw_server_start(&self->server, port));
	ASSERT_EQ(0, join(&self->other, port, self->memory));
	ASSERT_EQ(1, submit(&self->other, 1));
	test_cmd_reap(1, self->other.fd, &done, 1, 1, KX_TIMEOUT_MS);
	ASSERT_EQ(0, join(&self->user, port, self->memory));
	notify.target = self->user.target;
	test_cmd_submit(1, self->user.fd, &notify, 1);
	ASSERT_EQ(NR_JOBS, submit(&self->user, NR_JOBS));
}

FIXTURE_TEARDOWN(quick)
{
	if (self->user.fd >= 0)
		close(self->user.fd);
	if (self->other.fd >= 0)
		close(self->other.fd);
	raw_server_stop(&self->server);
}

TEST_F(quick, jobs_are_known_to_CANCEL_and_not_cancelled)
{
	test_cmd_cancel(0, self->user.fd, FIRST, 0);
	test_cmd_cancel(0, self->user.fd, FIRST + NR_JOBS - 1, 0);
	test_err_cancel(ENOENT, self->user.fd, FIRST + NR_JOBS, 0);
	test_cmd_cancel(0, self->user.fd, 0, KXFER_CANCEL_F_ALL);
}

TEST_F(quick, jobs_of_one_session_are_not_those_of_another)
{
	test_err_cancel(ENOENT, self->other.fd, FIRST, 0);
	ASSERT_EQ(2, submit(&self->other, 2));
	test_cmd_cancel(0, self->other.fd, FIRST + 1, 0);
	test_err_cancel(ENOENT, self->other.fd, FIRST + 2, 0);
}

TEST_F(quick, jobs_keep_their_objects)
{
	EXPECT_EQ(-EBUSY, kx_target_close(self->user.fd, self->user.target));
	EXPECT_EQ(-EBUSY, kx_region_del(self->user.fd, self->user.region));
}

TEST_F(quick, jobs_let_a_reap_end_at_its_deadline)
{
	struct kxfer_completion done;

	test_err_reap(ETIMEDOUT, self->user.fd, &done, 1, 1, 100);
}

/* To destroy a QP may take long (kmod/link/lane.c). Here the teardown waits before it does so. */
TEST_F(quick, jobs_end_before_their_QP_is_destroyed)
{
	struct kxfer_completion done[NR_JOBS + 1];
	struct delay_counts counts = {};

	if (!fault_available())
		SKIP(return, "the module was built without faults");
	ASSERT_EQ(0, delay_arm("LINK_ENDED", LATE_MS, 1));
	raw_server_stop(&self->server);
	test_cmd_reap(NR_JOBS + 1, self->user.fd, done, NR_JOBS + 1, NR_JOBS + 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, delay_counts("LINK_ENDED", &counts));
	EXPECT_EQ(1, counts.now);
	EXPECT_EQ(0, close(self->user.fd));
	self->user.fd = -1;
	EXPECT_EQ(0, delay_counts("LINK_ENDED", &counts));
	EXPECT_EQ(1, counts.now);
	delay_arm("LINK_ENDED", 0, 0);
}

/* Return: lines of the file about posted jobs with user_data from FIRST on; -1: no such file. */
static int shown(void)
{
	FILE *file = fopen(JOBS_FILE, "re");
	unsigned int user_data;
	char line[256];
	int nr = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, " 0x");

		nr += strstr(line, " posted ") && at && sscanf(at, " 0x%x", &user_data) == 1 &&
		      user_data >= FIRST && user_data < FIRST + NR_JOBS;
	}
	fclose(file);
	return nr;
}

TEST_F(quick, jobs_are_shown)
{
	if (access(JOBS_FILE, R_OK))
		SKIP(return, "needs root and debugfs");
	EXPECT_EQ(NR_JOBS, shown());
}

TEST_F_TIMEOUT(quick, jobs_end_once_each_with_their_link, 60)
{
	struct kxfer_completion done[NR_JOBS + 2];
	uint32_t seen = 0;
	int i;

	raw_server_stop(&self->server);
	test_cmd_reap(NR_JOBS + 1, self->user.fd, done, NR_JOBS + 2, NR_JOBS + 1, KX_TIMEOUT_MS);
	for (i = 0; i < NR_JOBS + 1; i++) {
		EXPECT_EQ(-ECONNRESET, done[i].status);
		EXPECT_EQ(0, done[i].bytes);
		if (done[i].user_data >= FIRST)
			seen |= 1U << (done[i].user_data - FIRST);
	}
	EXPECT_EQ((1U << NR_JOBS) - 1, seen);
	EXPECT_EQ(0, kx_target_close(self->user.fd, self->user.target));
	EXPECT_EQ(0, kx_region_del(self->user.fd, self->user.region));
}

/* They are all that the session has in flight, so nothing else makes it give up the link. */
TEST_F_TIMEOUT(quick, jobs_end_with_their_session, 90)
{
	uint64_t before;

	ASSERT_EQ(2, submit(&self->other, 2));
	before = kx_now_ns();
	close(self->other.fd);
	self->other.fd = -1;
	EXPECT_GT(CLOSE_MS, (kx_now_ns() - before) / 1000000);
	/* Those of the other session were on that link, too. */
	EXPECT_TRUE(kx_wait_until(!kx_counter(self->user.fd, "live_jobs"), KX_TIMEOUT_MS));
}

TEST_HARNESS_MAIN
