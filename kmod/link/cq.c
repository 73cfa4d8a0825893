// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of a lane: who polls its CQ.
 *
 * A CQ of the contexts workqueue, softirq and unbound is the RDMA core's
 * (ib_alloc_cq(), or of its pool: cq_pool.c): it calls each completion's done()
 * there. A CQ of the context polled has a handler of ours and, at any time, at most
 * one owner who polls it and calls done() for all that it finds, whosever it is:
 *
 *  - a session that waits for completions (kxfer_cq_own()) finds them where it waits,
 *    without interrupt, work and wake-up;
 *  - when no session does, a work that the handler queues.
 *
 * No completion is forgotten. The provider calls the handler once for each
 * ib_req_notify_cq(). An owner that has found the CQ empty (@empty) asks for that before
 * it goes, and for word of what came in between (IB_CQ_REPORT_MISSED_EVENTS). One that has
 * not, because it has what it waited for or its time is over, asks for nothing and queues
 * the work: not every provider reports what is in a CQ that it arms (qedr, ocrdma, mlx4 and
 * mthca never do), so the RDMA core arms an empty one only, too. A completion that comes
 *  1. before the last look is found by the owner, or by the work that it queues;
 *  2. between that look and the arming is reported, or is for a provider that does not
 *     report an event at once;
 *  3. after the arming calls the handler, which under @lock finds the owner still there and
 *     leaves word (@event, clear since before the arming), upon which the owner queues the
 *     work; or finds none, and queues it.
 * A work that finds an owner has nothing to do: who became owner after the work was
 * queued polls after that.
 *
 * No completion waits for a session that does not get the CPU: it polls with
 * preemption disabled, for a bounded time, and goes when the CPU is wanted.
 *
 * One of the context direct is the core's, too (IB_POLL_DIRECT), and is owned as a polled
 * one is, but nothing tells of what comes there and nobody looks when no owner does: who
 * waits for something of such a lane has to look (kxfer_lane_wait(), run.c). The core
 * looks by itself to drain a QP, so nobody else may from then on: kxfer_cq_retire().
 *
 * Destroying it, as a proof: kxfer_cq_destroy() becomes its owner and stays it. So
 * nobody polls it, and the handler, even one that comes late, queues nothing; what
 * was queued before is waited for and finds an owner.
 *
 * Context: creating and destroying may sleep. done() is called in a softirq, a
 * kworker or a system call, with no lock held, and must not sleep.
 */
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "base/compat.h"
#include "base/fault.h"
#include "link/cq.h"

/* Completions, after which others have their turn: on the CPU, and to be waited for. */
#define WORK_BUDGET	4096
#define POLL_BUDGET	256

static struct workqueue_struct *comp_wq;

/** kxfer_cq_init() - make the workqueue; its kind is that of the core's ib_comp_wq */
int kxfer_cq_init(void)
{
	comp_wq = kxfer_fault(CQ_WORKQUEUE) ? NULL :
		  alloc_workqueue("kxfer_comp",
				  WQ_HIGHPRI | WQ_MEM_RECLAIM | KXFER_WQ_PERCPU, 0);
	return comp_wq ? 0 : -ENOMEM;
}

/** kxfer_cq_exit() - no CQ is left */
void kxfer_cq_exit(void)
{
	destroy_workqueue(comp_wq);
}

/* Any context. From 6.12 on rxe calls it with its lock over the CQ held. */
static void completion_handler(struct ib_cq *ib, void *context)
{
	struct kxfer_cq *cq = context;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->owned)
		WRITE_ONCE(cq->event, true);
	else
		queue_work(comp_wq, &cq->work);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* Become the owner. Return: false if there is one. */
static bool enter(struct kxfer_cq *cq)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&cq->lock, flags);
	ok = !cq->owned;
	cq->owned = true;
	if (ok)
		cq->empty = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	return ok;
}

