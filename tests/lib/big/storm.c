// SPDX-License-Identifier: MIT
/* Storm: workers; see storm.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/storm.h"
#include "harness/cgroup.h"
#include "peers/responder.h"

#define MAX_JOBS	256
#define RUN_ONE_IN	8	/* submits; ALONE_ONE_IN: of a worker with a link of its own */
#define ALONE_ONE_IN	2

/** storm_amount() - a count or duration, for the requested form of the storm */
uint32_t storm_amount(uint32_t brief, uint32_t full)
{
	const char *form = getenv("KXFER_STORM");

	return form && !strcmp(form, "full") ? full : brief;
}

/*
 * Waits until all children have ended. Return: whether all succeeded; the first failure kills
 * them.
 */
static bool reap_all(const struct mix *mix, uint32_t nr)
{
	struct kxfer_completion done[MAX_JOBS];
	int n;

	for (; nr; nr -= n) {
		n = kx_reap(mix->rig->client, done, nr, 1, RIG_WAIT_MS);
		if (n <= 0 || !mix_count(mix, done, n))
			return false;
	}
	return true;
}

/* Runs as long as jobs succeed. */
static void use(const struct mix *mix, uint32_t nr, bool alone)
{
	uint32_t run_one_in = alone ? ALONE_ONE_IN : RUN_ONE_IN;
	struct kxfer_job jobs[MAX_JOBS];

	do {
		if (!(rand_r(mix->seed) % run_one_in))
			mix_measure(mix);
		mix_draw(mix, jobs, nr);
	} while (kx_submit(mix->rig->client, jobs, nr) == (int)nr && reap_all(mix, nr));
}

/* First of all, because memory stays charged to the cgroup where it was allocated. */
static void enter_group(const char *group)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (cgroup_write(group, "cgroup.procs", "0") || fd < 0 || write(fd, "1000", 4) != 4)
		_exit(1);
	close(fd);
}

/* A rig for the client's half only. */
static struct rig client_of(const struct rig *server, uint32_t context)
{
	struct rig rig = *server;

	rig.client = -1;
	rig.server = -1;
	memset(&rig.there, 0, sizeof(rig.there));
	rig.there.fd = -1;
	rig.options.context = context;
	return rig;
}

static uint32_t context_of(uint32_t worker)
{
	return worker ? KXFER_CONTEXT_POLLED : KXFER_CONTEXT_UNBOUND;
}

/* ib_core keeps a CQ of its pool until the device is removed, once the CQ was in use. */
static int fill_cq_pool(int observer)
{
	struct kxfer_dedicated_open open = {
		.size = sizeof(open),
		.flags = KXFER_DEDICATED_F_CQ_POOL,
		.context = KXFER_CONTEXT_SOFTIRQ,
		.timeout_ms = KX_TIMEOUT_MS,
		.length = 4096,
		.op = KXFER_OP_READ,
	};
	uint64_t links = kx_counter(observer, "live_links");
	int fd = kx_open(), ret;
	pid_t responder;

	if (fd < 0)
		return fd;
	open.remote = kx_addr(kx_address(), responder_spawn(&responder));
	ret = kx_call(fd, KXFER_DEDICATED_OPEN, &open);
	close(fd);
	responder_kill(&responder);
	if (!ret && !kx_wait_until(kx_counter(observer, "live_links") == links, KX_TIMEOUT_MS))
		ret = -ETIMEDOUT;
	return ret;
}

/**
 * storm_connect() - create what persists (links, a CQ of the pool) before anything is counted
 *
 * Return: 0 or -errno.
 */
int storm_connect(const struct rig *server)
{
	int ret = fill_cq_pool(server->server);
	uint32_t worker;
	struct rig rig;

	for (worker = 0; worker < 2 && !ret; worker++) {
		rig = client_of(server, context_of(worker));
		ret = rig_open_client(&rig) ?: rig_move(&rig, KXFER_OP_READ, 0, 0, 1);
		rig_close(&rig);
	}
	return ret;
}

static void work(const struct storm *storm, uint32_t worker)
{
	unsigned int seed = getpid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (storm->group)
		enter_group(storm->group);
	close(storm->server->server);
	for (;;) {
		struct rig rig = client_of(storm->server, context_of(worker));
		struct mix mix = { .rig = &rig, .done = storm->done, .seed = &seed };

		if (!rig_open_client(&rig) && !mix_open(&mix))
			use(&mix, storm->nr_jobs, !worker);
		rig_close(&rig);
		kx_sleep_ms(20);
	}
}

static int start_worker(struct storm *storm, uint32_t worker)
{
	pid_t pid = fork();

	if (!pid)
		work(storm, worker);
	storm->workers[worker] = pid;
	return pid < 0 ? -errno : 0;
}

/** storm_hush() - end the responder */
void storm_hush(struct storm *storm)
{
	storm->done->port = 0;
	responder_kill(&storm->responder);
}

/** storm_respond() - start a responder for dedicated connections. Return: whether there is one */
bool storm_respond(struct storm *storm)
{
	storm->done->port = responder_spawn(&storm->responder);
	if (!storm->done->port)
		responder_kill(&storm->responder);
	return storm->done->port;
}

/**
 * storm_start() - start workers, and a responder
 * @storm: out; its @group stays
 * @server: rig whose server half is open
 * @nr_workers: number of workers, at most STORM_MAX_WORKERS
 * @nr_jobs: jobs that each worker has in flight, at most 256
 *
 * Return: 0 or -errno.
 */
int storm_start(struct storm *storm, const struct rig *server, uint32_t nr_workers,
		uint32_t nr_jobs)
{
	int ret = 0;

	*storm = (struct storm) {
		.server = server, .nr_jobs = nr_jobs, .group = storm->group,
	};
	storm->done = mmap(NULL, sizeof(*storm->done), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (storm->done == MAP_FAILED) {
		storm->done = NULL;
		return -ENOMEM;
	}
	if (!storm_respond(storm))
		return -EIO;
	while (!ret && storm->nr_workers < nr_workers)
		ret = start_worker(storm, storm->nr_workers++);
	return ret;
}

static void end_worker(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/** storm_replace() - kill one worker and start another. Return: 0 or -errno */
int storm_replace(struct storm *storm, uint32_t worker)
{
	end_worker(storm->workers[worker]);
	return start_worker(storm, worker);
}

/** storm_end() - kill all workers, and wait for their ends */
void storm_end(struct storm *storm)
{
	uint32_t i;

	for (i = 0; i < storm->nr_workers; i++)
		if (storm->workers[i] > 0)
			kill(storm->workers[i], SIGKILL);
	for (i = 0; i < storm->nr_workers; i++)
		end_worker(storm->workers[i]);
	storm->nr_workers = 0;
	if (!storm->done)
		return;
	storm_hush(storm);
	munmap(storm->done, sizeof(*storm->done));
	storm->done = NULL;
}

/** storm_blows() - wait until jobs complete; false if none does in time */
bool storm_blows(int fd, uint32_t ms)
{
	uint64_t before = kx_counter(fd, "jobs_completed");

	return kx_wait_until(kx_counter(fd, "jobs_completed") > before, ms);
}
