// SPDX-License-Identifier: GPL-2.0
/*
 * Peers: a session's handles on other nodes.
 *
 * A peer keeps a use of a link, which it may share with peers of other sessions. When the link
 * breaks the peer stays, and the next call on the peer connects anew, over its next path if it
 * has several (path.c). Calls here run for a user and may sleep; a fatal signal ends their waiting.
 */
#include "base/log.h"

#include <linux/jiffies.h>
#include <linux/kxfer.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/name.h"
#include "base/stats.h"
#include "job/line.h"
#include "job/path.h"
#include "job/peer.h"
#include "job/reconnect.h"
#include "link/channel.h"
#include "link/lane.h"
#include "node/charge.h"
#include "node/session.h"

static void peer_release(struct kref *ref)
{
	struct kxfer_peer *peer = container_of(ref, struct kxfer_peer, ref);

	kxfer_delay(PEER_END);
	if (peer->link)
		kxfer_link_unuse(peer->link);
	kxfer_line_free(peer->line);
	kxfer_paths_free(peer->paths);
	kfree_rcu(peer, rcu);
	kxfer_stat_dec(KXFER_STAT_LIVE_PEERS);
}

/** kxfer_peer_put() - drop a reference */
void kxfer_peer_put(struct kxfer_peer *peer)
{
	kref_put(&peer->ref, peer_release);
}

/** kxfer_peer_find() - look up a peer by id. Return: the peer with a reference, or NULL */
struct kxfer_peer *kxfer_peer_find(struct kxfer_session *session, u32 id)
{
	struct kxfer_peer *peer;

	down_read(&session->lock);
	peer = xa_load(&session->peers, id);
	if (peer)
		kref_get(&peer->ref);
	up_read(&session->lock);
	return peer;
}

/*
 * Called without the session's lock, which may be held for long: peers are freed by RCU.
 * Return: link id of the first peer after *id, or 0.
 */
static u64 next_link_id(struct kxfer_session *session, unsigned long *id)
{
	struct kxfer_peer *peer;
	u64 link_id;

	rcu_read_lock();
	peer = xa_find_after(&session->peers, id, ULONG_MAX, XA_PRESENT);
	link_id = peer ? READ_ONCE(peer->link_id) : 0;
	rcu_read_unlock();
	return link_id;
}

/**
 * kxfer_peer_note_links() - note the links on which a session has peers
 * @session: session; stays while this runs; its lock is not taken
 * @links: xarray; the entries of these links become not 0, which needs no memory
 */
void kxfer_peer_note_links(struct kxfer_session *session, struct xarray *links)
{
	unsigned long id = 0;
	u64 link_id;

	while ((link_id = next_link_id(session, &id)))
		if (xa_load(links, link_id))
			xa_store(links, link_id, xa_mk_value(1), GFP_NOWAIT);
}

/*
 * Get a link for the session; the use of its device is charged to the caller's cgroup. A worker,
 * the line's, is of the root cgroup, and the controller charges no other: then nothing is charged,
 * until a process opens a peer on that device. That takes a device that was not there before the
 * break.
 */
static struct kxfer_link *get_link(struct kxfer_session *session,
				   const struct kxfer_link_key *key,
				   unsigned int timeout_ms, u32 *refusal)
{
	struct kxfer_link *link = kxfer_link_get(key, session->user, timeout_ms, refusal);
	int ret;

	if (IS_ERR(link) || current->flags & PF_KTHREAD)
		return link;
	ret = kxfer_charge_handle(&session->charges, link->dev);
	if (!ret)
		return link;
	kxfer_link_unuse(link);
	return ERR_PTR(ret);
}

/* Return: the peer's link with one more use, or NULL if it is not live. */
static struct kxfer_link *use_live(struct kxfer_peer *peer)
{
	struct kxfer_link *link;

	spin_lock(&peer->lock);
	link = kxfer_link_is_live(peer->link) ? peer->link : NULL;
	if (link)
		kxfer_link_use(link);
	spin_unlock(&peer->lock);
	return link;
}

/* Whether the caller has to end. On another path there may be a link, which costs nothing. */
static bool is_over(const struct kxfer_link *link)
{
	return link == ERR_PTR(-EINTR);
}

/* Return: the path behind the one that was tried last, which becomes that. */
static u32 take_turn(struct kxfer_peer *peer)
{
	u32 path;

	spin_lock(&peer->lock);
	path = (peer->turn + 1) % peer->paths->nr;
	peer->turn = path;
	spin_unlock(&peer->lock);
	return path;
}

