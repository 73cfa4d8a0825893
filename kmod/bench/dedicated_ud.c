// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of a dedicated connection by unreliable datagrams. They use a UD QP next to the QP
 * of the connection, with the same CQ and PD, an address handle, and the responder's QP
 * number and Q_Key.
 *
 * The handle's attributes, QP number and Q_Key come from rdma_cm. A request on RDMA_PS_UDP
 * names the connection by its rkey, and the reply names the UD QP that the responder has made
 * for it (responder.h). This connects nothing: the responder's QP lives as long as its end of
 * the connection. At the responder a GRH of 40 bytes precedes each message; here no message
 * arrives.
 *
 * A lost message is not reported, for example one with a wrong Q_Key: the responder's
 * receive for it stays posted. So when a run waits for receives and no new one is reported
 * for GRACE_NS, the missing messages are taken for lost.
 *
 * The end, as a proof. It is part of step 3 of the lane's proof (lane.c): the lane's QP is
 * destroyed, its CQ is not freed yet.
 *  1. @open of the lane is clear, and posting is under its lock: nothing is posted any more.
 *  2. The UD QP goes into the error state and is destroyed: none of its work requests refers
 *     to memory or to the address handle any more. ib_drain_qp() does not work for UD, because
 *     its marker is a WRITE. It is not needed either: a run that has posted waits until the
 *     link is DEAD, and completions may arrive until the CQ is freed, which comes later.
 *  3. The address handle is destroyed: only work requests of that QP used it.
 *  4. rdma_destroy_id() waits for the handler, so nothing writes @ah_attr any more. Its
 *     reference to the GID is dropped.
 * Before step 1 connect_thread has ended, which makes all of these objects (link.c). It waits
 * a limited time for each step, and wakes early when the link is CLOSING. Device removal,
 * which the handler only reports to the link, and DEDICATED_CLOSE make the link CLOSING.
 *
 * Context: may sleep, except ud_event(), kxfer_dedicated_fill_ud() and *_locked().
 */
#include <linux/ktime.h>
#include <net/net_namespace.h>

#include "base/fault.h"
#include "bench/dedicated.h"
#include "link/cm.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"

#define RESOLVE_MS	3000	/* for the address, and again for the route */
#define LOOKUP_MS	10000	/* rdma_cm would try for a minute */
#define GRACE_NS	(200 * NSEC_PER_MSEC)

/* ---- rdma_cm ---- */

static void step_done(struct kxfer_lane *lane, int error)
{
	struct kxfer_dedicated_ud *ud = &kxfer_dedicated_of(lane->link)->ud;

	ud->error = error;
	complete(&ud->done);
	wake_up_all(&lane->link->wait);
}

/* The copy of the address attributes has its own reference to the GID. */
static int established(struct kxfer_dedicated_ud *ud, const struct rdma_ud_param *param)
{
	int error = kxfer_fault_error(UD_ESTABLISHED);

	if (error || ud->told)
		return error;
	rdma_copy_ah_attr(&ud->ah_attr, &param->ah_attr);
	ud->qpn = param->qp_num;
	if (!ud->has_qkey)
		ud->qkey = param->qkey;
	ud->told = true;
	return 0;
}

/* The look-up got a refusal, or no reply. Return: -errno */
static int not_found(struct kxfer_dedicated *dedicated, const struct rdma_cm_event *event)
{
	if (event->status < 0)
		return event->status;
	return kxfer_dedicated_refused(dedicated, event->param.ud.private_data,
				       event->param.ud.private_data_len);
}

