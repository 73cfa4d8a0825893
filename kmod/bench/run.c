// SPDX-License-Identifier: GPL-2.0
/*
 * The loop of a measuring run (bench.c): it posts operations that run_wr.c has built, and
 * counts them as they complete.
 *
 * The loop works in turns. On a polled lane the run owns the CQ during a turn (cq.c), for at
 * most a millisecond. A turn without completions ends in a sleep until there is one. With
 * KXFER_CONTEXT_DIRECT no other context polls the CQ, so the next turn follows at once. On
 * other lanes a turn posts, and sleeps until completions, handled in the lane's context, have
 * made room.
 *
 * Between turns the run yields the CPU if needed, and checks for signals, a withdrawal and
 * the time limit. Each of these stops the run. A stopped run still posts up to the next
 * signalled operation, so that it sees the completion of all that was posted: one QP
 * completes in order, so an unsignalled work request is done when a later one is.
 * kxfer_lane_stuck() counts only completions. So it takes a slow peer for stuck if @signal
 * operations take longer than KXFER_STUCK_MS.
 *
 * A peer that lets one operation complete now and then is not stuck (kxfer_lane_stuck()), and
 * could delay a stopped run by up to two hours. On a lane of a target, runs accept that, as
 * jobs do. A dedicated connection has no other user, so it is ended KXFER_STUCK_MS after the
 * stop, or KILLED_MS after it if the process is killed. To check for this, no sleep is longer
 * than SLEEP_MS.
 *
 * Context: a call; may sleep. Completions come from one caller at a time: the owner of a
 * polled CQ, else the lane's context.
 */
#include <asm/barrier.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>

#include "base/fault.h"
#include "bench/dedicated.h"
#include "bench/mrs.h"
#include "bench/run.h"
#include "bench/run_rw.h"
#include "job/job.h"
#include "job/target.h"
#include "link/link.h"

#define SLEEP_MS	10	/* longest sleep for room */
#define KILLED_MS	1000	/* for a killed run to complete; then its connection ends */
#define POST_MAX	64	/* operations posted at once, or @depth if that is more */

/* ---- the lane ---- */

static void drained(struct kxfer_lane *lane)
{
	kxfer_run_rw_close(lane);
	kxfer_mrs_close(lane);
}

static const struct kxfer_lane_user run_user = {
	.owner = THIS_MODULE,
	.drained = drained,
};

/** kxfer_run_have_lane_locked() - mark a lane, whose lock is held, as taken exclusively */
void kxfer_run_have_lane_locked(struct kxfer_lane *lane)
{
	lane->exclusive = &run_user;
}

/** kxfer_run_leave_lane_locked() - clear that mark; the run's MRs and contexts are destroyed */
void kxfer_run_leave_lane_locked(struct kxfer_lane *lane)
{
	lane->exclusive = NULL;
}

/* ---- completions ---- */

/* See KXFER_BENCH_NR_BUCKETS. */
static u32 bucket_of(u64 ns)
{
	u32 value = min_t(u64, ns, U32_MAX), shift;

	if (value < 256)
		return value;
	shift = fls(value) - 8;
	return shift * 128 + (value >> shift);
}

/* On schedule the latency of an operation counts from when it was due. */
static void count_latencies(struct kxfer_run *run, u32 nr, u64 now_ns)
{
	const u64 *begun_ns = run->paced ? run->due : run->posted_ns;

	for (; nr; nr--) {
		run->histogram[bucket_of(now_ns - begun_ns[run->done_mark])]++;
		if (run->posted_histogram)
			run->posted_histogram[bucket_of(now_ns -
							run->posted_ns[run->done_mark])]++;
		if (++run->done_mark == run->cmd->depth)
			run->done_mark = 0;
	}
}

/**
 * kxfer_run_note_done() - note how long operations took that are done now
 * @run: run in a phase; by one caller at a time
 * @nr: number of operations
 * @now_ns: time when that was found
 *
 * Any context.
 */
void kxfer_run_note_done(struct kxfer_run *run, u32 nr, u64 now_ns)
{
	if (run->nr_samples < run->room)
		run->samples[run->nr_samples++] = min_t(u64, now_ns - run->last_ns, U32_MAX);
	if (run->counts)
		count_latencies(run, nr, now_ns);
	run->last_ns = now_ns;
}

/* @done: operations that are done now, more than before; but see run_echo.c. */
static void count_done(struct kxfer_run *run, u32 done, u64 now_ns)
{
	if (!(run->cmd->flags & KXFER_BENCH_F_PING))
		kxfer_run_note_done(run, done - run->done, now_ns);
	/* Once the last one is visible the run may be freed: do not use it after this. */
	smp_store_release(&run->done, done);
}

