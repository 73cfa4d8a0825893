// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts: which user is charged for an object, and whether one user can charge objects to
 * another. One user exhausts each account: as many mapped users of its user namespaces, and
 * through files that children have inherited or that were sent. The sum is read from outside:
 * the counters of the module, and the pins of the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/tenant.h"
#include "harness/baseline.h"
#include "kselftest_harness.h"

#define PAGE		4096UL
#define TAKE_MS		120000
#define MAPPED		4		/* mapped users of the namespace */
#define SUBUIDS		100000u		/* first subuid of the first user in /etc/subuid */
#define NODE_SESSIONS	4096
#define RESERVED	256		/* sessions reserved for CAP_SYS_RESOURCE */
#define CHILDREN	20
/*
 * With two data lanes; 1,370 of it are rxe's queues. Measured: 2,190 to 2,340 on x86-64, up to
 * 2,586 on s390x.
 */
#define PAIR_KIB	2560
#define PAIR_S390X_KIB	2816
#define PAIR_SIW_KIB	1792		/* a pair with a TCP socket for each QP */
#define LIMIT_PAGES	16UL		/* RLIMIT_MEMLOCK of these tests */

/* ---- users of a user namespace ---- */

/* Takes objects as one of the mapped users; @nr of all reports are added. */
typedef void (*take_fn)(struct tenant_report *report);

static take_fn take_of_each;

static int write_map(pid_t pid, const char *file)
{
	char path[64], text[64];
	int fd, n, ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "0 %u 1\n1 %u 1000\n", TENANT_GREEDY, SUBUIDS);
	if (write(fd, text, n) != n)
		ret = -errno;
	close(fd);
	return ret;
}

/* Does the same as newuidmap(1), with root's rights. Runs in a child and reports no result. */
static pid_t start_mapper(pid_t pid, int go)
{
	pid_t mapper = fork();
	char c;

	if (mapper)
		return mapper;
	if (read(go, &c, 1) != 1)
		_exit(1);
	_exit(write_map(pid, "uid_map") || write_map(pid, "gid_map"));
}

/* A user of the namespace: takes, reports, holds. */
static void run_mapped(uid_t uid, int out)
{
	struct tenant_report report = {};

	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(1);
	take_of_each(&report);
	if (write(out, &report, sizeof(report)) != sizeof(report))
		_exit(1);
	for (;;)
		pause();
}

/* Takes as one mapped user after the other. */
static void take_as_mapped(struct tenant_report *sum)
{
	struct tenant_report report;
	int ends[2];
	uid_t uid;

	if (pipe2(ends, O_CLOEXEC))
		return;
	for (uid = 0; uid < MAPPED; uid++) {
		if (!fork())
			run_mapped(uid, ends[1]);
		if (read(ends[0], &report, sizeof(report)) != sizeof(report))
			return;
		sum->nr += report.nr;
		sum->error = report.error;
	}
	/* All mapped users have reported. */
	sum->more = MAPPED;
}

/* The tenant makes a namespace with its own rights, without any capability outside. */
static int enter_namespace(void)
{
	int go[2], status;
	pid_t mapper;
	char c = 0;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	mapper = start_mapper(getpid(), go[0]);
	if (setresgid(TENANT_GREEDY, TENANT_GREEDY, TENANT_GREEDY) ||
	    setresuid(TENANT_GREEDY, TENANT_GREEDY, TENANT_GREEDY) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) || unshare(CLONE_NEWUSER))
		return -errno;
	if (write(go[1], &c, 1) != 1 || waitpid(mapper, &status, 0) != mapper || status)
		return -EIO;
	return setresgid(0, 0, 0) || setresuid(0, 0, 0) ? -errno : 0;
}

/* Needs tenant_start() with uid 0, because root writes the map. */
static void take_in_namespace(const struct rig *server, struct tenant_report *report)
{
	int ret = enter_namespace();

	if (ret)
		report->error = -ret;
	else
		take_as_mapped(report);
}

/* Children of one uid, each with a separate namespace. */
static void take_in_namespaces(const struct rig *server, struct tenant_report *report)
{
	struct tenant_report one;
	int ends[2], i;

	if (pipe2(ends, O_CLOEXEC))
		return;
	for (i = 0; i < 2; i++) {
		if (!fork()) {
			one = (struct tenant_report) {};
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			take_in_namespace(server, &one);
			if (write(ends[1], &one, sizeof(one)) != sizeof(one))
				_exit(1);
			for (;;)
				pause();
		}
		if (read(ends[0], &one, sizeof(one)) != sizeof(one))
			return;
		report->nr += one.nr;
		report->error = one.error;
		report->more += one.more;
	}
}

