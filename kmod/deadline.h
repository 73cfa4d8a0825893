/* SPDX-License-Identifier: GPL-2.0 */
/* Deadlines of jobs that wait in a place. See deadline.c. */
#ifndef KXFER_DEADLINE_H
#define KXFER_DEADLINE_H

#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct kxfer_active_job;
struct kxfer_job_list;

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
bool kxfer_deadline_end_some(struct kxfer_deadline *deadline, u64 now_ns,
			     void (*end)(struct kxfer_active_job *, struct kxfer_job_list *),
			     struct kxfer_job_list *ended);

#endif /* KXFER_DEADLINE_H */
