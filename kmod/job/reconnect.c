// SPDX-License-Identifier: GPL-2.0
/*
 * Reconnecting: the work of a line, which finds a new link for its waiting jobs (line.c).
 *
 * It connects, with a random pause that grows from KXFER_BACKOFF_MIN_MS to BACKOFF_MAX_MS; has the
 * peer end the old link (link/fence.c); has the targets granted again (target.c); and puts the jobs
 * on the lanes of the new link, in their order.
 *
 * A target is granted again if its name leads to the same export: of the same node since its module
 * was loaded, the same number there, the same length and rights. Else its jobs end with
 * -EKEYREVOKED. The length of a mailbox is that of its longest message, which depends on the
 * devices of the link, so it may be another: a waiting message that is longer ends with -EMSGSIZE.
 *
 * Several paths (path.c). When a link breaks the next path is tried, and each at once until all
 * were. Then comes a pause. While the link goes over another path than the first, the work tries
 * to connect over the first from time to time, and moves there: it holds new jobs back, as if the
 * link were down; waits, MOVE_MS at most, until what was posted has had its effect (flow.c); and
 * has all targets granted on the new link, which it has tried before. If that takes longer, or if a
 * target would not be granted there, all stays as it was. A flow that never becomes quiet, because
 * LOCAL_ONLY WRITEs on iWARP are never known to be placed, stays until its link breaks. Once the
 * peer has the new link, new jobs are held back until no target is on the old one.
 *
 * Works wait for peers. So they have a workqueue of their own, and those of one user are at most
 * max_reconnects_per_uid at a time: the others of that user wait for their turn, those of other
 * users do not. A work acts for the caller of PEER_OPEN, with its capabilities: what it takes
 * counts against the shares of the user as in a call (user.c).
 *
 * The end: a work looks whether its line is closed after two steps of STEP_MS for each path.
 *
 * Context: works may sleep. Lock order: as in job.c.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/workqueue.h>

#include "base/fault.h"
#include "job/line.h"
#include "job/path.h"
#include "job/peer.h"
#include "job/reconnect.h"
#include "job/target.h"
#include "link/fence.h"
#include "link/link.h"
#include "node/session.h"
#include "node/user.h"

#define BACKOFF_MAX_MS	10000
#define STEP_MS		2000	/* longest wait for one answer of the peer */
#define HOME_MIN_MS	5000	/* between two looks at the first path */
#define HOME_MAX_MS	60000
#define MOVE_MS		1000	/* longest that jobs are held back to change the path */

/* Works wait for peers: they must not delay those that end links. */
static struct workqueue_struct *line_wq;

/** kxfer_reconnect_init() - make the workqueue. Return: 0 or -ENOMEM */
int kxfer_reconnect_init(void)
{
	line_wq = kxfer_try_alloc(LINE_WORKQUEUE,
				  alloc_workqueue("kxfer_line", WQ_UNBOUND, WQ_MAX_ACTIVE));
	return line_wq ? 0 : -ENOMEM;
}

/** kxfer_reconnect_exit() - destroy the workqueue; no line exists */
void kxfer_reconnect_exit(void)
{
	destroy_workqueue(line_wq);
}

/**
 * kxfer_reconnect_queue() - have the work of a line run
 * @line: line that is not closed; the caller holds the session's job_lock
 * @delay_ms: after this time, whatever was queued before
 */
void kxfer_reconnect_queue(struct kxfer_line *line, u32 delay_ms)
{
	mod_delayed_work(line_wq, &line->work, msecs_to_jiffies(delay_ms));
}