/* A namespace in the namespace, owned by one of the mapped users. */
static void take_nested(const struct rig *server, struct tenant_report *report)
{
	int ret = enter_namespace();
	FILE *map;

	if (!ret && (setresgid(1, 1, 1) || setresuid(1, 1, 1) || unshare(CLONE_NEWUSER)))
		ret = -errno;
	if (!ret) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Otherwise, after the change of uid, only root could write the map. */
		prctl(PR_SET_DUMPABLE, 1);
		map = fopen("/proc/self/uid_map", "w");
		if (!map || fprintf(map, "0 1 1\n") < 0 || fclose(map))
			ret = -EIO;
	}
	if (ret)
		report->error = -ret;
	else
		take_of_each(report);
}

static bool has_namespaces(void)
{
	return !access("/proc/self/ns/user", F_OK);
}

FIXTURE(accounts)
{
	struct stage stage;
	struct tenant tenant;
	bool links;	/* links of more than one kind were made */
};

FIXTURE_SETUP(accounts)
{
	if (geteuid())
		SKIP(return, "needs root");
	/* An idle link that the tenant's uid has made before would be charged to it. */
	ASSERT_EQ(0, stage_reload());
	ASSERT_EQ(0, stage_open(&self->stage));
}

FIXTURE_TEARDOWN(accounts)
{
	const char *left;

	tenant_end(&self->tenant);
	left = stage_close(&self->stage);
	/* Links stay up for half a minute after their last user. */
	if (!self->links)
		EXPECT_EQ(NULL, left) TH_LOG("left behind: %s", left);
	EXPECT_EQ(0, stage_reload());
}

#define EXPECT_OTHERS_WORK() do {						\
	const char *wrong__ = stage_works(&self->stage);			\
										\
	EXPECT_EQ(NULL, wrong__) TH_LOG("%s", wrong__);				\
} while (0)

static void take_sessions(struct tenant_report *report)
{
	struct rlimit files = { 16384, 16384 };
	int fd;

	setrlimit(RLIMIT_NOFILE, &files);
	for (; (fd = kx_open()) >= 0; report->nr++)
		;
	report->error = -fd;
}

/*
 * As a login user with the subuids of /etc/subuid: without the charge to the owner it could
 * take all 4096 sessions of the node.
 */
TEST_F_TIMEOUT(accounts, mapped_users_count_for_who_mapped_them, 150)
{
	if (!has_namespaces())
		SKIP(return, "no user namespaces");
	take_of_each = take_sessions;
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
				  take_in_namespace, TAKE_MS));
	EXPECT_EQ(MAPPED, self->tenant.report.more);
	EXPECT_EQ(1024, self->tenant.report.nr);
	EXPECT_EQ(EMFILE, self->tenant.report.error);
	EXPECT_OTHERS_WORK();
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	/* All sessions are given back, to the owner's account too. */
	ASSERT_TRUE(kx_wait_until(kx_counter(self->stage.fd, "live_sessions") < 16, 10000));
	ASSERT_EQ(0, stage_limit("max_sessions_per_uid", 8));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
				  take_in_namespace, TAKE_MS));
	EXPECT_EQ(8, self->tenant.report.nr);
}

TEST_F_TIMEOUT(accounts, users_of_several_namespaces_count_together, 60)
{
	if (!has_namespaces())
		SKIP(return, "no user namespaces");
	take_of_each = take_sessions;
	ASSERT_EQ(0, stage_limit("max_sessions_per_uid", 8));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
				  take_in_namespaces, TAKE_MS));
	EXPECT_EQ(2 * MAPPED, self->tenant.report.more);
	EXPECT_EQ(8, self->tenant.report.nr);
	EXPECT_EQ(EMFILE, self->tenant.report.error);
	EXPECT_OTHERS_WORK();
}

