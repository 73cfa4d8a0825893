// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of a session until they are taken: a ring of places.
 *
 * The completion of a job is written into the next place when the job ends, and the job itself is
 * needed no more. REAP and SUBMIT copy completions from there (reap.c). A session with a
 * completion ring (ring.c) has its places in the memory that it shares with its process.
 *
 * There is always room, as a proof. A session has nr_jobs jobs in flight and nr_done completions
 * that are not taken.
 *  1. A job is accepted only while nr_jobs + nr_done is below the number of places
 *     (kxfer_done_room()): it has a place before it begins.
 *  2. Jobs that end move from nr_jobs to nr_done. The completions that are not taken are in the
 *     nr_done places before done_tail: the places written now are others.
 *  3. Taking completions only decreases nr_done; kxfer_done_grow() keeps those that are there.
 *
 * The places of a session grow with the jobs that it has in flight, up to its limit, and stay
 * until it ends.
 *
 * Context: growing may sleep, as @gfp says. All else runs under job_lock, possibly in a softirq.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "job/done.h"
#include "job/ring.h"

#define FEWEST	32	/* places of a session that has had a job */

static u32 free_places(const struct kxfer_session *session)
{
	return session->done_entries - session->nr_jobs - session->nr_done;
}

/**
 * kxfer_done_room() - how many more jobs a session may have, with their completions
 * @session: session whose job_lock the caller holds
 * @want: most that the caller needs
 *
 * There may be more after kxfer_done_grow().
 */
u32 kxfer_done_room(struct kxfer_session *session, u32 want)
{
	if (free_places(session) >= want)
		return want;
	/* Only look at what the reader of a ring has read since when it matters. */
	kxfer_ring_look_locked(session);
	return min(want, free_places(session));
}

/** kxfer_done_has_room() - whether one more job is within the limit; with job_lock held */
bool kxfer_done_has_room(struct kxfer_session *session)
{
	kxfer_ring_look_locked(session);
	return session->nr_jobs + session->nr_done < session->max_jobs;
}

/* Places that @want more jobs need, within the limit. Called with job_lock held. */
static u32 needed(const struct kxfer_session *session, u32 want)
{
	u32 nr = session->nr_jobs + session->nr_done + want;

	return roundup_pow_of_two(clamp_t(u32, nr, FEWEST, session->max_jobs));
}

/* Called with job_lock held. Return: memory to free. */
static void *use_places(struct kxfer_session *session, struct kxfer_completion *places,
			u32 entries)
{
	void *old = session->done;
	u32 i, first = session->done_tail - session->nr_done;

	if (session->ring || entries <= session->done_entries)
		return places;
	for (i = 0; i < session->nr_done; i++)
		places[(first + i) & (entries - 1)] = *kxfer_done_at(session, i);
	session->done = places;
	session->done_entries = entries;
	return old;
}

static bool is_short(const struct kxfer_session *session, u32 want)
{
	return !session->ring && needed(session, want) > session->done_entries;
}

/**
 * kxfer_done_grow() - make places for completions
 * @session: session whose job_lock the caller holds; it is dropped and taken again meanwhile
 * @want: number of further jobs
 * @gfp: how to allocate
 *
 * Other threads may have used new places before the lock is taken again: then there are more.
 * Return: 0: there are places, as far as the limit allows; -ENOMEM: there are fewer.
 */
int kxfer_done_grow(struct kxfer_session *session, u32 want, gfp_t gfp)
	__must_hold(&session->job_lock)
{
	struct kxfer_completion *places;
	void *unused;
	u32 entries;

	while (is_short(session, want)) {
		entries = needed(session, want);
		spin_unlock_bh(&session->job_lock);
		places = kxfer_try_alloc(DONE, kvmalloc_array(entries, sizeof(*places), gfp));
		spin_lock_bh(&session->job_lock);
		if (!places)
			return -ENOMEM;
		unused = use_places(session, places, entries);
		spin_unlock_bh(&session->job_lock);
		kvfree(unused);
		spin_lock_bh(&session->job_lock);
	}
	return 0;
}

/** kxfer_done_end() - free the places of a session that has no job; a ring keeps its own */
void kxfer_done_end(struct kxfer_session *session)
{
	if (!session->ring)
		kvfree(session->done);
}
