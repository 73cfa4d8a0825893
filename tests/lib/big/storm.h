/* SPDX-License-Identifier: MIT */
/*
 * Storm: load that continues through every failure.
 *
 * A worker is a process with a session of its own. It connects to a server, keeps jobs of all
 * kinds in flight, starts a measuring run now and then (mix.h), and begins again after a
 * failure. Failures are no errors here, because the objects that a worker uses end under it. A
 * run needs an idle lane, so the first worker has a link of its own; the others share one. Each
 * test of the storm collection has a brief form and a full one, which KXFER_STORM=full selects.
 */
#ifndef KXFER_TEST_STORM_H
#define KXFER_TEST_STORM_H

#include "rigs/mix.h"
#include "rigs/rig.h"

#define STORM_MAX_WORKERS	64

/**
 * struct storm - load
 * @group: cgroup of the workers, where its limit kills them first; or NULL
 * @server: rig whose server half is open
 * @nr_jobs: jobs of each worker in flight
 * @done: operations that all workers have done so far
 * @responder: process id of a responder for dedicated connections, or 0
 */
struct storm {
	const char *group;
	const struct rig *server;
	uint32_t nr_jobs;
	uint32_t nr_workers;
	pid_t workers[STORM_MAX_WORKERS];
	struct mix_done *done;
	pid_t responder;
};

uint32_t storm_amount(uint32_t brief, uint32_t full);
int storm_connect(const struct rig *server);
int storm_start(struct storm *storm, const struct rig *server, uint32_t nr_workers,
		uint32_t nr_jobs);
int storm_replace(struct storm *storm, uint32_t worker);
void storm_hush(struct storm *storm);
bool storm_respond(struct storm *storm);
void storm_end(struct storm *storm);
bool storm_blows(int fd, uint32_t ms);

#endif /* KXFER_TEST_STORM_H */
