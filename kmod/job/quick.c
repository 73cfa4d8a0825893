// SPDX-License-Identifier: GPL-2.0
/*
 * Quick jobs: those that go straight from the caller's array to their lane.
 *
 * Most jobs are READs, WRITEs and eager messages of one piece, on a target and a region that were
 * used just before, and nothing is queued in front of them. SUBMIT tries these first, and NOPs.
 * It takes the locks of the session and of the lane once for up to QUICK_JOBS jobs, and builds
 * each job with its work request in one step. At the first job that is anything else it stops,
 * and the batch (submit.c, batch.c) goes on from there. So a refusal has its error from there. If
 * only the objects of that job were not known, the batch takes it alone, and quick jobs are tried
 * once more.
 *
 * A quick job is posted when it is accepted. So it is never stopped: it completes, or its lane
 * ends. It needs no more than its chain (quick_end.c has who looks for it, and how it ends):
 *  - Its target and region stay, because the session's lock is held. They are counted as in use
 *    before the locks are dropped, and a job can complete only after that.
 *  - Its completion has a place (done.c). Without a free one the batch makes more.
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
#include "base/plan.h"
#include "base/stats.h"
#include "job/chain.h"
#include "job/completion.h"
#include "job/done.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/message.h"
#include "job/quick.h"
#include "job/ring.h"
#include "job/sender.h"
#include "job/sq.h"
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
#define COPIES		8		/* jobs copied at once, on the stack */

/**
 * struct quick - jobs of one hold of the locks
 * @session: session of the caller
 * @cmd: the call; @accepted counts the jobs taken
 * @sq: submission ring that the jobs are in, locked; or NULL: they are at @cmd->jobs
 * @now_ns: time of the submission
 * @user: copy of the next job
 * @user_end: end of the jobs that were copied with it
 * @copies: copies of jobs
 * @left: jobs that may still be taken, with @user
 * @target: target of all jobs
 * @region: region of all jobs
 * @mapping: mapping of @region for the device of @target
 * @local: extent of @mapping that the last job was in
 * @op: op of the last job, for which the members up to @span are; KXFER_OP_NOP: there was none
 * @opcode: opcode of such a job's work request
 * @flags: KXFER_JOB_F_* that such a job may not have
 * @offsets: bits that its target_offset may not have
 * @remote: extent of the remote end that the last job was in
 * @shortest: least length, so that all jobs are bulk or none is (flow.h)
 * @span: the greatest length minus @shortest
 * @nr_reads: READs among the jobs taken in this hold of the locks
 * @unknown: the next job has no flags, and names what was not used just before or has no mapping
 */
struct quick {
	struct kxfer_session *session;
	struct kxfer_submit *cmd;
	const struct kxfer_session_sq *sq;
	u64 now_ns;
	const struct kxfer_job *user;
	const struct kxfer_job *user_end;
	u32 left;
	struct kxfer_target *target;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	const struct kxfer_extent *local;
	u32 op;
	enum ib_wr_opcode opcode;
	u32 flags;
	u64 offsets;
	const struct kxfer_extent *remote;
	u64 shortest;
	u64 span;
	u32 nr_reads;
	bool unknown;
	struct kxfer_job copies[COPIES];
};

/* Whether a job of that kind may be quick. NOPs are apart. */
static bool is_quick(u32 op)
{
	return op <= KXFER_OP_WRITE || op == KXFER_OP_SEND;
}

/*
 * Copy the next job, or the next COPIES of @nr. The sizes are constants: so the kernel needs not
 * check at run time that they are within the array. Return: false if not all of it is there.
 */
static bool copy_user_jobs(struct quick *quick, u32 nr)
{
	const struct kxfer_job __user *jobs = u64_to_user_ptr(quick->cmd->jobs);
	struct kxfer_job *to = quick->copies;
	unsigned long left = 1;

	jobs += quick->cmd->accepted;
	quick->user = to;
	quick->user_end = to + 1;
	pagefault_disable();
	if (nr >= COPIES) {
		left = __copy_from_user_inatomic(to, jobs, sizeof(quick->copies));
		if (!left)
			quick->user_end = to + COPIES;
	}
	if (left)
		left = __copy_from_user_inatomic(to, jobs, sizeof(*to));
	pagefault_enable();
	return !left;
}

