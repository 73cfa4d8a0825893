/* SPDX-License-Identifier: GPL-2.0 */
/* What one user of this node may take of what all share. See user.c. */
#ifndef KXFER_USER_H
#define KXFER_USER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>

/* What is counted for each user, and the module parameters max_*_per_uid. */
enum kxfer_share {
	KXFER_SHARE_SESSIONS,
	KXFER_SHARE_EXPORTS,
	KXFER_SHARE_LINKS,
	KXFER_SHARE_TARGETS,
	KXFER_SHARE_JOBS,
	KXFER_SHARE_KINDS,
};

/**
 * struct kxfer_user - the sessions of one effective uid
 * @node: in the list of users
 * @ref: held by sessions, links and targets
 * @uid: in the initial user namespace
 * @nr: taken, by enum kxfer_share
 */
struct kxfer_user {
	struct list_head node;
	refcount_t ref;
	u32 uid;
	atomic_t nr[KXFER_SHARE_KINDS];
};

struct kxfer_user *kxfer_user_get(u32 uid);
void kxfer_user_ref(struct kxfer_user *user);
void kxfer_user_put(struct kxfer_user *user);
u32 kxfer_user_take_some(struct kxfer_user *user, enum kxfer_share share, u32 want);
int kxfer_user_take(struct kxfer_user *user, enum kxfer_share share);
void kxfer_user_return(struct kxfer_user *user, enum kxfer_share share, u32 nr);

#endif /* KXFER_USER_H */
