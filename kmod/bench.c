// SPDX-License-Identifier: GPL-2.0
/*
 * The engine kverbs: what work requests cost when nothing stands before them.
 *
 * A run is a call that posts READs or WRITEs on a data lane, with no jobs: the floor
 * under the job path. Everything is prepared before the clock starts: the work
 * requests of each of @depth operations are built once, as plan.c cuts them; to post
 * some is to link them. Local memory is the region's pages by
 * local_dma_lkey, or MRs of the run (mrs.c), registered once or for each operation;
 * remote memory the target's registrations. On iWARP a WRITE is done when TCP has it.
 *
 * The run has the lane for itself: it takes all credits of a lane that is idle, so that
 * no chain is posted before it gives them back; jobs that come meanwhile are queued and
 * posted then. (Messages of the channel need no credits, and go on.) With the credits it
 * has the places in the send queue, which only chains use.
 *
 * It works in turns. On a lane that is polled a turn lasts TURN_NS, as the owner of the
 * CQ (cq.c), and one in which nothing completes ends in a sleep until something does.
 * On others a turn is to post, and to sleep until completions, which come in the lane's
 * context, have made room. Between two turns the CPU is given to who wants it, and
 * signals, a withdrawal and the time limit are looked at. Those stop the run: it goes on
 * to the next operation that is signalled, so that the completion of all that was posted
 * is seen.
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
 * Context: a call; may sleep. Completions come from one caller at a time: the owner of a
 * polled CQ, else the lane's context.
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
#include "mrs.h"
#include "plan.h"
#include "region.h"
#include "session.h"
#include "submit.h"
#include "target.h"

#define TURN_NS		1000000	/* with preemption off, then others have the CPU */
#define LOOK_NS		50000	/* for the next completion, then the turn is over */
#define SLEEP_MS	10	/* for room, then the turn is over */
#define POST_MAX	64	/* operations, if fewer are in flight, then the turn is over */

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
 * @wr: READs and WRITEs of all slots, those of one slot linked
 * @sge: their memory
 * @slots: first entry of @wr of each slot, and behind the last one their number
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
	struct ib_rdma_wr *wr;
	struct ib_sge *sge;
	u32 slots[KXFER_LANE_JOB_WRS + 1];
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

/* ---- what is asked for ---- */

/* NOPs that register memory, on a lane; else they do without any. */
static bool only_registers(const struct kxfer_bench *cmd)
{
	return cmd->op == KXFER_OP_NOP && cmd->memory == KXFER_BENCH_MEMORY_MR_EACH;
}

static int check_nop(const struct kxfer_bench *cmd)
{
	return cmd->memory || cmd->nr_buckets || cmd->region || cmd->target ||
	       cmd->region_offset || cmd->target_offset ||
	       cmd->length || cmd->stride || cmd->depth != 1 ? -EINVAL : 0;
}

static int check_transfer(const struct kxfer_bench *cmd)
{
	if (!cmd->length || (!cmd->stride && cmd->depth > 1))
		return -EINVAL;
	return cmd->op == KXFER_OP_NOP && cmd->target_offset ? -EINVAL : 0;
}

