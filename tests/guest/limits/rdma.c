// SPDX-License-Identifier: GPL-2.0
/*
 * The rdma cgroup: the objects of a session on a device are charged to the process that made
 * them, are bounded by the cgroup's limit, and are given back exactly once.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "big/tenant.h"
#include "harness/cgroup.h"
#include "kselftest_harness.h"

#define PAGE	4096UL
#define LENGTH	(8u * 1024 * 1024)
#define TAKE_MS	30000

FIXTURE(rdma)
{
	struct stage stage;
	struct tenant tenant;
	char group[128];
};

FIXTURE_SETUP(rdma)
{
	struct rlimit limit = { 64 << 20, 64 << 20 };

	if (geteuid() || !cgroup_has("rdma"))
		SKIP(return, "needs root and a kernel with the rdma controller");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, stage_open(&self->stage));
	ASSERT_EQ(0, cgroup_create(self->group, sizeof(self->group), "kxfer-rdma", "rdma"));
}

FIXTURE_TEARDOWN(rdma)
{
	const char *left;

	tenant_end(&self->tenant);
	/*
	 * A group that goes with a limit and nothing charged is freed while its device
	 * still lists it (kernel/cgroup/rdma.c, 6.1 to 6.12): the device's removal would
	 * then find freed memory. Without a limit there is nothing to list.
	 */
	cgroup_write(self->group, "rdma.max", "%s hca_handle=max hca_object=max",
		     kx_device());
	left = stage_close(&self->stage);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	EXPECT_EQ(0, cgroup_remove(self->group));
	/* The kernel warns about a unit that is given back twice, or to a removed device. */
	EXPECT_EQ(0, stage_reload());
}

static long long charged(const char *group, const char *what)
{
	return cgroup_number(group, "rdma.current", what);
}

#define EXPECT_CHARGED(handles, objects) do {					\
	EXPECT_EQ(handles, charged(self->group, "hca_handle="));		\
	EXPECT_EQ(objects, charged(self->group, "hca_object="));		\
} while (0)

static int set_limit(const char *group, const char *what, unsigned int value)
{
	return cgroup_write(group, "rdma.max", "%s %s=%u", kx_device(), what, value);
}

/* Memory that tenants export; they are forked. */
static enum buffer_kind exported = BUFFER_SCATTERED;

static int make_export(int fd, const char *name, uint32_t length, uint32_t *id)
{
	static struct buffer memory;
	static uint32_t region;
	int ret = 0;

	if (!memory.bytes) {
		ret = buffer_alloc(&memory, exported, LENGTH) ?:
		      kx_region_add(fd, memory.bytes, LENGTH, KXFER_REGION_F_WRITE, &region);
	}
	return ret ?: kx_export_add(fd, region, 0, length, KXFER_RIGHT_ALL, name, id);
}

/* One export of 8 MiB. */
static void take_export(const struct rig *server, struct tenant_report *report)
{
	uint32_t id;

	report->error = -make_export(kx_open(), "charged", LENGTH, &id);
	report->nr = !report->error;
}

/* Number of registrations that a peer sees. */
static int count_keys(int fd, const char *name, struct kxfer_target_open *open)
{
	uint32_t peer;
	int ret = kx_peer_open(fd, kx_addr(kx_address(), 0), &peer);

	*open = (struct kxfer_target_open) {
		.size = sizeof(*open),
		.peer = peer,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	strcpy((char *)open->name, name);
	return ret ?: kx_call(fd, KXFER_TARGET_OPEN, open);
}

TEST_F_TIMEOUT(rdma, export_is_charged_with_its_registrations, 60)
{
	struct kxfer_target_open open;
	int fd;

	EXPECT_CHARGED(0, 0);
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_export, TAKE_MS));
	ASSERT_EQ(1, self->tenant.report.nr);
	fd = kx_open();
	ASSERT_EQ(0, count_keys(fd, "charged", &open));
	/* The number of registrations is charged, whichever process opened the export. */
	EXPECT_LT(1, open.nr_keys);
	EXPECT_CHARGED(1, open.nr_keys);
	close(fd);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_CHARGED(0, 0);
}

/* Fills the pool for a tenant, which may not. Return: free pages. */
static int fill_pool(int nr)
{
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "r+e");

	if (!pool)
		return 0;
	fprintf(pool, "%d\n", nr);
	rewind(pool);
	if (fscanf(pool, "%d", &nr) != 1)
		nr = 0;
	fclose(pool);
	return nr;
}

TEST_F_TIMEOUT(rdma, export_of_huge_pages_is_charged_with_its_registrations, 60)
{
	struct kxfer_target_open open;
	int fd;

	if (fill_pool(LENGTH / BUFFER_HUGE) < (int)(LENGTH / BUFFER_HUGE))
		SKIP(return, "no huge pages are free");
	exported = BUFFER_HUGETLB;
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_export, TAKE_MS));
	ASSERT_EQ(1, self->tenant.report.nr) TH_LOG("error %d", self->tenant.report.error);
	fd = kx_open();
	ASSERT_EQ(0, count_keys(fd, "charged", &open));
	EXPECT_CHARGED(1, open.nr_keys);
	close(fd);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_CHARGED(0, 0);
	fill_pool(0);
}

