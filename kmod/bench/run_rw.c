// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts of the kernel's rdma_rw (drivers/infiniband/core/rw.c) for a measuring run
 * (bench.c). Each operation maps its pages for DMA, lets rdma_rw make its work requests,
 * posts them, and unmaps the pages. The targets of NVMe over Fabrics, iSER and SRP, and the
 * NFS server do the same. If rdma_rw wants an MR (a READ on iWARP; everything with force_mr of
 * ib_core), it takes one of the QP's pool, which is made for the run.
 *
 * A slot of the run has a context for each piece into which plan.c would cut its operation.
 * Each page is a scatter list entry of its own, as a target allocates its pages. The
 * contexts of a slot end when the slot is used again, after its operation is done, or with
 * the run. rdma_rw allocates memory and may sleep. So contexts are made before the run owns
 * the CQ, for as many operations as there is room for.
 *
 * Ownership, as a proof. The arrays belong to the run. Contexts and pool need the QP until
 * they end. So the run holds the lane's mr_mutex while it makes or ends them. The closing of
 * the lane takes mr_mutex, too, after the QP is drained, when no device works on their
 * memory, and before the QP is destroyed. (siw may leave a work request without completion
 * when the QP goes into the error state. But then it neither sends nor places anything for
 * it: it does both under the state_lock of a QP in RTS.) The first of the two ends contexts
 * and pool; none is made on a closed lane. Device removal closes the lanes of the device, so
 * nothing is mapped for the device after that. A run posts contexts under the lane's lock,
 * and only while the lane is open.
 *
 * Memory that is mapped for the device already, for jobs or exports, is not mapped a second
 * time: DMA API debugging reports that as an error (cacheline tracking EEXIST). See bench.c.
 *
 * Context: all may sleep, except kxfer_run_rw_chain_locked().
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/mr_pool.h>
#include <rdma/rw.h>

#include "base/fault.h"
#include "bench/run.h"
#include "bench/run_rw.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/memory.h"
#include "node/region.h"

#define MR_PAGES	256	/* limit of one MR, as in rdma_rw */

/**
 * struct piece - part of an operation that has its own context
 * @ctx: context, valid unless @nr_wr is 0
 * @sg: scatter list of its pages
 * @nr_sg: entries of @sg
 * @nr_wr: work requests of @ctx; 0: no context
 * @rkey: rkey of the peer's memory
 * @remote_addr: address in the peer's memory
 */
struct piece {
	struct rdma_rw_ctx ctx;
	struct scatterlist *sg;
	u32 nr_sg;
	u32 nr_wr;
	u32 rkey;
	u64 remote_addr;
};

/**
 * struct kxfer_run_rw - contexts of a run
 * @dir: DMA direction of all pieces
 * @nr_mrs: MRs in the QP's pool
 * @nr_wr: work requests of all contexts
 * @longest: work requests of the longest operation whose contexts were made
 * @nr_sg: entries of @sg
 * @sg: scatter list entries of all pieces
 * @slots: index of the first piece of each slot; after the last slot, @nr_pieces
 * @nr_pieces: entries of @pieces
 * @pieces: pieces of all slots
 */
struct kxfer_run_rw {
	enum dma_data_direction dir;
	u32 nr_mrs;
	u32 nr_wr;
	u32 longest;
	u32 nr_sg;
	struct scatterlist *sg;
	u32 slots[KXFER_LANE_JOB_WRS + 1];
	u32 nr_pieces;
	struct piece *pieces;
};

/* ---- building ---- */

static u32 mr_pages(const struct kxfer_run *run)
{
	return min_t(u32, MR_PAGES, run->lane->link->dev->max_fast_reg_pages);
}

static u32 fill_sg(const struct kxfer_memory *memory, u64 offset, u64 bytes,
		   struct scatterlist *sg)
{
	u64 at = memory->offset + offset;
	u32 nr = 0, here;