/*
 * Make @link, over a path, that of the peer, unless it has another that is live: all targets of a
 * session are to be on one link. Takes a use of @link. Return: the peer's link with a use.
 */
static struct kxfer_link *store(struct kxfer_peer *peer, struct kxfer_link *link, u32 path)
{
	struct kxfer_link *old = link;

	spin_lock(&peer->lock);
	if (kxfer_link_is_live(peer->link)) {
		link = peer->link;
	} else {
		old = peer->link;
		peer->link = link;
		WRITE_ONCE(peer->link_id, link->id);
		if (peer->paths->at != path)
			kxfer_stat_inc(KXFER_STAT_PATHS_CHANGED);
		peer->paths->at = path;
		/* Under the lock, so that a story has its events in their order. */
		if (peer->line)
			kxfer_story_moved(peer->line, old, link);
	}
	kxfer_link_use(link);
	spin_unlock(&peer->lock);
	kxfer_link_unuse(old);
	return link;
}

/* Return: a live link to the peer, connected over @path if there is none; or ERR_PTR. */
static struct kxfer_link *try_path(struct kxfer_peer *peer, u32 path, unsigned int timeout_ms)
{
	struct kxfer_link *link = use_live(peer);
	u32 refusal;

	if (link)
		return link;
	link = get_link(peer->session, &peer->paths->keys[path], timeout_ms, &refusal);
	if (IS_ERR(link))
		return link;
	link = store(peer, link, path);
	if (path && peer->line)
		kxfer_reconnect_home(peer->line);
	return link;
}

/**
 * kxfer_peer_try_link() - get a live link to the peer, or connect over the next path
 * @peer: peer that the caller has a reference to
 * @timeout_ms: longest wait for a connection
 *
 * Callers wait concurrently, each for its own timeout. Return: the link with one more use for the
 * caller, or ERR_PTR.
 */
struct kxfer_link *kxfer_peer_try_link(struct kxfer_peer *peer, unsigned int timeout_ms)
{
	struct kxfer_link *link = use_live(peer);

	return link ?: try_path(peer, take_turn(peer), timeout_ms);
}

/**
 * kxfer_peer_link() - get a live link to the peer, connected anew over any path if it broke
 * @peer: peer that the caller has a reference to
 * @timeout_ms: longest wait for a connection; the paths that are tried share it
 *
 * Return: as kxfer_peer_try_link()
 */
struct kxfer_link *kxfer_peer_link(struct kxfer_peer *peer, unsigned int timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	u32 nr = peer->paths->nr, left = nr, path;
	struct kxfer_link *link = use_live(peer);

	if (link)
		return link;
	/* Other callers take turns, too: this one tries each path once. */
	path = take_turn(peer);
	do {
		link = try_path(peer, path, DIV_ROUND_UP(kxfer_left_ms(end), left));
		path = (path + 1) % nr;
	} while (IS_ERR(link) && !is_over(link) && --left);
	return link;
}

/** kxfer_peer_is_over() - whether @link is the peer's, though it may be broken */
bool kxfer_peer_is_over(struct kxfer_peer *peer, const struct kxfer_link *link)
{
	bool over;

	spin_lock(&peer->lock);
	over = peer->link == link;
	spin_unlock(&peer->lock);
	return over;
}

/** kxfer_peer_is_away() - whether the peer's link goes over another path than the first */
bool kxfer_peer_is_away(struct kxfer_peer *peer)
{
	bool away;

	spin_lock(&peer->lock);
	away = peer->paths->at;
	spin_unlock(&peer->lock);
	return away;
}

/**
 * kxfer_peer_try_first() - get a link over the first path, though the peer has another one
 * @peer: peer that the caller has a reference to
 * @timeout_ms: longest wait for a connection
 *
 * Return: the link with one use for the caller, or ERR_PTR.
 */
struct kxfer_link *kxfer_peer_try_first(struct kxfer_peer *peer, unsigned int timeout_ms)
{
	u32 refusal;

	return get_link(peer->session, &peer->paths->keys[0], timeout_ms, &refusal);
}

