// SPDX-License-Identifier: MIT
/*
 * kxfer_bench.ko, the engine of the calls of linux/kxfer_bench.h. The first such call of a
 * privileged caller loads it, and a session that has measured keeps it in use. It can be
 * removed once nothing of it is in use, whichever step of a link or lane is delayed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/fault.h"
#include "harness/kxfer_test.h"
#include "harness/module.h"
#include "peers/sender.h"
#include "rigs/rig.h"

#include "kselftest_harness.h"

#define MODPROBE	"/proc/sys/kernel/modprobe"
#define NR_THREADS	3
#define STORM_MS	4000

static bool is_loaded(void) { return !access("/sys/module/kxfer_bench", F_OK); }

/* A call of the engine that does no work. */
static int measure(int fd)
{
	struct kxfer_bench bench = {
		.size = sizeof(bench),
		.op = KXFER_OP_NOP,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.count = 1,
		.time_limit_ms = 1000,
	};

	return kx_call(fd, KXFER_BENCH, &bench);
}

static int remove_engine_soon(void)
{
	int ret;

	kx_wait_until(!(ret = module_remove_engine()), 10000);
	return ret;
}

FIXTURE(engine)
{
	char modprobe[256];
	int fd;
};

static int write_modprobe(const char *path)
{
	int fd = open(MODPROBE, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, path, strlen(path)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

FIXTURE_SETUP(engine)
{
	ssize_t n;
	int fd;

	self->fd = -1;
	if (!module_available() || access("/etc/modprobe.d/kxfer.conf", R_OK))
		SKIP(return, "needs root, and a modprobe that knows kxfer_bench");
	fd = open(MODPROBE, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	n = read(fd, self->modprobe, sizeof(self->modprobe) - 1);
	close(fd);
	ASSERT_LT(0, n);
	ASSERT_EQ(0, remove_engine_soon());
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(engine)
{
	if (self->fd < 0)
		return;
	close(self->fd);
	EXPECT_EQ(0, write_modprobe(self->modprobe));
}

TEST_F(engine, is_loaded_by_the_first_that_measures)
{
	EXPECT_FALSE(is_loaded());
	EXPECT_EQ(0, measure(self->fd));
	EXPECT_TRUE(is_loaded());
}

/* Runs in a child, which drops its privileges. */
TEST_F(engine, is_not_loaded_by_who_may_not_measure)
{
	pid_t pid = fork();
	int status;

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(kx_become_tester() || measure(self->fd) != -EPERM);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_FALSE(is_loaded());
}

TEST_F(engine, that_cannot_be_loaded_is_not_supported)
{
	ASSERT_EQ(0, write_modprobe("/bin/false"));
	EXPECT_EQ(-EOPNOTSUPP, measure(self->fd));
	EXPECT_FALSE(is_loaded());
}

TEST_F(engine, has_no_other_calls)
{
	struct kxfer_nop nop = { .size = sizeof(nop) };
	unsigned int nr;

	ASSERT_EQ(0, measure(self->fd));
	for (nr = KXFER_CMD_DEDICATED_STATUS + 1; nr <= KXFER_CMD_ENGINE_LAST; nr++)
		EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, nr), &nop));
}

TEST_F(engine, is_in_use_by_sessions_that_measure)
{
	int other = kx_open();

	ASSERT_LE(0, other);
	ASSERT_EQ(0, measure(self->fd));
	EXPECT_EQ(-EWOULDBLOCK, module_remove_engine());
	close(self->fd);
	/* The other session has not measured, so it does not keep the engine in use. */
	EXPECT_EQ(0, remove_engine_soon());
	EXPECT_FALSE(is_loaded());
	EXPECT_EQ(0, measure(other));
	EXPECT_TRUE(is_loaded());
	close(other);
	self->fd = kx_open();
}

static const char *const late[] = {
	"DEDICATED_END", "LANE_DRAINED", "LANE_CQ_END", "LINK_TEARDOWN", "LINK_LAST",
};

/* A link ends after its session, and only then can the module be removed. */
TEST_F_TIMEOUT(engine, goes_behind_the_last_of_a_connection, 120)
{
	struct sender sender = {};
	uint32_t i;

	if (!fault_available())
		SKIP(return, "the module was built without faults");
	for (i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		ASSERT_EQ(0, sender_open(&sender, KXFER_TRANSPORT_RC));
		ASSERT_EQ(0, sender_dedicate(&sender));
		EXPECT_EQ(0, sender_run(&sender));
		ASSERT_EQ(0, delay_arm(late[i], 300, 1));
		/* sender_close() is not used, because it waits for the link. */
		close(sender.fd);
		EXPECT_EQ(0, remove_engine_soon());
		delay_arm(late[i], 0, 0);
		responder_close(&sender.responder);
		EXPECT_TRUE(sender_links_are_gone(&sender, self->fd));
	}
}

/* Number of contexts that a delay holds now, or -1. */
static int nr_late(const char *site)
{
	struct delay_counts counts;

	return delay_counts(site, &counts) ? -1 : counts.now;
}

static void *run_for_a_while(void *context)
{
	struct rig *rig = context;
	struct kxfer_bench bench = {
		.size = sizeof(bench),
		.op = KXFER_OP_READ,
		.region = rig->here_region,
		.target = rig->target,
		.depth = 32,
		.list = 1,
		.signal = 1,
		.length = 4096,
		.stride = 4096,
		.count = UINT32_MAX,
		.time_limit_ms = 100,
		.memory = KXFER_BENCH_MEMORY_MR_EACH,
	};
	sigset_t children;

	/* SIGCHLD of a command must not interrupt the run. */
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &children, NULL);
	return (void *)(long)kx_call(rig->client, KXFER_BENCH, &bench);
}

