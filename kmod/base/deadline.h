/* SPDX-License-Identifier: GPL-2.0 */
/* Deadlines of what waits in a place. See deadline.c. */
#ifndef KXFER_DEADLINE_H
#define KXFER_DEADLINE_H

#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/**
 * struct kxfer_deadline - until when something waits
 * @node: among those of the place where it waits, or empty
 * @ns: CLOCK_MONOTONIC; 0: for as long as it takes
 */
struct kxfer_deadline {
	struct rb_node node;
	u64 ns;
};

/**
 * struct kxfer_deadlines - of what waits in a place
 * @wq: where @work runs
 * @work: ends what has waited too long
 * @tree: of struct kxfer_deadline
 * @next_ns: for which @work is due; 0: none
 */
struct kxfer_deadlines {
	struct workqueue_struct *wq;
	struct delayed_work work;
	struct rb_root_cached tree;
	u64 next_ns;
};

void kxfer_deadlines_init(struct kxfer_deadlines *deadlines, struct workqueue_struct *wq,
			  work_func_t work);
void kxfer_deadlines_arm(struct kxfer_deadlines *deadlines, u64 ns);
void kxfer_deadlines_add(struct kxfer_deadlines *deadlines, struct kxfer_deadline *deadline);
void kxfer_deadlines_remove(struct kxfer_deadlines *deadlines, struct kxfer_deadline *deadline);
bool kxfer_deadlines_end_some(struct kxfer_deadlines *deadlines, u64 now_ns,
			      void (*end)(struct kxfer_deadline *deadline, void *context),
			      void *context);

#endif /* KXFER_DEADLINE_H */
