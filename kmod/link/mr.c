// SPDX-License-Identifier: GPL-2.0
/*
 * MRs in the PD of a link: made, registered by work requests, deregistered.
 *
 * Each MR is counted on its link until ib_dereg_mr() has returned; the link's teardown waits
 * for zero before it frees the PD (link.c).
 *
 * Context: may sleep, unless a function says that it does not.
 */
#include "base/log.h"

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#include "base/fault.h"
#include "base/stats.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"

#define REGISTER_MS	8000	/* limit for a posted registration to complete */

/**
 * kxfer_mr_end_registration() - end the registration under way on a lane, if there is one
 * @lane: lane of the registration
 * @error: result, 0 or -errno
 */
void kxfer_mr_end_registration(struct kxfer_lane *lane, int error)
{
	spin_lock_bh(&lane->lock);
	if (lane->registration.under_way) {
		lane->registration.under_way = false;
		lane->registration.error = error;
	}
	spin_unlock_bh(&lane->lock);
	wake_up_all(&lane->link->wait);
}

static void registration_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_lane *lane = container_of(wc->wr_cqe, struct kxfer_lane, registration.cqe);
	int error = 0;

	kxfer_fault_wc(LANE_WAITED, wc);
	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "REG_MR");
		error = -ECONNRESET;
	}
	kxfer_mr_end_registration(lane, error);
}

/**
 * kxfer_mr_count() - count MRs in the PD of a lane's link, which stays until none is left
 * @lane: the caller has a reference to its link, or the link's teardown waits for the caller
 * @nr: number of MRs made; negative: deregistered
 *
 * Any context.
 */
void kxfer_mr_count(struct kxfer_lane *lane, int nr)
{
	kxfer_stat_add(KXFER_STAT_LIVE_MRS, nr);
	kxfer_link_count(lane->link, nr);
}

/**
 * kxfer_mr_alloc() - make and count an MR for fast registrations on a lane of a link
 * @lane: with its link's PD
 * @pages: number of pages of the longest registration
 *
 * May sleep. Return: the MR or ERR_PTR.
 */
struct ib_mr *kxfer_mr_alloc(struct kxfer_lane *lane, u32 pages)
{
	struct ib_mr *mr;

	mr = kxfer_try_ptr(LANE_MR, ib_alloc_mr(lane->link->pd, IB_MR_TYPE_MEM_REG, pages));
	if (!IS_ERR(mr))
		kxfer_mr_count(lane, 1);
	return mr;
}

/**
 * kxfer_mr_dereg() - deregister an MR of kxfer_mr_alloc(), for good
 * @lane: lane that the MR was made for, or another lane of the link
 * @mr: MR that no posted or future work request names; or NULL
 *
 * May sleep, so no spinlock may be held; takes none. Afterwards the MR gives no access to
 * memory: ib_dereg_mr() waits for a responder that is just using it.
 */
void kxfer_mr_dereg(struct kxfer_lane *lane, struct ib_mr *mr)
{
	if (!mr)
		return;
	kxfer_delay(LANE_DEREG);
	ib_dereg_mr(mr);
	kxfer_mr_count(lane, -1);
}

/*
 * On the link of an initiator a registration need not complete after the link has failed: all
 * MRs there stay until the teardown. On a passive link the MR may be deregistered as soon as
 * the caller knows the result.
 */
static bool registration_ended(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;

	return !READ_ONCE(lane->registration.under_way) ||
	       (link->initiator && READ_ONCE(link->state) >= KXFER_LINK_CLOSING);
}

/**
 * kxfer_mr_register() - carry out a fast registration and wait for it
 * @lane: the control QP, or a data lane on which the caller has a credit
 * @mr: mapped; ends with the link at the latest, and is not used if the link has failed
 * @key: updated key of @mr
 * @access: IB_ACCESS_*
 *
 * One caller at a time: connect_thread of an initiator, the holder of register_mutex of a
 * passive link, or the user that has all credits. Sleeps until the work request completes or
 * the lane is stopped: siw of 6.1 to 7.2 does not flush what was posted to a QP that the peer
 * is closing (siw_qp_nextstate_from_close()). The teardown of an initiator's link waits for
 * connect_thread before it closes lanes, so there the failure of the link ends the wait.
 *
 * The device carries out a registration after the messages that were posted before, which
 * wait if the peer posts no RECV: after REGISTER_MS the link is given up.
 * Return: 0 or -ECONNRESET.
 */
int kxfer_mr_register(struct kxfer_lane *lane, struct ib_mr *mr, u32 key, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &lane->registration.cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = key,
		.access = access,
	};
	int ret;

	spin_lock_bh(&lane->lock);
	ret = kxfer_lane_post_locked(lane, &wr.wr, 1);
	if (!ret) {
		WARN_ON_ONCE(lane->registration.under_way);
		lane->registration.under_way = true;
	}
	spin_unlock_bh(&lane->lock);
	if (ret)
		return -ECONNRESET;
	kxfer_delay(LANE_REGISTER);
	if (!kxfer_lane_wait_ms(lane, registration_ended(lane), REGISTER_MS)) {
		kxfer_notice("link %llu: a registration waits behind messages that the peer does not take, giving it up",
			     lane->link->id);
		kxfer_link_fail(lane->link, -ETIMEDOUT);
		/* The drain, or kxfer_lane_stop(), ends the registration. */
		kxfer_lane_wait(lane, registration_ended(lane));
	}
	spin_lock_bh(&lane->lock);
	ret = lane->registration.under_way ? -ECONNRESET : lane->registration.error;
	spin_unlock_bh(&lane->lock);
	return ret;
}

/**
 * kxfer_mr_register_bytes() - register one short piece of memory
 * @control: QP to post on
 * @mr: not registered yet
 * @dma: DMA address of the memory, which must not cross a page
 * @bytes: length of the memory
 * @access: IB_ACCESS_*
 *
 * Sleeps. Return: 0 or -errno.
 */
int kxfer_mr_register_bytes(struct kxfer_lane *control, struct ib_mr *mr, u64 dma, u32 bytes,
			    int access)
{
	struct scatterlist sg;

	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = dma;
	sg_dma_len(&sg) = bytes;
	if (kxfer_fault(LANE_MAP) || kxfer_device_map_mr(mr, &sg, 1, PAGE_SIZE))
		return -EIO;
	return kxfer_mr_register(control, mr, mr->rkey, access);
}

/** kxfer_mr_init_lane() - prepare a new lane for registrations */
void kxfer_mr_init_lane(struct kxfer_lane *lane)
{
	lane->registration.cqe.done = registration_done;
}
