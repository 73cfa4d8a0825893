/* SPDX-License-Identifier: GPL-2.0 */
/* What a session has queued on a lane, and its turns there. See flow.c. */
#ifndef KXFER_FLOW_H
#define KXFER_FLOW_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>

struct kxfer_active_job;
struct kxfer_lane;

#define KXFER_TURN_BYTES	(1024 * 1024)	/* of a session, then it is another's turn */

/**
 * struct kxfer_flow - what one session has queued on one lane
 * @ref: held by the session's targets on the link
 * @lane_node: in the lane's flows while @jobs is not empty; under the lane's lock,
 *	as all below
 * @jobs: by kxfer_active_job.flow_node, in the order of acceptance
 * @turn_bytes: posted in this turn
 */
struct kxfer_flow {
	struct kref ref;
	struct list_head lane_node;
	struct list_head jobs;
	u32 turn_bytes;
};

struct kxfer_flow *kxfer_flow_create(void);
void kxfer_flow_put(struct kxfer_flow *flow);
void kxfer_flow_add(struct kxfer_lane *lane, struct kxfer_active_job *job);
void kxfer_flow_remove(struct kxfer_active_job *job);
void kxfer_flow_count(struct kxfer_lane *lane, struct kxfer_active_job *job, u32 bytes);

#endif /* KXFER_FLOW_H */
