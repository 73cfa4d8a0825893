// SPDX-License-Identifier: GPL-2.0
/*
 * Quick jobs: those that go straight from the caller's array to their lane.
 *
 * Most jobs are READs, WRITEs and eager messages of one piece, on a target and a region that were
 * used just before, and nothing is queued in front of them. SUBMIT tries these first, and NOPs.
 * It takes the locks of the session and of the lane once for up to QUICK_JOBS jobs, and builds
 * each job with its work request in one step. At the first job that is anything else it stops,
 * and the batch (submit.c, batch.c) goes on from there. So a refusal has its error from there.
 *
 * A quick job is an ordinary one from the moment the locks are dropped: in its session's list,
 * posted on its lane, with a chain. So whatever completes, cancels, withdraws or ends jobs treats
 * it as any other (job.c, job_stop.c). Beside that:
 *  - Its target and region stay, because the session's lock is held. They are counted as in use
 *    before the locks are dropped, and a job can complete only after that.
 *  - Its mapping is held by a use of the call, which becomes the use of the first job.
 *  - The lane's lock was taken while nothing was queued there (kxfer_flow_is_next()), and is
 *    kept until the jobs are posted: they overtake no other job.
 *  - User memory is copied under the locks, without page faults. A page that is not there
 *    leaves the job to the batch.
 *
 * Context: calls of users; does not sleep. Lock order: as in job.c.
 */
#include <linux/ktime.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/plan.h"
#include "base/stats.h"
#include "job/chain.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/message.h"
#include "job/quick.h"
#include "job/ring.h"
#include "job/sender.h"
#include "job/submit.h"
#include "job/target.h"
#include "job/trace.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"
#include "node/user.h"

#define QUICK_JOBS	KXFER_CHAIN_WRS	/* most jobs in one hold of the locks */

/**
 * struct quick - jobs of one hold of the locks
 * @session: session of the caller
 * @cmd: the call; @accepted counts the jobs taken
 * @now_ns: time of the submission
 * @user: copy of the next job
 * @left: jobs that may still be taken, with @user
 * @target: target of all jobs
 * @region: region of all jobs
 * @mapping: mapping of @region for the device of @target
 * @op: op of the last job, for which the next five members are; KXFER_OP_NOP: there was none
 * @flags: KXFER_JOB_F_* that such a job may have
 * @limits: limits of the device
 * @remote: keys of @target, or the place of a message
 * @nr_remote: entries of @remote
 * @room: bytes at the remote end
 * @piece: what the next job moves
 * @bulk: the jobs are bulk (flow.h)
 * @error: -errno of the call; 0: the batch finds out about the next job
 */
struct quick {
	struct kxfer_session *session;
	struct kxfer_submit *cmd;
	u64 now_ns;
	struct kxfer_job user;
	u32 left;
	struct kxfer_target *target;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	u32 op;
	u32 flags;
	const struct kxfer_plan_limits *limits;
	const struct kxfer_extent *remote;
	u32 nr_remote;
	u64 room;
	struct kxfer_piece piece;
	bool bulk;
	int error;
};

/* Whether a job of that kind may be quick. NOPs are apart. */
static bool is_quick(u32 op)
{
	return op <= KXFER_OP_WRITE || op == KXFER_OP_SEND;
}

/* Copy the next job into @user. Return: false if not all of it is there. */
static bool copy_next(struct quick *quick)
{
	const struct kxfer_job __user *jobs = u64_to_user_ptr(quick->cmd->jobs);
	unsigned long left;

	pagefault_disable();
	left = __copy_from_user_inatomic(&quick->user, jobs + quick->cmd->accepted,
					 sizeof(quick->user));
	pagefault_enable();
	return !left;
}

/* A job was taken. Return: whether there is another. */
static bool next(struct quick *quick)
{
	quick->cmd->accepted++;
	return --quick->left && copy_next(quick);
}

/* Called with job_lock held. Return: a job to fill in, or NULL without memory. */
static struct kxfer_active_job *take_job(struct quick *quick)
{
	if (kxfer_fault(JOB))
		quick->error = -ENOMEM;
	return quick->error ? NULL : kxfer_job_take_locked(quick->session);
}

/* ---- NOPs ---- */

/* Another is left to the batch, which refuses it. */
static bool is_nop(const struct kxfer_job *user)
{
	return user->op == KXFER_OP_NOP && !(user->flags | user->region | user->target) &&
	       !(user->region_offset | user->target_offset | user->length | user->cookie |
		 user->compare_add | user->swap);
}

/* Called with job_lock held. A job that is done needs no other members. */
static void take_nops(struct quick *quick)
{
	struct kxfer_session *session = quick->session;
	struct kxfer_active_job *job;

	do {
		job = is_nop(&quick->user) ? take_job(quick) : NULL;
		if (!job)
			return;
		job->session = session;
		job->length = 0;
		job->completion = (struct kxfer_completion) {
			.user_data = quick->user.user_data,
			.op = KXFER_OP_NOP,
			.submitted_ns = quick->now_ns,
			.completed_ns = quick->now_ns,
		};
		trace_kxfer_job_checked(job);
		trace_kxfer_job_completed(job);
		kxfer_job_list_add(&session->done, job);
	} while (next(quick));
}

