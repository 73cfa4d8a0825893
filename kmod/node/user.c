// SPDX-License-Identifier: GPL-2.0
/*
 * Users: shares of one uid in the resources that all users of the node share.
 *
 * A session has caps of its own (session.h), but a process may open many sessions. One
 * user could then take all that is limited on the node (sessions, links and their reserved
 * ports), on a link (grants) or on a lane (its queue). So each effective uid has a share
 * of each resource, set by a module parameter that root may change at any time.
 * CAP_SYS_RESOURCE goes beyond the shares, as it does with quotas, but not beyond
 * the caps of the node. Pages that stay pinned in a user's sessions are counted in
 * the same place, against RLIMIT_MEMLOCK of the process that pins (memory.c).
 *
 * The owner of a user namespace hands out its uids, and may have 65,536 of them. So a
 * user is a pair of uid and user namespace. All that a user takes also counts for the
 * owner of the namespace, in the namespace above, and so on up to the initial namespace,
 * as with the kernel's ucounts. Each of these users must have room.
 *
 * The last part of a resource of the node is kept for CAP_SYS_RESOURCE in the initial
 * user namespace (kxfer_user_room()). So root can still open a session and make a link,
 * however many users fill their shares.
 *
 * A link counts for the user whose call made it, from the first step of connecting to
 * the end of its teardown, even if other users use it meanwhile. The peer's kernel
 * limits what its users take here.
 *
 * Context: kxfer_user_get() may sleep, the others may not.
 */
#include "base/log.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>

#include "base/fault.h"
#include "node/user.h"

static unsigned int limits[KXFER_SHARE_KINDS] = {
	[KXFER_SHARE_SESSIONS]	= 1024,
	[KXFER_SHARE_EXPORTS]	= 4096,
	[KXFER_SHARE_LINKS]	= 64,
	[KXFER_SHARE_TARGETS]	= 8192,
	[KXFER_SHARE_JOBS]	= 32768,
	[KXFER_SHARE_RECONNECTS] = 64,
};

module_param_named(max_sessions_per_uid, limits[KXFER_SHARE_SESSIONS], uint, 0644);
MODULE_PARM_DESC(max_sessions_per_uid, "open files of one uid (1024)");
module_param_named(max_exports_per_uid, limits[KXFER_SHARE_EXPORTS], uint, 0644);
MODULE_PARM_DESC(max_exports_per_uid, "exports of one uid (4096)");
module_param_named(max_links_per_uid, limits[KXFER_SHARE_LINKS], uint, 0644);
MODULE_PARM_DESC(max_links_per_uid, "links that one uid has made, connecting ones too (64)");
module_param_named(max_targets_per_uid, limits[KXFER_SHARE_TARGETS], uint, 0644);
MODULE_PARM_DESC(max_targets_per_uid, "targets of one uid (8192)");
module_param_named(max_jobs_per_uid, limits[KXFER_SHARE_JOBS], uint, 0644);
MODULE_PARM_DESC(max_jobs_per_uid, "jobs of one uid in flight or not reaped (32768)");
module_param_named(max_reconnects_per_uid, limits[KXFER_SHARE_RECONNECTS], uint, 0644);
MODULE_PARM_DESC(max_reconnects_per_uid, "lines of one uid that look for a link at once (64)");

static DEFINE_SPINLOCK(users_lock);
static LIST_HEAD(users);

/* Called with users_lock held. */
static struct kxfer_user *find(const struct kxfer_user *like)
{
	struct kxfer_user *user;

	list_for_each_entry(user, &users, node) {
		if (uid_eq(user->uid, like->uid) && user->ns == like->ns) {
			kxfer_user_ref(user);
			return user;
		}
	}
	return NULL;
}

static struct kxfer_user *alloc(kuid_t uid, struct user_namespace *ns)
{
	struct kxfer_user *user;

	user = kxfer_try_alloc(USER, kzalloc_obj(*user, GFP_KERNEL_ACCOUNT));
	if (!user)
		return NULL;
	user->uid = uid;
	user->ns = get_user_ns(ns);
	refcount_set(&user->ref, 1);
	return user;
}

/* Free a user and those above it; all of them are in no list. */
static void free_all(struct kxfer_user *user)
{
	struct kxfer_user *parent;

	for (; user; user = parent) {
		parent = user->parent;
		put_user_ns(user->ns);
		kfree(user);
	}
}

/* Make users for the caller, the owner of its namespace, and so on up to the initial one. */
static struct kxfer_user *alloc_all(void)
{
	struct user_namespace *ns = current_user_ns();
	struct kxfer_user *first = NULL, **next = &first;
	kuid_t uid = current_euid();

	for (;;) {
		*next = alloc(uid, ns);
		if (!*next) {
			free_all(first);
			return NULL;
		}
		if (ns == &init_user_ns)
			return first;
		next = &(*next)->parent;
		uid = ns->owner;
		ns = ns->parent;
	}
}

