// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: a QP with its CQ, posting to the QP, and the end of both.
 *
 * The user of a link decides the size of its data lanes (struct kxfer_lane_size): work
 * requests that are given out as credits, slots of a channel, and others. A control QP has a
 * channel and KXFER_CONTROL_REG_WRS for fast registrations. The CQ has room for all of both
 * queues, because after an error every work request completes, also an unsignalled one.
 *
 * Life: kxfer_lane_create() -> cm_id -> kxfer_lane_open() -> connected -> kxfer_lane_drain()
 * -> kxfer_lane_stop() -> kxfer_lane_close() -> kxfer_lane_free(). Only the link's teardown
 * drains, stops and closes, each for all lanes before the next. Only the link's last reference
 * frees, because callers that wait for an answer still hold a slot of the channel when the lane
 * is closed.
 *
 * The end of a lane, as a proof:
 *  1. Drain. @open is cleared under the lock: posting fails from now on, and all that was
 *     posted before is seen by the drain.
 *  2. rdma_disconnect() tells the peer. ib_drain_qp() puts the QP into the error state and
 *     returns when its markers have completed. By then every work request before them has
 *     completed, except those that siw leaves without completion. The callbacks have run,
 *     and posted nothing, because @open is clear.
 *     Now the objects of a run end (@exclusive): its rdma_rw contexts, which need the QP
 *     (run_rw.c), and its MRs, which may be a pool of the QP (mrs.c).
 *  3. Stop. The QP goes into the state RESET: its device neither takes nor sends packets for
 *     it, and uses no memory of work requests. On iWARP the QP is destroyed instead, as is one
 *     that does not go there. The CQ gets no owner any more (kxfer_cq_stop()), or it is freed
 *     with its QPs; a CQ of the pool is given back, with a proof of its own in cq_pool.c. So no
 *     callback of the lane runs, and none will. Then the waits for completions that siw does
 *     not give are ended, and the works and handlers of the lane.
 *  4. Once all lanes of the link are stopped, its teardown lets jobs complete and frees the
 *     memory of work requests.
 *  5. Close. QP, CQ and cm_id are destroyed, if they still exist. rdma_destroy_id() waits for
 *     the event handler.
 *
 * Jobs do not wait for step 5, because it can take long. rxe_destroy_qp() waits for all
 * packets of the QP, which a card keeps while it cannot send: for example a virtual one whose
 * other end has stopped. RESET waits for none.
 *
 * rxe of Linux 6.1 completes a flushed work request in one tasklet, while another may still copy
 * its payload. The second has seen the error state once all softirqs that ran in step 2 are
 * over: so the link's teardown waits for a grace period of RCU before step 3. Later kernels run
 * both as works, for which RESET waits (rxe_disable_task()).
 *
 * Context: create, open, drain, stop, close and free may sleep; posting and completions do not.
 */
#include "base/log.h"

#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/fault.h"
#include "base/stats.h"
#include "link/cm.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/memory.h"

/**
 * kxfer_lane_create() - make a lane without QP
 * @link: link that will own the lane; has to outlive the lane
 * @index: 0: the control QP
 * @numa_node: NUMA node of the device if that is known, or NUMA_NO_NODE
 *
 * Return: the lane or NULL.
 */
struct kxfer_lane *kxfer_lane_create(struct kxfer_link *link, u32 index, int numa_node)
{
	struct mem_cgroup *old = set_active_memcg(link->memcg);
	struct kxfer_lane *lane;
	u32 i;

	lane = kxfer_try_alloc(LANE, kzalloc_node(sizeof(*lane), KXFER_GFP_FOR_PEER, numa_node));
	set_active_memcg(old);
	if (!lane)
		return NULL;
	lane->link = link;
	lane->id = link->id << 4 | index;
	lane->index = index;
	lane->quiet_since_ns = ktime_get_ns();
	INIT_LIST_HEAD(&lane->node);
	init_completion(&lane->cm_done);
	spin_lock_init(&lane->lock);
	mutex_init(&lane->mr_mutex);
	kxfer_mr_init_lane(lane);
	kxfer_iwarp_init_lane(lane);
	for (i = 0; i < KXFER_FLOW_WAITS; i++)
		INIT_LIST_HEAD(&lane->flows[i]);
	INIT_LIST_HEAD(&lane->posted);
	lane->finished_end = &lane->finished;
	INIT_WORK(&lane->accept_work, kxfer_cm_accept_work);
	kxfer_lane_hook(link->ops->init_lane, lane);
	kxfer_stat_inc(KXFER_STAT_LIVE_LANES);
	return lane;
}

