// SPDX-License-Identifier: GPL-2.0
/*
 * The engine kverbs: what work requests cost when nothing stands before them.
 *
 * A run is a call that posts READs or WRITEs on a data lane, with no jobs: the floor
 * under the job path. Everything is prepared before the clock starts: the work
 * requests of each of @depth operations are built once, as plan.c cuts them, and
 * linked to a ring. To post some of them is to cut the ring behind the last one for
 * as long as ib_post_send() takes. Local memory is the region's pages by
 * local_dma_lkey, remote memory the target's registrations. On iWARP the sink of
 * READs is registered once for the run, in READ sinks of the lane, and a WRITE is done
 * when TCP has it.
 *
 * The run has the lane for itself: it takes all credits of a lane that is idle, so that
 * no chain is posted before it gives them back; jobs that come meanwhile are queued and
 * posted then. (Messages of the channel need no credits, and go on.) With the credits it
 * has the places in the send queue, and on iWARP the sinks, which only chains use.
 *
 * It works in turns of TURN_NS as the owner of the lane's CQ (cq.c): between two of them
 * the CPU is given to who wants it, and signals, a withdrawal and the time limit
 * are looked at. Those stop the run: it goes on to the next operation that is signalled,
 * so that the completion of all that was posted is seen. A turn in which nothing
 * completes ends in a sleep until something does.
 *
 * Ends, as proofs. Who runs counts itself as a job of target, link and region
 * (nr_jobs, users) and as a user of the mapping, and lets go when all it has posted has
 * completed, or the link is DEAD: then QP and CQ are destroyed (lane.c), no device
 * reaches the memory and no completion will find the run. So
 *  - the withdrawal of the export waits for it, and it stops (kxfer_target_revoke());
 *  - REGION_DEL and TARGET_CLOSE are EBUSY; the file cannot be closed under the call;
 *  - a link that fails, also because its device goes, is torn down without waiting for
 *    it, and the removal of the mapping, which comes behind, does wait;
 *  - a peer that holds up what was posted loses the link as with jobs: kxfer_lane_stuck()
 *    sees @benched and that nr_completions stands still. So the sleep is bounded too.
 * An unsignalled work request is done when a later one is, for one QP completes
 * in order.
 *
 * Context: a call; may sleep. Completions come where the CQ is polled, with one caller
 * at a time, its owner.
 */
#include <asm/barrier.h>
#include <linux/capability.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "bench.h"
#include "chain.h"
#include "device.h"
#include "fault.h"
#include "flow.h"
#include "job.h"
#include "lane.h"
#include "link.h"
#include "memory.h"
#include "plan.h"
#include "region.h"
#include "session.h"
#include "submit.h"
#include "target.h"

#define TURN_NS		1000000	/* with preemption off, then others have the CPU */
#define LOOK_NS		50000	/* for the next completion, then the turn is over */

/**
 * struct kxfer_run - a run under way
 * @cmd: what is asked for, checked
 * @target: of the peer's memory, a reference; NULL: KXFER_OP_NOP, and so all to @slots
 * @lane: of @target
 * @lkey: of local memory; the PD goes with the link
 * @region: of the local memory
 * @mapping: of @region
 * @nr_sinks: iWARP READs: registered, from the first of the lane on
 * @sinks: address and key of each: its MR goes with the link
 * @sink_slots: slots that one of them covers
 * @plan: of the slot that is being built
 * @desc: the work request that is being built
 * @wr: work requests of all slots, linked to a ring
 * @sge: their memory
 * @slots: first entry of @wr of each slot, and behind the last one their number
 * @cqe: of all
 * @signal: operations that one completion stands for
 * @posted: operations, of the phase
 * @done: completed
 * @end: when the phase ends
 * @slot: of the next operation
 * @over: why nothing more is begun, if @stopped
 * @stopped: nothing more is begun
 * @error: that the peer gave, or 0
 * @samples: ns of each operation, or NULL
 * @nr_samples: taken
 * @room: for samples; 0 while warming up
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
	u32 nr_sinks;
	struct {
		u64 iova;
		u32 key;
	} sinks[KXFER_LANE_SINKS];
	u32 sink_slots;
	struct kxfer_plan plan;
	struct kxfer_wr_desc desc;
	struct ib_rdma_wr *wr;
	struct ib_sge *sge;
	u32 slots[KXFER_LANE_JOB_WRS + 1];
	struct ib_cqe cqe;
	u32 signal;
	u32 posted;
	u32 done;
	u32 end;
	u32 slot;
	int over;
	bool stopped;
	int error;
	u32 *samples;
	u32 nr_samples;
	u32 room;
	u64 last_ns;
	u64 deadline_ns;
};

/* ---- what is asked for ---- */

