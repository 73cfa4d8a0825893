// SPDX-License-Identifier: GPL-2.0
/*
 * iWARP: what its lanes need that those of InfiniBand and RoCE do not.
 *
 *  - READ sinks. A READ needs a remotely writable STag for its sink. A sink is registered
 *    for one READ, and its STag is invalidated when the READ is done (job/chain.c).
 *  - Placement READs. A WRITE completes when TCP has its bytes, and a message on the control
 *    QP may overtake it. The response to a READ comes after the WRITEs before that READ
 *    (RFC 5040, 5.5): a READ of eight bytes proves that these WRITEs are placed. The passive
 *    side has the bytes for it on every link, and names them in its answer to HELLO.
 *  - Nudges, for a defect of siw.
 *
 * Context: may sleep, unless a function says that it does not.
 */
#include "base/log.h"

#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/plan.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"

#define PLACEMENT_MS	10000	/* limit for a posted placement READ to complete */

static void nudged(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_lane *lane = container_of(wc->wr_cqe, struct kxfer_lane, iwarp.nudge_cqe);

	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(lane, wc, "empty WRITE");
	WRITE_ONCE(lane->iwarp.nudging, false);
}

/**
 * kxfer_iwarp_nudge() - make the peer's device look at what has arrived
 * @lane: connected, or going down
 *
 * siw_accept() of 6.1 to 7.2 answers the initiator before it attends to the socket
 * (siw_send_mpareqrep(), then siw_qp_socket_assoc()). Data that arrives in between, on
 * another CPU, stays unread until more arrives: about one HELLO in a hundred. So after a long
 * wait the initiator sends a WRITE of no bytes, which needs no STag and has no effect at the
 * peer (RFC 6581 uses it to that end). On iWARP only, one at a time. Does not sleep.
 */
void kxfer_iwarp_nudge(struct kxfer_lane *lane)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &lane->iwarp.nudge_cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	if (!lane->link->initiator || !lane->link->dev->iwarp)
		return;
	spin_lock_bh(&lane->lock);
	if (lane->open && !READ_ONCE(lane->iwarp.nudging)) {
		WRITE_ONCE(lane->iwarp.nudging, true);
		kxfer_lane_post_locked(lane, &wr.wr, 1);
	}
	spin_unlock_bh(&lane->lock);
}

static void placed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_lane *lane = container_of(wc->wr_cqe, struct kxfer_lane, iwarp.placement_cqe);

	kxfer_fault_wc(LANE_WAITED, wc);
	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(lane, wc, "placement READ");
	WRITE_ONCE(lane->iwarp.placing, false);
	wake_up_all(&lane->link->wait);
}

static void post_placement(struct kxfer_lane *lane)
{
	struct ib_sge sge = { .length = KXFER_PLACEMENT_BYTES };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &lane->iwarp.placement_cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_READ,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = lane->link->placement_addr,
		.rkey = lane->link->placement_key,
	};

	spin_lock_bh(&lane->lock);
	if (lane->open && kxfer_link_is_live(lane->link)) {
		sge.addr = lane->iwarp.sink.mr->iova;
		sge.lkey = lane->iwarp.sink.mr->lkey;
		WRITE_ONCE(lane->iwarp.placing, true);
		if (kxfer_lane_post_locked(lane, &wr.wr, 1))
			WRITE_ONCE(lane->iwarp.placing, false);
	}
	spin_unlock_bh(&lane->lock);
}

/**
 * kxfer_iwarp_wait_placed() - wait until the WRITEs that were posted are placed
 * @lane: an initiator's data lane of iWARP
 *
 * By a placement READ. May sleep, one caller at a time, until the READ completes or the link
 * goes down: the teardown waits for handlers in this function before it drains this QP. The
 * READ is then still posted; the lane outlives its completion. If the peer holds up the READ
 * for PLACEMENT_MS the link is given up.
 */
void kxfer_iwarp_wait_placed(struct kxfer_lane *lane)
{
	mutex_lock(&lane->iwarp.mutex);
	post_placement(lane);
	if (!wait_event_timeout(lane->link->wait, !READ_ONCE(lane->iwarp.placing) ||
				!kxfer_link_is_live(lane->link),
				msecs_to_jiffies(PLACEMENT_MS))) {
		kxfer_notice("link %llu: the peer holds up a placement READ, giving it up",
			     lane->link->id);
		kxfer_link_fail(lane->link, -ETIMEDOUT);
	}
	mutex_unlock(&lane->iwarp.mutex);
}

/* Make an end of placement READs. @access: IB_ACCESS_* of its MR */
static int make_end(struct kxfer_link *link, struct kxfer_placement *end,
		    enum dma_data_direction direction, int access)
{
	struct ib_mr *mr;
	int ret;

