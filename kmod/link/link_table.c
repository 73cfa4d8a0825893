// SPDX-License-Identifier: GPL-2.0
/*
 * The table of links: all links of this node, how sessions share them, and their limits. The
 * life of a link is in link.c.
 *
 * A link comes into the table before it begins to connect, and leaves it at the end of its
 * teardown. All that time it has the reference of its life: so a context that finds it under
 * links_lock may take one more. A link that is going down is still in the table, to be listed
 * and waited for, but gets no new users: sessions get another one.
 *
 * Sessions that want the same (struct kxfer_link_key) get the same link. Two sessions may find
 * no link at the same time, and make one each. Under the lock the second session then finds
 * the link of the first, and discards its own.
 *
 * The links of each direction are limited by max_links. Among the accepted links one peer (an
 * address in one network namespace) has at most max_links_per_peer, and few that are not LIVE
 * yet. If a peer asks for a link beyond a limit, the oldest link that has been half-open for
 * seconds, or without a grant for seconds, is closed: among those of this peer if its own limit is
 * reached, else among those of all peers. The initiator of the closed link connects again when it
 * opens a target. Accepted links that are being taken down do not count, up to closing_max() of
 * them. A link made by this node also counts for the uid of the call that made it, as long as it
 * is in the table (user.c). Ids are never used again.
 *
 * Context: making links, and waiting for them, may sleep; all else does not.
 * Lock order: session lock, links_lock, link->lock or targets_lock of a link.
 */
#include "base/log.h"

#include <crypto/algapi.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <net/net_namespace.h>

#include "base/state.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "node/device.h"
#include "node/session.h"
#include "node/user.h"

/*
 * A limit for each direction, so that hundreds of incoming links do not keep this node from
 * making its own.
 */
static unsigned int max_links = 1024;
module_param(max_links, uint, 0644);
MODULE_PARM_DESC(max_links, "links that this node makes, and again that it accepts (1024)");

#define STALE_RETRIES	3
#define STALE_RETRY_MS	200
#define PORT_RETRIES	8

static unsigned int max_links_per_peer = 256;
module_param(max_links_per_peer, uint, 0644);
MODULE_PARM_DESC(max_links_per_peer, "links that this node accepts from one address (256)");

/*
 * Accepted links that a peer does not complete, or does not use. They are closed only if a
 * peer asks for a link beyond a limit.
 */
#define HALF_OPEN_MAX		256	/* half-open links of all peers */
#define HALF_OPEN_PER_PEER	64	/* as many as one user at the peer begins at once */
#define HALF_OPEN_MS		3000	/* a link half-open for longer may be closed */
#define NO_GRANT_MS		10000	/* a link without grants for longer may be closed */

static DEFINE_SPINLOCK(links_lock);
static LIST_HEAD(links);
static u32 nr_links[2];	/* accepted, made */
static u64 last_link_id;

/* Limit of accepted links that do not count while they are being taken down. */
static u32 closing_max(void)
{
	return READ_ONCE(max_links) / 8 + 1;
}

/* Called with links_lock held. */
static bool has_room(const struct kxfer_link *link)
{
	u32 nr = nr_links[link->initiator], max = READ_ONCE(max_links);

	/* More accepted links are possible while others are taken down: admit(). */
	return link->initiator ? kxfer_user_room(nr, max) : nr < max + closing_max();
}

/* Called with links_lock held. The list uses the reference of the link's life. */
static int publish(struct kxfer_link *link)
{
	lockdep_assert_held(&links_lock);
	if (!has_room(link))
		return -EDQUOT;
	nr_links[link->initiator]++;
	link->id = ++last_link_id;
	link->epoch = link->id;
	list_add_tail(&link->node, &links);
	return 0;
}

/**
 * kxfer_link_unpublish() - take a link off the table
 * @link: CLOSING; its teardown is complete but for the state and the last reference
 */
