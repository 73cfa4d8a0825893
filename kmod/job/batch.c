// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: what the jobs of one call have in common is done once for all of them.
 *
 * A call begins a batch, and with that reserves places among the session's jobs for
 * as many as it brings. A job that is ready goes into the batch; a flush counts all
 * that are in it as users of what they name and hands them to the session and to
 * their lane in one step, from which on they are cancelled, revoked and completed as
 * any other. So between the two lists there is no moment at which a job is in one
 * only: stop_jobs() would take it off a queue in which it is not (job_stop.c).
 *
 * Between begin and end nobody waits for the batch but the session's own calls. Not so
 * for what is in it: a device's removal waits for users of its mappings. So who is
 * about to touch user memory, which may take as long as its owner likes, flushes
 * first; SUBMIT tries before whether it can be had without waiting. And so does who is to
 * make a mapping, for which he may have to wait for such a removal.
 *
 * Context: calls of users, with the session's lock held for reading from begin to
 * end; may sleep if the batch may. Lock order: as in job.c.
 */
#include <linux/err.h>
#include <linux/minmax.h>

#include "base/fault.h"
#include "base/stats.h"
#include "job/batch.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/mailbox.h"
#include "job/ring.h"
#include "job/target.h"
#include "job/trace.h"
#include "job/uring.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/region.h"
#include "node/session.h"
#include "node/user.h"

/**
 * kxfer_batch_begin() - reserve places for jobs
 * @batch: filled in
 * @session: of the caller
 * @want: how many it brings; it may get fewer, and learns so from kxfer_batch_add()
 *
 * Of jobs of SUBMIT, which may sleep; the caller says if it is otherwise.
 */
void kxfer_batch_begin(struct kxfer_batch *batch, struct kxfer_session *session, u32 want)
{
	u32 share = kxfer_user_take_some(session->user, KXFER_SHARE_JOBS, want);

	*batch = (struct kxfer_batch) {
		.session = session,
		.now_ns = ktime_get_ns(),
		.may_sleep = true,
	};
	spin_lock_bh(&session->job_lock);
	batch->places = kxfer_ring_room(session, share);
	WRITE_ONCE(session->nr_jobs, session->nr_jobs + batch->places);
	batch->spares = kxfer_job_take_spares(session, batch->places);
	spin_unlock_bh(&session->job_lock);
	batch->full = batch->places < share ? -EAGAIN : -EDQUOT;
	kxfer_user_return(session->user, KXFER_SHARE_JOBS, share - batch->places);
}

/** kxfer_batch_job() - a job as the user describes it, in no list; or NULL without memory */
struct kxfer_active_job *kxfer_batch_job(struct kxfer_batch *batch,
					 const struct kxfer_job *user)
{
	gfp_t gfp = batch->may_sleep ? GFP_KERNEL : GFP_NOWAIT | __GFP_NOWARN;
	struct kxfer_active_job *job = batch->spares;

	if (kxfer_fault(JOB))
		return NULL;
	if (job)
		batch->spares = job->next;
	else
		job = kxfer_job_alloc(gfp);
	if (!job)
		return NULL;
	kxfer_job_make(job, batch->session, user, batch->now_ns);
	job->uring = batch->uring;
	return job;
}

/**
 * kxfer_batch_mapping() - the mapping that a job uses
 * @batch: that the job will be in; what is in it before is flushed if the mapping has to
 *	be made
 * @region: of the session
 * @dev: of the job's link
 *
 * Return: as kxfer_mapping_get(); NULL if it is still to be made and @batch may not sleep.
 */
struct kxfer_mapping *kxfer_batch_mapping(struct kxfer_batch *batch,
					  struct kxfer_region *region,
					  struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping = batch->mapping;

	if (!mapping || mapping->region != region || mapping->dev != dev) {
		mapping = kxfer_mapping_find(region, dev);
		if (!mapping && batch->may_sleep) {
			/* Who removes a device lets go when its mappings have no users. */
			kxfer_batch_flush(batch);
			mapping = kxfer_mapping_get(region, dev);
		}
		batch->mapping = IS_ERR(mapping) ? NULL : mapping;
		return mapping;
	}
	atomic_inc(&mapping->users);
	return mapping;
}