static int check_nop(const struct kxfer_bench *cmd)
{
	return cmd->region || cmd->target || cmd->region_offset || cmd->target_offset ||
	       cmd->length || cmd->stride || cmd->depth != 1 ? -EINVAL : 0;
}

static int check_transfer(const struct kxfer_bench *cmd)
{
	if (!cmd->length || (!cmd->stride && cmd->depth > 1))
		return -EINVAL;
	return 0;
}

static int check_bench(const struct kxfer_bench *cmd)
{
	if (cmd->flags || cmd->op > KXFER_OP_WRITE)
		return -EOPNOTSUPP;
	if (!cmd->depth || cmd->depth > KXFER_LANE_JOB_WRS || !cmd->list ||
	    cmd->list > cmd->depth || !cmd->signal ||
	    cmd->signal > cmd->depth + 1 - cmd->list)
		return -EINVAL;
	if (!cmd->count || !cmd->time_limit_ms ||
	    cmd->time_limit_ms > KXFER_BENCH_MAX_TIME_MS ||
	    cmd->nr_samples > KXFER_BENCH_MAX_SAMPLES ||
	    (!cmd->samples != !cmd->nr_samples) || (cmd->nr_samples && cmd->depth != 1))
		return -EINVAL;
	return cmd->op == KXFER_OP_NOP ? check_nop(cmd) : check_transfer(cmd);
}

/* Do all operations lie within @limit? */
static int check_range(const struct kxfer_bench *cmd, u64 offset, u64 limit)
{
	u64 end;

	if (check_mul_overflow((u64)(cmd->depth - 1), (u64)cmd->stride, &end) ||
	    check_add_overflow(end, (u64)cmd->length, &end) ||
	    check_add_overflow(end, offset, &end))
		return -EOVERFLOW;
	return end > limit ? -ERANGE : 0;
}

/* From the first byte of the first operation to the last one's last. */
static u64 span(const struct kxfer_bench *cmd)
{
	return (cmd->depth - 1) * cmd->stride + cmd->length;
}

