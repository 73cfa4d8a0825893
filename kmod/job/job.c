// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: from the lane's queue to the last of their work requests. completion.c ends them,
 * job_stop.c before their time.
 *
 * A job in flight is in its session's list of jobs, and in one of two lists of a lane:
 * queued, in its session's flow there (flow.c), while some of it is left to plan; or
 * posted. A job moves
 *
 *	queued -> posted -> complete		the ordinary way
 *	queued -> complete			cancelled, deadline passed, withdrawn
 *	queued, posted -> complete		the lane was stopped
 *	queued, posted -> waits for a link	the same, with a line (line.c)
 *
 * The context that takes a job off the lane's lists, under the lane's lock, completes it: so
 * each job completes exactly once. From there on the job is in lists by @next only, which
 * belong to that context. A job with posted work requests is taken off only by the completion
 * of its last chain, or by the link's teardown after the lane was stopped: so no device
 * touches its memory after it has completed.
 *
 * A READ, WRITE or atomic is posted as chains (chain.c); a job counts its chains under way. A
 * NOTIFY or SEND has none: it is a message of the lane's channel (message.c).
 *
 * A RECV is on no lane: it waits in its mailbox, and the context that takes it off there
 * completes it (mailbox.c). A quick job is in no list: it is its chain (quick_end.c).
 *
 * Lock order: session lock, job_lock of the session, lock of the lane. Jobs are completed with
 * neither job_lock nor the lane's lock held, but RECVs that find messages when they come with
 * job_lock (batch.c). Completions run in a kworker, a softirq or a system call (cq.c).
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/deadline.h"
#include "base/fault.h"
#include "job/chain.h"
#include "job/done.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/line.h"
#include "job/message.h"
#include "job/mailbox.h"
#include "job/quick.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/session.h"
#include "node/user.h"

#define INLINE_NS	(10 * NSEC_PER_MSEC)	/* posting in completions without a break */

/*
 * Jobs that a session keeps for reuse: as many as it has had in flight at once, within these
 * limits. The session and the fewest fit into 8 KiB; the most take 37 KiB. None with KASAN, which
 * looks for use after free.
 */
#define SPARE_JOBS	(IS_ENABLED(CONFIG_KASAN) ? 0 : 16)
#define MAX_SPARE_JOBS	(IS_ENABLED(CONFIG_KASAN) ? 0 : 128)

static struct kmem_cache *job_cache;

/** kxfer_job_init() - make the slab cache of jobs. Return: 0 or -ENOMEM */
int kxfer_job_init(void)
{
	job_cache = kxfer_try_alloc(JOB_CACHE, KMEM_CACHE(kxfer_active_job, SLAB_ACCOUNT));
	return job_cache ? 0 : -ENOMEM;
}

/** kxfer_job_exit() - destroy the slab cache; no job is left */
void kxfer_job_exit(void)
{
	kmem_cache_destroy(job_cache);
}

/**
 * kxfer_job_take_spares() - take jobs kept for reuse, for one call
 * @session: session whose job_lock the caller holds
 * @want: most jobs to take
 *
 * Return: the jobs, linked by @next; or NULL.
 */
struct kxfer_active_job *kxfer_job_take_spares(struct kxfer_session *session, u32 want)
{
	struct kxfer_active_job *taken = NULL, *job;

	while (want-- && (job = session->spare_jobs)) {
		session->spare_jobs = job->next;
		session->nr_spare_jobs--;
		job->next = taken;
		taken = job;
	}
	return taken;
}

/** kxfer_job_alloc() - allocate a job with @gfp. Return: the job or NULL */
struct kxfer_active_job *kxfer_job_alloc(gfp_t gfp)
{
	return kmem_cache_alloc(job_cache, gfp);
}

/* @job: the first of the jobs to free, linked by @next; or NULL */
static void free_jobs(struct kxfer_active_job *job)
{
	struct kxfer_active_job *next;

	for (; job; job = next) {
		next = job->next;
		kmem_cache_free(job_cache, job);
	}
}

/* Called with job_lock held. Return: those of @jobs that are not kept, for free_jobs(). */
static struct kxfer_active_job *keep_spares(struct kxfer_session *session,
					    struct kxfer_active_job *jobs)
{
	u32 most = min_t(u32, max_t(u32, session->peak_jobs, SPARE_JOBS), MAX_SPARE_JOBS);
	struct kxfer_active_job *job;

	while (jobs && session->nr_spare_jobs < most) {
		job = jobs;
		jobs = job->next;
		job->next = session->spare_jobs;
		session->spare_jobs = job;
		session->nr_spare_jobs++;
	}
	return jobs;
}

/** kxfer_job_free_locked() - kxfer_job_free() with the session's job_lock held */
void kxfer_job_free_locked(struct kxfer_session *session, struct kxfer_active_job *jobs)
{
	free_jobs(keep_spares(session, jobs));
}

/**
 * kxfer_job_free() - free jobs that were refused, or whose completions were taken
 * @session: session of the jobs; keeps some for reuse
 * @jobs: first job, linked by @next; or NULL
 */