/* The same for jobs in the submission ring. */
static bool copy_ring_jobs(struct quick *quick, u32 nr)
{
	u32 first = quick->cmd->accepted;

	quick->user = quick->copies;
	if (nr >= COPIES && kxfer_sq_is_row(quick->sq, first, COPIES)) {
		kxfer_sq_copy(quick->sq, first, COPIES, quick->copies);
		quick->user_end = quick->copies + COPIES;
	} else {
		kxfer_sq_copy(quick->sq, first, 1, quick->copies);
		quick->user_end = quick->copies + 1;
	}
	return true;
}

static bool copy_jobs(struct quick *quick, u32 nr)
{
	return quick->sq ? copy_ring_jobs(quick, nr) : copy_user_jobs(quick, nr);
}

/* A job was taken. Return: whether there is another. */
static bool next(struct quick *quick)
{
	quick->cmd->accepted++;
	if (!--quick->left)
		return false;
	return ++quick->user < quick->user_end || copy_jobs(quick, quick->left);
}

/* The caller may wait for a number of unread completions. Called with job_lock held. */
static void look_at_ring(struct kxfer_session *session)
{
	if (session->ring)
		kxfer_ring_look_locked(session);
}

/* ---- NOPs ---- */

/* Another is left to the batch, which refuses it. */
static bool is_nop(const struct kxfer_job *user)
{
	return user->op == KXFER_OP_NOP && !(user->flags | user->region | user->target) &&
	       !(user->region_offset | user->target_offset | user->length | user->cookie |
		 user->compare_add | user->swap);
}

/* Called with job_lock held. */
static void take_nops(struct quick *quick)
{
	struct kxfer_session *session = quick->session;
	struct kxfer_completion *completion;

	do {
		if (!is_nop(quick->user))
			return;
		completion = kxfer_done_next(session);
		*completion = (struct kxfer_completion) {
			.user_data = quick->user->user_data,
			.op = KXFER_OP_NOP,
			.submitted_ns = quick->now_ns,
			.completed_ns = quick->now_ns,
		};
		trace_kxfer_job_checked(session, completion, 0, NULL, NULL);
		trace_kxfer_job_completed(session, completion, 0, NULL, NULL);
	} while (next(quick));
}

/* Return: number taken. */
static u32 submit_nops(struct quick *quick)
{
	struct kxfer_session *session = quick->session;
	u32 before = quick->cmd->accepted, nr;

	spin_lock_bh(&session->job_lock);
	look_at_ring(session);
	quick->left = kxfer_done_room(session, quick->left);
	if (quick->left)
		take_nops(quick);
	nr = quick->cmd->accepted - before;
	kxfer_complete_places(session, 0, nr);
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
	const struct kxfer_job *user = quick->user;

	quick->target = READ_ONCE(session->last_target);
	quick->region = READ_ONCE(session->last_region);
	quick->unknown = !user->flags;
	if (!quick->target || quick->target->id != user->target || !quick->target->flow ||
	    !quick->region || quick->region->id != user->region)
		return false;
	quick->unknown = false;
	/* A job that may outlive its link is more than its chain. */
	if (quick->target->link->dev->iwarp || quick->target->line)
		return false;
	quick->op = KXFER_OP_NOP;
	quick->shortest = kxfer_flow_is_bulk(user->length) ? KXFER_BULK_BYTES + 1 : 1;
	quick->mapping = kxfer_mapping_find(quick->region, quick->target->link->dev);
	if (!quick->mapping) {
		quick->unknown = !user->flags;
		return false;
	}
	quick->local = quick->mapping->extents;
	return true;
}

static enum ib_wr_opcode opcode_of(u32 op)
{
	if (op == KXFER_OP_READ)
		return IB_WR_RDMA_READ;
	return op == KXFER_OP_WRITE ? IB_WR_RDMA_WRITE : IB_WR_SEND_WITH_IMM;
}

/* Return: the greatest length of a piece with @op; 0: there is none, or it has more limits. */
static u64 longest_piece(const struct quick *quick, u32 op)
{
	const struct kxfer_plan_limits *limits = kxfer_device_limits(quick->target->link->dev, op);
	u64 longest = limits->max_wr_bytes;

	if (!limits->max_sge || limits->border_bytes)
		return 0;
	if (op == KXFER_OP_SEND)
		longest = min3(longest, quick->target->length, (u64)KXFER_MESSAGE_EAGER_MAX);
	return quick->shortest == 1 ? min_t(u64, longest, KXFER_BULK_BYTES) : longest;
}

