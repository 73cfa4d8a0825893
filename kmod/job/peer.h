/* SPDX-License-Identifier: GPL-2.0 */
/* Handles on other nodes. See peer.c. */
#ifndef KXFER_PEER_H
#define KXFER_PEER_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/spinlock.h>

#include "link/link.h"

struct kxfer_line;
struct kxfer_paths;
struct kxfer_session;

#define KXFER_TIMEOUT_MAX_MS	60000	/* of a call that waits for a peer */

/**
 * struct kxfer_peer - a session's handle on a peer node
 * @ref: references, held by the session's table, by targets and by calls
 * @id: id in its session
 * @session: session of the peer
 * @paths: ways to the node, with the keys of the links
 * @lock: protects the replacement of @link, and the next member
 * @turn: path over which a link was tried last
 * @link: link to the peer, with a use; if it is broken the next call connects anew
 * @link_id: kxfer_link.id of @link, for INFO; read without @lock
 * @line: its line, if it was opened with loss_ms; else NULL
 * @nr_targets: open targets; while not 0 the peer stays
 * @rcu: delays freeing: INFO finds peers in a session's table without its lock
 */
struct kxfer_peer {
	struct kref ref;
	u32 id;
	struct kxfer_session *session;
	struct kxfer_paths *paths;
	spinlock_t lock;
	u32 turn;
	struct kxfer_link *link;
	u64 link_id;
	struct kxfer_line *line;
	atomic_t nr_targets;
	struct rcu_head rcu;
};

int kxfer_peer_open(struct kxfer_session *session, void *arg);
int kxfer_peer_close(struct kxfer_session *session, void *arg);
int kxfer_peer_list(struct kxfer_session *session, void *arg);
struct kxfer_peer *kxfer_peer_find(struct kxfer_session *session, u32 id);
struct kxfer_link *kxfer_peer_link(struct kxfer_peer *peer, unsigned int timeout_ms);
struct kxfer_link *kxfer_peer_try_link(struct kxfer_peer *peer, unsigned int timeout_ms);
struct kxfer_link *kxfer_peer_try_first(struct kxfer_peer *peer, unsigned int timeout_ms);
bool kxfer_peer_is_over(struct kxfer_peer *peer, const struct kxfer_link *link);
bool kxfer_peer_is_away(struct kxfer_peer *peer);
void kxfer_peer_go_first(struct kxfer_peer *peer, struct kxfer_link *link);
void kxfer_peer_put(struct kxfer_peer *peer);
void kxfer_peer_note_links(struct kxfer_session *session, struct xarray *links);

/* The rest of a caller's timeout, at least 1 ms; it ends at @end, whatever the peer does. */
static inline unsigned int kxfer_left_ms(unsigned long end)
{
	return time_before(jiffies, end) ? jiffies_to_msecs(end - jiffies) : 1;
}

#endif /* KXFER_PEER_H */
