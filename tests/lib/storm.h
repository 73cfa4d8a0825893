/* SPDX-License-Identifier: MIT */
/*
 * Storm: load that goes on whatever happens.
 *
 * A worker is a process with a session of its own that connects to a server,
 * keeps jobs of all kinds in flight, has a measuring run now and then (mix.h), and starts
 * anew when that fails. It makes no demands: what it has to do with ends under it. The
 * first one has a link for itself, for a run needs an idle lane; the others share one.
 * Each test of the storm collection has a brief form and a full one, which the
 * environment asks for: KXFER_STORM=full.
 */
#ifndef KXFER_TEST_STORM_H
#define KXFER_TEST_STORM_H

#include "mix.h"
#include "rig.h"

#define STORM_MAX_WORKERS	64

/**
 * struct storm - load
 * @group: cgroup that workers enter, and in which the limit ends them first; or NULL
 * @server: with the server's half open
 * @nr_jobs: of each worker, in flight
 * @done: by all of them, as long as they are there
 * @responder: process of one for dedicated connections, or 0
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