/* Called with the session's lock held for reading. */
static int find_objects(struct kxfer_session *session, struct kxfer_run *run)
{
	const struct kxfer_bench *cmd = run->cmd;
	struct kxfer_target *target = xa_load(&session->targets, cmd->target);
	struct kxfer_region *region = xa_load(&session->regions, cmd->region);
	bool read = cmd->op == KXFER_OP_READ;
	int ret;

	if (!target || !region)
		return -ENOENT;
	if (!(target->rights & (read ? KXFER_RIGHT_READ : KXFER_RIGHT_WRITE)) ||
	    (read && !region->memory->writable))
		return -EACCES;
	ret = check_range(cmd, cmd->target_offset, target->length) ?:
	      check_range(cmd, cmd->region_offset, region->memory->length);
	if (ret)
		return ret;
	/* All lanes of a link are of one context. */
	if (!target->flow->small->cq.polled || IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EOPNOTSUPP;
	run->target = target;
	run->region = region;
	return 0;
}

/* Find what the call names and count the run as a job of it. */
static int bind(struct kxfer_session *session, struct kxfer_run *run)
{
	int ret;

	down_read(&session->lock);
	ret = find_objects(session, run);
	if (!ret) {
		kref_get(&run->target->ref);
		atomic_inc(&run->target->nr_jobs);
		atomic_inc(&run->target->link->nr_jobs);
		atomic_inc(&run->region->users);
	}
	up_read(&session->lock);
	return ret;
}

static void unbind(struct kxfer_run *run)
{
	struct kxfer_target *target = run->target;

	atomic_dec(&run->region->users);
	atomic_dec(&target->link->nr_jobs);
	if (atomic_dec_and_test(&target->nr_jobs))
		wake_up_all(&target->link->wait);
	kxfer_target_put(target);
}

/* ---- the lane ---- */

/* The session's flow stays on the lane, as it does for a job. */
static int take_lane(struct kxfer_run *run)
{
	struct kxfer_flow *flow = run->target->flow;
	struct kxfer_lane *lane = kxfer_flow_lock_for(flow, run->cmd->length);
	int ret = 0;

	if (run->target->revoked) {
		ret = -EKEYREVOKED;
	} else if (!lane->open || !kxfer_link_is_live(lane->link)) {
		ret = kxfer_link_job_error(lane->link);
	} else if (!list_empty(&lane->flows) || !list_empty(&lane->posted) ||
		   !kxfer_credits_take(&lane->credits, lane->credits.max)) {
		ret = -EBUSY;
	} else {
		lane->benched = true;
		flow->nr_jobs++;
		run->lane = lane;
		run->lkey = lane->link->pd->local_dma_lkey;
	}
	spin_unlock_bh(&lane->lock);
	return ret;
}

static void give_lane(struct kxfer_run *run)
{
	struct kxfer_flow *flow = run->target->flow;
	struct kxfer_lane *lane = run->lane;

	spin_lock_bh(&lane->lock);
	lane->benched = false;
	flow->nr_jobs--;
	if (lane->fence_mr && run->cmd->op == KXFER_OP_WRITE) {
		run->target->unfenced = true;
		flow->unfenced = true;
	}
	WARN_ON_ONCE(!kxfer_credits_give(&lane->credits, lane->credits.max));
	spin_unlock_bh(&lane->lock);
	kxfer_job_pump(lane);
}

/* ---- the loop ---- */

/* So many operations more are done. */
static void count_done(struct kxfer_run *run, u64 now_ns)
{
	if (run->nr_samples < run->room)
		run->samples[run->nr_samples++] = min_t(u64, now_ns - run->last_ns, U32_MAX);
	run->last_ns = now_ns;
	/* Who runs may free the run when it sees the last one: nothing of it is used behind. */
	smp_store_release(&run->done, min(run->done + run->signal, run->end));
}

static void failed(struct kxfer_run *run, const struct ib_wc *wc)
{
	if (wc->status == IB_WC_REM_ACCESS_ERR || wc->status == IB_WC_REM_INV_REQ_ERR ||
	    wc->status == IB_WC_REM_OP_ERR)
		WRITE_ONCE(run->error, -EREMOTEIO);
	kxfer_lane_wc_error(run->lane, wc, "work request of a run");
}

static void operation_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_run *run = container_of(wc->wr_cqe, struct kxfer_run, cqe);
	struct kxfer_lane *lane = run->lane;
	struct kxfer_link *link = lane->link;
	u64 now_ns = kxfer_cq_now_ns(&lane->cq);

	kxfer_fault_wc(BENCH_DONE, wc);
	if (wc->status != IB_WC_SUCCESS) {
		failed(run, wc);
		return;
	}
	WRITE_ONCE(link->heard_ns, now_ns);
	/* Chains, which count under the lane's lock, there are none. */
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	count_done(run, now_ns);
	if (wq_has_sleeper(&link->wait))
		wake_up_all(&link->wait);
}

/* Post work requests of the ring from first to last. Return: false if the link fails. */
static bool post_wrs(struct kxfer_run *run, struct ib_send_wr *first,
		     struct ib_send_wr *last, u32 nr)
{
	struct ib_send_wr *next = last->next;
	struct kxfer_lane *lane = run->lane;
	bool ok;

	last->next = NULL;
	spin_lock_bh(&lane->lock);
	ok = lane->open && kxfer_link_is_live(lane->link) &&
	     !kxfer_lane_post_locked(lane, first, nr);
	spin_unlock_bh(&lane->lock);
	last->next = next;
	return ok;
}

static bool post_operations(struct kxfer_run *run, u32 nr)
{
	struct ib_send_wr *first = &run->wr[run->slots[run->slot]].wr, *last = first;
	u32 nr_wr = 0;

	while (nr--) {
		last = &run->wr[run->slots[run->slot + 1] - 1].wr;
		nr_wr += run->slots[run->slot + 1] - run->slots[run->slot];
		run->posted++;
		last->send_flags &= ~IB_SEND_SIGNALED;
		if (run->posted % run->signal == 0 || run->posted == run->end)
			last->send_flags |= IB_SEND_SIGNALED;
		if (++run->slot == run->cmd->depth)
			run->slot = 0;
	}
	return post_wrs(run, first, last, nr_wr);
}

