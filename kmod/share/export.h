/* SPDX-License-Identifier: GPL-2.0 */
/* Regions and mailboxes published under names, and the peers that reach them. See export.c. */
#ifndef KXFER_EXPORT_H
#define KXFER_EXPORT_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "base/wire.h"

struct ib_mr;
struct kxfer_claim;
struct kxfer_extent;
struct kxfer_link;
struct kxfer_mailbox;
struct kxfer_mapping;
struct kxfer_region;
struct kxfer_session;
struct kxfer_user;
struct mem_cgroup;

#define KXFER_REVOKE_MS		10000	/* a holder that does not answer in time loses the link */

/**
 * struct kxfer_export - a range of a region, or a mailbox, under a name
 * @ref: references, held by its session's table (or the module) and by exposures
 * @name_node: in the table of exports while the export can be opened
 * @id: id in its session
 * @node_id: id on this node
 * @name: name, zero-terminated
 * @rights: KXFER_RIGHT_*
 * @region: region, which counts the export as a user; NULL for a mailbox
 * @offset: start in the region
 * @length: bytes; for a mailbox the most payload of one message
 * @mailbox: mailbox or NULL
 * @rules: access rules; may be NULL
 * @nr_rules: entries of @rules
 * @user: user that the export counts for, kept by the session; NULL: the built-in export
 * @memcg: memory cgroup of its creator; a reference; NULL: no cgroup is charged
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
	u32 rights;
	struct kxfer_region *region;
	u64 offset;
	u64 length;
	struct kxfer_mailbox *mailbox;
	struct kxfer_rule *rules;
	u32 nr_rules;
	struct kxfer_user *user;
	struct mem_cgroup *memcg;
	u32 owner_uid;
	pid_t owner_pid;
	struct list_head charges;
	struct list_head exposures;
	atomic_t nr_exposures;
	spinlock_t lock;
	struct kxfer_session *session;
	struct kxfer_content content;
};

/**
 * struct kxfer_exposure - an export registered on one link with given rights
 * @ref: references, held by the lists, by grants, by fetches and by the withdrawal
 * @id: id on this node
 * @export: export; a reference
 * @link: link, which stays while the exposure is in its list
 * @rights: KXFER_RIGHT_*
 * @nr_grants: grants, under kxfer_exports_lock(); at 0 the exposure is destroyed
 * @export_node: in kxfer_export.exposures; the context that removes the exposure destroys it
 * @link_node: in kxfer_link.exposures
 * @hash_node: in the table of exposures, by link, export and rights
 * @id_node: in the table of exposures by @id
 * @mapping: mapping of the region for the link's device; the exposure is a user of it
 * @mrs: MRs of the registrations
 * @keys: address, length and rkey of each registration
 * @nr_keys: entries of @mrs and of @keys
 * @ready: registration has ended
 * @error: result of the registration, 0 or -errno; valid once @ready is complete
 * @withdraw_work: makes the holder let go of the exposure
 * @content_dirty: new content has to be sent to the peer
 */
struct kxfer_exposure {
	struct kref ref;
	u64 id;
	struct kxfer_export *export;
	struct kxfer_link *link;
	u32 rights;
	u32 nr_grants;
	struct list_head export_node;
	struct list_head link_node;
	struct hlist_node hash_node;
	struct hlist_node id_node;
	struct kxfer_mapping *mapping;
	struct ib_mr **mrs;
	struct kxfer_extent *keys;
	u32 nr_keys;
	struct completion ready;
	int error;
	struct work_struct withdraw_work;
	bool content_dirty;
};

int kxfer_export_init(void);
void kxfer_export_exit(void);
int kxfer_export_add(struct kxfer_session *session, void *arg);
int kxfer_export_add_mailbox(struct kxfer_session *session, void *arg);
int kxfer_export_del(struct kxfer_session *session, void *arg);
int kxfer_export_set(struct kxfer_session *session, void *arg);
void kxfer_export_withdraw(struct kxfer_export *export);
void kxfer_export_begin_withdrawal(struct kxfer_export *export);
void kxfer_export_end_withdrawal(struct kxfer_export *export);

struct kxfer_claim kxfer_export_claim(const struct kxfer_link *link, __be32 uid, __be32 gid);
int kxfer_export_expose(struct kxfer_link *link, const struct kxfer_wire_grant *request,
			struct kxfer_claim *claim, struct kxfer_exposure **exposure);
void kxfer_export_unexpose(struct kxfer_exposure *exposure);
void kxfer_exposure_put(struct kxfer_exposure *exposure);
u64 kxfer_export_length(const struct kxfer_export *export, const struct kxfer_link *link);
void kxfer_export_content(struct kxfer_export *export, struct kxfer_wire_content *wire);
int kxfer_export_deliver(struct kxfer_export *export, struct kxfer_event *event);

enum kxfer_wire_status kxfer_export_keys(struct kxfer_link *link,
					 const struct kxfer_wire_keys *request,
					 struct kxfer_wire_keys_answer *answer,
					 u32 *length);
enum kxfer_wire_status kxfer_export_list(struct kxfer_link *link,
					 const struct kxfer_wire_list *request,
					 struct kxfer_wire_list_answer *answer,
					 u32 *length);
void kxfer_export_link_closed(struct kxfer_link *link);
void kxfer_export_content_work(struct work_struct *work);
void kxfer_export_note_links(const struct kxfer_session *viewer, struct xarray *links);
u32 kxfer_export_info(const struct kxfer_session *viewer, u64 *cursor,
		      void *records, u32 nr);

#endif /* KXFER_EXPORT_H */
