// SPDX-License-Identifier: MIT
/*
 * Tenants: different users of one node; see tenant.h.
 */
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/tenant.h"
#include "harness/module.h"

#define NR_FILES	16384	/* open files of a tenant; above the module's own limit */
#define REPLUG_MS	30000

/* ---- processes ---- */

static int become(uid_t uid)
{
	/* A change of the uid clears PR_SET_PDEATHSIG, so it is set afterwards. */
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return 0;
}

static int enter_cgroup(const char *cgroup)
{
	char path[256];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, "0", 1) != 1)
		ret = -errno;
	close(fd);
	return ret;
}

static void leave_to_parent(const struct rig *server)
{
	if (server->server >= 0)
		close(server->server);
	if (server->client >= 0)
		close(server->client);
}

static void run_tenant(const struct rig *server, uid_t uid, const char *cgroup,
		       tenant_take_fn take, int out)
{
	struct rlimit files = { NR_FILES, NR_FILES };
	struct tenant_report report = {};

	leave_to_parent(server);
	if (setrlimit(RLIMIT_NOFILE, &files) || (cgroup && enter_cgroup(cgroup)) ||
	    become(uid))
		_exit(1);
	take(server, &report);
	if (write(out, &report, sizeof(report)) != sizeof(report))
		_exit(1);
	for (;;)
		pause();
}

/**
 * tenant_start() - start a tenant and wait until it has taken all it can
 * @tenant: out
 * @server: server that the tenant may use; its descriptors are closed in the tenant
 * @uid: uid of the tenant
 * @cgroup: folder of the tenant's cgroup, or NULL
 * @take: function that takes objects
 * @ms: time to wait
 *
 * Return: 0, or -1 if the tenant died or took too long. tenant_end() is needed in either case.
 */
int tenant_start(struct tenant *tenant, const struct rig *server, uid_t uid,
		 const char *cgroup, tenant_take_fn take, uint32_t ms)
{
	struct pollfd poller = { .events = POLLIN };
	int ends[2], ret = -1;

	tenant->report = (struct tenant_report) {};
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	tenant->pid = fork();
	if (!tenant->pid) {
		close(ends[0]);
		run_tenant(server, uid, cgroup, take, ends[1]);
	}
	close(ends[1]);
	poller.fd = ends[0];
	if (tenant->pid > 0 && poll(&poller, 1, ms) == 1 &&
	    read(ends[0], &tenant->report, sizeof(tenant->report)) ==
	    sizeof(tenant->report))
		ret = 0;
	close(ends[0]);
	return ret;
}