static int ud_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kxfer_lane *lane = id->context;
	struct kxfer_dedicated *dedicated = lane->link->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		step_done(lane, 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		step_done(lane, established(&dedicated->ud, &event->param.ud));
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		step_done(lane, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		step_done(lane, not_found(dedicated, event));
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		kxfer_link_fail(lane->link, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kxfer_link_fail(lane->link, -ENODEV);
		break;
	default:
		break;
	}
	return 0;
}

static bool step_over(const struct kxfer_link *link)
{
	return completion_done(&kxfer_dedicated_of(link)->ud.done) ||
	       READ_ONCE(link->state) >= KXFER_LINK_CLOSING;
}

/* Wait for the event of one step, whose request returned @started. */
static int wait_step(struct kxfer_link *link, int started, unsigned int timeout_ms)
{
	struct kxfer_dedicated_ud *ud = &kxfer_dedicated_of(link)->ud;

	if (started)
		return started;
	if (!wait_event_timeout(link->wait, step_over(link), msecs_to_jiffies(timeout_ms)))
		return -ETIMEDOUT;
	if (!try_wait_for_completion(&ud->done))
		return READ_ONCE(link->error) ?: -ECONNRESET;
	return ud->error;
}

/* Resolve from the local address of the connection. */
static int resolve(struct kxfer_link *link, struct rdma_cm_id *id)
{
	struct kxfer_addr from = link->local;
	struct sockaddr_storage local, remote;
	int ret;

	from.port = 0;
	kxfer_cm_bind_scope(id, &from, link->remote.scope_id);
	kxfer_addr_to_sockaddr(&from, &local);
	kxfer_addr_to_sockaddr(&link->remote, &remote);
	ret = kxfer_try(UD_BIND, rdma_bind_addr(id, (struct sockaddr *)&local));
	if (ret)
		return ret;
	ret = kxfer_try(UD_RESOLVE_ADDR,
			rdma_resolve_addr(id, NULL, (struct sockaddr *)&remote, RESOLVE_MS));
	ret = wait_step(link, ret, RESOLVE_MS + 1000);
	if (ret)
		return ret;
	if (id->device != link->dev->ibdev)
		return -EHOSTUNREACH;
	ret = kxfer_try(UD_RESOLVE_ROUTE, rdma_resolve_route(id, RESOLVE_MS));
	return wait_step(link, ret, RESOLVE_MS + 1000);
}

/* A message must fit in one packet. */
static int check_mtu(struct kxfer_dedicated *dedicated)
{
	struct kxfer_dedicated_ud *ud = &dedicated->ud;
	int mtu = ib_mtu_enum_to_int(ud->id->route.path_rec->mtu);

	if (mtu < 0)
		return -EHOSTUNREACH;
	WRITE_ONCE(ud->mtu, mtu);
	return dedicated->bytes > mtu ? -EMSGSIZE : 0;
}

static int look_up(struct kxfer_dedicated *dedicated)
{
	struct kxfer_responder_lookup lookup = {
		.magic = cpu_to_be32(KXFER_RESPONDER_MAGIC),
		.version = cpu_to_be16(KXFER_RESPONDER_VERSION),
		.rkey = cpu_to_be32(dedicated->remote.key),
	};
	struct rdma_conn_param param = {
		.private_data = &lookup,
		.private_data_len = sizeof(lookup),
	};
	int ret;

	ret = kxfer_try(UD_CONNECT, rdma_connect(dedicated->ud.id, &param));
	return wait_step(dedicated->link, ret, LOOKUP_MS);
}

/* ---- QP and address handle ---- */

/* May run in an interrupt; not called any more once the QP is destroyed. */
static void qp_event(struct ib_event *event, void *context)
{
	struct kxfer_lane *lane = context;

	if (event->event == IB_EVENT_QP_FATAL)
		kxfer_link_fail(lane->link, -ECONNRESET);
}

/* Its send queue has as many work requests as the lane has credits. */
static int create_qp(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;
	struct kxfer_dedicated_ud *ud = &kxfer_dedicated_of(link)->ud;
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = lane,
		.send_cq = lane->cq.ib,
		.recv_cq = lane->cq.ib,
		.cap = {
			.max_send_wr = lane->credits.max,
			.max_recv_wr = 1,
			.max_send_sge = link->dev->write_limits.max_sge,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_UD,
	};
	int ret;

	ret = kxfer_try(UD_QP, rdma_create_qp(ud->id, link->pd, &attr));
	if (!ret)
		ud->qp = ud->id->qp;
	return ret;
}

static int create_ah(struct kxfer_link *link)
{
	struct kxfer_dedicated_ud *ud = &kxfer_dedicated_of(link)->ud;
	struct ib_ah *ah;

	ah = kxfer_try_ptr(UD_AH,
			   rdma_create_ah(link->pd, &ud->ah_attr, RDMA_CREATE_AH_SLEEPABLE));
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	ud->ah = ah;
	return 0;
}

/**
 * kxfer_dedicated_check_ud() - can the device do UD, if that is wanted?
 * @dedicated: connection that is connecting
 * @ibdev: device of the connection
 *
 * iWARP has neither UD QPs nor address handles. Return: 0 or -EOPNOTSUPP.
 */
int kxfer_dedicated_check_ud(const struct kxfer_dedicated *dedicated,
			     const struct ib_device *ibdev)
{
	if (!dedicated->ud.wanted)
		return 0;
	return rdma_cap_ib_cm(ibdev, rdma_start_port(ibdev)) && ibdev->attrs.max_ah ?
	       0 : -EOPNOTSUPP;
}

/**
 * kxfer_dedicated_make_ud() - make the UD QP, and look up the responder's
 * @lane: lane of a dedicated connection; connected
 *
 * Called by connect_thread; sleeps. Return: 0 or -errno; kxfer_dedicated_drop_ud() also
 * undoes a failed call.
 */
int kxfer_dedicated_make_ud(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;
	struct kxfer_dedicated *dedicated = link->context;
	struct rdma_cm_id *id;

	if (!dedicated->ud.wanted)
		return 0;
	id = kxfer_try_ptr(UD_ID,
			   rdma_create_id(link->net, ud_event, lane, RDMA_PS_UDP, IB_QPT_UD));
	if (IS_ERR(id))
		return PTR_ERR(id);
	dedicated->ud.id = id;
	return resolve(link, id) ?: check_mtu(dedicated) ?: create_qp(lane) ?:
	       look_up(dedicated) ?: create_ah(link);
}

/** kxfer_dedicated_drop_ud() - end UD; the lane is closed, but has its CQ; may sleep */
void kxfer_dedicated_drop_ud(struct kxfer_lane *lane)
{
	struct kxfer_dedicated_ud *ud = &kxfer_dedicated_of(lane->link)->ud;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (ud->qp) {
		/* If this fails, destroying the QP stops the device. */
		ib_modify_qp(ud->qp, &attr, IB_QP_STATE);
		rdma_destroy_qp(ud->id);
	}
	ud->qp = NULL;
	if (ud->ah)
		rdma_destroy_ah(ud->ah, RDMA_DESTROY_AH_SLEEPABLE);
	ud->ah = NULL;
	if (ud->id)
		rdma_destroy_id(ud->id);
	ud->id = NULL;
	if (ud->told)
		rdma_destroy_ah_attr(&ud->ah_attr);
	ud->told = false;
}

/* ---- runs ---- */

/** kxfer_dedicated_fill_ud() - set the destination in a message's work request */
void kxfer_dedicated_fill_ud(const struct kxfer_dedicated *dedicated, struct ib_ud_wr *wr)
{
	wr->ah = dedicated->ud.ah;
	wr->remote_qpn = dedicated->ud.qpn;
	wr->remote_qkey = dedicated->ud.qkey;
}

/**
 * kxfer_dedicated_give_up_locked() - give up missing messages after GRACE_NS
 * @dedicated: connection with UD; its lane's lock is held
 *
 * Must be called repeatedly while a run lacks receives. Messages given up may still arrive.
 */
void kxfer_dedicated_give_up_locked(struct kxfer_dedicated *dedicated)
{
	struct kxfer_dedicated_ud *ud = &dedicated->ud;
	u64 now_ns = ktime_get_ns();

	if (!ud->starved_ns || ud->starved_at != dedicated->received) {
		ud->starved_ns = now_ns;
		ud->starved_at = dedicated->received;
	} else if (now_ns - ud->starved_ns > GRACE_NS) {
		WRITE_ONCE(ud->given_up, dedicated->sent - dedicated->received);
		ud->starved_ns = 0;
	}
}
