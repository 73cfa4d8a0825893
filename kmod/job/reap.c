// SPDX-License-Identifier: GPL-2.0
/*
 * Reaping: how a session waits for completions, and takes them.
 *
 * A completion belongs to the session until it is stored in user memory; one that
 * cannot be stored stays and can be reaped again. Completions are stored under job_lock, so each
 * is stored once, and in order. Page faults are off then. If a page is not there, the lock is
 * dropped to bring it in, and the completion is tried again. With a completion ring (ring.c)
 * completions are only waited for here.
 *
 * A waiter polls for completions first, if the lane of the oldest job that is on a lane
 * lets sessions poll (cq.c), and then sleeps. By default the polling tunes itself: it
 * may take twice as long as it took when it last paid, and half as long when it did
 * not. When nothing is left of that it is tried again now and then. So a slow peer
 * burns no CPU. A provider that works in a kworker of the same CPU gets the CPU: the
 * waiter steps aside (cq.c) if all jobs on the lane are its session's; else polling ends
 * when the CPU is wanted.
 *
 * Context: calls of users; may sleep. Lock order: as in job.c.
 */
#include <linux/minmax.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "job/done.h"
#include "job/job.h"
#include "job/quick.h"
#include "job/reap.h"
#include "job/ring.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/session.h"
#include "node/user.h"

#define LOOK_MAX_NS	50000	/* about what a sleep and a wake-up by interrupt cost */
#define LOOK_MIN_NS	1000	/* a shorter time is not worth polling for */
#define LOOK_RESTS	64	/* waits without polling before it is tried again */
#define LOOK_JOBS	64	/* most jobs to look at under job_lock */
#define LOOK_SLICE_NS	1000000	/* KXFER_WAIT_F_POLL: time between two checks for signals */
#define STORE_MAX	64	/* most completions stored in one hold of job_lock */
#define STORE_TRIES	16	/* for a page that is taken away again each time */

/** kxfer_reap_check_flags() - check flags of SUBMIT and REAP. Return: 0 or -errno */
int kxfer_reap_check_flags(u32 flags)
{
	if (flags & ~KXFER_WAIT_F_ALL)
		return -EOPNOTSUPP;
	return flags == KXFER_WAIT_F_ALL ? -EINVAL : 0;
}

/*
 * May be outdated at once. Reads without the lock: taking completions takes the lock, and
 * sees at least as many.
 */
static bool enough_done(struct kxfer_session *session, u32 want)
{
	return READ_ONCE(session->nr_done) >= want || !READ_ONCE(session->nr_jobs);
}

/* Return: the lane to poll, with a reference to its link; or NULL. */
static struct kxfer_lane *lane_in_flight(struct kxfer_session *session)
{
	struct kxfer_active_job *job;
	struct kxfer_lane *lane = NULL;
	u32 n = 0;

	/* Often: a receiver has many RECVs, and these are on no lane. */
	if (READ_ONCE(session->nr_jobs) == READ_ONCE(session->nr_recvs))
		return NULL;
	spin_lock_bh(&session->job_lock);
	lane = kxfer_quick_lane(session);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (lane || ++n == LOOK_JOBS)
			break;
		lane = job->lane;
	}
	if (lane)
		kxfer_link_ref(lane->link);
	spin_unlock_bh(&session->job_lock);
	return lane;
}

/* How long to poll. Threads of a session may race here, which does no harm. */
static u32 look_ns(struct kxfer_session *session)
{
	u32 ns = READ_ONCE(session->look_ns), rests = READ_ONCE(session->look_rests);

	if (ns)
		return ns;
	WRITE_ONCE(session->look_rests, rests + 1);
	return rests % LOOK_RESTS ? 0 : KXFER_LOOK_PROBE_NS;
}

static void learn(struct kxfer_session *session, u32 looked_ns, u64 took_ns, bool paid)
{
	u32 ns = looked_ns / 2;

	if (paid)
		ns = min_t(u64, max_t(u64, looked_ns, 2 * took_ns), LOOK_MAX_NS);
	WRITE_ONCE(session->look_ns, ns < LOOK_MIN_NS ? 0 : ns);
}

struct looker {
	struct kxfer_session *session;
	struct kxfer_lane *lane;
};