/* With a ring, made under the session's lock, the batch completes NOPs. Return: number taken. */
static u32 submit_nops(struct quick *quick)
{
	struct kxfer_session *session = quick->session;
	u32 before = quick->cmd->accepted, nr;

	if (kxfer_ring_of(session))
		return 0;
	spin_lock_bh(&session->job_lock);
	quick->left = kxfer_ring_room(session, quick->left);
	if (quick->left)
		take_nops(quick);
	nr = quick->cmd->accepted - before;
	WRITE_ONCE(session->nr_done, session->nr_done + nr);
	kxfer_job_reserve_locked(session, 0);
	if (wq_has_sleeper(&session->wait))
		wake_up(&session->wait);
	spin_unlock_bh(&session->job_lock);
	kxfer_stat_add(KXFER_STAT_JOBS_SUBMITTED, nr);
	kxfer_stat_add(KXFER_STAT_JOBS_COMPLETED, nr);
	return nr;
}

/* ---- READs, WRITEs and eager messages ---- */

/*
 * Find what the first job names, if it was used just before. On iWARP no transfer is quick: READs
 * need a sink, and WRITEs a placement READ. Return: whether all is there.
 */
static bool bind(struct quick *quick)
{
	struct kxfer_session *session = quick->session;
	const struct kxfer_job *user = &quick->user;

	quick->target = READ_ONCE(session->last_target);
	quick->region = READ_ONCE(session->last_region);
	if (!quick->target || quick->target->id != user->target || !quick->target->flow ||
	    !quick->region || quick->region->id != user->region ||
	    quick->target->link->dev->iwarp)
		return false;
	quick->op = KXFER_OP_NOP;
	quick->bulk = kxfer_flow_is_bulk(user->length);
	quick->mapping = kxfer_mapping_find(quick->region, quick->target->link->dev);
	return quick->mapping;
}

/*
 * Look at what jobs with the op of the next one have in common. Return: whether such jobs may be
 * quick.
 */
static bool take_op(struct quick *quick)
{
	const struct kxfer_target *target = quick->target;
	u32 op = quick->user.op;

	if (op == KXFER_OP_NOP || !is_quick(op) || !(target->rights & kxfer_op_right(op)) ||
	    (op == KXFER_OP_READ && !quick->region->memory->writable) ||
	    (op == KXFER_OP_SEND && !kxfer_sender_served(target->link)))
		return false;
	quick->op = op;
	quick->flags = 0;
	quick->limits = kxfer_device_limits(target->link->dev, op);
	quick->remote = target->keys;
	quick->nr_remote = target->nr_keys;
	quick->room = target->length;
	if (op == KXFER_OP_SEND) {
		/* With a credit such a message has a place. */
		if (target->link->features & KXFER_WIRE_FEATURE_WAIT)
			quick->flags = KXFER_JOB_F_WAIT;
		quick->remote = &kxfer_message_place;
		quick->nr_remote = 1;
		quick->room = min_t(u64, target->length, KXFER_MESSAGE_EAGER_MAX);
	}
	return true;
}

static bool is_within(u64 offset, u64 length, u64 limit)
{
	return offset <= limit && length <= limit - offset;
}

/* Whether the next job is one of one piece like the first, and accepted; fills in @piece. */
static bool is_piece(struct quick *quick)
{
	const struct kxfer_mapping *mapping = quick->mapping;
	const struct kxfer_job *user = &quick->user;

	if ((user->op != quick->op && !take_op(quick)) || user->flags & ~quick->flags ||
	    user->cookie | user->compare_add | user->swap || !user->length ||
	    user->target != quick->target->id || user->region != quick->region->id ||
	    kxfer_flow_is_bulk(user->length) != quick->bulk ||
	    !is_within(user->target_offset, user->length, quick->room) ||
	    !is_within(user->region_offset, user->length, quick->region->memory->length) ||
	    (user->op == KXFER_OP_SEND && user->target_offset))
		return false;
	return kxfer_plan_piece(&quick->piece, mapping->extents, mapping->nr_extents,
				user->region_offset, quick->remote, quick->nr_remote,
				user->target_offset, user->length, quick->limits);
}