/* Operations of the next post. */
static u32 next_list(const struct kxfer_run *run)
{
	return min(run->cmd->list, run->end - run->posted);
}

/* Completed operations with which there is something to do. */
static u32 next_done(const struct kxfer_run *run)
{
	return run->posted == run->end ? run->end :
	       run->posted + next_list(run) - run->cmd->depth;
}

static bool post_all(struct kxfer_run *run)
{
	while (run->posted < run->end &&
	       run->posted - run->done + next_list(run) <= run->cmd->depth)
		if (!post_operations(run, next_list(run)))
			return false;
	return true;
}

/* As the owner of the CQ. */
static void take_turn(struct kxfer_run *run)
{
	struct kxfer_cq *cq = &run->lane->cq;
	u64 now_ns = ktime_get_ns();
	u64 until_ns = now_ns + TURN_NS;
	u32 before;

	do {
		before = run->done;
		if (!post_all(run))
			break;
		kxfer_cq_poll(cq, &run->done, next_done(run), now_ns + LOOK_NS);
		now_ns = cq->now_ns;
	} while (run->done != before && run->done != run->end && !need_resched() &&
		 now_ns < until_ns);
}

/* The same without work requests. */
static void take_empty_turn(struct kxfer_run *run)
{
	u64 until_ns = ktime_get_ns() + TURN_NS;

	do {
		run->posted++;
		count_done(run, ktime_get_ns());
	} while (run->done != run->end && !need_resched() && run->last_ns < until_ns);
}

static bool link_is_dead(struct kxfer_link *link)
{
	return READ_ONCE(link->state) == KXFER_LINK_DEAD;
}

static void work_a_turn(struct kxfer_run *run)
{
	struct kxfer_link *link;
	u32 before = READ_ONCE(run->done);

	if (!run->lane) {
		take_empty_turn(run);
		return;
	}
	if (!kxfer_cq_own(&run->lane->cq)) {
		usleep_range(20, 50);
		return;
	}
	take_turn(run);
	kxfer_cq_disown(&run->lane->cq);
	link = run->lane->link;
	if (READ_ONCE(run->done) == before && !need_resched() && kxfer_link_is_live(link))
		wait_event(link->wait, READ_ONCE(run->done) != before || link_is_dead(link));
}

/* Why nothing more is to be begun: -errno, 1: the time is over, or 0: it is not so. */
static int reason_to_stop(const struct kxfer_run *run)
{
	if (signal_pending(current))
		return -EINTR;
	if (run->target && READ_ONCE(run->target->revoked))
		return -EKEYREVOKED;
	return ktime_get_ns() >= run->deadline_ns;
}

/* What was posted ends with an operation that is signalled. */
static void stop_if_need_be(struct kxfer_run *run)
{
	if (run->stopped)
		return;
	run->over = reason_to_stop(run);
	if (!run->over)
		return;
	run->stopped = true;
	WRITE_ONCE(run->end, min(run->end, roundup(run->posted, run->signal)));
}

/* Post and wait to the end of the phase. Return: 0, or why the link is gone. */
static int work(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane ? run->lane->link : NULL;

	for (;;) {
		stop_if_need_be(run);
		/* Pairs with count_done(): what was counted with the last is seen. */
		if (smp_load_acquire(&run->done) == run->end)
			return 0;
		if (link && !kxfer_link_is_live(link)) {
			wait_event(link->wait, link_is_dead(link));
			return READ_ONCE(run->error) ?: kxfer_link_job_error(link);
		}
		work_a_turn(run);
		cond_resched();
	}
}

/* Return: ns from the first post to the last completion, or -errno. */
static s64 run_phase(struct kxfer_run *run, u32 count, u32 room)
{
	u64 start_ns;
	int ret;

	run->posted = 0;
	run->done = 0;
	run->end = run->stopped ? 0 : count;
	run->nr_samples = 0;
	run->room = room;
	start_ns = ktime_get_ns();
	run->last_ns = start_ns;
	ret = work(run);
	return ret ?: run->last_ns - start_ns;
}

/* ---- READ sinks of iWARP ---- */

static bool needs_sinks(const struct kxfer_run *run)
{
	return run->cmd->op == KXFER_OP_READ && run->lane->sink_array;
}