	if (!sg)
		return DIV_ROUND_UP(offset_in_page(at) + bytes, PAGE_SIZE);
	for (; bytes; bytes -= here, at += here, nr++) {
		here = min_t(u64, bytes, PAGE_SIZE - offset_in_page(at));
		sg_set_page(&sg[nr], memory->pages[at / PAGE_SIZE], here, offset_in_page(at));
	}
	return nr;
}

/* Count the piece of @desc at @offset of the region; fill it in if the arrays exist. */
static void add_piece(struct kxfer_run *run, u32 index, u64 offset)
{
	struct kxfer_run_rw *rw = run->rw;
	struct scatterlist *sg = rw->sg ? &rw->sg[rw->nr_sg] : NULL;
	u32 nr_sg = fill_sg(run->region->memory, offset, run->desc.length, NULL);

	if (sg) {
		sg_init_table(sg, nr_sg);
		fill_sg(run->region->memory, offset, run->desc.length, sg);
		rw->pieces[index] = (struct piece) {
			.sg = sg,
			.nr_sg = nr_sg,
			.rkey = run->desc.rkey,
			.remote_addr = run->desc.remote_addr,
		};
	}
	rw->nr_sg += nr_sg;
	rw->nr_mrs += DIV_ROUND_UP(nr_sg, mr_pages(run));
}

/* Count all pieces, and fill them in if the arrays exist. Return: 0 or -errno */
static int walk(struct kxfer_run *run)
{
	const struct kxfer_bench *cmd = run->cmd;
	struct kxfer_plan_limits limits = run->limits;
	struct kxfer_extent whole = { .length = cmd->length };
	struct kxfer_run_rw *rw = run->rw;
	/* rdma_rw_init_map_wrs() allocates one array for the SGEs of a piece. */
	u64 max_bytes = (KMALLOC_MAX_SIZE / sizeof(struct ib_sge) - 1) * PAGE_SIZE;
	u32 max = run->lane->credits.max, slot, nr = 0;
	u64 at, within;
	int ret;

	limits.max_sge = 1;
	/*
	 * A second MR has its own READ, at an address of the peer that plan.c has not checked:
	 * siw's responder gets some addresses wrong (@border_bytes).
	 */
	if (limits.border_bytes)
		limits.max_wr_bytes = min_t(u64, limits.max_wr_bytes,
					    (mr_pages(run) - 1) * PAGE_SIZE);
	rw->nr_sg = 0;
	rw->nr_mrs = 0;
	for (slot = 0; slot < cmd->depth; slot++) {
		at = slot * cmd->stride;
		rw->slots[slot] = nr;
		ret = kxfer_plan_init(&run->plan, &whole, 1, 0, run->remote, run->nr_remote,
				      cmd->target_offset + at, cmd->length, &limits);
		if (ret)
			return ret;
		for (within = 0; kxfer_plan_next(&run->plan, &run->desc);
		     within += run->desc.length) {
			/* Each piece takes at least one work request. */
			if (nr == max || run->desc.length > max_bytes)
				return -EINVAL;
			add_piece(run, nr++, cmd->region_offset + at + within);
		}
	}
	rw->slots[slot] = nr;
	rw->nr_pieces = nr;
	return 0;
}

static int make_arrays(struct kxfer_run *run)
{
	struct kxfer_run_rw *rw = run->rw;
	int ret;

	if (run->cmd->length > U32_MAX)
		return -EINVAL;
	ret = walk(run);
	if (ret)
		return ret;
	rw->pieces = kxfer_try_alloc(RUN_RW_PIECES, kvcalloc(rw->nr_pieces, sizeof(*rw->pieces),
							     GFP_KERNEL_ACCOUNT));
	rw->sg = kxfer_try_alloc(RUN_RW_SG,
				 kvmalloc_array(rw->nr_sg, sizeof(*rw->sg), GFP_KERNEL_ACCOUNT));
	if (!rw->pieces || !rw->sg)
		return -ENOMEM;
	return walk(run);
}