/* Makes and withdraws exports. */
static void take_and_give_back(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), i;
	uint32_t id;

	for (i = 0; i < 100 && !report->error; i++)
		report->error = -(make_export(fd, "charged", LENGTH, &id) ?:
				  kx_export_del(fd, id));
	report->nr = i;
}

TEST_F_TIMEOUT(rdma, withdrawal_gives_back, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_and_give_back, TAKE_MS));
	EXPECT_EQ(0, self->tenant.report.error);
	EXPECT_EQ(100, self->tenant.report.nr);
	/* The session still uses the device. */
	EXPECT_CHARGED(1, 0);
}

static void take_refused_name(const struct rig *server, struct tenant_report *report)
{
	uint32_t id;

	report->error = -make_export(kx_open(), server->name, LENGTH, &id);
}

TEST_F_TIMEOUT(rdma, refused_export_gives_back, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_refused_name, TAKE_MS));
	EXPECT_EQ(EEXIST, self->tenant.report.error);
	EXPECT_CHARGED(1, 0);
}

/* Exports of a page, one registration each. */
static void take_small_exports(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), ret;
	char name[32];
	uint32_t id;

	do {
		snprintf(name, sizeof(name), "charged-%u", report->nr);
		ret = make_export(fd, name, PAGE, &id);
		if (!ret)
			report->nr++;
	} while (!ret);
	report->error = -ret;
	/* An export that does not fit as a whole keeps no registration. */
	report->more_error = -make_export(fd, "large", LENGTH, &id);
}

TEST_F_TIMEOUT(rdma, limit_bounds_exports, 60)
{
	const char *wrong;

	ASSERT_EQ(0, set_limit(self->group, "hca_object", 10));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_small_exports, TAKE_MS));
	EXPECT_EQ(10, self->tenant.report.nr);
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	EXPECT_EQ(EDQUOT, self->tenant.report.more_error);
	EXPECT_CHARGED(1, 10);
	wrong = stage_works(&self->stage);
	EXPECT_EQ(NULL, wrong) TH_LOG("%s", wrong);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_CHARGED(0, 0);
}

static void take_large_export_first(const struct rig *server, struct tenant_report *report)
{
	uint32_t id;
	int fd = kx_open();

	report->error = -make_export(fd, "large", LENGTH, &id);
	report->more_error = -make_export(fd, "small", PAGE, &id);
}

TEST_F_TIMEOUT(rdma, export_that_does_not_fit_leaves_nothing, 60)
{
	ASSERT_EQ(0, set_limit(self->group, "hca_object", 2));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_large_export_first, TAKE_MS));
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	EXPECT_EQ(0, self->tenant.report.more_error);
	EXPECT_CHARGED(1, 1);
}

static void take_peers(const struct rig *server, struct tenant_report *report)
{
	uint32_t peer;
	int ret;

	do {
		ret = kx_peer_open(kx_open(), kx_addr(kx_address(), 0), &peer);
		if (!ret)
			report->nr++;
	} while (!ret);
	report->error = -ret;
}

TEST_F_TIMEOUT(rdma, limit_bounds_sessions_on_a_device, 60)
{
	const char *wrong;

	ASSERT_EQ(0, set_limit(self->group, "hca_handle", 3));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_peers, TAKE_MS));
	EXPECT_EQ(3, self->tenant.report.nr);
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	/* The shared link is charged to no cgroup. */
	EXPECT_CHARGED(3, 0);
	wrong = stage_works(&self->stage);
	EXPECT_EQ(NULL, wrong) TH_LOG("%s", wrong);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_CHARGED(0, 0);
}

TEST_F_TIMEOUT(rdma, device_takes_its_charges_along, 60)
{
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_export, TAKE_MS));
	EXPECT_LT(1, charged(self->group, "hca_object="));
	EXPECT_EQ(NULL, stage_replug(&self->stage));
	/* The export still works. It was made before the new device, so it is not charged. */
	EXPECT_CHARGED(0, 0);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_CHARGED(0, 0);
}

/* A charge stays with the group that was charged. */
TEST_F_TIMEOUT(rdma, charge_stays_when_the_process_moves, 60)
{
	long long objects;

	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY,
				  self->group, take_export, TAKE_MS));
	objects = charged(self->group, "hca_object=");
	ASSERT_EQ(0, cgroup_write(CGROUP_ROOT, "cgroup.procs", "%d", self->tenant.pid));
	EXPECT_CHARGED(1, objects);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	EXPECT_CHARGED(0, 0);
}

TEST_HARNESS_MAIN