/* Memory of a region as a scatter list. Return: entries. */
static u32 fill_sg(struct scatterlist *sg, const struct kxfer_mapping *mapping, u64 offset,
		   u64 bytes)
{
	const struct kxfer_extent *extent;
	u32 n = 0, skip, piece;

	extent = &mapping->extents[kxfer_extents_find(mapping->extents,
						      mapping->nr_extents, offset)];
	skip = offset - extent->start;
	for (; bytes; bytes -= piece, extent++, skip = 0) {
		piece = min_t(u64, bytes, extent->length - skip);
		sg_dma_address(&sg[n]) = extent->addr + skip;
		sg_dma_len(&sg[n++]) = piece;
	}
	return n;
}

/* Return: 0, -EIO, or why the lane, which has the MR, is closed. */
static int map_sink(struct kxfer_run *run, struct scatterlist *sg, u32 nr,
		    struct ib_mr **mr)
{
	struct kxfer_lane *lane = run->lane;
	struct kxfer_sink *sink = &lane->sink_array[run->nr_sinks];
	int ret = 0;

	spin_lock_bh(&lane->lock);
	if (!lane->open) {
		ret = kxfer_link_job_error(lane->link);
	} else if (kxfer_fault(BENCH_MAP_SINK) ||
		   ib_map_mr_sg(sink->mr, sg, nr, NULL, PAGE_SIZE) != nr) {
		ret = -EIO;
	} else {
		ib_update_fast_reg_key(sink->mr, ib_inc_rkey(sink->mr->rkey));
		*mr = sink->mr;
		run->sinks[run->nr_sinks].iova = sink->mr->iova;
		run->sinks[run->nr_sinks].key = sink->mr->lkey;
		sink->inv = (struct ib_send_wr) {
			.wr_cqe = &run->cqe,
			.opcode = IB_WR_LOCAL_INV,
			.send_flags = IB_SEND_SIGNALED,
			.ex.invalidate_rkey = sink->mr->rkey,
		};
	}
	spin_unlock_bh(&lane->lock);
	return ret;
}