/* Whether a refused grant means that the export is not there any more, or is another. */
static bool is_final(int error)
{
	switch (error) {
	case -ENOENT:
	case -EACCES:
	case -EKEYREVOKED:
	case -EINVAL:
	case -EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

/* Have a target granted again. Return: 0: it is, or its jobs have ended; -errno: try again. */
static int renew(struct kxfer_line *line, struct kxfer_target *target, struct kxfer_link *link,
		 unsigned long end)
{
	int ret = 0;

	/* Pairs with teardown_work(). */
	if (smp_load_acquire(&target->link->ended))
		ret = kxfer_fence_close(link, target->link, kxfer_left_ms(end));
	else if (!kxfer_target_is_quiet(target))
		ret = -EAGAIN;
	if (ret)
		return ret;
	ret = kxfer_target_renew(target, link, end);
	/* Another caller was first, or the target is closed. */
	if (ret == -ESTALE)
		return 0;
	if (!ret)
		kxfer_story_tell(line, KXFER_LINE_RENEWED, link->id, 0, 1);
	if (!is_final(ret))
		return ret;
	kxfer_story_tell(line, KXFER_LINE_REVOKED, link->id, ret, 1);
	kxfer_line_end_target(line, target);
	return 0;
}

/**
 * kxfer_reconnect_target() - have a target granted again that a call needs
 * @target: target of a line, whose link is not live any more; the caller has a reference
 * @timeout_ms: longest wait for the peer
 *
 * Does what the work does for the first waiting job; both may do so at the same time, and
 * kxfer_target_renew() lets one of them win. May sleep. Return: 0: another target has the id now,
 * or this one is revoked; or -errno: try again.
 */
int kxfer_reconnect_target(struct kxfer_target *target, unsigned int timeout_ms)
{
	unsigned int step_ms = min_t(unsigned int, timeout_ms, STEP_MS);
	unsigned long end = jiffies + msecs_to_jiffies(step_ms);
	struct kxfer_link *link = kxfer_peer_link(target->peer, step_ms);
	int ret = 0;

	if (IS_ERR(link))
		return PTR_ERR(link);
	if (link != target->link)
		ret = kxfer_paths_features(target->peer->paths) & ~link->features ?
		      -EPROTONOSUPPORT : renew(target->line, target, link, end);
	kxfer_link_unuse(link);
	return ret;
}

/* A slow peer does not hold the work for all targets in a row: other lines have their turn. */
static int resume(struct kxfer_line *line, struct kxfer_link *link)
{
	unsigned long end = jiffies + msecs_to_jiffies(STEP_MS);
	struct kxfer_active_job *job;
	struct kxfer_target *target;
	int ret;

	do {
		job = kxfer_line_take_first(line, link, &target);
		if (target) {
			ret = renew(line, target, link, jiffies + msecs_to_jiffies(STEP_MS));
			kxfer_target_put(target);
		} else {
			ret = job ? kxfer_line_go_on(job) : 0;
		}
		if (!ret && target && time_after(jiffies, end))
			ret = -EAGAIN;
	} while (!ret && (job || target));
	return ret;
}

/* Have all targets of a moving line granted again. Return: 0 or -errno: try again. */
static int move_targets(struct kxfer_line *line, struct kxfer_link *link)
{
	unsigned long end = jiffies + msecs_to_jiffies(STEP_MS), id = 0;
	struct kxfer_target *target;
	int ret = 0;

	while (!ret) {
		target = time_after(jiffies, end) ? ERR_PTR(-EAGAIN) :
			 kxfer_target_behind(line->peer, link, &id, end);
		if (IS_ERR_OR_NULL(target))
			return PTR_ERR_OR_ZERO(target);
		ret = renew(line, target, link, end);
		kxfer_target_put(target);
	}
	return ret;
}

static int go_on_over(struct kxfer_line *line, struct kxfer_link *link)
{
	int ret;

	if (kxfer_paths_features(line->peer->paths) & ~link->features)
		return -EPROTONOSUPPORT;
	if (READ_ONCE(line->moving)) {
		ret = move_targets(line, link);
		if (ret)
			return ret;
		kxfer_line_let_go(line);
	}
	return resume(line, link);
}

/* Return: 0: no job waits any more; or -errno: try again. */
static int find_link(struct kxfer_line *line)
{
	u32 left = line->peer->paths->nr;
	struct kxfer_link *link;
	int ret;

	do {
		kxfer_delay(LINE_TRY);
		if (!kxfer_line_is_down(line))
			return 0;
		link = kxfer_peer_try_link(line->peer, STEP_MS);
	} while (IS_ERR(link) && --left);
	if (IS_ERR(link))
		return PTR_ERR(link);
	ret = go_on_over(line, link);
	kxfer_link_unuse(link);
	return ret;
}

/* Called with job_lock held, for a line that is down. Return: ms until the next try */
static u32 next_pause(struct kxfer_line *line)
{
	u32 half_ms = line->backoff_ms / 2;

	line->backoff_ms = min_t(u32, 2 * line->backoff_ms, BACKOFF_MAX_MS);
	return half_ms + get_random_u32() % half_ms;
}

static void try_later(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;

	spin_lock_bh(&session->job_lock);
	/* In place of what kxfer_reconnect_home() has queued. */
	if (line->down && !line->closed)
		kxfer_reconnect_queue(line, next_pause(line));
	spin_unlock_bh(&session->job_lock);
}

/* ---- back to the first path ---- */

/* Wait until all targets that are not on @link are quiet. Return: whether they are. */
static bool wait_quiet(struct kxfer_line *line, const struct kxfer_link *link)
{
	unsigned long end = jiffies + msecs_to_jiffies(MOVE_MS);

	kxfer_delay(LINE_MOVE);
	while (!kxfer_target_all_quiet(line->peer, link, end)) {
		if (time_after(jiffies, end) || kxfer_line_is_closed(line))
			return false;
		usleep_range(500, 1000);
	}
	return true;
}

/*
 * Whether all targets would be granted on @link. The exporter's rules may allow the peer's other
 * address alone, or the device of the first path may lack something.
 */
static bool would_be_granted(struct kxfer_line *line, struct kxfer_link *link)
{
	unsigned long end = jiffies + msecs_to_jiffies(STEP_MS), id = 0;
	struct kxfer_target *target;
	int ret;

	do {
		target = kxfer_target_behind(line->peer, link, &id, end);
		if (IS_ERR_OR_NULL(target))
			return !target;
		ret = kxfer_target_try_renew(target, link, end);
		kxfer_target_put(target);
	} while (!ret && time_before(jiffies, end));
	return false;
}

/* Make the link over the first path that of the peer, if nothing speaks against it. */
static void move_home(struct kxfer_line *line)
{
	struct kxfer_link *link = kxfer_peer_try_first(line->peer, STEP_MS);

	if (IS_ERR(link))
		return;
	if (!(kxfer_paths_features(line->peer->paths) & ~link->features) &&
	    would_be_granted(line, link) && kxfer_line_hold(line, MOVE_MS + 2 * STEP_MS)) {
		if (wait_quiet(line, link))
			kxfer_peer_go_first(line->peer, link);
		else
			kxfer_line_let_go(line);
	}
	kxfer_link_unuse(link);
}

static void look_later(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;
	long left = line->home_at - jiffies;

	spin_lock_bh(&session->job_lock);
	if (!line->down && !line->closed)
		queue_delayed_work(line_wq, &line->work, max(left, 0L));
	spin_unlock_bh(&session->job_lock);
}

/* Whether it is time to look at the first path. If not, and it is away, that comes later. */
static bool is_due(struct kxfer_line *line)
{
	if (!kxfer_peer_is_away(line->peer)) {
		line->home_ms = 0;
		return false;
	}
	if (line->home_ms && time_after_eq(jiffies, line->home_at)) {
		line->home_ms = min_t(u32, 2 * line->home_ms, HOME_MAX_MS);
		line->home_at = jiffies + msecs_to_jiffies(line->home_ms);
		return true;
	}
	if (!line->home_ms) {
		line->home_ms = HOME_MIN_MS;
		line->home_at = jiffies + msecs_to_jiffies(line->home_ms);
	}
	look_later(line);
	return false;
}

/* Return: 0: no job waits; or -errno: try again. */
static int look_home(struct kxfer_line *line)
{
	int ret;

	if (!is_due(line))
		return 0;
	move_home(line);
	/* Jobs were held back, or the link broke meanwhile. */
	ret = find_link(line);
	if (!ret)
		is_due(line);
	return ret;
}

/**
 * kxfer_reconnect_home() - the peer's link goes over another path than the first
 * @line: line that is not freed meanwhile
 *
 * Its work tries to go back, after a while.
 */
void kxfer_reconnect_home(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;

	spin_lock_bh(&session->job_lock);
	if (!line->closed)
		queue_delayed_work(line_wq, &line->work, 0);
	spin_unlock_bh(&session->job_lock);
}

/*
 * The user's other lines are at work. The pauses grow: a user may have very many lines, whose works
 * would do nothing but come back.
 */
static void wait_for_turn(struct kxfer_line *line)
{
	struct kxfer_session *session = line->peer->session;

	spin_lock_bh(&session->job_lock);
	if (!line->closed)
		kxfer_reconnect_queue(line, line->down ? next_pause(line) : HOME_MIN_MS);
	spin_unlock_bh(&session->job_lock);
}

static void look(struct kxfer_line *line)
{
	int ret = find_link(line) ?: look_home(line);

	/* -EAGAIN: this end or the peer has not ended the old link yet. */
	if (ret && ret != -EAGAIN)
		kxfer_story_tell(line, KXFER_LINE_TRIED, 0, ret, 1);
	if (ret)
		try_later(line);
}

/**
 * kxfer_reconnect_work() - the work of a line
 * @work: kxfer_line.work
 *
 * Acts for the caller of PEER_OPEN: its capabilities and its memory cgroup count.
 */
void kxfer_reconnect_work(struct work_struct *work)
{
	struct kxfer_line *line = container_of(to_delayed_work(work), struct kxfer_line, work);
	struct kxfer_user *user = line->peer->session->user;
	struct mem_cgroup *memcg = set_active_memcg(line->memcg);
	const struct cred *cred = override_creds(line->cred);

	if (kxfer_user_take(user, KXFER_SHARE_RECONNECTS)) {
		wait_for_turn(line);
	} else {
		look(line);
		kxfer_user_return(user, KXFER_SHARE_RECONNECTS, 1);
	}
	revert_creds(cred);
	set_active_memcg(memcg);
}
