// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: on which lane of a link a session's jobs go, and whose turn it is there.
 *
 * A flow holds what one session has in flight on one link. All of it is on one lane,
 * so that the promises about the order of jobs (Documentation/uapi.rst) follow from
 * the order of one send queue. A link has small lanes, over which sessions are spread
 * by their ids, and a bulk lane, so that nobody's short jobs wait behind another's
 * long ones. A flow moves to the lane that the next job wants when nothing of it is
 * in flight, and not else:
 *
 *  - Every job before has completed, and so taken effect at the peer: a READ has
 *    its bytes, a WRITE is placed, a NOTIFY is answered. What is posted on another
 *    lane then comes behind it.
 *  - A WRITE of iWARP that had no fence READ behind it (LOCAL_ONLY) completes before
 *    it is placed. A flow with such WRITEs stays where it is (@unfenced) until one
 *    with a fence has come behind them.
 *
 * So a session that mixes both has its short jobs wait behind its own long ones,
 * or keeps long ones on a small lane; then others wait for what that one posts at
 * a time, which is bounded (KXFER_SMALL_BYTES), and for a turn of it.
 *
 * Sessions take turns of KXFER_TURN_BYTES on a lane, so that none waits for all that
 * another has queued, and what is posted is bounded by the lane's max_bytes
 * (chain.c), for the turns are over at the send queue. A job that finds nothing queued
 * on its lane is posted at once, and takes no turn.
 *
 * A job with KXFER_JOB_F_ORDERED or _FENCE that has come to the front is held there until
 * nothing, or no READ and no atomic, of its flow is posted; those behind it wait too, and
 * other flows do not. What is posted ends, if only because the link does, and each end
 * of a chain or message leads to a pump: so no job is held for ever, and nobody has to
 * remember that one is. A fence by the send queue (IB_SEND_FENCE) would save a turn-around,
 * but
 *
 *  - it holds up the lane, with the jobs of all sessions there;
 *  - messages and short WRITEs are copied when they are posted, bounce buffers filled: too
 *    early for what a READ before them brings;
 *  - what waits in the send queue cannot be cancelled, nor end by its deadline;
 *  - drivers differ: siw fails at a fenced READ (siw_activate_tx_from_sq()), and rxe of 6.1
 *    may look whether somebody waits for the READ that has ended (do_complete()) when on
 *    another CPU rxe_requester() is about to say so: then the send queue stands still
 *    until more is posted.
 *
 * A flow is in a list of its lane while a job of it is queued. The first one that waits
 * for its turn has it, and the first of its jobs is posted next. A flow that comes, or whose
 * turn is over, goes behind the others. A flow whose first job is held, or is a message
 * that finds no slot, is put into another list, and comes back when that may have
 * changed: so a pump does not look again at all that cannot go, of however many sessions,
 * with bottom halves off. A job is in the flow of its target as long as
 * it is queued, and counted there until it leaves the lane.
 *
 * All targets of a session on a link share a flow, and each holds a reference; a
 * job uses its target, so with the last reference the flow is empty.
 *
 * Context: making a flow may sleep. All else runs under the lane's lock, or takes
 * it, and may do so in a softirq.
 */
#include <linux/minmax.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"

#define TURN_MIN_BYTES	4096	/* what a short job counts in its turn */

/**
 * kxfer_flow_create() - an empty flow with one reference
 * @link: LIVE, of an initiator; so its lanes stay the same, and outlive the flow
 * @session: id of the session
 *
 * Return: the flow or NULL.
 */
struct kxfer_flow *kxfer_flow_create(const struct kxfer_link *link, u64 session)
{
	u32 nr_small = max(link->nr_data - 1, 1u);
	struct kxfer_flow *flow;

	flow = kxfer_fault(FLOW) ? NULL : kzalloc(sizeof(*flow), GFP_KERNEL_ACCOUNT);
	if (!flow)
		return NULL;
	kref_init(&flow->ref);
	flow->small = link->data[session % nr_small];
	flow->bulk = link->data[link->nr_data - 1];
	flow->lane = flow->small;
	INIT_LIST_HEAD(&flow->lane_node);
	INIT_LIST_HEAD(&flow->jobs);
	return flow;
}

static void flow_release(struct kref *ref)
{
	kfree(container_of(ref, struct kxfer_flow, ref));
}

/** kxfer_flow_put() - one reference less; with the last one it is empty */
void kxfer_flow_put(struct kxfer_flow *flow)
{
	kref_put(&flow->ref, flow_release);
}

/**
 * kxfer_flow_lock() - lock the lane that a flow is on
 * @flow: stays there as long as the lock is held
 *
 * The lane is read before its lock is held and looked at again after. Return: the lane.
 */
struct kxfer_lane *kxfer_flow_lock(struct kxfer_flow *flow)
	__acquires(flow)
{
	struct kxfer_lane *lane;

	for (;;) {
		/* What was written under the lock of the lane before is seen. */
		lane = smp_load_acquire(&flow->lane);
		spin_lock_bh(&lane->lock);
		if (READ_ONCE(flow->lane) == lane)
			return lane;
		spin_unlock_bh(&lane->lock);
	}
}

