/* SPDX-License-Identifier: GPL-2.0 */
/* Deadlines of jobs that wait in a lane or a mailbox. See deadline.c. */
#ifndef KXFER_DEADLINE_H
#define KXFER_DEADLINE_H

#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/**
 * struct kxfer_deadline - deadline of a waiting job
 * @node: in the tree of the place where the job waits, or empty
 * @ns: deadline, CLOCK_MONOTONIC; 0: none
 */
struct kxfer_deadline {
	struct rb_node node;
	u64 ns;
};

/**
 * struct kxfer_deadlines - deadlines of the jobs that wait in a place
 * @wq: workqueue that runs @work
 * @work: ends jobs that have waited too long
 * @tree: tree of struct kxfer_deadline
 * @next_ns: deadline for which @work is due; 0: none
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
