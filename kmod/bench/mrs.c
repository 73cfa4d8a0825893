// SPDX-License-Identifier: GPL-2.0
/*
 * Fast-registration MRs of a measuring run (bench.c). Each covers a piece of a region, and
 * has the work requests that register and invalidate it.
 *
 * Registering an MR takes two steps: map it, which gives it addresses and a new key, and
 * post @reg. run_invalidate.c says when @inv is posted.
 *
 * The MRs may form a pool of the QP (drivers/infiniband/core/mr_pool.c). Then each operation
 * first gives back the MR of the previous operation of its slot, and takes one from the pool.
 * There is an MR for each operation in flight, so the pool is never empty.
 *
 * Ownership, as a proof. The array belongs to the run. The MRs need the link's PD, and a pool
 * needs the QP, both of which go when the lanes are closed. So the run holds the lane's
 * mr_mutex while it makes or deregisters MRs. The closing of the lane takes mr_mutex, too,
 * after the QP is drained, when no work request that names an MR is carried out any more,
 * and before the QP is destroyed. The first of the two deregisters the MRs. No MR is made on
 * a closed lane. A run maps MRs under the lane's lock, and only while the lane is open.
 *
 * Context: all may sleep, except kxfer_mr_map_locked() and kxfer_mr_exchange_locked().
 */
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/mr_pool.h>

#include "base/fault.h"
#include "base/plan.h"
#include "bench/mrs.h"
#include "link/lane.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/mapping.h"

static u64 length_of(const struct kxfer_mrs_layout *layout, u32 i)
{
	return min(layout->length, layout->span - i * layout->step);
}

static int make_lists(struct kxfer_mrs *mrs, const struct kxfer_mapping *mapping,
		      const struct kxfer_mrs_layout *layout)
{
	struct kxfer_mr *mr = mrs->each;
	u32 i, total = 0;

	for (i = 0; i < mrs->nr; i++)
		total += kxfer_mapping_pieces(mapping, layout->offset + i * layout->step,
					      length_of(layout, i), NULL);
	mrs->sg = kxfer_try_alloc(MRS_SG,
				  kvmalloc_array(total, sizeof(*mrs->sg), GFP_KERNEL_ACCOUNT));
	if (!mrs->sg)
		return -ENOMEM;
	sg_init_table(mrs->sg, total);
	for (i = 0, total = 0; i < mrs->nr; i++, mr++) {
		mr->sg = &mrs->sg[total];
		mr->nr_sg = kxfer_mapping_pieces(mapping, layout->offset + i * layout->step,
						 length_of(layout, i), mr->sg);
		total += mr->nr_sg;
	}
	return 0;
}

/* With mr_mutex. */
static void end_pool(struct kxfer_lane *lane, struct kxfer_mrs *mrs)
{
	struct ib_qp *qp = mrs->pool;
	u32 i;

	for (i = 0; i < mrs->nr; i++) {
		if (mrs->each[i].mr)
			ib_mr_pool_put(qp, &qp->rdma_mrs, mrs->each[i].mr);
		mrs->each[i].mr = NULL;
	}
	ib_mr_pool_destroy(qp, &qp->rdma_mrs);
	kxfer_mr_count(lane, -(int)mrs->nr);
	mrs->pool = NULL;
}

/* With mr_mutex. */
static void deregister_all(struct kxfer_lane *lane, struct kxfer_mrs *mrs)
{
	u32 i;

	if (mrs->pool)
		end_pool(lane, mrs);
	for (i = 0; i < mrs->nr && mrs->each[i].mr; i++) {
		kxfer_mr_dereg(lane, mrs->each[i].mr);
		mrs->each[i].mr = NULL;
	}
}

static void fill_wrs(struct kxfer_mr *mr, struct ib_cqe *cqe, int access)
{
	mr->reg = (struct ib_reg_wr) {
		.wr = { .wr_cqe = cqe, .opcode = IB_WR_REG_MR },
		.access = access,
	};
	mr->inv = (struct ib_send_wr) {
		.wr_cqe = cqe,
		.opcode = IB_WR_LOCAL_INV,
	};
}

/* With mr_mutex. Return: 0, or -errno with no MR left */
static int make_each(struct kxfer_lane *lane, struct kxfer_mrs *mrs, u32 pages)
{
	struct ib_mr *mr;
	u32 i;

	for (i = 0; i < mrs->nr; i++) {
		mr = kxfer_mr_alloc(lane, pages);
		if (IS_ERR(mr)) {
			deregister_all(lane, mrs);
			return PTR_ERR(mr);
		}
		mrs->each[i].mr = mr;
	}
	return 0;
}

/* With mr_mutex. Return: 0, or -errno with no pool left */
static int make_pool(struct kxfer_lane *lane, struct kxfer_mrs *mrs, u32 pages)
{
	int ret;

	ret = kxfer_try(MRS_POOL, ib_mr_pool_init(lane->qp, &lane->qp->rdma_mrs, mrs->nr,
						  IB_MR_TYPE_MEM_REG, pages, 0));
	if (ret)
		return ret;
	kxfer_mr_count(lane, mrs->nr);
	mrs->pool = lane->qp;
	return 0;
}

