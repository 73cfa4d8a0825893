// SPDX-License-Identifier: GPL-2.0
/*
 * A measuring run on schedule (bench.c). Operations begin when they are due, whether others
 * have ended or not, as far as there is room for them. An operation that waits for room is
 * late. Its latency counts from when it was due, so that the wait is included, and a second
 * time from when it was posted.
 *
 * A message also waits for a receive of the responder, and is late if that comes late.
 *
 * The loop works in turns, as in run.c. If the next operation is due soon and no other task
 * wants the CPU, the run polls the CQ, or else watches the clock. Otherwise it sleeps until
 * that time, or until an operation completes. Completions are counted by run.c.
 *
 * Context: a call; may sleep. Times are ktime_get_ns(). They are compared by difference,
 * because a late operation may have been due before the clock's zero.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>

#include "bench/dedicated.h"
#include "bench/run.h"
#include "link/lane.h"
#include "link/link.h"

#define NEAR_NS		100000	/* to the next operation: timers are no more exact */
#define SLEEP_NS	10000000	/* longest sleep; then signals and limits are checked */
#define POST_MAX	64	/* posts at once; then completions are handled */

/* Number of operations that may begin if they are due: ready, and with room. */
static u32 room(const struct kxfer_run *run)
{
	u32 free = run->cmd->depth - (run->posted - READ_ONCE(run->done));
	u32 until = min(run->end, run->ready);
	u32 nr = min3(run->cmd->list, free, until - min(until, run->posted));

	return kxfer_run_has_messages(run) ? min_t(u64, nr, kxfer_run_receives(run)) : nr;
}

/* Has an operation completed, or a status that the run waits for arrived? */
static bool has_moved(const struct kxfer_run *run, u32 before)
{
	return READ_ONCE(run->done) != before ||
	       (run->starved &&
		READ_ONCE(run->dedicated->nr_read) == run->dedicated->nr_asked);
}

static s64 ns_to_due(const struct kxfer_run *run, u64 now_ns)
{
	return run->due_ns - now_ns;
}

/* Take operations that are due off the schedule. Return: their number, at most @max */
static u32 take_due(struct kxfer_run *run, u32 max)
{
	u64 now_ns = ktime_get_ns();
	u32 nr = 0, mark = run->mark;

	while (nr < max && ns_to_due(run, now_ns) <= 0) {
		run->due[mark] = run->due_ns;
		if (++mark == run->cmd->depth)
			mark = 0;
		run->due_ns += run->interval_ns;
		run->due_ps += run->interval_ps;
		if (run->due_ps >= 1000) {
			run->due_ps -= 1000;
			run->due_ns++;
		}
		nr++;
	}
	return nr;
}

/* Post operations that are due, if there is room. Return: false if the link fails. */
static bool post_due(struct kxfer_run *run)
{
	u32 posts, nr;

	run->starved = false;
	for (posts = 0; posts < POST_MAX; posts++) {
		nr = take_due(run, room(run));
		if (!nr)
			break;
		if (!kxfer_run_post(run, nr))
			return false;
		if (run->posted == run->end)
			kxfer_run_paced_close(run);
	}
	/* If receives are missing this asks for the status, whose completion ends the wait. */
	if (kxfer_run_has_messages(run) && run->posted != run->end)
		kxfer_run_lacks_receives(run, 1);
	return true;
}

/* Must an operation begin so soon that a sleep would miss it? */
static bool is_near(const struct kxfer_run *run, u64 now_ns)
{
	return room(run) && ns_to_due(run, now_ns) < NEAR_NS;
}

/* Time until which to poll the CQ. */
static u64 look_until(const struct kxfer_run *run, u64 now_ns)
{
	s64 ns = ns_to_due(run, now_ns);

	return now_ns + (room(run) ? clamp_t(s64, ns, 1, KXFER_RUN_LOOK_NS) : KXFER_RUN_LOOK_NS);
}

/* Called by the owner of the CQ. */
static void take_turn(struct kxfer_run *run)
{
	struct kxfer_cq *cq = &run->lane->cq;
	u64 now_ns = ktime_get_ns();
	u64 until_ns = now_ns + KXFER_RUN_TURN_NS;
	u32 before;

	do {
		before = run->done;
		if (!post_due(run))
			return;
		if (run->posted == before && !is_near(run, now_ns))
			return;
		kxfer_cq_poll(cq, &(struct kxfer_cq_wait) {
			.done = &run->done,
			.want = before + 1,
			.until_ns = look_until(run, now_ns),
			.alone = kxfer_run_is_alone,
			.of = run,
		});
		now_ns = ktime_get_ns();
	} while (run->done != run->end && !need_resched() && now_ns < until_ns &&
		 (run->done != before || is_near(run, now_ns)) &&
		 (!run->rw || run->posted == run->end));
}

/* Watch the clock; completions are handled in another context. */
static void spin(const struct kxfer_run *run)
{
	u64 now_ns = ktime_get_ns();

	while (is_near(run, now_ns) && ns_to_due(run, now_ns) > 0 && !need_resched()) {
		cpu_relax();
		now_ns = ktime_get_ns();
	}
}

/* Sleep until the next operation is near, more than @before are done, or a status came. */
static void sleep_till_near(struct kxfer_run *run, u32 before)
{
	struct kxfer_link *link = run->lane->link;
	u64 now_ns = ktime_get_ns();
	s64 ns = SLEEP_NS;

	if (room(run))
		ns = min_t(s64, ns, ns_to_due(run, now_ns) - NEAR_NS);
	/* Keep the time limit. A stopped run only waits for what is under way. */
	if (!run->stopped)
		ns = min_t(s64, ns, run->deadline_ns - now_ns);
	if (ns <= 0)
		return;
	if (run->posted == before && !run->starved)
		kxfer_lane_rests(run->lane);
	WRITE_ONCE(run->lane->run_want, before + 1);
	wait_event_hrtimeout(link->wait, has_moved(run, before) || kxfer_link_is_dead(link),
			     ns_to_ktime(ns));
}

/**
 * kxfer_run_paced_turn() - post what is due, and wait for what comes next
 * @run: run on its lane, in a phase that kxfer_run_paced_begin() began
 */
void kxfer_run_paced_turn(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane->link;
	u32 before = READ_ONCE(run->done);

	if (kxfer_cq_own(&run->lane->cq)) {
		take_turn(run);
		kxfer_cq_disown(&run->lane->cq);
	} else {
		if (!post_due(run))
			return;
		spin(run);
	}
	if (READ_ONCE(run->done) != before || kxfer_run_lacks_contexts(run) || need_resched() ||
	    !kxfer_link_is_live(link))
		return;
	/* No other context would find the completions. */
	if (run->lane->cq.direct && (run->posted != before || run->starved))
		return;
	sleep_till_near(run, before);
}

/** kxfer_run_paced_begin() - begin a schedule at @start_ns, less the initial lateness */
void kxfer_run_paced_begin(struct kxfer_run *run, u64 start_ns)
{
	u32 rest_ps;

	run->interval_ns = div_u64_rem(run->cmd->interval_ps, 1000, &rest_ps);
	run->interval_ps = rest_ps;
	run->due_ns = start_ns - run->cmd->late_ns;
	run->due_ps = 0;
}

/** kxfer_run_paced_close() - no more operations begin: store how late the next one is */
void kxfer_run_paced_close(struct kxfer_run *run)
{
	run->late_ns = -ns_to_due(run, ktime_get_ns());
}
