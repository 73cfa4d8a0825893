// SPDX-License-Identifier: GPL-2.0
/*
 * Memory is short: a cgroup's limit kills processes in the middle of their calls. If the kernel
 * can inject failures, one page allocation in a hundred fails.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/storm.h"
#include "harness/baseline.h"
#include "harness/cgroup.h"
#include "kselftest_harness.h"

#define LENGTH		(2048u * 1024)
#define NR_WORKERS	8
#define NR_JOBS		64
#define LIMIT_BYTES	"8388608"	/* enough for some of the workers */
#define FAIL_PAGES	"/sys/kernel/debug/fail_page_alloc"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

FIXTURE(shortage)
{
	struct rig rig;
	struct storm storm;
	struct baseline baseline;
	char group[64];
};

FIXTURE_SETUP(shortage)
{
	struct rig_options options = { .length = LENGTH };

	self->rig.server = -1;
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	ASSERT_EQ(0, storm_connect(&self->rig));
	ASSERT_EQ(0, baseline_take(self->rig.server, &self->baseline));
}

FIXTURE_TEARDOWN(shortage)
{
	put(FAIL_PAGES "/probability", "0");
	storm_end(&self->storm);
	cgroup_remove(self->group);
	rig_close(&self->rig);
}

/* Jobs complete again, and nothing is left. */
static void ends_clean(struct __test_metadata *_metadata, struct _test_data_shortage *self)
{
	const char *wrong;

	EXPECT_TRUE(storm_blows(self->rig.server, 30000)) {
		TH_LOG("no job gets done any more");
	}
	storm_end(&self->storm);
	wrong = baseline_wait(self->rig.server, &self->baseline, BASELINE_WAIT_MS);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

/* Replace each worker that was killed. */
static void tend(struct storm *storm)
{
	uint32_t i;

	for (i = 0; i < storm->nr_workers; i++) {
		if (waitpid(storm->workers[i], NULL, WNOHANG) == storm->workers[i]) {
			storm->workers[i] = 0;
			storm_replace(storm, i);
		}
	}
}

TEST_F_TIMEOUT(shortage, of_a_cgroup, 3600)
{
	uint32_t seconds = storm_amount(4, 60);
	uint64_t end;
	long kills;

	if (!cgroup_has("memory"))
		SKIP(return, "no memory controller");
	ASSERT_EQ(0, cgroup_create(self->group, sizeof(self->group), "shortage", "memory"));
	ASSERT_EQ(0, cgroup_write(self->group, "memory.max", LIMIT_BYTES));
	/* A kernel without swap has no such file. */
	cgroup_write(self->group, "memory.swap.max", "0");
	self->storm.group = self->group;
	ASSERT_EQ(0, storm_start(&self->storm, &self->rig, NR_WORKERS, NR_JOBS));
	end = kx_deadline_ns(seconds * 1000);
	while (kx_now_ns() < end) {
		tend(&self->storm);
		kx_sleep_ms(20);
	}
	kills = cgroup_number(self->group, "memory.events", "oom_kill ");
	TH_LOG("%ld processes ended by the limit in %u s", kills, seconds);
	EXPECT_LT(0, kills);
	TH_LOG("%s", mix_tell(self->storm.done));
	storm_end(&self->storm);
	self->storm.group = NULL;
	ASSERT_EQ(0, storm_start(&self->storm, &self->rig, 1, NR_JOBS));
	ends_clean(_metadata, self);
}

static uint32_t fail_one_in_a_hundred(void)
{
	/* Fail allocations that may wait too, without messages, and without a limit of failures. */
	return put(FAIL_PAGES "/ignore-gfp-wait", "N") || put(FAIL_PAGES "/min-order", "0") ||
	       put(FAIL_PAGES "/verbose", "0") || put(FAIL_PAGES "/times", "-1") ||
	       put(FAIL_PAGES "/probability", "1");
}

TEST_F_TIMEOUT(shortage, of_pages, 3600)
{
	uint32_t seconds = storm_amount(4, 60), i = 0;
	uint64_t end;

	if (access(FAIL_PAGES, F_OK))
		SKIP(return, "the kernel cannot inject failures");
	ASSERT_EQ(0, storm_start(&self->storm, &self->rig, NR_WORKERS, NR_JOBS));
	ASSERT_TRUE(storm_blows(self->rig.server, 30000));
	ASSERT_EQ(0, fail_one_in_a_hundred());
	end = kx_deadline_ns(seconds * 1000);
	while (kx_now_ns() < end) {
		kx_sleep_ms(50);
		/* A new worker allocates most. */
		storm_replace(&self->storm, i++ % NR_WORKERS);
	}
	put(FAIL_PAGES "/probability", "0");
	TH_LOG("%s", mix_tell(self->storm.done));
	storm_end(&self->storm);
	ASSERT_EQ(0, storm_start(&self->storm, &self->rig, 1, NR_JOBS));
	ends_clean(_metadata, self);
}

TEST_HARNESS_MAIN
