// SPDX-License-Identifier: GPL-2.0
/*
 * RLIMIT_MEMLOCK at its edges: which callers may exceed it, and which pages count together.
 * Pages count for the address space that they were pinned from and for the user of their
 * session, once for each region.
 */
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define PAGE	4096UL

FIXTURE(memlock)
{
	uint8_t *memory;
	uint32_t region;
	int fd;
};

FIXTURE_SETUP(memlock)
{
	if (geteuid())
		SKIP(return, "needs root");
	/* The tests end as another user, which opens sessions too. */
	ASSERT_EQ(0, chmod(KX_NODE, 0666));
	self->memory = kx_alloc(8 * PAGE);
	ASSERT_NE(NULL, self->memory);
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(memlock)
{
	close(self->fd);
	chmod(KX_NODE, 0600);
}

static int set_limit(unsigned long pages)
{
	struct rlimit limit = { pages * PAGE, pages * PAGE };

	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -errno : 0;
}

static int limited_tester(unsigned long pages)
{
	return set_limit(pages) ?: kx_become_tester();
}

/* Becomes uid `tester` with one capability. */
static int tester_with(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};
	int ret;

	prctl(PR_SET_KEEPCAPS, 1);
	ret = kx_become_tester();
	data[0].permitted = 1u << capability;
	data[0].effective = data[0].permitted;
	return ret ?: syscall(SYS_capset, &header, data) ? -errno : 0;
}

TEST_F(memlock, is_no_limit_with_cap_ipc_lock)
{
	ASSERT_EQ(0, set_limit(1));
	ASSERT_EQ(0, tester_with(CAP_IPC_LOCK));
	test_cmd_region_add(self->fd, self->memory, 8 * PAGE, 0, &self->region);
	EXPECT_EQ(32, baseline_pinned_kib());
}

TEST_F(memlock, is_a_limit_with_another_capability)
{
	ASSERT_EQ(0, set_limit(1));
	ASSERT_EQ(0, tester_with(CAP_SYS_RESOURCE));
	test_err_region_add(ENOMEM, self->fd, self->memory, 8 * PAGE, 0, &self->region);
	test_cmd_region_add(self->fd, self->memory, PAGE, 0, &self->region);
}

TEST_F(memlock, counts_each_page_that_a_range_touches)
{
	ASSERT_EQ(0, limited_tester(2));
	test_err_region_add(ENOMEM, self->fd, self->memory + PAGE - 1, PAGE + 2, 0,
			    &self->region);
	test_cmd_region_add(self->fd, self->memory + PAGE - 1, 2, 0, &self->region);
	EXPECT_EQ(8, baseline_pinned_kib());
}

/* The same page in two regions is pinned twice, and counts as two pages. */
TEST_F(memlock, counts_regions_that_overlap)
{
	ASSERT_EQ(0, limited_tester(3));
	test_cmd_region_add(self->fd, self->memory, 2 * PAGE, 0, &self->region);
	test_err_region_add(ENOMEM, self->fd, self->memory, 2 * PAGE, 0, &self->region);
	test_cmd_region_add(self->fd, self->memory, PAGE, 0, &self->region);
	test_err_region_add(ENOMEM, self->fd, self->memory, 1, 0, &self->region);
}

TEST_F(memlock, counts_sessions_together)
{
	int second;

	ASSERT_EQ(0, limited_tester(4));
	second = kx_open();
	ASSERT_LE(0, second);
	test_cmd_region_add(self->fd, self->memory, 3 * PAGE, 0, &self->region);
	test_err_region_add(ENOMEM, second, self->memory, 2 * PAGE, 0, &self->region);
	close(self->fd);
	EXPECT_EQ(0, baseline_pinned_kib());
	test_cmd_region_add(second, self->memory, 4 * PAGE, 0, &self->region);
}

struct other {
	uint8_t *memory;
	int fd;
	int ret;
	int beyond;
};

static int pin_in_shared_memory(void *context)
{
	struct other *other = context;
	uint32_t id;

	other->ret = kx_region_add(other->fd, other->memory, 3 * PAGE, 0, &id);
	other->beyond = kx_region_add(other->fd, other->memory, 2 * PAGE, 0, &id);
	return 0;
}

