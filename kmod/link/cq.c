// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of a lane, and the owner that polls its CQ.
 *
 * A CQ of the contexts workqueue, softirq and unbound belongs to the RDMA core
 * (ib_alloc_cq(), or its pool: cq_pool.c), which calls done() of each completion there. A CQ
 * of the context polled has a handler of ours and, at any time, at most one owner. The owner
 * polls it and calls done() for all completions that it finds, also those of other sessions:
 *
 *  - a session that waits for completions (kxfer_cq_own()) finds them where it waits,
 *    without interrupt, work and wake-up;
 *  - when no session does, the owner is a work that the handler queues.
 *
 * No completion is lost. The provider calls the handler once for each ib_req_notify_cq(). An
 * owner that has found the CQ empty (@empty) arms it before it leaves, and asks whether
 * completions came in between (IB_CQ_REPORT_MISSED_EVENTS). An owner that has not found it
 * empty, because it has what it waited for or its time is over, does not arm the CQ but queues
 * the work. The reason: not every provider reports completions that are in a CQ when it is
 * armed (qedr, ocrdma, mlx4 and mthca never do); the RDMA core, too, arms only an empty CQ. A
 * completion that comes
 *  1. before the last poll is found by the owner, or by the work that the owner queues;
 *  2. between that poll and the arming is reported, or causes an event at once if the provider
 *     does not report it;
 *  3. after the arming calls the handler. Under @lock the handler finds the owner still there
 *     and sets @event, which has been clear since before the arming: then the owner queues the
 *     work. Or it finds no owner, and queues the work.
 * A work that finds an owner has nothing to do: a context that became the owner after the work
 * was queued polls after that.
 *
 * An owner does not arm the CQ if nothing is under way that could complete (@idle): arming costs
 * a call of the handler or, on a card, an interrupt for the next completion, which the next
 * owner mostly polls for. As a proof that the handler is called, or a context polls, for all that
 * is posted later:
 *  1. The context that posts makes @idle false, and then looks for an owner
 *     (kxfer_cq_before_post()). If there is none and the CQ is not armed, it arms the CQ.
 *  2. The owner leaves, and then looks at @idle again. If that is false by now, and the CQ is not
 *     armed, it queues the work.
 *  3. A full barrier stands between the two steps of each. So at least one of them sees what the
 *     other has done.
 *  4. A handler makes @armed false before it queues the work, or before the owner leaves. So a
 *     context that finds the CQ armed has made @idle false before one of those looks at it.
 * What comes unasked, such as the flushed RECVs of a QP that failed, waits for the next owner, or
 * for kxfer_cq_check(), which the keep-alive calls. Before a QP is drained kxfer_cq_be_armed()
 * ends all this.
 *
 * No session waits because the session that owns the CQ does not get the CPU. The owner polls
 * with preemption disabled, for a bounded time. When another task wants the CPU it leaves, or it
 * steps aside: that task may be the provider's, which works in a kworker from Linux 6.12 on.
 * Leaving would then cost an event, a work and a wake-up, only to be the owner again. An owner
 * steps aside only if the CQ is for it alone (@alone of kxfer_cq_wait), because it may come back
 * late: its cgroup may have used up its share of the CPU. As a proof that no other waits:
 *  1. The owner sets @away. Then it asks @alone, which looks under the lock of the lane.
 *  2. Another session's job, a withdrawal and the end of the lane change under that lock what
 *     @alone sees. After that they look at @away (kxfer_cq_recall()). So either @alone has seen
 *     the change, and the owner stays, or @away is seen, and the work is queued.
 *  3. The work, and any other context that wants to own the CQ, takes it from an owner that is
 *     away. That one finds this out when it is back, and polls no more.
 *
 * A CQ of the context direct also belongs to the core (IB_POLL_DIRECT), and is owned like a
 * polled one. But it has no events, and without an owner it is not polled: a context that
 * waits for a completion of such a lane has to poll (kxfer_lane_wait(), run.c). To drain a QP
 * the core polls by itself, so no other context may poll from then on: kxfer_cq_retire().
 *
 * The end of a polled CQ, as a proof: kxfer_cq_stop() marks it as closing, and waits for its
 * owner unless that is away; then the CQ has none, and gets no other. So no context polls it, and
 * the handler, even a late one, and kxfer_cq_recall() queue nothing. A work that was queued before
 * is waited for, and does nothing. Destroying the CQ can wait.
 *
 * The core polls a CQ in one place at a time and calls done() in the order of the CQ. So when the
 * markers of ib_drain_qp() have completed, all calls for that QP before them have returned: a CQ
 * that the core polls, for one QP only, needs no stop.
 *
 * Context: creating and destroying may sleep. done() is called in a softirq, a
 * kworker or a system call, with no lock held, and must not sleep.
 */
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/timekeeping.h>

