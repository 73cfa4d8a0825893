// SPDX-License-Identifier: GPL-2.0
/*
 * Renewal: a target of a line is granted again on another link, and takes the place of the old one.
 *
 * reconnect.c decides when. The new target has the id of the old one, its place among the user's
 * targets, and its waiting jobs. It has to be of the same export (is_same()).
 *
 * Context: the work of a line, and calls that wait with it; may sleep. The session's lock is not
 * waited for beyond the caller's time.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kxfer.h>

#include "base/fault.h"
#include "job/flow.h"
#include "job/line.h"
#include "job/peer.h"
#include "job/story.h"
#include "job/target.h"
#include "job/trace.h"
#include "link/link.h"
#include "node/session.h"

/*
 * A call that holds the lock may wait for user memory for as long as its owner likes, and other
 * lines wait for this context.
 */
static bool lock_until(struct kxfer_session *session, unsigned long end)
{
	while (!down_write_trylock(&session->lock)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(500, 1000);
	}
	return true;
}

/**
 * kxfer_target_behind() - a target of a peer that is on another link
 * @peer: peer with a line
 * @link: link that all its targets are to be on
 * @id: ids up to this one are passed over; out: id of the target
 * @end: when to give up, in jiffies
 *
 * May sleep. Return: the target with a reference; NULL: there is none, but for those that are
 * withdrawn; or ERR_PTR(-EAGAIN).
 */
struct kxfer_target *kxfer_target_behind(struct kxfer_peer *peer, const struct kxfer_link *link,
					 unsigned long *id, unsigned long end)
{
	struct kxfer_session *session = peer->session;
	struct kxfer_target *target, *found = NULL;

	if (!lock_until(session, end))
		return ERR_PTR(-EAGAIN);
	xa_for_each_start(&session->targets, *id, target, *id + 1) {
		if (target->peer == peer && target->link != link && !READ_ONCE(target->revoked)) {
			kref_get(&target->ref);
			found = target;
			break;
		}
	}
	up_write(&session->lock);
	return found;
}

/**
 * kxfer_target_is_quiet() - whether nothing of a target's link can have an effect any more
 * @target: target of a line that holds all its jobs back
 *
 * That is so if all that was posted there for the session has had its effect. While the link goes
 * down it is not known.
 */
bool kxfer_target_is_quiet(struct kxfer_target *target)
{
	return kxfer_link_is_live(target->link) && kxfer_flow_is_quiet(target->flow);
}

/* Of a link that has ended nothing can come: a target without jobs stays there (reconnect.c). */
static bool may_leave(struct kxfer_target *target)
{
	/* Pairs with teardown_work(). */
	return smp_load_acquire(&target->link->ended) || kxfer_target_is_quiet(target);
}

/**
 * kxfer_target_all_quiet() - whether all targets of a peer may go to @link
 * @peer: peer of a line that holds all its jobs back
 * @link: link that they will be on
 * @end: when to give up, in jiffies
 *
 * May sleep.
 */
bool kxfer_target_all_quiet(struct kxfer_peer *peer, const struct kxfer_link *link,
			    unsigned long end)
{
	struct kxfer_session *session = peer->session;
	struct kxfer_target *target;
	bool quiet = true;
	unsigned long id;

	if (!lock_until(session, end))
		return false;
	xa_for_each(&session->targets, id, target) {
		if (target->peer == peer && target->link != link && !READ_ONCE(target->revoked))
			quiet = may_leave(target);
		if (!quiet)
			break;
	}
	up_write(&session->lock);
	return quiet;
}

/* Put a target in the place of another, which has only jobs that wait in the line. */
static int replace(struct kxfer_target *old, struct kxfer_target *fresh, unsigned long end)
{
	struct kxfer_session *session = old->peer->session;
	int ret;

	if (!lock_until(session, end))
		return -EAGAIN;
	ret = xa_load(&session->targets, old->id) == old ?
	      kxfer_target_make_flow(session, fresh) : -ESTALE;
	if (!ret) {
		fresh->id = old->id;
		fresh->counted = old->counted;
		old->counted = false;
		/* The entry is there: this needs no memory. */
		xa_store(&session->targets, fresh->id, fresh, GFP_KERNEL);
		session->last_target = NULL;
		kxfer_target_join_flow(session, fresh->flow);
		trace_kxfer_target(fresh, KXFER_TARGET_OPENED);
		kxfer_target_leave(session, old);
		kxfer_line_rebind(old, fresh);
	}
	up_write(&session->lock);
	return ret;
}

/* Messages are as long as the devices of both ends take, and the new link may be on others. */
static bool is_same(const struct kxfer_target *old, const struct kxfer_target *fresh)
{
	return fresh->node == old->node && fresh->export == old->export &&
	       fresh->rights == old->rights &&
	       (fresh->length == old->length || fresh->rights == KXFER_RIGHT_SEND);
}

/* Have the export of a target granted on @link. Return: the new target, of no session yet. */
static struct kxfer_target *grant_again(struct kxfer_target *old, struct kxfer_link *link,
					unsigned long end)
{
	struct kxfer_target_open cmd = { .rights = old->rights, .word = old->word };
	struct kxfer_target *fresh = kxfer_target_alloc(old->peer, link);
	int ret;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	memcpy(cmd.name, old->name, sizeof(cmd.name));
	ret = kxfer_target_acquire(fresh, &cmd, end) ?: kxfer_target_identify(fresh, &cmd, end);
	if (!ret && fresh->node != old->node)
		kxfer_story_tell(old->line, KXFER_LINE_RESTARTED, link->id, 0, 1);
	if (!ret && !is_same(old, fresh))
		ret = -EKEYREVOKED;
	if (!ret)
		return fresh;
	kxfer_target_put(fresh);
	return ERR_PTR(ret);
}

/**
 * kxfer_target_renew() - have a target of a line granted again, on another link
 * @old: target with waiting jobs; its link has ended. The caller has a reference
 * @link: LIVE link to the same peer
 * @end: when to give up, in jiffies
 *
 * The new target takes the place of the old one in the session, and its waiting jobs. If it was
 * closed meanwhile nothing happens. May sleep. Return: 0; -EKEYREVOKED: the name leads to another
 * export; or the error of TARGET_OPEN.
 */
int kxfer_target_renew(struct kxfer_target *old, struct kxfer_link *link, unsigned long end)
{
	struct kxfer_target *fresh = grant_again(old, link, end);
	int ret;

	kxfer_delay(TARGET_RENEW);
	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	ret = replace(old, fresh, end);
	kxfer_target_put(ret ? fresh : old);
	return ret;
}

/**
 * kxfer_target_try_renew() - whether kxfer_target_renew() would find the same export
 * @old: target of a line. The caller has a reference
 * @link: LIVE link to the same peer
 * @end: when to give up, in jiffies
 *
 * May sleep. Return: 0, or the error.
 */
int kxfer_target_try_renew(struct kxfer_target *old, struct kxfer_link *link, unsigned long end)
{
	struct kxfer_target *fresh = grant_again(old, link, end);

	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	kxfer_target_put(fresh);
	return 0;
}
