/* SPDX-License-Identifier: GPL-2.0 */
/* Completions of a lane: who polls its CQ. See cq.c. */
#ifndef KXFER_CQ_H
#define KXFER_CQ_H

#include <linux/completion.h>
#include <linux/kxfer.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define KXFER_CQ_BATCH		16	/* completions taken by one ib_poll_cq() */
#define KXFER_CQ_MARKERS	1	/* that kxfer_cq_borrow() needs beside the user's */

/**
 * struct kxfer_cq - a CQ and its owner
 * @ib: it, or NULL
 * @marker: of the pool: QP by which it is given back; else NULL
 * @nr_cqe: of the pool: room that was taken there
 * @polled: of KXFER_CONTEXT_POLLED
 * @direct: of KXFER_CONTEXT_DIRECT; the fields below are for these two only
 * @lock: over the three below; irq-safe, for the handler may come in any context
 * @owned: somebody polls it, or it is retired or destroyed
 * @event: the handler has come since the owner last asked for it
 * @empty: the owner's last look found fewer completions than it could take
 * @closing: it is being destroyed, who owns it hands it over
 * @handed_over: to the destroyer
 * @settle: called by the owner when done() has been called for all of @wc; or NULL
 * @work: polls it when nobody else does
 * @now_ns: ktime_get_ns() when @wc was taken, of the owner
 * @wc: completions taken, of the owner
 */
struct kxfer_cq {
	struct ib_cq *ib;
	struct ib_qp *marker;
	u32 nr_cqe;
	bool polled;
	bool direct;
	spinlock_t lock;
	bool owned;
	bool event;
	bool empty;
	bool closing;
	struct completion handed_over;
	void (*settle)(struct kxfer_cq *cq);
	struct work_struct work;
	u64 now_ns;
	struct ib_wc wc[KXFER_CQ_BATCH];
};

int kxfer_cq_init(void);
void kxfer_cq_exit(void);
enum ib_poll_context kxfer_cq_core_context(enum kxfer_context context);
int kxfer_cq_create(struct kxfer_cq *cq, struct ib_device *ibdev, u32 nr_cqe,
		    int comp_vector, enum kxfer_context context,
		    void (*settle)(struct kxfer_cq *cq));
void kxfer_cq_retire(struct kxfer_cq *cq);
void kxfer_cq_destroy(struct kxfer_cq *cq);
int kxfer_cq_borrow(struct kxfer_cq *cq, struct ib_pd *pd, u32 nr_cqe, int comp_vector,
		    enum kxfer_context context);
void kxfer_cq_give_back(struct kxfer_cq *cq);
bool kxfer_cq_own(struct kxfer_cq *cq);
void kxfer_cq_disown(struct kxfer_cq *cq);
void kxfer_cq_poll(struct kxfer_cq *cq, const u32 *done, u32 want, u64 until_ns);
void kxfer_cq_look(struct kxfer_cq *cq);

/* In done(): when the completion was found. */
static inline u64 kxfer_cq_now_ns(const struct kxfer_cq *cq)
{
	return cq->polled ? cq->now_ns : ktime_get_ns();
}

#endif /* KXFER_CQ_H */