/** kxfer_batch_refuse() - the job is not accepted */
void kxfer_batch_refuse(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	if (job->mapping)
		kxfer_mapping_put(job->mapping, 1);
	batch->mapping = NULL;
	job->next = batch->spares;
	batch->spares = job;
}

/**
 * kxfer_batch_add() - the job is accepted
 * @batch: whose it is
 * @job: with all that it names; with a status if it is to end at once
 *
 * What was queued on another link before is posted. Return: 0, or -EAGAIN or -EDQUOT
 * if there is no place for it: then it is to be refused.
 */
int kxfer_batch_add(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	if (!batch->places)
		return batch->full;
	if (job->target && job->target->flow != batch->flow) {
		kxfer_batch_flush(batch);
		batch->flow = job->target->flow;
	}
	batch->longest = max(batch->longest, job->length);
	batch->places--;
	batch->nr++;
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
	atomic_add(nr, &job->target->link->nr_jobs);
}

/* Before anybody can complete one of them. */
static void count_users(const struct kxfer_batch *batch)
{
	const struct kxfer_active_job *first = batch->jobs.first, *job;
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
	use_objects(first, nr);
	kxfer_stat_add(KXFER_STAT_LIVE_JOBS, batch->nr);
	kxfer_stat_add(KXFER_STAT_JOBS_SUBMITTED, batch->nr);
}

/* Called with the session's job_lock and, if it has one, the lock of the lane held. */
static void hand_over(struct kxfer_batch *batch, struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job, *next;

	for (job = batch->jobs.first; job; job = next) {
		next = job->next;
		list_add_tail(&job->session_node, &batch->session->jobs);
		if (job->mailbox && job->uring)
			kxfer_uring_set_recv(job->uring, job);
		if (job->target && !job->status)
			kxfer_job_start(job, batch->lane, batch->at_once, ended);
		else if (job->mailbox)
			kxfer_mailbox_receive(job, ended);
		else
			kxfer_job_list_add(ended, job);
	}
	batch->jobs.first = NULL;
	batch->nr = 0;
	batch->longest = 0;
}

/*
 * The lane's doorbell is rung without job_lock, which those who complete jobs on other
 * CPUs want. Both locks are left before softirqs run, in which a soft provider works.
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
	spin_unlock_bh(&batch->lane->lock);
	local_bh_enable();
}

/**
 * kxfer_batch_flush() - hand over what is in the batch
 * @batch: afterwards without jobs and mapping
 *
 * What is to end at once has ended.
 */
void kxfer_batch_flush(struct kxfer_batch *batch)
{
	struct kxfer_session *session = batch->session;
	struct kxfer_job_list ended = {};

	batch->mapping = NULL;
	if (!batch->nr)
		return;
	count_users(batch);
	if (batch->flow) {
		hand_over_to_lane(batch, &ended);
	} else {
		spin_lock_bh(&session->job_lock);
		hand_over(batch, &ended);
		spin_unlock_bh(&session->job_lock);
	}
	kxfer_job_complete_all(&ended, 0, batch->now_ns);
}

/** kxfer_batch_end() - give back what is left; what is in it was flushed */
void kxfer_batch_end(struct kxfer_batch *batch)
{
	struct kxfer_session *session = batch->session;

	if (batch->places) {
		kxfer_user_return(session->user, KXFER_SHARE_JOBS, batch->places);
		spin_lock_bh(&session->job_lock);
		WRITE_ONCE(session->nr_jobs, session->nr_jobs - batch->places);
		/* Who waits does not wait for these any more. */
		wake_up(&session->wait);
		spin_unlock_bh(&session->job_lock);
	}
	if (batch->spares)
		kxfer_job_free(session, batch->spares);
}
