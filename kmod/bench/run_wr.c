// SPDX-License-Identifier: GPL-2.0
/*
 * The work requests of a measuring run (bench.c). Those of each slot are built once, before
 * the clock starts, as plan.c cuts them; posting only links them. Local memory is named by
 * local_dma_lkey, or by MRs of the run (mrs.c), registered once or for each operation. Remote
 * memory is the target's registrations, or that of a dedicated connection. With rdma_rw
 * nothing is built in advance (run_rw.c).
 *
 * Context: may sleep, except kxfer_run_prepare_locked().
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "base/fault.h"
#include "bench/mrs.h"
#include "bench/run.h"
#include "bench/run_rw.h"
#include "job/chain.h"
#include "job/job.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"

/* ---- MRs ---- */

static bool needs_mrs(const struct kxfer_run *run)
{
	return run->cmd->memory || (run->cmd->op == KXFER_OP_READ && run->lane->link->dev->iwarp);
}

/* On iWARP the peer must be allowed to write the sink of a READ. */
static int mr_access(const struct kxfer_run *run)
{
	bool iwarp = run->lane->link->dev->iwarp;

	/* The peer can invalidate only a key that grants it a right. */
	if (run->awaits)
		return IB_ACCESS_REMOTE_READ;
	if (!kxfer_op_has_sink(run->cmd->op))
		return 0;
	return IB_ACCESS_LOCAL_WRITE | (iwarp ? IB_ACCESS_REMOTE_WRITE : 0);
}

/* An MR that is registered once covers as many slots as possible. For the -2 see mrs.c. */
static int lay_out_mrs(struct kxfer_run *run, struct kxfer_mrs_layout *layout)
{
	const struct kxfer_bench *cmd = run->cmd;
	u64 max = (run->lane->link->dev->max_fast_reg_pages - 2) * PAGE_SIZE;

	if (cmd->length > max)
		return -EINVAL;
	run->each = cmd->memory == KXFER_BENCH_MEMORY_MR_EACH;
	run->mr_slots = 1;
	if (!run->each && cmd->stride)
		run->mr_slots = min_t(u64, run->nr_slots,
				      (max - cmd->length) / cmd->stride + 1);
	*layout = (struct kxfer_mrs_layout) {
		.offset = cmd->region_offset,
		.span = kxfer_run_span(run),
		.step = run->mr_slots * cmd->stride,
		.length = (run->mr_slots - 1) * cmd->stride + cmd->length,
		.nr = DIV_ROUND_UP(run->nr_slots, run->mr_slots),
		.pool = cmd->flags & KXFER_BENCH_F_MR_POOL,
	};
	return 0;
}

/* Return: 0, -EIO, or the error of the link. */
static int register_once(struct kxfer_run *run, struct kxfer_mr *mr)
{
	struct kxfer_lane *lane = run->lane;
	int ret;

	spin_lock_bh(&lane->lock);
	ret = lane->open ? kxfer_mr_map_locked(mr) : kxfer_link_job_error(lane->link);
	spin_unlock_bh(&lane->lock);
	if (ret)
		return ret;
	ret = kxfer_mr_register(lane, mr->mr, mr->reg.key, mr->reg.access);
	/* The link fails then. The work request may be under way until the link is DEAD. */
	if (ret)
		wait_event(lane->link->wait, kxfer_link_is_dead(lane->link));
	return ret;
}

/* Return: 0 or -errno */
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
 * Begin to plan the operation of a slot. register_slot() later fills in keys and addresses of
 * MRs that are registered for each operation.
 */
static int plan_slot(struct kxfer_run *run, u32 slot, struct kxfer_extent *whole)
{
	const struct kxfer_bench *cmd = run->cmd;
	u64 at = slot * cmd->stride;
	const struct kxfer_mr *mr;

	if (!run->mrs)
		return kxfer_plan_init(&run->plan, run->mapping->extents,
				       run->mapping->nr_extents, cmd->region_offset + at,
				       run->remote, run->nr_remote,
				       cmd->target_offset + at, cmd->length, &run->limits);
	mr = &run->mrs->each[slot / run->mr_slots];
	*whole = (struct kxfer_extent) {
		.addr = mr->iova + slot % run->mr_slots * cmd->stride,
		.length = cmd->length,
	};
	return kxfer_plan_init(&run->plan, whole, 1, 0, run->remote, run->nr_remote,
			       cmd->target_offset + at, cmd->length, &run->limits);
}

/* Return: start of a slot's operation, in bytes from the region's first page */
static u64 begins_at(const struct kxfer_run *run, u32 slot)
{
	return run->region->memory->offset + run->cmd->region_offset + slot * run->cmd->stride;
}

/* An atomic must be one work request, at aligned addresses. Return: 0 or -EINVAL */
static int check_word(const struct kxfer_run *run, u32 slot)
{
	if (!kxfer_op_is_atomic(run->cmd->op))
		return 0;
	return begins_at(run, slot) % KXFER_ATOMIC_BYTES ||
	       !kxfer_plan_is_word(&run->plan, KXFER_ATOMIC_BYTES) ? -EINVAL : 0;
}

