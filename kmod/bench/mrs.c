// SPDX-License-Identifier: GPL-2.0
/*
 * Fast-registration MRs of a measuring run (bench.c): as many as it asks for, each with
 * its piece of a region, and with the work requests that register and invalidate it.
 *
 * To register is to map, which gives the MR its addresses and a new key, and to post
 * @reg; when @inv is posted run_invalidate.c says.
 *
 * Or they are a pool of the QP (drivers/infiniband/core/mr_pool.c), and each operation
 * takes one of that, and gives back what the one before had in its place. There are as many
 * as operations in flight, so there always is one.
 *
 * Whose they are, as a proof. The array is the run's. The MRs need the link's PD, and a pool
 * the QP, which go when the lanes are closed: so who makes or deregisters them holds the
 * lane's mr_mutex, and so does who closes the lane, after its QP was drained, when no work
 * request that names one is carried out any more, and before it is destroyed. Whoever of run
 * and lane comes first deregisters them; none is made on a lane that is closed. A run
 * maps them under the lane's lock, and only while it is open.
 *
 * Context: all may sleep, but kxfer_mr_map_locked().
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
#include "node/device.h"
#include "node/region.h"

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
	mrs->sg = kxfer_fault(MRS_SG) ? NULL :
		  kvmalloc_array(total, sizeof(*mrs->sg), GFP_KERNEL_ACCOUNT);
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
	kxfer_lane_count_mrs(lane, -(int)mrs->nr);
	mrs->pool = NULL;
}

/* With mr_mutex. */
static void deregister_all(struct kxfer_lane *lane, struct kxfer_mrs *mrs)
{
	u32 i;

	if (mrs->pool)
		end_pool(lane, mrs);
	for (i = 0; i < mrs->nr && mrs->each[i].mr; i++) {
		kxfer_lane_dereg_mr(lane, mrs->each[i].mr);
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

/* With mr_mutex. Return: 0 or -errno, with nothing to deregister */
static int make_each(struct kxfer_lane *lane, struct kxfer_mrs *mrs, u32 pages)
{
	struct ib_mr *mr;
	u32 i;

	for (i = 0; i < mrs->nr; i++) {
		mr = kxfer_lane_alloc_mr(lane, pages);
		if (IS_ERR(mr)) {
			deregister_all(lane, mrs);
			return PTR_ERR(mr);
		}
		mrs->each[i].mr = mr;
	}
	return 0;
}

/* The same. */
static int make_pool(struct kxfer_lane *lane, struct kxfer_mrs *mrs, u32 pages)
{
	int ret;

	ret = kxfer_fault_error(MRS_POOL) ?:
	      ib_mr_pool_init(lane->qp, &lane->qp->rdma_mrs, mrs->nr, IB_MR_TYPE_MEM_REG,
			      pages, 0);
	if (ret)
		return ret;
	kxfer_lane_count_mrs(lane, mrs->nr);
	mrs->pool = lane->qp;
	return 0;
}

/* With mr_mutex: the lane's PD and QP stay, if the lane is open. */
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
 * kxfer_mrs_create() - make MRs
 * @lane: of the run, which has it for itself
 * @cqe: of their work requests, none of which is signalled
 * @access: IB_ACCESS_* to register with
 * @mapping: of the region
 * @layout: none longer than the device's max_fast_reg_pages less two
 *
 * One of these is for memory that begins within a page, the other stays unused: rxe of 6.1
 * looks behind the last page that is used. Return: them, none registered; or ERR_PTR.
 */
struct kxfer_mrs *kxfer_mrs_create(struct kxfer_lane *lane, struct ib_cqe *cqe, int access,
				   const struct kxfer_mapping *mapping,
				   const struct kxfer_mrs_layout *layout)
{
	u32 pages = DIV_ROUND_UP(layout->length, PAGE_SIZE) + 2;
	struct kxfer_mrs *mrs;
	int ret;
	u32 i;

	mrs = kxfer_fault(MRS) ? NULL :
	      kvzalloc(struct_size(mrs, each, layout->nr), GFP_KERNEL_ACCOUNT);
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
 * @lane: that they were made for, closed or not
 * @mrs: no work request that uses one is under way
 */
void kxfer_mrs_destroy(struct kxfer_lane *lane, struct kxfer_mrs *mrs)
{
	mutex_lock(&lane->mr_mutex);
	deregister_all(lane, mrs);
	lane->mrs = NULL;
	mutex_unlock(&lane->mr_mutex);
	free_all(mrs);
}

/** kxfer_mrs_close() - the lane is closed, and its QP drained: deregister its run's MRs */
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
 * @mr: of a lane that is open, and whose lock the caller holds
 *
 * Does not sleep. Return: 0 or -EIO.
 */
int kxfer_mr_map_locked(struct kxfer_mr *mr)
{
	if (mr->mr->need_inval)
		mr->inv.ex.invalidate_rkey = mr->mr->rkey;
	if (kxfer_fault(MRS_MAP) || kxfer_device_map_mr(mr->mr, mr->sg, mr->nr_sg))
		return -EIO;
	mr->reg.mr = mr->mr;
	mr->reg.key = mr->mr->rkey;
	mr->lkey = mr->mr->lkey;
	mr->iova = mr->mr->iova;
	mr->mr->need_inval = true;
	return 0;
}

/**
 * kxfer_mr_exchange_locked() - have another MR of the pool, if it is one
 * @mrs: of a lane that is open, and whose lock the caller holds
 * @mr: one of them, whose last operation is done
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
