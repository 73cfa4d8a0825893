// SPDX-License-Identifier: GPL-2.0
/*
 * Targets: handles on exports of peers.
 *
 * A target holds a grant: it says which bytes of the peer's memory its jobs may touch. The
 * target also has the table of rkeys, which never leaves the kernel. The table comes page by
 * page and is checked before a job uses it.
 *
 * Withdrawal from the holder's side: REVOKE names an exposure. Each target of the exposure is
 * marked, and its queued jobs end. The answer is sent when none of its jobs is posted any
 * more. A REVOKE may overtake the GRANT answer of a target that is being opened. So while any
 * open is under way on the link, revoked exposures are remembered, and an open fails when its
 * exposure is among them.
 *
 * Lock order: targets_lock of the link is a leaf.
 */
#include "base/log.h"

#include <linux/jiffies.h>
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/plan.h"
#include "base/stats.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/line.h"
#include "job/peer.h"
#include "job/release.h"
#include "job/sender.h"
#include "job/target.h"
#include "job/trace.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "node/session.h"
#include "node/user.h"

#define MAX_REVOKED	1024	/* withdrawals during an open; more is an attack */

static void unlink_target(struct kxfer_target *target)
{
	spin_lock_bh(&target->link->targets_lock);
	list_del_init(&target->link_node);
	spin_unlock_bh(&target->link->targets_lock);
}

/**
 * kxfer_target_settle() - wait until the WRITEs of a target are placed, or the link goes down
 * @target: target without jobs in flight
 *
 * Called before the peer is told that nothing comes any more: the peer deregisters then, and a
 * later WRITE breaks the link for all. WRITEs without a placement READ after them are on the
 * lane that the flow is on. Sleeps, PLACEMENT_MS of iwarp.c at most.
 */
void kxfer_target_settle(struct kxfer_target *target)
{
	/* Pairs with insert_target(). */
	struct kxfer_flow *flow = smp_load_acquire(&target->flow);
	struct kxfer_lane *lane;
	bool unplaced;

	if (!flow)
		return;
	local_bh_disable();
	lane = kxfer_flow_lock(flow);
	unplaced = target->unplaced;
	target->unplaced = false;
	spin_unlock(&lane->lock);
	local_bh_enable();
	if (unplaced)
		kxfer_iwarp_wait_placed(lane);
}

/** kxfer_target_free() - free a target whose grant was given back or has ended */
void kxfer_target_free(struct kxfer_target *target)
{
	if (target->grant)
		kxfer_stat_dec(KXFER_STAT_LIVE_GRANTS);
	kxfer_link_unuse(target->link);
	kxfer_peer_put(target->peer);
	if (target->counted)
		kxfer_user_return(target->user, KXFER_SHARE_TARGETS, 1);
	kxfer_user_put(target->user);
	if (target->flow)
		kxfer_flow_put(target->flow);
	if (target->sender)
		kxfer_sender_put(target->sender);
	kvfree(target->keys);
	kfree(target);
	kxfer_stat_dec(KXFER_STAT_LIVE_TARGETS);
}

static void target_release(struct kref *ref)
{
	struct kxfer_target *target = container_of(ref, struct kxfer_target, ref);

	unlink_target(target);
	kxfer_delay(TARGET_UNLINKED);
	kxfer_release_target(target);
}

/** kxfer_target_put() - drop a reference; does not wait for the peer */
void kxfer_target_put(struct kxfer_target *target)
{
	kref_put(&target->ref, target_release);
}

/** kxfer_target_find() - a target of a session, with a reference; or NULL */
struct kxfer_target *kxfer_target_find(struct kxfer_session *session, u32 id)
{
	struct kxfer_target *target;

	down_read(&session->lock);
	target = xa_load(&session->targets, id);
	if (target)
		kref_get(&target->ref);
	up_read(&session->lock);
	return target;
}

/** kxfer_target_alloc() - a target that does not count for its user yet; or NULL without memory */
struct kxfer_target *kxfer_target_alloc(struct kxfer_peer *peer, struct kxfer_link *link)
{
	struct kxfer_user *user = peer->session->user;
	struct kxfer_target *target;