/* With mr_mutex. MRs have one unused page, if the device allows (mrs.c). */
static int make_pool(struct kxfer_run *run)
{
	struct kxfer_lane *lane = run->lane;
	u32 pages = min_t(u32, mr_pages(run) + 1, lane->link->dev->max_fast_reg_pages);
	struct kxfer_run_rw *rw = run->rw;
	int ret;

	if (!READ_ONCE(lane->open))
		return -ECONNRESET;
	ret = kxfer_try(RUN_RW_POOL, ib_mr_pool_init(lane->qp, &lane->qp->rdma_mrs, rw->nr_mrs,
						     IB_MR_TYPE_MEM_REG, pages, 0));
	if (ret)
		return ret;
	kxfer_mr_count(lane, rw->nr_mrs);
	lane->rw = rw;
	return 0;
}

/**
 * kxfer_run_rw_build() - make the arrays and the pool, without contexts
 * @run: run of READs or WRITEs, with its lane, region, limits and remote memory
 *
 * Return: 0 or -errno; kxfer_run_rw_unbuild() must be called in any case.
 */
int kxfer_run_rw_build(struct kxfer_run *run)
{
	int ret;

	run->rw = kxfer_try_alloc(RUN_RW, kzalloc_obj(*run->rw, GFP_KERNEL_ACCOUNT));
	if (!run->rw)
		return -ENOMEM;
	run->rw->dir = run->cmd->op == KXFER_OP_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	ret = make_arrays(run);
	if (ret)
		return ret;
	mutex_lock(&run->lane->mr_mutex);
	ret = make_pool(run);
	mutex_unlock(&run->lane->mr_mutex);
	return ret;
}

/* ---- contexts ---- */

/* With mr_mutex. */
static void end_piece(struct kxfer_lane *lane, struct kxfer_run_rw *rw, struct piece *piece)
{
	if (!piece->nr_wr)
		return;
	rdma_rw_ctx_destroy(&piece->ctx, lane->qp, lane->cm_id->port_num, piece->sg,
			    piece->nr_sg, rw->dir);
	rw->nr_wr -= piece->nr_wr;
	piece->nr_wr = 0;
}

/* With mr_mutex, before the QP goes. */
static void end_all(struct kxfer_lane *lane)
{
	struct kxfer_run_rw *rw = lane->rw;
	u32 i;

	for (i = 0; i < rw->nr_pieces; i++)
		end_piece(lane, rw, &rw->pieces[i]);
	ib_mr_pool_destroy(lane->qp, &lane->qp->rdma_mrs);
	kxfer_mr_count(lane, -(int)rw->nr_mrs);
	lane->rw = NULL;
}

/**
 * kxfer_run_rw_close() - end the contexts of a lane's run, if there are any
 * @lane: lane that is closed, its QP drained; or open, with nothing of the run under way
 */
void kxfer_run_rw_close(struct kxfer_lane *lane)
{
	mutex_lock(&lane->mr_mutex);
	if (lane->rw)
		end_all(lane);
	mutex_unlock(&lane->mr_mutex);
}

/** kxfer_run_rw_unbuild() - end and free @rw of a run, which has nothing under way */
void kxfer_run_rw_unbuild(struct kxfer_run *run)
{
	if (!run->rw)
		return;
	kxfer_run_rw_close(run->lane);
	kvfree(run->rw->sg);
	kvfree(run->rw->pieces);
	kfree(run->rw);
	run->rw = NULL;
}

/* With mr_mutex, on an open lane. Return: 0 or -errno */
static int renew_piece(struct kxfer_run *run, struct piece *piece)
{
	struct kxfer_lane *lane = run->lane;
	struct kxfer_run_rw *rw = run->rw;
	int ret;

	end_piece(lane, rw, piece);
	ret = kxfer_try(RUN_RW_CTX, rdma_rw_ctx_init(&piece->ctx, lane->qp, lane->cm_id->port_num,
						     piece->sg, piece->nr_sg, 0,
						     piece->remote_addr, piece->rkey, rw->dir));
	if (ret < 0)
		return ret;
	piece->nr_wr = ret;
	rw->nr_wr += ret;
	/* The run has all credits of the lane, so it cannot post more work requests. */
	return rw->nr_wr > lane->credits.max ? -EINVAL : 0;
}