void kxfer_link_unpublish(struct kxfer_link *link)
{
	spin_lock_bh(&links_lock);
	list_del_init(&link->node);
	nr_links[link->initiator]--;
	spin_unlock_bh(&links_lock);
	if (!link->user)
		return;
	kxfer_user_return(link->user, KXFER_SHARE_LINKS, 1);
	kxfer_user_put(link->user);
}

static bool same_key(const struct kxfer_link_key *a, const struct kxfer_link_key *b)
{
	return !memcmp(a, b, offsetof(struct kxfer_link_key, secret));
}

/* Called with links_lock held. */
static struct kxfer_link *find_usable(const struct kxfer_link_key *key)
{
	struct kxfer_link *link;

	list_for_each_entry(link, &links, node)
		if (link->initiator && !link->ops->single && same_key(&link->key, key) &&
		    kxfer_link_try_use(link))
			return link;
	return NULL;
}

/* Make a link that counts for a user; not yet in the list. */
static struct kxfer_link *alloc_for(const struct kxfer_link_key *key, struct kxfer_user *user,
				    const struct kxfer_link_ops *ops,
				    void *context)
{
	struct kxfer_link *link;
	int ret;

	ret = kxfer_user_take(user, KXFER_SHARE_LINKS);
	if (ret)
		return ERR_PTR(ret);
	link = kxfer_link_alloc(true, key->net, ops, context);
	if (!link) {
		kxfer_user_return(user, KXFER_SHARE_LINKS, 1);
		return ERR_PTR(-ENOMEM);
	}
	kxfer_user_ref(user);
	link->user = user;
	link->key = *key;
	kxfer_key_get(link->key.secret);
	link->remote = key->remote;
	if (!ops)
		link->patience = key->patience;
	return link;
}

/* Undo alloc_for(). */
static void discard(struct kxfer_link *link)
{
	kxfer_user_return(link->user, KXFER_SHARE_LINKS, 1);
	kxfer_user_put(link->user);
	kxfer_link_put(link);
}

static struct kxfer_link *find_or_create(const struct kxfer_link_key *key,
					 struct kxfer_user *user)
{
	struct kxfer_link *link, *fresh;
	int ret;

	spin_lock_bh(&links_lock);
	link = find_usable(key);
	spin_unlock_bh(&links_lock);
	if (link)
		return link;

	fresh = alloc_for(key, user, NULL, NULL);
	if (IS_ERR(fresh))
		return fresh;
	get_random_bytes(fresh->cookie, sizeof(fresh->cookie));

	spin_lock_bh(&links_lock);
	link = find_usable(key);
	ret = link ? 0 : publish(fresh);
	if (!link && !ret)
		kxfer_link_try_use(fresh);
	spin_unlock_bh(&links_lock);
	if (link || ret) {
		discard(fresh);
		return link ?: ERR_PTR(ret);
	}
	kxfer_link_start(fresh);
	return fresh;
}

static struct kxfer_link *get_once(const struct kxfer_link_key *key, struct kxfer_user *user,
				   unsigned int timeout_ms, u32 *refusal)
{
	struct kxfer_link *link = find_or_create(key, user);
	int ret;

	if (IS_ERR(link))
		return link;
	ret = kxfer_link_wait_live(link, timeout_ms);
	if (!ret)
		return link;
	*refusal = READ_ONCE(link->refusal);
	kxfer_link_unuse(link);
	return ERR_PTR(ret);
}

/* Whether another connection, from another port and with other QPs, may succeed; may sleep. */
static bool worth_another_try(const struct kxfer_link *link, u32 tries)
{
	/* See tcp_error() in cm.c. */
	if (link == ERR_PTR(-EADDRINUSE))
		return tries < PORT_RETRIES;
	/* See transport_rejected() in cm.c. */
	if (link != ERR_PTR(-ESTALE) || tries >= STALE_RETRIES)
		return false;
	schedule_timeout_killable(msecs_to_jiffies(STALE_RETRY_MS));
	return true;
}