/* A work request has completed, or an answer has come. After the last the run may be freed. */
static void look_what_is_done(struct kxfer_run *run, u64 now_ns)
{
	struct kxfer_lane *lane = run->lane;
	struct kxfer_link *link = lane->link;
	u32 done = run->awaits ? min(run->acked, run->answered) : run->acked;

	WRITE_ONCE(lane->heard_ns, now_ns);
	/* Without the lane's lock: no chains are posted, which count under it. */
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	if (done == run->done)
		return;
	count_done(run, done, now_ns);
	/* wq_has_sleeper() and wait_event() are full barriers between @done and @run_want. */
	if (wq_has_sleeper(&link->wait) && done >= READ_ONCE(lane->run_want))
		wake_up_all(&link->wait);
}

static void failed(struct kxfer_run *run, const struct ib_wc *wc)
{
	if (wc->status == IB_WC_REM_ACCESS_ERR || wc->status == IB_WC_REM_INV_REQ_ERR ||
	    wc->status == IB_WC_REM_OP_ERR)
		WRITE_ONCE(run->error, -EREMOTEIO);
	kxfer_lane_wc_error(run->lane, wc, "work request of a run");
}

/** kxfer_run_operation_done() - a signalled work request has completed; in the CQ's context */
void kxfer_run_operation_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_run *run = container_of(wc->wr_cqe, struct kxfer_run, cqe);

	kxfer_fault_wc(BENCH_DONE, wc);
	if (wc->status != IB_WC_SUCCESS) {
		failed(run, wc);
		return;
	}
	run->acked = min(run->acked + run->signal, READ_ONCE(run->end));
	look_what_is_done(run, kxfer_cq_now_ns(&run->lane->cq));
}

/** kxfer_run_answered() - the responder has answered a message; in the CQ's context */
void kxfer_run_answered(struct kxfer_run *run)
{
	run->answered++;
	look_what_is_done(run, kxfer_cq_now_ns(&run->lane->cq));
}

/* ---- the loop ---- */

static void note_post(struct kxfer_run *run, u32 nr)
{
	u64 now_ns = ktime_get_ns();

	while (nr--) {
		run->posted_ns[run->mark] = now_ns;
		if (++run->mark == run->cmd->depth)
			run->mark = 0;
	}
}

/* The QP to post to: UD messages have their own. Called with the lane's lock held. */
static struct ib_qp *qp_of(const struct kxfer_run *run)
{
	return kxfer_run_by_ud(run) ? run->dedicated->ud.qp : run->lane->qp;
}

/* Called with the lane's lock held. Return: false if the link fails. */
static bool post_locked(struct kxfer_run *run, u32 nr)
{
	struct ib_send_wr *first = NULL, *last = NULL;
	struct kxfer_lane *lane = run->lane;
	struct kxfer_run_post post;
	u32 nr_wr = 0;

	if (!lane->open || !kxfer_link_is_live(lane->link))
		return false;
	if (run->histogram)
		note_post(run, nr);
	while (nr--) {
		if (kxfer_run_prepare_locked(run, &post)) {
			kxfer_link_fail(lane->link, -EIO);
			return false;
		}
		if (last)
			last->next = post.first;
		else
			first = post.first;
		last = post.last;
		nr_wr += post.nr;
		run->posted++;
		if (run->posted % run->signal == 0 || run->posted == run->end)
			last->send_flags |= IB_SEND_SIGNALED;
	}
	last->next = NULL;
	if (kxfer_lane_post_to_locked(lane, qp_of(run), first, nr_wr))
		return false;
	return !kxfer_run_has_messages(run) || kxfer_run_posted_locked(run);
}

/**
 * kxfer_run_post() - post the next operations
 * @run: run on its lane
 * @nr: number of operations; there is room for them, and they are ready
 *
 * Does not sleep. Return: false if the link fails.
 */
bool kxfer_run_post(struct kxfer_run *run, u32 nr)
{
	bool ok;

	spin_lock_bh(&run->lane->lock);
	ok = post_locked(run, nr);
	spin_unlock_bh(&run->lane->lock);
	return ok;
}

/* Number of operations of the next post. */
static u32 next_list(const struct kxfer_run *run)
{
	return min(run->cmd->list, run->end - run->posted);
}

/* Is there room for the next post, and is it ready? */
static bool may_post(const struct kxfer_run *run)
{
	u32 nr = next_list(run);

	return run->posted < run->end && run->posted + nr <= run->ready &&
	       run->posted - READ_ONCE(run->done) + nr <= run->cmd->depth;
}