/* With mr_mutex held, an open lane keeps its PD and QP. Return: 0 or -errno */
static int make_all(struct kxfer_lane *lane, struct kxfer_mrs *mrs, bool pool, u32 pages)
{
	bool open;
	int ret;

	spin_lock_bh(&lane->lock);
	open = lane->open;
	spin_unlock_bh(&lane->lock);
	if (!open)
		return -ECONNRESET;
	ret = pool ? make_pool(lane, mrs, pages) : make_each(lane, mrs, pages);
	if (!ret)
		lane->mrs = mrs;
	return ret;
}

static void free_all(struct kxfer_mrs *mrs)
{
	kvfree(mrs->sg);
	kvfree(mrs);
}

/**
 * kxfer_mrs_create() - make the MRs of a run
 * @lane: lane that the run has exclusively
 * @cqe: completion entry of their work requests, none of which is signalled
 * @access: IB_ACCESS_* to register with
 * @mapping: mapping of the region
 * @layout: pieces of the region; a piece has at most max_fast_reg_pages - 2 pages
 *
 * One of the two extra pages is for memory that begins within a page. The other stays unused:
 * rxe of 6.1 looks past the last page in use. Return: MRs, none registered; or ERR_PTR.
 */
struct kxfer_mrs *kxfer_mrs_create(struct kxfer_lane *lane, struct ib_cqe *cqe, int access,
				   const struct kxfer_mapping *mapping,
				   const struct kxfer_mrs_layout *layout)
{
	u32 pages = DIV_ROUND_UP(layout->length, PAGE_SIZE) + 2;
	struct kxfer_mrs *mrs;
	int ret;
	u32 i;

	mrs = kxfer_try_alloc(MRS,
			      kvzalloc(struct_size(mrs, each, layout->nr), GFP_KERNEL_ACCOUNT));
	if (!mrs)
		return ERR_PTR(-ENOMEM);
	mrs->nr = layout->nr;
	for (i = 0; i < mrs->nr; i++)
		fill_wrs(&mrs->each[i], cqe, access);
	ret = make_lists(mrs, mapping, layout);
	if (!ret) {
		mutex_lock(&lane->mr_mutex);
		ret = make_all(lane, mrs, layout->pool, pages);
		mutex_unlock(&lane->mr_mutex);
	}
	if (!ret)
		return mrs;
	free_all(mrs);
	return ERR_PTR(ret);
}

/**
 * kxfer_mrs_destroy() - deregister and free MRs
 * @lane: lane that they were made for, open or closed
 * @mrs: MRs; no work request that uses one is under way
 */
void kxfer_mrs_destroy(struct kxfer_lane *lane, struct kxfer_mrs *mrs)
{
	mutex_lock(&lane->mr_mutex);
	deregister_all(lane, mrs);
	lane->mrs = NULL;
	mutex_unlock(&lane->mr_mutex);
	free_all(mrs);
}

/** kxfer_mrs_close() - deregister the MRs of a closed lane's run; the QP is drained */
void kxfer_mrs_close(struct kxfer_lane *lane)
{
	mutex_lock(&lane->mr_mutex);
	if (lane->mrs)
		deregister_all(lane, lane->mrs);
	lane->mrs = NULL;
	mutex_unlock(&lane->mr_mutex);
}

/**
 * kxfer_mr_map_locked() - give an MR its addresses, and a new key for its next REG_MR
 * @mr: MR of an open lane, whose lock the caller holds
 *
 * Does not sleep. Return: 0 or -EIO.
 */
int kxfer_mr_map_locked(struct kxfer_mr *mr)
{
	if (mr->mr->need_inval)
		mr->inv.ex.invalidate_rkey = mr->mr->rkey;
	if (kxfer_fault(MRS_MAP) || kxfer_device_map_mr(mr->mr, mr->sg, mr->nr_sg, PAGE_SIZE))
		return -EIO;
	mr->reg.mr = mr->mr;
	mr->reg.key = mr->mr->rkey;
	mr->lkey = mr->mr->lkey;
	mr->iova = mr->mr->iova;
	mr->mr->need_inval = true;
	return 0;
}

/**
 * kxfer_mr_exchange_locked() - swap an MR for one of the pool, if @mrs are a pool
 * @mrs: MRs of an open lane, whose lock the caller holds
 * @mr: entry of @mrs, whose last operation is done
 *
 * Does not sleep.
 */
void kxfer_mr_exchange_locked(struct kxfer_mrs *mrs, struct kxfer_mr *mr)
{
	struct ib_qp *qp = mrs->pool;

	if (!qp)
		return;
	if (mr->mr)
		ib_mr_pool_put(qp, &qp->rdma_mrs, mr->mr);
	mr->mr = ib_mr_pool_get(qp, &qp->rdma_mrs);
}