/**
 * kxfer_flow_lock_for() - lock the lane that jobs are to be queued on
 * @flow: of their session
 * @length: of the longest of them
 *
 * The flow is moved to the lane that they want if it may move; once, for another
 * thread of the session may want the other one. Return: the lane, locked.
 */
struct kxfer_lane *kxfer_flow_lock_for(struct kxfer_flow *flow, u64 length)
	__acquires(flow)
{
	struct kxfer_lane *lane = kxfer_flow_lock(flow), *wanted;

	wanted = length > KXFER_BULK_BYTES ? flow->bulk : flow->small;
	if (lane == wanted || flow->nr_jobs || flow->unfenced)
		return lane;
	/* Pairs with kxfer_flow_lock(). */
	smp_store_release(&flow->lane, wanted);
	spin_unlock_bh(&lane->lock);
	return kxfer_flow_lock(flow);
}

/* 1: a READ or an atomic. By a table: each job that is posted comes by here twice. */
static u32 fetches(const struct kxfer_active_job *job)
{
	static const u8 of[] = {
		[KXFER_OP_READ] = 1,
		[KXFER_OP_COMPARE_SWAP] = 1,
		[KXFER_OP_FETCH_ADD] = 1,
		[KXFER_OP_RECV] = 0,	/* the last; on no lane */
	};

	return of[job->completion.op];
}

/**
 * kxfer_flow_join() - a job is in flight, queued or posted
 * @job: of a lane whose lock the caller holds
 */
void kxfer_flow_join(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	flow->nr_jobs++;
	flow->nr_fetches += fetches(job);
}

/**
 * kxfer_flow_wait() - put a flow behind those that wait for the same
 * @flow: with a job that is queued; of a lane whose lock the caller holds
 * @wait: for what
 */
void kxfer_flow_wait(struct kxfer_flow *flow, enum kxfer_flow_wait wait)
{
	flow->wait = wait;
	list_move_tail(&flow->lane_node, &flow->lane->flows[wait]);
}

/**
 * kxfer_flow_first() - the job that is next of those that wait for the same
 * @lane: whose lock the caller holds
 * @wait: for what
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
 * kxfer_flow_wake() - something that was posted of a flow has ended
 * @flow: of a lane whose lock the caller holds; the caller pumps afterwards
 */
void kxfer_flow_wake(struct kxfer_flow *flow)
{
	if (flow->wait == KXFER_FLOW_HELD && !list_empty(&flow->lane_node))
		kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

/**
 * kxfer_flow_is_next() - whether a new job of a flow overtakes nothing if it is posted at once
 * @flow: of a lane whose lock the caller holds
 *
 * Flows that are held do not count: none of their jobs could be posted now.
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
 * kxfer_flow_add() - a job is queued on the lane of its flow
 * @job: goes behind the others of its session; the caller holds the lane's lock
 */
void kxfer_flow_add(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	kxfer_flow_join(job);
	flow->nr_queued++;
	flow->nr_queued_fetches += fetches(job);
	list_add_tail(&job->lane_node, &flow->jobs);
	if (!list_empty(&flow->lane_node))
		return;
	flow->turn_bytes = 0;
	kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

/**
 * kxfer_flow_remove() - a job is queued no more
 * @job: of a lane whose lock the caller holds
 */
void kxfer_flow_remove(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	list_del_init(&job->lane_node);
	flow->nr_queued--;
	flow->nr_queued_fetches -= fetches(job);
	if (list_empty(&flow->jobs))
		list_del_init(&flow->lane_node);
	else if (flow->wait != KXFER_FLOW_TURN)
		/* Another job comes first now. */
		kxfer_flow_wait(flow, KXFER_FLOW_TURN);
}

/**
 * kxfer_flow_leave() - a job is in flight no more
 * @job: on no list of its lane, whose lock the caller holds
 */
void kxfer_flow_leave(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	flow->nr_jobs--;
	flow->nr_fetches -= fetches(job);
	kxfer_flow_wake(flow);
}

/**
 * kxfer_flow_holds() - does the job have to wait for what its session has posted?
 * @job: with KXFER_JOB_F_FENCE or _ORDERED; of its flow's jobs the first that is queued, or
 *	it would be. The caller holds the lock of its lane
 *
 * Where it does, something that is posted will end; who ends it pumps.
 */
bool kxfer_flow_holds(const struct kxfer_active_job *job)
{
	const struct kxfer_flow *flow = job->target->flow;

	if (job->flags & KXFER_JOB_F_ORDERED)
		return flow->nr_jobs != flow->nr_queued;
	return flow->nr_fetches != flow->nr_queued_fetches;
}

/**
 * kxfer_flow_count() - something was posted: is it another's turn?
 * @job: of which it was posted; the caller holds the lock of its lane
 * @bytes: how much, 0 for a message
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