/** kxfer_peer_go_first() - make a link of kxfer_peer_try_first() that of the peer */
void kxfer_peer_go_first(struct kxfer_peer *peer, struct kxfer_link *link)
{
	struct kxfer_link *old;

	kxfer_link_use(link);
	spin_lock(&peer->lock);
	old = peer->link;
	peer->link = link;
	WRITE_ONCE(peer->link_id, link->id);
	peer->paths->at = 0;
	peer->turn = 0;
	kxfer_story_tell(peer->line, KXFER_LINE_CONNECTED, link->id, 0, 1);
	spin_unlock(&peer->lock);
	kxfer_link_unuse(old);
	kxfer_stat_inc(KXFER_STAT_PATHS_CHANGED);
}

static int check_open(const struct kxfer_peer_open *cmd)
{
	if (cmd->flags & ~KXFER_PEER_F_TOS || cmd->context > KXFER_CONTEXT_UNBOUND)
		return -EOPNOTSUPP;
	if (cmd->tos > (cmd->flags & KXFER_PEER_F_TOS ? 255 : 0))
		return -EINVAL;
	if (!cmd->timeout_ms || cmd->timeout_ms > KXFER_TIMEOUT_MAX_MS ||
	    cmd->loss_ms > KXFER_LOSS_MAX_MS || cmd->__reserved)
		return -EINVAL;
	if (cmd->in_flight_kib && (cmd->in_flight_kib < KXFER_IN_FLIGHT_MIN_KIB ||
				   cmd->in_flight_kib > KXFER_IN_FLIGHT_MAX_KIB))
		return -EINVAL;
	return 0;
}

static struct kxfer_peer *peer_alloc(struct kxfer_session *session)
{
	struct kxfer_peer *peer;

	peer = kxfer_try_alloc(PEER, kzalloc_obj(*peer, GFP_KERNEL_ACCOUNT));
	if (!peer)
		return NULL;
	kref_init(&peer->ref);
	spin_lock_init(&peer->lock);
	peer->session = session;
	kxfer_stat_inc(KXFER_STAT_LIVE_PEERS);
	return peer;
}

/* Take the paths, and make the line that the caller wants, if any. Return: 0 or -errno. */
static int prepare(struct kxfer_peer *peer, const struct kxfer_peer_open *cmd)
{
	struct kxfer_paths *paths = kxfer_paths_create(cmd, peer->session->net);

	if (IS_ERR(paths))
		return PTR_ERR(paths);
	peer->paths = paths;
	if (!cmd->loss_ms)
		return 0;
	peer->line = kxfer_line_create(peer, cmd->loss_ms);
	return peer->line ? 0 : -ENOMEM;
}

/* Connect over the first path that works. Return: 0 or the error of the last. */
static int first_link(struct kxfer_peer *peer, struct kxfer_peer_open *cmd)
{
	unsigned long end = jiffies + msecs_to_jiffies(cmd->timeout_ms);
	struct kxfer_paths *paths = peer->paths;
	struct kxfer_link *link;
	u32 i = 0;

	do {
		cmd->refusal = KXFER_REFUSAL_NONE;
		link = get_link(peer->session, &paths->keys[i],
				DIV_ROUND_UP(kxfer_left_ms(end), paths->nr - i), &cmd->refusal);
	} while (IS_ERR(link) && !is_over(link) && ++i < paths->nr);
	if (IS_ERR(link))
		return PTR_ERR(link);
	peer->link = link;
	peer->link_id = link->id;
	peer->turn = i;
	paths->at = i;
	cmd->link = link->id;
	return !peer->line || !(kxfer_paths_features(paths) & ~link->features) ? 0 : -EOPNOTSUPP;
}

/** kxfer_peer_open() - KXFER_PEER_OPEN */
int kxfer_peer_open(struct kxfer_session *session, void *arg)
{
	struct kxfer_peer_open *cmd = arg;
	struct kxfer_peer *peer;
	bool away;
	int ret;

	ret = check_open(cmd);
	if (ret)
		return ret;
	peer = peer_alloc(session);
	if (!peer)
		return -ENOMEM;
	cmd->refusal = KXFER_REFUSAL_NONE;
	ret = prepare(peer, cmd) ?: first_link(peer, cmd);
	if (ret)
		goto err_put;
	if (peer->line)
		kxfer_story_tell(peer->line, KXFER_LINE_OPENED, cmd->link, 0, 1);
	away = peer->paths->at;
	down_write(&session->lock);
	ret = kxfer_table_insert(&session->peers, peer, &peer->id, KXFER_MAX_PEERS);
	cmd->peer = peer->id;
	/* Afterwards another thread may close it. */
	if (!ret && away)
		kxfer_reconnect_home(peer->line);
	up_write(&session->lock);
	if (ret)
		goto err_put;
	return 0;

err_put:
	kxfer_peer_put(peer);
	return ret;
}