/* Be the owner no more. */
static void leave(struct kxfer_cq *cq)
{
	unsigned long flags;
	bool more = false;

	if (cq->polled) {
		/* What it told of is polled, or will be by the work. */
		WRITE_ONCE(cq->event, false);
		more = !cq->empty || ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP |
						      IB_CQ_REPORT_MISSED_EVENTS) > 0;
	}
	spin_lock_irqsave(&cq->lock, flags);
	if (cq->closing) {
		complete(&cq->handed_over);
	} else {
		cq->owned = false;
		if (more || cq->event)
			queue_work(comp_wq, &cq->work);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* Of the owner. Return: completions handled; fewer than KXFER_CQ_BATCH: there are no more. */
static u32 handle_some(struct kxfer_cq *cq)
{
	int nr, i;

	if (cq->direct) {
		nr = ib_process_cq_direct(cq->ib, KXFER_CQ_BATCH);
		cq->now_ns = ktime_get_ns();
		return nr;
	}
	nr = ib_poll_cq(cq->ib, KXFER_CQ_BATCH, cq->wc);
	cq->empty = nr < KXFER_CQ_BATCH;
	if (nr <= 0)
		return 0;
	cq->now_ns = ktime_get_ns();
	for (i = 0; i < nr; i++)
		cq->wc[i].wr_cqe->done(cq->ib, &cq->wc[i]);
	if (cq->settle)
		cq->settle(cq);
	return nr;
}

static void poll_work(struct work_struct *work)
{
	struct kxfer_cq *cq = container_of(work, struct kxfer_cq, work);
	u32 total = 0, nr;

	kxfer_delay(CQ_WORK);
	if (!enter(cq))
		return;
	do {
		nr = handle_some(cq);
		total += nr;
	} while (nr == KXFER_CQ_BATCH && total < WORK_BUDGET);
	leave(cq);
}

/**
 * kxfer_cq_own() - become the owner for a while, to find completions oneself
 * @cq: of any context
 *
 * Before posting, best: then no handler has work queued for what completes at once.
 * Disables preemption until kxfer_cq_disown(). Return: false, with nothing to undo,
 * if it is neither polled nor direct, or somebody else polls it.
 */
bool kxfer_cq_own(struct kxfer_cq *cq)
{
	if ((!cq->polled && !cq->direct) || IS_ENABLED(CONFIG_PREEMPT_RT))
		return false;
	preempt_disable();
	if (enter(cq))
		return true;
	preempt_enable();
	return false;
}

/** kxfer_cq_disown() - after kxfer_cq_own() */
void kxfer_cq_disown(struct kxfer_cq *cq)
{
	/* Often the last look was a full one and took all: another is less than the work. */
	if (cq->polled && !cq->empty && !need_resched())
		handle_some(cq);
	leave(cq);
	preempt_enable();
}

/**
 * kxfer_cq_poll() - handle completions where the caller waits for some
 * @cq: of the caller (kxfer_cq_own())
 * @done: grows with the completions that the caller waits for
 * @want: how far
 * @until_ns: ktime_get_ns() until when to spin; 0: take what is there
 *
 * Goes when *@done is @want, at @until_ns, after POLL_BUDGET completions, or when the
 * CPU is wanted. Does not sleep.
 */
void kxfer_cq_poll(struct kxfer_cq *cq, const u32 *done, u32 want, u64 until_ns)
{
	u32 total = 0, nr;

	for (;;) {
		nr = handle_some(cq);
		total += nr;
		if (READ_ONCE(*done) >= want || total >= POLL_BUDGET || need_resched())
			break;
		if (nr)
			continue;
		if (!until_ns || ktime_get_ns() >= until_ns)
			break;
		cpu_relax();
	}
}

/**
 * kxfer_cq_look() - handle what is there, where the caller waits for something of it
 * @cq: of any context; nothing is done unless it can be owned
 *
 * Does not sleep.
 */
void kxfer_cq_look(struct kxfer_cq *cq)
{
	if (!kxfer_cq_own(cq))
		return;
	while (handle_some(cq) == KXFER_CQ_BATCH && !need_resched())
		;
	kxfer_cq_disown(cq);
}

static int create_polled(struct kxfer_cq *cq, struct ib_device *ibdev, u32 nr_cqe,
			 int comp_vector)
{
	struct ib_cq_init_attr attr = { .cqe = nr_cqe, .comp_vector = comp_vector };

	INIT_WORK(&cq->work, poll_work);
	cq->ib = kxfer_fault_ptr(LANE_CQ) ?:
		 ib_create_cq(ibdev, completion_handler, NULL, cq, &attr);
	if (IS_ERR(cq->ib))
		return PTR_ERR(cq->ib);
	ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP);
	return 0;
}