/* The first user has its whole share, so nothing is left for a user two levels below. */
static void take_nested_after_owner(const struct rig *server, struct tenant_report *report)
{
	int taken[2], end[2], nr;
	char c;

	if (pipe2(taken, O_CLOEXEC) || pipe2(end, O_CLOEXEC))
		return;
	if (!fork()) {
		close(end[1]);
		if (setresgid(TENANT_GREEDY, TENANT_GREEDY, TENANT_GREEDY) ||
		    setresuid(TENANT_GREEDY, TENANT_GREEDY, TENANT_GREEDY))
			_exit(1);
		for (nr = 0; nr < 5 && kx_open() >= 0; nr++)
			;
		/* The child ends with the tenant, whose uid may not kill it. */
		_exit(write(taken[1], "", 1) != 1 || read(end[0], &c, 1));
	}
	if (read(taken[0], &c, 1) == 1)
		take_nested(server, report);
}

TEST_F_TIMEOUT(accounts, nested_users_count_for_all_above_them, 60)
{
	if (!has_namespaces())
		SKIP(return, "no user namespaces");
	take_of_each = take_sessions;
	ASSERT_EQ(0, stage_limit("max_sessions_per_uid", 8));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
				  take_nested_after_owner, TAKE_MS));
	EXPECT_EQ(3, self->tenant.report.nr);
	EXPECT_EQ(EMFILE, self->tenant.report.error);
}

/* Names contain the process id, so that they differ. */
static void take_exports(struct tenant_report *report)
{
	uint8_t *page = kx_alloc(PAGE);
	int fd = kx_open(), ret;
	uint32_t region, id;
	char name[32];

	ret = kx_region_add(fd, page, PAGE, 0, &region);
	while (!ret) {
		snprintf(name, sizeof(name), "e-%d-%u", getpid(), report->nr);
		ret = kx_export_add(fd, region, 0, PAGE, KXFER_RIGHT_READ, name, &id);
		if (!ret)
			report->nr++;
	}
	report->error = -ret;
}

static void take_targets(struct tenant_report *report)
{
	uint32_t peer, target;
	int fd = kx_open(), ret;

	ret = kx_peer_open(fd, kx_addr(kx_address(), 0), &peer);
	while (!ret) {
		ret = kx_target_open(fd, peer, "@ping", 0, &target);
		if (!ret)
			report->nr++;
	}
	report->error = -ret;
}

/* NOPs that are never reaped. */
static void take_jobs(struct tenant_report *report)
{
	struct kxfer_job job = { .op = KXFER_OP_NOP };
	int fd = kx_open(), ret;

	while ((ret = kx_submit(fd, &job, 1)) == 1)
		report->nr++;
	report->error = -ret;
}

/* Each uid has separate service types, and so separate links. */
static void take_links(struct tenant_report *report)
{
	uint32_t tos = geteuid() ? geteuid() % 4 * 50 : 200;
	int fd = kx_open(), ret;

	for (;; report->nr++) {
		struct kxfer_peer_open cmd = {
			.size = sizeof(cmd),
			.remote = kx_addr(kx_address(), 0),
			.flags = KXFER_PEER_F_TOS,
			.tos = tos + report->nr + 1,
			.timeout_ms = KX_TIMEOUT_MS,
		};

		ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);
		if (ret)
			break;
	}
	report->error = -ret;
}

static const struct {
	const char *parameter;
	take_fn take;
} shares[] = {
	{ "max_exports_per_uid", take_exports },
	{ "max_targets_per_uid", take_targets },
	{ "max_jobs_per_uid", take_jobs },
	{ "max_links_per_uid", take_links },
};

TEST_F_TIMEOUT(accounts, every_share_counts_for_who_mapped_them, 120)
{
	unsigned int i;

	if (!has_namespaces())
		SKIP(return, "no user namespaces");
	self->links = true;
	for (i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		ASSERT_EQ(0, stage_limit(shares[i].parameter, 6));
		take_of_each = shares[i].take;
		ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
					  take_in_namespace, TAKE_MS));
		EXPECT_EQ(MAPPED, self->tenant.report.more);
		EXPECT_EQ(6, self->tenant.report.nr) TH_LOG("%s", shares[i].parameter);
		EXPECT_EQ(EDQUOT, self->tenant.report.error);
		EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
	}
}

/* Root of the namespace has CAP_SYS_RESOURCE, but only inside. */
static void take_sessions_anyhow(const struct rig *server, struct tenant_report *report)
{
	if (has_namespaces()) {
		take_in_namespace(server, report);
	} else if (!setresgid(TENANT_GREEDY, TENANT_GREEDY, TENANT_GREEDY) &&
		   !setresuid(TENANT_GREEDY, TENANT_GREEDY, TENANT_GREEDY)) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_sessions(report);
	}
}