void kxfer_job_free(struct kxfer_session *session, struct kxfer_active_job *jobs)
{
	spin_lock_bh(&session->job_lock);
	jobs = keep_spares(session, jobs);
	spin_unlock_bh(&session->job_lock);
	free_jobs(jobs);
}

/**
 * kxfer_job_unqueue() - dequeue a job that is fully planned, or must not be planned further
 * @lane: lane whose lock the caller holds
 * @job: job queued there; in no list of the lane afterwards
 */
void kxfer_job_unqueue(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	kxfer_flow_remove(job);
	kxfer_deadlines_remove(&lane->deadlines, &job->deadline);
	WRITE_ONCE(lane->nr_queued, lane->nr_queued - 1);
}

/* Add a job of which nothing is left to post. Called with the lane's lock held. */
static void add_to_posted(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	list_add_tail(&job->lane_node, &lane->posted);
	WRITE_ONCE(lane->nr_posted, lane->nr_posted + 1);
}

/**
 * kxfer_job_move_to_posted() - move a queued job to the posted ones of its lane
 * @lane: lane whose lock the caller holds
 * @job: job queued there
 */
void kxfer_job_move_to_posted(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	kxfer_job_unqueue(lane, job);
	add_to_posted(lane, job);
}

/**
 * kxfer_job_leave_posted() - take a job with nothing under way off the posted ones
 * @lane: lane whose lock the caller holds
 * @job: job posted there; in no list of the lane afterwards, and the caller completes it
 */
void kxfer_job_leave_posted(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	list_del_init(&job->lane_node);
	kxfer_flow_leave(job);
	WRITE_ONCE(lane->nr_posted, lane->nr_posted - 1);
}

/**
 * kxfer_job_is_held() - whether a job waits in its flow for posted ones of its session
 * @job: job at the head of its flow, or about to be; the caller holds the lock of its lane
 */
bool kxfer_job_is_held(const struct kxfer_active_job *job)
{
	return (job->flags & (KXFER_JOB_F_FENCE | KXFER_JOB_F_ORDERED) && kxfer_flow_holds(job)) ||
	       kxfer_message_waits(job);
}

static bool post_some(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	return kxfer_job_sends_next(job) ? kxfer_message_post(lane, job) :
	       kxfer_chain_add(lane, job);
}

/*
 * Post some of the first job of a flow. Called with the lane's lock held. Return: false if
 * nothing was posted.
 */
static bool post_queued(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	u32 bytes = lane->bytes_posted;

	if (!post_some(lane, job))
		return false;
	kxfer_flow_count(job, lane->bytes_posted - bytes);
	if (job->planned)
		kxfer_job_move_to_posted(lane, job);
	return true;
}

/* Post a message that found no slot before. Called with the lane's lock held. */
static bool pump_messages(struct kxfer_lane *lane, enum kxfer_flow_wait wait)
{
	struct kxfer_active_job *job = kxfer_flow_first(lane, wait);

	return job && post_queued(lane, job);
}

/*
 * Post some jobs of the session that has the turn. Without credits no session can post. But a
 * message without a slot, or a held job, does not keep other sessions waiting: its flow moves
 * to another list. Called with the lane's lock held.
 */
static bool pump_turn(struct kxfer_lane *lane)
{
	struct kxfer_active_job *job;

	while ((job = kxfer_flow_first(lane, KXFER_FLOW_TURN))) {
		enum kxfer_flow_wait wait = KXFER_FLOW_HELD;

		if (!kxfer_job_is_held(job)) {
			if (post_queued(lane, job))
				return true;
			if (!kxfer_job_sends_next(job))
				break;
			wait = kxfer_job_is_long(job) ? KXFER_FLOW_OFFER : KXFER_FLOW_SLOT;
		}
		kxfer_flow_wait(job->target->flow, wait);
	}
	return false;
}

/* Called with the lane's lock held. Return: false if nothing was posted. */
static bool pump_some(struct kxfer_lane *lane)
{
	return pump_messages(lane, KXFER_FLOW_OFFER) ||
	       pump_messages(lane, KXFER_FLOW_SLOT) || pump_turn(lane);
}

/**
 * kxfer_job_pump_locked() - post what the lane has room for
 * @lane: data lane whose lock the caller holds, open or not
 *
 * Limited by the lane's credits and slots, which completions give back. Nothing more is
 * posted once the link has failed: on one CPU a soft provider that is kept busy would delay
 * the teardown.
 */
void kxfer_job_pump_locked(struct kxfer_lane *lane)
{
	kxfer_cq_recall(&lane->cq);
	if (!lane->open)
		return;
	while (lane->nr_queued && kxfer_link_is_live(lane->link) && pump_some(lane))
		;
	kxfer_chain_flush(lane);
}

/** kxfer_job_pump() - kxfer_job_pump_locked() that takes the lock; does not sleep */
void kxfer_job_pump(struct kxfer_lane *lane)
{
	spin_lock_bh(&lane->lock);
	kxfer_job_pump_locked(lane);
	spin_unlock_bh(&lane->lock);
}

