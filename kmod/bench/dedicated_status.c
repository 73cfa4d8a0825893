// SPDX-License-Identifier: GPL-2.0
/*
 * The responder's status of messages on a dedicated connection. It lies just after the
 * responder's memory, and is READ from there. The status shows how many receives the
 * responder has posted again. A message is posted only if a receive for it is known to be
 * posted. So no RNR NAK is provoked, and an iWARP connection does not break.
 *
 * One READ is under way at a time. It has its own send queue entry, which on other lanes
 * belongs to a placement READ. The READ is posted after messages, so it reports at least those
 * that had arrived before; not so with UD, whose messages are on another QP.
 */
#include <linux/capability.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "bench/dedicated.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/session.h"

/* Called with the lane's lock held. Return: false if the counts are impossible */
static bool learn(struct kxfer_dedicated *dedicated)
{
	u64 received = be64_to_cpu(READ_ONCE(dedicated->status->received));
	u64 wrong = be64_to_cpu(READ_ONCE(dedicated->status->wrong));

	/* A datagram may come from another sender. */
	if (dedicated->ud.wanted)
		received = min(received, dedicated->sent);
	if (received < dedicated->received || received > dedicated->sent)
		return false;
	/* Lower @given_up first: nr_receives() must not see more receives than there are. */
	WRITE_ONCE(dedicated->ud.given_up,
		   min(dedicated->ud.given_up, dedicated->sent - received));
	smp_wmb(); /* pairs with nr_receives() */
	WRITE_ONCE(dedicated->received, received);
	dedicated->wrong = wrong;
	return true;
}

/* In the CQ's context. */
static void status_read(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_dedicated *dedicated =
		container_of(wc->wr_cqe, struct kxfer_dedicated, status_cqe);
	struct kxfer_link *link = dedicated->link;
	struct kxfer_lane *lane = kxfer_dedicated_lane(dedicated);

	kxfer_fault_wc(DEDICATED_READ, wc);
	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(lane, wc, "READ of a responder's status");
	else
		ib_dma_sync_single_for_cpu(link->dev->ibdev, dedicated->status_dma,
					   sizeof(*dedicated->status), DMA_FROM_DEVICE);
	spin_lock_bh(&lane->lock);
	/* Fail the link before @nr_read grows: its reader must see the link going down. */
	if (wc->status == IB_WC_SUCCESS && !learn(dedicated))
		kxfer_link_protocol_error(link, "a responder counts messages that were not sent");
	dedicated->reading = false;
	WRITE_ONCE(dedicated->nr_read, dedicated->nr_read + 1);
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	spin_unlock_bh(&lane->lock);
	wake_up_all(&link->wait);
}

/**
 * kxfer_dedicated_ask_locked() - post a READ of the status, unless one is under way
 * @lane: lane of a connection with messages; open, its lock is held
 *
 * Return: 0, or an error: the link has failed then.
 */
int kxfer_dedicated_ask_locked(struct kxfer_lane *lane)
{
	struct kxfer_dedicated *dedicated = lane->link->context;
	struct ib_sge sge = {
		.addr = dedicated->status_dma,
		.length = sizeof(*dedicated->status),
		.lkey = lane->link->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &dedicated->status_cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_READ,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = dedicated->remote.addr + dedicated->remote.length,
		.rkey = dedicated->remote.key,
	};
	int ret;

	if (dedicated->reading)
		return 0;
	if (dedicated->status_mr) {
		sge.addr = dedicated->status_mr->iova;
		sge.lkey = dedicated->status_mr->lkey;
	}
	ib_dma_sync_single_for_device(lane->link->dev->ibdev, dedicated->status_dma,
				      sizeof(*dedicated->status), DMA_FROM_DEVICE);
	ret = kxfer_lane_post_locked(lane, &wr.wr, 1);
	if (!ret) {
		dedicated->reading = true;
		dedicated->nr_asked++;
	}
	return ret;
}