	target = kxfer_try_alloc(TARGET, kzalloc_obj(*target, GFP_KERNEL_ACCOUNT));
	if (!target)
		return NULL;
	/* A withdrawal may drop its reference to the target after the session has ended. */
	kxfer_user_ref(user);
	target->user = user;
	kref_init(&target->ref);
	kref_get(&peer->ref);
	target->peer = peer;
	kxfer_link_use(link);
	target->link = link;
	if (link->features & KXFER_WIRE_FEATURE_RESUME)
		target->line = peer->line;
	INIT_LIST_HEAD(&target->link_node);
	kxfer_stat_inc(KXFER_STAT_LIVE_TARGETS);
	return target;
}

static struct kxfer_target *target_create(struct kxfer_peer *peer, struct kxfer_link *link)
{
	struct kxfer_user *user = peer->session->user;
	struct kxfer_target *target;
	int ret = kxfer_user_take(user, KXFER_SHARE_TARGETS);

	if (ret)
		return ERR_PTR(ret);
	target = kxfer_target_alloc(peer, link);
	if (!target) {
		kxfer_user_return(user, KXFER_SHARE_TARGETS, 1);
		return ERR_PTR(-ENOMEM);
	}
	target->counted = true;
	return target;
}

/* @length: in: bytes of room at @answer; out: its bytes */
static int request_grant(struct kxfer_target *target, const struct kxfer_target_open *cmd,
			 unsigned long end, struct kxfer_wire_grant_answer *answer, u32 *length)
{
	struct kxfer_session *session = target->peer->session;
	struct kxfer_wire_grant request = {
		.uid = cpu_to_be32(session->uid),
		.gid = cpu_to_be32(session->gid),
		.rights = cpu_to_be32(cmd->rights),
		.word = cpu_to_be64(cmd->word),
	};
	int ret;

	memcpy(request.name, cmd->name, sizeof(request.name));
	ret = kxfer_channel_call(&target->link->control->channel, KXFER_WIRE_GRANT,
				 &request, sizeof(request), answer, length,
				 kxfer_left_ms(end), KXFER_WAIT_KILLABLE);
	if (!ret && *length < sizeof(*answer))
		return -EPROTO;
	return ret;
}

/* Take the terms of a grant. Return: 0, or -EPROTO if they make no sense. */
static int take_grant(struct kxfer_target *target, u32 wanted,
		      const struct kxfer_wire_grant_answer *answer)
{
	struct kxfer_terms terms;
	int ret = kxfer_wire_take_grant(&terms, wanted, answer);

	target->grant = terms.grant;
	if (target->grant)
		kxfer_stat_inc(KXFER_STAT_LIVE_GRANTS);
	target->exposure = terms.exposure;
	target->length = terms.rights == KXFER_RIGHT_SEND ?
			 min(terms.length, kxfer_link_longest(target->link)) : terms.length;
	target->rights = terms.rights;
	target->nr_keys = terms.nr_keys;
	target->content = terms.content;
	target->cookie = terms.cookie;
	return ret;
}

static void begin_open(struct kxfer_target *target)
{
	struct kxfer_link *link = target->link;

	spin_lock_bh(&link->targets_lock);
	target->opening = ++link->last_opening;
	list_add_tail(&target->link_node, &link->opening);
	spin_unlock_bh(&link->targets_lock);
}

/*
 * A withdrawal concerns opens that began before it. Forget withdrawals that came before
 * the first open under way began. Called with targets_lock held.
 */
static void forget_revoked(struct kxfer_link *link)
{
	struct kxfer_target *first = list_first_entry_or_null(&link->opening,
							      struct kxfer_target,
							      link_node);
	unsigned long id;
	void *entry;

	xa_for_each(&link->revoked, id, entry) {
		if (first && xa_to_value(entry) >= first->opening)
			continue;
		xa_erase(&link->revoked, id);
		link->nr_revoked--;
	}
}

/* Let withdrawals find the target, unless one came first or @ret is an error. */
static int end_open(struct kxfer_target *target, int ret)
{
	struct kxfer_link *link = target->link;

	spin_lock_bh(&link->targets_lock);
	list_del_init(&target->link_node);
	if (!ret && xa_load(&link->revoked, target->exposure)) {
		target->revoked = true;
		ret = -EKEYREVOKED;
	}
	if (!ret)
		list_add_tail(&target->link_node, &link->targets);
	if (list_empty(&link->opening))
		forget_revoked(link);
	spin_unlock_bh(&link->targets_lock);
	return ret;
}

