/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A measuring run: its work requests (run_wr.c), the loop that posts them (run.c), round trips
 * (run_echo.c), and its use of a dedicated connection (run_dedicated.c).
 */
#ifndef KXFER_RUN_H
#define KXFER_RUN_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <linux/kxfer_bench.h>

#include "base/plan.h"
#include "bench/dedicated.h"
#include "link/lane.h"

#define KXFER_RUN_TURN_NS	1000000	/* longest turn, with preemption off */
#define KXFER_RUN_LOOK_NS	50000	/* longest poll for the next completion */

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
 * struct kxfer_run_echo - round trips with a run of the peer
 * @in: last byte of what comes in; NULL: no round trips
 * @out: last byte of what goes out
 * @out_offset: offset of @out in the region
 * @number: number of the next operation
 * @heard_ns: time when the last byte came, or the phase began
 * @lost: the run was stopped before the byte of its last operation came
 */
struct kxfer_run_echo {
	const u8 *in;
	u8 *out;
	u64 out_offset;
	u32 number;
	u64 heard_ns;
	bool lost;
};

/**
 * struct kxfer_run - a run under way
 * @cmd: arguments of the call, checked
 * @link: link that the run counts as a job of; NULL: a KXFER_OP_NOP, which leaves all from
 *	@link to @slots unused
 * @target: target with the peer's memory, a reference; or NULL
 * @dedicated: dedicated connection with the peer's memory, or NULL
 * @remote: extents of the peer's memory
 * @nr_remote: entries of @remote
 * @nr_slots: places of the operations: @depth of @cmd, or for messages as many as the
 *	responder has
 * @starved: the next message has no receive yet, and the status is asked for
 * @limits: limits of a work request
 * @lane: lane of @link
 * @lkey: key of local memory; the PD is freed with the link
 * @region: region of the local memory
 * @mapping: mapping of @region; NULL: @rw makes its own
 * @mrs: MRs that name local memory, or NULL: @lkey does
 * @mr_slots: slots that one MR covers
 * @each: MRs are registered for each operation
 * @awaits: an operation is done only when it is also answered (dedicated_answers.c)
 * @rw: contexts of rdma_rw, instead of @mrs and of @wr to @slots; or NULL
 * @ready: operations of the phase that may be posted: with @rw, those with contexts; with
 *	@echo none, as run_echo.c posts them
 * @echo: round trips; else all 0
 * @plan: plan of the slot that is being built
 * @desc: work request that is being built
 * @wr: work requests of all slots; those of one slot are linked
 * @sge: SGEs of @wr
 * @slots: index of the first entry of @wr of each slot; after the last slot, the number of
 *	entries
 * @words: COMPARE_SWAP: value that the next operation expects of each word of the peer
 * @cqe: completion entry of all work requests
 * @signal: operations that one completion stands for
 * @posted: operations of the phase that were posted
 * @acked: operations of the phase whose work requests have completed
 * @answered: with @awaits, operations of the phase that the responder has answered; with
 *	@echo, bytes of the phase that have come, which the run's process counts
 * @done: operations of the phase that are done
 * @end: operations after which the phase ends
 * @slot: slot of the next operation
 * @mark: entry of @posted_ns and @due for the next operation to post; both have @depth entries
 * @done_mark: entry of @posted_ns and @due for the next operation that completes
 * @over: reason for @stopped, -errno, or 1: the time is over
 * @stopped: no more operations are begun
 * @stopped_ns: time when @stopped was set
 * @error: error that the peer gave, or 0
 * @samples: ns of each operation, or NULL
 * @nr_samples: entries of @samples taken
 * @room: entries of @samples that may be taken; 0 while warming up
 * @histogram: operations by ns, or NULL
 * @posted_ns: times when the operations in flight were posted, if there is a histogram
 * @posted_histogram: on schedule: operations by ns since they were posted, or NULL
 * @due: on schedule: times when the operations in flight were due; else NULL
 * @due_ns: time when the next operation is due
 * @due_ps: sub-nanosecond part of @due_ns, in ps
 * @interval_ns: time from one due operation to the next
 * @interval_ps: sub-nanosecond part of @interval_ns, in ps
 * @late_ns: how overdue the next operation was when no more were begun
 * @paced: the phase is on schedule
 * @counts: operations go into the histogram; not while warming up
 * @last_ns: time when the last completion was found
 * @deadline_ns: time limit of the run
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
	struct kxfer_run_echo echo;
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

/* The work requests to post for an operation: first, last and number. */
struct kxfer_run_post {
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	u32 nr;
};

/* NOPs that register memory need a lane; other NOPs have none. */
static inline bool kxfer_run_only_registers(const struct kxfer_bench *cmd)
{
	return cmd->op == KXFER_OP_NOP && cmd->memory == KXFER_BENCH_MEMORY_MR_EACH;
}

/* Bytes from the start of the first operation to the end of the last. */
static inline u64 kxfer_run_span(const struct kxfer_run *run)
{
	return (run->nr_slots - 1) * run->cmd->stride + run->cmd->length;
}

/* Do operations of the run consume receives of the responder? */
static inline bool kxfer_run_has_messages(const struct kxfer_run *run)
{
	return run->cmd->op == KXFER_OP_SEND || run->cmd->flags & KXFER_BENCH_F_IMM;
}

/* Do messages of the run go by UD? */
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

int kxfer_run_echo_find(struct kxfer_run *run);
void kxfer_run_echo_begin(struct kxfer_run *run);
bool kxfer_run_echo_listens(const struct kxfer_run *run);
bool kxfer_run_echo_turn(struct kxfer_run *run);

void kxfer_run_paced_begin(struct kxfer_run *run, u64 start_ns);
void kxfer_run_paced_turn(struct kxfer_run *run);
void kxfer_run_paced_close(struct kxfer_run *run);

void kxfer_run_note_done(struct kxfer_run *run, u32 nr, u64 now_ns);
void kxfer_run_operation_done(struct ib_cq *cq, struct ib_wc *wc);
void kxfer_run_answered(struct kxfer_run *run);
bool kxfer_run_post(struct kxfer_run *run, u32 nr);
bool kxfer_run_is_alone(void *of);
void kxfer_run_stop(struct kxfer_run *run, int over);
s64 kxfer_run_phase(struct kxfer_run *run, u32 count, u32 room, bool counts);

#endif /* KXFER_RUN_H */