static int check_bench(const struct kxfer_bench *cmd)
{
	if (cmd->flags || cmd->op > KXFER_OP_WRITE ||
	    cmd->memory > KXFER_BENCH_MEMORY_MR_EACH)
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
	if ((cmd->nr_buckets && cmd->nr_buckets != KXFER_BENCH_NR_BUCKETS) ||
	    !cmd->nr_buckets != !cmd->histogram)
		return -EINVAL;
	return cmd->op == KXFER_OP_NOP && !only_registers(cmd) ? check_nop(cmd) :
								  check_transfer(cmd);
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

/* May it do what it is to do with target and region? Return: 0 or -errno */
static int check_objects(const struct kxfer_bench *cmd, const struct kxfer_target *target,
			 const struct kxfer_region *region)
{
	int ret = check_range(cmd, cmd->region_offset, region->memory->length);
	bool read = cmd->op == KXFER_OP_READ;

	if (only_registers(cmd))
		return ret;
	if (!(target->rights & (read ? KXFER_RIGHT_READ : KXFER_RIGHT_WRITE)) ||
	    (read && !region->memory->writable))
		return -EACCES;
	return check_range(cmd, cmd->target_offset, target->length) ?: ret;
}

/* Called with the session's lock held for reading. */
static int find_objects(struct kxfer_session *session, struct kxfer_run *run)
{
	const struct kxfer_bench *cmd = run->cmd;
	struct kxfer_target *target = xa_load(&session->targets, cmd->target);
	struct kxfer_region *region = xa_load(&session->regions, cmd->region);
	int ret;

	if (!target || !region)
		return -ENOENT;
	ret = check_objects(cmd, target, region);
	if (ret)
		return ret;
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

/* As KXFER_BENCH_NR_BUCKETS says it. */
static u32 bucket_of(u64 ns)
{
	u32 value = min_t(u64, ns, U32_MAX), shift;

	if (value < 256)
		return value;
	shift = fls(value) - 8;
	return shift * 128 + (value >> shift);
}

static void count_latencies(struct kxfer_run *run, u32 nr, u64 now_ns)
{
	for (; nr; nr--) {
		run->histogram[bucket_of(now_ns - run->posted_ns[run->done_slot])]++;
		if (++run->done_slot == run->cmd->depth)
			run->done_slot = 0;
	}
}

/* So many operations more are done. Return: how many are now. */
static u32 count_done(struct kxfer_run *run, u64 now_ns)
{
	u32 done = min(run->done + run->signal, READ_ONCE(run->end));

	if (run->nr_samples < run->room)
		run->samples[run->nr_samples++] = min_t(u64, now_ns - run->last_ns, U32_MAX);
	if (run->counts)
		count_latencies(run, done - run->done, now_ns);
	run->last_ns = now_ns;
	/* Who runs may free the run when it sees the last one: nothing of it is used behind. */
	smp_store_release(&run->done, done);
	return done;
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
	u32 done;

	kxfer_fault_wc(BENCH_DONE, wc);
	if (wc->status != IB_WC_SUCCESS) {
		failed(run, wc);
		return;
	}
	WRITE_ONCE(link->heard_ns, now_ns);
	/* Chains, which count under the lane's lock, there are none. */
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	done = count_done(run, now_ns);
	/* A full barrier lies between @done and @run_want, here as in wait_event(). */
	if (wq_has_sleeper(&link->wait) && done >= READ_ONCE(lane->run_want))
		wake_up_all(&link->wait);
}

/* What is posted of a slot, from the first work request to the last. */
struct kxfer_run_post {
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	u32 nr;
};

/* Make an operation ready whose MR is registered for it. With the lock of an open lane. */
static int register_slot(struct kxfer_run *run, u32 slot, struct kxfer_run_post *post)
{
	struct kxfer_mr *mr = &run->mrs->each[slot];
	bool valid = mr->valid;
	struct ib_sge *sge;
	u64 addr;
	u32 i;

	if (kxfer_mr_map_locked(mr))
		return -EIO;
	addr = mr->iova;
	for (i = run->slots[slot]; i < run->slots[slot + 1]; i++) {
		sge = run->wr[i].wr.sg_list;
		sge->addr = addr;
		sge->lkey = mr->lkey;
		addr += sge->length;
	}
	mr->reg.wr.send_flags = 0;
	mr->reg.wr.next = post->first;
	if (!post->last)
		post->last = &mr->reg.wr;
	post->first = valid ? &mr->inv : &mr->reg.wr;
	post->nr += 1 + valid;
	return 0;
}

/* With the lock of an open lane. Return: 0 or -errno. */
static int prepare_slot(struct kxfer_run *run, struct kxfer_run_post *post)
{
	u32 slot = run->slot;

	*post = (struct kxfer_run_post) { .nr = run->slots[slot + 1] - run->slots[slot] };
	if (post->nr) {
		post->first = &run->wr[run->slots[slot]].wr;
		post->last = &run->wr[run->slots[slot + 1] - 1].wr;
		post->last->send_flags &= ~IB_SEND_SIGNALED;
	}
	if (++run->slot == run->cmd->depth)
		run->slot = 0;
	return run->each ? register_slot(run, slot, post) : 0;
}

static void note_post(struct kxfer_run *run, u32 nr)
{
	u64 now_ns = ktime_get_ns();
	u32 slot = run->slot;

	while (nr--) {
		run->posted_ns[slot] = now_ns;
		if (++slot == run->cmd->depth)
			slot = 0;
	}
}

/* Called with the lane's lock held. Return: false if the link fails. */
static bool post_locked(struct kxfer_run *run, u32 nr)
{
	struct ib_send_wr *first = NULL, *last = NULL;
	struct kxfer_lane *lane = run->lane;
	struct kxfer_run_post post;
	u32 nr_wr = 0;

	if (!lane->open || !kxfer_link_is_live(lane->link))
		return false;
	if (run->histogram)
		note_post(run, nr);
	while (nr--) {
		if (prepare_slot(run, &post)) {
			kxfer_link_fail(lane->link, -EIO);
			return false;
		}
		if (last)
			last->next = post.first;
		else
			first = post.first;
		last = post.last;
		nr_wr += post.nr;
		run->posted++;
		if (run->posted % run->signal == 0 || run->posted == run->end)
			last->send_flags |= IB_SEND_SIGNALED;
	}
	last->next = NULL;
	return !kxfer_lane_post_locked(lane, first, nr_wr);
}

static bool post_operations(struct kxfer_run *run, u32 nr)
{
	bool ok;

	spin_lock_bh(&run->lane->lock);
	ok = post_locked(run, nr);
	spin_unlock_bh(&run->lane->lock);
	return ok;
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

/*
 * As many as there is room for, but not for ever: what a soft provider carries out as it
 * is posted makes room at once.
 */
static bool post_all(struct kxfer_run *run)
{
	u32 max = max_t(u32, run->cmd->depth, POST_MAX), total = 0, nr;

	while (run->posted < run->end && total < max) {
		nr = next_list(run);
		if (run->posted - READ_ONCE(run->done) + nr > run->cmd->depth)
			break;
		if (!post_operations(run, nr))
			return false;
		total += nr;
	}
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

/* As the owner of the CQ, who sleeps if nothing completes. */
static void work_polling(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane->link;
	u32 before = READ_ONCE(run->done);

	take_turn(run);
	kxfer_cq_disown(&run->lane->cq);
	if (READ_ONCE(run->done) != before || need_resched() || !kxfer_link_is_live(link))
		return;
	WRITE_ONCE(run->lane->run_want, before + 1);
	wait_event(link->wait, READ_ONCE(run->done) != before || link_is_dead(link));
}

/* Completions come elsewhere. */
static void work_sleeping(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane->link;
	u32 want;

	if (!post_all(run))
		return;
	want = next_done(run);
	WRITE_ONCE(run->lane->run_want, want);
	wait_event_timeout(link->wait, READ_ONCE(run->done) >= want || link_is_dead(link),
			   msecs_to_jiffies(SLEEP_MS));
}

static void work_a_turn(struct kxfer_run *run)
{
	if (!run->lane)
		take_empty_turn(run);
	else if (kxfer_cq_own(&run->lane->cq))
		work_polling(run);
	else
		work_sleeping(run);
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
static s64 run_phase(struct kxfer_run *run, u32 count, u32 room, bool counts)
{
	u64 start_ns;
	int ret;

	run->posted = 0;
	run->done = 0;
	run->end = run->stopped ? 0 : count;
	run->nr_samples = 0;
	run->room = room;
	run->counts = counts && run->histogram;
	run->done_slot = run->slot;
	start_ns = ktime_get_ns();
	run->last_ns = start_ns;
	ret = work(run);
	return ret ?: run->last_ns - start_ns;
}

/* ---- MRs ---- */

static bool needs_mrs(const struct kxfer_run *run)
{
	return run->cmd->memory || (run->cmd->op == KXFER_OP_READ && run->lane->link->dev->iwarp);
}

/* The sink of a READ is one that the peer may write on iWARP. */
static int mr_access(const struct kxfer_run *run)
{
	bool iwarp = run->lane->link->dev->iwarp;

	if (run->cmd->op == KXFER_OP_READ)
		return IB_ACCESS_LOCAL_WRITE | (iwarp ? IB_ACCESS_REMOTE_WRITE : 0);
	return 0;
}

/* As many slots as can be are covered by one MR that is registered once. */
static int lay_out_mrs(struct kxfer_run *run, struct kxfer_mrs_layout *layout)
{
	const struct kxfer_bench *cmd = run->cmd;
	u64 max = (run->lane->link->dev->max_fast_reg_pages - 1) * PAGE_SIZE;

	if (cmd->length > max)
		return -EINVAL;
	run->each = cmd->memory == KXFER_BENCH_MEMORY_MR_EACH;
	run->mr_slots = 1;
	if (!run->each && cmd->stride)
		run->mr_slots = min_t(u64, cmd->depth, (max - cmd->length) / cmd->stride + 1);
	*layout = (struct kxfer_mrs_layout) {
		.offset = cmd->region_offset,
		.span = span(cmd),
		.step = run->mr_slots * cmd->stride,
		.length = (run->mr_slots - 1) * cmd->stride + cmd->length,
		.nr = DIV_ROUND_UP(cmd->depth, run->mr_slots),
	};
	return 0;
}

/* Return: 0, -EIO, or why the lane is closed. */
static int register_once(struct kxfer_run *run, struct kxfer_mr *mr)
{
	struct kxfer_lane *lane = run->lane;
	int ret;

	spin_lock_bh(&lane->lock);
	ret = lane->open ? kxfer_mr_map_locked(mr) : kxfer_link_job_error(lane->link);
	spin_unlock_bh(&lane->lock);
	if (ret)
		return ret;
	ret = kxfer_lane_register(lane, mr->mr, mr->reg.key, mr->reg.access);
	/* Then the link fails. Until its end the work request may be under way. */
	if (ret)
		wait_event(lane->link->wait, link_is_dead(lane->link));
	return ret;
}

/* Return: 0 or -errno; run->mrs is to be destroyed in any case. */
static int make_mrs(struct kxfer_run *run)
{
	struct kxfer_mrs_layout layout;
	struct kxfer_mrs *mrs;
	u32 i;
	int ret;

	if (!needs_mrs(run))
		return 0;
	ret = lay_out_mrs(run, &layout);
	if (ret)
		return ret;
	mrs = kxfer_mrs_create(run->lane, &run->cqe, mr_access(run), run->mapping, &layout);
	if (IS_ERR(mrs))
		return PTR_ERR(mrs);
	run->mrs = mrs;
	for (i = 0; i < mrs->nr && !ret && !run->each; i++)
		ret = register_once(run, &mrs->each[i]);
	return ret;
}

/* ---- building the ring ---- */

/*
 * Set out on the operation of a slot. Keys and addresses of MRs that are registered for
 * each are filled in then.
 */
static int plan_slot(struct kxfer_run *run, u32 slot, struct kxfer_extent *whole)
{
	const struct kxfer_bench *cmd = run->cmd;
	const struct kxfer_plan_limits *limits =
		kxfer_device_limits(run->lane->link->dev, cmd->op);
	const struct kxfer_target *target = run->target;
	u64 at = slot * cmd->stride;
	const struct kxfer_mr *mr;

	if (!run->mrs)
		return kxfer_plan_init(&run->plan, run->mapping->extents,
				       run->mapping->nr_extents, cmd->region_offset + at,
				       target->keys, target->nr_keys,
				       cmd->target_offset + at, cmd->length, limits);
	mr = &run->mrs->each[slot / run->mr_slots];
	*whole = (struct kxfer_extent) {
		.addr = mr->iova + slot % run->mr_slots * cmd->stride,
		.length = cmd->length,
	};
	return kxfer_plan_init(&run->plan, whole, 1, 0, target->keys, target->nr_keys,
			       cmd->target_offset + at, cmd->length, limits);
}

static u32 local_key(const struct kxfer_run *run, u32 slot)
{
	return run->mrs ? run->mrs->each[slot / run->mr_slots].lkey : run->lkey;
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
	if (cmd->op == KXFER_OP_WRITE && !run->mrs && run->desc.length == cmd->length)
		kxfer_chain_inline(run->lane, &run->wr[nr].wr, run->region->memory,
				   cmd->region_offset + slot * cmd->stride, cmd->length);
}

/* Of an operation, beside its READs or WRITEs: a REG_MR and a LOCAL_INV. */
static u32 extra_wrs(const struct kxfer_run *run)
{
	return run->each ? 2 : 0;
}

/* Build all work requests if there is memory for them; else count them. */
static int walk(struct kxfer_run *run, u32 *nr_sge)
{
	u32 max = run->lane->credits.max, slot, nr = 0;
	struct kxfer_extent whole;
	int ret;

	*nr_sge = 0;
	if (extra_wrs(run) * run->cmd->depth > max)
		return -EINVAL;
	max -= extra_wrs(run) * run->cmd->depth;
	for (slot = 0; slot < run->cmd->depth && !only_registers(run->cmd); slot++) {
		run->slots[slot] = nr;
		ret = plan_slot(run, slot, &whole);
		if (ret)
			return ret;
		while (kxfer_plan_next(&run->plan, &run->desc)) {
			if (nr == max)
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
	return walk(run, &nr_sge);
}

static u32 longest(const struct kxfer_run *run)
{
	u32 slot, nr = 0;

	for (slot = 0; slot < run->cmd->depth; slot++)
		nr = max(nr, run->slots[slot + 1] - run->slots[slot]);
	return nr + extra_wrs(run);
}

/* ---- the call ---- */

static int run_phases(struct kxfer_run *run, struct kxfer_bench *cmd)
{
	s64 ns;

	run->signal = cmd->signal;
	ns = run_phase(run, cmd->warm_up, 0, false);
	if (ns >= 0)
		ns = run_phase(run, cmd->count, cmd->nr_samples, true);
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
	int ret = make_mrs(run);

	if (!ret)
		ret = build_ring(run);
	if (!ret) {
		kxfer_mapping_to_device(run->mapping, cmd->region_offset, span(cmd));
		ret = run_phases(run, cmd);
		if (cmd->op == KXFER_OP_READ)
			kxfer_mapping_to_cpu(run->mapping, cmd->region_offset, span(cmd));
	}
	if (run->mrs)
		kxfer_mrs_destroy(run->lane, run->mrs);
	kvfree(run->sge);
	kvfree(run->wr);
	return ret;
}

static int run_on_link(struct kxfer_session *session, struct kxfer_run *run,
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

/* Room for what is counted. Return: 0 or -ENOMEM */
static int make_counts(struct kxfer_run *run, const struct kxfer_bench *cmd)
{
	if (cmd->nr_samples) {
		run->samples = kxfer_fault(BENCH_SAMPLES) ? NULL :
			       kvmalloc_array(cmd->nr_samples, sizeof(*run->samples),
					      GFP_KERNEL_ACCOUNT);
		if (!run->samples)
			return -ENOMEM;
	}
	if (!cmd->nr_buckets)
		return 0;
	run->posted_ns = kvcalloc(cmd->depth, sizeof(*run->posted_ns), GFP_KERNEL_ACCOUNT);
	run->histogram = kxfer_fault(BENCH_HISTOGRAM) ? NULL :
			 kvcalloc(cmd->nr_buckets, sizeof(*run->histogram),
				  GFP_KERNEL_ACCOUNT);
	return run->posted_ns && run->histogram ? 0 : -ENOMEM;
}

/* Return: 0 or -EFAULT */
static int store_counts(const struct kxfer_run *run, const struct kxfer_bench *cmd)
{
	u32 __user *samples = u64_to_user_ptr(cmd->samples);
	u32 __user *histogram = u64_to_user_ptr(cmd->histogram);

	if (copy_to_user(samples, run->samples, run->nr_samples * sizeof(*samples)) ||
	    copy_to_user(histogram, run->histogram, cmd->nr_buckets * sizeof(*histogram)))
		return -EFAULT;
	return 0;
}

static int run_and_store(struct kxfer_session *session, struct kxfer_run *run,
			 struct kxfer_bench *cmd)
{
	int ret;

	ret = make_counts(run, cmd);
	if (ret)
		return ret;
	run->cmd = cmd;
	run->cqe.done = operation_done;
	run->deadline_ns = ktime_get_ns() + (u64)cmd->time_limit_ms * NSEC_PER_MSEC;
	ret = cmd->op == KXFER_OP_NOP && !only_registers(cmd) ?
	      run_phases(run, cmd) : run_on_link(session, run, cmd);
	if (!ret)
		ret = store_counts(run, cmd);
	cmd->nr_samples = run->nr_samples;
	return ret;
}

static void free_run(struct kxfer_run *run)
{
	kvfree(run->samples);
	kvfree(run->histogram);
	kvfree(run->posted_ns);
	kfree(run);
}

static bool writable(u64 to, u32 nr)
{
	return !fault_in_writeable(u64_to_user_ptr(to), (size_t)nr * sizeof(u32));
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
	if (!writable(cmd->samples, cmd->nr_samples) ||
	    !writable(cmd->histogram, cmd->nr_buckets))
		return -EFAULT;
	run = kxfer_fault(BENCH) ? NULL : kzalloc(sizeof(*run), GFP_KERNEL_ACCOUNT);
	if (!run)
		return -ENOMEM;
	ret = run_and_store(session, run, cmd);
	free_run(run);
	return ret;
}
