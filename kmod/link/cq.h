/* SPDX-License-Identifier: GPL-2.0 */
/* Completions of a lane, and the owner that polls its CQ. See cq.c. */
#ifndef KXFER_CQ_H
#define KXFER_CQ_H

#include <linux/completion.h>
#include <linux/kxfer.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define KXFER_CQ_BATCH		16	/* completions taken by one ib_poll_cq() */
#define KXFER_CQ_MARKERS	1	/* CQEs that kxfer_cq_borrow() needs for itself */

/**
 * struct kxfer_cq - a CQ and its owner
 * @ib: the verbs CQ, or NULL
 * @marker: CQ of the pool: QP by which the CQ is given back; else NULL
 * @nr_cqe: CQ of the pool: number of CQEs taken from the pool
 * @polled: the context is KXFER_CONTEXT_POLLED
 * @direct: the context is KXFER_CONTEXT_DIRECT; the fields below are for these two only
 * @lock: over @owner, @away, @event and @closing; irq-safe, for the handler may come in any
 *	context
 * @owner: task that polls the CQ; or NULL
 * @away: the owner has given the CPU to others: the CQ may be taken from it
 * @event: the handler has come since the owner last armed the CQ
 * @empty: the owner's last poll found fewer completions than it could take
 * @closing: the CQ is being retired or stopped: its owner hands it over, and it gets no other
 * @handed_over: the owner has left the CQ to the context that retires or stops it
 * @armed: the handler will be called for the next completion, or is about to be; it may be
 *	called also if this is false
 * @eager: the CQ is armed whenever it has no owner, also while @idle
 * @settle: called by the owner when done() has been called for all of @wc; or NULL
 * @idle: whether nothing is under way that could complete; NULL: this is not known
 * @work: polls the CQ when it has no other owner
 * @now_ns: ktime_get_ns() when @wc was taken; belongs to the owner
 * @wc: completions taken; belongs to the owner
 */
struct kxfer_cq {
	struct ib_cq *ib;
	struct ib_qp *marker;
	u32 nr_cqe;
	bool polled;
	bool direct;
	spinlock_t lock;
	const struct task_struct *owner;
	bool away;
	bool event;
	bool empty;
	bool closing;
	bool armed;
	bool eager;
	struct completion handed_over;
	void (*settle)(struct kxfer_cq *cq);
	bool (*idle)(struct kxfer_cq *cq);
	struct work_struct work;
	u64 now_ns;
	struct ib_wc wc[KXFER_CQ_BATCH];
};

/**
 * struct kxfer_cq_wait - what an owner of a CQ waits for
 * @done: counter of the completions that it waits for; NULL: it waits for none
 * @want: value of *@done to wait for
 * @until_ns: time by ktime_get_ns() until which to spin; 0: take only what is there
 * @alone: whether all that is under way on the CQ is for the waiter, and the lane stays open.
 *	Takes the lock of the lane. NULL: the owner must not step aside
 * @of: argument of @alone
 */
struct kxfer_cq_wait {
	const u32 *done;
	u32 want;
	u64 until_ns;
	bool (*alone)(void *of);
	void *of;
};

int kxfer_cq_init(void);
void kxfer_cq_exit(void);
enum ib_poll_context kxfer_cq_core_context(enum kxfer_context context);
int kxfer_cq_create(struct kxfer_cq *cq, struct ib_device *ibdev, u32 nr_cqe,
		    int comp_vector, enum kxfer_context context,
		    void (*settle)(struct kxfer_cq *cq), bool (*idle)(struct kxfer_cq *cq));
void kxfer_cq_retire(struct kxfer_cq *cq);
void kxfer_cq_stop(struct kxfer_cq *cq);
void kxfer_cq_destroy(struct kxfer_cq *cq);
int kxfer_cq_borrow(struct kxfer_cq *cq, struct ib_pd *pd, u32 nr_cqe, int comp_vector,
		    enum kxfer_context context);
void kxfer_cq_give_back(struct kxfer_cq *cq);
bool kxfer_cq_own(struct kxfer_cq *cq);
void kxfer_cq_disown(struct kxfer_cq *cq);
void kxfer_cq_poll(struct kxfer_cq *cq, const struct kxfer_cq_wait *wait);
void kxfer_cq_recall(struct kxfer_cq *cq);
void kxfer_cq_look(struct kxfer_cq *cq);
void kxfer_cq_check(struct kxfer_cq *cq);
void kxfer_cq_arm_to_post(struct kxfer_cq *cq);
void kxfer_cq_be_armed(struct kxfer_cq *cq);

/*
 * To be called before ib_post_send(), with the lane's lock held, after what makes @idle false: a
 * context will poll for the completion. See cq.c.
 */
static inline void kxfer_cq_before_post(struct kxfer_cq *cq)
{
	if (!cq->idle)
		return;
	/* Pairs with leave(). */
	smp_mb();
	if (!READ_ONCE(cq->armed) && !READ_ONCE(cq->owner))
		kxfer_cq_arm_to_post(cq);
}

/* Whether no context polls the CQ for this module any more; see kxfer_cq_stop(). */
static inline bool kxfer_cq_is_stopped(const struct kxfer_cq *cq)
{
	return !cq->ib || !cq->polled || cq->closing;
}

/* In done(): the time when the completion was found. */
static inline u64 kxfer_cq_now_ns(const struct kxfer_cq *cq)
{
	return cq->polled ? cq->now_ns : ktime_get_ns();
}

#endif /* KXFER_CQ_H */