/* Shares may exceed the whole, but an administrator can still open the node to fix it. */
TEST_F_TIMEOUT(accounts, last_sessions_are_kept_for_cap_sys_resource, 150)
{
	int fds[RESERVED + 1], nr;

	ASSERT_EQ(0, stage_limit("max_sessions_per_uid", 100000));
	take_of_each = take_sessions;
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL,
				  take_sessions_anyhow, TAKE_MS));
	EXPECT_EQ(EMFILE, self->tenant.report.error);
	EXPECT_EQ(NODE_SESSIONS - RESERVED, kx_counter(self->stage.fd, "live_sessions"));
	for (nr = 0; nr <= RESERVED && (fds[nr] = kx_open()) >= 0; nr++)
		;
	EXPECT_EQ(RESERVED, nr);
	EXPECT_EQ(-EMFILE, fds[nr]);
	while (nr--)
		close(fds[nr]);
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

#define NODE_LINKS	32
#define RESERVED_LINKS	2

static void take_all_links(const struct rig *server, struct tenant_report *report)
{
	take_links(report);
}

/* The last links are reserved too. */
TEST_F_TIMEOUT(accounts, last_links_are_kept_for_cap_sys_resource, 90)
{
	struct tenant root = {};

	self->links = true;
	/* The stage's own link is one of them. */
	ASSERT_EQ(0, stage_limit("max_links", NODE_LINKS));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, TENANT_GREEDY, NULL,
				  take_all_links, TAKE_MS));
	EXPECT_EQ(NODE_LINKS - RESERVED_LINKS - 1, self->tenant.report.nr);
	EXPECT_EQ(EDQUOT, self->tenant.report.error);
	EXPECT_EQ(0, tenant_start(&root, &self->stage.rig, 0, NULL, take_all_links, TAKE_MS));
	EXPECT_EQ(RESERVED_LINKS, root.report.nr);
	EXPECT_EQ(EDQUOT, root.report.error);
	EXPECT_EQ(SIGKILL, tenant_end(&root));
	EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
}

#define COSTED_LINKS	16

static long meminfo_kib(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name));
	if (file)
		fclose(file);
	return kib;
}

/* Memory of the kernel itself. MemAvailable would miss free pages in per-CPU lists. */
static long kernel_kib(void)
{
	return meminfo_kib("SUnreclaim:") + meminfo_kib("VmallocUsed:");
}

static long pair_kib(void)
{
	struct utsname machine;

	if (!strcmp(kx_provider(), "siw"))
		return PAIR_SIW_KIB;
	return !uname(&machine) && !strcmp(machine.machine, "s390x") ? PAIR_S390X_KIB : PAIR_KIB;
}

/* Both ends of each link are here. An accepted link has no queue for jobs. */
TEST_F_TIMEOUT(accounts, memory_of_a_pair_of_links_is_bounded, 90)
{
	long before = kernel_kib(), each;

	self->links = true;
	ASSERT_EQ(0, stage_limit("max_links", 1 + COSTED_LINKS));
	ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, 0, NULL, take_all_links,
				  TAKE_MS));
	ASSERT_EQ(COSTED_LINKS, self->tenant.report.nr);
	each = (kernel_kib() - before) / COSTED_LINKS;
	printf("# %u lanes, %ld KiB a pair of links\n",
	       (unsigned int)kx_counter(self->stage.fd, "live_lanes"), each);
	/* Kernels that check themselves lay red zones around each object. */
	if (kx_slowness() > 1)
		each -= each / 8;
	EXPECT_GT(pair_kib(), each);
}

/* ---- pinned memory ---- */

static long held_pins(int fd)
{
	struct baseline baseline;

	return baseline_take(fd, &baseline) ? -1 : baseline.held_pins;
}

static int limit_memlock(void)
{
	struct rlimit limit = { LIMIT_PAGES * PAGE, LIMIT_PAGES * PAGE };

	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -errno : 0;
}

static void take_memory(struct tenant_report *report)
{
	uint8_t *memory = kx_alloc(LIMIT_PAGES * PAGE);
	int fd = kx_open(), ret;
	uint32_t id;

	while (!(ret = kx_region_add(fd, memory, PAGE, 0, &id)))
		report->nr++;
	report->error = -ret;
}

