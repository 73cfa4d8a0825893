/* SPDX-License-Identifier: GPL-2.0 */
/* A measuring run: its work requests (run_wr.c) and the loop that posts them (run.c). */
#ifndef KXFER_RUN_H
#define KXFER_RUN_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <linux/kxfer.h>

#include "lane.h"
#include "plan.h"

struct kxfer_mapping;
struct kxfer_mrs;
struct kxfer_region;
struct kxfer_target;

/* A work request: a READ or WRITE, or an atomic. */
union kxfer_run_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
};

/**
 * struct kxfer_run - a run under way
 * @cmd: what is asked for, checked
 * @target: of the peer's memory, a reference; NULL: KXFER_OP_NOP, and so all to @slots
 * @lane: of @target
 * @lkey: of local memory; the PD goes with the link
 * @region: of the local memory
 * @mapping: of @region
 * @mrs: by which local memory is named, or NULL: by @lkey
 * @mr_slots: slots that one of them covers
 * @each: they are registered for each operation
 * @plan: of the slot that is being built
 * @desc: the work request that is being built
 * @wr: of all slots, those of one slot linked
 * @sge: their memory
 * @slots: first entry of @wr of each slot, and behind the last one their number
 * @words: COMPARE_SWAP: what each word of the peer should be, for the next operation
 * @cqe: of all
 * @signal: operations that one completion stands for
 * @posted: operations, of the phase
 * @done: completed
 * @end: when the phase ends
 * @slot: of the next operation
 * @done_slot: of the next that completes
 * @over: why nothing more is begun, if @stopped
 * @stopped: nothing more is begun
 * @error: that the peer gave, or 0
 * @samples: ns of each operation, or NULL
 * @nr_samples: taken
 * @room: for samples; 0 while warming up
 * @histogram: operations by ns, or NULL
 * @posted_ns: when each slot was posted, if there is a histogram
 * @counts: operations go into the histogram; not while warming up
 * @last_ns: when the last completion was found
 * @deadline_ns: of the run
 */
struct kxfer_run {
	const struct kxfer_bench *cmd;
	struct kxfer_target *target;
	struct kxfer_lane *lane;
	u32 lkey;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	struct kxfer_mrs *mrs;
	u32 mr_slots;
	bool each;
	struct kxfer_plan plan;
	struct kxfer_wr_desc desc;
	union kxfer_run_wr *wr;
	struct ib_sge *sge;
	u32 slots[KXFER_LANE_JOB_WRS + 1];
	u64 *words;
	struct ib_cqe cqe;
	u32 signal;
	u32 posted;
	u32 done;
	u32 end;
	u32 slot;
	u32 done_slot;
	int over;
	bool stopped;
	int error;
	u32 *samples;
	u32 nr_samples;
	u32 room;
	u32 *histogram;
	u64 *posted_ns;
	bool counts;
	u64 last_ns;
	u64 deadline_ns;
};

/* What is posted of a slot, from the first work request to the last. */
struct kxfer_run_post {
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	u32 nr;
};

/* NOPs that register memory, on a lane; else they do without any. */
static inline bool kxfer_run_only_registers(const struct kxfer_bench *cmd)
{
	return cmd->op == KXFER_OP_NOP && cmd->memory == KXFER_BENCH_MEMORY_MR_EACH;
}

/* From the first byte of the first operation to the last one's last. */
static inline u64 kxfer_run_span(const struct kxfer_bench *cmd)
{
	return (cmd->depth - 1) * cmd->stride + cmd->length;
}

int kxfer_run_build(struct kxfer_run *run);
void kxfer_run_unbuild(struct kxfer_run *run);
int kxfer_run_prepare_locked(struct kxfer_run *run, struct kxfer_run_post *post);
u32 kxfer_run_longest(const struct kxfer_run *run);

void kxfer_run_operation_done(struct ib_cq *cq, struct ib_wc *wc);
s64 kxfer_run_phase(struct kxfer_run *run, u32 count, u32 room, bool counts);

#endif /* KXFER_RUN_H */
