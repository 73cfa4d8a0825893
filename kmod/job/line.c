// SPDX-License-Identifier: GPL-2.0
/*
 * Lines: what a session holds of a peer over links that come and go.
 *
 * A peer that was opened with loss_ms has a line. When the link breaks, jobs that may go on do not
 * end with it. They wait in the line, up to loss_ms, while its work looks for a new link and has
 * the targets granted again (reconnect.c). Then they go to the lanes of the new link, in their
 * order. Jobs that are submitted meanwhile wait behind them.
 *
 * Which jobs may go on (may_wait()). A job of which nothing was posted has had no effect: it may.
 * One that was posted may have had its effect or not. A READ may be repeated all the same, and a
 * WRITE if its user has said so (KXFER_JOB_F_IDEMPOTENT); both go on behind the bytes that are
 * known to be there. All others end as without a line. Then the jobs behind them, to targets
 * of the same line, are cut off: they may count on what did not happen. So they end too, but
 * for READs and IDEMPOTENT WRITEs without a flag about order, and without NOTIFY. That holds for
 * jobs in the lane, and for later ones until the session has taken the completion of the ended job:
 * before that its user cannot know (@cut_at of the flow). So no message is sent twice, none
 * overtakes another, and no NOTIFY comes without the data before it.
 *
 * Why nothing of the old link lands behind what is repeated. A job waits in the line only after the
 * lanes of its link are stopped at this end (kxfer_job_fail_lane()), or if it never was on a lane.
 * The work goes on only when that link has @ended: then no job of it is left that would have to
 * wait in front of others. The peer has stopped its lanes when it answers RESUME. When a line moves
 * there is nothing that could land.
 *
 * Why each job still completes exactly once. A waiting job is in the line's list, under the
 * session's job_lock. The context that takes it off there completes it, or puts it on a lane or
 * back into the list. That is the work, or whoever stops jobs: CANCEL, deadlines, the end of
 * the session.
 *
 * A waiting job is a user of its target and its region, but of no mapping: the removal of a device
 * waits for the users of mappings, and the job may wait for the device to come back.
 *
 * The end, as a proof. kxfer_line_close() sets @closed, so that no job begins to wait and nothing
 * queues the two works, and then cancels them. It comes before the session stops its jobs, which
 * ends those that wait; and before the peer is closed, which has no targets then. The work of
 * reconnect.c looks at @closed between its steps, which have a bound, so the cancelling takes no
 * longer.
 *
 * Context: the works may sleep; jobs begin to wait in any context but hard interrupts.
 * Lock order: as in job.c.
 */
#include <linux/cred.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/fault.h"
#include "base/stats.h"
#include "job/completion.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/line.h"
#include "job/peer.h"
#include "job/reconnect.h"
#include "job/ring.h"
#include "job/submit.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/mapping.h"
#include "node/session.h"

#define MAX_TRIES	16	/* links that a job may see break */
#define AGAIN_MS	1000	/* between two looks at a line that stays down after loss_ms */

static void deadline_work(struct work_struct *work);

/** kxfer_line_create() - a line without waiting jobs; for a user. Return: the line or NULL */
struct kxfer_line *kxfer_line_create(struct kxfer_peer *peer, u32 loss_ms)
{
	struct kxfer_line *line;

	line = kxfer_try_alloc(LINE, kzalloc_obj(*line, GFP_KERNEL_ACCOUNT));
	if (!line)
		return NULL;
	line->peer = peer;
	line->loss_ms = loss_ms;
	line->memcg = get_mem_cgroup_from_mm(current->mm);
	line->cred = get_current_cred();
	INIT_DELAYED_WORK(&line->work, kxfer_reconnect_work);
	INIT_LIST_HEAD(&line->jobs);
	/* They wait for no peer, and not for works that do. */
	kxfer_deadlines_init(&line->deadlines, kxfer_wq, deadline_work);
	kxfer_story_begin(line);
	return line;
}

static void begin_close(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;

	spin_lock_bh(&session->job_lock);
	line->closed = true;
	spin_unlock_bh(&session->job_lock);
}

static void end_close(struct kxfer_line *line)
{
	kxfer_delay(LINE_CLOSE);
	cancel_delayed_work_sync(&line->work);
	cancel_delayed_work_sync(&line->deadlines.work);
	kxfer_story_end(line);
}