/**
 * kxfer_link_get() - the link for a key, connected if need be
 * @key: checked, without padding or uninitialised bytes
 * @user: user that a new link counts for
 * @timeout_ms: longest wait for the connection
 * @refusal: out: enum kxfer_refusal
 *
 * May sleep. Return: a live link with one more user (kxfer_link_unuse()), or
 * ERR_PTR: -ETIMEDOUT, -EINTR, -EDQUOT, or the error that ended the connecting.
 */
struct kxfer_link *kxfer_link_get(const struct kxfer_link_key *key,
				  struct kxfer_user *user, unsigned int timeout_ms,
				  u32 *refusal)
{
	u64 end_ns = ktime_get_ns() + (u64)timeout_ms * NSEC_PER_MSEC, now_ns;
	struct kxfer_link *link = get_once(key, user, timeout_ms, refusal);
	u32 tries;

	for (tries = 0; worth_another_try(link, tries); tries++) {
		now_ns = ktime_get_ns();
		if (now_ns >= end_ns || fatal_signal_pending(current))
			break;
		*refusal = KXFER_REFUSAL_NONE;
		link = get_once(key, user, div_u64(end_ns - now_ns, NSEC_PER_MSEC) + 1, refusal);
	}
	return link == ERR_PTR(-ESTALE) ? ERR_PTR(-ECONNREFUSED) : link;
}

/**
 * kxfer_link_dedicate() - begin to connect a link that is never shared
 * @key: as for kxfer_link_get()
 * @user: user that the link counts for
 * @ops: hooks of the owner of the link
 * @context: private pointer for @ops; on success it belongs to the link
 *
 * May sleep. Return: the link with one user, CONNECTING; or ERR_PTR(-ENOMEM or -EDQUOT).
 */
struct kxfer_link *kxfer_link_dedicate(const struct kxfer_link_key *key,
				       struct kxfer_user *user,
				       const struct kxfer_link_ops *ops,
				       void *context)
{
	struct kxfer_link *link = alloc_for(key, user, ops, context);
	int ret;

	if (IS_ERR(link))
		return link;
	link->max_data = 1;
	spin_lock_bh(&links_lock);
	ret = publish(link);
	if (!ret)
		kxfer_link_try_use(link);
	spin_unlock_bh(&links_lock);
	if (ret) {
		link->context = NULL;
		discard(link);
		return ERR_PTR(ret);
	}
	kxfer_link_start(link);
	return link;
}