static int take_page(struct kxfer_target *target, u32 *nr, u64 *start, const void *page,
		     u32 length)
{
	int n = kxfer_wire_take_keys(target->keys + *nr, target->nr_keys - *nr, start, page,
				     length);

	if (n < 0)
		return n;
	*nr += n;
	return 0;
}

/* @page: room for KXFER_WIRE_CONTROL_BYTES; @length: out: bytes of the answer */
static int request_page(struct kxfer_target *target, u32 first, unsigned long end, void *page,
			u32 *length)
{
	struct kxfer_wire_keys request = {
		.exposure = cpu_to_be64(target->exposure),
		.first = cpu_to_be32(first),
	};

	if (time_after(jiffies, end))
		return -ETIMEDOUT;
	*length = KXFER_WIRE_CONTROL_BYTES;
	return kxfer_channel_call(&target->link->control->channel, KXFER_WIRE_KEYS, &request,
				  sizeof(request), page, length, kxfer_left_ms(end),
				  KXFER_WAIT_KILLABLE);
}

/*
 * Take the keys that came with a grant, if any, and fetch the rest. @answer: room for
 * KXFER_WIRE_CONTROL_BYTES, with the answer to GRANT of @length bytes.
 */
static int take_keys(struct kxfer_target *target, unsigned long end,
		     struct kxfer_wire_grant_answer *answer, u32 length)
{
	u64 start = 0;
	int ret = 0;
	u32 nr = 0;

	target->keys = kxfer_try_alloc(TARGET_KEYS,
				       kvmalloc_array(target->nr_keys, sizeof(*target->keys),
						      GFP_KERNEL_ACCOUNT));
	if (!target->keys)
		return -ENOMEM;
	if (length > sizeof(*answer))
		ret = take_page(target, &nr, &start, answer + 1, length - sizeof(*answer));
	while (!ret && nr < target->nr_keys) {
		ret = request_page(target, nr, end, answer, &length);
		if (!ret)
			ret = take_page(target, &nr, &start, answer, length);
	}
	if (!ret && kxfer_extents_check(target->keys, nr, target->length))
		ret = -EPROTO;
	return ret;
}

/**
 * kxfer_target_acquire() - get the grant and the keys, so that jobs can use a target
 * @target: target of no session yet, without a grant
 * @cmd: name, rights and word of TARGET_OPEN
 * @end: when to give up, in jiffies
 *
 * May sleep. Return: 0, or the error of TARGET_OPEN.
 */
int kxfer_target_acquire(struct kxfer_target *target, const struct kxfer_target_open *cmd,
			 unsigned long end)
{
	bool first_keys = target->link->features & KXFER_WIRE_FEATURE_FIRST_KEYS;
	struct kxfer_wire_grant_answer *answer;
	u32 length = first_keys ? KXFER_WIRE_CONTROL_BYTES : sizeof(*answer);
	int ret;

	answer = kxfer_try_alloc(TARGET_ANSWER,
				 kmalloc(KXFER_WIRE_CONTROL_BYTES, GFP_KERNEL_ACCOUNT));
	if (!answer)
		return -ENOMEM;
	begin_open(target);
	ret = request_grant(target, cmd, end, answer, &length);
	if (!ret)
		ret = take_grant(target, cmd->rights, answer);
	ret = end_open(target, ret);
	if (!ret && target->nr_keys)
		ret = take_keys(target, end, answer, length);
	else if (!ret && length > sizeof(*answer))
		ret = -EPROTO;	/* a mailbox has no keys */
	if (ret == -EPROTO)
		kxfer_link_protocol_error(target->link, "a grant that makes no sense");
	else if (!ret && cmd->word && target->rights != KXFER_RIGHT_SEND)
		ret = -EINVAL;
	kfree(answer);
	if (!ret && target->rights == KXFER_RIGHT_SEND) {
		target->sender = kxfer_sender_create(target->grant);
		ret = target->sender ? 0 : -ENOMEM;
	}
	return ret;
}

/*
 * Get the flow of the session's targets on the link of @fresh, or a new one. Lines have one each: a
 * line waits until its flow is quiet, and another one must not keep it busy. Called with the
 * session's lock held for writing.
 */
static struct kxfer_flow *get_flow(struct kxfer_session *session, const struct kxfer_target *fresh)
{
	struct kxfer_target *target;
	unsigned long id;

