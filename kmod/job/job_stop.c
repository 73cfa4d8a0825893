// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs that end before their time: how a job is stopped, and what stops it.
 *
 *	stopped by				which jobs		status
 *	CANCEL					nothing posted yet	ECANCELED
 *	the end of their session		queued			ECANCELED
 *	io_uring, when the job is abandoned	queued			ECANCELED
 *	their deadline				nothing posted yet	ETIMEDOUT
 *	the withdrawal of their target		queued			EKEYREVOKED
 *	no memory to register a long message	the first of each flow	the reason
 *	the end of their lane			all			ECONNRESET, ENODEV
 *
 * A queued job is taken off its lane. If some of it is posted it only posts no more, and
 * completes as stopped with its last chain. A fully posted job goes on, because a device is
 * working on it; but a long message is taken back, if the peer does not READ it yet
 * (offer.c). After the lane was stopped no device works on its jobs, and all of them end.
 *
 * RECVs are on no lane: their mailbox stops them and knows their deadlines (mailbox.c). Quick jobs
 * are posted when they are accepted: only the end of their lane ends them early (quick_end.c).
 *
 * The context that takes a job off its lane's lists, under the lane's lock, owns the job
 * (job.c), and completes it here when it holds no lock. The session's list of jobs, under its
 * job_lock, has all jobs that are not quick, and the lane of each job in it exists. A held job may
 * have waited for one that was stopped: so every context that stops jobs pumps, unless the lane is
 * closed.
 *
 * Context: any but hard interrupts; nothing sleeps. Lock order: as in job.c.
 */
#include <linux/ktime.h>

#include "base/deadline.h"
#include "base/fault.h"
#include "job/completion.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/line.h"
#include "job/mailbox.h"
#include "job/offer.h"
#include "job/quick.h"
#include "job/target.h"
#include "job/uring.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/session.h"

static void complete_list(struct kxfer_job_list *jobs, int status)
{
	if (jobs->first)
		kxfer_complete_all(jobs, status, ktime_get_ns());
}

/*
 * Take a queued job off the lane, or keep it from posting more. Called with the lane's lock
 * held; @ended gets a job that the caller has to complete.
 */
static void stop_queued(struct kxfer_lane *lane, struct kxfer_active_job *job,
			int status, struct kxfer_job_list *ended)
{
	job->status = job->status ?: status;
	/* Other contexts that would stop the job see that it is off the queue. */
	job->planned = true;
	if (job->nr_chains) {
		kxfer_job_move_to_posted(lane, job);
	} else {
		kxfer_job_unqueue(lane, job);
		kxfer_flow_leave(job);
		kxfer_job_list_add(ended, job);
	}
}

/* Move queued jobs behind the posted ones; as in stop_queued(), no other context stops them. */
static void stop_all_queued(struct kxfer_lane *lane)
{
	struct kxfer_active_job *job;
	u32 wait = KXFER_FLOW_WAITS;

	/* The first list comes last: a flow of another list moves there when it loses a job. */
	while (wait--)
		while ((job = kxfer_flow_first(lane, wait))) {
			job->planned = true;
			kxfer_job_move_to_posted(lane, job);
		}
}

/**
 * kxfer_job_fail_lane() - end all jobs of a stopped lane, but those that wait for another link
 * @lane: any lane; a control QP has no jobs
 *
 * From the link's teardown, after kxfer_lane_stop(): no device can touch the memory of the
 * jobs.
 */
void kxfer_job_fail_lane(struct kxfer_lane *lane)
{
	int error = kxfer_link_job_error(lane->link);
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list ended = {};
	LIST_HEAD(kept);

	/* An owner may still have chains of these jobs. */
	WARN_ON_ONCE(!kxfer_cq_is_stopped(&lane->cq));
	spin_lock_bh(&lane->lock);
	stop_all_queued(lane);
	list_for_each_entry_safe(job, next, &lane->posted, lane_node) {
		kxfer_job_leave_posted(lane, job);
		kxfer_job_list_add(&ended, job);
	}
	spin_unlock_bh(&lane->lock);
	kxfer_quick_fail(lane, error);
	kxfer_line_sort(&ended, &kept);
	complete_list(&ended, error);
	kxfer_line_keep(&kept, error);
}

/* Called with the lane's lock held. A target that is being opened has no flow yet. */
static void stop_jobs_of(struct kxfer_target *target, struct kxfer_lane *lane,
			 struct kxfer_job_list *ended)
{
	/* Pairs with insert_target(). */
	struct kxfer_flow *flow = smp_load_acquire(&target->flow);
	struct kxfer_active_job *job, *next;