/**
 * kxfer_dedicated_make_status() - make the sink of status READs
 * @lane: lane of a dedicated connection; connected
 *
 * On iWARP the sink is an MR, whose 16 bytes the peer may write. May sleep. Return: 0 or
 * -errno; kxfer_dedicated_drop_status() also undoes a failed call.
 */
int kxfer_dedicated_make_status(struct kxfer_lane *lane)
{
	struct kxfer_dedicated *dedicated = lane->link->context;
	u32 bytes = sizeof(*dedicated->status);
	struct ib_mr *mr;
	int ret;

	if (!kxfer_dedicated_has_messages(dedicated))
		return 0;
	dedicated->status_cqe.done = status_read;
	dedicated->status = kxfer_try_alloc(DEDICATED_STATUS, kzalloc(bytes, GFP_KERNEL));
	if (!dedicated->status)
		return -ENOMEM;
	ret = kxfer_device_map(lane->link->dev->ibdev, dedicated->status, bytes,
			       DMA_FROM_DEVICE, &dedicated->status_dma);
	if (ret || !lane->link->dev->iwarp)
		return ret;
	mr = kxfer_mr_alloc(lane, 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	dedicated->status_mr = mr;
	return kxfer_mr_register_bytes(lane, mr, dedicated->status_dma, bytes,
					 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
}

/** kxfer_dedicated_drop_status() - end the sink; the lane's QP is destroyed */
void kxfer_dedicated_drop_status(struct kxfer_lane *lane)
{
	struct kxfer_dedicated *dedicated = lane->link->context;

	kxfer_mr_dereg(lane, dedicated->status_mr);
	dedicated->status_mr = NULL;
	if (dedicated->status_dma)
		ib_dma_unmap_single(lane->link->dev->ibdev, dedicated->status_dma,
				    sizeof(*dedicated->status), DMA_FROM_DEVICE);
	dedicated->status_dma = 0;
}

/* READ the status after all that was posted, and wait. Return: 0, or the link's error. */
static int read_status(struct kxfer_dedicated *dedicated)
{
	struct kxfer_lane *lane = kxfer_dedicated_lane(dedicated);
	struct kxfer_link *link = dedicated->link;
	int ret = 0;
	u32 want;

	/* A READ under way may have been posted before the last message. */
	kxfer_lane_wait(lane, !READ_ONCE(dedicated->reading) || kxfer_link_is_dead(link));
	spin_lock_bh(&lane->lock);
	if (lane->open && kxfer_link_is_live(link))
		ret = kxfer_dedicated_ask_locked(lane);
	want = dedicated->nr_asked;
	spin_unlock_bh(&lane->lock);
	kxfer_lane_wait(lane, READ_ONCE(dedicated->nr_read) == want || kxfer_link_is_dead(link));
	return ret || !kxfer_link_is_live(link) ? kxfer_link_job_error(link) : 0;
}

static struct kxfer_dedicated *find(struct kxfer_session *session, u32 id)
{
	struct kxfer_dedicated *dedicated;

	down_read(&session->lock);
	dedicated = xa_load(&session->engine_objects, id);
	if (!dedicated)
		dedicated = ERR_PTR(-ENOENT);
	else if (!kxfer_dedicated_has_messages(dedicated))
		dedicated = ERR_PTR(-EINVAL);
	else
		atomic_inc(&dedicated->link->nr_calls);
	up_read(&session->lock);
	return dedicated;
}

/** kxfer_dedicated_status() - KXFER_DEDICATED_STATUS */
int kxfer_dedicated_status(struct kxfer_session *session, void *arg)
{
	struct kxfer_dedicated_status *cmd = arg;
	struct kxfer_dedicated *dedicated;
	int ret;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	dedicated = find(session, cmd->dedicated);
	if (IS_ERR(dedicated))
		return PTR_ERR(dedicated);
	ret = kxfer_dedicated_take(dedicated, NULL);
	if (!ret) {
		ret = read_status(dedicated);
		cmd->sent = dedicated->sent;
		cmd->received = dedicated->received;
		cmd->wrong = dedicated->wrong;
		kxfer_dedicated_give(dedicated);
	}
	atomic_dec(&dedicated->link->nr_calls);
	return ret;
}