#include "base/compat.h"
#include "base/fault.h"
#include "link/cq.h"

#define WORK_BUDGET	4096	/* completions, then others have the CPU */
#define POLL_BUDGET	256	/* completions, then the caller may wait for others */

static struct workqueue_struct *comp_wq;

/** kxfer_cq_init() - make the workqueue, of the same kind as the core's ib_comp_wq */
int kxfer_cq_init(void)
{
	comp_wq = kxfer_try_alloc(CQ_WORKQUEUE,
				  alloc_workqueue("kxfer_comp",
						  WQ_HIGHPRI | WQ_MEM_RECLAIM | KXFER_WQ_PERCPU,
						  0));
	return comp_wq ? 0 : -ENOMEM;
}

/** kxfer_cq_exit() - destroy the workqueue; no CQ is left */
void kxfer_cq_exit(void)
{
	destroy_workqueue(comp_wq);
}

/* Any context. From 6.12 on rxe calls this with its lock of the CQ held. */
static void completion_handler(struct ib_cq *ib, void *context)
{
	struct kxfer_cq *cq = context;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	WRITE_ONCE(cq->armed, false);
	if (cq->owner || cq->closing)
		WRITE_ONCE(cq->event, true);
	else
		queue_work(comp_wq, &cq->work);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* Become the owner. Return: false if there is one that is not away, or the CQ is closing. */
static bool enter(struct kxfer_cq *cq)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&cq->lock, flags);
	ok = !cq->closing && (!cq->owner || cq->away);
	if (ok) {
		WRITE_ONCE(cq->owner, current);
		WRITE_ONCE(cq->away, false);
		cq->empty = false;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ok;
}

/* False once another context has taken the CQ from the caller, which was away. */
static bool is_owner(const struct kxfer_cq *cq)
{
	return READ_ONCE(cq->owner) == current;
}

