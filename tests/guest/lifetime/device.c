// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device is removed and added again while it is in use: every job ends once, with
 * ENODEV at the latest; sessions stay usable; a kept listener is made again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/load.h"
#include "rigs/rig.h"
#include "rigs/uring.h"

#define MIB	(1024u * 1024)
#define LENGTH	(32 * MIB)	/* so long that 1,000 jobs cannot end in time */
#define NR_JOBS	1000

/*
 * A process that is ready to remove the device. On 6.1 rxe's tasklets take most of the CPU
 * while jobs are in flight, so a process started then would remove the device only after all
 * jobs.
 */
struct remover {
	pid_t pid;
	int commands;
};

static int remover_start(struct remover *remover)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	remover->commands = ends[1];
	remover->pid = fork();
	if (!remover->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[0], STDIN_FILENO);
		execlp("rdma", "rdma", "-b", "-", NULL);
		_exit(127);
	}
	close(ends[0]);
	/* Give the program time to load its libraries. */
	kx_sleep_ms(300);
	return remover->pid < 0 ? -errno : 0;
}

static int remover_end(struct remover *remover)
{
	int status;

	close(remover->commands);
	if (waitpid(remover->pid, &status, 0) != remover->pid)
		return -errno;
	remover->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

FIXTURE(device)
{
	struct rig rig;
	char name[64];
	char netdev[32];
	struct remover remover;
	uint64_t kept;
	int fd;
};

static int device_del(struct _test_data_device *self)
{
	dprintf(self->remover.commands, "link del %s\n", self->name);
	return remover_end(&self->remover);
}

/* Adds the device, and starts a new remover, because rdma looks for devices at its start. */
static int device_add(struct _test_data_device *self)
{
	int ret = baseline_command("rdma link add %s type %s netdev %s", self->name,
				   kx_provider(), self->netdev);

	return ret ? ret : remover_start(&self->remover);
}

FIXTURE_SETUP(device)
{
	struct rig_options options = { .length = LENGTH, .here = BUFFER_SCATTERED };

	snprintf(self->name, sizeof(self->name), "%s", kx_device());
	if (geteuid() || !baseline_netdev(self->name, self->netdev, sizeof(self->netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	ASSERT_EQ(0, remover_start(&self->remover));
}

FIXTURE_TEARDOWN(device)
{
	struct kxfer_query query;

	rig_close(&self->rig);
	if (kx_query(self->fd, &query) == 0 && !query.nr_devices)
		device_add(self);
	if (self->remover.pid)
		remover_end(&self->remover);
	if (self->kept)
		kx_listen_del(self->fd, self->kept);
	close(self->fd);
}

/* Waits until the device is attached and its address resolvable again. */
static int wait_until_usable(struct rig *rig)
{
	uint64_t end = kx_deadline_ns(15000);
	int ret;

	do {
		ret = kx_peer_open(rig->client, kx_addr(kx_address(), KXFER_PORT), &rig->peer);
		if (ret)
			kx_sleep_ms(100);
	} while (ret && kx_now_ns() < end);
	return ret;
}

static uint64_t ms_since(uint64_t before)
{
	return (kx_now_ns() - before) / 1000000;
}

static int submit_thousand(const struct rig *rig)
{
	struct kxfer_job jobs[250];
	int i, n, all = 0;

	for (n = 0; n < NR_JOBS / 250; n++) {
		for (i = 0; i < 250; i++) {
			jobs[i] = rig_job(rig, KXFER_OP_READ, 0, 0, LENGTH);
			jobs[i].user_data = 250 * n + i;
		}
		all += kx_submit(rig->client, jobs, 250);
	}
	return all;
}

TEST_F_TIMEOUT(device, removed_with_1000_jobs_in_flight, 180)
{
	static struct kxfer_completion done[NR_JOBS + 1];
	static bool seen[NR_JOBS];
	int i, gone = 0, well = 0;
	struct kxfer_query query;
	uint32_t region;
	uint64_t before;

	ASSERT_EQ(NR_JOBS, submit_thousand(&self->rig));
	before = kx_now_ns();
	ASSERT_EQ(0, device_del(self));
	TH_LOG("the device was gone after %llu ms", (unsigned long long)ms_since(before));
	/* When the device is gone, every job has completed. */
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
	EXPECT_EQ(0, kx_counter(self->fd, "live_mappings"));
	ASSERT_EQ(NR_JOBS, kx_reap(self->rig.client, done, NR_JOBS + 1, 0, 0));
	for (i = 0; i < NR_JOBS; i++) {
		ASSERT_GT(NR_JOBS, done[i].user_data);
		ASSERT_FALSE(seen[done[i].user_data]);
		seen[done[i].user_data] = true;
		gone += done[i].status == -ENODEV;
		well += done[i].status == 0;
		ASSERT_EQ(done[i].status ? 0 : LENGTH, done[i].bytes);
	}
	TH_LOG("%d jobs ended well, %d with ENODEV", well, gone);
	EXPECT_EQ(NR_JOBS, well + gone);
	EXPECT_LT(0, gone);

	/* The session is still usable. */
	EXPECT_EQ(0, kx_query(self->rig.client, &query));
	EXPECT_EQ(0, query.nr_devices);
	EXPECT_EQ(0, kx_nop(self->rig.client));
	EXPECT_EQ(0, kx_region_add(self->rig.client, self->rig.here.bytes, 4096, 0, &region));
	EXPECT_EQ(-ENODEV, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 100));
	EXPECT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	EXPECT_EQ(0, kx_peer_close(self->rig.client, self->rig.peer));
	EXPECT_EQ(-EHOSTUNREACH, kx_peer_open(self->rig.client, kx_addr(kx_address(), 0),
					      &self->rig.peer));
	ASSERT_EQ(0, device_add(self));
}

TEST_F_TIMEOUT(device, removed_with_jobs_of_io_uring_in_flight, 180)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, 0, 0, LENGTH);
	bool seen[URING_ENTRIES] = { false };
	int i, gone = 0, well = 0;
	struct io_uring_cqe cqe;
	struct io_uring ring;

	ASSERT_EQ(0, uring_open(&ring, 0));
	for (job.user_data = 0; job.user_data < URING_ENTRIES; job.user_data++)
		uring_job(&ring, self->rig.client, &job);
	ASSERT_EQ(URING_ENTRIES, io_uring_submit(&ring));
	ASSERT_EQ(0, device_del(self));
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
	for (i = 0; i < URING_ENTRIES; i++) {
		ASSERT_EQ(0, uring_wait(&ring, &cqe, NULL, KX_TIMEOUT_MS));
		ASSERT_GT(URING_ENTRIES, cqe.user_data);
		ASSERT_FALSE(seen[cqe.user_data]);
		seen[cqe.user_data] = true;
		gone += cqe.res == -ENODEV;
		well += cqe.res == 0;
	}
	EXPECT_EQ(URING_ENTRIES, well + gone);
	EXPECT_LT(0, gone);
	/*
	 * The region is used for the first time after the removal: the job is accepted, and
	 * fails.
	 */
	EXPECT_EQ(-ENODEV, uring_one(&ring, self->rig.client, &job));
	io_uring_queue_exit(&ring);
	ASSERT_EQ(0, device_add(self));
}

TEST_F_TIMEOUT(device, comes_back_to_the_same_sessions, 90)
{
	const char *wrong;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, device_del(self));
		ASSERT_EQ(0, device_add(self));
		/* A session of the server made the listener; the module makes it again. */
		ASSERT_EQ(0, wait_until_usable(&self->rig));
		ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, self->rig.name, 0,
					    &self->rig.target));
		rig_prepare(&self->rig, KXFER_OP_WRITE);
		wrong = rig_try(&self->rig, KXFER_OP_WRITE, 3, 5, MIB);
		if (wrong)
			TH_LOG("round %d: %s", i, wrong);
		ASSERT_EQ(NULL, wrong);
	}
}