/* Processes, not threads, because each needs separate limits and files. */
TEST_F(memlock, counts_processes_with_one_address_space_together)
{
	struct other other = { .memory = self->memory, .ret = 1, .beyond = 1 };
	uint8_t *stack = kx_alloc(16 * PAGE);
	int status;
	pid_t pid;

	ASSERT_EQ(0, limited_tester(4));
	other.fd = kx_open();
	ASSERT_LE(0, other.fd);
	pid = clone(pin_in_shared_memory, stack + 16 * PAGE, CLONE_VM | SIGCHLD, &other);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, other.ret);
	EXPECT_EQ(-ENOMEM, other.beyond);
	/* The child is gone, but its pins are not. */
	EXPECT_EQ(12, baseline_pinned_kib());
	test_err_region_add(ENOMEM, self->fd, self->memory, 2 * PAGE, 0, &self->region);
	test_cmd_region_add(self->fd, self->memory, PAGE, 0, &self->region);
	close(other.fd);
	EXPECT_EQ(4, baseline_pinned_kib());
}

/* VmPin of a child begins at zero; both processes count for the user of their session. */
TEST_F(memlock, of_a_child_is_its_own_and_its_users)
{
	uint32_t id;
	int status, fd;
	pid_t pid;

	ASSERT_EQ(0, limited_tester(4));
	fd = kx_open();
	ASSERT_LE(0, fd);
	test_cmd_region_add(fd, self->memory, 2 * PAGE, 0, &self->region);
	pid = fork();
	if (!pid) {
		if (baseline_pinned_kib() ||
		    kx_region_add(fd, self->memory, 2 * PAGE, 0, &id) ||
		    baseline_pinned_kib() != 8 ||
		    kx_region_add(fd, self->memory, PAGE, 0, &id) != -ENOMEM)
			_exit(1);
		/* Deleting the parent's region gives the pages back to the parent. */
		_exit(kx_region_del(fd, self->region) ||
		      baseline_pinned_kib() != 8 ? 2 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, baseline_pinned_kib());
	/* The child is gone, but its pins are not: they belong to the file. */
	test_cmd_region_add(fd, self->memory, 2 * PAGE, 0, &self->region);
	test_err_region_add(ENOMEM, fd, self->memory, PAGE, 0, &self->region);
	/* A file that another user has opened counts for another account. */
	test_err_region_add(ENOMEM, self->fd, self->memory, 3 * PAGE, 0, &id);
	test_cmd_region_add(self->fd, self->memory, 2 * PAGE, 0, &id);
}

/* A process without a limit does not reduce the share of other processes of its uid. */
TEST_F(memlock, beyond_it_nothing_counts_for_the_user)
{
	int status, ready[2];
	uint32_t id;
	pid_t pid;
	char c;

	ASSERT_EQ(0, set_limit(4));
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (tester_with(CAP_IPC_LOCK) ||
		    kx_region_add(kx_open(), self->memory, 8 * PAGE, 0, &id) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	ASSERT_EQ(0, kx_become_tester());
	test_cmd_region_add(kx_open(), self->memory, 4 * PAGE, 0, &id);
	test_err_region_add(ENOMEM, kx_open(), self->memory, PAGE, 0, &id);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* Many processes at the edge: together never more than the limit, and all of it. */
TEST_F(memlock, holds_when_processes_race)
{
	struct other others[8];
	uint8_t *stacks = kx_alloc(8 * 16 * PAGE);
	int i, nr = 0, status;
	pid_t pids[8];

	ASSERT_EQ(0, limited_tester(9));
	for (i = 0; i < 8; i++) {
		others[i] = (struct other) { .memory = self->memory, .fd = kx_open() };
		ASSERT_LE(0, others[i].fd);
	}
	for (i = 0; i < 8; i++) {
		pids[i] = clone(pin_in_shared_memory, stacks + (i + 1) * 16 * PAGE,
				CLONE_VM | SIGCHLD, &others[i]);
		ASSERT_LT(0, pids[i]);
	}
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		nr += !others[i].ret ? 3 : 0;
		nr += !others[i].beyond ? 2 : 0;
	}
	EXPECT_LT(0, nr);
	EXPECT_GE(9, nr);
	EXPECT_EQ(nr * 4, baseline_pinned_kib());
}

TEST_HARNESS_MAIN