/** kxfer_line_close() - let no job wait any more, and end the works; may sleep */
void kxfer_line_close(struct kxfer_line *line)
{
	begin_close(line);
	end_close(line);
}

/**
 * kxfer_line_close_all() - close the lines of a session that is being closed
 * @session: session without a call under way
 *
 * Their works end in parallel. May sleep.
 */
void kxfer_line_close_all(struct kxfer_session *session)
{
	struct kxfer_peer *peer;
	unsigned long id;

	xa_for_each(&session->peers, id, peer)
		if (peer->line)
			begin_close(peer->line);
	xa_for_each(&session->peers, id, peer)
		if (peer->line)
			end_close(peer->line);
}

/** kxfer_line_free() - free a closed line, or one that no job has seen; NULL is one */
void kxfer_line_free(struct kxfer_line *line)
{
	if (!line)
		return;
	kxfer_story_end(line);
	put_cred(line->cred);
	mem_cgroup_put(line->memcg);
	kfree(line);
}

/* ---- jobs begin to wait ---- */

/* Whether a job may be repeated that may have had its effect. */
static bool is_repeatable(const struct kxfer_active_job *job)
{
	if (job->completion.op == KXFER_OP_READ)
		return true;
	/* With nothing left to plan the message behind a WRITE may have been sent. */
	return job->completion.op == KXFER_OP_WRITE && job->flags & KXFER_JOB_F_IDEMPOTENT &&
	       !(job->flags & KXFER_JOB_F_NOTIFY && !kxfer_plan_left(&job->plan));
}

/* Whether a job may be repeated whatever became of those before it; its plan does not matter. */
static bool is_independent(const struct kxfer_active_job *job)
{
	return !(job->flags & (KXFER_JOB_F_FENCE | KXFER_JOB_F_ORDERED | KXFER_JOB_F_NOTIFY)) &&
	       is_repeatable(job);
}

/* Whether a job of a stopped lane may wait for another link. */
static bool may_wait(const struct kxfer_active_job *job)
{
	const struct kxfer_target *target = job->target;

	if (!target->line || target->revoked || job->status || job->nr_tries == MAX_TRIES)
		return false;
	if (is_independent(job))
		return true;
	return !target->flow->cut && (!job->started || is_repeatable(job));
}

/**
 * kxfer_line_sort() - find the jobs of a stopped lane that may wait for another link
 * @jobs: all jobs of the lane, each session's in their order; those that end are left
 * @kept: gets the others, by kxfer_active_job.lane_node
 */
void kxfer_line_sort(struct kxfer_job_list *jobs, struct list_head *kept)
{
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list ended = {};

	for (job = jobs->first; job; job = next) {
		next = job->next;
		if (may_wait(job)) {
			job->nr_tries++;
			list_add_tail(&job->lane_node, kept);
		} else {
			job->target->flow->cut = true;
			kxfer_job_list_add(&ended, job);
		}
	}
	*jobs = ended;
}

/* From now on jobs wait for loss_ms, and @more_ms. Called with job_lock held. */
static void begin_loss(struct kxfer_line *line, u32 more_ms)
{
	line->until_ns = ktime_get_ns() + ((u64)line->loss_ms + more_ms) * NSEC_PER_MSEC;
	kxfer_deadlines_arm(&line->deadlines, line->until_ns);
}

/* Called with job_lock held. */
static void go_down(struct kxfer_line *line)
{
	line->down = true;
	line->backoff_ms = KXFER_BACKOFF_MIN_MS;
	begin_loss(line, 0);
	kxfer_reconnect_queue(line, 0);
}

/*
 * Let a job wait that is on no lane; @front: before all others. Called with job_lock held. Return:
 * false if the line is closed: the caller has to end the job.
 */
static bool keep(struct kxfer_active_job *job, bool front)
{
	struct kxfer_line *line = job->target->line;

	if (line->closed)
		return false;
	if (job->mapping)
		kxfer_mapping_put(job->mapping, 1);
	job->mapping = NULL;
	job->lane = NULL;
	job->nr_chains = 0;
	job->planned = false;
	if (front)
		list_move(&job->lane_node, &line->jobs);
	else
		list_move_tail(&job->lane_node, &line->jobs);
	line->nr_jobs++;
	kxfer_deadlines_add(&line->deadlines, &job->deadline);
	if (!line->down) {
		kxfer_story_broke(line, job->target->link);
		go_down(line);
	}
	return true;
}