	if (!flow || READ_ONCE(flow->lane) != lane)
		return;
	flow->withdrawn = flow->nr_jobs;
	list_for_each_entry_safe(job, next, &flow->jobs, lane_node)
		if (job->target == target)
			stop_queued(lane, job, -EKEYREVOKED, ended);
}

/**
 * kxfer_job_revoke() - end queued jobs of a withdrawn target; posted ones go on
 * @link: link of the target
 * @target: target; it is marked revoked here, under the lock of each lane in turn
 */
void kxfer_job_revoke(struct kxfer_link *link, struct kxfer_target *target)
{
	struct kxfer_job_list ended = {};
	u32 i;

	for (i = 0; i < link->nr_data; i++) {
		struct kxfer_lane *lane = link->data[i];

		spin_lock_bh(&lane->lock);
		target->revoked = true;
		stop_jobs_of(target, lane, &ended);
		kxfer_offer_take_back(lane, NULL, target, -EKEYREVOKED);
		spin_unlock_bh(&lane->lock);
	}
	complete_list(&ended, -EKEYREVOKED);
	for (i = 0; i < link->nr_data; i++)
		kxfer_job_pump(link->data[i]);
}

/* Called with the lane's lock held. */
static void stop_first_long(struct kxfer_lane *lane, enum kxfer_flow_wait wait, int error,
			    struct kxfer_job_list *ended)
{
	struct kxfer_flow *flow, *next;
	struct kxfer_active_job *job;

	list_for_each_entry_safe(flow, next, &lane->flows[wait], lane_node) {
		job = list_first_entry(&flow->jobs, struct kxfer_active_job, lane_node);
		if (kxfer_job_is_long(job) && !kxfer_job_is_held(job))
			stop_queued(lane, job, error, ended);
	}
}

/**
 * kxfer_job_fail_long() - end long messages that cannot be posted
 * @lane: any lane
 * @error: the reason, -errno
 *
 * Ends those at the head of their flows; each later message meets the error itself.
 */
void kxfer_job_fail_long(struct kxfer_lane *lane, int error)
{
	struct kxfer_job_list ended = {};

	spin_lock_bh(&lane->lock);
	stop_first_long(lane, KXFER_FLOW_TURN, error, &ended);
	stop_first_long(lane, KXFER_FLOW_OFFER, error, &ended);
	spin_unlock_bh(&lane->lock);
	complete_list(&ended, error);
	kxfer_job_pump(lane);
}

/* A partly posted job goes on. */
static void stop_late(struct kxfer_deadline *deadline, void *ended)
{
	struct kxfer_active_job *job = container_of(deadline, struct kxfer_active_job, deadline);

	if (!job->started)
		stop_queued(job->lane, job, -ETIMEDOUT, ended);
}

/* Return: whether there may be more to stop. */
static bool stop_late_jobs(struct kxfer_lane *lane)
{
	struct kxfer_job_list ended = {};
	u64 now_ns = ktime_get_ns();
	bool more;

	spin_lock_bh(&lane->lock);
	more = kxfer_deadlines_end_some(&lane->deadlines, now_ns, stop_late, &ended);
	if (!more)
		kxfer_deadlines_arm(&lane->deadlines, kxfer_offer_late(lane, now_ns));
	spin_unlock_bh(&lane->lock);
	complete_list(&ended, -ETIMEDOUT);
	return more;
}

/** kxfer_job_deadline_work() - end jobs of a lane that were not posted in time */
void kxfer_job_deadline_work(struct work_struct *work)
{
	struct kxfer_lane *lane =
		container_of(to_delayed_work(work), struct kxfer_lane, deadlines.work);

	kxfer_delay(JOB_DEADLINE_WORK);
	while (stop_late_jobs(lane))
		cond_resched();
	kxfer_job_pump(lane);
}

static bool is_queued(const struct kxfer_active_job *job)
{
	return !list_empty(&job->lane_node) && !job->planned;
}

/*
 * Stop a job of a session whose job_lock the caller holds, a partly posted one only if
 * @started. Return: whether it was queued and is stopped; @ended may have got it.
 */
static bool stop_job(struct kxfer_active_job *job, bool started, struct kxfer_job_list *ended)
{
	struct kxfer_lane *lane = job->lane;
	bool stopped;

	if (job->mailbox)
		return kxfer_mailbox_stop(job, ended);
	/* NULL: the job waits for a link, or ends without having been queued. */
	if (!lane)
		return kxfer_line_stop(job, started, ended);
	spin_lock(&lane->lock);
	stopped = is_queued(job) && (started || !job->started);
	if (stopped)
		stop_queued(lane, job, -ECANCELED, ended);
	else if (kxfer_job_is_long(job))
		kxfer_offer_take_back(lane, job, NULL, -ECANCELED);
	spin_unlock(&lane->lock);
	return stopped;
}