/** kxfer_lane_free() - free a lane that is closed, or was never added to its link */
void kxfer_lane_free(struct kxfer_lane *lane)
{
	kxfer_channel_destroy(&lane->channel);
	kxfer_lane_hook(lane->link->ops->free_lane, lane);
	kxfer_iwarp_free_lane(lane);
	kfree(lane);
	kxfer_stat_dec(KXFER_STAT_LIVE_LANES);
}

/* May run in an interrupt; runs no more once the QP is destroyed. */
static void qp_event(struct ib_event *event, void *context)
{
	struct kxfer_lane *lane = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* If this fails the QP becomes ready one message later. */
		if (!kxfer_fault(CM_NOTIFY))
			rdma_notify(lane->cm_id, event->event);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		kxfer_link_fail(lane->link, -ECONNRESET);
		break;
	default:
		break;
	}
}

/*
 * The size that is wanted, as far as the device allows it. In addition a send queue has two
 * work requests for each slot of the channel, one for a nudge, and one for the marker of
 * ib_drain_qp().
 */
static int set_size(struct kxfer_lane *lane)
{
	u32 max_qp_wr = lane->link->dev->ibdev->attrs.max_qp_wr;
	struct kxfer_lane_size *size = &lane->size;

	if (kxfer_lane_is_control(lane)) {
		size->slots = KXFER_WIRE_CONTROL_SLOTS;
		size->sends = KXFER_CONTROL_REG_WRS;
	} else {
		lane->link->ops->size(lane, size);
	}
	size->sends += kxfer_channel_sends(size->slots) + KXFER_NUDGE_WRS + 1;
	if (size->sends + !!size->credits > max_qp_wr)
		return -EOPNOTSUPP;
	size->credits = min(size->credits, max_qp_wr - size->sends);
	kxfer_credits_init(&lane->credits, size->credits);
	return 0;
}

/* A device gives at least the inline data that was asked for, or refuses. */
static int try_qp(struct kxfer_lane *lane, struct ib_qp_init_attr *attr, u32 max_inline)
{
	attr->cap.max_inline_data = max_inline;
	return kxfer_try(LANE_QP, rdma_create_qp(lane->cm_id, lane->link->pd, attr));
}

/* Only work requests of jobs and of runs have more than one SGE, or inline data. */
static u32 send_sges(const struct kxfer_lane *lane)
{
	const struct kxfer_device *dev = lane->link->dev;

	if (!lane->size.credits)
		return 1;
	/* A READ of iWARP has one SGE, its sink. */
	return dev->iwarp ? dev->write_limits.max_sge :
	       max(dev->write_limits.max_sge, dev->read_limits.max_sge);
}

