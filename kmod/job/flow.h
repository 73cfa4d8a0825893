/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs of one session on one link: their lane and their turns there. See flow.c. */
#ifndef KXFER_FLOW_H
#define KXFER_FLOW_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>

#include "link/lane.h"

struct kxfer_active_job;
struct kxfer_lane;
struct kxfer_link;

#define KXFER_TURN_BYTES	(1024 * 1024)	/* that a session posts in one turn */
#define KXFER_BULK_BYTES	(64 * 1024)	/* a longer job is bulk */

/**
 * struct kxfer_flow - jobs that one session has in flight on one link, or one line of it
 * @ref: references, held by the session's targets on the link
 * @session_node: entry in kxfer_session.flows while the session has a target of the flow;
 *	protected by job_lock of the session
 * @nr_targets: targets of the flow that the session has; protected by the session's lock
 * @nr_quick: quick jobs (quick.c) in flight; changed under job_lock and the lock of @lane
 * @small: lane for jobs that are not bulk
 * @bulk: lane for bulk jobs; equals @small if the link has only one data lane
 * @lane: current lane of all jobs, @small or @bulk. Changed under the lock of the old
 *	lane, and only while @nr_jobs is 0. Its lock protects all members below
 * @lane_node: entry in one of the lane's lists of flows while @jobs is not empty
 * @wait: which of these lists
 * @jobs: queued jobs, by kxfer_active_job.lane_node, in the order of acceptance
 * @nr_jobs: jobs queued or posted
 * @nr_reads: READs and atomics of @nr_jobs
 * @nr_queued: length of @jobs
 * @nr_queued_reads: READs and atomics in @jobs
 * @turn_bytes: bytes counted in this turn
 * @withdrawn: a target of the flow was withdrawn while some of @nr_jobs were in flight
 * @unplaced: iWARP: WRITEs were posted on @lane after the last placement READ there
 * @cut: the link broke, and a job ended by that: those behind it end too (line.c)
 * @cut_at: number of the completion behind that of the last job that failed; protected by job_lock
 *	of the session
 * @unhandled: eager messages were posted on @lane after the last CREDITS that was answered
 * @nr_asked: CREDITS under way on @lane
 * @nr_eager: eager messages that were posted, modulo 2^32
 * @proof_at: @nr_eager when kxfer_sender_prove() was called
 */
struct kxfer_flow {
	struct kref ref;
	struct list_head session_node;
	u32 nr_targets;
	u32 nr_quick;
	struct kxfer_lane *small;
	struct kxfer_lane *bulk;
	struct kxfer_lane *lane;
	struct list_head lane_node;
	enum kxfer_flow_wait wait;
	struct list_head jobs;
	u32 nr_jobs;
	u32 nr_reads;
	u32 nr_queued;
	u32 nr_queued_reads;
	u32 turn_bytes;
	bool withdrawn;
	bool unplaced;
	bool cut;
	u32 cut_at;
	bool unhandled;
	u32 nr_asked;
	u32 nr_eager;
	u32 proof_at;
};

/* Whether a job of @length bytes is bulk: such jobs have a lane of their own. */
static inline bool kxfer_flow_is_bulk(u64 length)
{
	return length > KXFER_BULK_BYTES;
}

/* Count @nr quick jobs, @nr_reads of them READs, as in flight; with both locks held. */
static inline void kxfer_flow_join_some(struct kxfer_flow *flow, u32 nr, u32 nr_reads)
{
	flow->nr_quick += nr;
	flow->nr_jobs += nr;
	flow->nr_reads += nr_reads;
}

struct kxfer_flow *kxfer_flow_create(const struct kxfer_link *link, u64 session);
void kxfer_flow_put(struct kxfer_flow *flow);
struct kxfer_lane *kxfer_flow_lock(struct kxfer_flow *flow) __acquires(flow);
struct kxfer_lane *kxfer_flow_lock_for(struct kxfer_flow *flow, u64 length)
	__acquires(flow);
bool kxfer_flow_is_quiet(struct kxfer_flow *flow);
void kxfer_flow_add(struct kxfer_active_job *job);
void kxfer_flow_remove(struct kxfer_active_job *job);
void kxfer_flow_join(struct kxfer_active_job *job);
void kxfer_flow_leave(struct kxfer_active_job *job);
void kxfer_flow_leave_some(struct kxfer_flow *flow, u32 nr, u32 nr_reads);
void kxfer_flow_wake(struct kxfer_flow *flow);
void kxfer_flow_wake_held(struct kxfer_lane *lane);
void kxfer_flow_wait(struct kxfer_flow *flow, enum kxfer_flow_wait wait);
struct kxfer_active_job *kxfer_flow_first(struct kxfer_lane *lane,
					  enum kxfer_flow_wait wait);
bool kxfer_flow_is_next(const struct kxfer_flow *flow);
bool kxfer_flow_holds(const struct kxfer_active_job *job);
void kxfer_flow_count(struct kxfer_active_job *job, u32 bytes);

#endif /* KXFER_FLOW_H */
