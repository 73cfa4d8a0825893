// SPDX-License-Identifier: GPL-2.0
/*
 * The memory cgroup: kernel memory that the module allocates for a user is charged to that user
 * and is given back. At the limit the greedy process is killed.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "big/tenant.h"
#include "harness/cgroup.h"
#include "kselftest_harness.h"
#include "rigs/ring.h"

#define PAGE	4096UL
#define TAKE_MS	60000
#define BATCH	256
#define JOBS	10000
#define RINGS	20
#define SQ_JOBS	256
#define FULL_SESSIONS	7	/* with 4,096 jobs each: below what a uid may have */
#define NR_LINKS	16
#define LINK_BYTES	(128 * 1024)	/* 330 to 470 KiB on rxe of 6.1 */
#define OWN_PORT	19777

FIXTURE(memory)
{
	struct stage stage;
	struct tenant tenant;
	char group[128];
	bool links;
};

FIXTURE_SETUP(memory)
{
	struct rlimit limit = { 64 << 20, 64 << 20 };

	if (geteuid() || !cgroup_has("memory"))
		SKIP(return, "needs root and a kernel with the memory controller");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, stage_open(&self->stage));
	ASSERT_EQ(0, cgroup_create(self->group, sizeof(self->group), "kxfer-memory",
				   "memory"));
}

FIXTURE_TEARDOWN(memory)
{
	const char *left = NULL;

	tenant_end(&self->tenant);
	/* Links stay up for half a minute after their last user; reloading ends them. */
	if (self->links) {
		rig_close(&self->stage.rig);
		close(self->stage.fd);
	} else {
		left = stage_close(&self->stage);
	}
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	EXPECT_EQ(0, cgroup_remove(self->group));
	EXPECT_EQ(0, stage_reload());
}

static long long kernel_bytes(const char *group)
{
	return cgroup_number(group, "memory.stat", "kernel ");
}

typedef uint32_t (*step_fn)(int fd, const struct rig *server);
static step_fn step;
static const char *step_group;

/* @nr: objects that the step made; @more: bytes that they cost. */
static void take_step(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open();
	long long before = kernel_bytes(step_group), after;

	report->nr = fd < 0 ? 0 : step(fd, server);
	after = kernel_bytes(step_group);
	report->more = after > before ? after - before : 0;
}

/*
 * Kernel memory of the group that a step takes. The kernel sums up per-CPU counts with a delay,
 * so a quarter of a MiB may be missing.
 */
static long long cost_of(struct tenant *tenant, const struct stage *stage,
			 const char *group, step_fn what)
{
	step = what;
	step_group = group;
	if (tenant_start(tenant, &stage->rig, TENANT_GREEDY, group, take_step, TAKE_MS))
		return -1;
	printf("# %u objects took %u KiB of kernel memory: %u bytes each\n",
	       tenant->report.nr, tenant->report.more / 1024,
	       tenant->report.more / (tenant->report.nr ?: 1));
	return tenant->report.more;
}

/* In full sessions, which end with the process. */
static uint32_t leave_completions(int fd, const struct rig *server)
{
	struct kxfer_job jobs[BATCH] = {};
	uint32_t nr = 0, i;
	int ret;

	for (i = 0; i < FULL_SESSIONS; i++)
		for (fd = kx_open(); (ret = kx_submit(fd, jobs, BATCH)) > 0; nr += ret)
			;
	return nr;
}

TEST_F_TIMEOUT(memory, of_completions_is_charged, 60)
{
	/* A place each: the jobs are gone. */
	EXPECT_LT(FULL_SESSIONS * 4096LL * (int)sizeof(struct kxfer_completion) - (256 << 10),
		  cost_of(&self->tenant, &self->stage, self->group, leave_completions));
	EXPECT_EQ(FULL_SESSIONS * 4096, self->tenant.report.nr);
}

static uint32_t make_rings(int fd, const struct rig *server)
{
	struct kx_ring ring;
	struct kx_sq sq;
	uint32_t nr;

	/* The sessions and rings end with the process. */
	for (nr = 0; nr < RINGS; nr++) {
		fd = kx_open();
		if (kx_ring_make(fd, 4096, KX_NO_EVENTFD, &ring) || kx_sq_make(fd, SQ_JOBS, &sq))
			break;
	}
	return nr;
}

