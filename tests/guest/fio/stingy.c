// SPDX-License-Identifier: MIT
/*
 * libkxfer with little room, for LD_PRELOAD: a session takes ROOM jobs at once and then answers
 * EAGAIN, and every CALLS_TO_EINTR-th submission is interrupted. A caller that submits again though
 * it has not taken a completion since the last EAGAIN spins, and is ended.
 */
#include <kxfer/kxfer.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOM		3
#define CALLS_TO_EINTR	7

static unsigned int in_flight, calls;
static bool was_full;

static void *real(const char *name)
{
	void *library = dlopen("libkxfer.so.0", RTLD_LAZY);
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		fprintf(stderr, "stingy: libkxfer has no %s\n", name);
		abort();
	}
	return found;
}

static void note_reaped(uint32_t nr)
{
	in_flight -= nr;
	if (nr > 0)
		was_full = false;
}

int kxfer_job_submit_wait(struct kxfer_session *session, struct kxfer_submit *args)
{
	int (*submit)(struct kxfer_session *session, struct kxfer_submit *args) =
		real("kxfer_job_submit_wait");
	uint32_t room = ROOM - in_flight;
	int ret;

	if (++calls % CALLS_TO_EINTR == 0)
		return -EINTR;
	if (was_full) {
		fprintf(stderr, "stingy: the caller spins\n");
		abort();
	}
	was_full = args->nr_jobs > room;
	if (room == 0)
		return -EAGAIN;
	if (was_full)
		args->nr_jobs = room;
	ret = submit(session, args);
	if (ret < 0)
		return ret;
	if (args->error == 0 && was_full)
		args->error = EAGAIN;
	in_flight += ret;
	note_reaped(args->reaped);
	return ret;
}

int kxfer_completion_reap(struct kxfer_session *session, struct kxfer_completion *completions,
			  uint32_t nr, uint32_t wait, uint64_t deadline_ns)
{
	int (*reap)(struct kxfer_session *session, struct kxfer_completion *completions,
		    uint32_t nr, uint32_t wait, uint64_t deadline_ns) =
		real("kxfer_completion_reap");
	int ret = reap(session, completions, nr, wait, deadline_ns);

	if (ret > 0)
		note_reaped(ret);
	return ret;
}