	end->memory = kzalloc(KXFER_PLACEMENT_BYTES, GFP_KERNEL);
	if (!end->memory)
		return -ENOMEM;
	ret = kxfer_device_map(link->dev->ibdev, end->memory, KXFER_PLACEMENT_BYTES, direction,
			       &end->dma);
	if (ret)
		return ret;
	mr = kxfer_mr_alloc(link->control, 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	end->mr = mr;
	return kxfer_mr_register_bytes(link->control, mr, end->dma, KXFER_PLACEMENT_BYTES, access);
}

/* Undo make_end(), whether or not it has succeeded or was called. */
static void free_end(struct kxfer_link *link, struct kxfer_placement *end,
		     enum dma_data_direction direction)
{
	kxfer_mr_dereg(link->control, end->mr);
	end->mr = NULL;
	if (end->dma)
		ib_dma_unmap_single(link->dev->ibdev, end->dma, KXFER_PLACEMENT_BYTES,
				    direction);
	end->dma = 0;
	kfree(end->memory);
	end->memory = NULL;
}

/** kxfer_iwarp_make_source() - make what placement READs of a passive link's peer READ */
int kxfer_iwarp_make_source(struct kxfer_link *link)
{
	return kxfer_try(CONTROL_PLACEMENT,
			 make_end(link, &link->placement, DMA_TO_DEVICE, IB_ACCESS_REMOTE_READ));
}

/** kxfer_iwarp_free_source() - undo kxfer_iwarp_make_source(); the link's lanes are stopped */
void kxfer_iwarp_free_source(struct kxfer_link *link)
{
	free_end(link, &link->placement, DMA_TO_DEVICE);
}

/**
 * kxfer_iwarp_make_sinks() - make the sinks that an initiator's data lane needs on iWARP
 * @lane: connected, as is the control QP of its link
 *
 * These are READ sinks, because a READ of iWARP needs a remotely writable STag, registered
 * for each READ; and the sink of placement READs, whose eight bytes are the only standing
 * registration that a peer could write. May sleep. Return: 0 or -errno.
 */
int kxfer_iwarp_make_sinks(struct kxfer_lane *lane)
{
	size_t sinks_bytes = array_size(KXFER_IWARP_SINKS, sizeof(struct kxfer_sink));
	struct kxfer_device *dev = lane->link->dev;
	struct ib_mr *mr;
	u32 i;

	if (!dev->iwarp)
		return 0;
	lane->iwarp.sink_array = kxfer_try_alloc(LANE_SINKS,
						 kxfer_link_kvzalloc(lane->link, sinks_bytes));
	if (!lane->iwarp.sink_array)
		return -ENOMEM;
	for (i = 0; i < KXFER_IWARP_SINKS; i++) {
		mr = kxfer_mr_alloc(lane, kxfer_device_sink_pages(dev));
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		lane->iwarp.sink_array[i].mr = mr;
		list_add_tail(&lane->iwarp.sink_array[i].node, &lane->iwarp.sinks);
	}
	if (!lane->link->placement_key)
		return -EPROTO;
	return kxfer_try(LANE_PLACEMENT, make_end(lane->link, &lane->iwarp.sink, DMA_FROM_DEVICE,
						  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE));
}

/** kxfer_iwarp_destroy_sinks() - undo kxfer_iwarp_make_sinks(); the lane's QP is destroyed */
void kxfer_iwarp_destroy_sinks(struct kxfer_lane *lane)
{
	u32 i;

	for (i = 0; lane->iwarp.sink_array && i < KXFER_IWARP_SINKS; i++)
		kxfer_mr_dereg(lane, lane->iwarp.sink_array[i].mr);
	INIT_LIST_HEAD(&lane->iwarp.sinks);
	free_end(lane->link, &lane->iwarp.sink, DMA_FROM_DEVICE);
}

/**
 * kxfer_iwarp_map_sink() - map the pieces of a READ into its sink, and build its REG_MR
 * @sink: sink that is not in use
 * @sg: memory for @desc->nr_sge entries
 * @desc: the READ, with DMA addresses
 *
 * Does not sleep. Return: 0 or -EINVAL.
 */
int kxfer_iwarp_map_sink(struct kxfer_sink *sink, struct scatterlist *sg,
			 const struct kxfer_wr_desc *desc)
{
	u32 i;

	sg_init_table(sg, desc->nr_sge);
	for (i = 0; i < desc->nr_sge; i++) {
		sg_dma_address(&sg[i]) = desc->sge[i].addr;
		sg_dma_len(&sg[i]) = desc->sge[i].length;
	}
	if (kxfer_fault(CHAIN_MAP_SINK) ||
	    kxfer_device_map_mr(sink->mr, sg, desc->nr_sge, PAGE_SIZE))
		return -EINVAL;
	sink->reg = (struct ib_reg_wr) {
		.wr = { .opcode = IB_WR_REG_MR },
		.mr = sink->mr,
		.key = sink->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	return 0;
}

/**
 * kxfer_iwarp_placement() - describe a placement READ
 * @lane: lane with a placement sink
 * @desc: out: the READ
 *
 * Does not sleep. Return: the lkey of its SGE.
 */
u32 kxfer_iwarp_placement(const struct kxfer_lane *lane, struct kxfer_wr_desc *desc)
{
	desc->remote_addr = lane->link->placement_addr;
	desc->rkey = lane->link->placement_key;
	desc->nr_sge = 1;
	desc->sge[0].addr = lane->iwarp.sink.mr->iova;
	desc->sge[0].length = KXFER_PLACEMENT_BYTES;
	return lane->iwarp.sink.mr->lkey;
}

/** kxfer_iwarp_init_lane() - prepare a new lane, of any device; does not sleep */
void kxfer_iwarp_init_lane(struct kxfer_lane *lane)
{
	mutex_init(&lane->iwarp.mutex);
	INIT_LIST_HEAD(&lane->iwarp.sinks);
	lane->iwarp.placement_cqe.done = placed;
	lane->iwarp.nudge_cqe.done = nudged;
}

/** kxfer_iwarp_free_lane() - free what is left of a lane that is being freed */
void kxfer_iwarp_free_lane(struct kxfer_lane *lane)
{
	kvfree(lane->iwarp.sink_array);
}
