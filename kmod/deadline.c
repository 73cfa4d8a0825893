// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines of jobs that wait: one work for each place where they do, a lane or a
 * mailbox, due for the first of them.
 *
 * The jobs of a place that have a deadline are in a tree, by it, as long as they wait
 * there. So what the work does depends on how many deadlines have passed and not on how
 * many jobs wait, and it lets go of the place's lock after BATCH of them:
 * other sessions share a lane, and on one CPU nothing else runs while bottom halves
 * are off.
 *
 * Context: any but hard interrupts, under the lock of the place; nothing sleeps.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "deadline.h"
#include "job.h"
#include "link.h"

#define BATCH	64	/* jobs that end for one hold of the lock */

/** kxfer_deadline_init() - no job waits in the place; @work ends them */
void kxfer_deadline_init(struct kxfer_deadline *deadline, work_func_t work)
{
	INIT_DELAYED_WORK(&deadline->work, work);
	deadline->jobs = RB_ROOT_CACHED;
	deadline->next_ns = 0;
}

/**
 * kxfer_deadline_arm() - have the work run when a deadline has passed
 * @deadline: of the place
 * @ns: CLOCK_MONOTONIC; 0: there is none
 */
void kxfer_deadline_arm(struct kxfer_deadline *deadline, u64 ns)
{
	u64 now_ns;

	if (!ns || (deadline->next_ns && deadline->next_ns <= ns))
		return;
	deadline->next_ns = ns;
	now_ns = ktime_get_ns();
	mod_delayed_work(kxfer_wq, &deadline->work,
			 ns > now_ns ? nsecs_to_jiffies(ns - now_ns) + 1 : 0);
}

static bool is_earlier(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct kxfer_active_job, deadline_node)->deadline_ns <
	       rb_entry(other, struct kxfer_active_job, deadline_node)->deadline_ns;
}

/** kxfer_deadline_add() - @job waits in the place now; it may have no deadline */
void kxfer_deadline_add(struct kxfer_deadline *deadline, struct kxfer_active_job *job)
{
	if (!job->deadline_ns)
		return;
	rb_add_cached(&job->deadline_node, &deadline->jobs, is_earlier);
	kxfer_deadline_arm(deadline, job->deadline_ns);
}

/** kxfer_deadline_remove() - @job waits no more; it may have been removed already */
void kxfer_deadline_remove(struct kxfer_deadline *deadline, struct kxfer_active_job *job)
{
	if (RB_EMPTY_NODE(&job->deadline_node))
		return;
	rb_erase_cached(&job->deadline_node, &deadline->jobs);
	RB_CLEAR_NODE(&job->deadline_node);
}

/* The next job whose deadline has passed, removed; or NULL, and the work is due for the rest. */
static struct kxfer_active_job *take_passed(struct kxfer_deadline *deadline, u64 now_ns)
{
	struct rb_node *first = rb_first_cached(&deadline->jobs);
	struct kxfer_active_job *job;

	deadline->next_ns = 0;
	if (!first)
		return NULL;
	job = rb_entry(first, struct kxfer_active_job, deadline_node);
	if (job->deadline_ns > now_ns) {
		kxfer_deadline_arm(deadline, job->deadline_ns);
		return NULL;
	}
	kxfer_deadline_remove(deadline, job);
	return job;
}

/**
 * kxfer_deadline_end_some() - end jobs whose deadline has passed
 * @deadline: of the place, from its work
 * @now_ns: ktime_get_ns()
 * @end: called for each; puts those to be completed into @ended
 * @ended: the caller completes them without the lock
 *
 * Return: false: there are no more, and the work is due for the next deadline; true: there
 * may be more, and the caller calls again after it has let go of the lock.
 */
bool kxfer_deadline_end_some(struct kxfer_deadline *deadline, u64 now_ns,
			     void (*end)(struct kxfer_active_job *, struct kxfer_job_list *),
			     struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;
	u32 n;

	for (n = 0; n < BATCH; n++) {
		job = take_passed(deadline, now_ns);
		if (!job)
			return false;
		end(job, ended);
	}
	return true;
}