TEST_F_TIMEOUT(device, removed_under_several_loads, 90)
{
	struct load loads[3];
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, load_start(&loads[i], &self->rig, i, 64, 4096 << i));
	ASSERT_EQ(0, device_del(self));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(LOAD_BROKEN, load_end(&loads[i], 0));
	EXPECT_EQ(0, kx_counter(self->fd, "live_jobs"));
	/* The target still refers to the lost link. */
	close(self->rig.client);
	self->rig.client = -1;
	EXPECT_EQ(0, kx_counter(self->fd, "live_links"));
	EXPECT_EQ(0, kx_counter(self->fd, "live_lanes"));
	EXPECT_EQ(0, kx_counter(self->fd, "live_mrs"));
	ASSERT_EQ(0, device_add(self));
}

#define NR_TURNS	32	/* jobs of a SUBMIT, each with a separate region */
#define NR_SUBMITTERS	4
#define GONE_MS		20000

/* Threads whose jobs name the regions of a session in the reverse order of their creation. */
struct turns {
	const struct rig *rig;
	uint32_t regions[NR_TURNS];
	volatile bool stop;
};

static int make_regions(struct turns *turns, const struct rig *rig)
{
	int i, ret = 0;

	*turns = (struct turns) { .rig = rig };
	for (i = 0; !ret && i < NR_TURNS; i++)
		ret = kx_region_add(rig->client, rig->here.bytes + i * 4096, 4096, 0,
				    &turns->regions[i]) ?:
		      kx_transfer(rig->client, KXFER_OP_WRITE, turns->regions[i], 0,
				  rig->target, 0, 64);
	return ret;
}