/* A child pins into the session's file, and ends. Return: number of pages. */
static uint32_t pin_by_child(int fd)
{
	uint32_t id, nr = 0;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		uint8_t *memory = kx_alloc(LIMIT_PAGES * PAGE);

		for (nr = 0; nr < LIMIT_PAGES; nr++)
			if (kx_region_add(fd, memory + nr * PAGE, PAGE, 0, &id))
				break;
		_exit(nr);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* All children pin into one inherited file. */
static void take_by_children(const struct rig *server, struct tenant_report *report)
{
	int fd = kx_open(), i;

	for (i = 0; i < CHILDREN; i++)
		report->nr += pin_by_child(fd);
}

/* Each child pins into a separate file, which its parent keeps open. */
static void take_by_many_files(const struct rig *server, struct tenant_report *report)
{
	int i;

	for (i = 0; i < CHILDREN; i++)
		report->nr += pin_by_child(kx_open());
}

/* All children live, each with a separate account of its address space. */
static void take_side_by_side(const struct rig *server, struct tenant_report *report)
{
	struct tenant_report one;
	int ends[2], i;

	if (pipe2(ends, O_CLOEXEC))
		return;
	for (i = 0; i < CHILDREN; i++) {
		if (!fork()) {
			one = (struct tenant_report) {};
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			take_memory(&one);
			if (write(ends[1], &one, sizeof(one)) != sizeof(one))
				_exit(1);
			for (;;)
				pause();
		}
		if (read(ends[0], &one, sizeof(one)) == sizeof(one))
			report->nr += one.nr;
	}
}

static const struct {
	const char *name;
	tenant_take_fn take;
	uid_t uid;
	bool namespaces;
} ways[] = {
	{ "children, one file", take_by_children, TENANT_GREEDY, false },
	{ "children, many files", take_by_many_files, TENANT_GREEDY, false },
	{ "processes side by side", take_side_by_side, TENANT_GREEDY, false },
	{ "mapped users", take_in_namespace, 0, true },
};

TEST_F_TIMEOUT(accounts, pages_count_where_they_stay, 120)
{
	long before, pinned;
	unsigned int i;

	ASSERT_EQ(0, limit_memlock());
	take_of_each = take_memory;
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (ways[i].namespaces && !has_namespaces())
			continue;
		before = held_pins(self->stage.fd);
		ASSERT_EQ(0, tenant_start(&self->tenant, &self->stage.rig, ways[i].uid, NULL,
					  ways[i].take, TAKE_MS));
		pinned = held_pins(self->stage.fd) - before;
		printf("# %s: %u pages, %ld pins\n", ways[i].name, self->tenant.report.nr,
		       pinned);
		EXPECT_EQ(LIMIT_PAGES, self->tenant.report.nr) TH_LOG("%s", ways[i].name);
		EXPECT_EQ((long)LIMIT_PAGES, pinned);
		EXPECT_EQ(SIGKILL, tenant_end(&self->tenant));
		/* All of it is given back. */
		EXPECT_TRUE(kx_wait_until(held_pins(self->stage.fd) == before, 10000));
	}
}

/* Pins of another user in the file, made by a child of that uid. */
static uint32_t pin_by_other(int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setresuid(0, 0, 0) || setresuid(TENANT_OTHER, TENANT_OTHER, TENANT_OTHER))
			_exit(255);
		_exit(pin_by_child(fd));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* The effective uid opens the file, and is restored afterwards. */
static void take_into_foreign_file(struct tenant_report *report)
{
	uint8_t *memory = kx_alloc(PAGE);
	uint32_t id;
	int fd;

	if (setresuid(0, TENANT_GREEDY, 0))
		_exit(1);
	fd = kx_open();
	report->nr = pin_by_other(fd);
	report->error = -kx_region_add(kx_open(), memory, PAGE, 0, &id);
	if (setresuid(0, TENANT_OTHER, 0) && (setresuid(0, 0, 0) ||
					      setresuid(0, TENANT_OTHER, 0)))
		_exit(1);
	report->more = pin_by_other(kx_open());
	_exit(0);
}

/* Another user that got the file fills the account of the opener, and keeps its own. */
TEST_F_TIMEOUT(accounts, pages_in_a_file_count_for_its_opener, 60)
{
	struct tenant_report *report;
	int status;
	pid_t pid;

	ASSERT_EQ(0, limit_memlock());
	report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, report);
	pid = fork();
	if (!pid)
		take_into_foreign_file(report);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(LIMIT_PAGES, report->nr);
	EXPECT_EQ(ENOMEM, report->error);
	EXPECT_EQ(LIMIT_PAGES, report->more);
}

TEST_HARNESS_MAIN
