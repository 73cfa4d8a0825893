// SPDX-License-Identifier: MIT
/* Storm: workers; see storm.h. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "storm.h"

#define MAX_JOBS	256
#define BIG_JOB		65536u	/* now and then; the shortest buffer of a rig here */

/** storm_amount() - how many, or how long: of the form that is asked for */
uint32_t storm_amount(uint32_t brief, uint32_t full)
{
	const char *form = getenv("KXFER_STORM");

	return form && !strcmp(form, "full") ? full : brief;
}

static void draw_jobs(const struct rig *rig, struct kxfer_job *jobs, uint32_t nr,
		      unsigned int *seed)
{
	while (nr--) {
		uint64_t length = 1 + rand_r(seed) % (rand_r(seed) % 8 ? 4096 : BIG_JOB);
		uint64_t at = rand_r(seed) % (rig->options.length - length + 1);
		uint32_t op = rand_r(seed) % 2 ? KXFER_OP_READ : KXFER_OP_WRITE;

		jobs[nr] = rig_job(rig, op, at, at, length);
	}
}

/* As long as jobs end well. */
static void use(const struct rig *rig, uint32_t nr, unsigned int *seed)
{
	struct kxfer_completion done[MAX_JOBS];
	struct kxfer_job jobs[MAX_JOBS];
	uint32_t i;

	for (;;) {
		draw_jobs(rig, jobs, nr, seed);
		if (kx_submit(rig->client, jobs, nr) != (int)nr ||
		    kx_reap(rig->client, done, nr, nr, RIG_WAIT_MS) != (int)nr)
			return;
		for (i = 0; i < nr; i++)
			if (done[i].status)
				return;
	}
}

/* Before anything is allocated: a process that moves leaves its memory charged. */
static void enter_group(const char *group)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (cgroup_write(group, "cgroup.procs", "0") || fd < 0 || write(fd, "1000", 4) != 4)
		_exit(1);
	close(fd);
}

static void work(const struct storm *storm)
{
	unsigned int seed = getpid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (storm->group)
		enter_group(storm->group);
	close(storm->server->server);
	for (;;) {
		struct rig rig = *storm->server;

		rig.client = -1;
		rig.server = -1;
		memset(&rig.there, 0, sizeof(rig.there));
		rig.there.fd = -1;
		if (!rig_open_client(&rig))
			use(&rig, storm->nr_jobs, &seed);
		rig_close(&rig);
		kx_sleep_ms(20);
	}
}

static int start_worker(struct storm *storm, uint32_t worker)
{
	pid_t pid = fork();

	if (!pid)
		work(storm);
	storm->workers[worker] = pid;
	return pid < 0 ? -errno : 0;
}

/**
 * storm_start() - start workers
 * @storm: out; its @group stays
 * @server: rig whose server half is open
 * @nr_workers: at most STORM_MAX_WORKERS
 * @nr_jobs: that each has in flight, at most 256
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

/** storm_replace() - kill one and start another. Return: 0 or -errno */
int storm_replace(struct storm *storm, uint32_t worker)
{
	end_worker(storm->workers[worker]);
	return start_worker(storm, worker);
}

/** storm_end() - kill all of them, and wait for their ends */
void storm_end(struct storm *storm)
{
	uint32_t i;

	for (i = 0; i < storm->nr_workers; i++)
		if (storm->workers[i] > 0)
			kill(storm->workers[i], SIGKILL);
	for (i = 0; i < storm->nr_workers; i++)
		end_worker(storm->workers[i]);
	storm->nr_workers = 0;
}

/** storm_blows() - wait until jobs get done; false if none does in time */
bool storm_blows(int fd, uint32_t ms)
{
	uint64_t before = kx_counter(fd, "jobs_completed");

	return kx_wait_until(kx_counter(fd, "jobs_completed") > before, ms);
}