/**
 * kxfer_job_pump_work() - continue posting, after other contexts have had the CPU
 * @work: pump_work of a lane
 */
void kxfer_job_pump_work(struct work_struct *work)
{
	struct kxfer_lane *lane = container_of(work, struct kxfer_lane, pump_work);

	kxfer_delay(JOB_PUMP_WORK);
	WRITE_ONCE(lane->inline_since_ns, ktime_get_ns());
	kxfer_job_pump(lane);
}

/**
 * kxfer_job_pump_on() - continue posting from the completion of a chain
 * @lane: lane that has got its credits back
 *
 * Posting from a completion is cheap. But a soft provider may carry out work requests before
 * the post returns: then the CQ never runs dry, and on one CPU no other context, no withdrawal
 * and no keep-alive, runs until all jobs are done. So every INLINE_NS the next post is left
 * to a work, and the CQ does run dry.
 */
void kxfer_job_pump_on(struct kxfer_lane *lane)
{
	/* A job queued meanwhile finds the credits just given back. */
	if (!READ_ONCE(lane->nr_queued))
		return;
	if (ktime_get_ns() - READ_ONCE(lane->inline_since_ns) < INLINE_NS)
		kxfer_job_pump(lane);
	else
		queue_work(kxfer_wq, &lane->pump_work);
}

/*
 * Post a job without queueing it, if it overtakes no other. Called with the lane's lock held.
 * Return: false if some of the job is left to be queued.
 */
static bool post_at_once(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	if (!kxfer_flow_is_next(job->target->flow) || !kxfer_link_is_live(lane->link) ||
	    kxfer_job_is_held(job) || !post_some(lane, job) || !job->planned)
		return false;
	kxfer_flow_join(job);
	add_to_posted(lane, job);
	return true;
}

/**
 * kxfer_job_start() - put an accepted job on its lane
 * @job: job in no list of a lane
 * @lane: lane that its flow is on; the caller holds its lock
 * @at_once: post the job if nothing is queued there; kxfer_job_pump_locked() must follow
 * @ended: gets the job instead if it cannot run any more, with the reason as its status
 */
void kxfer_job_start(struct kxfer_active_job *job, struct kxfer_lane *lane, bool at_once,
		     struct kxfer_job_list *ended)
{
	if (job->target->revoked)
		job->status = -EKEYREVOKED;
	else if (!lane->open)
		job->status = kxfer_link_job_error(lane->link);
	if (job->status) {
		kxfer_job_list_add(ended, job);
		return;
	}
	job->lane = lane;
	if (at_once && post_at_once(lane, job))
		return;
	kxfer_flow_add(job);
	WRITE_ONCE(lane->nr_queued, lane->nr_queued + 1);
	kxfer_deadlines_add(&lane->deadlines, &job->deadline);
}

static bool no_jobs(struct kxfer_session *session)
{
	bool none;

	spin_lock_bh(&session->job_lock);
	none = !session->nr_jobs;
	spin_unlock_bh(&session->job_lock);
	return none;
}

/**
 * kxfer_job_end_session() - end all jobs of a session that is being closed
 * @session: session with no call under way
 *
 * Queued jobs end here; posted ones are waited for. After KXFER_CLOSE_MS the links of the jobs
 * that are left are given up, and these jobs end with the teardown. So the wait for all jobs
 * together is limited, whatever the peer does. May sleep, uninterruptibly.
 */
void kxfer_job_end_session(struct kxfer_session *session)
{
	kxfer_line_close_all(session);
	kxfer_job_stop_all(session);
	if (!wait_event_timeout(session->wait, no_jobs(session),
				msecs_to_jiffies(KXFER_CLOSE_MS))) {
		kxfer_job_give_up_all(session);
		wait_event(session->wait, no_jobs(session));
	}
	if (!session->ring)
		kxfer_user_return(session->user, KXFER_SHARE_JOBS, session->nr_done);
	kxfer_done_end(session);
	free_jobs(session->spare_jobs);
}

/**
 * kxfer_job_records() - record the jobs that a session has in flight at one instant
 * @session: session; stays while this runs
 * @records: array to fill
 * @nr: room in @records; at most KXFER_MAX_JOBS entries are used
 *
 * Any context but hard interrupts. Return: records filled.
 */
u32 kxfer_job_records(struct kxfer_session *session, struct kxfer_job_record *records,
		      u32 nr)
{
	struct kxfer_active_job *job;
	u32 n = 0;

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (n == nr)
			break;
		records[n++] = (struct kxfer_job_record) {
			.user_data = job->completion.user_data,
			.length = job->length,
			.submitted_ns = job->completion.submitted_ns,
			.link = job->lane ? job->lane->link->id : 0,
			.lane = job->lane ? job->lane->index : 0,
			.op = job->completion.op,
			.posted = READ_ONCE(job->started),
		};
	}
	n += kxfer_quick_records(session, records + n, nr - n);
	spin_unlock_bh(&session->job_lock);
	return n;
}