/** tenant_end() - kill a tenant, wait. Return: the signal that ended it, or its exit status */
int tenant_end(struct tenant *tenant)
{
	int status;

	if (tenant->pid <= 0)
		return -1;
	kill(tenant->pid, SIGKILL);
	if (waitpid(tenant->pid, &status, 0) != tenant->pid)
		return -1;
	tenant->pid = 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/* WRITEs a pattern, READs it back and compares; begins with opening the node. */
static int transfer(const struct rig *server)
{
	struct pattern pattern = { .seed = getpid() & PATTERN_SEED_MAX, .generation = 1 };
	struct rig rig = *server;
	uint32_t bytes = 65536;
	int ret;

	rig.client = -1;
	rig.options.length = bytes;
	ret = rig_open_client(&rig);
	if (ret)
		return -ret;
	pattern_fill(rig.here.bytes, bytes, &pattern);
	ret = rig_move(&rig, KXFER_OP_WRITE, 0, server->export_length - bytes, bytes);
	if (ret)
		return -ret;
	memset(rig.here.bytes, 0, bytes);
	ret = rig_move(&rig, KXFER_OP_READ, 0, server->export_length - bytes, bytes);
	if (ret)
		return -ret;
	ret = pattern_check(rig.here.bytes, bytes, &pattern, NULL, NULL) ? EILSEQ : 0;
	rig_close(&rig);
	return ret;
}

/**
 * tenant_transfer() - a new user moves and verifies 64 KiB both ways, and leaves
 * @server: server; the last 64 KiB of its export are overwritten
 * @uid: uid of the user
 * @ms: time limit
 * @took_ms: out: time that the user took
 *
 * Return: 0, -ETIMEDOUT, -EILSEQ for wrong bytes, or what failed.
 */
int tenant_transfer(const struct rig *server, uid_t uid, uint32_t ms, uint64_t *took_ms)
{
	uint64_t before = kx_now_ns();
	pid_t pid = fork();
	int status;

	if (!pid) {
		server->server >= 0 ? close(server->server) : 0;
		_exit(become(uid) ? ENOEXEC : transfer(server));
	}
	if (!kx_wait_until(waitpid(pid, &status, WNOHANG) == pid, ms)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return -ETIMEDOUT;
	}
	*took_ms = (kx_now_ns() - before) / 1000000;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* ---- the stage ---- */

/* Leaves the link up, so that closing it later makes no difference. */
static int warm_up(struct stage *stage)
{
	uint64_t took_ms;
	int ret = tenant_transfer(&stage->rig, 0, RIG_WAIT_MS, &took_ms);

	return ret ?: baseline_take(stage->fd, &stage->baseline);
}

/** stage_open() - set a stage up. Return: 0 or -errno */
int stage_open(struct stage *stage)
{
	struct rig_options options = { .length = STAGE_LENGTH };
	int ret;

	if (chmod(KX_NODE, 0666))
		return -errno;
	stage->fd = kx_open();
	if (stage->fd < 0)
		return stage->fd;
	ret = rig_open_server(&stage->rig, &options);
	return ret ?: warm_up(stage);
}

/** stage_close() - close a stage. Return: what is left of the greedy user, or NULL */
const char *stage_close(struct stage *stage)
{
	const char *left = baseline_wait(stage->fd, &stage->baseline, BASELINE_WAIT_MS);

	rig_close(&stage->rig);
	close(stage->fd);
	chmod(KX_NODE, 0600);
	return left;
}

/** stage_works() - check that root and another user can work. Return: NULL, or which cannot */
const char *stage_works(struct stage *stage)
{
	static const uid_t uids[] = { TENANT_OTHER, 0 };
	static char text[128];
	uint64_t took_ms = 0;
	int i, ret;

	for (i = 0; i < 2; i++) {
		ret = tenant_transfer(&stage->rig, uids[i], STAGE_WAIT_MS, &took_ms);
		if (ret) {
			snprintf(text, sizeof(text), "uid %u: %s", uids[i], strerror(-ret));
			return text;
		}
		printf("# uid %u transferred in %llu ms\n", uids[i],
		       (unsigned long long)took_ms);
	}
	return NULL;
}

/** stage_replug() - remove the device and bring it back. Return: NULL if done in time */
const char *stage_replug(struct stage *stage)
{
	const char *device = kx_device(), *provider = kx_provider();
	uint64_t before = kx_now_ns(), took_ms;

	if (baseline_command("timeout %d rdma link del %s", REPLUG_MS / 1000, device))
		return "the device cannot be removed";
	printf("# the device was removed in %llu ms\n",
	       (unsigned long long)(kx_now_ns() - before) / 1000000);
	if (baseline_command("rdma link add %s type %s netdev dummy0", device, provider))
		return "the device cannot be added again";
	/* The module itself makes the listener again. */
	if (!kx_wait_until(!tenant_transfer(&stage->rig, TENANT_OTHER, STAGE_WAIT_MS, &took_ms),
			   STAGE_WAIT_MS))
		return "nobody can transfer after the device came back";
	return NULL;
}

/** stage_limit() - set a parameter of the module. Return: 0 or -errno */
int stage_limit(const char *parameter, unsigned int value)
{
	char path[128], text[16];
	int fd, n, ret = 0;

	snprintf(path, sizeof(path), "/sys/module/kxfer/parameters/%s", parameter);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%u", value);
	if (write(fd, text, n) != n)
		ret = -errno;
	close(fd);
	return ret;
}

/** stage_reload() - reload the module, which has no users now. Return: 0 or -errno */
int stage_reload(void)
{
	uint64_t before = kx_now_ns();
	int ret;

	kx_wait_until(!(ret = module_remove()), 10000);
	if (ret)
		return ret;
	printf("# the module was removed in %llu ms\n",
	       (unsigned long long)(kx_now_ns() - before) / 1000000);
	return module_insert("");
}