static int create_qp(struct kxfer_lane *lane, u32 send_wr, u32 recv_wr)
{
	/* The CPU copies inline data, by kernel addresses, which high memory does not have. */
	u32 max_inline = !lane->size.credits || IS_ENABLED(CONFIG_HIGHMEM) ? 0 : KXFER_LANE_INLINE;
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = lane,
		.send_cq = lane->cq.ib,
		.recv_cq = lane->cq.ib,
		.cap = {
			.max_send_wr = send_wr,
			.max_recv_wr = recv_wr,
			.max_send_sge = send_sges(lane),
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int ret;

	ret = try_qp(lane, &attr, max_inline);
	if (ret == -EINVAL && max_inline)
		ret = try_qp(lane, &attr, 0);
	if (ret)
		return ret;
	lane->qp = lane->cm_id->qp;
	if (max_inline)
		lane->max_inline = min_t(u32, attr.cap.max_inline_data, PAGE_SIZE);
	return 0;
}

/* The lanes of a link have consecutive vectors; those of the next link begin one later. */
static int comp_vector(const struct kxfer_lane *lane)
{
	return (lane->link->id + lane->index) % lane->link->dev->ibdev->num_comp_vectors;
}

static int create_cq(struct kxfer_lane *lane, u32 cqe, enum kxfer_context context)
{
	struct ib_device *ibdev = lane->link->dev->ibdev;

	if (lane->size.pooled)
		cqe += KXFER_CQ_MARKERS;
	if (cqe > ibdev->attrs.max_cqe)
		return -EOPNOTSUPP;
	if (lane->size.pooled)
		return kxfer_cq_borrow(&lane->cq, lane->link->pd, cqe, comp_vector(lane), context);
	return kxfer_cq_create(&lane->cq, ibdev, cqe, comp_vector(lane), context,
			       lane->link->ops->settle, lane->link->ops->idle);
}

static int create_cq_and_qp(struct kxfer_lane *lane, enum kxfer_context context)
{
	const struct kxfer_lane_size *size = &lane->size;
	u32 send_wr = size->sends + size->credits;
	u32 recv_wr = kxfer_channel_recvs(size->slots) + size->recvs + 1;
	/* A twin needs no RECVs, but a QP has at least one. */
	u32 cqe = send_wr + recv_wr + (size->twin ? size->credits + 1 : 0);

	return create_cq(lane, cqe, context) ?: create_qp(lane, send_wr, recv_wr);
}

static int create_channel(struct kxfer_lane *lane)
{
	bool control = kxfer_lane_is_control(lane);

	if (!lane->size.slots)
		return 0;
	return kxfer_channel_init(&lane->channel, lane, lane->size.slots, lane->size.recvs,
				  control ? KXFER_WIRE_CONTROL_BYTES : KXFER_WIRE_DATA_BYTES);
}

/**
 * kxfer_lane_open() - create CQ and QP and post the RECVs
 * @lane: with its cm_id; its link has its device and PD
 * @context: where completions are handled
 *
 * May sleep. Return: 0 or -errno. The end of the lane also undoes an open that has failed.
 */
int kxfer_lane_open(struct kxfer_lane *lane, enum kxfer_context context)
{
	struct mem_cgroup *old = set_active_memcg(lane->link->memcg);
	int ret;

	ret = set_size(lane) ?: create_cq_and_qp(lane, context) ?:
	      kxfer_lane_ask(lane->link->ops->open_lane, lane) ?: create_channel(lane);
	set_active_memcg(old);
	if (ret)
		return ret;
	spin_lock_bh(&lane->lock);
	lane->open = true;
	spin_unlock_bh(&lane->lock);
	return lane->size.slots ? kxfer_channel_post_recvs(&lane->channel) : 0;
}

/* The user may leave the lane meanwhile, and its module could then go: hold the module. */
static void tell_exclusive(struct kxfer_lane *lane)
{
	const struct kxfer_lane_user *user;

	spin_lock_bh(&lane->lock);
	user = lane->exclusive;
	if (user)
		__module_get(user->owner);
	spin_unlock_bh(&lane->lock);
	if (!user)
		return;
	kxfer_delay(LANE_EXCLUSIVE);
	user->drained(lane);
	module_put(user->owner);
}

/**
 * kxfer_lane_drain() - close a lane for posting, and have all that was posted completed
 * @lane: owned by its link (kxfer_link_add_lane()), in any state of being opened
 *
 * May sleep. The proof stands at the head of this file.
 */
void kxfer_lane_drain(struct kxfer_lane *lane)
{
	spin_lock_bh(&lane->lock);
	lane->open = false;
	kxfer_cq_recall(&lane->cq);
	spin_unlock_bh(&lane->lock);
	kxfer_lane_hook(lane->link->ops->closing, lane);
	if (!lane->qp)
		return;
	/* If this fails rdma_destroy_id() tells the peer. */
	if (!kxfer_fault(CM_DISCONNECT))
		rdma_disconnect(lane->cm_id);
	kxfer_cq_retire(&lane->cq);
	kxfer_cq_be_armed(&lane->cq);
	kxfer_delay(LANE_DRAIN);
	ib_drain_qp(lane->qp);
	kxfer_delay(LANE_DRAINED);
	tell_exclusive(lane);
}

/*
 * Have the device forget a drained QP. Not on iWARP, whose work requests are not all complete;
 * nor if completions of another QP, or of other users, come to the CQ until it is given back.
 */
static bool reset_qp(struct kxfer_lane *lane)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	if (lane->link->dev->iwarp || lane->size.twin || lane->size.pooled)
		return false;
	return !kxfer_try(LANE_RESET, ib_modify_qp(lane->qp, &attr, IB_QP_STATE));
}