/** kxfer_peer_close() - KXFER_PEER_CLOSE */
int kxfer_peer_close(struct kxfer_session *session, void *arg)
{
	struct kxfer_id *cmd = arg;
	struct kxfer_peer *peer;
	int ret = 0;

	down_write(&session->lock);
	peer = xa_load(&session->peers, cmd->id);
	if (!peer)
		ret = -ENOENT;
	else if (atomic_read(&peer->nr_targets))
		ret = -EBUSY;
	else
		xa_erase(&session->peers, cmd->id);
	up_write(&session->lock);
	if (ret)
		return ret;
	/* It has no targets, so nothing waits in its line. */
	if (peer->line)
		kxfer_line_close(peer->line);
	kxfer_peer_put(peer);
	return 0;
}

/* Check an entry from the peer: users see its name, and its id steers a loop of theirs. */
static bool entry_good(const struct kxfer_wire_list_entry *entry, u64 cursor)
{
	return be64_to_cpu(entry->id) > cursor && kxfer_name_valid(entry->name);
}

static int store_entry(const struct kxfer_wire_list_entry *entry,
		       struct kxfer_peer_export __user *to)
{
	struct kxfer_peer_export export = {
		.length = be64_to_cpu(entry->length),
		.rights = be32_to_cpu(entry->rights) & KXFER_RIGHT_ANY,
	};

	strscpy_pad((char *)export.name, (const char *)entry->name, sizeof(export.name));
	kxfer_content_from_wire(&export.content, &entry->content);
	return copy_to_user(to, &export, sizeof(export)) ? -EFAULT : 0;
}

/* Send one LIST request. Return: entries stored, or -errno. */
static int list_some(struct kxfer_link *link, struct kxfer_session *session,
		     struct kxfer_peer_list *cmd, unsigned long end, void *page)
{
	struct kxfer_peer_export __user *to = u64_to_user_ptr(cmd->exports);
	struct kxfer_wire_list request = {
		.cursor = cpu_to_be64(cmd->cursor),
		.uid = cpu_to_be32(session->uid),
		.gid = cpu_to_be32(session->gid),
	};
	struct kxfer_wire_list_answer *answer = page;
	u32 length = KXFER_WIRE_CONTROL_BYTES, i;
	int ret, nr;

	ret = kxfer_channel_call(&link->control->channel, KXFER_WIRE_LIST, &request,
				 sizeof(request), answer, &length, kxfer_left_ms(end),
				 KXFER_WAIT_KILLABLE);
	if (ret)
		return ret;
	nr = kxfer_wire_nr_entries(answer, length);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr && i < cmd->nr; i++) {
		if (!entry_good(&answer->entries[i], cmd->cursor))
			return -EPROTO;
		if (store_entry(&answer->entries[i], to + i))
			return -EFAULT;
		cmd->cursor = be64_to_cpu(answer->entries[i].id);
	}
	return i;
}

/** kxfer_peer_list() - KXFER_PEER_LIST */
int kxfer_peer_list(struct kxfer_session *session, void *arg)
{
	struct kxfer_peer_list *cmd = arg;
	unsigned long end = jiffies + msecs_to_jiffies(cmd->timeout_ms);
	struct kxfer_link *link;
	struct kxfer_peer *peer;
	void *page;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || !cmd->nr || cmd->nr > 1024 ||
	    !cmd->timeout_ms || cmd->timeout_ms > KXFER_TIMEOUT_MAX_MS)
		return -EINVAL;
	peer = kxfer_peer_find(session, cmd->peer);
	if (!peer)
		return -ENOENT;
	page = kxfer_try_alloc(PEER_LIST, kzalloc(KXFER_WIRE_CONTROL_BYTES, GFP_KERNEL_ACCOUNT));
	link = page ? kxfer_peer_link(peer, cmd->timeout_ms) : ERR_PTR(-ENOMEM);
	if (IS_ERR(link)) {
		ret = PTR_ERR(link);
	} else {
		ret = list_some(link, session, cmd, end, page);
		if (ret == -EPROTO)
			kxfer_link_protocol_error(link, "a list of exports that makes no sense");
		kxfer_link_unuse(link);
	}
	kfree(page);
	kxfer_peer_put(peer);
	if (ret < 0)
		return ret;
	cmd->nr = ret;
	return 0;
}
