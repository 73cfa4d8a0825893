/* SPDX-License-Identifier: GPL-2.0 */
/* Regions and mailboxes published under names. See export.c. */
#ifndef KXFER_EXPORT_H
#define KXFER_EXPORT_H

#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "base/wire.h"

struct kxfer_claim;
struct kxfer_link;
struct kxfer_mailbox;
struct kxfer_region;
struct kxfer_session;
struct kxfer_user;
struct kxfer_viewer;
struct mem_cgroup;
struct net;

/**
 * struct kxfer_export - a range of a region, or a mailbox, under a name
 * @ref: references, held by its session's table (or the module) and by exposures
 * @name_node: in the table of exports while the export can be opened
 * @id: id in its session
 * @node_id: id on this node
 * @name: name, zero-terminated
 * @net: network namespace that the name is in, as long as it can be opened; NULL: all of them
 * @rights: KXFER_RIGHT_*
 * @region: region, which counts the export as a user; NULL for a mailbox
 * @offset: start in the region
 * @length: bytes; for a mailbox the most payload of one message
 * @mailbox: mailbox or NULL
 * @rules: access rules; may be NULL
 * @nr_rules: entries of @rules
 * @user: user that the export counts for, kept by the session; NULL: the built-in export
 * @memcg: memory cgroup of its creator; a reference; NULL: no cgroup is charged
 * @cookie: value that the owner gave, for peers that open the export
 * @builtin: the export of the module itself, which LIST leaves out (ping.c)
 * @owner_uid: uid of the session
 * @owner_pid: pid of the session
 * @charges: charges to the rdma cgroup; see charge.c
 * @exposures: exposures, by kxfer_exposure.export_node, under kxfer_exports_lock()
 * @nr_exposures: exposures not deregistered yet, including those already off @exposures
 * @lock: protects @session and @content; bh-safe
 * @session: session that gets the events; NULL once withdrawn, and for the built-in export
 * @content: what the export holds
 */
struct kxfer_export {
	struct kref ref;
	struct hlist_node name_node;
	u32 id;
	u64 node_id;
	char name[KXFER_NAME_MAX + 1];
	const struct net *net;
	u32 rights;
	struct kxfer_region *region;
	u64 offset;
	u64 length;
	struct kxfer_mailbox *mailbox;
	struct kxfer_rule *rules;
	u32 nr_rules;
	struct kxfer_user *user;
	struct mem_cgroup *memcg;
	u64 cookie;
	bool builtin;
	u32 owner_uid;
	pid_t owner_pid;
	struct list_head charges;
	struct list_head exposures;
	atomic_t nr_exposures;
	spinlock_t lock;
	struct kxfer_session *session;
	struct kxfer_content content;
};

struct kxfer_export *kxfer_export_alloc(const char *name, u32 rights);
void kxfer_export_put(struct kxfer_export *export);
int kxfer_export_add(struct kxfer_session *session, void *arg);
int kxfer_export_add_mailbox(struct kxfer_session *session, void *arg);
int kxfer_export_del(struct kxfer_session *session, void *arg);
int kxfer_export_set(struct kxfer_session *session, void *arg);
void kxfer_export_withdraw(struct kxfer_export *export);
void kxfer_export_begin_withdrawal(struct kxfer_export *export);
void kxfer_export_end_withdrawal(struct kxfer_export *export);

struct kxfer_claim kxfer_export_claim(const struct kxfer_link *link, __be32 uid, __be32 gid);
u32 kxfer_export_allowed(const struct kxfer_export *export, struct kxfer_claim *claim);
u32 kxfer_export_possible(const struct kxfer_link *link, u32 allowed);
u64 kxfer_export_length(const struct kxfer_export *export, const struct kxfer_link *link);
void kxfer_export_content(struct kxfer_export *export, struct kxfer_wire_content *wire);
int kxfer_export_deliver(struct kxfer_export *export, struct kxfer_event *event);

enum kxfer_wire_status kxfer_export_list(struct kxfer_link *link,
					 const struct kxfer_wire_list *request,
					 struct kxfer_wire_list_answer *answer,
					 u32 *length);
void kxfer_export_note_links(const struct kxfer_viewer *viewer, struct xarray *links);
u32 kxfer_export_info(const struct kxfer_viewer *viewer, u64 *cursor,
		      void *records, u32 nr);

#endif /* KXFER_EXPORT_H */