/*
 * Look at what jobs with the op of the next one have in common. Return: whether such jobs may be
 * quick.
 */
static bool take_op(struct quick *quick)
{
	const struct kxfer_target *target = quick->target;
	u32 op = quick->user->op;
	u64 longest;

	if (op == KXFER_OP_NOP || !is_quick(op) || !(target->rights & kxfer_op_right(op)) ||
	    (op == KXFER_OP_READ && !quick->region->memory->writable) ||
	    (op == KXFER_OP_SEND && (!kxfer_sender_served(target->link) ||
				     quick->region->memory->dmabuf)))
		return false;
	longest = longest_piece(quick, op);
	if (longest < quick->shortest)
		return false;
	quick->op = op;
	quick->opcode = opcode_of(op);
	quick->span = longest - quick->shortest;
	quick->flags = ~0;
	quick->offsets = 0;
	quick->remote = target->keys;
	if (op == KXFER_OP_SEND) {
		/* With a credit such a message has a place. */
		if (target->link->features & KXFER_WIRE_FEATURE_WAIT)
			quick->flags = ~KXFER_JOB_F_WAIT;
		quick->offsets = U64_MAX;
		quick->remote = &kxfer_message_place;
	}
	return true;
}

/* Whether the next job is within one local and one remote extent: those of the job before. */
static __always_inline bool is_within(const struct quick *quick)
{
	const struct kxfer_job *user = quick->user;

	return kxfer_extent_has(quick->local, user->region_offset, user->length) &&
	       kxfer_extent_has(quick->remote, user->target_offset, user->length);
}

/*
 * Find the extents that the next job begins in. Return: false if it begins outside the region or
 * the target, which the extents cover, and no more.
 */
static bool find_extents(struct quick *quick)
{
	const struct kxfer_mapping *mapping = quick->mapping;
	const struct kxfer_target *target = quick->target;
	const struct kxfer_job *user = quick->user;

	if (user->region_offset >= quick->region->memory->length)
		return false;
	quick->local = mapping->extents + kxfer_extents_find(mapping->extents, mapping->nr_extents,
							     user->region_offset);
	if (quick->op == KXFER_OP_SEND)
		return true;
	if (user->target_offset >= target->length)
		return false;
	quick->remote = target->keys + kxfer_extents_find(target->keys, target->nr_keys,
							  user->target_offset);
	return true;
}

/* Whether the next job is one of one piece like the first, and accepted. */
static bool is_piece(struct quick *quick)
{
	const struct kxfer_job *user = quick->user;

	if ((user->op != quick->op && !take_op(quick)) ||
	    (user->target ^ quick->target->id) | (user->region ^ quick->region->id) |
	    (user->flags & quick->flags) ||
	    user->cookie | user->compare_add | user->swap |
	    (user->target_offset & quick->offsets) ||
	    user->length - quick->shortest > quick->span)
		return false;
	return is_within(quick) || (find_extents(quick) && is_within(quick));
}

/* Called with the locks held: build the chain that is the next job. */
static void add_job(struct quick *quick, struct kxfer_lane *lane)
{
	struct kxfer_target *target = quick->target;
	const struct kxfer_job *user = quick->user;
	struct kxfer_chain *chain;
	struct kxfer_piece piece;

	kxfer_plan_piece(&piece, quick->local, user->region_offset, quick->remote,
			 user->target_offset, user->length);
	chain = kxfer_chain_add_piece(lane, &piece, quick->opcode, target->grant);
	chain->offset = user->region_offset;
	chain->target = target;
	chain->region = quick->region;
	chain->mapping = quick->mapping;
	chain->completion.user_data = user->user_data;
	chain->completion.bytes = 0;
	chain->completion.status = 0;
	chain->completion.op = quick->op;
	chain->completion.submitted_ns = quick->now_ns;
	WRITE_ONCE(chain->session, quick->session);
	if (quick->op == KXFER_OP_READ)
		quick->nr_reads++;
	else
		kxfer_chain_inline(lane, lane->scratch->last, quick->region->memory,
				   user->region_offset, user->length);
	kxfer_mapping_to_device(quick->mapping, user->region_offset, user->length);
	trace_kxfer_job_checked(quick->session, &chain->completion, user->length, lane,
				quick->target);
	trace_kxfer_job_planned(quick->session, &chain->completion, user->length, lane,
				quick->target);
}

