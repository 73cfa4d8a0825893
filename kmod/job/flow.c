// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: the lane of a link that a session's jobs use, and the turns of sessions there.
 *
 * A flow holds the jobs that one session has in flight on one link. All of them are on one
 * lane, so that the promises about the order of jobs (Documentation/uapi.rst) follow from
 * the order of one send queue. A link has small lanes, over which sessions are spread by
 * their ids, and a bulk lane. So short jobs of one session do not wait behind long jobs of
 * another. A flow moves to the lane that the next job wants only while none of its jobs is
 * in flight:
 *
 *  - Every earlier job has completed, and so taken effect at the peer: a READ has its
 *    bytes, a WRITE is placed, a NOTIFY is answered. A job posted on another lane then
 *    comes after it.
 *  - A WRITE on iWARP without a placement READ after it (LOCAL_ONLY) completes before it is
 *    placed. A flow with such WRITEs stays on its lane (@unplaced) until a WRITE with a
 *    placement READ has followed them.
 *
 *  - An eager message completes when it has arrived, and the peer may not have handled it yet.
 *    A flow that sent such messages stays on its lane (@unhandled) until CREDITS, which the peer
 *    handles after them, has been answered; and as long as that is under way (@nr_asked).
 *
 * So if a session mixes short and long jobs, its short jobs wait behind its own long ones,
 * or its long jobs stay on a small lane. Other sessions then wait for what is posted there at
 * a time, which is limited (KXFER_SMALL_BYTES), and for one turn of that session.
 *
 * Sessions take turns of KXFER_TURN_BYTES on a lane, so that none waits for all jobs that
 * another has queued. The send queue knows no turns, so posted bytes are limited by the
 * lane's max_bytes (chain.c). A job that finds nothing queued on its lane is posted at once
 * and takes no turn.
 *
 * A job with KXFER_JOB_F_ORDERED or _FENCE at the head of its flow is held there until
 * nothing, or no READ and no atomic, of the flow is posted. So is a message that waits for
 * credits (sender.c), until they come. The jobs behind it wait too;
 * other flows do not. Posted work ends, at the latest with the link, and each end of a chain
 * or message leads to a pump. So no job is held for ever, and no record of held jobs is
 * needed. A fence by the send queue (IB_SEND_FENCE) would save a round trip, but
 *
 *  - it holds up the lane, with the jobs of all sessions there;
 *  - messages and short WRITEs are copied, and bounce buffers filled, when they are posted:
 *    too early for the bytes that an earlier READ brings;
 *  - a job that waits in the send queue cannot be cancelled, nor end at its deadline;
 *  - drivers differ: siw fails at a fenced READ (siw_activate_tx_from_sq()). rxe of 6.1 may
 *    check for a waiter on the READ that has ended (do_complete()) while rxe_requester() on
 *    another CPU is about to note that it waits: then the send queue stalls until more is
 *    posted.
 *
 * A flow is in a list of its lane while one of its jobs is queued. The first flow in the list
 * for turns has the turn, and its first job is posted next. A new flow, or one whose turn is
 * over, goes to the tail. A flow whose first job is held, or is a message without a free
 * slot, goes into another list, and comes back when that may have changed. So a pump does not
 * check all flows that cannot post, of however many sessions, again and again with bottom
 * halves off. A job is in the list of its target's flow as long as it is queued, and counted
 * there until it leaves the lane.
 *
 * All targets of a session on a link share a flow, and each holds a reference; but each line
 * (line.c) has its own. A job uses
 * its target, so the flow is empty when the last reference goes.
 *
 * Context: making a flow may sleep. All else runs under the lane's lock or takes it,
 * possibly in a softirq.
 */
#include <linux/minmax.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/sender.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"

#define TURN_MIN_BYTES	4096	/* least that a post counts in a turn */

/**
 * kxfer_flow_create() - an empty flow with one reference
 * @link: LIVE link of an initiator: its lanes stay the same and outlive the flow
 * @session: id of the session
 *
 * Return: the flow or NULL.
 */
struct kxfer_flow *kxfer_flow_create(const struct kxfer_link *link, u64 session)
{
	u32 nr_small = max(link->nr_data - 1, 1u);
	struct kxfer_flow *flow;

	flow = kxfer_try_alloc(FLOW, kzalloc_obj(*flow, GFP_KERNEL_ACCOUNT));
	if (!flow)
		return NULL;
	kref_init(&flow->ref);
	flow->small = link->data[session % nr_small];
	flow->bulk = link->data[link->nr_data - 1];
	flow->lane = flow->small;
	INIT_LIST_HEAD(&flow->session_node);
	INIT_LIST_HEAD(&flow->lane_node);
	INIT_LIST_HEAD(&flow->jobs);
	return flow;
}