/**
 * kxfer_line_keep() - let jobs wait for another link
 * @kept: from kxfer_line_sort(); all jobs of that lane that end have ended
 * @error: status of those whose line is closed meanwhile
 *
 * They come before jobs that began to wait when they were submitted.
 */
void kxfer_line_keep(struct list_head *kept, int error)
{
	struct kxfer_active_job *job, *before;
	struct kxfer_job_list ended = {};

	list_for_each_entry_safe_reverse(job, before, kept, lane_node) {
		struct kxfer_session *session = job->session;
		bool waits;

		spin_lock_bh(&session->job_lock);
		waits = keep(job, true);
		if (waits)
			kxfer_story_tell(job->target->line, KXFER_LINE_WAITED, 0, 0, 1);
		else
			list_del_init(&job->lane_node);
		spin_unlock_bh(&session->job_lock);
		if (waits)
			kxfer_stat_inc(KXFER_STAT_JOBS_KEPT);
		else
			kxfer_job_list_add(&ended, job);
	}
	kxfer_complete_all(&ended, error, ktime_get_ns());
}

/* Completions that the session has taken. Called with job_lock held. */
static u32 nr_taken(struct kxfer_session *session)
{
	kxfer_ring_look_locked(session);
	return session->done_tail - session->nr_done;
}

/* Whether a job came before its user could know that one before it had ended with the link. */
static bool is_cut_off(const struct kxfer_active_job *job)
{
	const struct kxfer_flow *flow = job->target->flow;

	return flow->cut && (s32)(job->nr_taken - flow->cut_at) < 0 && !is_independent(job);
}

/**
 * kxfer_line_takes() - let a job wait if its link is down
 * @job: accepted job, in no list of a lane; the caller holds the session's job_lock
 * @lane: lane that its flow is on; the caller holds its lock
 *
 * Return: false if the caller has to post the job, or to end it if it has a status.
 */
bool kxfer_line_takes(struct kxfer_active_job *job, const struct kxfer_lane *lane)
{
	const struct kxfer_line *line = job->target->line;
	struct kxfer_flow *flow = job->target->flow;

	if (!line || job->target->revoked || (job->status && job->status != -ENODEV) ||
	    !(line->down || !lane->open || flow->cut))
		return false;
	job->nr_taken = nr_taken(job->session);
	if (line->down || !lane->open) {
		if (!keep(job, false))
			return false;
		kxfer_story_tell(job->target->line, KXFER_LINE_WAITED, 0, 0, 1);
		job->status = 0;
		return true;
	}
	if (is_cut_off(job))
		job->status = -ECONNRESET;
	else if ((s32)(job->nr_taken - flow->cut_at) >= 0)
		flow->cut = false;
	return false;
}

/* ---- jobs end while they wait ---- */

/* Take a waiting job off the list. Called with job_lock held. */
static void take_off(struct kxfer_active_job *job)
{
	struct kxfer_line *line = job->target->line;

	kxfer_deadlines_remove(&line->deadlines, &job->deadline);
	list_del_init(&job->lane_node);
	line->nr_jobs--;
}

/*
 * Called with job_lock held. A job that was posted may have had some effect: -ETIMEDOUT and
 * -ECANCELED would say that it had none.
 */
static void end_waiting(struct kxfer_active_job *job, int status, struct kxfer_job_list *ended)
{
	take_off(job);
	job->status = job->started && status != -EKEYREVOKED ? -ECONNRESET : status;
	kxfer_job_list_add(ended, job);
}

/**
 * kxfer_line_stop() - end a job that waits for a link
 * @job: job on no lane, of a session whose job_lock the caller holds
 * @started: also one that was posted before
 * @ended: gets the job
 *
 * Return: whether it waited and has ended.
 */
bool kxfer_line_stop(struct kxfer_active_job *job, bool started, struct kxfer_job_list *ended)
{
	if (list_empty(&job->lane_node) || (job->started && !started))
		return false;
	end_waiting(job, -ECANCELED, ended);
	return true;
}

static void stop_late(struct kxfer_deadline *deadline, void *ended)
{
	struct kxfer_active_job *job = container_of(deadline, struct kxfer_active_job, deadline);

	end_waiting(job, -ETIMEDOUT, ended);
}

/* End the jobs of a target, or all if it is NULL. Called with job_lock held. Return: how many. */
static u32 end_all(struct kxfer_line *line, const struct kxfer_target *target, int status,
		   struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job, *next;
	u32 nr = 0;

	list_for_each_entry_safe(job, next, &line->jobs, lane_node) {
		if (target && job->target != target)
			continue;
		end_waiting(job, status, ended);
		nr++;
	}
	return nr;
}

