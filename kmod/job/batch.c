// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: work that the jobs of one call have in common is done once for all of them.
 *
 * A call begins a batch, which reserves places among the session's jobs for as many as
 * the call brings. An accepted job goes into the batch. A flush counts the jobs of the batch
 * as users of the objects that they name. Then it hands them to the session and to their
 * lane in one step; from there on they are cancelled, revoked and completed as any other.
 * So a job is never in only one of the two lists; else stop_jobs() would take it off a queue
 * that it is not in (job_stop.c).
 *
 * Between begin and end only the session's own calls wait for the batch. But jobs in the batch
 * are users of mappings, for which a device's removal waits. So the batch is flushed before
 * user memory is touched, which may fault for as long as its owner likes (SUBMIT first tries
 * without faulting), and before a mapping is made, which takes long for a large region.
 *
 * Context: calls of users, with the session's lock held for reading from begin to
 * end; may sleep if the batch may. Lock order: as in job.c.
 */
#include <linux/err.h>
#include <linux/minmax.h>

#include "base/fault.h"
#include "base/stats.h"
#include "job/batch.h"
#include "job/completion.h"
#include "job/done.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/line.h"
#include "job/mailbox.h"
#include "job/submit.h"
#include "job/target.h"
#include "job/trace.h"
#include "job/uring.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/mapping.h"
#include "node/region.h"
#include "node/session.h"
#include "node/user.h"

static gfp_t gfp_of(const struct kxfer_batch *batch)
{
	return batch->may_sleep ? GFP_KERNEL : GFP_NOWAIT | __GFP_NOWARN;
}

/* What a caller that found no memory returns. */
static int without_memory(const struct kxfer_batch *batch)
{
	return batch->may_sleep ? -ENOMEM : KXFER_WOULD_SLEEP;
}

/**
 * kxfer_batch_begin() - reserve places for jobs
 * @batch: batch to fill in
 * @session: session of the caller
 * @want: number of jobs; with fewer places kxfer_batch_add() returns an error for the rest
 * @may_sleep: the caller may sleep
 *
 * The batch has no io_uring command, as for SUBMIT; other callers change that.
 */
void kxfer_batch_begin(struct kxfer_batch *batch, struct kxfer_session *session, u32 want,
		       bool may_sleep)
{
	u32 share = kxfer_user_take_some(session->user, KXFER_SHARE_JOBS, want);
	int ret;

	*batch = (struct kxfer_batch) {
		.session = session,
		.now_ns = ktime_get_ns(),
		.may_sleep = may_sleep,
	};
	spin_lock_bh(&session->job_lock);
	ret = kxfer_done_grow(session, share, gfp_of(batch) | __GFP_ACCOUNT);
	batch->places = kxfer_done_room(session, share);
	kxfer_job_reserve_locked(session, batch->places);
	batch->spares = kxfer_job_take_spares(session, batch->places);
	spin_unlock_bh(&session->job_lock);
	batch->full = batch->places == share ? -EDQUOT : ret ? without_memory(batch) : -EAGAIN;
	kxfer_user_return(session->user, KXFER_SHARE_JOBS, share - batch->places);
}

/** kxfer_batch_job() - make the job that the user describes, in no list; NULL without memory */
struct kxfer_active_job *kxfer_batch_job(struct kxfer_batch *batch,
					 const struct kxfer_job *user)
{
	struct kxfer_active_job *job = batch->spares;

	if (kxfer_fault(JOB))
		return NULL;
	if (job)
		batch->spares = job->next;
	else
		job = kxfer_job_alloc(gfp_of(batch));
	if (!job)
		return NULL;
	kxfer_job_make(job, batch->session, user, batch->now_ns);
	job->uring = batch->uring;
	return job;
}

/**
 * kxfer_batch_find_mapping() - find the mapping that a job uses, and count the job as its user
 * @batch: batch that the job will join
 * @region: region of the session
 * @dev: device of the job's link
 *
 * Return: the mapping; NULL: it is not made yet.
 */
struct kxfer_mapping *kxfer_batch_find_mapping(struct kxfer_batch *batch,
					       struct kxfer_region *region,
					       struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping = batch->mapping;

	if (mapping && mapping->region == region && mapping->dev == dev) {
		atomic_inc(&mapping->users);
		return mapping;
	}
	batch->mapping = kxfer_mapping_find(region, dev);
	return batch->mapping;
}

/**
 * kxfer_batch_make_mapping() - flush a batch, then make the mapping that a job uses
 * @batch: batch that the job will join, and that may sleep
 * @region: region of the session
 * @dev: device of the job's link
 *
 * Making it takes time in proportion to the region. The jobs in the batch do not wait for it,
 * and neither does what waits for them. Return: as kxfer_mapping_get().
 */
struct kxfer_mapping *kxfer_batch_make_mapping(struct kxfer_batch *batch,
					       struct kxfer_region *region,
					       struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping;

	kxfer_batch_flush(batch);
	mapping = kxfer_mapping_get(region, dev);
	batch->mapping = IS_ERR(mapping) ? NULL : mapping;
	return mapping;
}

/** kxfer_batch_refuse() - take back a job that is not accepted */
void kxfer_batch_refuse(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	if (job->mapping)
		kxfer_mapping_put(job->mapping, 1);
	batch->mapping = NULL;
	job->next = batch->spares;
	batch->spares = job;
}