TEST_F_TIMEOUT(memory, of_rings_is_charged, 60)
{
	EXPECT_LT(RINGS * (4096LL * (int)sizeof(struct kxfer_completion) +
			   SQ_JOBS * (int)sizeof(struct kxfer_job)) - (256 << 10),
		  cost_of(&self->tenant, &self->stage, self->group, make_rings));
	EXPECT_EQ(RINGS, self->tenant.report.nr);
}

static uint32_t run_jobs(int fd, const struct rig *server)
{
	struct kxfer_completion done[BATCH];
	struct kxfer_job jobs[BATCH];
	struct rig rig = *server;
	uint32_t nr = 0;
	int i;

	rig.client = -1;
	if (rig_open_client(&rig))
		return 0;
	for (i = 0; i < BATCH; i++)
		jobs[i] = rig_job(&rig, KXFER_OP_WRITE, 0, 0, 64);
	while (nr < JOBS) {
		if (kx_submit(rig.client, jobs, BATCH) != BATCH ||
		    kx_reap(rig.client, done, BATCH, BATCH, RIG_WAIT_MS) != BATCH)
			return 0;
		nr += BATCH;
	}
	return nr;
}

TEST_F_TIMEOUT(memory, of_10000_jobs_comes_back, 90)
{
	long long cost = cost_of(&self->tenant, &self->stage, self->group, run_jobs);

	/* A session, a region of 4 MiB with its mapping and a target stay; no jobs. */
	EXPECT_LE(0, cost);
	EXPECT_GT(1 << 20, cost);
	EXPECT_LE(JOBS, self->tenant.report.nr);
	EXPECT_EQ(0, kx_counter(self->stage.fd, "live_jobs"));
}

#define SESSIONS	256

/* Sessions that each have a page of memory, the same peer, a target, and jobs that have run. */
static uint32_t open_sessions(int fd, const struct rig *server)
{
	uint8_t *page = kx_alloc(PAGE);
	uint32_t region, peer, target, nr = 0;

	for (; nr < SESSIONS; nr++) {
		int session = kx_open();
		struct kxfer_completion done[32];
		struct kxfer_job jobs[32];
		int i;

		if (session < 0 || kx_region_add(session, page, PAGE, 0, &region) ||
		    kx_peer_open(session, kx_addr(kx_address(), 0), &peer) ||
		    kx_target_open(session, peer, server->name, 0, &target))
			break;
		for (i = 0; i < 32; i++)
			jobs[i] = (struct kxfer_job) { .op = KXFER_OP_WRITE, .region = region,
						       .target = target, .length = 64 };
		if (kx_submit(session, jobs, 32) != 32 ||
		    kx_reap(session, done, 32, 32, RIG_WAIT_MS) != 32)
			break;
	}
	return nr;
}

/* Shared objects are not charged to the sessions: neither QPs nor memory of lanes. */
/* On iWARP no job is quick: a session keeps 16 for reuse. */
TEST_F_TIMEOUT(memory, of_a_session_on_a_link_is_limited, 90)
{
	long long limit = strcmp(kx_provider(), "siw") ? 16384 : 18432, cost;
	uint64_t lanes;

	/* This transfer makes the link. */
	ASSERT_EQ(NULL, stage_works(&self->stage));
	lanes = kx_counter(self->stage.fd, "live_lanes");
	cost = cost_of(&self->tenant, &self->stage, self->group, open_sessions);
	EXPECT_EQ(SESSIONS, self->tenant.report.nr);
	EXPECT_EQ(lanes, kx_counter(self->stage.fd, "live_lanes"));
	EXPECT_LT(0, cost);
	/* 12,032 bytes each on 6.1, rxe, including the open file; siw: 16,704. */
	EXPECT_GT(SESSIONS * limit, cost);
}

/* Most of them are rules: 32 of 48 bytes each. */
static uint32_t add_exports(int fd, const struct rig *server)
{
	struct kxfer_rule rules[32] = {};
	uint8_t *page = kx_alloc(PAGE);
	uint32_t region, id, nr = 0;
	char name[32];

	if (kx_region_add(fd, page, PAGE, 0, &region))
		return 0;
	for (; nr < 1000; nr++) {
		snprintf(name, sizeof(name), "rules-%u", nr);
		if (kx_export_add_rules(fd, region, 0, PAGE, KXFER_RIGHT_READ, name, rules,
					32, &id))
			break;
	}
	return nr;
}

TEST_F_TIMEOUT(memory, of_exports_is_charged, 60)
{
	EXPECT_LT(1000 * 32 * 48, cost_of(&self->tenant, &self->stage, self->group,
					  add_exports));
	EXPECT_EQ(1000, self->tenant.report.nr);
}