/* Value of @done with which the run can go on: with room for a post, or at the end. */
static u32 next_done(const struct kxfer_run *run)
{
	return run->posted == run->end ? run->end :
	       run->posted + next_list(run) - run->cmd->depth;
}

/*
 * Post all that there is room for, but not endlessly: a software provider may carry out
 * operations while they are posted, which makes room at once. Another task that wants the CPU
 * waits for one list. Return: false if the link fails.
 */
static bool post_all(struct kxfer_run *run)
{
	u32 max = max_t(u32, run->cmd->depth, POST_MAX), total = 0, nr;

	run->starved = false;
	while (total < max && may_post(run) && !(total && need_resched())) {
		nr = next_list(run);
		if (kxfer_run_has_messages(run) && kxfer_run_lacks_receives(run, nr))
			break;
		if (!kxfer_run_post(run, nr))
			return false;
		total += nr;
	}
	return true;
}

/* Could post_all() have posted more? It stops early for another task, or at its limit. */
static bool goes_on_posting(const struct kxfer_run *run)
{
	return !run->starved && may_post(run);
}

/* What to wait for: that *@count, which completions raise, reaches @want. */
struct awaited {
	const u32 *count;
	u32 want;
};

/* Is there more to do for the owner of the CQ? It cannot make contexts ready. */
static bool goes_on(const struct kxfer_run *run)
{
	return run->posted == run->end ? run->done != run->end :
	       run->posted + next_list(run) <= run->ready;
}

/** kxfer_run_lacks_contexts() - is there room for operations without contexts yet? */
bool kxfer_run_lacks_contexts(const struct kxfer_run *run)
{
	return run->rw && run->ready < min_t(u64, run->end,
					     (u64)READ_ONCE(run->done) + run->cmd->depth);
}

/* A run that lacks receives waits for the responder's status, else for operations. */
static struct awaited next_awaited(const struct kxfer_run *run)
{
	if (run->starved)
		return (struct awaited) { &run->dedicated->nr_read, run->dedicated->nr_asked };
	return (struct awaited) { &run->done, next_done(run) };
}

/** kxfer_run_is_alone() - @alone of kxfer_cq_wait: the run has the lane as long as it is open */
bool kxfer_run_is_alone(void *of)
{
	const struct kxfer_run *run = of;
	bool open;

	spin_lock_bh(&run->lane->lock);
	open = run->lane->open;
	spin_unlock_bh(&run->lane->lock);
	return open;
}

/* Called by the owner of the CQ. Return: awaited count; @want: its value before polling */
static struct awaited take_turn(struct kxfer_run *run)
{
	struct awaited last = { &run->done, READ_ONCE(run->done) }, next;
	struct kxfer_cq *cq = &run->lane->cq;
	u64 now_ns = ktime_get_ns();
	u64 until_ns = now_ns + KXFER_RUN_TURN_NS;

	do {
		if (!post_all(run))
			break;
		next = next_awaited(run);
		last = (struct awaited) { next.count, READ_ONCE(*next.count) };
		kxfer_cq_poll(cq, &(struct kxfer_cq_wait) {
			.done = next.count,
			.want = next.want,
			.until_ns = now_ns + KXFER_RUN_LOOK_NS,
			.alone = kxfer_run_is_alone,
			.of = run,
		});
		now_ns = cq->now_ns;
	} while (READ_ONCE(*last.count) != last.want && goes_on(run) && !need_resched() &&
		 now_ns < until_ns);
	return last;
}

/* A turn of a run without a lane: count operations that do nothing. */
static void take_empty_turn(struct kxfer_run *run)
{
	u64 until_ns = ktime_get_ns() + KXFER_RUN_TURN_NS;

	do {
		run->posted++;
		count_done(run, run->posted, ktime_get_ns());
	} while (run->done != run->end && !need_resched() && run->last_ns < until_ns);
}

/* A turn of the owner of the CQ. Gives the CQ up, and sleeps if nothing completes. */
static void work_polling(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane->link;
	struct awaited last = take_turn(run);

	kxfer_cq_disown(&run->lane->cq);
	if (run->lane->cq.direct)
		return;
	/* A previous owner of the CQ may have counted the last completion before this turn. */
	if (READ_ONCE(*last.count) != last.want || READ_ONCE(run->done) == run->end ||
	    kxfer_run_lacks_contexts(run) || goes_on_posting(run) || need_resched() ||
	    !kxfer_link_is_live(link))
		return;
	if (last.count == &run->done)
		WRITE_ONCE(run->lane->run_want, last.want + 1);
	wait_event_timeout(link->wait,
			   READ_ONCE(*last.count) != last.want || kxfer_link_is_dead(link),
			   msecs_to_jiffies(SLEEP_MS));
}