static bool same_host(const struct kxfer_addr *a, const struct kxfer_addr *b)
{
	return a->family == b->family && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/**
 * struct census - accepted links of all peers, or of one, when a peer asks for one more
 * @nr: links that are not being taken down
 * @nr_closing: links that are being taken down
 * @nr_half_open: links that are not LIVE yet
 * @stale: oldest half-open link, if it may be closed to make room; or NULL
 * @idle: LIVE link without a grant for longest, if it may be closed; or NULL
 */
struct census {
	u32 nr;
	u32 nr_closing;
	u32 nr_half_open;
	struct kxfer_link *stale;
	struct kxfer_link *idle;
};

static void count_half_open(struct census *census, struct kxfer_link *link, u64 now_ns)
{
	census->nr_half_open++;
	if (now_ns - link->created_ns > (u64)HALF_OPEN_MS * NSEC_PER_MSEC &&
	    (!census->stale || link->created_ns < census->stale->created_ns))
		census->stale = link;
}

static void count_live(struct census *census, struct kxfer_link *link, u64 now_ns)
{
	u64 since_ns = READ_ONCE(link->unused_ns);

	if (!atomic_read(&link->nr_grants) &&
	    (s64)(now_ns - since_ns) > (s64)NO_GRANT_MS * NSEC_PER_MSEC &&
	    (!census->idle || since_ns < census->idle->unused_ns))
		census->idle = link;
}

static void count_link(struct census *census, struct kxfer_link *link, u64 now_ns)
{
	enum kxfer_link_state state = READ_ONCE(link->state);

	if (!kxfer_state_is_open(state)) {
		census->nr_closing++;
		return;
	}
	census->nr++;
	if (state == KXFER_LINK_LIVE)
		count_live(census, link, now_ns);
	else
		count_half_open(census, link, now_ns);
}

/* Called with links_lock held. @link: may be NULL. Return: 0: taken down; or -EDQUOT. */
static int make_room(const struct census *census, struct kxfer_link *link)
{
	if (!link || census->nr_closing >= closing_max())
		return -EDQUOT;
	kxfer_notice("link %llu: closed to make room: the peer makes no use of it", link->id);
	kxfer_link_fail(link, -ESHUTDOWN);
	return 0;
}

/*
 * Called with links_lock held. Makes room, if need be, among the links that @census counts. If
 * @max was lowered below their number, that is for none.
 */
static int admit_to(const struct census *census, u32 max, u32 max_half_open)
{
	if (census->nr > max) {
		make_room(census, census->stale ?: census->idle);
		return -EDQUOT;
	}
	if (census->nr_half_open >= max_half_open)
		return make_room(census, census->stale);
	if (census->nr >= max)
		return make_room(census, census->stale ?: census->idle);
	return 0;
}

/* Called with links_lock held. Admit one more link from @peer? Return: 0 or -EDQUOT. */
static int admit(const struct net *net, const struct kxfer_addr *peer)
{
	struct census all = {}, own = {};
	u64 now_ns = ktime_get_ns();
	struct kxfer_link *link;

	list_for_each_entry(link, &links, node) {
		if (link->initiator)
			continue;
		count_link(&all, link, now_ns);
		if (net_eq(link->net, net) && same_host(&link->remote, peer))
			count_link(&own, link, now_ns);
	}
	/* A peer at its own limit replaces only its own links. */
	return admit_to(&own, READ_ONCE(max_links_per_peer), HALF_OPEN_PER_PEER) ?:
	       admit_to(&all, READ_ONCE(max_links), HALF_OPEN_MAX);
}

/**
 * kxfer_link_create_passive() - make a link that a peer asks for
 * @net: network namespace of the listener
 * @peer: address of the peer
 *
 * Does not sleep long. Return: the link, in the list, with the one reference of its
 * life, which its teardown drops; or ERR_PTR(-ENOMEM or -EDQUOT).
 */
struct kxfer_link *kxfer_link_create_passive(struct net *net, const struct kxfer_addr *peer)
{
	struct kxfer_link *link = kxfer_link_alloc(false, net, NULL, NULL);
	int ret;

	if (!link)
		return ERR_PTR(-ENOMEM);
	link->remote = *peer;
	spin_lock_bh(&links_lock);
	ret = admit(net, peer) ?: publish(link);
	spin_unlock_bh(&links_lock);
	if (ret) {
		kxfer_link_put(link);
		return ERR_PTR(ret);
	}
	kxfer_link_start(link);
	return link;
}

static bool shows_cookie(const struct kxfer_link *link, const struct kxfer_wire_hello *hello)
{
	bool keyed = be32_to_cpu(hello->features) & KXFER_WIRE_FEATURE_KEY;

	if (keyed != kxfer_link_has_key(link))
		return false;
	if (keyed)
		return kxfer_handshake_lane_proven(&link->handshake, hello);
	return !crypto_memneq(link->cookie, hello->cookie, sizeof(link->cookie));
}

static bool is_cookie_of(const struct kxfer_link *link, const struct net *net,
			 const struct kxfer_wire_hello *hello,
			 const struct kxfer_addr *peer)
{
	return !link->initiator && net_eq(link->net, net) &&
	       link->epoch == be64_to_cpu(hello->epoch) &&
	       link->remote.family == peer->family &&
	       !memcmp(link->remote.addr, peer->addr, sizeof(peer->addr)) &&
	       shows_cookie(link, hello);
}

/**
 * kxfer_link_find_cookie() - the passive link that a data lane belongs to
 * @net: network namespace of the listener
 * @hello: private data of the lane's connection request
 * @peer: address that the request comes from
 *
 * Return: a live link with one more reference, or NULL.
 */
struct kxfer_link *kxfer_link_find_cookie(const struct net *net,
					  const struct kxfer_wire_hello *hello,
					  const struct kxfer_addr *peer)
{
	struct kxfer_link *link, *found = NULL;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node) {
		if (kxfer_link_is_live(link) && is_cookie_of(link, net, hello, peer)) {
			kxfer_link_ref(link);
			found = link;
			break;
		}
	}
	spin_unlock_bh(&links_lock);
	return found;
}