static void flow_release(struct kref *ref)
{
	kfree(container_of(ref, struct kxfer_flow, ref));
}

/** kxfer_flow_put() - drop a reference; the flow is empty when the last one goes */
void kxfer_flow_put(struct kxfer_flow *flow)
{
	kref_put(&flow->ref, flow_release);
}

/**
 * kxfer_flow_lock() - lock the lane that a flow is on
 * @flow: flow; stays on that lane as long as the lock is held
 *
 * Called with bottom halves off: unlock with spin_unlock(). The lane is read before its lock is
 * taken, and checked again under it. Return: the lane.
 */
struct kxfer_lane *kxfer_flow_lock(struct kxfer_flow *flow)
	__acquires(flow)
{
	struct kxfer_lane *lane;

	for (;;) {
		/* All writes under the lock of the old lane are seen. */
		lane = smp_load_acquire(&flow->lane);
		spin_lock(&lane->lock);
		if (READ_ONCE(flow->lane) == lane)
			return lane;
		spin_unlock(&lane->lock);
	}
}

/* Whether all that was posted on the lane of a flow has taken effect. Asks the peer if need be. */
static bool may_move(struct kxfer_flow *flow)
{
	if (flow->nr_jobs || flow->unplaced || flow->nr_asked)
		return false;
	if (flow->unhandled)
		kxfer_sender_prove(flow);
	return !flow->unhandled;
}

/**
 * kxfer_flow_is_quiet() - whether all that was posted for a flow has taken effect at the peer
 * @flow: flow that gets no jobs meanwhile
 *
 * If that is not known the peer is asked, and a later call may say so. Bottom halves are on.
 */
bool kxfer_flow_is_quiet(struct kxfer_flow *flow)
{
	struct kxfer_lane *lane;
	bool quiet;

	local_bh_disable();
	lane = kxfer_flow_lock(flow);
	quiet = may_move(flow);
	spin_unlock(&lane->lock);
	local_bh_enable();
	return quiet;
}

/**
 * kxfer_flow_lock_for() - lock the lane on which jobs will be queued
 * @flow: flow of the jobs
 * @length: length of the longest job
 *
 * Moves the flow to the lane that the jobs want, if it may move. Tries that only once, because
 * another thread of the session may want the other lane. Return: as kxfer_flow_lock().
 */
struct kxfer_lane *kxfer_flow_lock_for(struct kxfer_flow *flow, u64 length)
	__acquires(flow)
{
	struct kxfer_lane *lane = kxfer_flow_lock(flow), *wanted;

	wanted = kxfer_flow_is_bulk(length) ? flow->bulk : flow->small;
	if (lane == wanted || !may_move(flow))
		return lane;
	/* Pairs with kxfer_flow_lock(). */
	smp_store_release(&flow->lane, wanted);
	spin_unlock(&lane->lock);
	return kxfer_flow_lock(flow);
}

/* Return: 1 for a READ or an atomic, else 0. A table: each posted job comes here twice. */
static u32 reads(const struct kxfer_active_job *job)
{
	static const u8 of[] = {
		[KXFER_OP_READ] = 1,
		[KXFER_OP_COMPARE_SWAP] = 1,
		[KXFER_OP_FETCH_ADD] = 1,
		[KXFER_OP_RECV] = 0,	/* the last op; on no lane */
	};

	return of[job->completion.op];
}

/**
 * kxfer_flow_join() - count a job as in flight, queued or posted
 * @job: job of a lane whose lock the caller holds
 */
void kxfer_flow_join(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	flow->nr_jobs++;
	flow->nr_reads += reads(job);
}

/**
 * kxfer_flow_wait() - move a flow to the tail of a list of its lane
 * @flow: flow with a queued job, on a lane whose lock the caller holds
 * @wait: what the flow waits for: which list
 */
void kxfer_flow_wait(struct kxfer_flow *flow, enum kxfer_flow_wait wait)
{
	flow->wait = wait;
	list_move_tail(&flow->lane_node, &flow->lane->flows[wait]);
}

/**
 * kxfer_flow_first() - the next job of a list of flows
 * @lane: lane whose lock the caller holds
 * @wait: what the flows wait for: which list
 *
 * Return: the first job of the first flow, or NULL.
 */
struct kxfer_active_job *kxfer_flow_first(struct kxfer_lane *lane, enum kxfer_flow_wait wait)
{
	struct kxfer_flow *flow = list_first_entry_or_null(&lane->flows[wait],
							   struct kxfer_flow, lane_node);

