// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that end, fork or exec at any time: all their objects end with the last reference
 * to the file, and no other process is disturbed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/load.h"
#include "rigs/rig.h"

#define MIB	(1024u * 1024)
#define LENGTH	MIB

FIXTURE(process)
{
	struct rig rig;
	struct baseline fresh;
	struct baseline served;
	int fd;
};

FIXTURE_SETUP(process)
{
	struct rig_options options = { .length = LENGTH, .here = BUFFER_SCATTERED };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->fresh));
	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	/* The server's region is mapped for the device with its first client. */
	ASSERT_EQ(0, rig_open_client(&self->rig));
	close(self->rig.client);
	self->rig.client = -1;
	buffer_free(&self->rig.here);
	ASSERT_EQ(0, baseline_take(self->fd, &self->served));
}

static void expect_baseline(struct __test_metadata *_metadata, int fd,
			    const struct baseline *baseline)
{
	const char *left = baseline_wait(fd, baseline, BASELINE_WAIT_MS);

	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
}

FIXTURE_TEARDOWN(process)
{
	rig_close(&self->rig);
	expect_baseline(_metadata, self->fd, &self->fresh);
	close(self->fd);
}

/* A client in this process still works. */
static void server_serves(struct __test_metadata *_metadata, struct rig *rig)
{
	const char *wrong;

	ASSERT_EQ(0, rig_open_client(rig));
	rig_prepare(rig, KXFER_OP_WRITE);
	wrong = rig_try(rig, KXFER_OP_WRITE, 1, 2, 100000);
	if (wrong)
		TH_LOG("%s", wrong);
	EXPECT_EQ(NULL, wrong);
}

TEST_F_TIMEOUT(process, killed_with_jobs_in_flight, 60)
{
	struct load load;

	ASSERT_EQ(0, load_start(&load, &self->rig, 0, 256, 65536));
	EXPECT_EQ(-SIGKILL, load_end(&load, SIGKILL));
	expect_baseline(_metadata, self->fd, &self->served);
	server_serves(_metadata, &self->rig);
}

TEST_F_TIMEOUT(process, five_killed_at_random_moments, 60)
{
	struct load loads[5];
	int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 5; i++)
			ASSERT_EQ(0, load_start(&loads[i], &self->rig, i, 64, 16384 << (i % 3)));
		for (i = 0; i < 5; i++) {
			kx_sleep_ms(rand() % 50);
			EXPECT_EQ(-SIGKILL, load_end(&loads[i], SIGKILL));
		}
		expect_baseline(_metadata, self->fd, &self->served);
	}
	server_serves(_metadata, &self->rig);
}

TEST_F_TIMEOUT(process, killed_beside_one_that_goes_on, 60)
{
	struct load victim, other;
	int i;

	ASSERT_EQ(0, load_start(&other, &self->rig, 1, 16, 65536));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, load_start(&victim, &self->rig, 0, 256, 32768));
		EXPECT_EQ(-SIGKILL, load_end(&victim, SIGKILL));
	}
	/* The load checks its data, and would have ended by itself after an error. */
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, load_wait_round(&other, RIG_WAIT_MS));
	EXPECT_EQ(-SIGKILL, load_end(&other, SIGKILL));
}

TEST_F(process, exit_without_close)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct rig rig = self->rig;

		_exit(rig_open_client(&rig) ||
		      rig_move(&rig, KXFER_OP_READ, 0, 0, LENGTH) ? 1 : 0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	expect_baseline(_metadata, self->fd, &self->served);
}

TEST_F(process, close_is_the_childs_own)
{
	int status;
	pid_t child;

	ASSERT_EQ(0, rig_open_client(&self->rig));
	child = fork();
	if (!child) {
		close(self->rig.client);
		close(self->rig.server);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, LENGTH));
}

TEST_F(process, child_uses_the_parents_session)
{
	struct pattern pattern = { .seed = 0x801, .generation = 1 };
	int status;
	pid_t child;

	ASSERT_EQ(0, rig_open_client(&self->rig));
	pattern_fill(self->rig.here.bytes, LENGTH, &pattern);
	child = fork();
	if (!child) {
		/* The region is the parent's memory, whatever the child does to its own. */
		memset(self->rig.here.bytes, 0x55, LENGTH);
		_exit(rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH) ? 1 : 0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, LENGTH, &pattern, NULL,
					      NULL));
}

