// SPDX-License-Identifier: GPL-2.0
/*
 * Users: what one uid may take of what all users of the node share.
 *
 * A session has caps of its own (session.h), but a process may open many, and what
 * is limited on the node (sessions, links and their reserved ports), on a link
 * (grants) or on a lane (its queue) would then be one user's. So each effective
 * uid has a share of each, a module parameter that root may change at any time.
 * CAP_SYS_RESOURCE goes beyond the shares, as it does with quotas, but not beyond
 * the caps of the node.
 *
 * A link counts for whose call made it, from the first step of connecting to the
 * end of its teardown, whoever else uses it meanwhile. What a peer's users take
 * here is that kernel's to share out among them.
 *
 * Context: kxfer_user_get() may sleep, the others may not.
 */
#include "log.h"

#include <linux/capability.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "fault.h"
#include "user.h"

static unsigned int limits[KXFER_SHARE_KINDS] = {
	[KXFER_SHARE_SESSIONS]	= 1024,
	[KXFER_SHARE_EXPORTS]	= 4096,
	[KXFER_SHARE_LINKS]	= 64,
	[KXFER_SHARE_TARGETS]	= 8192,
	[KXFER_SHARE_JOBS]	= 32768,
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

static DEFINE_SPINLOCK(users_lock);
static LIST_HEAD(users);

/* Called with users_lock held. */
static struct kxfer_user *find(u32 uid)
{
	struct kxfer_user *user;

	list_for_each_entry(user, &users, node) {
		if (user->uid == uid) {
			kxfer_user_ref(user);
			return user;
		}
	}
	return NULL;
}

/** kxfer_user_get() - the user of a uid, with a reference, or NULL without memory */
struct kxfer_user *kxfer_user_get(u32 uid)
{
	struct kxfer_user *fresh, *user;

	fresh = kxfer_fault(USER) ? NULL : kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	fresh->uid = uid;
	refcount_set(&fresh->ref, 1);
	spin_lock_bh(&users_lock);
	user = find(uid);
	if (!user)
		list_add_tail(&fresh->node, &users);
	spin_unlock_bh(&users_lock);
	if (!user)
		return fresh;
	kfree(fresh);
	return user;
}

/** kxfer_user_ref() - one more reference; the caller has one */
void kxfer_user_ref(struct kxfer_user *user)
{
	refcount_inc(&user->ref);
}

/** kxfer_user_put() - one reference less; any context but hard interrupts */
void kxfer_user_put(struct kxfer_user *user)
{
	bool last;

	/* Under the lock: who finds it in the list finds it alive. */
	spin_lock_bh(&users_lock);
	last = refcount_dec_and_test(&user->ref);
	if (last)
		list_del(&user->node);
	spin_unlock_bh(&users_lock);
	if (last)
		kfree(user);
}

/**
 * kxfer_user_take_some() - count up to so many more
 * @user: that takes
 * @share: what
 * @want: how many
 *
 * For the calling process, whose capability counts. Counted first and compared
 * then, so that no two slip through. Return: how many, perhaps 0.
 */
u32 kxfer_user_take_some(struct kxfer_user *user, enum kxfer_share share, u32 want)
{
	unsigned int nr = atomic_add_return(want, &user->nr[share]);
	unsigned int limit = READ_ONCE(limits[share]);
	u32 over;

	if (nr <= limit || capable(CAP_SYS_RESOURCE))
		return want;
	over = min(nr - limit, want);
	atomic_sub(over, &user->nr[share]);
	return want - over;
}

/** kxfer_user_take() - count one more, likewise. Return: 0 or -EDQUOT */
int kxfer_user_take(struct kxfer_user *user, enum kxfer_share share)
{
	return kxfer_user_take_some(user, share, 1) ? 0 : -EDQUOT;
}

/** kxfer_user_return() - count @nr less; any context */
void kxfer_user_return(struct kxfer_user *user, enum kxfer_share share, u32 nr)
{
	if (nr)
		atomic_sub(nr, &user->nr[share]);
}
