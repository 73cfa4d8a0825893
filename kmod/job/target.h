/* SPDX-License-Identifier: GPL-2.0 */
/* Peers and handles on their exports. See target.c. */
#ifndef KXFER_TARGET_H
#define KXFER_TARGET_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "base/wire.h"
#include "link/link.h"

struct kxfer_extent;
struct kxfer_flow;
struct kxfer_session;
struct kxfer_user;

/**
 * struct kxfer_peer - a session's handle on a peer node
 * @ref: held by the session's table, by targets and by calls
 * @id: in its session
 * @session: it belongs to
 * @key: of the link
 * @lock: over replacing @link
 * @link: a use; may be broken, then the next target connects anew
 * @link_id: kxfer_link.id of @link, for INFO; read without @lock
 * @nr_targets: open; while not 0 the peer stays
 * @rcu: INFO finds peers in a session's table without its lock
 */
struct kxfer_peer {
	struct kref ref;
	u32 id;
	struct kxfer_session *session;
	struct kxfer_link_key key;
	spinlock_t lock;
	struct kxfer_link *link;
	u64 link_id;
	atomic_t nr_targets;
	struct rcu_head rcu;
};

/**
 * struct kxfer_target - a session's handle on an export of a peer
 * @ref: held by the session's table, by calls and by a withdrawal
 * @id: in its session
 * @user: counts it; a reference
 * @peer: a reference
 * @link: a use
 * @unfenced: iWARP: WRITEs of its jobs were posted behind the last fence READ of one;
 *	under the lock of its flow's lane
 * @link_node: in kxfer_link.opening, then in kxfer_link.targets, then in closed_targets
 * @opening: number of the open on its link
 * @grant: the peer's id of it
 * @exposure: the peer's id of the registration
 * @rights: KXFER_RIGHT_* granted
 * @length: bytes; of a mailbox: most payload of one message
 * @keys: table of addresses and rkeys, checked; NULL of a mailbox
 * @nr_keys: entries
 * @flow: of its session on the link; a reference; NULL before it is in the table
 * @content: what it holds, under the link's targets_lock
 * @nr_jobs: in flight; while not 0 the target stays
 * @revoked: the export was withdrawn; set and read under each lane's lock
 * @told: a withdrawal has begun, under the link's targets_lock
 */
struct kxfer_target {
	struct kref ref;
	u32 id;
	struct kxfer_user *user;
	struct kxfer_peer *peer;
	struct kxfer_link *link;
	bool unfenced;
	struct list_head link_node;
	unsigned long opening;
	u64 grant;
	u64 exposure;
	u32 rights;
	u64 length;
	struct kxfer_extent *keys;
	u32 nr_keys;
	struct kxfer_flow *flow;
	struct kxfer_content content;
	atomic_t nr_jobs;
	bool revoked;
	bool told;
};

int kxfer_peer_open(struct kxfer_session *session, void *arg);
int kxfer_peer_close(struct kxfer_session *session, void *arg);
int kxfer_peer_list(struct kxfer_session *session, void *arg);
struct kxfer_peer *kxfer_peer_find(struct kxfer_session *session, u32 id);
struct kxfer_link *kxfer_peer_link(struct kxfer_peer *peer, unsigned int timeout_ms);
void kxfer_peer_put(struct kxfer_peer *peer);
void kxfer_peer_note_links(struct kxfer_session *session, struct xarray *links);

int kxfer_target_open(struct kxfer_session *session, void *arg);
int kxfer_target_close(struct kxfer_session *session, void *arg);
int kxfer_target_info(struct kxfer_session *session, void *arg);
void kxfer_target_put(struct kxfer_target *target);
void kxfer_target_settle(struct kxfer_target *target);
void kxfer_target_free(struct kxfer_target *target);
void kxfer_target_revoke(struct kxfer_link *link, u64 exposure);
void kxfer_target_content(struct kxfer_link *link, u64 exposure,
			  const struct kxfer_wire_content *content);

/* What is left of a caller's timeout, at least 1 ms; the peer cannot stretch it. */
static inline unsigned int kxfer_left_ms(unsigned long end)
{
	return time_before(jiffies, end) ? jiffies_to_msecs(end - jiffies) : 1;
}

#define KXFER_TIMEOUT_MAX_MS		60000
#define KXFER_INFO_TIMEOUT_MAX_MS	3600000

#endif /* KXFER_TARGET_H */