TEST_F_TIMEOUT(process, session_lives_while_a_child_has_it, 60)
{
	int go[2], status;
	pid_t child;
	char byte;

	ASSERT_EQ(0, rig_open_client(&self->rig));
	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(2);
		_exit(rig_move(&self->rig, KXFER_OP_READ, 0, 0, LENGTH) ? 1 : 0);
	}
	/*
	 * The child keeps both sessions open, so the region's pages stay although they are
	 * unmapped here.
	 */
	close(self->rig.client);
	close(self->rig.server);
	self->rig.client = -1;
	self->rig.server = -1;
	munmap(self->rig.here.mapping, self->rig.here.mapped);
	self->rig.here.mapping = NULL;
	ASSERT_EQ(1, write(go[1], "g", 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(process, exec_closes_the_session)
{
	pid_t child;

	ASSERT_EQ(0, rig_open_client(&self->rig));
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->rig.client, F_GETFD));
	child = fork();
	if (!child) {
		execlp("sleep", "sleep", "30", NULL);
		_exit(1);
	}
	kx_sleep_ms(300);
	rig_close(&self->rig);
	/* The child still runs, but its copies of the files are closed. */
	expect_baseline(_metadata, self->fd, &self->fresh);
	EXPECT_EQ(0, kill(child, SIGKILL));
	waitpid(child, NULL, 0);
}

/* Kills a child that waits in a call. */
static void kill_in_call(struct __test_metadata *_metadata, struct rig *rig,
			 int (*call)(struct rig *rig))
{
	uint64_t before;
	int status;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(call(rig) ? 1 : 0);
	}
	kx_sleep_ms(500);
	ASSERT_EQ(0, waitpid(child, &status, WNOHANG)) {
		TH_LOG("the call ended by itself with status %d", status);
	}
	before = kx_now_ns();
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_GT(15000, (kx_now_ns() - before) / 1000000);
}

static int call_target_info(struct rig *rig)
{
	struct rig own = *rig;
	struct kxfer_content content;

	return rig_open_client(&own) ?:
	       kx_target_info(own.client, own.target, 1000, 60000, &content);
}

static int call_event_reap(struct rig *rig)
{
	struct kxfer_event event;

	return kx_event_reap(rig->server, &event, 1, 60000);
}

/* Packets go to an address that no interface has, so there is no answer. */
static int call_peer_open(struct rig *rig)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr("10.77.0.99", KXFER_PORT),
		.timeout_ms = 60000,
	};
	int fd = kx_open();
	int ret, i;

	/* rdma_cm stops resolving after some seconds. */
	for (i = 0; i < 20; i++)
		ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);
	return ret;
}

static int call_region_add(struct rig *rig)
{
	uint32_t region;
	uint8_t *bytes = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = kx_open();

	for (;;)
		if (kx_region_add(fd, bytes, 256 * MIB, KXFER_REGION_F_WRITE, &region) ||
		    kx_region_del(fd, region))
			return -1;
}

TEST_F(process, killed_waiting_for_content)
{
	kill_in_call(_metadata, &self->rig, call_target_info);
	expect_baseline(_metadata, self->fd, &self->served);
}

TEST_F(process, killed_waiting_for_an_event)
{
	kill_in_call(_metadata, &self->rig, call_event_reap);
	expect_baseline(_metadata, self->fd, &self->served);
}

TEST_F_TIMEOUT(process, killed_connecting, 60)
{
	kill_in_call(_metadata, &self->rig, call_peer_open);
	expect_baseline(_metadata, self->fd, &self->served);
}

TEST_F_TIMEOUT(process, killed_pinning, 60)
{
	if (buffer_free_memory() < 400 * MIB)
		SKIP(return, "less than 400 MiB of memory are free");
	kill_in_call(_metadata, &self->rig, call_region_add);
	expect_baseline(_metadata, self->fd, &self->served);
}

static int nr_cycles(void)
{
	const char *text = getenv("KXFER_CYCLES");
	struct utsname name;

	if (text)
		return atoi(text);
	return !uname(&name) && !strncmp(name.release, "6.1.", 4) &&
	       !strcmp(kx_provider(), "rxe") ? 1000 : 100;
}

/* Opens, begins a transfer and dies; @i determines how far it gets. */
static void cycle(const struct rig *server, int i)
{
	struct kxfer_job jobs[16];
	struct rig rig = *server;
	int n;

	close(rig.server);
	rig.options.length = 65536;
	rig.options.here = BUFFER_PLAIN;
	if (rig_open_client(&rig))
		_exit(1);
	for (n = 0; n < 16; n++)
		jobs[n] = rig_job(&rig, n % 2 ? KXFER_OP_READ : KXFER_OP_WRITE, 0, 0, 65536);
	if (kx_submit(rig.client, jobs, 16) != 16)
		_exit(2);
	if (i % 3 == 0)
		kx_reap(rig.client, (struct kxfer_completion[16]) { }, 16, 1 + i % 16, 10000);
	if (i % 5 == 0)
		_exit(0);
	kill(getpid(), SIGKILL);
}

TEST_F_TIMEOUT(process, open_transfer_kill_cycles, 200)
{
	int i, status, cycles = nr_cycles();

	for (i = 0; i < cycles; i++) {
		pid_t child = fork();

		if (!child)
			cycle(&self->rig, i);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(status == 0 || WIFSIGNALED(status)) {
			TH_LOG("cycle %d: status %x", i, status);
		}
	}
	expect_baseline(_metadata, self->fd, &self->served);
	server_serves(_metadata, &self->rig);
}

TEST_HARNESS_MAIN