struct stop_count {
	u32 found;
	u32 stopped;
};

/*
 * Jobs that were held behind stopped ones may go. Not earlier, lest a job is posted that is
 * about to be stopped too. Called with the session's job_lock held.
 */
static void pump_later(struct kxfer_session *session)
{
	struct kxfer_active_job *job;
	struct kxfer_lane *lane = NULL;

	list_for_each_entry(job, &session->jobs, session_node) {
		if (!job->lane || job->lane == lane)
			continue;
		lane = job->lane;
		spin_lock(&lane->lock);
		/* After the lane was closed its work may have been cancelled for good. */
		if (lane->open && lane->nr_queued)
			queue_work(kxfer_wq, &lane->pump_work);
		spin_unlock(&lane->lock);
	}
}

/* Stop jobs of a session: all, or those of @user_data; partly posted ones if @started. */
static struct stop_count stop_jobs(struct kxfer_session *session, bool all,
				   u64 user_data, bool started)
{
	struct kxfer_active_job *job;
	struct stop_count count = {};
	struct kxfer_job_list ended = {};

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if ((!job->target && !job->mailbox) ||
		    (!all && job->completion.user_data != user_data))
			continue;
		count.found++;
		count.stopped += stop_job(job, started, &ended);
	}
	count.found += kxfer_quick_count(session, all, user_data);
	if (count.stopped)
		pump_later(session);
	spin_unlock_bh(&session->job_lock);
	complete_list(&ended, -ECANCELED);
	return count;
}

/**
 * kxfer_job_stop_abandoned() - stop jobs of io_uring whose CQE no task will take
 * @session: session; stays while this runs
 *
 * Any context but hard interrupts. Return: true if jobs are left that came by io_uring.
 */
bool kxfer_job_stop_abandoned(struct kxfer_session *session)
{
	struct kxfer_active_job *job;
	bool left = false, stopped = false;
	struct kxfer_job_list ended = {};

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (!job->uring)
			continue;
		left = true;
		if (kxfer_uring_abandoned(job->uring))
			stopped |= stop_job(job, true, &ended);
	}
	if (stopped)
		pump_later(session);
	spin_unlock_bh(&session->job_lock);
	complete_list(&ended, -ECANCELED);
	return left;
}

/**
 * kxfer_job_stop_recv() - end the RECV of an io_uring command
 * @session: session of the command
 * @cmd: command; keeps the session until it is complete
 *
 * Any context but hard interrupts. Return: false if the RECV is being filled and ends later.
 */
bool kxfer_job_stop_recv(struct kxfer_session *session, struct io_uring_cmd *cmd)
{
	struct kxfer_job_list ended = {};
	struct kxfer_active_job *job;
	bool stopped;

	spin_lock_bh(&session->job_lock);
	job = kxfer_uring_recv(cmd);
	stopped = !job || stop_job(job, true, &ended);
	spin_unlock_bh(&session->job_lock);
	complete_list(&ended, -ECANCELED);
	return stopped;
}

/** kxfer_job_stop_all() - stop all jobs of a session that is closed, partly posted ones too */
void kxfer_job_stop_all(struct kxfer_session *session)
{
	stop_jobs(session, true, 0, true);
}

/**
 * kxfer_job_give_up_all() - give up the links that jobs of a session wait for
 * @session: closed session whose jobs were stopped
 *
 * The session gets no new jobs, so all jobs that are left are seen here.
 */
void kxfer_job_give_up_all(struct kxfer_session *session)
{
	struct kxfer_active_job *job;

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (job->mailbox)
			kxfer_mailbox_give_up(job->mailbox);
		else if (job->lane)
			kxfer_link_fail(job->lane->link, -ETIMEDOUT);
	}
	kxfer_quick_give_up(session);
	spin_unlock_bh(&session->job_lock);
}

/** kxfer_job_cancel() - KXFER_CANCEL */
int kxfer_job_cancel(struct kxfer_session *session, void *arg)
{
	struct kxfer_cancel *cmd = arg;
	struct stop_count count;

	if (cmd->flags & ~KXFER_CANCEL_F_ALL)
		return -EOPNOTSUPP;
	if (cmd->__reserved || ((cmd->flags & KXFER_CANCEL_F_ALL) && cmd->user_data))
		return -EINVAL;
	count = stop_jobs(session, cmd->flags & KXFER_CANCEL_F_ALL, cmd->user_data, false);
	cmd->cancelled = count.stopped;
	return count.found || cmd->flags & KXFER_CANCEL_F_ALL ? 0 : -ENOENT;
}
