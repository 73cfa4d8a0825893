/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deadlines of jobs that wait: one work for each place where they do, a lane or a
 * mailbox, due for the first of them. It looks at all that wait there, ends those whose
 * deadline has passed, and arms the next. Under the lock of the place; any context.
 */
#ifndef KXFER_DEADLINE_H
#define KXFER_DEADLINE_H

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "link.h"

/**
 * struct kxfer_deadline - the first deadline of the jobs that wait in a place
 * @work: ends those whose deadline has passed
 * @next_ns: for which it is due; 0: none
 */
struct kxfer_deadline {
	struct delayed_work work;
	u64 next_ns;
};

/**
 * kxfer_deadline_arm() - have a deadline looked at when it has passed
 * @deadline: of the place, whose lock the caller holds
 * @ns: of a job there, CLOCK_MONOTONIC; 0: it has none
 */
static inline void kxfer_deadline_arm(struct kxfer_deadline *deadline, u64 ns)
{
	u64 now_ns;

	if (!ns || (deadline->next_ns && deadline->next_ns <= ns))
		return;
	deadline->next_ns = ns;
	now_ns = ktime_get_ns();
	mod_delayed_work(kxfer_wq, &deadline->work,
			 ns > now_ns ? nsecs_to_jiffies(ns - now_ns) + 1 : 0);
}

#endif /* KXFER_DEADLINE_H */