/* The sink of the slots from @slot on. */
static int register_sink(struct kxfer_run *run, struct scatterlist *sg, u32 slot)
{
	const struct kxfer_bench *cmd = run->cmd;
	u32 nr_slots = min(run->sink_slots, cmd->depth - slot), nr;
	struct ib_mr *mr;
	int ret;

	nr = fill_sg(sg, run->mapping, cmd->region_offset + slot * cmd->stride,
		     (nr_slots - 1) * cmd->stride + cmd->length);
	ret = map_sink(run, sg, nr, &mr);
	if (ret)
		return ret;
	/* If it fails the link does, and invalidate_sinks() waits for its end. */
	return kxfer_lane_register(run->lane, mr, run->sinks[run->nr_sinks++].key,
				   IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
}

/* Return: -errno, with those that were registered counted. */
static int register_sinks(struct kxfer_run *run)
{
	u32 pages = run->lane->link->dev->max_fast_reg_pages, slot;
	const struct kxfer_bench *cmd = run->cmd;
	u64 max = (pages - 1) * PAGE_SIZE;
	struct scatterlist *sg;
	int ret = 0;

	if (cmd->length > max)
		return -EINVAL;
	run->sink_slots = cmd->stride ?
			  min_t(u64, cmd->depth, (max - cmd->length) / cmd->stride + 1) : 1;
	if (DIV_ROUND_UP(cmd->depth, run->sink_slots) > KXFER_LANE_SINKS)
		return -EINVAL;
	sg = kxfer_fault(BENCH_SINKS) ? NULL :
	     kvmalloc_array(pages, sizeof(*sg), GFP_KERNEL_ACCOUNT);
	if (!sg)
		return -ENOMEM;
	sg_init_table(sg, pages);
	for (slot = 0; !ret && slot < cmd->depth; slot += run->sink_slots)
		ret = register_sink(run, sg, slot);
	kvfree(sg);
	return ret;
}

/* If the link fails they go with the lane. */
static void invalidate_sinks(struct kxfer_run *run)
{
	struct kxfer_sink *sink;
	u32 i;

	run->signal = 1;
	run->posted = run->nr_sinks;
	run->end = run->nr_sinks;
	run->done = 0;
	run->room = 0;
	for (i = 0; i < run->nr_sinks; i++) {
		sink = &run->lane->sink_array[i];
		if (!post_wrs(run, &sink->inv, &sink->inv, 1))
			break;
	}
	work(run);
}

/* ---- building the ring ---- */

/* Set out on the operation of a slot. */
static int plan_slot(struct kxfer_run *run, u32 slot, struct kxfer_extent *sink)
{
	const struct kxfer_bench *cmd = run->cmd;
	const struct kxfer_plan_limits *limits =
		kxfer_device_limits(run->lane->link->dev, cmd->op);
	const struct kxfer_target *target = run->target;
	u64 at = slot * cmd->stride;

	if (!run->nr_sinks)
		return kxfer_plan_init(&run->plan, run->mapping->extents,
				       run->mapping->nr_extents, cmd->region_offset + at,
				       target->keys, target->nr_keys,
				       cmd->target_offset + at, cmd->length, limits);
	*sink = (struct kxfer_extent) {
		.addr = run->sinks[slot / run->sink_slots].iova +
			slot % run->sink_slots * cmd->stride,
		.length = cmd->length,
	};
	return kxfer_plan_init(&run->plan, sink, 1, 0, target->keys, target->nr_keys,
			       cmd->target_offset + at, cmd->length, limits);
}

static u32 local_key(const struct kxfer_run *run, u32 slot)
{
	return run->nr_sinks ? run->sinks[slot / run->sink_slots].key :
			       run->lkey;
}

static void build_wr(struct kxfer_run *run, struct ib_rdma_wr *wr, struct ib_sge *sge,
		     u32 lkey)
{
	const struct kxfer_wr_desc *desc = &run->desc;
	u32 i;

	for (i = 0; i < desc->nr_sge; i++) {
		sge[i].addr = desc->sge[i].addr;
		sge[i].length = desc->sge[i].length;
		sge[i].lkey = lkey;
	}
	*wr = (struct ib_rdma_wr) {
		.wr = {
			.next = &wr[1].wr,
			.wr_cqe = &run->cqe,
			.sg_list = sge,
			.num_sge = desc->nr_sge,
			.opcode = run->cmd->op == KXFER_OP_READ ? IB_WR_RDMA_READ :
								  IB_WR_RDMA_WRITE,
		},
		.remote_addr = desc->remote_addr,
		.rkey = desc->rkey,
	};
}

/* Build the work request of @desc, number @nr of all, in a slot. */
static void add_wr(struct kxfer_run *run, u32 slot, u32 nr, struct ib_sge *sge)
{
	const struct kxfer_bench *cmd = run->cmd;

	build_wr(run, &run->wr[nr], sge, local_key(run, slot));
	if (cmd->op == KXFER_OP_WRITE && run->desc.length == cmd->length)
		kxfer_chain_inline(run->lane, &run->wr[nr].wr, run->region->memory,
				   cmd->region_offset + slot * cmd->stride, cmd->length);
}

/* Build all work requests if there is memory for them; else count them. */
static int walk(struct kxfer_run *run, u32 *nr_sge)
{
	struct kxfer_extent sink;
	u32 slot, nr = 0;
	int ret;

	*nr_sge = 0;
	for (slot = 0; slot < run->cmd->depth; slot++) {
		run->slots[slot] = nr;
		ret = plan_slot(run, slot, &sink);
		if (ret)
			return ret;
		while (kxfer_plan_next(&run->plan, &run->desc)) {
			if (nr == run->lane->credits.max)
				return -EINVAL;
			if (run->wr)
				add_wr(run, slot, nr, &run->sge[*nr_sge]);
			*nr_sge += run->desc.nr_sge;
			nr++;
		}
	}
	run->slots[slot] = nr;
	return 0;
}

static int build_ring(struct kxfer_run *run)
{
	u32 nr_sge, nr;
	int ret;

	ret = walk(run, &nr_sge);
	if (ret)
		return ret;
	nr = run->slots[run->cmd->depth];
	run->wr = kxfer_fault(BENCH_REQUESTS) ? NULL :
		  kvcalloc(nr, sizeof(*run->wr), GFP_KERNEL_ACCOUNT);
	run->sge = kxfer_fault(BENCH_REQUESTS) ? NULL :
		   kvcalloc(nr_sge, sizeof(*run->sge), GFP_KERNEL_ACCOUNT);
	if (!run->wr || !run->sge)
		return -ENOMEM;
	ret = walk(run, &nr_sge);
	run->wr[nr - 1].wr.next = &run->wr[0].wr;
	return ret;
}

static u32 longest(const struct kxfer_run *run)
{
	u32 slot, nr = 0;

	for (slot = 0; slot < run->cmd->depth; slot++)
		nr = max(nr, run->slots[slot + 1] - run->slots[slot]);
	return nr;
}

/* ---- the call ---- */

static int run_phases(struct kxfer_run *run, struct kxfer_bench *cmd)
{
	s64 ns;

	run->signal = cmd->signal;
	ns = run_phase(run, cmd->warm_up, 0);
	if (ns >= 0)
		ns = run_phase(run, cmd->count, cmd->nr_samples);
	if (ns < 0)
		return ns;
	if (run->over < 0)
		return run->over;
	cmd->operations = run->done;
	cmd->nr_wr = longest(run);
	cmd->total_ns = ns;
	return 0;
}

/* With the lane. */
static int run_on_lane(struct kxfer_run *run, struct kxfer_bench *cmd)
{
	int ret = needs_sinks(run) ? register_sinks(run) : 0;

	if (!ret)
		ret = build_ring(run);
	if (!ret) {
		kxfer_mapping_to_device(run->mapping, cmd->region_offset, span(cmd));
		ret = run_phases(run, cmd);
		if (cmd->op == KXFER_OP_READ)
			kxfer_mapping_to_cpu(run->mapping, cmd->region_offset, span(cmd));
	}
	if (run->nr_sinks)
		invalidate_sinks(run);
	kvfree(run->sge);
	kvfree(run->wr);
	return ret;
}

static int run_transfer(struct kxfer_session *session, struct kxfer_run *run,
			struct kxfer_bench *cmd)
{
	struct kxfer_mapping *mapping;
	int ret;

	ret = bind(session, run);
	if (ret)
		return ret;
	mapping = kxfer_mapping_get(run->region, run->target->link->dev);
	ret = PTR_ERR_OR_ZERO(mapping);
	if (!ret) {
		run->mapping = mapping;
		ret = take_lane(run);
		if (!ret) {
			ret = run_on_lane(run, cmd);
			give_lane(run);
		}
		kxfer_mapping_put(mapping, 1);
	}
	unbind(run);
	return ret;
}

static int run_and_store(struct kxfer_session *session, struct kxfer_run *run,
			 struct kxfer_bench *cmd)
{
	u32 __user *to = u64_to_user_ptr(cmd->samples);
	int ret;

	if (cmd->nr_samples) {
		run->samples = kxfer_fault(BENCH_SAMPLES) ? NULL :
			       kvmalloc_array(cmd->nr_samples, sizeof(*run->samples),
					      GFP_KERNEL_ACCOUNT);
		if (!run->samples)
			return -ENOMEM;
	}
	run->cmd = cmd;
	run->cqe.done = operation_done;
	run->deadline_ns = ktime_get_ns() + (u64)cmd->time_limit_ms * NSEC_PER_MSEC;
	ret = cmd->op == KXFER_OP_NOP ? run_phases(run, cmd) :
					run_transfer(session, run, cmd);
	if (!ret && cmd->nr_samples &&
	    copy_to_user(to, run->samples, run->nr_samples * sizeof(*to)))
		ret = -EFAULT;
	cmd->nr_samples = run->nr_samples;
	kvfree(run->samples);
	return ret;
}

/** kxfer_bench_run() - KXFER_BENCH */
int kxfer_bench_run(struct kxfer_session *session, void *arg)
{
	struct kxfer_bench *cmd = arg;
	struct kxfer_run *run;
	int ret;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	ret = check_bench(cmd);
	if (ret)
		return ret;
	if (fault_in_writeable(u64_to_user_ptr(cmd->samples),
			       (size_t)cmd->nr_samples * sizeof(u32)))
		return -EFAULT;
	run = kxfer_fault(BENCH) ? NULL : kzalloc(sizeof(*run), GFP_KERNEL_ACCOUNT);
	if (!run)
		return -ENOMEM;
	ret = run_and_store(session, run, cmd);
	kfree(run);
	return ret;
}