/* With mr_mutex, on an open lane. Return: 0 or -errno */
static int renew_slot(struct kxfer_run *run, u32 slot)
{
	struct kxfer_run_rw *rw = run->rw;
	u32 i, nr = 0;
	int ret;

	for (i = rw->slots[slot]; i < rw->slots[slot + 1]; i++) {
		ret = renew_piece(run, &rw->pieces[i]);
		if (ret)
			return ret;
		nr += rw->pieces[i].nr_wr;
	}
	rw->longest = max(rw->longest, nr);
	return 0;
}

/* With mr_mutex. Return: 0 or -errno; -ECONNRESET: the lane is closed. */
static int renew(struct kxfer_run *run)
{
	u32 until = min_t(u64, run->end, (u64)READ_ONCE(run->done) + run->cmd->depth);
	int ret = 0;

	if (!READ_ONCE(run->lane->open))
		return -ECONNRESET;
	while (!ret && run->ready < until) {
		ret = renew_slot(run, (run->slot + run->ready - run->posted) %
				      run->cmd->depth);
		if (!ret)
			run->ready++;
	}
	return ret;
}

/**
 * kxfer_run_rw_ready() - make the contexts of all operations that there is room for
 * @run: run that is built; the caller does not own the CQ
 *
 * If this fails the run is over. Every operation is signalled, so the run sees all
 * completions. Return: false on failure, or if the lane is closed.
 */
bool kxfer_run_rw_ready(struct kxfer_run *run)
{
	struct kxfer_lane *lane = run->lane;
	int ret;

	mutex_lock(&lane->mr_mutex);
	ret = renew(run);
	mutex_unlock(&lane->mr_mutex);
	if (!ret)
		return true;
	if (ret != -ECONNRESET) {
		kxfer_run_stop(run, ret);
		WRITE_ONCE(run->end, run->posted);
	}
	return false;
}

/* Clear signalling in a chain that rdma_rw made. Return: its last work request */
static struct ib_send_wr *mark(struct kxfer_run *run, struct ib_send_wr *wr)
{
	for (;; wr = wr->next) {
		/* After an error each work request completes, but rdma_rw sets no handler. */
		wr->wr_cqe = &run->cqe;
		wr->send_flags &= ~IB_SEND_SIGNALED;
		if (!wr->next)
			return wr;
	}
}

/**
 * kxfer_run_rw_chain_locked() - get the work requests of the next operation
 * @run: run with the operation's contexts, on an open lane, whose lock the caller holds
 * @post: gets the work requests, as from kxfer_run_prepare_locked()
 */
void kxfer_run_rw_chain_locked(struct kxfer_run *run, struct kxfer_run_post *post)
{
	struct kxfer_lane *lane = run->lane;
	struct kxfer_run_rw *rw = run->rw;
	struct ib_send_wr *first;
	u32 i;

	*post = (struct kxfer_run_post) { };
	for (i = rw->slots[run->slot]; i < rw->slots[run->slot + 1]; i++) {
		first = rdma_rw_ctx_wrs(&rw->pieces[i].ctx, lane->qp, lane->cm_id->port_num,
					&run->cqe, NULL);
		if (post->last)
			post->last->next = first;
		else
			post->first = first;
		post->last = mark(run, first);
		post->nr += rw->pieces[i].nr_wr;
	}
	if (++run->slot == run->cmd->depth)
		run->slot = 0;
}

/** kxfer_run_rw_longest() - number of work requests of the longest operation so far */
u32 kxfer_run_rw_longest(const struct kxfer_run *run)
{
	return run->rw->longest;
}
