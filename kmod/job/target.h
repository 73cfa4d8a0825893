/* SPDX-License-Identifier: GPL-2.0 */
/* Handles on exports of peers. See target.c. */
#ifndef KXFER_TARGET_H
#define KXFER_TARGET_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/list.h>

#include "base/wire.h"

struct kxfer_extent;
struct kxfer_flow;
struct kxfer_line;
struct kxfer_link;
struct kxfer_peer;
struct kxfer_sender;
struct kxfer_session;
struct kxfer_user;

/**
 * struct kxfer_target - a session's handle on an export of a peer
 * @ref: references, held by the session's table, by calls and by a withdrawal
 * @id: id in its session
 * @user: user that the target counts for; a reference
 * @peer: peer of the export; a reference
 * @link: link of the target, with a use
 * @line: line of @peer, in which its jobs may wait for another link; or NULL
 * @name: name of the export; this and the next four are set if there is a line
 * @word: value that the session gave for its messages
 * @node: node of the export, since its module was loaded
 * @export: number of the export there
 * @counted: counts for @user; false: the target whose place it takes does
 * @unplaced: iWARP: WRITEs of its jobs were posted after the last placement READ of one of them;
 *	protected by the lock of its flow's lane
 * @link_node: entry in kxfer_link.opening, then in its targets, then in its closed_targets
 * @opening: number of the open on its link
 * @grant: the peer's id of the grant, or 0
 * @exposure: the peer's id of the registration
 * @rights: KXFER_RIGHT_* granted
 * @length: bytes of the export; mailbox: longest payload of a message
 * @keys: checked table of addresses and rkeys; NULL for a mailbox
 * @nr_keys: entries of @keys
 * @sender: credits for messages; a reference; NULL unless the export is a mailbox
 * @flow: flow of the session on the link; a reference; NULL before the target is in the table
 * @content: content of the export; protected by the link's targets_lock
 * @cookie: value that the owner gave with the export, by the peer's last answer; protected by
 *	the link's targets_lock
 * @nr_jobs: jobs in flight; while not 0 the target stays
 * @revoked: the export was withdrawn; set under each lane's lock, under which jobs read it
 * @told: a withdrawal of the target has begun; protected by the link's targets_lock
 */
struct kxfer_target {
	struct kref ref;
	u32 id;
	struct kxfer_user *user;
	struct kxfer_peer *peer;
	struct kxfer_link *link;
	struct kxfer_line *line;
	u8 name[KXFER_NAME_MAX + 1];
	u64 word;
	u64 node;
	u64 export;
	bool counted;
	bool unplaced;
	struct list_head link_node;
	unsigned long opening;
	u64 grant;
	u64 exposure;
	u32 rights;
	u64 length;
	struct kxfer_extent *keys;
	u32 nr_keys;
	struct kxfer_sender *sender;
	struct kxfer_flow *flow;
	struct kxfer_content content;
	u64 cookie;
	atomic_t nr_jobs;
	bool revoked;
	bool told;
};

/**
 * enum kxfer_target_step - what happened to a target, for its tracepoint
 * @KXFER_TARGET_OPENED: it is granted and in its session, perhaps in place of one of another link
 * @KXFER_TARGET_CLOSED: it has left its session
 * @KXFER_TARGET_WITHDRAWN: the peer has withdrawn the export
 */
enum kxfer_target_step {
	KXFER_TARGET_OPENED,
	KXFER_TARGET_CLOSED,
	KXFER_TARGET_WITHDRAWN,
};

int kxfer_target_open(struct kxfer_session *session, void *arg);
int kxfer_target_close(struct kxfer_session *session, void *arg);
struct kxfer_target *kxfer_target_find(struct kxfer_session *session, u32 id);
struct kxfer_target *kxfer_target_alloc(struct kxfer_peer *peer, struct kxfer_link *link);
int kxfer_target_acquire(struct kxfer_target *target, const struct kxfer_target_open *cmd,
			 unsigned long end);
int kxfer_target_make_flow(struct kxfer_session *session, struct kxfer_target *target);
void kxfer_target_join_flow(struct kxfer_session *session, struct kxfer_flow *flow);
void kxfer_target_leave(struct kxfer_session *session, struct kxfer_target *target);
void kxfer_target_put(struct kxfer_target *target);
void kxfer_target_settle(struct kxfer_target *target);
void kxfer_target_free(struct kxfer_target *target);
void kxfer_target_revoke(struct kxfer_link *link, u64 exposure);

/* target_info.c */
int kxfer_target_info(struct kxfer_session *session, void *arg);
int kxfer_target_identify(struct kxfer_target *target, const struct kxfer_target_open *cmd,
			  unsigned long end);
void kxfer_target_content(struct kxfer_link *link, u64 exposure,
			  const struct kxfer_wire_content *content);

/* renewal.c */
struct kxfer_target *kxfer_target_behind(struct kxfer_peer *peer, const struct kxfer_link *link,
					 unsigned long *id, unsigned long end);
bool kxfer_target_is_quiet(struct kxfer_target *target);
bool kxfer_target_all_quiet(struct kxfer_peer *peer, const struct kxfer_link *link,
			    unsigned long end);
int kxfer_target_renew(struct kxfer_target *old, struct kxfer_link *link, unsigned long end);
int kxfer_target_try_renew(struct kxfer_target *old, struct kxfer_link *link, unsigned long end);

#define KXFER_INFO_TIMEOUT_MAX_MS	3600000	/* of TARGET_INFO, which may wait for new content */

#endif /* KXFER_TARGET_H */
