// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: the turns of sessions on a lane.
 *
 * A flow holds what one session has queued on one lane. Sessions take turns of
 * KXFER_TURN_BYTES, so that none waits for all that another has queued, and what
 * is posted is bounded by KXFER_LANE_BYTES (chain.c), for the turns are over at the
 * send queue.
 *
 * A flow is in its lane's list while a job is in it; the first one there has the
 * turn, and the first of its jobs is posted next. A flow that comes, or whose turn
 * is over, goes behind the others. A job is in the flow of its target as long as
 * it is in the lane's queue.
 *
 * All targets of a session on a link share a flow, and each holds a reference; a
 * job uses its target, so with the last reference the flow is empty.
 *
 * Context: making a flow may sleep. All else runs under the lane's lock, and may
 * do so in a softirq.
 */
#include <linux/minmax.h>
#include <linux/slab.h>

#include "fault.h"
#include "flow.h"
#include "job.h"
#include "lane.h"
#include "target.h"

#define TURN_MIN_BYTES	4096	/* what a short job counts in its turn */

/** kxfer_flow_create() - an empty flow with one reference, or NULL */
struct kxfer_flow *kxfer_flow_create(void)
{
	struct kxfer_flow *flow;

	flow = kxfer_fault(FLOW) ? NULL : kzalloc(sizeof(*flow), GFP_KERNEL_ACCOUNT);
	if (!flow)
		return NULL;
	kref_init(&flow->ref);
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
 * kxfer_flow_add() - a job comes into the lane's queue
 * @lane: whose lock the caller holds
 * @job: goes behind the others of its session
 */
void kxfer_flow_add(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	list_add_tail(&job->flow_node, &flow->jobs);
	if (!list_empty(&flow->lane_node))
		return;
	flow->turn_bytes = 0;
	list_add_tail(&flow->lane_node, &lane->flows);
}

/**
 * kxfer_flow_remove() - a job leaves the lane's queue
 * @job: of a lane whose lock the caller holds
 */
void kxfer_flow_remove(struct kxfer_active_job *job)
{
	struct kxfer_flow *flow = job->target->flow;

	list_del_init(&job->flow_node);
	if (list_empty(&flow->jobs))
		list_del_init(&flow->lane_node);
}

/**
 * kxfer_flow_count() - something was posted: is it another's turn?
 * @lane: whose lock the caller holds
 * @job: of which it was posted
 * @bytes: how much, 0 for a message
 */
void kxfer_flow_count(struct kxfer_lane *lane, struct kxfer_active_job *job, u32 bytes)
{
	struct kxfer_flow *flow = job->target->flow;

	flow->turn_bytes += max_t(u32, bytes, TURN_MIN_BYTES);
	if (flow->turn_bytes < KXFER_TURN_BYTES)
		return;
	flow->turn_bytes = 0;
	list_move_tail(&flow->lane_node, &lane->flows);
}