static u32 local_key(const struct kxfer_run *run, u32 slot)
{
	return run->mrs ? run->mrs->each[slot / run->mr_slots].lkey : run->lkey;
}

static enum ib_wr_opcode opcode_of(const struct kxfer_bench *cmd)
{
	bool imm = cmd->flags & KXFER_BENCH_F_IMM;

	switch (cmd->op) {
	case KXFER_OP_SEND:
		return imm ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
	case KXFER_OP_READ:
		return IB_WR_RDMA_READ;
	case KXFER_OP_FETCH_ADD:
		return IB_WR_ATOMIC_FETCH_AND_ADD;
	case KXFER_OP_COMPARE_SWAP:
		return IB_WR_ATOMIC_CMP_AND_SWP;
	default:
		return imm ? IB_WR_RDMA_WRITE_WITH_IMM : IB_WR_RDMA_WRITE;
	}
}

static void build_wr(struct kxfer_run *run, union kxfer_run_wr *wr, struct ib_sge *sge,
		     u32 lkey)
{
	const struct kxfer_wr_desc *desc = &run->desc;
	u32 i;

	for (i = 0; i < desc->nr_sge; i++) {
		sge[i].addr = desc->sge[i].addr;
		sge[i].length = desc->sge[i].length;
		sge[i].lkey = lkey;
	}
	wr->wr = (struct ib_send_wr) {
		.next = &wr[1].wr,
		.wr_cqe = &run->cqe,
		.sg_list = sge,
		.num_sge = desc->nr_sge,
		.opcode = opcode_of(run->cmd),
	};
	if (kxfer_run_by_ud(run)) {
		kxfer_dedicated_fill_ud(run->dedicated, &wr->ud);
	} else if (kxfer_op_is_atomic(run->cmd->op)) {
		wr->atomic.remote_addr = desc->remote_addr;
		wr->atomic.rkey = desc->rkey;
		wr->atomic.compare_add = 1;
	} else {
		wr->rdma.remote_addr = desc->remote_addr;
		wr->rdma.rkey = desc->rkey;
	}
}

/* Would siw send wrong bytes of an MR at @here (device.h)? Not with a command in front. */
static bool comes_out_wrong(const struct kxfer_run *run, u64 here)
{
	u64 bytes = run->desc.length;

	if (!run->mrs || run->awaits || run->cmd->op == KXFER_OP_READ ||
	    !run->lane->link->dev->iwarp)
		return false;
	return bytes <= KXFER_SIW_INLINE_BYTES && offset_in_page(here) + bytes > PAGE_SIZE;
}

/* Build entry @nr of @wr, a work request of a slot, from @desc. */
static void add_wr(struct kxfer_run *run, u32 slot, u32 nr, struct ib_sge *sge)
{
	const struct kxfer_bench *cmd = run->cmd;

	build_wr(run, &run->wr[nr], sge, local_key(run, slot));
	if (cmd->op == KXFER_OP_WRITE && !(cmd->flags & KXFER_BENCH_F_NO_INLINE) &&
	    !run->mrs && run->desc.length == cmd->length)
		kxfer_chain_inline(run->lane, &run->wr[nr].wr, run->region->memory,
				   cmd->region_offset + slot * cmd->stride, cmd->length);
}

/*
 * @room: work requests that all slots may have: the lane's credits, less those to register
 * MRs. A message is one work request; with messages there may be more slots than operations
 * in flight. Return: 0, or -EINVAL: even the least possible number is too much
 */
static int room_for_slots(const struct kxfer_run *run, u32 *room)
{
	u32 max = run->lane->credits.max, nr = kxfer_run_registering(run);
	bool messages = kxfer_run_has_messages(run);

	if ((nr + messages) * run->cmd->depth > max)
		return -EINVAL;
	*room = messages ? run->nr_slots : max - nr * run->cmd->depth;
	return 0;
}

