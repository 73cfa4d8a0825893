// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: the end of jobs that are in no list of a lane or a mailbox.
 *
 * A completed job gives back the objects that it names and its place among the session's
 * jobs. Its completion waits in the session to be reaped (reap.c), stands in the completion
 * ring (ring.c), or becomes a CQE of io_uring (uring.c).
 *
 * Context: any but hard interrupts. Lock order: as in job.c.
 */
#include "base/stats.h"
#include "job/completion.h"
#include "job/done.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/latency.h"
#include "job/mailbox.h"
#include "job/ring.h"
#include "job/target.h"
#include "job/trace.h"
#include "job/uring.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/mapping.h"
#include "node/region.h"
#include "node/session.h"
#include "node/user.h"

#define COMPLETE_MAX	64	/* most jobs that end in one hold of a job_lock */

static void count_end(int status)
{
	if (!status)
		kxfer_stat_inc(KXFER_STAT_JOBS_COMPLETED);
	else if (status == -ECANCELED || status == -ETIMEDOUT)
		kxfer_stat_inc(KXFER_STAT_JOBS_CANCELLED);
	else if (status == -EKEYREVOKED)
		kxfer_stat_inc(KXFER_STAT_JOBS_WITHDRAWN);
	else
		kxfer_stat_inc(KXFER_STAT_JOBS_FAILED);
}

static void count_bytes(const struct kxfer_active_job *job)
{
	if (job->completion.op == KXFER_OP_READ)
		kxfer_stat_add(KXFER_STAT_BYTES_READ, job->length);
	else if (job->completion.op == KXFER_OP_WRITE)
		kxfer_stat_add(KXFER_STAT_BYTES_WRITTEN, job->length);
	else if (kxfer_op_is_atomic(job->completion.op))
		kxfer_stat_inc(KXFER_STAT_ATOMICS);
}

static bool same_objects(const struct kxfer_active_job *a, const struct kxfer_active_job *b)
{
	return a->target == b->target && a->region == b->region && a->mapping == b->mapping &&
	       a->mailbox == b->mailbox;
}

/**
 * kxfer_complete_target() - drop uses of a target by jobs that ended
 * @target: target; a waiter may free it after that
 * @nr: number of the jobs
 */
void kxfer_complete_target(struct kxfer_target *target, int nr)
{
	struct kxfer_link *link;

	/* The memory of the link stays until then, not the link. */
	rcu_read_lock();
	link = target->link;
	if (atomic_sub_and_test(nr, &target->nr_jobs) && wq_has_sleeper(&link->wait))
		wake_up_all(&link->wait);
	rcu_read_unlock();
}

/*
 * Drop @nr uses of the objects of a job; a waiter may free them after that. Called with job_lock
 * held.
 */
static void release_objects(const struct kxfer_active_job *job, int nr)
{
	if (job->mapping)
		kxfer_mapping_put(job->mapping, nr);
	if (job->region)
		atomic_sub(nr, &job->region->users);
	if (job->mailbox) {
		WRITE_ONCE(job->session->nr_recvs, job->session->nr_recvs - nr);
		if (atomic_sub_and_test(nr, &job->mailbox->nr_recvs))
			wake_up_var(&job->mailbox->nr_recvs);
	}
	if (job->target)
		kxfer_complete_target(job->target, nr);
}

/*
 * Write the completion into its place; one for io_uring has none. The job is needed no more: @gone
 * gets it. Called with job_lock held.
 */
static void deliver(struct kxfer_session *session, struct kxfer_active_job *job,
		    struct kxfer_active_job **gone)
{
	list_del(&job->session_node);
	if (!job->uring)
		*kxfer_done_next(session) = job->completion;
	job->next = *gone;
	*gone = job;
}

/* Called with job_lock held. Return: number of the jobs that came by io_uring. */
static u32 complete_commands(const struct kxfer_active_job *gone)
{
	const struct kxfer_active_job *job;
	u32 nr = 0;

	for (job = gone; job; job = job->next) {
		if (!job->uring)
			continue;
		kxfer_uring_complete(job->uring, &job->completion);
		nr++;
	}
	return nr;
}

/**
 * kxfer_complete_places() - count completions that were written into their places, and tell
 * @session: session whose job_lock the caller holds
 * @ended: jobs that were counted as in flight, and are no longer
 * @nr: number of the completions
 *
 * The last step: a reader of a ring that sees a completion may at once reuse the objects of its
 * job, without that lock.
 */
