// SPDX-License-Identifier: GPL-2.0
/*
 * Every failure that the kernel can inject into the calls of a process: slab, pages, user
 * memory, by /proc/self/fail-nth, like iommufd's selftest of that name. Failures are injected
 * only in the task that makes the calls; sites.c covers the others.
 *
 * Needs a kernel with CONFIG_FAULT_INJECTION.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "big/flows.h"
#include "harness/fault.h"
#include "harness/module.h"
#include "kselftest_harness.h"

#define DEBUGFS	"/sys/kernel/debug"
#define DENSE	400	/* longer than any flow */

static bool set(const char *directory, const char *name, const char *value)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), DEBUGFS "/%s/%s", directory, name);
	file = fopen(path, "we");
	if (!file)
		return false;
	fputs(value, file);
	return !fclose(file);
}

/* All allocations may fail, also those that may sleep, and without a message. */
static bool prepare_kernel(void)
{
	DIR *debugfs = opendir(DEBUGFS);
	struct dirent *entry;

	if (!debugfs)
		return false;
	while ((entry = readdir(debugfs)))
		if (!strncmp(entry->d_name, "fail", 4))
			set(entry->d_name, "verbose", "0");
	closedir(debugfs);
	set("fail_page_alloc", "ignore-gfp-wait", "N");
	set("fail_page_alloc", "ignore-gfp-highmem", "N");
	return set("failslab", "ignore-gfp-wait", "N");
}

FIXTURE(fail_nth)
{
	struct world world;
};

FIXTURE_SETUP(fail_nth)
{
	if (!fault_available() || !module_available())
		SKIP(return, "needs root, debugfs and the module file");
	if (!prepare_kernel() || access("/proc/self/fail-nth", W_OK))
		SKIP(return, "the kernel has no fault injection");
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	ASSERT_EQ(0, world_open(&self->world));
}

FIXTURE_TEARDOWN(fail_nth)
{
	world_close(&self->world);
}

static void sweep_flow(struct __test_metadata *_metadata, struct world *world, enum flow flow)
{
	struct sweep sweep = { .flow = &flows[flow], .context = world, .dense = DENSE };
	unsigned int injected = 0;
	const char *wrong;

	wrong = sweep_count(&sweep) ?: sweep_site(&sweep, FAULT_NTH, &injected);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	EXPECT_LT(0, injected);
	EXPECT_EQ(0, kx_counter(world->observer, "protocol_errors"));
	printf("# %u failures\n", injected);
}

TEST_F_TIMEOUT(fail_nth, calls_without_a_peer, 120)
{
	sweep_flow(_metadata, &self->world, LOCAL);
}

TEST_F_TIMEOUT(fail_nth, a_link_that_comes_up, 120)
{
	sweep_flow(_metadata, &self->world, CONNECT);
}

TEST_F_TIMEOUT(fail_nth, targets_and_jobs, 120)
{
	sweep_flow(_metadata, &self->world, TRANSFER);
}

TEST_F_TIMEOUT(fail_nth, work_requests_without_jobs, 120)
{
	sweep_flow(_metadata, &self->world, MEASURE);
}

TEST_F_TIMEOUT(fail_nth, a_dedicated_connection, 240)
{
	sweep_flow(_metadata, &self->world, DEDICATE);
}

TEST_F_TIMEOUT(fail_nth, a_dedicated_connection_by_ud, 120)
{
	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "iWARP has no UD");
	sweep_flow(_metadata, &self->world, DATAGRAMS);
}

TEST_F_TIMEOUT(fail_nth, jobs_by_io_uring, 120)
{
	sweep_flow(_metadata, &self->world, BY_URING);
}

TEST_F_TIMEOUT(fail_nth, a_withdrawal_under_jobs, 120)
{
	sweep_flow(_metadata, &self->world, WITHDRAW);
}

TEST_F_TIMEOUT(fail_nth, sessions_closed_under_jobs, 120)
{
	sweep_flow(_metadata, &self->world, CLOSE);
}

TEST_F_TIMEOUT(fail_nth, a_mailbox_that_ends_under_messages, 120)
{
	sweep_flow(_metadata, &self->world, MAILBOX);
}

/*
 * The loading task also attaches the device. Most of the failures are those of the kernel's own
 * loader.
 */
static int run_load(void *context)
{
	return module_insert("");
}

static void after_load(void *context)
{
	module_remove_soon();
}

TEST_F_TIMEOUT(fail_nth, loading, 240)
{
	const struct sweep_flow load = { .run = run_load, .after = after_load };
	struct sweep sweep = { .flow = &load, .dense = DENSE };
	unsigned int injected = 0;
	const char *wrong;

	world_close(&self->world);
	ASSERT_EQ(0, module_remove_soon());
	wrong = sweep_site(&sweep, FAULT_NTH, &injected);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	EXPECT_LT(0, injected);
	printf("# %u failures\n", injected);
	ASSERT_EQ(0, module_insert(""));
	ASSERT_EQ(0, world_open(&self->world));
}

TEST_HARNESS_MAIN
