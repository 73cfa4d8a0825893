/* SPDX-License-Identifier: GPL-2.0 */
/* Shares of one user in the shared resources of this node. See user.c. */
#ifndef KXFER_USER_H
#define KXFER_USER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct user_namespace;

#define KXFER_USER_RESERVE	16	/* 1/16 is kept for CAP_SYS_RESOURCE */

/* Objects counted for each user; the module parameters max_*_per_uid limit them. */
enum kxfer_share {
	KXFER_SHARE_SESSIONS,
	KXFER_SHARE_EXPORTS,
	KXFER_SHARE_LINKS,
	KXFER_SHARE_TARGETS,
	KXFER_SHARE_JOBS,
	KXFER_SHARE_RECONNECTS,
	KXFER_SHARE_KINDS,
};

/**
 * struct kxfer_user - the sessions of one effective uid in one user namespace
 * @node: entry of the list of users
 * @ref: held by sessions, links, targets and memory, and by users whose @parent this is
 * @uid: effective uid
 * @ns: user namespace of @uid; a reference
 * @parent: owner of @ns in the namespace above, or NULL; a reference
 * @nr: objects taken, by enum kxfer_share, also by users of namespaces that this user owns
 * @nr_pinned: pages pinned in sessions, also by users of namespaces that this user owns
 */
struct kxfer_user {
	struct list_head node;
	refcount_t ref;
	kuid_t uid;
	struct user_namespace *ns;
	struct kxfer_user *parent;
	atomic_t nr[KXFER_SHARE_KINDS];
	atomic_long_t nr_pinned;
};

struct kxfer_user *kxfer_user_get(void);
void kxfer_user_ref(struct kxfer_user *user);
void kxfer_user_put(struct kxfer_user *user);
u32 kxfer_user_take_some(struct kxfer_user *user, enum kxfer_share share, u32 want);
int kxfer_user_take(struct kxfer_user *user, enum kxfer_share share);
void kxfer_user_return(struct kxfer_user *user, enum kxfer_share share, u32 nr);
bool kxfer_user_room(u32 nr, u32 max);
int kxfer_user_pin(struct kxfer_user *user, unsigned long nr_pages, unsigned long limit);
void kxfer_user_unpin(struct kxfer_user *user, unsigned long nr_pages);

#endif /* KXFER_USER_H */