/** kxfer_user_get() - get the calling user, with a reference; NULL: no memory */
struct kxfer_user *kxfer_user_get(void)
{
	struct kxfer_user *user = alloc_all(), **next, *known, *spare = NULL;

	if (!user)
		return NULL;
	spin_lock_bh(&users_lock);
	for (next = &user; *next; next = &(*next)->parent) {
		known = find(*next);
		if (known) {
			/* It has references on all users above it. */
			spare = *next;
			*next = known;
			break;
		}
		list_add_tail(&(*next)->node, &users);
	}
	spin_unlock_bh(&users_lock);
	free_all(spare);
	return user;
}

/** kxfer_user_ref() - take one more reference; the caller has one */
void kxfer_user_ref(struct kxfer_user *user)
{
	refcount_inc(&user->ref);
}

static bool put(struct kxfer_user *user)
{
	bool last;

	/* Under the lock, so that each user found in the list is alive. */
	spin_lock_bh(&users_lock);
	last = refcount_dec_and_test(&user->ref);
	if (last)
		list_del(&user->node);
	spin_unlock_bh(&users_lock);
	return last;
}

/** kxfer_user_put() - drop a reference; any context but hard interrupts */
void kxfer_user_put(struct kxfer_user *user)
{
	struct kxfer_user *parent;

	for (; user && put(user); user = parent) {
		parent = user->parent;
		put_user_ns(user->ns);
		kfree(user);
	}
}

/* Count, then compare, so that two callers cannot both pass. Return: number over the limit. */
static u32 take_of(struct kxfer_user *user, enum kxfer_share share, u32 want)
{
	unsigned int nr = atomic_add_return(want, &user->nr[share]);
	unsigned int limit = READ_ONCE(limits[share]);

	if (nr <= limit || capable(CAP_SYS_RESOURCE))
		return 0;
	return min(nr - limit, want);
}

/* Count @nr less from @user up to @last, inclusive. */
static void return_to(struct kxfer_user *user, struct kxfer_user *last,
		      enum kxfer_share share, u32 nr)
{
	for (; user; user = user == last ? NULL : user->parent)
		atomic_sub(nr, &user->nr[share]);
}

/**
 * kxfer_user_take_some() - count up to @want more objects
 * @user: user that takes them; they also count for the owners above it
 * @share: kind of the objects
 * @want: number wanted
 *
 * The capabilities of the calling process count. Return: number taken, may be 0.
 */
u32 kxfer_user_take_some(struct kxfer_user *user, enum kxfer_share share, u32 want)
{
	struct kxfer_user *at;
	u32 over;

	for (at = user; at; at = at->parent) {
		over = take_of(at, share, want);
		if (over)
			return_to(user, at, share, over);
		want -= over;
	}
	return want;
}

/** kxfer_user_take() - kxfer_user_take_some() of one object. Return: 0 or -EDQUOT */
int kxfer_user_take(struct kxfer_user *user, enum kxfer_share share)
{
	return kxfer_user_take_some(user, share, 1) ? 0 : -EDQUOT;
}

/** kxfer_user_return() - count @nr objects less; any context */
void kxfer_user_return(struct kxfer_user *user, enum kxfer_share share, u32 nr)
{
	if (nr)
		return_to(user, NULL, share, nr);
}

/**
 * kxfer_user_room() - may the caller take one more of a resource of the node?
 * @nr: number taken
 * @max: limit of the node
 *
 * 1 / KXFER_USER_RESERVE of @max is kept for CAP_SYS_RESOURCE. Process context, may be atomic.
 */
bool kxfer_user_room(u32 nr, u32 max)
{
	return nr < max - max / KXFER_USER_RESERVE || (nr < max && capable(CAP_SYS_RESOURCE));
}

/* Count @nr_pages less from @user up to @last, inclusive. */
static void unpin_to(struct kxfer_user *user, struct kxfer_user *last, unsigned long nr_pages)
{
	for (; user; user = user == last ? NULL : user->parent)
		atomic_long_sub(nr_pages, &user->nr_pinned);
}

/**
 * kxfer_user_pin() - count pages that will stay pinned in a session of the user
 * @user: user of the session; the pages also count for the owners above it
 * @nr_pages: number of pages
 * @limit: most pages of each of these users
 *
 * Return: 0, or -ENOMEM, as is usual for RLIMIT_MEMLOCK.
 */
int kxfer_user_pin(struct kxfer_user *user, unsigned long nr_pages, unsigned long limit)
{
	struct kxfer_user *at;

	for (at = user; at; at = at->parent) {
		if (atomic_long_add_return(nr_pages, &at->nr_pinned) > limit) {
			unpin_to(user, at, nr_pages);
			return -ENOMEM;
		}
	}
	return 0;
}

/** kxfer_user_unpin() - count @nr_pages pinned pages less; any context */
void kxfer_user_unpin(struct kxfer_user *user, unsigned long nr_pages)
{
	unpin_to(user, NULL, nr_pages);
}