void kxfer_complete_places(struct kxfer_session *session, u32 ended, u32 nr)
{
	if (session->ring && nr) {
		kxfer_user_return(session->user, KXFER_SHARE_JOBS, nr);
		kxfer_ring_publish(session);
	}
	/* What a waiter looks at comes after the ring's tail; pairs with kxfer_ring_waited(). */
	smp_store_release(&session->nr_done, session->nr_done + nr);
	/* The same for a waiter that sees that none is in flight. */
	smp_store_release(&session->nr_jobs, session->nr_jobs - ended);
	if (wq_has_sleeper(&session->wait))
		wake_up(&session->wait);
}

static void end_job(struct kxfer_active_job *job, int status, u64 now_ns)
{
	job->completion.status = status;
	job->completion.completed_ns = now_ns;
	if (!status) {
		job->completion.bytes = job->length;
		if (job->target && job->length)
			count_bytes(job);
	}
	count_end(status);
	/* It was open, so it counts. */
	if (job->lane)
		kxfer_latency_count(job->lane->latencies, &job->completion);
	trace_kxfer_job_completed(job->session, &job->completion, job->length, job->lane,
				  job->target);
}

/* End jobs at the head of the list that are of one session, whose job_lock is held. */
static void complete_some(struct kxfer_session *session, struct kxfer_job_list *jobs,
			  int status, u64 now_ns)
{
	struct kxfer_active_job *job = jobs->first, *next, *gone = NULL;
	const struct kxfer_active_job *first = job;
	u32 nr_same = 0, nr = 0, nr_uring;

	for (; job && job->session == session && nr < COMPLETE_MAX; job = next) {
		next = job->next;
		if (!same_objects(first, job)) {
			release_objects(first, nr_same);
			first = job;
			nr_same = 0;
		}
		nr_same++;
		nr++;
		end_job(job, job->status ?: status, now_ns);
		/* job_stop.c relies on it: the lane of a job in the session's list exists. */
		deliver(session, job, &gone);
		if (job->completion.status && job->target)
			job->target->flow->cut_at = session->done_tail;
	}
	jobs->first = job;
	release_objects(first, nr_same);
	nr_uring = complete_commands(gone);
	kxfer_user_return(session->user, KXFER_SHARE_JOBS, nr_uring);
	kxfer_job_free_locked(session, gone);
	kxfer_complete_places(session, nr, nr - nr_uring);
}

/*
 * Take job_lock for that; bottom halves are off. The session cannot go before job_lock is dropped
 * here, because its end reads nr_jobs under that lock.
 */
static void complete_session(struct kxfer_job_list *jobs, int status, u64 now_ns)
{
	struct kxfer_session *session = jobs->first->session;

	spin_lock(&session->job_lock);
	complete_some(session, jobs, status, now_ns);
	spin_unlock(&session->job_lock);
}

/**
 * kxfer_complete_recvs_locked() - complete RECVs that found their messages
 * @session: session of all of them; the caller holds its job_lock
 * @recvs: RECVs without a mapping; empty afterwards
 * @now_ns: ktime_get_ns()
 */
void kxfer_complete_recvs_locked(struct kxfer_session *session, struct kxfer_job_list *recvs,
				 u64 now_ns)
{
	while (recvs->first)
		complete_some(session, recvs, 0, now_ns);
}

/** kxfer_complete_all_bh() - kxfer_complete_all(), called with bottom halves off */
void kxfer_complete_all_bh(struct kxfer_job_list *jobs, int status, u64 now_ns)
{
	while (jobs->first)
		complete_session(jobs, status, now_ns);
}

/**
 * kxfer_complete_all() - complete jobs that are in no list of a lane
 * @jobs: jobs that no device touches; empty afterwards
 * @status: 0 or -errno, for jobs without a status of their own
 * @now_ns: ktime_get_ns()
 *
 * For consecutive jobs of a session, up to COMPLETE_MAX, its lock is taken and its waiters are
 * woken once. Any context but hard interrupts.
 */
void kxfer_complete_all(struct kxfer_job_list *jobs, int status, u64 now_ns)
{
	local_bh_disable();
	kxfer_complete_all_bh(jobs, status, now_ns);
	local_bh_enable();
}

/** kxfer_complete() - kxfer_complete_all() for one job */
void kxfer_complete(struct kxfer_active_job *job, int status, u64 now_ns)
{
	struct kxfer_job_list one = {};

	kxfer_job_list_add(&one, job);
	kxfer_complete_all(&one, status, now_ns);
}