static void *remove_device(void *device)
{
	return (void *)(long)baseline_command("rdma link del %s", (const char *)device);
}

/*
 * A run is over, but has its lane still, when that lane is closed. Then it gives the lane back, and
 * the module could go, while the context that closes the lane is about to call it.
 */
TEST_F_TIMEOUT(engine, goes_behind_a_lane_that_is_closed, 60)
{
	struct rig_options options = { .length = 32 * 4096 };
	char device[64], netdev[32];
	struct rig rig;
	pthread_t thread, remover;
	void *ret;

	snprintf(device, sizeof(device), "%s", kx_device());
	if (!fault_available() || !baseline_netdev(device, netdev, sizeof(netdev)))
		SKIP(return, "needs faults, and a software RDMA device to remove");
	ASSERT_EQ(0, rig_open(&rig, &options));
	ASSERT_EQ(0, delay_arm("BENCH_END", 1000, 1));
	ASSERT_EQ(0, delay_arm("LANE_EXCLUSIVE", 2000, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_for_a_while, &rig));
	ASSERT_TRUE(kx_wait_until(nr_late("BENCH_END") == 1, 10000));
	ASSERT_EQ(0, pthread_create(&remover, NULL, remove_device, device));
	EXPECT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(0, (int)(long)ret);
	close(rig.client);
	rig.client = -1;
	EXPECT_EQ(0, remove_engine_soon());
	EXPECT_EQ(0, pthread_join(remover, &ret));
	EXPECT_EQ(NULL, ret);
	rig_close(&rig);
	delay_arm("LANE_EXCLUSIVE", 0, 0);
	delay_arm("BENCH_END", 0, 0);
	EXPECT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", device, kx_provider(),
				      netdev));
}

static void *measure_again_and_again(void *context)
{
	uint64_t end = kx_now_ns() + STORM_MS * 1000000ULL;
	long strange = 0;
	int fd, ret;

	while (kx_now_ns() < end) {
		fd = kx_open();
		ret = measure(fd);
		/* The module may be unloaded during the look-up. */
		if (ret && ret != -EOPNOTSUPP)
			strange = ret;
		close(fd);
	}
	return (void *)strange;
}

TEST_F_TIMEOUT(engine, comes_and_goes_while_many_measure, 60)
{
	uint64_t end = kx_now_ns() + STORM_MS * 1000000ULL;
	pthread_t threads[NR_THREADS];
	uint32_t removed = 0, i;
	void *strange;

	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, measure_again_and_again, NULL));
	while (kx_now_ns() < end) {
		removed += is_loaded() && !module_remove_engine();
		kx_sleep_ms(1);
	}
	for (i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &strange);
		EXPECT_EQ(0, (long)strange);
	}
	EXPECT_LT(0, removed);
	EXPECT_EQ(0, remove_engine_soon());
}

TEST_HARNESS_MAIN