/* Keys are copied for each listener; so compare what they are. */
static bool same_proof(const struct kxfer_link *a, const struct kxfer_link *b)
{
	const struct kxfer_key *x = READ_ONCE(a->handshake.proven);
	const struct kxfer_key *y = READ_ONCE(b->handshake.proven);

	return x == y || (x && y && !crypto_memneq(x->id, y->id, sizeof(x->id)));
}

/* Who shows the cookie may have another address than the link: a node has several. */
static bool is_former(const struct kxfer_link *old, const struct kxfer_link *link,
		      const struct kxfer_wire_resume *resume)
{
	return !old->initiator && old != link && old->epoch == be64_to_cpu(resume->epoch) &&
	       (link->features & KXFER_WIRE_FEATURE_VIA ||
		same_host(&old->remote, &link->remote)) && same_proof(old, link) &&
	       !crypto_memneq(old->cookie, resume->cookie, sizeof(old->cookie));
}

/**
 * kxfer_link_find_former() - an accepted link that the initiator of another one names
 * @link: LIVE link that was accepted from the same node
 * @resume: payload of RESUME, untrusted
 *
 * Return: the link, in any state, with one more reference; or NULL.
 */
struct kxfer_link *kxfer_link_find_former(const struct kxfer_link *link,
					  const struct kxfer_wire_resume *resume)
{
	struct kxfer_link *old, *found = NULL;

	spin_lock_bh(&links_lock);
	list_for_each_entry(old, &links, node) {
		if (net_eq(old->net, link->net) && is_former(old, link, resume)) {
			kxfer_link_ref(old);
			found = old;
			break;
		}
	}
	spin_unlock_bh(&links_lock);
	return found;
}

/* handshake.proven is set before the link is LIVE, and stays as long as the link. */
static void fill_key_name(const struct kxfer_link *link, struct kxfer_info_link *info)
{
	if (link->state != KXFER_LINK_CONNECTING && link->handshake.proven)
		memcpy(info->key, link->handshake.proven->name, sizeof(info->key));
}

static u32 count_targets(struct kxfer_link *link)
{
	struct list_head *p;
	u32 nr = 0;

	spin_lock_bh(&link->targets_lock);
	list_for_each(p, &link->targets)
		nr++;
	spin_unlock_bh(&link->targets_lock);
	return nr;
}

/*
 * Lanes count their own work, so that jobs on different lanes write to no common memory. Not of
 * one instant.
 */
static void count_work(const struct kxfer_link *link, struct kxfer_info_link *info)
{
	u32 i;

	for (i = 0; i < READ_ONCE(link->nr_data); i++) {
		const struct kxfer_lane *lane = READ_ONCE(link->data[i]);

		if (!lane)
			continue;
		info->nr_jobs += READ_ONCE(lane->nr_queued) + READ_ONCE(lane->nr_posted);
		info->bytes_read += READ_ONCE(lane->bytes_read);
		info->bytes_written += READ_ONCE(lane->bytes_written);
	}
}

