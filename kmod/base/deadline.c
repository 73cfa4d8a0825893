// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines of waiting jobs: each place where jobs wait, a lane or a mailbox, has one work,
 * due for the earliest deadline.
 *
 * A job with a deadline is in a tree, sorted by deadline, as long as it waits there. So the
 * cost of the work depends on how many deadlines have passed, not on how many jobs wait.
 * The work drops the lock of the place after BATCH deadlines: other sessions share a lane,
 * and a CPU runs nothing else while its bottom halves are off.
 *
 * Context: any but hard interrupts, under the lock of the place; nothing sleeps.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "base/deadline.h"

#define BATCH	64	/* most deadlines handled without dropping the lock */

/** kxfer_deadlines_init() - set up a place where no job waits; @work ends late jobs, on @wq */
void kxfer_deadlines_init(struct kxfer_deadlines *deadlines, struct workqueue_struct *wq,
			  work_func_t work)
{
	INIT_DELAYED_WORK(&deadlines->work, work);
	deadlines->wq = wq;
	deadlines->tree = RB_ROOT_CACHED;
	deadlines->next_ns = 0;
}

/**
 * kxfer_deadlines_arm() - have the work run when a deadline has passed
 * @deadlines: deadlines of the place
 * @ns: deadline, CLOCK_MONOTONIC; 0: none
 */
void kxfer_deadlines_arm(struct kxfer_deadlines *deadlines, u64 ns)
{
	u64 now_ns;

	if (!ns || (deadlines->next_ns && deadlines->next_ns <= ns))
		return;
	deadlines->next_ns = ns;
	now_ns = ktime_get_ns();
	mod_delayed_work(deadlines->wq, &deadlines->work,
			 ns > now_ns ? nsecs_to_jiffies(ns - now_ns) + 1 : 0);
}

static bool is_earlier(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct kxfer_deadline, node)->ns <
	       rb_entry(other, struct kxfer_deadline, node)->ns;
}

/** kxfer_deadlines_add() - a job begins to wait in the place; it may have no deadline */
void kxfer_deadlines_add(struct kxfer_deadlines *deadlines, struct kxfer_deadline *deadline)
{
	if (!deadline->ns)
		return;
	rb_add_cached(&deadline->node, &deadlines->tree, is_earlier);
	kxfer_deadlines_arm(deadlines, deadline->ns);
}

/** kxfer_deadlines_remove() - a job no longer waits; it may have been removed already */
void kxfer_deadlines_remove(struct kxfer_deadlines *deadlines, struct kxfer_deadline *deadline)
{
	if (RB_EMPTY_NODE(&deadline->node))
		return;
	rb_erase_cached(&deadline->node, &deadlines->tree);
	RB_CLEAR_NODE(&deadline->node);
}

/* Remove and return a deadline that has passed; or NULL, and the work is due for the rest. */
static struct kxfer_deadline *take_passed(struct kxfer_deadlines *deadlines, u64 now_ns)
{
	struct rb_node *first = rb_first_cached(&deadlines->tree);
	struct kxfer_deadline *deadline;

	deadlines->next_ns = 0;
	if (!first)
		return NULL;
	deadline = rb_entry(first, struct kxfer_deadline, node);
	if (deadline->ns > now_ns) {
		kxfer_deadlines_arm(deadlines, deadline->ns);
		return NULL;
	}
	kxfer_deadlines_remove(deadlines, deadline);
	return deadline;
}

/**
 * kxfer_deadlines_end_some() - end jobs that have waited too long
 * @deadlines: deadlines of the place; called by its work
 * @now_ns: ktime_get_ns()
 * @end: called for each deadline that has passed
 * @context: passed to @end
 *
 * Return: false: no more have passed, and the work is due for the next deadline; true:
 * there may be more, and the caller must drop the lock and call again.
 */
bool kxfer_deadlines_end_some(struct kxfer_deadlines *deadlines, u64 now_ns,
			      void (*end)(struct kxfer_deadline *deadline, void *context),
			      void *context)
{
	struct kxfer_deadline *deadline;
	u32 n;

	for (n = 0; n < BATCH; n++) {
		deadline = take_passed(deadlines, now_ns);
		if (!deadline)
			return false;
		end(deadline, context);
	}
	return true;
}
