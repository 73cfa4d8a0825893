// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines of what waits: one work for each place where jobs do, a lane or a mailbox,
 * due for the first of them.
 *
 * What has a deadline is in a tree, by it, as long as it waits there. So what the work does
 * depends on how many deadlines have passed and not on how many jobs wait, and it lets go
 * of the place's lock after BATCH of them: other sessions share a lane, and on one CPU
 * nothing else runs while bottom halves are off.
 *
 * Context: any but hard interrupts, under the lock of the place; nothing sleeps.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "base/deadline.h"

#define BATCH	64	/* deadlines that pass for one hold of the lock */

/** kxfer_deadlines_init() - nothing waits in the place; @work ends what does too long, on @wq */
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
 * @deadlines: of the place
 * @ns: CLOCK_MONOTONIC; 0: there is none
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

/** kxfer_deadlines_add() - something waits in the place now; it may have no deadline */
void kxfer_deadlines_add(struct kxfer_deadlines *deadlines, struct kxfer_deadline *deadline)
{
	if (!deadline->ns)
		return;
	rb_add_cached(&deadline->node, &deadlines->tree, is_earlier);
	kxfer_deadlines_arm(deadlines, deadline->ns);
}

/** kxfer_deadlines_remove() - it waits no more; it may have been removed already */
void kxfer_deadlines_remove(struct kxfer_deadlines *deadlines, struct kxfer_deadline *deadline)
{
	if (RB_EMPTY_NODE(&deadline->node))
		return;
	rb_erase_cached(&deadline->node, &deadlines->tree);
	RB_CLEAR_NODE(&deadline->node);
}

/* The next that has passed, removed; or NULL, and the work is due for the rest. */
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
 * kxfer_deadlines_end_some() - end what has waited too long
 * @deadlines: of the place, from its work
 * @now_ns: ktime_get_ns()
 * @end: called for each
 * @context: handed to @end
 *
 * Return: false: there is no more, and the work is due for the next deadline; true: there
 * may be more, and the caller calls again after it has let go of the lock.
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