	return flow ? list_first_entry(&flow->jobs, struct kxfer_active_job, lane_node) : NULL;
}

/**
 * kxfer_flow_wake() - posted work of a flow has ended: its held job may go
 * @flow: flow on a lane whose lock the caller holds; the caller pumps afterwards
 */
void kxfer_flow_wake(struct kxfer_flow *flow)
{
	if (flow->wait == KXFER_FLOW_HELD && !list_empty(&flow->lane_node))
		kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

/** kxfer_flow_wake_held() - all held jobs of a lane may go; as kxfer_flow_wake() */
void kxfer_flow_wake_held(struct kxfer_lane *lane)
{
	struct kxfer_flow *flow, *next;

	list_for_each_entry_safe(flow, next, &lane->flows[KXFER_FLOW_HELD], lane_node)
		kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

/**
 * kxfer_flow_is_next() - whether a new job of a flow overtakes no other if posted at once
 * @flow: flow on a lane whose lock the caller holds
 *
 * Held flows do not count: none of their jobs could be posted now.
 */
bool kxfer_flow_is_next(const struct kxfer_flow *flow)
{
	const struct kxfer_lane *lane = flow->lane;

	if (!lane->nr_queued)
		return true;
	return !flow->nr_queued && list_empty(&lane->flows[KXFER_FLOW_TURN]) &&
	       list_empty(&lane->flows[KXFER_FLOW_SLOT]) &&
	       list_empty(&lane->flows[KXFER_FLOW_OFFER]);
}

/**
 * kxfer_flow_add() - queue a job on the lane of its flow
 * @job: job to put behind the others of its session; the caller holds the lane's lock
 */
void kxfer_flow_add(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	kxfer_flow_join(job);
	flow->nr_queued++;
	flow->nr_queued_reads += reads(job);
	list_add_tail(&job->lane_node, &flow->jobs);
	if (!list_empty(&flow->lane_node))
		return;
	flow->turn_bytes = 0;
	kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

/**
 * kxfer_flow_remove() - take a job off the queue of its flow
 * @job: job of a lane whose lock the caller holds
 */
void kxfer_flow_remove(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	list_del_init(&job->lane_node);
	flow->nr_queued--;
	flow->nr_queued_reads -= reads(job);
	if (list_empty(&flow->jobs))
		list_del_init(&flow->lane_node);
	else if (flow->wait != KXFER_FLOW_TURN)
		/* Another job comes first now. */
		kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

static void leave(struct kxfer_flow *flow, u32 nr, u32 nr_reads)
{
	flow->nr_jobs -= nr;
	flow->nr_reads -= nr_reads;
	if (!flow->nr_jobs)
		flow->withdrawn = false;
	kxfer_flow_wake(flow);
}

/**
 * kxfer_flow_leave() - no longer count a job as in flight
 * @job: job in no list of its lane, whose lock the caller holds
 */
void kxfer_flow_leave(struct kxfer_active_job *job)
{
	leave(job->target->flow, 1, reads(job));
}

/**
 * kxfer_flow_leave_some() - no longer count quick jobs as in flight
 * @flow: flow of a session whose job_lock the caller holds, and on a lane whose lock it holds
 * @nr: number of the jobs
 * @nr_reads: READs among them
 */
void kxfer_flow_leave_some(struct kxfer_flow *flow, u32 nr, u32 nr_reads)
{
	flow->nr_quick -= nr;
	leave(flow, nr, nr_reads);
}

/**
 * kxfer_flow_holds() - whether a job has to wait for posted jobs of its session
 * @job: job with KXFER_JOB_F_FENCE or _ORDERED, at the head of its flow or about to be. The
 *	caller holds the lock of its lane
 *
 * If it has to wait, posted work will end, and the context that ends it pumps.
 */
bool kxfer_flow_holds(const struct kxfer_active_job *job)
{
	const struct kxfer_flow *flow = job->target->flow;

	if (job->flags & KXFER_JOB_F_ORDERED)
		return flow->nr_jobs != flow->nr_queued;
	return flow->nr_reads != flow->nr_queued_reads;
}

/**
 * kxfer_flow_count() - count posted bytes, and end the turn when it is used up
 * @job: job that they are of; the caller holds the lock of its lane
 * @bytes: payload that was posted, 0 for a message
 */
void kxfer_flow_count(struct kxfer_active_job *job, u32 bytes)
{
	struct kxfer_flow *flow = job->target->flow;

	flow->turn_bytes += max_t(u32, bytes, TURN_MIN_BYTES);
	if (flow->turn_bytes < KXFER_TURN_BYTES)
		return;
	flow->turn_bytes = 0;
	kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}
