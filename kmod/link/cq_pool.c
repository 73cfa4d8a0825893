// SPDX-License-Identifier: GPL-2.0
/*
 * A lane's completions on a CQ of the RDMA core's pool (ib_cq_pool_get()), which others
 * use too, of this module or not. The core polls it, as it does one of its own making.
 *
 * The pool counts what each user may have on the CQ. So a user asks for all that it can
 * ever have there, flushed work requests and markers of a drain with them, and the CQ
 * never overruns.
 *
 * Such a CQ cannot be freed to be rid of what it holds. So beside it a lane has a QP for
 * nothing but the end, that on which its last completion comes: the marker's.
 *
 * Giving it back, as a proof that done() of no completion of the lane is called any more:
 *  1. All QPs of the lane on that CQ are destroyed, and their providers add no more:
 *     rxe has stopped their tasks, and flushed the rest itself, when ib_destroy_qp()
 *     returns (rxe_qp_do_cleanup(), in the caller's context); siw adds only for who has
 *     a reference to the QP, for which it waits (@qp_free in siw_destroy_qp()). That
 *     siw flushes work requests behind the marker of ib_drain_qp() does not matter.
 *  2. Only now the marker's QP, in the error state since it was made and with nothing
 *     else on it, is drained: its one work request completes behind all of step 1, for
 *     providers add at the end under the CQ's lock and the core takes from the front.
 *  3. The core polls a CQ in one place at a time, a work or an irq_poll, and calls
 *     done() in the order of the CQ. So when that of the marker is called, all before
 *     have returned.
 *  4. The marker's QP is destroyed, and the room given back. Before step 3 it is not
 *     free: what was not taken yet would overrun the CQ of who got it.
 * It does not matter how often and where the core polls, nor what others add meanwhile:
 * nothing of the core's is looked into. A provider that drops a QP's completions as it
 * destroys it does no harm. Completions of step 1 tell of a QP that is freed, which no
 * done() looks at. The core keeps the CQ until the device goes; that waits for the link
 * (link.c), so the pool is empty of us by then.
 *
 * Context: may sleep.
 */
#include <linux/err.h>
#include <rdma/ib_verbs.h>

#include "base/fault.h"
#include "link/cq.h"

/* No QP goes there from RESET. It sends nothing, so any port will do. */
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

	qp = kxfer_fault_ptr(CQ_POOL_MARKER) ?: ib_create_qp(pd, &init);
	if (IS_ERR(qp))
		return qp;
	/* A device that cannot is better known now than at the end. */
	ret = kxfer_fault_error(CQ_POOL_ERROR) ?: to_error(qp);
	if (!ret)
		return qp;
	ib_destroy_qp(qp);
	return ERR_PTR(ret);
}

/**
 * kxfer_cq_borrow() - have room on a CQ of the pool
 * @cq: zeroed
 * @pd: of its QPs; tells the device
 * @nr_cqe: all completions that there can be at a time, KXFER_CQ_MARKERS with them; at
 *	most the device's max_cqe, for the core would look for more for ever
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

	ib = kxfer_fault_ptr(CQ_POOL) ?:
	     ib_cq_pool_get(pd->device, nr_cqe, comp_vector, kxfer_cq_core_context(context));
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

/** kxfer_cq_give_back() - see kxfer_cq_destroy(), which calls it for what was borrowed */
void kxfer_cq_give_back(struct kxfer_cq *cq)
{
	ib_drain_sq(cq->marker);
	ib_destroy_qp(cq->marker);
	cq->marker = NULL;
	ib_cq_pool_put(cq->ib, cq->nr_cqe);
}