/* A turn on a CQ whose completions are handled in another context. */
static void work_sleeping(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane->link;
	struct awaited next;

	if (!post_all(run) || goes_on_posting(run))
		return;
	next = next_awaited(run);
	if (next.count == &run->done)
		WRITE_ONCE(run->lane->run_want, next.want);
	wait_event_timeout(link->wait,
			   READ_ONCE(*next.count) >= next.want || kxfer_link_is_dead(link),
			   msecs_to_jiffies(SLEEP_MS));
}

static void work_a_turn(struct kxfer_run *run)
{
	if (!run->lane)
		take_empty_turn(run);
	else if (run->rw && !kxfer_run_rw_ready(run))
		return;
	else if (run->paced)
		kxfer_run_paced_turn(run);
	else if (run->echo.in && kxfer_run_echo_turn(run))
		return;
	else if (kxfer_cq_own(&run->lane->cq))
		work_polling(run);
	else
		work_sleeping(run);
}

/* Return: reason to begin no more operations: -errno, 1: the time is over, 0: none */
static int reason_to_stop(const struct kxfer_run *run)
{
	if (signal_pending(current))
		return -EINTR;
	if (run->target && READ_ONCE(run->target->revoked))
		return -EKEYREVOKED;
	return ktime_get_ns() >= run->deadline_ns;
}

/** kxfer_run_stop() - begin no more operations; @over: -errno, or 1: the time is over */
void kxfer_run_stop(struct kxfer_run *run, int over)
{
	run->over = over;
	run->stopped = true;
	run->stopped_ns = ktime_get_ns();
}

/* A stopped run ends with a signalled operation, so that all completions are seen. */
static void stop_if_need_be(struct kxfer_run *run)
{
	int over;

	if (run->stopped)
		return;
	over = reason_to_stop(run);
	if (!over)
		return;
	kxfer_run_stop(run, over);
	if (run->paced && run->posted < run->end) {
		kxfer_run_paced_close(run);
		run->last_ns = run->stopped_ns;
	}
	WRITE_ONCE(run->end, min(run->end, roundup(run->posted, run->signal)));
}

/* Has a stopped run waited too long for its dedicated connection? */
static bool waits_too_long(const struct kxfer_run *run)
{
	u64 max_ms = fatal_signal_pending(current) ? KILLED_MS : KXFER_STUCK_MS;

	return run->stopped && run->dedicated &&
	       ktime_get_ns() - run->stopped_ns > max_ms * NSEC_PER_MSEC;
}

/* Post and wait until the phase ends. Return: 0, or the error of the link. */
static int work(struct kxfer_run *run)
{
	struct kxfer_link *link = run->lane ? run->lane->link : NULL;

	for (;;) {
		stop_if_need_be(run);
		/* Pairs with count_done(): the counts of the last operation are visible. */
		if (smp_load_acquire(&run->done) == run->end && !kxfer_run_echo_listens(run))
			return 0;
		if (waits_too_long(run))
			kxfer_link_fail(link, -ETIMEDOUT);
		if (link && !kxfer_link_is_live(link)) {
			wait_event(link->wait, kxfer_link_is_dead(link));
			return READ_ONCE(run->error) ?: kxfer_link_job_error(link);
		}
		work_a_turn(run);
		cond_resched();
	}
}

/**
 * kxfer_run_phase() - post operations and wait until they are done
 * @run: run on its lane, or without one
 * @count: number of operations; a run that is stopped already does none
 * @room: number of samples to take at most
 * @counts: count the operations in the histogram, if any, and follow the schedule, if any
 *
 * Return: ns from the first post, or the start of a schedule, to the last completion, or to
 * the time limit of a schedule; or the error of the link.
 */
s64 kxfer_run_phase(struct kxfer_run *run, u32 count, u32 room, bool counts)
{
	u64 start_ns;
	int ret;

	run->posted = 0;
	run->acked = 0;
	run->answered = 0;
	run->done = 0;
	run->end = run->stopped ? 0 : count;
	run->ready = run->rw || run->echo.in ? 0 : run->end;
	run->nr_samples = 0;
	run->room = room;
	run->counts = counts && run->histogram;
	run->mark = 0;
	run->done_mark = 0;
	start_ns = ktime_get_ns();
	run->last_ns = start_ns;
	kxfer_run_echo_begin(run);
	run->paced = counts && run->cmd->interval_ps;
	if (run->paced)
		kxfer_run_paced_begin(run, start_ns);
	if (run->paced && run->stopped)
		kxfer_run_paced_close(run);
	ret = work(run);
	return ret ?: run->last_ns - start_ns;
}