/**
 * kxfer_batch_add() - accept a job
 * @batch: batch that made the job
 * @job: job with the objects that it names; with a status if it must end at once
 *
 * Jobs of another flow that are in the batch are flushed first. Return: 0; or -EAGAIN, -EDQUOT,
 * -ENOMEM or KXFER_WOULD_SLEEP if there is no place for the job: then the caller has to refuse it.
 */
int kxfer_batch_add(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	if (!batch->places)
		return batch->full;
	if (job->target && job->target->flow != batch->flow) {
		kxfer_batch_flush(batch);
		batch->flow = job->target->flow;
	}
	batch->places--;
	batch->nr++;
	if (job->mailbox) {
		kxfer_job_list_add(&batch->recvs, job);
		return 0;
	}
	batch->longest = max(batch->longest, job->length);
	kxfer_job_list_add(&batch->jobs, job);
	return 0;
}

static void use_objects(const struct kxfer_active_job *job, int nr)
{
	if (job->region)
		atomic_add(nr, &job->region->users);
	if (job->mailbox)
		atomic_add(nr, &job->mailbox->nr_recvs);
	if (!job->target)
		return;
	atomic_add(nr, &job->target->nr_jobs);
}

/* Called before any job of the list can complete. */
static void count_users(const struct kxfer_job_list *jobs)
{
	const struct kxfer_active_job *first = jobs->first, *job;
	int nr = 0;

	for (job = first; job; job = job->next) {
		if (job->target != first->target || job->region != first->region ||
		    job->mailbox != first->mailbox) {
			use_objects(first, nr);
			first = job;
			nr = 0;
		}
		nr++;
	}
	if (first)
		use_objects(first, nr);
}

/*
 * RECVs that find messages complete before job_lock is dropped. Later messages may be under way to
 * RECVs behind them, in other contexts, and completions come in the order of the messages.
 */
static void hand_over_recvs(struct kxfer_batch *batch)
{
	struct kxfer_session *session = batch->session;
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list received = {};

	spin_lock_bh(&session->job_lock);
	for (job = batch->recvs.first; job; job = next) {
		next = job->next;
		list_add_tail(&job->session_node, &session->jobs);
		if (job->uring)
			kxfer_uring_set_recv(job->uring, job);
		WRITE_ONCE(session->nr_recvs, session->nr_recvs + 1);
		kxfer_mailbox_receive(job, &received);
	}
	kxfer_complete_recvs_locked(session, &received, batch->now_ns);
	spin_unlock_bh(&session->job_lock);
	batch->recvs.first = NULL;
}

/* Called with the session's job_lock held, and the lane's lock if the batch has a flow. */
static void hand_over(struct kxfer_batch *batch, struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job, *next;

	for (job = batch->jobs.first; job; job = next) {
		next = job->next;
		list_add_tail(&job->session_node, &batch->session->jobs);
		if (job->target && kxfer_line_takes(job, batch->lane))
			continue;
		if (job->target && !job->status)
			kxfer_job_start(job, batch->lane, batch->at_once, ended);
		else
			kxfer_job_list_add(ended, job);
	}
	batch->jobs.first = NULL;
	batch->longest = 0;
}

/*
 * The lane's doorbell is rung without job_lock, which completions on other CPUs need. Both
 * locks are dropped before softirqs run, because a soft provider works in them.
 */
static void hand_over_to_lane(struct kxfer_batch *batch, struct kxfer_job_list *ended)
{
	struct kxfer_session *session = batch->session;
	u32 nr = batch->nr;

	local_bh_disable();
	spin_lock(&session->job_lock);
	batch->lane = kxfer_flow_lock_for(batch->flow, batch->longest);
	hand_over(batch, ended);
	spin_unlock(&session->job_lock);
	if (batch->at_once)
		kxfer_job_pump_locked(batch->lane);
	trace_kxfer_handed_over(session, nr);
	spin_unlock(&batch->lane->lock);
	local_bh_enable();
}

/**
 * kxfer_batch_flush() - hand over the jobs in the batch
 * @batch: has no jobs and no mapping afterwards
 *
 * On return the jobs that must end at once have completed.
 */
void kxfer_batch_flush(struct kxfer_batch *batch)
{
	struct kxfer_session *session = batch->session;
	struct kxfer_job_list ended = {};

	batch->mapping = NULL;
	if (!batch->nr)
		return;
	count_users(&batch->jobs);
	count_users(&batch->recvs);
	kxfer_stat_add(KXFER_STAT_JOBS_SUBMITTED, batch->nr);
	if (batch->recvs.first)
		hand_over_recvs(batch);
	if (batch->jobs.first && batch->flow) {
		hand_over_to_lane(batch, &ended);
	} else if (batch->jobs.first) {
		spin_lock_bh(&session->job_lock);
		hand_over(batch, &ended);
		spin_unlock_bh(&session->job_lock);
	}
	batch->nr = 0;
	kxfer_complete_all(&ended, 0, batch->now_ns);
}

/** kxfer_batch_end() - give back unused places and spares; the batch was flushed */
void kxfer_batch_end(struct kxfer_batch *batch)
{
	struct kxfer_session *session = batch->session;

	if (batch->places) {
		kxfer_user_return(session->user, KXFER_SHARE_JOBS, batch->places);
		spin_lock_bh(&session->job_lock);
		WRITE_ONCE(session->nr_jobs, session->nr_jobs - batch->places);
		/* Waiters for completions no longer count on these places. */
		wake_up(&session->wait);
		spin_unlock_bh(&session->job_lock);
	}
	if (batch->spares)
		kxfer_job_free(session, batch->spares);
}