/* Have the handler called. Return: whether completions may have come before. */
static bool arm(struct kxfer_cq *cq)
{
	/* Before the arming: the handler may come at once. */
	WRITE_ONCE(cq->armed, true);
	return ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

static bool is_idle(struct kxfer_cq *cq)
{
	return cq->idle && !READ_ONCE(cq->eager) && cq->idle(cq);
}

/* Have the work poll the CQ, unless it has an owner, which will. */
static void poll_soon(struct kxfer_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (!cq->owner && !cq->closing)
		queue_work(comp_wq, &cq->work);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/**
 * kxfer_cq_check() - have a CQ polled if nothing else leads to that
 * @cq: of any context
 *
 * Any context but hard interrupts. Nothing is done for a CQ that is armed or has an owner.
 */
void kxfer_cq_check(struct kxfer_cq *cq)
{
	if (cq->polled && !READ_ONCE(cq->armed))
		poll_soon(cq);
}

/* Stop being the owner. */
static void leave(struct kxfer_cq *cq)
{
	bool idle = is_idle(cq), more = false;
	unsigned long flags;

	if (cq->polled) {
		/* Completions of this event are polled already, or will be by the work. */
		WRITE_ONCE(cq->event, false);
		more = !cq->empty || (!idle && arm(cq));
	}
	spin_lock_irqsave(&cq->lock, flags);
	WRITE_ONCE(cq->owner, NULL);
	if (cq->closing)
		complete(&cq->handed_over);
	else if (more || cq->event)
		queue_work(comp_wq, &cq->work);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (!idle)
		return;
	/* Pairs with kxfer_cq_before_post() and kxfer_cq_be_armed(). */
	smp_mb();
	if (!is_idle(cq))
		kxfer_cq_check(cq);
}

/* For the owner. Return: completions handled; fewer than KXFER_CQ_BATCH: there are no more. */
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
 * kxfer_cq_own() - become the owner for a while, to poll for completions
 * @cq: of any context
 *
 * Best called before posting: then the handler queues no work for what completes at once.
 * Disables preemption until kxfer_cq_disown(). Return: false, with nothing to undo, if the CQ
 * is neither polled nor direct, or has an owner; on PREEMPT_RT always.
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

/** kxfer_cq_disown() - undo kxfer_cq_own(), also if the CQ has another owner since */
void kxfer_cq_disown(struct kxfer_cq *cq)
{
	if (is_owner(cq)) {
		/* A full batch is often all there was: one more poll costs less than the work. */
		if (cq->polled && !cq->empty && !need_resched())
			handle_some(cq);
		leave(cq);
	}
	preempt_enable();
}

/*
 * Give the CPU to other tasks and stay the owner, if the CQ is for the waiter alone. Return:
 * false if it is not, or if another context has become the owner.
 */
static bool step_aside(struct kxfer_cq *cq, const struct kxfer_cq_wait *wait)
{
	bool alone;

	spin_lock_irq(&cq->lock);
	WRITE_ONCE(cq->away, !cq->closing);
	spin_unlock_irq(&cq->lock);
	alone = wait->alone(wait->of);
	if (alone) {
		preempt_enable();
		kxfer_delay(CQ_AWAY);
		schedule();
		preempt_disable();
	}
	spin_lock_irq(&cq->lock);
	if (is_owner(cq))
		WRITE_ONCE(cq->away, false);
	spin_unlock_irq(&cq->lock);
	return alone && is_owner(cq);
}

/**
 * kxfer_cq_recall() - let no other wait for an owner that has stepped aside
 * @cq: CQ of a lane, whose lock the caller holds, after what it is called for
 *
 * A work handles the completions instead. Any context but hard interrupts.
 */
void kxfer_cq_recall(struct kxfer_cq *cq)
{
	unsigned long flags;

	if (!READ_ONCE(cq->away))
		return;
	spin_lock_irqsave(&cq->lock, flags);
	/* Not after end_ownership(), which waits for the work. */
	if (cq->away)
		queue_work(comp_wq, &cq->work);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/**
 * kxfer_cq_poll() - handle completions while the caller waits for some of them
 * @cq: owned by the caller (kxfer_cq_own()); nothing is done if it was taken from the caller
 * @wait: what the caller waits for
 *
 * Returns when what is waited for is there, at its time limit, after POLL_BUDGET completions, or
 * when another task needs the CPU and the owner cannot step aside. Does not sleep, but with
 * @alone the task may lose the CPU.
 */
void kxfer_cq_poll(struct kxfer_cq *cq, const struct kxfer_cq_wait *wait)
{
	bool aside = cq->polled && wait->alone && wait->until_ns;
	u32 total = 0, nr;

	while (is_owner(cq)) {
		nr = handle_some(cq);
		total += nr;
		if ((wait->done && READ_ONCE(*wait->done) >= wait->want) || total >= POLL_BUDGET)
			break;
		if (!nr && (!wait->until_ns || ktime_get_ns() >= wait->until_ns))
			break;
		if (aside && (need_resched() || (!nr && !single_task_running())))
			aside = step_aside(cq, wait);
		if (need_resched())
			break;
		if (!nr)
			cpu_relax();
	}
}

/**
 * kxfer_cq_look() - handle the completions that are there
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

/**
 * kxfer_cq_arm_to_post() - kxfer_cq_before_post() that found the CQ not armed, without an owner
 * @cq: polled CQ of an open lane, whose lock the caller holds
 */
void kxfer_cq_arm_to_post(struct kxfer_cq *cq)
{
	if (arm(cq))
		poll_soon(cq);
}

/**
 * kxfer_cq_be_armed() - have the CQ armed whenever it has no owner, to drain its QP
 * @cq: of any context, or one that was not made
 *
 * Any context but hard interrupts.
 */
void kxfer_cq_be_armed(struct kxfer_cq *cq)
{
	WRITE_ONCE(cq->eager, true);
	/* Pairs with leave(). */
	smp_mb();
	kxfer_cq_check(cq);
}

static int create_polled(struct kxfer_cq *cq, struct ib_device *ibdev, u32 nr_cqe,
			 int comp_vector)
{
	struct ib_cq_init_attr attr = { .cqe = nr_cqe, .comp_vector = comp_vector };

	INIT_WORK(&cq->work, poll_work);
	cq->ib = kxfer_try_ptr(LANE_CQ, ib_create_cq(ibdev, completion_handler, NULL, cq, &attr));
	if (IS_ERR(cq->ib))
		return PTR_ERR(cq->ib);
	cq->armed = true;
	ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP);
	return 0;
}

/** kxfer_cq_core_context() - translate a context, other than polled, for the RDMA core */
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
 * @nr_cqe: number of completions that the CQ must hold
 * @comp_vector: below the device's num_comp_vectors
 * @context: where completions are handled
 * @settle: for a polled CQ, or NULL: called by its owner, with no lock held, when done() has
 *	been called for all completions of one poll
 * @idle: for a polled CQ, or NULL: whether nothing is under way on it. Called with or without
 *	locks; a context that posts makes it false before kxfer_cq_before_post()
 *
 * May sleep. Return: 0 or -errno, with nothing to destroy.
 */
int kxfer_cq_create(struct kxfer_cq *cq, struct ib_device *ibdev, u32 nr_cqe,
		    int comp_vector, enum kxfer_context context,
		    void (*settle)(struct kxfer_cq *cq), bool (*idle)(struct kxfer_cq *cq))
{
	int ret = 0;

	/* An owner must not be preempted, but takes locks that may sleep on PREEMPT_RT. */
	if (context == KXFER_CONTEXT_DIRECT && IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EOPNOTSUPP;
	spin_lock_init(&cq->lock);
	init_completion(&cq->handed_over);
	cq->settle = settle;
	cq->idle = idle;
	cq->polled = context == KXFER_CONTEXT_POLLED;
	cq->direct = context == KXFER_CONTEXT_DIRECT;
	if (cq->polled) {
		ret = create_polled(cq, ibdev, nr_cqe, comp_vector);
	} else {
		cq->ib = kxfer_try_ptr(LANE_CQ, ib_alloc_cq(ibdev, cq, nr_cqe, comp_vector,
							    kxfer_cq_core_context(context)));
		ret = PTR_ERR_OR_ZERO(cq->ib);
	}
	if (ret) {
		cq->ib = NULL;
		cq->polled = false;
		cq->direct = false;
	}
	return ret;
}

/* Idempotent: a previous owner is waited for only once, and not if it is away. */
static void end_ownership(struct kxfer_cq *cq)
{
	bool owned;

	spin_lock_irq(&cq->lock);
	owned = cq->owner && !cq->away && !cq->closing;
	if (cq->away)
		WRITE_ONCE(cq->owner, NULL);
	WRITE_ONCE(cq->away, false);
	cq->closing = true;
	spin_unlock_irq(&cq->lock);
	if (owned)
		wait_for_completion(&cq->handed_over);
}

/**
 * kxfer_cq_retire() - leave a CQ of the context direct to the core, before QPs are drained
 * @cq: of any context, or one that was not made
 *
 * May sleep. Afterwards only the core polls a CQ of the context direct.
 */
void kxfer_cq_retire(struct kxfer_cq *cq)
{
	if (cq->direct)
		end_ownership(cq);
}

/**
 * kxfer_cq_stop() - end the polling of a CQ
 * @cq: of any context but of the pool, or one that was not made. Its QPs are drained, or none is
 *	left
 *
 * May sleep; waits for the owner of a polled CQ. Afterwards the CQ cannot be owned. Completions
 * that were not found by then are never handled.
 */
void kxfer_cq_stop(struct kxfer_cq *cq)
{
	if (!cq->polled)
		return;
	end_ownership(cq);
	cancel_work_sync(&cq->work);
}

/**
 * kxfer_cq_destroy() - destroy a CQ that no QP uses any more
 * @cq: of any context, or one that was not made; a CQ of the pool is given back, after all its
 *	completions were handled
 *
 * May sleep; waits for the owner of the CQ. Afterwards the CQ cannot be owned. Completions
 * that were not found by then, of a UD QP or of siw, are never handled: no context may wait
 * for them.
 */
void kxfer_cq_destroy(struct kxfer_cq *cq)
{
	if (!cq->ib)
		return;
	if (cq->marker) {
		kxfer_cq_give_back(cq);
	} else if (cq->polled) {
		kxfer_cq_stop(cq);
		ib_destroy_cq(cq->ib);
	} else {
		kxfer_cq_retire(cq);
		ib_free_cq(cq->ib);
	}
	cq->ib = NULL;
}