/** kxfer_cq_core_context() - what a context is to the RDMA core; not polled */
enum ib_poll_context kxfer_cq_core_context(enum kxfer_context context)
{
	switch (context) {
	case KXFER_CONTEXT_SOFTIRQ:
		return IB_POLL_SOFTIRQ;
	case KXFER_CONTEXT_UNBOUND:
		return IB_POLL_UNBOUND_WORKQUEUE;
	case KXFER_CONTEXT_DIRECT:
		return IB_POLL_DIRECT;
	default:
		return IB_POLL_WORKQUEUE;
	}
}

/**
 * kxfer_cq_create() - make a CQ
 * @cq: zeroed
 * @ibdev: device
 * @nr_cqe: for so many completions
 * @comp_vector: below the device's num_comp_vectors
 * @context: where completions are handled
 * @settle: of a polled one, or NULL: called by its owner, with no lock held, when done() has
 *	been called for all that one look at it found
 *
 * May sleep. Return: 0 or -errno, with nothing to destroy.
 */
int kxfer_cq_create(struct kxfer_cq *cq, struct ib_device *ibdev, u32 nr_cqe,
		    int comp_vector, enum kxfer_context context,
		    void (*settle)(struct kxfer_cq *cq))
{
	int ret = 0;

	/* Who owns it must not be preempted, and takes locks that may sleep there. */
	if (context == KXFER_CONTEXT_DIRECT && IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EOPNOTSUPP;
	spin_lock_init(&cq->lock);
	init_completion(&cq->handed_over);
	cq->settle = settle;
	cq->polled = context == KXFER_CONTEXT_POLLED;
	cq->direct = context == KXFER_CONTEXT_DIRECT;
	if (cq->polled) {
		ret = create_polled(cq, ibdev, nr_cqe, comp_vector);
	} else {
		cq->ib = kxfer_fault_ptr(LANE_CQ) ?:
			 ib_alloc_cq(ibdev, cq, nr_cqe, comp_vector,
				     kxfer_cq_core_context(context));
		ret = PTR_ERR_OR_ZERO(cq->ib);
	}
	if (ret) {
		cq->ib = NULL;
		cq->polled = false;
		cq->direct = false;
	}
	return ret;
}

/* Once for all: somebody who was before need not be waited for again. */
static void own_for_good(struct kxfer_cq *cq)
{
	bool owned;

	spin_lock_irq(&cq->lock);
	owned = cq->owned && !cq->closing;
	cq->owned = true;
	cq->closing = true;
	spin_unlock_irq(&cq->lock);
	if (owned)
		wait_for_completion(&cq->handed_over);
}

/**
 * kxfer_cq_retire() - QPs of it are going to be drained, and by who looks at it
 * @cq: of any context, or one that was not made
 *
 * May sleep. Afterwards nobody but the core looks at one of the context direct.
 */
void kxfer_cq_retire(struct kxfer_cq *cq)
{
	if (cq->direct)
		own_for_good(cq);
}

/**
 * kxfer_cq_destroy() - no QP uses it any more
 * @cq: or one that was not made; one of the pool is given back, and first all is handled
 *
 * May sleep, and waits for whoever polls it. Afterwards nobody can own it. What nobody
 * has found by then, of a UD QP or of siw, is never handled; nobody may
 * wait for that.
 */
void kxfer_cq_destroy(struct kxfer_cq *cq)
{
	if (!cq->ib)
		return;
	if (cq->marker) {
		kxfer_cq_give_back(cq);
	} else if (cq->polled) {
		own_for_good(cq);
		ib_destroy_cq(cq->ib);
		cancel_work_sync(&cq->work);
	} else {
		kxfer_cq_retire(cq);
		ib_free_cq(cq->ib);
	}
	cq->ib = NULL;
}