	xa_for_each(&session->targets, id, target) {
		if (target->link == fresh->link && target->line == fresh->line) {
			kref_get(&target->flow->ref);
			return target->flow;
		}
	}
	return kxfer_flow_create(fresh->link, session->id);
}

/** kxfer_target_join_flow() - count a target of the table; with its lock held for writing */
void kxfer_target_join_flow(struct kxfer_session *session, struct kxfer_flow *flow)
{
	if (flow->nr_targets++)
		return;
	spin_lock_bh(&session->job_lock);
	list_add_tail(&flow->session_node, &session->flows);
	spin_unlock_bh(&session->job_lock);
}

/**
 * kxfer_target_leave() - a target leaves its session's table
 * @session: session of the target; no other context changes the table meanwhile
 * @target: target without jobs in flight
 */
void kxfer_target_leave(struct kxfer_session *session, struct kxfer_target *target)
{
	trace_kxfer_target(target, KXFER_TARGET_CLOSED);
	if (--target->flow->nr_targets)
		return;
	spin_lock_bh(&session->job_lock);
	list_del_init(&target->flow->session_node);
	spin_unlock_bh(&session->job_lock);
}

/** kxfer_target_make_flow() - give a target its flow; with the session's lock held for writing */
int kxfer_target_make_flow(struct kxfer_session *session, struct kxfer_target *target)
{
	struct kxfer_flow *flow = get_flow(session, target);

	if (flow && target->sender)
		kxfer_sender_join(target->sender, flow);
	/* A withdrawal may look at the target already. */
	smp_store_release(&target->flow, flow);
	return flow ? 0 : -ENOMEM;
}

/*
 * Once the target is in the table another thread may close it. Return: 0; -ESTALE: the line has
 * moved to another link, on which all its targets are to be; or -errno.
 */
static int insert_target(struct kxfer_session *session, struct kxfer_target *target,
			 struct kxfer_target_open *cmd)
{
	int ret = 0;

	down_write(&session->lock);
	if (target->line && !kxfer_peer_is_over(target->peer, target->link))
		ret = -ESTALE;
	if (!ret)
		ret = kxfer_target_make_flow(session, target);
	if (!ret)
		ret = kxfer_table_insert(&session->targets, target, &target->id,
					 KXFER_MAX_TARGETS);
	if (!ret) {
		kxfer_target_join_flow(session, target->flow);
		atomic_inc(&target->peer->nr_targets);
		trace_kxfer_target(target, KXFER_TARGET_OPENED);
	}
	cmd->target = target->id;
	up_write(&session->lock);
	return ret;
}

static int open_once(struct kxfer_session *session, struct kxfer_peer *peer,
		     struct kxfer_target_open *cmd, unsigned long end)
{
	struct kxfer_target *target;
	struct kxfer_link *link;
	int ret;

	link = kxfer_peer_link(peer, kxfer_left_ms(end));
	if (IS_ERR(link))
		return PTR_ERR(link);
	target = target_create(peer, link);
	kxfer_link_unuse(link);
	if (IS_ERR(target))
		return PTR_ERR(target);
	ret = kxfer_target_acquire(target, cmd, end) ?: kxfer_target_identify(target, cmd, end);
	if (!ret) {
		cmd->granted = target->rights;
		cmd->nr_keys = target->nr_keys;
		cmd->length = target->length;
		cmd->content = target->content;
		cmd->cookie = target->cookie;
		cmd->node = target->node;
		cmd->export_id = target->export;
		ret = insert_target(session, target, cmd);
	}
	if (ret)
		kxfer_target_put(target);
	return ret;
}

static int open_on_peer(struct kxfer_session *session, struct kxfer_peer *peer,
			struct kxfer_target_open *cmd)
{
	unsigned long end = jiffies + msecs_to_jiffies(cmd->timeout_ms);
	int ret;

	do {
		ret = open_once(session, peer, cmd, end);
	} while (ret == -ESTALE && time_before(jiffies, end));
	return ret == -ESTALE ? -ETIMEDOUT : ret;
}