static void *submit_turns(void *argument)
{
	struct kxfer_completion done[NR_TURNS];
	struct kxfer_job jobs[NR_TURNS];
	struct turns *turns = argument;
	int i;

	for (i = 0; i < NR_TURNS; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_WRITE, .region = turns->regions[NR_TURNS - 1 - i],
			.target = turns->rig->target, .length = 64,
		};
	while (!turns->stop) {
		kx_submit(turns->rig->client, jobs, NR_TURNS);
		while (kx_reap(turns->rig->client, done, NR_TURNS, 0, 0) > 0)
			;
	}
	return NULL;
}

/*
 * Mappings are removed one by one. A job waits for the removal only if the removal waits for no
 * job.
 */
TEST_F_TIMEOUT(device, goes_while_jobs_name_many_regions, 180)
{
	struct kxfer_completion done[NR_TURNS];
	pthread_t threads[NR_SUBMITTERS];
	struct turns turns;
	int i, round, status = -1;

	for (round = 0; round < 5; round++) {
		ASSERT_EQ(0, make_regions(&turns, &self->rig));
		for (i = 0; i < NR_SUBMITTERS; i++)
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, submit_turns, &turns));
		kx_sleep_ms(100);
		dprintf(self->remover.commands, "link del %s\n", self->name);
		close(self->remover.commands);
		ASSERT_TRUE(kx_wait_until(waitpid(self->remover.pid, &status, WNOHANG),
					  GONE_MS));
		self->remover.pid = 0;
		EXPECT_EQ(0, status);
		turns.stop = true;
		for (i = 0; i < NR_SUBMITTERS; i++)
			pthread_join(threads[i], NULL);
		EXPECT_EQ(0, kx_counter(self->fd, "live_mappings"));
		/* As many as a session may have, if they were in flight when the threads ended. */
		while (kx_reap(self->rig.client, done, NR_TURNS, 0, 0) > 0)
			;
		for (i = 0; i < NR_TURNS; i++)
			test_cmd_region_del(self->rig.client, turns.regions[i]);
		ASSERT_EQ(0, device_add(self));
		ASSERT_EQ(0, wait_until_usable(&self->rig));
		ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, self->rig.name, 0,
					    &self->rig.target));
	}
}

static int listener_active(int fd, uint64_t id)
{
	struct kxfer_info_listener listener;
	uint64_t cursor = id - 1;

	if (kx_info(fd, KXFER_INFO_LISTENERS, &listener, sizeof(listener), 1, &cursor) != 1 ||
	    listener.id != id)
		return -1;
	return listener.active;
}

TEST_F_TIMEOUT(device, kept_listener_is_made_again, 90)
{
	int fd = kx_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kx_listen_add(fd, kx_addr(kx_address(), KXFER_PORT + 5),
				   KXFER_LISTEN_F_KEEP, &self->kept));
	close(fd);
	EXPECT_EQ(1, listener_active(self->fd, self->kept));
	ASSERT_EQ(0, device_del(self));
	EXPECT_EQ(0, listener_active(self->fd, self->kept));
	ASSERT_EQ(0, device_add(self));
	EXPECT_TRUE(kx_wait_until(listener_active(self->fd, self->kept) == 1, 10000));
	EXPECT_EQ(0, kx_peer_open(self->rig.client, kx_addr(kx_address(), KXFER_PORT + 5),
				  &self->rig.peer));
}

static bool link_is_on(int fd, const char *name)
{
	struct kxfer_info_link link;
	uint64_t cursor = 0;

	return kx_info(fd, KXFER_INFO_LINKS, &link, sizeof(link), 1, &cursor) == 1 &&
	       !strcmp((const char *)link.device, name);
}

TEST_F_TIMEOUT(device, keeps_its_links_under_another_name, 90)
{
	ASSERT_EQ(1, link_is_on(self->fd, self->name));
	ASSERT_EQ(0, baseline_command("rdma dev set %s name renamed0", self->name));
	EXPECT_TRUE(link_is_on(self->fd, "renamed0"));
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 4096));
	ASSERT_EQ(0, baseline_command("rdma dev set renamed0 name %s", self->name));
	EXPECT_TRUE(link_is_on(self->fd, self->name));
}