static void fill_link_info(struct kxfer_link *link, struct kxfer_info_link *info)
{
	u64 now = ktime_get_ns();

	*info = (struct kxfer_info_link) {
		.id = link->id,
		.local = link->local,
		.remote = link->remote,
		.flags = (link->initiator ? KXFER_LINK_INITIATOR : 0) |
			 (link->ops->single ? KXFER_LINK_DEDICATED : 0) |
			 (link->features & KXFER_WIRE_FEATURE_EAGER ? KXFER_LINK_EAGER : 0),
		.state = link->state,
		.error = link->error,
		.context = link->key.context,
		.tos = link->tos,
		.gid_type = link->gid_type,
		.nr_lanes = link->nr_data,
		.nr_sessions = link->users,
		.nr_grants = link->initiator ? count_targets(link) :
			     atomic_read(&link->nr_grants),
		.nr_jobs = atomic_read(&link->nr_calls),
		.rtt_ns = READ_ONCE(link->rtt_ns),
		.age_ns = now - link->created_ns,
		.idle_ns = now - kxfer_link_heard_ns(link),
		.silence_ms = link->patience.silence_ms,
		.in_flight_kib = link->key.in_flight_kib,
	};
	if (link->dev && !link->dev->iwarp) {
		info->ack_timeout = link->patience.ack_timeout;
		info->retry_count = link->patience.retry_count;
	}
	count_work(link, info);
	memcpy(info->device, link->device_name, sizeof(info->device));
	memcpy(info->sgid, &link->sgid, sizeof(info->sgid));
	memcpy(info->dgid, &link->dgid, sizeof(info->dgid));
	fill_key_name(link, info);
}

static void fill_lane_info(const struct kxfer_lane *lane, struct kxfer_info_lane *info)
{
	const struct kxfer_link *link = lane->link;

	*info = (struct kxfer_info_lane) {
		.id = lane->id,
		.link = link->id,
		.index = lane->index,
		.credits = READ_ONCE(lane->credits.left),
		.max_credits = lane->credits.max,
		.nr_queued = READ_ONCE(lane->nr_queued),
		.nr_posted = READ_ONCE(lane->nr_posted),
		.max_send_sge = link->dev ? link->dev->write_limits.max_sge : 0,
		.nr_wr = READ_ONCE(lane->nr_wr),
		.nr_completions = READ_ONCE(lane->nr_completions),
		.max_inline = lane->max_inline,
		.path_mtu = READ_ONCE(lane->path_mtu),
	};
}

/** kxfer_link_rename_device() - @dev is called @name from now on */
void kxfer_link_rename_device(const struct kxfer_device *dev, const char *name)
{
	struct kxfer_link *link;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node)
		if (READ_ONCE(link->dev) == dev)
			strscpy((char *)link->device_name, name, sizeof(link->device_name));
	spin_unlock_bh(&links_lock);
}

/** kxfer_link_ids() - ids of links after *cursor, in order */
u32 kxfer_link_ids(u64 *cursor, u64 *ids, u32 nr)
{
	struct kxfer_link *link;
	u32 n = 0;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node) {
		if (n == nr)
			break;
		if (link->id > *cursor)
			ids[n++] = *cursor = link->id;
	}
	spin_unlock_bh(&links_lock);
	return n;
}

/* The entry of a link in the viewer's @links, or 0; see struct kxfer_viewer. */
static unsigned long noted(const struct kxfer_viewer *viewer, const struct kxfer_link *link)
{
	void *entry = xa_load((struct xarray *)&viewer->links, link->id);

	return entry ? xa_to_value(entry) : 0;
}

static bool shows(const struct kxfer_viewer *viewer, const struct kxfer_link *link)
{
	return kxfer_viewer_is_in(viewer, link->net) &&
	       (!viewer || viewer->admin || noted(viewer, link));
}

/*
 * An accepted link is shared by all exports that its peer holds here. An exporter sees only
 * the grants on its own exports, and no figure to which other users contribute.
 */