/*
 * Count the jobs of a session on a lane. Called with job_lock and the lane's lock held. Return: 0
 * if one of them waits for more than the provider, or if there are too many to look at: a message
 * is answered by works of the peer's module, and a withdrawal waits for jobs of its target.
 */
static u32 count_plain_jobs(const struct kxfer_session *session, const struct kxfer_lane *lane)
{
	struct kxfer_active_job *job;
	bool withdrawn = false;
	u32 nr = kxfer_quick_on(session, lane, &withdrawn), n = 0;

	if (withdrawn)
		return 0;
	list_for_each_entry(job, &session->jobs, session_node) {
		if (++n > LOOK_JOBS)
			return 0;
		if (job->lane != lane)
			continue;
		if (kxfer_job_is_answered(job) || job->target->revoked)
			return 0;
		nr++;
	}
	return nr;
}

/* struct kxfer_cq_wait's @alone: all jobs on the lane are of this session. */
static bool is_alone(void *of)
{
	struct looker *looker = of;
	struct kxfer_lane *lane = looker->lane;
	bool alone;
	u32 nr;

	spin_lock_bh(&looker->session->job_lock);
	spin_lock(&lane->lock);
	nr = count_plain_jobs(looker->session, lane);
	alone = lane->open && nr && nr == lane->nr_queued + lane->nr_posted;
	spin_unlock(&lane->lock);
	spin_unlock_bh(&looker->session->job_lock);
	return alone;
}

/* Poll for completions, for @ns. Return: false if there is no lane that sessions may poll. */
static bool look(struct kxfer_session *session, u32 want, u64 now_ns, u32 ns)
{
	struct looker looker = { session, lane_in_flight(session) };
	struct kxfer_cq_wait wait = {
		.done = &session->nr_done,
		.want = want,
		.until_ns = ns ? now_ns + ns : 0,
		.alone = is_alone,
		.of = &looker,
	};
	bool polled;

	if (!looker.lane)
		return false;
	polled = looker.lane->cq.polled;
	if (kxfer_cq_own(&looker.lane->cq)) {
		kxfer_cq_poll(&looker.lane->cq, &wait);
		kxfer_cq_disown(&looker.lane->cq);
	}
	kxfer_link_put(looker.lane->link);
	return polled;
}

/**
 * kxfer_reap_look() - poll once for completions of a session's jobs
 * @session: session; the lane polled is that of its oldest job on a lane
 *
 * Any context that may be preempted. Does nothing if another context polls the CQ, or if
 * sessions may not poll it.
 */
void kxfer_reap_look(struct kxfer_session *session)
{
	look(session, U32_MAX, 0, 0);
}

static void look_a_while(struct kxfer_session *session, u32 want)
{
	u64 began_ns = ktime_get_ns();
	u32 ns = look_ns(session);

	if (look(session, want, began_ns, ns) && ns)
		learn(session, ns, ktime_get_ns() - began_ns, enough_done(session, want));
}

static void look_until(struct kxfer_session *session, u32 want, u64 deadline_ns)
{
	u64 now_ns;

	do {
		cond_resched();
		now_ns = ktime_get_ns();
	} while ((!deadline_ns || now_ns < deadline_ns) &&
		 look(session, want, now_ns, LOOK_SLICE_NS) &&
		 !enough_done(session, want) && !signal_pending(current));
}

/**
 * kxfer_reap_wait() - wait for completions
 * @session: session of the caller
 * @want: completions to wait for; the waiting ends early when no job is in flight
 * @deadline_ns: end of the waiting, as by ktime_get_ns(); 0: none
 * @flags: KXFER_WAIT_F_*, checked
 *
 * May sleep, unless O_NONBLOCK is set. Return: 0, -ETIMEDOUT, -EINTR or -EAGAIN.
 */
int kxfer_reap_wait(struct kxfer_session *session, u32 want, u64 deadline_ns, u32 flags)
{
	if (!want || enough_done(session, want))
		return 0;
	if (kxfer_session_may_wait(session)) {
		kxfer_reap_look(session);
		return enough_done(session, want) ? 0 : -EAGAIN;
	}
	if (flags & KXFER_WAIT_F_POLL)
		look_until(session, want, deadline_ns);
	else if (!(flags & KXFER_WAIT_F_SLEEP))
		look_a_while(session, want);
	if (enough_done(session, want))
		return 0;
	return kxfer_session_wait(session, enough_done(session, want), deadline_ns);
}