/* Called with the locks held. Return: false if there is no room or credit for the next job. */
static bool take_piece(struct quick *quick, struct kxfer_lane *lane)
{
	bool message = quick->op == KXFER_OP_SEND;

	if (!kxfer_chain_bytes_left(lane) ||
	    (message && !kxfer_message_may_go(quick->target, lane)))
		return false;
	if (message)
		kxfer_message_went(quick->target);
	add_job(quick, lane);
	return true;
}

/* Whether jobs may be posted at once. Called with the lane's lock held. */
static bool is_free(const struct quick *quick, const struct kxfer_lane *lane)
{
	return lane->open && !quick->target->revoked && kxfer_flow_is_next(quick->target->flow) &&
	       kxfer_link_is_live(lane->link);
}

/* A session looks first for jobs of the flow that has waited longest (kxfer_quick_lane()). */
static void last_of_flows(struct kxfer_session *session, struct kxfer_flow *flow)
{
	if (!list_is_last(&flow->session_node, &session->flows))
		list_move_tail(&flow->session_node, &session->flows);
}

/* Called with the locks held, before a job can complete. The call has a use of the mapping. */
static void count(struct quick *quick, struct kxfer_lane *lane, u32 nr)
{
	kxfer_job_reserve_locked(quick->session, nr);
	last_of_flows(quick->session, quick->target->flow);
	kxfer_flow_join_some(quick->target->flow, nr, quick->nr_reads);
	WRITE_ONCE(lane->nr_posted, lane->nr_posted + nr);
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
	look_at_ring(session);
	lane = kxfer_flow_lock_for(quick->target->flow, quick->user->length);
	quick->nr_reads = 0;
	quick->left = min(kxfer_done_room(session, quick->left), kxfer_chain_pieces(lane));
	if (quick->left && is_free(quick, lane))
		while (take_piece(quick, lane) && next(quick) && is_piece(quick))
			;
	nr = quick->cmd->accepted - before;
	if (nr)
		count(quick, lane, nr);
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

	if (!copy_jobs(quick, want))
		return 0;
	share = kxfer_user_take_some(user, KXFER_SHARE_JOBS, want);
	quick->left = share;
	if (share)
		nr = quick->user->op == KXFER_OP_NOP ? submit_nops(quick) : submit_transfers(quick);
	kxfer_user_return(user, KXFER_SHARE_JOBS, share - nr);
	return nr;
}

/* Whether the next job may be quick: to try costs others time. A second look decides. */
static bool looks_quick(const struct kxfer_submit *cmd, const struct kxfer_session_sq *sq)
{
	const struct kxfer_job __user *jobs = u64_to_user_ptr(cmd->jobs);
	unsigned long left;
	u32 op;

	if (sq)
		return is_quick(READ_ONCE(kxfer_sq_at(sq, cmd->accepted)->op));
	if (cmd->stride != sizeof(*jobs) || !access_ok(jobs, (size_t)cmd->nr_jobs * sizeof(*jobs)))
		return false;
	pagefault_disable();
	left = __get_user(op, &jobs[cmd->accepted].op);
	pagefault_enable();
	return !left && is_quick(op);
}

/**
 * kxfer_quick_submit() - accept quick jobs from the head of a call
 * @session: session of the caller, which holds its lock for reading
 * @cmd: the call, checked; not all of its jobs are accepted; @accepted is increased
 * @sq: submission ring that the jobs are in, locked; or NULL: they are at @cmd->jobs
 *
 * The batch has to go on with the rest, if there is one. Return: true if the next job is not
 * quick only for what it names: if the batch accepts it, those behind it may be.
 */
bool kxfer_quick_submit(struct kxfer_session *session, struct kxfer_submit *cmd,
			const struct kxfer_session_sq *sq)
{
	/* Only what is set is read. */
	struct quick quick __uninitialized;
	u32 want, nr;

	if (!looks_quick(cmd, sq))
		return false;
	quick.session = session;
	quick.cmd = cmd;
	quick.sq = sq;
	quick.now_ns = ktime_get_ns();
	do {
		quick.unknown = false;
		want = min_t(u32, cmd->nr_jobs - cmd->accepted, QUICK_JOBS);
		nr = submit_some(&quick, want);
	} while (nr == want && cmd->accepted < cmd->nr_jobs);
	return quick.unknown;
}