#define CROWD		16
#define CROWD_PORT	(KXFER_PORT + 100)

/* Adds a listener and deletes the oldest, until the address is on no device; keeps the rest. */
static void listen_until_it_goes(void)
{
	uint64_t end = kx_deadline_ns(2 * GONE_MS), crowd[CROWD] = {};
	int fd = kx_open(), ret = 0;
	uint32_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (n = 0; !ret && kx_now_ns() < end; n = (n + 1) % CROWD) {
		if (crowd[n])
			kx_listen_del(fd, crowd[n]);
		ret = kx_listen_add(fd, kx_addr(kx_address(), CROWD_PORT + n), 0, &crowd[n]);
	}
	pause();
	_exit(0);
}

static bool all_active(int fd)
{
	struct kxfer_info_listener listeners[CROWD + 1];
	uint64_t cursor = 0;
	int n, i;

	n = kx_info(fd, KXFER_INFO_LISTENERS, listeners, sizeof(*listeners), CROWD + 1, &cursor);
	for (i = 0; i < n; i++)
		if (!listeners[i].active)
			return false;
	return n >= CROWD;
}

/* rdma_cm releases the device later than the module, and waits for listeners made in between. */
TEST_F_TIMEOUT(device, goes_while_listeners_come, 90)
{
	uint64_t before;
	pid_t child = fork();
	int status = -1;

	if (!child) {
		/* Close the pipe, because the remover waits for its end. */
		close(self->remover.commands);
		listen_until_it_goes();
	}
	kx_sleep_ms(300);
	before = kx_now_ns();
	dprintf(self->remover.commands, "link del %s\n", self->name);
	close(self->remover.commands);
	EXPECT_TRUE(kx_wait_until(waitpid(self->remover.pid, &status, WNOHANG), GONE_MS)) {
		/* Without its listeners the device can be removed. */
		kill(child, SIGKILL);
		waitpid(self->remover.pid, &status, 0);
	}
	TH_LOG("the device was gone after %llu ms", (unsigned long long)ms_since(before));
	self->remover.pid = 0;
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, device_add(self));
	EXPECT_TRUE(kx_wait_until(all_active(self->fd), 10000));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* On siw, TCP would retry for two minutes. */
static int open_silent_host(int fd)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr("10.77.0.99", KXFER_PORT),
		.timeout_ms = 60000,
	};

	return kx_call(fd, KXFER_PEER_OPEN, &cmd);
}

TEST_F_TIMEOUT(device, goes_while_somebody_connects, 90)
{
	uint64_t before;
	int status;
	pid_t child = fork();

	if (!child)
		_exit(-open_silent_host(self->rig.client));
	kx_sleep_ms(500);
	before = kx_now_ns();
	ASSERT_EQ(0, device_del(self));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	TH_LOG("PEER_OPEN ended with errno %d, all after %llu ms", WEXITSTATUS(status),
	       (unsigned long long)ms_since(before));
	/* EHOSTUNREACH: the address could not even be resolved. */
	EXPECT_TRUE(WEXITSTATUS(status) == ENODEV || WEXITSTATUS(status) == EHOSTUNREACH);
	EXPECT_GT(15000, ms_since(before));
	ASSERT_EQ(0, device_add(self));
}

TEST_F_TIMEOUT(device, link_to_a_silent_host_is_given_up, 90)
{
	uint64_t before = kx_now_ns();
	int ret = open_silent_host(self->rig.client);

	TH_LOG("PEER_OPEN ended with errno %d after %llu ms", -ret,
	       (unsigned long long)ms_since(before));
	EXPECT_TRUE(ret == -ETIMEDOUT || ret == -EHOSTUNREACH);
	EXPECT_GT(16000, ms_since(before));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_links") == 2, 3000));
}

TEST_F_TIMEOUT(device, waiting_calls_end_when_it_goes, 90)
{
	struct kxfer_content content;
	uint64_t before;
	int status;
	pid_t child = fork();

	if (!child) {
		int ret = kx_target_info(self->rig.client, self->rig.target, 1000, 60000,
					 &content);

		_exit(ret == -ENODEV ? 0 : -ret);
	}
	kx_sleep_ms(500);
	before = kx_now_ns();
	ASSERT_EQ(0, device_del(self));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_GT(5000, (kx_now_ns() - before) / 1000000);
	ASSERT_EQ(0, device_add(self));
}

TEST_HARNESS_MAIN