static void hide_others(struct kxfer_info_link *info, unsigned long nr_grants)
{
	info->nr_sessions = 0;
	info->nr_grants = nr_grants;
	info->nr_jobs = 0;
	info->idle_ns = 0;
	info->bytes_read = 0;
	info->bytes_written = 0;
	memset(info->key, 0, sizeof(info->key));
}

/** kxfer_link_info() - INFO records of links after *cursor; see info.c */
u32 kxfer_link_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records,
		    u32 nr)
{
	struct kxfer_info_link *info = records;
	struct kxfer_link *link;
	u32 n = 0;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node) {
		if (n == nr)
			break;
		if (link->id <= *cursor || !shows(viewer, link))
			continue;
		fill_link_info(link, &info[n]);
		if (viewer && !viewer->admin && !link->initiator)
			hide_others(&info[n], noted(viewer, link));
		n++;
		*cursor = link->id;
	}
	spin_unlock_bh(&links_lock);
	return n;
}

/* By index, which is the order of ids: a peer may connect its lanes in any order. */
static bool visit_lanes(struct kxfer_link *link,
			bool (*visit)(const struct kxfer_lane *lane, void *context), void *context)
{
	unsigned long flags;
	bool more = true;
	u32 i;

	spin_lock_irqsave(&link->lock, flags);
	for (i = 0; more && i <= link->nr_data; i++) {
		const struct kxfer_lane *lane = i ? link->data[i - 1] : link->control;

		if (lane)
			more = visit(lane, context);
	}
	spin_unlock_irqrestore(&link->lock, flags);
	return more;
}

/**
 * kxfer_lane_visit() - call a function for all lanes that a caller of INFO may see
 * @viewer: caller; NULL: debugfs, which sees all
 * @visit: called by link and lane id, with spinlocks held and interrupts off. Return: go on
 * @context: for @visit
 */
void kxfer_lane_visit(const struct kxfer_viewer *viewer,
		      bool (*visit)(const struct kxfer_lane *lane, void *context), void *context)
{
	struct kxfer_link *link;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node) {
		if (!shows(viewer, link) || (viewer && !viewer->admin && !link->initiator))
			continue;
		if (!visit_lanes(link, visit, context))
			break;
	}
	spin_unlock_bh(&links_lock);
}

/**
 * struct lane_list - records of lanes that are being listed
 * @records: where they go
 * @nr: room that is left there
 * @cursor: id of the last one
 */
struct lane_list {
	struct kxfer_info_lane *records;
	u32 nr;
	u64 cursor;
};

static bool list_lane(const struct kxfer_lane *lane, void *context)
{
	struct lane_list *list = context;

	if (lane->id <= list->cursor)
		return true;
	fill_lane_info(lane, list->records++);
	list->cursor = lane->id;
	return --list->nr;
}

/** kxfer_lane_info() - INFO records of lanes, by link and lane id; see info.c */
u32 kxfer_lane_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records,
		    u32 nr)
{
	struct lane_list list = { .records = records, .nr = nr, .cursor = *cursor };

	kxfer_lane_visit(viewer, list_lane, &list);
	*cursor = list.cursor;
	return nr - list.nr;
}

/** kxfer_link_fail_net() - fail every link of a network namespace; does not wait */
void kxfer_link_fail_net(const struct net *net, int error)
{
	struct kxfer_link *link;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node)
		if (net_eq(link->net, net))
			kxfer_link_fail(link, error);
	spin_unlock_bh(&links_lock);
}

/** kxfer_link_fail_all() - fail every link and wait until none exists; may sleep */
void kxfer_link_fail_all(int error)
{
	struct kxfer_link *link;

	spin_lock_bh(&links_lock);
	list_for_each_entry(link, &links, node)
		kxfer_link_fail(link, error);
	spin_unlock_bh(&links_lock);
	kxfer_link_wait_none();
}