/* Called with the locks held. Return: false if there is no room or credit for the next job. */
static bool take_piece(struct quick *quick, struct kxfer_lane *lane)
{
	bool message = quick->op == KXFER_OP_SEND;
	struct kxfer_active_job *job;

	if (!kxfer_chain_has_room(lane) ||
	    (message && !kxfer_message_may_go(quick->target, lane)))
		return false;
	job = take_job(quick);
	if (!job)
		return false;
	if (message)
		kxfer_message_went(quick->target);
	kxfer_job_make(job, quick->session, &quick->user, quick->now_ns);
	job->region = quick->region;
	job->mapping = quick->mapping;
	job->target = quick->target;
	job->lane = lane;
	trace_kxfer_job_checked(job);
	kxfer_chain_add_piece(lane, job, &quick->piece);
	trace_kxfer_job_planned(job);
	list_add_tail(&job->session_node, &quick->session->jobs);
	kxfer_job_posted(lane, job);
	return true;
}

/* Whether jobs may be posted at once. Called with the lane's lock held. */
static bool is_free(const struct quick *quick, const struct kxfer_lane *lane)
{
	return lane->open && !quick->target->revoked && kxfer_flow_is_next(quick->target->flow) &&
	       kxfer_link_is_live(lane->link);
}

/* Called with the locks held, before a job can complete. The call has a use of the mapping. */
static void count(struct quick *quick, u32 nr)
{
	kxfer_job_reserve_locked(quick->session, nr);
	atomic_add(nr, &quick->region->users);
	atomic_add(nr - 1, &quick->mapping->users);
	atomic_add(nr, &quick->target->nr_jobs);
	kxfer_stat_add(KXFER_STAT_JOBS_SUBMITTED, nr);
}

/*
 * The lane's doorbell is rung without job_lock, and both locks are dropped before softirqs run,
 * as for a batch. Return: number taken.
 */
static u32 submit_pieces(struct quick *quick)
{
	struct kxfer_session *session = quick->session;
	u32 before = quick->cmd->accepted, nr;
	struct kxfer_lane *lane;

	local_bh_disable();
	spin_lock(&session->job_lock);
	quick->left = kxfer_ring_room(session, quick->left);
	lane = kxfer_flow_lock_for(quick->target->flow, quick->user.length);
	if (quick->left && is_free(quick, lane))
		while (take_piece(quick, lane) && next(quick) && is_piece(quick))
			;
	nr = quick->cmd->accepted - before;
	if (nr)
		count(quick, nr);
	spin_unlock(&session->job_lock);
	kxfer_job_pump_locked(lane);
	if (nr)
		trace_kxfer_handed_over(session, nr);
	spin_unlock(&lane->lock);
	local_bh_enable();
	return nr;
}

static u32 submit_transfers(struct quick *quick)
{
	struct kxfer_cq *cq;
	u32 nr = 0;

	if (!bind(quick))
		return 0;
	/* To take the locks in vain costs a job that needs a batch a microsecond. */
	if (is_piece(quick)) {
		cq = kxfer_submit_own(quick->target->flow, quick->cmd);
		nr = submit_pieces(quick);
		kxfer_submit_poll(quick->session, cq, quick->cmd);
	}
	if (!nr)
		kxfer_mapping_put(quick->mapping, 1);
	return nr;
}

/* Try jobs like the next one, at most @want. Return: number taken. */
static u32 submit_some(struct quick *quick, u32 want)
{
	struct kxfer_user *user = quick->session->user;
	u32 share, nr = 0;

	if (!copy_next(quick))
		return 0;
	share = kxfer_user_take_some(user, KXFER_SHARE_JOBS, want);
	quick->left = share;
	if (share)
		nr = quick->user.op == KXFER_OP_NOP ? submit_nops(quick) : submit_transfers(quick);
	kxfer_user_return(user, KXFER_SHARE_JOBS, share - nr);
	return nr;
}

/* Whether the first job may be quick: to try costs others time. A second look decides. */
static bool looks_quick(const struct kxfer_submit *cmd)
{
	const struct kxfer_job __user *jobs = u64_to_user_ptr(cmd->jobs);
	unsigned long left;
	u32 op;

	if (cmd->stride != sizeof(*jobs) || !access_ok(jobs, (size_t)cmd->nr_jobs * sizeof(*jobs)))
		return false;
	pagefault_disable();
	left = __get_user(op, &jobs->op);
	pagefault_enable();
	return !left && is_quick(op);
}

/**
 * kxfer_quick_submit() - accept quick jobs from the head of a call
 * @session: session of the caller, which holds its lock for reading
 * @cmd: the call, checked; @accepted is increased
 *
 * Return: 0: the batch has to go on with the rest, if there is one; -ENOMEM: the call ends.
 */
int kxfer_quick_submit(struct kxfer_session *session, struct kxfer_submit *cmd)
{
	/* Only what is set is read. */
	struct quick quick __uninitialized;
	u32 want, nr;

	if (!looks_quick(cmd))
		return 0;
	quick.session = session;
	quick.cmd = cmd;
	quick.error = 0;
	quick.now_ns = ktime_get_ns();
	do {
		want = min_t(u32, cmd->nr_jobs - cmd->accepted, QUICK_JOBS);
		nr = submit_some(&quick, want);
	} while (nr == want && cmd->accepted < cmd->nr_jobs);
	return quick.error;
}