/* Count all work requests, and build them if the arrays exist. Return: 0 or -errno */
static int walk(struct kxfer_run *run, u32 *nr_sge)
{
	struct kxfer_extent whole;
	u32 max, slot, nr = 0;
	u64 here;
	int ret;

	*nr_sge = 0;
	ret = room_for_slots(run, &max);
	if (ret)
		return ret;
	for (slot = 0; slot < run->nr_slots && !kxfer_run_only_registers(run->cmd); slot++) {
		run->slots[slot] = nr;
		ret = plan_slot(run, slot, &whole) ?: check_word(run, slot);
		if (ret)
			return ret;
		for (here = begins_at(run, slot); kxfer_plan_next(&run->plan, &run->desc);
		     here += run->desc.length) {
			if (nr == max || comes_out_wrong(run, here))
				return -EINVAL;
			if (run->wr)
				add_wr(run, slot, nr, &run->sge[*nr_sge]);
			*nr_sge += run->desc.nr_sge;
			nr++;
		}
		/* A message is one work request. */
		if (kxfer_run_has_messages(run) && nr != run->slots[slot] + 1)
			return -EINVAL;
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
	nr = run->slots[run->nr_slots];
	run->wr = kxfer_try_alloc(BENCH_REQUESTS,
				  kvcalloc(nr, sizeof(*run->wr), GFP_KERNEL_ACCOUNT));
	run->sge = kxfer_try_alloc(BENCH_REQUESTS,
				   kvcalloc(nr_sge, sizeof(*run->sge), GFP_KERNEL_ACCOUNT));
	if (!run->wr || !run->sge)
		return -ENOMEM;
	return walk(run, &nr_sge);
}

/* The end of the link does not wait for the run, so the PD is valid on an open lane only. */
static int take_lkey(struct kxfer_run *run)
{
	struct kxfer_lane *lane = run->lane;
	int ret = 0;

	spin_lock_bh(&lane->lock);
	if (lane->open)
		run->lkey = lane->link->pd->local_dma_lkey;
	else
		ret = kxfer_link_job_error(lane->link);
	spin_unlock_bh(&lane->lock);
	return ret;
}

/**
 * kxfer_run_build() - make all that the operations of a run need
 * @run: run with its lane, peer's memory, region and, unless rdma_rw maps it, mapping
 *
 * May sleep. Return: 0 or -errno; kxfer_run_unbuild() must be called in any case.
 */
int kxfer_run_build(struct kxfer_run *run)
{
	struct kxfer_device *dev = run->lane->link->dev;
	int ret = take_lkey(run);

	if (ret)
		return ret;
	run->limits = *kxfer_device_limits(dev, run->cmd->op);
	/* As with user-space verbs, cut only at the device's longest message. */
	if (run->dedicated)
		run->limits.max_wr_bytes = dev->max_msg_bytes;
	if (run->cmd->memory == KXFER_BENCH_MEMORY_RW)
		return kxfer_run_rw_build(run);
	return make_mrs(run) ?: build_ring(run);
}

/** kxfer_run_unbuild() - undo kxfer_run_build(); nothing is under way; may sleep */
void kxfer_run_unbuild(struct kxfer_run *run)
{
	kxfer_run_rw_unbuild(run);
	if (run->mrs)
		kxfer_mrs_destroy(run->lane, run->mrs);
	kvfree(run->sge);
	kvfree(run->wr);
}

/** kxfer_run_longest() - number of work requests of the longest operation */
u32 kxfer_run_longest(const struct kxfer_run *run)
{
	u32 slot, nr = 0;

	if (run->rw)
		return kxfer_run_rw_longest(run);
	for (slot = 0; slot < run->nr_slots; slot++)
		nr = max(nr, run->slots[slot + 1] - run->slots[slot]);
	return nr + kxfer_run_registering(run);
}

/* ---- posting ---- */

/* Make ready an operation that registers its MR. With the lock of an open lane. */
static int register_slot(struct kxfer_run *run, u32 slot, struct kxfer_run_post *post)
{
	struct kxfer_mr *mr = &run->mrs->each[slot];
	struct ib_sge *sge;
	bool valid;
	u64 addr;
	u32 i;

	kxfer_mr_exchange_locked(run->mrs, mr);
	valid = mr->mr->need_inval;
	if (kxfer_mr_map_locked(mr))
		return -EIO;
	addr = mr->iova;
	for (i = run->slots[slot]; i < run->slots[slot + 1]; i++) {
		/* Each work request has one SGE, within the MR. */
		sge = &run->sge[i];
		sge->addr = addr;
		sge->lkey = mr->lkey;
		addr += sge->length;
	}
	mr->reg.wr.send_flags = 0;
	mr->reg.wr.next = post->first;
	if (!post->last)
		post->last = &mr->reg.wr;
	post->first = &mr->reg.wr;
	post->nr++;
	kxfer_run_invalidate_locked(run, slot, valid, post);
	return 0;
}

/**
 * kxfer_run_prepare_locked() - make the next operation ready to be posted
 * @run: run on an open lane, whose lock the caller holds
 * @post: gets the work requests, none of them signalled; @next of the last is undefined
 *
 * Return: 0 or -EIO.
 */
int kxfer_run_prepare_locked(struct kxfer_run *run, struct kxfer_run_post *post)
{
	u32 slot = run->slot;

	if (run->rw) {
		kxfer_run_rw_chain_locked(run, post);
		return 0;
	}
	*post = (struct kxfer_run_post) { .nr = run->slots[slot + 1] - run->slots[slot] };
	if (post->nr) {
		post->first = &run->wr[run->slots[slot]].wr;
		post->last = &run->wr[run->slots[slot + 1] - 1].wr;
		post->last->send_flags &= ~IB_SEND_SIGNALED;
	}
	if (run->words) {
		run->wr[slot].atomic.compare_add = run->words[slot]++;
		run->wr[slot].atomic.swap = run->words[slot];
	}
	if (run->each && register_slot(run, slot, post))
		return -EIO;
	if (kxfer_run_has_messages(run))
		kxfer_run_number_locked(run, &run->wr[slot].wr);
	if (++run->slot == run->nr_slots)
		run->slot = 0;
	return 0;
}