static void destroy_qp(struct kxfer_lane *lane)
{
	if (lane->qp)
		rdma_destroy_qp(lane->cm_id);
	lane->qp = NULL;
}

/**
 * kxfer_lane_stop() - end all that runs on a lane
 * @lane: drained; for rxe of Linux 6.1, a grace period of RCU ago
 *
 * Afterwards no device uses memory through the lane. No callback, work or handler of it runs any
 * more: kxfer_channel_stop() waits for the last handlers. May sleep.
 */
void kxfer_lane_stop(struct kxfer_lane *lane)
{
	bool reset = lane->qp && reset_qp(lane);

	if (!reset)
		destroy_qp(lane);
	kxfer_lane_hook(lane->link->ops->drained, lane);
	kxfer_delay(LANE_CQ_END);
	if (reset)
		kxfer_cq_stop(&lane->cq);
	else
		kxfer_cq_destroy(&lane->cq);
	/* Not every version of siw has flushed a registration. */
	kxfer_mr_end_registration(lane, -ECONNRESET);
	kxfer_lane_hook(lane->link->ops->stopped, lane);
	kxfer_channel_stop(&lane->channel);
	kxfer_lane_hook(lane->link->ops->closed, lane);
	kxfer_iwarp_destroy_sinks(lane);
}

/** kxfer_lane_close() - destroy what a stopped lane still has on the device; may sleep, and long */
void kxfer_lane_close(struct kxfer_lane *lane)
{
	destroy_qp(lane);
	kxfer_cq_destroy(&lane->cq);
	if (lane->cm_id)
		rdma_destroy_id(lane->cm_id);
	lane->cm_id = NULL;
	kxfer_link_count(lane->link, -1);
}

/**
 * kxfer_lane_wc_error() - a work request failed: the link is broken
 * @lane: lane of the work request
 * @wc: only status, vendor_err, wr_cqe and qp are valid
 * @what: name of the work request, for the log
 *
 * Flush errors follow from the first error and are not logged. While the link is CONNECTING
 * they do not fail it: the event of rdma_cm has the reason, for example that nothing listens
 * at the peer. Any context but hard interrupts.
 */
void kxfer_lane_wc_error(struct kxfer_lane *lane, const struct ib_wc *wc,
			 const char *what)
{
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		kxfer_notice("link %llu lane %u: %s failed: %s (vendor 0x%x)",
			     lane->link->id, lane->index, what,
			     ib_wc_status_msg(wc->status), wc->vendor_err);
	else if (READ_ONCE(lane->link->state) == KXFER_LINK_CONNECTING)
		return;
	kxfer_link_fail(lane->link, -ECONNRESET);
}

static int post(struct kxfer_lane *lane, struct ib_qp *qp, const struct ib_send_wr *wr, u32 nr)
{
	int ret;

	lockdep_assert_held(&lane->lock);
	if (!lane->open)
		return -ECONNRESET;
	kxfer_cq_before_post(&lane->cq);
	ret = kxfer_try(LANE_POST_SEND, ib_post_send(qp, wr, NULL));
	WRITE_ONCE(lane->nr_wr, lane->nr_wr + nr);
	if (ret)
		kxfer_link_fail(lane->link, -ECONNRESET);
	return ret;
}

/** kxfer_lane_post_counted() - kxfer_lane_post_locked() of work requests that have credits */
int kxfer_lane_post_counted(struct kxfer_lane *lane, const struct ib_send_wr *wr, u32 nr)
{
	return post(lane, lane->qp, wr, nr);
}

/**
 * kxfer_lane_post_to_locked() - post work requests; called with the lane's lock held
 * @lane: if it is not open, nothing is posted
 * @qp: QP of the lane, on the lane's CQ
 * @wr: chain of work requests
 * @nr: length of @wr
 *
 * Return: 0, or an error after which the link has failed: some work requests may have been
 * posted, and only the drain knows when they are done.
 */