/*
 * Store the first completions without page faults, @nr at most. Called with job_lock held. Return:
 * number of those that could be stored.
 */
static u32 store(const struct kxfer_session *session, struct kxfer_completion __user *to, u32 nr)
{
	u32 stored = 0;

	if (!user_write_access_begin(to, nr * sizeof(*to)))
		return 0;
	for (; stored < nr; to++, stored++) {
		const struct kxfer_completion *completion = kxfer_done_at(session, stored);

		unsafe_put_user(completion->user_data, &to->user_data, fault);
		unsafe_put_user(completion->bytes, &to->bytes, fault);
		unsafe_put_user(completion->status, &to->status, fault);
		unsafe_put_user(completion->op, &to->op, fault);
		unsafe_put_user(completion->submitted_ns, &to->submitted_ns, fault);
		unsafe_put_user(completion->completed_ns, &to->completed_ns, fault);
	}
fault:
	user_write_access_end();
	return stored;
}

/*
 * Take the first completions, as many as can be stored in memory that is there. Takes none if
 * there is a ring, which may have been made while the caller was waiting: then nr_done counts
 * completions in the ring. @max: in: at most STORE_MAX; out: completions that there were, up to
 * that number. Return: completions stored.
 */
static u32 store_some(struct kxfer_session *session, struct kxfer_completion __user *to, u32 *max)
{
	u32 stored = 0;

	spin_lock_bh(&session->job_lock);
	*max = session->ring ? 0 : min(*max, session->nr_done);
	if (*max) {
		pagefault_disable();
		stored = store(session, to, *max);
		pagefault_enable();
		WRITE_ONCE(session->nr_done, session->nr_done - stored);
	}
	spin_unlock_bh(&session->job_lock);
	return stored;
}

/**
 * kxfer_reap_store() - store completions in user memory
 * @session: session of the caller
 * @to: user address of an array of struct kxfer_completion
 * @max: entries of the array
 * @stored: out: completions stored; those that cannot be stored stay
 *
 * May sleep in page faults. Return: 0 or -EFAULT.
 */
int kxfer_reap_store(struct kxfer_session *session, u64 to, u32 max, u32 *stored)
{
	struct kxfer_completion __user *next = u64_to_user_ptr(to);
	u32 want, there, n, tries = 0;
	int ret = 0;

	*stored = 0;
	do {
		want = min_t(u32, max - *stored, STORE_MAX);
		there = want;
		n = store_some(session, next, &there);
		*stored += n;
		next += n;
		tries = n ? 0 : tries + 1;
		if (n < there && (tries > STORE_TRIES ||
				  fault_in_writeable((char __user *)next, sizeof(*next))))
			ret = -EFAULT;
	} while (!ret && *stored < max && (n < there || there == want));
	kxfer_user_return(session->user, KXFER_SHARE_JOBS, *stored);
	return ret;
}

/* With a ring there is nothing to take: wait until enough completions are unread in it. */
static int wait_for_ring(struct kxfer_session *session,
			 const struct kxfer_session_ring *ring, struct kxfer_reap *cmd)
{
	int ret;

	if (cmd->__reserved || cmd->nr || cmd->completions || cmd->wait > ring->entries)
		return -EINVAL;
	kxfer_ring_look(session);
	ret = kxfer_reap_wait(session, cmd->wait, cmd->deadline_ns, cmd->flags);
	kxfer_ring_waited();
	cmd->reaped = 0;
	return ret;
}

/** kxfer_reap() - KXFER_REAP */
int kxfer_reap(struct kxfer_session *session, void *arg)
{
	struct kxfer_session_ring *ring = kxfer_ring_of(session);
	struct kxfer_reap *cmd = arg;
	int waited, ret;

	ret = kxfer_reap_check_flags(cmd->flags);
	if (ret)
		return ret;
	if (ring)
		return wait_for_ring(session, ring, cmd);
	if (cmd->__reserved || !cmd->nr || cmd->nr > KXFER_REAP_MAX || cmd->wait > cmd->nr)
		return -EINVAL;
	waited = kxfer_reap_wait(session, cmd->wait, cmd->deadline_ns, cmd->flags);
	ret = kxfer_reap_store(session, cmd->completions, cmd->nr, &cmd->reaped);
	if (cmd->reaped)
		return 0;
	return ret ?: waited;
}