/* Return: whether there may be more to end. */
static bool end_late(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;
	struct kxfer_job_list ended = {};
	u64 now_ns = ktime_get_ns();
	bool more;
	u32 nr;

	spin_lock_bh(&session->job_lock);
	more = kxfer_deadlines_end_some(&line->deadlines, now_ns, stop_late, &ended);
	if (!more && line->down && now_ns >= line->until_ns) {
		nr = end_all(line, NULL, -ECONNRESET, &ended);
		if (nr)
			kxfer_story_tell(line, KXFER_LINE_LOST, 0, -ECONNRESET, nr);
		/*
		 * New jobs must not go past one that is about to go on, nor to a link that the
		 * line is leaving.
		 */
		line->down = line->taken || line->moving;
		/* Not at once again, however short loss_ms is. */
		if (line->down && !line->closed)
			begin_loss(line, AGAIN_MS);
	} else if (!more && line->down && !line->closed) {
		kxfer_deadlines_arm(&line->deadlines, line->until_ns);
	}
	spin_unlock_bh(&session->job_lock);
	kxfer_complete_all(&ended, -ECONNRESET, now_ns);
	return more;
}

static void deadline_work(struct work_struct *work)
{
	struct kxfer_line *line =
		container_of(to_delayed_work(work), struct kxfer_line, deadlines.work);

	while (end_late(line))
		cond_resched();
}

/* ---- jobs go on ---- */

/**
 * kxfer_line_rebind() - waiting jobs of a target go on to the one that takes its place
 * @old: target, whose link has ended
 * @fresh: target of the same export on another link, not in use yet
 */
void kxfer_line_rebind(struct kxfer_target *old, struct kxfer_target *fresh)
{
	struct kxfer_session *session = old->peer->session;
	struct kxfer_active_job *job;
	struct kxfer_lane *lane;
	int nr = 0;

	spin_lock_bh(&session->job_lock);
	old->line->backoff_ms = KXFER_BACKOFF_MIN_MS;
	if (old->flow->cut) {
		lane = kxfer_flow_lock(fresh->flow);
		fresh->flow->cut = true;
		fresh->flow->cut_at = old->flow->cut_at;
		spin_unlock(&lane->lock);
	}
	list_for_each_entry(job, &old->line->jobs, lane_node) {
		if (job->target != old)
			continue;
		job->target = fresh;
		atomic_inc(&fresh->nr_jobs);
		nr++;
	}
	spin_unlock_bh(&session->job_lock);
	if (nr)
		kxfer_complete_target(old, nr);
}

/** kxfer_line_is_down() - whether the line needs its work: jobs wait, or targets have to move */
bool kxfer_line_is_down(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;
	bool down;

	spin_lock_bh(&session->job_lock);
	line->taken = false;
	if (list_empty(&line->jobs) && !line->moving)
		line->down = false;
	down = line->down && !line->closed;
	spin_unlock_bh(&session->job_lock);
	return down;
}

/**
 * kxfer_line_take_first() - take the first waiting job, if it can go on over a link
 * @line: line; for its work alone
 * @link: the peer's link
 * @target: out: otherwise, the target that has to be granted again, with a reference; or NULL
 *
 * Return: the job, for kxfer_line_go_on(), or NULL.
 */
struct kxfer_active_job *kxfer_line_take_first(struct kxfer_line *line,
					       const struct kxfer_link *link,
					       struct kxfer_target **target)
{
	struct kxfer_session *session = line->peer->session;
	struct kxfer_active_job *job;

	*target = NULL;
	spin_lock_bh(&session->job_lock);
	line->taken = false;
	job = list_first_entry_or_null(&line->jobs, struct kxfer_active_job, lane_node);
	if (!job || line->closed) {
		line->down = !!job;
		job = NULL;
	} else if (job->target->link != link) {
		*target = job->target;
		kref_get(&job->target->ref);
		job = NULL;
	} else {
		line->taken = true;
		take_off(job);
		/* Of a job that was on a lane kxfer_line_sort() has decided. */
		if (!job->nr_tries && is_cut_off(job))
			job->status = -ECONNRESET;
	}
	spin_unlock_bh(&session->job_lock);
	return job;
}