/** kxfer_target_open() - KXFER_TARGET_OPEN */
int kxfer_target_open(struct kxfer_session *session, void *arg)
{
	struct kxfer_target_open *cmd = arg;
	size_t length = strnlen((const char *)cmd->name, sizeof(cmd->name));
	struct kxfer_peer *peer;
	int ret;

	if (cmd->flags || cmd->rights & ~KXFER_RIGHT_ANY)
		return -EOPNOTSUPP;
	if (!length || length == sizeof(cmd->name) ||
	    memchr_inv(cmd->name + length, 0, sizeof(cmd->name) - length) ||
	    !cmd->timeout_ms || cmd->timeout_ms > KXFER_TIMEOUT_MAX_MS)
		return -EINVAL;
	peer = kxfer_peer_find(session, cmd->peer);
	if (!peer)
		return -ENOENT;
	ret = open_on_peer(session, peer, cmd);
	kxfer_peer_put(peer);
	return ret;
}

/** kxfer_target_close() - KXFER_TARGET_CLOSE */
int kxfer_target_close(struct kxfer_session *session, void *arg)
{
	struct kxfer_id *cmd = arg;
	struct kxfer_target *target;
	int ret = 0;

	down_write(&session->lock);
	target = xa_load(&session->targets, cmd->id);
	if (!target) {
		ret = -ENOENT;
	} else if (atomic_read(&target->nr_jobs)) {
		ret = -EBUSY;
	} else {
		xa_erase(&session->targets, cmd->id);
		session->last_target = NULL;
		kxfer_target_leave(session, target);
		atomic_dec(&target->peer->nr_targets);
	}
	up_write(&session->lock);
	if (!ret)
		kxfer_target_put(target);
	return ret;
}

/*
 * Remember a revoked exposure for targets that are being opened. Called with targets_lock
 * held. Return: 0, -EPROTO: too many for an honest peer, or -ENOMEM.
 */
static int remember_revoked(struct kxfer_link *link, u64 exposure)
{
	void *old;
	int ret;

	if (list_empty(&link->opening))
		return 0;
	if (link->nr_revoked == MAX_REVOKED)
		forget_revoked(link);
	if (link->nr_revoked == MAX_REVOKED)
		return -EPROTO;
	ret = kxfer_fault_error(TARGET_REVOKED);
	if (ret)
		return ret;
	old = xa_store(&link->revoked, exposure, xa_mk_value(link->last_opening),
		       GFP_ATOMIC);
	if (!old)
		link->nr_revoked++;
	return xa_err(old);
}

/* Return: a target of the exposure that is not @told yet, with a reference; or NULL. */
static struct kxfer_target *next_target(struct kxfer_link *link, u64 exposure)
{
	struct kxfer_target *target, *found = NULL;

	spin_lock_bh(&link->targets_lock);
	list_for_each_entry(target, &link->targets, link_node) {
		if (target->exposure == exposure && !target->told &&
		    kref_get_unless_zero(&target->ref)) {
			target->told = true;
			found = target;
			break;
		}
	}
	spin_unlock_bh(&link->targets_lock);
	return found;
}

/* Return: whether no job of the target is in flight, or the link goes down. */
static bool may_answer(struct kxfer_target *target)
{
	return !atomic_read(&target->nr_jobs) ||
	       READ_ONCE(target->link->state) >= KXFER_LINK_CLOSING;
}

/**
 * kxfer_target_revoke() - stop using an export that is withdrawn
 * @link: link of an initiator
 * @exposure: the peer's id of the exposure, untrusted
 *
 * Called in a handler that may sleep. Returns when no job on the exposure is in flight, or
 * when the link goes down, whose teardown waits for this handler.
 */
void kxfer_target_revoke(struct kxfer_link *link, u64 exposure)
{
	struct kxfer_target *target;
	int ret;

	spin_lock_bh(&link->targets_lock);
	ret = remember_revoked(link, exposure);
	spin_unlock_bh(&link->targets_lock);
	if (ret == -EPROTO)
		kxfer_link_protocol_error(link, "more withdrawals than it can have exports");
	else if (ret)
		kxfer_link_fail(link, ret);
	if (ret)
		return;
	while ((target = next_target(link, exposure))) {
		trace_kxfer_target(target, KXFER_TARGET_WITHDRAWN);
		kxfer_job_revoke(link, target);
		wake_up_all(&link->wait);
		wait_event(link->wait, may_answer(target));
		kxfer_delay(TARGET_REVOKE);
		kxfer_target_settle(target);
		kxfer_target_put(target);
	}
}
