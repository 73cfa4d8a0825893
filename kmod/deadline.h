/* SPDX-License-Identifier: GPL-2.0 */
/* Deadlines of jobs that wait in a place. See deadline.c. */
#ifndef KXFER_DEADLINE_H
#define KXFER_DEADLINE_H

#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct kxfer_active_job;

#define KXFER_DEADLINE_BATCH	64	/* jobs that end for one hold of the place's lock */

/**
 * struct kxfer_deadline - the deadlines of the jobs that wait in a place
 * @work: ends those whose deadline has passed
 * @jobs: those that have one, by it
 * @next_ns: for which @work is due; 0: none
 */
struct kxfer_deadline {
	struct delayed_work work;
	struct rb_root_cached jobs;
	u64 next_ns;
};

void kxfer_deadline_init(struct kxfer_deadline *deadline, work_func_t work);
void kxfer_deadline_arm(struct kxfer_deadline *deadline, u64 ns);
void kxfer_deadline_add(struct kxfer_deadline *deadline, struct kxfer_active_job *job);
void kxfer_deadline_remove(struct kxfer_deadline *deadline, struct kxfer_active_job *job);
struct kxfer_active_job *kxfer_deadline_passed(struct kxfer_deadline *deadline, u64 now_ns);

#endif /* KXFER_DEADLINE_H */
