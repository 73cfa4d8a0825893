// SPDX-License-Identifier: GPL-2.0
/*
 * A lane's completions on a CQ of the RDMA core's pool (ib_cq_pool_get()), which has other
 * users too, of this module or not. The core polls it like a CQ of ib_alloc_cq().
 *
 * The pool counts the CQEs that each user may have on the CQ. So a user asks for all that it
 * can ever have there, including flushed work requests and markers of a drain, and the CQ
 * never overruns.
 *
 * Such a CQ cannot be freed to get rid of the completions that it holds. So a lane has one
 * more QP on it, used only at the end: the lane's last completion, the marker, comes from that
 * QP.
 *
 * Giving the CQ back, as a proof that done() of no completion of the lane is called any more:
 *  1. All QPs of the lane on that CQ are destroyed, and their providers add no more
 *     completions. rxe has stopped the tasks of a QP, and flushed the rest itself, when
 *     ib_destroy_qp() returns (rxe_qp_do_cleanup(), in the caller's context). siw adds only
 *     in contexts that hold a reference to the QP, and waits for these references (@qp_free
 *     in siw_destroy_qp()). That siw flushes work requests after the marker of ib_drain_qp()
 *     does not matter.
 *  2. Only now the marker's QP is drained. It has been in the error state since it was made,
 *     with nothing else on it. Its one work request completes after all of step 1, because
 *     providers add at the end of the CQ under its lock and the core takes from the front.
 *  3. The core polls a CQ in one place at a time, a work or an irq_poll, and calls
 *     done() in the order of the CQ. So when done() of the marker is called, all calls
 *     before it have returned.
 *  4. The marker's QP is destroyed, and the lane's CQEs are given back. Before step 3 they are
 *     not free: completions that were not taken yet, and those of the next user, would overrun
 *     the CQ.
 * It does not matter how often and where the core polls, nor what other users add meanwhile:
 * no data of the core is inspected. A provider that drops a QP's completions as it destroys
 * the QP does no harm. Completions of step 1 name a QP that is freed, which no done() looks
 * at. The core keeps the CQ until the device goes. Device removal waits for the link
 * (link.c), so the pool has no CQEs of this module by then.
 *
 * Context: may sleep.
 */
#include <linux/err.h>
#include <rdma/ib_verbs.h>

#include "base/fault.h"
#include "link/cq.h"

/* A QP cannot go from RESET to ERR, so INIT comes first. It sends nothing: any port will do. */
static int to_error(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = rdma_start_port(qp->device),
	};
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_ERR;
	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

static struct ib_qp *make_marker(struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *qp;
	int ret;

	qp = kxfer_try_ptr(CQ_POOL_MARKER, ib_create_qp(pd, &init));
	if (IS_ERR(qp))
		return qp;
	/* If the device cannot do this, fail now and not at the end. */
	ret = kxfer_try(CQ_POOL_ERROR, to_error(qp));
	if (!ret)
		return qp;
	ib_destroy_qp(qp);
	return ERR_PTR(ret);
}

/**
 * kxfer_cq_borrow() - take CQEs on a CQ of the pool
 * @cq: zeroed
 * @pd: PD of its QPs, on its device
 * @nr_cqe: all completions that there can be at a time, including KXFER_CQ_MARKERS; at
 *	most the device's max_cqe, because the core would search for more for ever
 * @comp_vector: below the device's num_comp_vectors; the pool may choose another
 * @context: where completions are handled; not polled
 *
 * May sleep. Return: 0 or -errno, with nothing to give back.
 */
int kxfer_cq_borrow(struct kxfer_cq *cq, struct ib_pd *pd, u32 nr_cqe, int comp_vector,
		    enum kxfer_context context)
{
	struct ib_cq *ib;
	struct ib_qp *qp;

	ib = kxfer_try_ptr(CQ_POOL, ib_cq_pool_get(pd->device, nr_cqe, comp_vector,
						   kxfer_cq_core_context(context)));
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	qp = make_marker(pd, ib);
	if (IS_ERR(qp)) {
		ib_cq_pool_put(ib, nr_cqe);
		return PTR_ERR(qp);
	}
	cq->ib = ib;
	cq->marker = qp;
	cq->nr_cqe = nr_cqe;
	return 0;
}

/** kxfer_cq_give_back() - undo kxfer_cq_borrow(); called by kxfer_cq_destroy() */
void kxfer_cq_give_back(struct kxfer_cq *cq)
{
	ib_drain_sq(cq->marker);
	ib_destroy_qp(cq->marker);
	cq->marker = NULL;
	ib_cq_pool_put(cq->ib, cq->nr_cqe);
}
