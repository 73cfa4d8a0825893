/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A measuring run: its work requests (run_wr.c), the loop that posts them (run.c), and what
 * they are on a dedicated connection (run_dedicated.c).
 */
#ifndef KXFER_RUN_H
#define KXFER_RUN_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <linux/kxfer_bench.h>

#include "base/plan.h"
#include "bench/dedicated.h"
#include "link/lane.h"

#define KXFER_RUN_TURN_NS	1000000	/* with preemption off, then others have the CPU */
#define KXFER_RUN_LOOK_NS	50000	/* for the next completion, then the turn is over */

struct kxfer_link;
struct kxfer_mapping;
struct kxfer_mrs;
struct kxfer_region;
struct kxfer_run_rw;
struct kxfer_target;

/* A work request: a READ or WRITE, an atomic, or a SEND by UD. */
union kxfer_run_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_ud_wr ud;
};

/**
 * struct kxfer_run - a run under way
 * @cmd: what is asked for, checked
 * @link: that it counts as a job of; NULL: KXFER_OP_NOP, and so all to @slots
 * @target: of the peer's memory, a reference; or
 * @dedicated: whose memory it is
 * @remote: that memory
 * @nr_remote: entries of it
 * @nr_slots: places of the operations: as many as are in flight, or of messages as many as
 *	the responder has
 * @starved: the next message has no receive yet, and the status is asked for
 * @limits: of a work request
 * @lane: of @link
 * @lkey: of local memory; the PD goes with the link
 * @region: of the local memory
 * @mapping: of @region; NULL: @rw maps by itself
 * @mrs: by which local memory is named, or NULL: by @lkey
 * @mr_slots: slots that one of them covers
 * @each: they are registered for each operation
 * @awaits: an operation is done when it is answered, too (dedicated_answers.c)
 * @rw: contexts of rdma_rw, in place of @mrs and of @wr to @slots, or NULL
 * @ready: operations, of the phase, that may be posted: its contexts are made
 * @plan: of the slot that is being built
 * @desc: the work request that is being built
 * @wr: of all slots, those of one slot linked
 * @sge: their memory
 * @slots: first entry of @wr of each slot, and behind the last one their number
 * @words: COMPARE_SWAP: what each word of the peer should be, for the next operation
 * @cqe: of all
 * @signal: operations that one completion stands for
 * @posted: operations, of the phase
 * @acked: completed here
 * @answered: if it @awaits: by the responder
 * @done: completed
 * @end: when the phase ends
 * @slot: of the next operation
 * @mark: its entry of @posted_ns and @due, of which there are as many as @depth
 * @done_mark: that of the next that completes
 * @over: why nothing more is begun, if @stopped
 * @stopped: nothing more is begun
 * @stopped_ns: since when
 * @error: that the peer gave, or 0
 * @samples: ns of each operation, or NULL
 * @nr_samples: taken
 * @room: for samples; 0 while warming up
 * @histogram: operations by ns, or NULL
 * @posted_ns: when each operation in flight was posted, if there is a histogram
 * @posted_histogram: on schedule: operations by ns since they were posted, or NULL
 * @due: on schedule: when each operation in flight was due, else NULL
 * @due_ns: when the next operation is due
 * @due_ps: and what is less than a ns of it
 * @interval_ns: from one to the next
 * @interval_ps: likewise
 * @late_ns: how long the next one was due when nothing more was begun
 * @paced: the phase is on schedule
 * @counts: operations go into the histogram; not while warming up
 * @last_ns: when the last completion was found
 * @deadline_ns: of the run
 */
struct kxfer_run {
	const struct kxfer_bench *cmd;
	struct kxfer_link *link;
	struct kxfer_target *target;
	struct kxfer_dedicated *dedicated;
	const struct kxfer_extent *remote;
	u32 nr_remote;
	u32 nr_slots;
	bool starved;
	struct kxfer_plan_limits limits;
	struct kxfer_lane *lane;
	u32 lkey;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	struct kxfer_mrs *mrs;
	u32 mr_slots;
	bool each;
	bool awaits;
	struct kxfer_run_rw *rw;
	u32 ready;
	struct kxfer_plan plan;
	struct kxfer_wr_desc desc;
	union kxfer_run_wr *wr;
	struct ib_sge *sge;
	u32 slots[KXFER_LANE_JOB_WRS + 1];
	u64 *words;
	struct ib_cqe cqe;
	u32 signal;
	u32 posted;
	u32 acked;
	u32 answered;
	u32 done;
	u32 end;
	u32 slot;
	u32 mark;
	u32 done_mark;
	int over;
	bool stopped;
	u64 stopped_ns;
	int error;
	u32 *samples;
	u32 nr_samples;
	u32 room;
	u32 *histogram;
	u64 *posted_ns;
	u32 *posted_histogram;
	u64 *due;
	u64 due_ns;
	u32 due_ps;
	u32 interval_ps;
	u64 interval_ns;
	s64 late_ns;
	bool paced;
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
static inline u64 kxfer_run_span(const struct kxfer_run *run)
{
	return (run->nr_slots - 1) * run->cmd->stride + run->cmd->length;
}

/* Its operations take receives of the responder. */
static inline bool kxfer_run_has_messages(const struct kxfer_run *run)
{
	return run->cmd->op == KXFER_OP_SEND || run->cmd->flags & KXFER_BENCH_F_IMM;
}

/* They go by UD. */
static inline bool kxfer_run_by_ud(const struct kxfer_run *run)
{
	return kxfer_run_has_messages(run) && run->dedicated->ud.wanted;
}

void kxfer_run_have_lane_locked(struct kxfer_lane *lane);
void kxfer_run_leave_lane_locked(struct kxfer_lane *lane);

int kxfer_run_check_dedicated(struct kxfer_run *run);
int kxfer_run_take_dedicated(struct kxfer_run *run);
u64 kxfer_run_receives(const struct kxfer_run *run);
bool kxfer_run_lacks_receives(struct kxfer_run *run, u32 nr);
void kxfer_run_number_locked(struct kxfer_run *run, struct ib_send_wr *wr);
bool kxfer_run_posted_locked(struct kxfer_run *run);

int kxfer_run_check_invalidate(const struct kxfer_run *run);
void kxfer_run_invalidate_locked(struct kxfer_run *run, u32 slot, bool valid,
				 struct kxfer_run_post *post);
u32 kxfer_run_registering(const struct kxfer_run *run);

int kxfer_run_build(struct kxfer_run *run);
void kxfer_run_unbuild(struct kxfer_run *run);
int kxfer_run_prepare_locked(struct kxfer_run *run, struct kxfer_run_post *post);
u32 kxfer_run_longest(const struct kxfer_run *run);

bool kxfer_run_lacks_contexts(const struct kxfer_run *run);

void kxfer_run_paced_begin(struct kxfer_run *run, u64 start_ns);
void kxfer_run_paced_turn(struct kxfer_run *run);
void kxfer_run_paced_close(struct kxfer_run *run);

void kxfer_run_operation_done(struct ib_cq *cq, struct ib_wc *wc);
void kxfer_run_answered(struct kxfer_run *run);
bool kxfer_run_post(struct kxfer_run *run, u32 nr);
void kxfer_run_stop(struct kxfer_run *run, int over);
s64 kxfer_run_phase(struct kxfer_run *run, u32 count, u32 room, bool counts);

#endif /* KXFER_RUN_H */
