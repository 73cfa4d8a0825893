// SPDX-License-Identifier: MIT
/*
 * Load: a process that moves bytes until it is killed; see load.h.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rigs/load.h"

#define DEPTH_MAX	256

struct plan {
	uint64_t there;		/* first byte of its share of the export */
	uint32_t slots;		/* places for a job in the share */
	uint32_t depth;
	uint32_t job_bytes;
};

static int submit_round(struct rig *rig, const struct plan *plan, uint32_t op)
{
	struct kxfer_job jobs[DEPTH_MAX];
	uint32_t i;

	for (i = 0; i < plan->depth; i++) {
		uint64_t at = (uint64_t)(i % plan->slots) * plan->job_bytes;

		jobs[i] = rig_job(rig, op, at, plan->there + at, plan->job_bytes);
	}
	return kx_submit(rig->client, jobs, plan->depth);
}

static int reap_round(struct rig *rig, uint32_t depth)
{
	struct kxfer_completion done[DEPTH_MAX];
	uint32_t i;

	if (kx_reap(rig->client, done, depth, depth, RIG_WAIT_MS) != (int)depth)
		return LOAD_BROKEN;
	for (i = 0; i < depth; i++)
		if (done[i].status)
			return LOAD_BROKEN;
	return 0;
}

/* WRITEs a new generation, READs it back and compares. */
static int one_round(struct rig *rig, const struct plan *plan, int round, int out)
{
	struct pattern pattern = { .seed = getpid() & PATTERN_SEED_MAX, .generation = round & 255 };
	uint32_t bytes = (plan->depth < plan->slots ? plan->depth : plan->slots) * plan->job_bytes;
	int ret;

	pattern_fill(rig->here.bytes, bytes, &pattern);
	if (submit_round(rig, plan, KXFER_OP_WRITE) != (int)plan->depth)
		return LOAD_BROKEN;
	if (write(out, "+", 1) != 1)
		return LOAD_UNREADY;
	ret = reap_round(rig, plan->depth);
	if (ret)
		return ret;
	memset(rig->here.bytes, 0, bytes);
	if (submit_round(rig, plan, KXFER_OP_READ) != (int)plan->depth)
		return LOAD_BROKEN;
	ret = reap_round(rig, plan->depth);
	if (ret)
		return ret;
	return pattern_check(rig->here.bytes, bytes, &pattern, NULL, NULL) ? LOAD_CORRUPT : 0;
}

static int run(const struct rig *server, const struct plan *plan, int out)
{
	struct rig rig = *server;
	int round, ret = 0;

	rig.client = -1;
	if (!plan->slots || rig_open_client(&rig))
		return LOAD_UNREADY;
	for (round = 1; !ret; round++)
		ret = one_round(&rig, plan, round, out);
	return ret;
}

/**
 * load_start() - start a load and wait for its first jobs in flight
 * @load: out
 * @server: rig with the export; the load's buffer has the same length
 * @share: number of its part of the export, 0 to LOAD_SHARES - 1
 * @depth: jobs in flight, at most 256
 * @job_bytes: bytes of each job
 *
 * Return: 0 or -1.
 */
int load_start(struct load *load, const struct rig *server, uint32_t share,
	       uint32_t depth, uint32_t job_bytes)
{
	uint64_t part = server->export_length / LOAD_SHARES;
	struct plan plan = { share * part, part / job_bytes, depth, job_bytes };
	int ends[2];

	if (pipe(ends))
		return -1;
	load->pid = fork();
	if (!load->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent's sessions must not stay open in this process. */
		close(ends[0]);
		if (server->server >= 0)
			close(server->server);
		if (server->client >= 0)
			close(server->client);
		_exit(run(server, &plan, ends[1]));
	}
	close(ends[1]);
	load->pipe = ends[0];
	return load->pid < 0 ? -1 : load_wait_round(load, RIG_WAIT_MS);
}

/** load_wait_round() - wait until the load submits again. Return: 0, or -1 if it does not */
int load_wait_round(struct load *load, uint32_t ms)
{
	struct pollfd poller = { .fd = load->pipe, .events = POLLIN };
	char byte;

	if (poll(&poller, 1, ms) != 1)
		return -1;
	return read(load->pipe, &byte, 1) == 1 ? 0 : -1;
}

/** load_end() - send a signal (0: none), wait. Return: exit status, or -signal that ended it */
int load_end(struct load *load, int signal)
{
	int status;

	if (signal)
		kill(load->pid, signal);
	if (waitpid(load->pid, &status, 0) != load->pid)
		return -1000;
	close(load->pipe);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