/*
 * Put a job that was taken on its lane, unless that is closed already. Return: whether it is off
 * the line.
 */
static bool start(struct kxfer_active_job *job, struct kxfer_job_list *ended)
{
	struct kxfer_line *line = job->target->line;
	struct kxfer_session *session = job->session;
	struct kxfer_lane *lane;
	bool open;

	local_bh_disable();
	spin_lock(&session->job_lock);
	lane = kxfer_flow_lock_for(job->target->flow, job->length);
	open = lane->open;
	if (open)
		kxfer_job_start(job, lane, false, ended);
	else if (!keep(job, true))
		kxfer_job_list_add(ended, job);
	line->taken = false;
	spin_unlock(&session->job_lock);
	kxfer_job_pump_locked(lane);
	spin_unlock(&lane->lock);
	local_bh_enable();
	return open;
}

/* Put a job that was taken back in front of the others; or end it, if the line is closed. */
static void put_back(struct kxfer_active_job *job)
{
	struct kxfer_session *session = job->session;
	bool kept;

	spin_lock_bh(&session->job_lock);
	kept = keep(job, true);
	job->target->line->taken = false;
	spin_unlock_bh(&session->job_lock);
	if (!kept)
		kxfer_complete(job, -ECONNRESET, ktime_get_ns());
}

/**
 * kxfer_line_go_on() - put a job that was taken on its lane
 * @job: from kxfer_line_take_first()
 *
 * May sleep. Return: 0: it is there, or has ended; -errno: it waits, and the link is of no use.
 */
int kxfer_line_go_on(struct kxfer_active_job *job)
{
	struct kxfer_line *line = job->target->line;
	u64 link = job->target->link->id;
	struct kxfer_job_list ended = {};
	int ret = job->status ?: kxfer_submit_plan_again(job);

	if (ret == -ENODEV) {
		put_back(job);
		return ret;
	}
	if (ret) {
		kxfer_complete(job, ret, ktime_get_ns());
		return 0;
	}
	ret = start(job, &ended) ? 0 : -ECONNRESET;
	if (ended.first) {
		kxfer_complete_all(&ended, -ECONNRESET, ktime_get_ns());
	} else if (!ret) {
		kxfer_stat_inc(KXFER_STAT_JOBS_RESUMED);
		kxfer_story_tell(line, KXFER_LINE_RESUMED, link, 0, 1);
	}
	return ret;
}

/** kxfer_line_end_target() - no job of a target goes on: its export is gone */
void kxfer_line_end_target(struct kxfer_line *line, struct kxfer_target *target)
{
	struct kxfer_session *session = line->peer->session;
	struct kxfer_job_list ended = {};
	struct kxfer_lane *lane;

	local_bh_disable();
	spin_lock(&session->job_lock);
	lane = kxfer_flow_lock(target->flow);
	target->revoked = true;
	spin_unlock(&lane->lock);
	end_all(line, target, -EKEYREVOKED, &ended);
	spin_unlock(&session->job_lock);
	kxfer_complete_all_bh(&ended, -EKEYREVOKED, ktime_get_ns());
	local_bh_enable();
}

/**
 * kxfer_line_hold() - hold new jobs back, because all targets go to another link
 * @line: line; for its work alone
 * @most_ms: longest time that this takes; nothing is lost meanwhile
 *
 * Return: false if the line is closed, or down already.
 */
bool kxfer_line_hold(struct kxfer_line *line, u32 most_ms)
{
	struct kxfer_session *session = line->peer->session;
	bool begun;

	spin_lock_bh(&session->job_lock);
	begun = !line->closed && !line->down;
	if (begun) {
		line->moving = true;
		line->down = true;
		line->backoff_ms = KXFER_BACKOFF_MIN_MS;
		begin_loss(line, most_ms);
	}
	spin_unlock_bh(&session->job_lock);
	return begun;
}

/** kxfer_line_let_go() - all targets are on the peer's link, or stay where they are */
void kxfer_line_let_go(struct kxfer_line *line)
{
	spin_lock_bh(&line->peer->session->job_lock);
	line->moving = false;
	spin_unlock_bh(&line->peer->session->job_lock);
}

/** kxfer_line_is_closed() - whether its work has to end */
bool kxfer_line_is_closed(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;
	bool closed;

	spin_lock_bh(&session->job_lock);
	closed = line->closed;
	spin_unlock_bh(&session->job_lock);
	return closed;
}