static void export_scattered(const struct rig *server, struct tenant_report *report)
{
	struct buffer buffer;
	uint32_t region, id;
	int fd = kx_open();

	report->error = -(buffer_alloc(&buffer, BUFFER_SCATTERED, 32 << 20) ?:
			  kx_region_add(fd, buffer.bytes, buffer.length, 0, &region) ?:
			  kx_export_add(fd, region, 0, buffer.length, KXFER_RIGHT_READ,
					"scattered", &id));
}

/* A peer opens the export; a work of the module maps and registers it for the peer. */
TEST_F_TIMEOUT(memory, that_a_peer_causes_is_the_exporters, 60)
{
	uint32_t peer, target;
	long long before, cost;
	int fd;

	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, export_scattered, TAKE_MS));
	ASSERT_EQ(0, self->tenant.report.error);
	before = kernel_bytes(self->group);
	fd = kx_open();
	test_cmd_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	test_cmd_target_open(fd, peer, "scattered", 0, &target);
	cost = kernel_bytes(self->group) - before;
	printf("# opening 8192 scattered pages took %lld KiB\n", cost / 1024);
	/* Extents: 24 bytes for each page. */
	EXPECT_LE(8192 * 24, cost);
	close(fd);
}

/* Opens links with different types of service; peers with the same type share a link. */
static uint32_t open_links(int fd, struct kxfer_addr to)
{
	uint32_t nr;

	for (nr = 0; nr < NR_LINKS; nr++) {
		struct kxfer_peer_open cmd = {
			.size = sizeof(cmd),
			.flags = KXFER_PEER_F_TOS,
			.remote = to,
			.timeout_ms = KX_TIMEOUT_MS,
			.tos = 4 * nr,
		};

		if (kx_call(fd, KXFER_PEER_OPEN, &cmd))
			break;
	}
	return nr;
}

static uint32_t open_links_to_server(int fd, const struct rig *server)
{
	return open_links(fd, kx_addr(kx_address(), 0));
}

/* Memory of this end; the provider allocates the queues on the device. */
TEST_F_TIMEOUT(memory, of_links_is_charged, 60)
{
	self->links = true;
	EXPECT_LT(NR_LINKS * LINK_BYTES, cost_of(&self->tenant, &self->stage, self->group,
						 open_links_to_server));
	EXPECT_EQ(NR_LINKS, self->tenant.report.nr);
}

/* A peer makes the links, in works of the module. */
TEST_F_TIMEOUT(memory, of_accepted_links_is_the_listeners, 60)
{
	struct kxfer_addr at = kx_addr(kx_address(), OWN_PORT);
	int fd = kx_open(), server = kx_open();
	long long before, cost;
	uint64_t listener;

	self->links = true;
	ASSERT_EQ(0, cgroup_write(self->group, "cgroup.procs", "%d", getpid()));
	test_cmd_listen_add(server, at, 0, &listener);
	ASSERT_EQ(0, cgroup_write(CGROUP_ROOT, "cgroup.procs", "%d", getpid()));
	before = kernel_bytes(self->group);
	ASSERT_EQ(NR_LINKS, open_links(fd, at));
	cost = kernel_bytes(self->group) - before;
	printf("# accepting %d links took %lld KiB\n", NR_LINKS, cost / 1024);
	EXPECT_LT(NR_LINKS * LINK_BYTES, cost);
	close(fd);
	close(server);
}

/* One session after the other, full of completions: about a MiB each. */
static void take_until_killed(const struct rig *server, struct tenant_report *report)
{
	while (leave_completions(kx_open(), server))
		;
	report->error = EDQUOT;
}

TEST_F_TIMEOUT(memory, limit_ends_the_greedy_one_only, 90)
{
	const char *wrong;

	ASSERT_EQ(0, stage_limit("max_jobs_per_uid", 1000000));
	ASSERT_EQ(0, cgroup_write(self->group, "memory.max", "16M"));
	/* A kernel without swap has no such file. */
	cgroup_write(self->group, "memory.swap.max", "0");
	/* The tenant is killed before its report. */
	EXPECT_EQ(-1, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				   self->group, take_until_killed, TAKE_MS));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_LE(1, cgroup_number(self->group, "memory.events", "oom_kill "));
	wrong = stage_works(&self->stage);
	EXPECT_EQ(NULL, wrong) TH_LOG("%s", wrong);
}

TEST_HARNESS_MAIN