int kxfer_lane_post_to_locked(struct kxfer_lane *lane, struct ib_qp *qp,
			      const struct ib_send_wr *wr, u32 nr)
{
	WRITE_ONCE(lane->uncounted, true);
	return post(lane, qp, wr, nr);
}

/** kxfer_lane_post_locked() - kxfer_lane_post_to_locked() on the lane's own QP */
int kxfer_lane_post_locked(struct kxfer_lane *lane, const struct ib_send_wr *wr,
			   u32 nr)
{
	return kxfer_lane_post_to_locked(lane, lane->qp, wr, nr);
}

/** kxfer_lane_post() - kxfer_lane_post_locked() that takes the lock */
int kxfer_lane_post(struct kxfer_lane *lane, const struct ib_send_wr *wr, u32 nr)
{
	int ret;

	spin_lock_bh(&lane->lock);
	ret = kxfer_lane_post_locked(lane, wr, nr);
	spin_unlock_bh(&lane->lock);
	return ret;
}

/**
 * kxfer_lane_rests() - the run that has a lane has nothing under way
 * @lane: with @exclusive
 *
 * A run on schedule must call this again and again while it sleeps: the peer is not the
 * cause of such a pause. Does not sleep.
 */
void kxfer_lane_rests(struct kxfer_lane *lane)
{
	spin_lock_bh(&lane->lock);
	lane->quiet_since_ns = ktime_get_ns();
	spin_unlock_bh(&lane->lock);
}

/**
 * kxfer_lane_is_idle() - whether no work request is under way that could complete
 * @lane: data lane whose lock the caller holds
 *
 * Long messages that the peer has noted do not count. These wait for a RECV of the peer for as
 * long as it takes, and so do the jobs queued after them.
 */
bool kxfer_lane_is_idle(const struct kxfer_lane *lane)
{
	return lane->credits.left == lane->credits.max && !READ_ONCE(lane->iwarp.placing) &&
	       !lane->exclusive && kxfer_channel_idle_locked(&lane->channel);
}

/**
 * kxfer_lane_stuck() - whether the peer holds up what is under way on a data lane
 * @lane: of a LIVE link
 *
 * A peer may answer every keep-alive, but not a NOTIFY. Or it posts no RECV for the NOTIFY,
 * and its device answers RNR for ever, or for a while each time. So what counts is not whether
 * something completes, but how long ago the oldest message under way was posted. A lane
 * without completions for a second is nudged. Must be called with each
 * keep-alive; does not sleep.
 */
bool kxfer_lane_stuck(struct kxfer_lane *lane)
{
	u64 now = ktime_get_ns();
	bool quiet, stuck;

	spin_lock_bh(&lane->lock);
	if (kxfer_lane_is_idle(lane) || lane->nr_completions != lane->quiet_at) {
		lane->quiet_at = lane->nr_completions;
		lane->quiet_since_ns = now;
	}
	quiet = now - lane->quiet_since_ns > NSEC_PER_SEC;
	stuck = now - lane->quiet_since_ns > (u64)KXFER_STUCK_MS * NSEC_PER_MSEC ||
		(lane->size.slots &&
		 kxfer_channel_overdue_locked(&lane->channel, KXFER_NOTIFY_MS, KXFER_STUCK_MS));
	spin_unlock_bh(&lane->lock);
	if (quiet)
		kxfer_iwarp_nudge(lane);
	return stuck;
}

/**
 * kxfer_lane_overdue() - whether the peer keeps a message of a lane waiting
 * @lane: any, of a LIVE link
 *
 * Must be called with each keep-alive; does not sleep. A silent peer is not overdue.
 */
bool kxfer_lane_overdue(struct kxfer_lane *lane)
{
	/* On a data lane answers come after the READs of long messages. */
	unsigned int ms = kxfer_lane_is_control(lane) ?
			  max_t(u32, KXFER_REQUEST_MS, lane->link->patience.silence_ms) :
			  KXFER_STUCK_MS;
	bool overdue;

	spin_lock_bh(&lane->lock);
	overdue = lane->open && lane->size.slots &&
		  kxfer_channel_overdue_locked(&lane->channel, ms, ms);
	spin_unlock_bh(&lane->lock);
	return overdue;
}
