// SPDX-License-Identifier: GPL-2.0
/*
 * Exports: ranges of regions, and mailboxes, under names and access rules.
 *
 * An export is open to peers from kxfer_export_table_add() until its withdrawal, which
 * exposure.c proves: kxfer_export_begin_withdrawal() is step 1 of that proof, and
 * kxfer_export_end_withdrawal() step 5.
 *
 * Context: calls of users and handlers of links; may sleep, unless a function says that it
 * does not.
 *
 * Lock order: the session's lock, kxfer_exports_lock(), then a link's lock or an export's
 * lock. Nothing that waits for a peer or a device runs under kxfer_exports_lock().
 */
#include "base/log.h"

#include <linux/memcontrol.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/name.h"
#include "base/rule.h"
#include "base/stats.h"
#include "job/mailbox.h"
#include "link/link.h"
#include "node/charge.h"
#include "node/device.h"
#include "node/event.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"
#include "node/user.h"
#include "share/export.h"
#include "share/export_table.h"
#include "share/exposure.h"
#include "share/registration.h"

static void export_release(struct kref *ref)
{
	struct kxfer_export *export = container_of(ref, struct kxfer_export, ref);

	if (export->mailbox)
		kxfer_mailbox_destroy(export->mailbox);
	kvfree(export->rules);
	mem_cgroup_put(export->memcg);
	kfree(export);
	kxfer_stat_dec(KXFER_STAT_LIVE_EXPORTS);
}

/** kxfer_export_put() - drop a reference */
void kxfer_export_put(struct kxfer_export *export)
{
	kref_put(&export->ref, export_release);
}

/** kxfer_export_alloc() - make an export of no region yet, in no table. Return: it, or NULL */
struct kxfer_export *kxfer_export_alloc(const char *name, u32 rights)
{
	struct kxfer_export *export;

	export = kxfer_try_alloc(EXPORT, kzalloc_obj(*export, GFP_KERNEL_ACCOUNT));
	if (!export)
		return NULL;
	kref_init(&export->ref);
	INIT_LIST_HEAD(&export->charges);
	INIT_LIST_HEAD(&export->exposures);
	spin_lock_init(&export->lock);
	strscpy_pad(export->name, name, sizeof(export->name));
	export->rights = rights;
	kxfer_stat_inc(KXFER_STAT_LIVE_EXPORTS);
	return export;
}

/* Called with the session's lock held for writing. */
static int bind_region(struct kxfer_export *export, struct kxfer_session *session,
		       const struct kxfer_export_add *cmd)
{
	struct kxfer_region *region = xa_load(&session->regions, cmd->region);
	u64 end;

	if (!region)
		return -ENOENT;
	if (check_add_overflow(cmd->offset, cmd->length, &end))
		return -EOVERFLOW;
	if (end > region->memory->length)
		return -ERANGE;
	if (cmd->rights & (KXFER_RIGHT_WRITE | KXFER_RIGHT_ATOMIC) &&
	    !region->memory->writable)
		return -EACCES;
	export->region = region;
	export->offset = cmd->offset;
	export->length = cmd->length;
	return 0;
}

static int charge_on(struct kxfer_session *session, struct kxfer_export *export,
		     struct kxfer_device *dev)
{
	int ret = kxfer_charge_objects(&session->charges, &export->charges, dev,
				       kxfer_registration_count(export, dev));

	/* A device that is being removed takes no registrations. */
	return ret == -ENODEV ? 0 : ret;
}

/*
 * Charge on each present device the registrations that a link needs there. Return: 0; or
 * -EDQUOT, -ENOMEM or -EINTR, and nothing of the export is charged.
 */
static int charge_registrations(struct kxfer_session *session, struct kxfer_export *export)
{
	struct kxfer_device *dev;
	u64 last = 0;
	int ret = 0;

	while (!ret && (dev = kxfer_device_next(last))) {
		last = dev->id;
		ret = charge_on(session, export, dev);
		kxfer_device_put(dev);
	}
	if (ret)
		kxfer_charge_drop(&export->charges);
	return ret;
}

/* Steps for memory, not for a mailbox. Called with the session's lock held for writing. */
static int prepare_memory(struct kxfer_export *export, struct kxfer_session *session,
			  const struct kxfer_export_add *cmd)
{
	int ret = bind_region(export, session, cmd);

	if (!ret)
		ret = kxfer_event_prepare(session, cmd->nr_events);
	if (!ret)
		ret = charge_registrations(session, export);
	return ret;
}

/* Called with the session's lock held for writing. */
static int insert_into_tables(struct kxfer_session *session, struct kxfer_export *export)
{
	int ret = kxfer_table_insert(&session->exports, export, &export->id, KXFER_MAX_EXPORTS);

	if (ret || !export->mailbox)
		return ret;
	ret = xa_err(xa_store(&session->mailboxes, export->id, export->mailbox,
			      GFP_KERNEL_ACCOUNT));
	if (ret)
		xa_erase(&session->exports, export->id);
	return ret;
}

/* Called with the session's lock held for writing. Return: the export with @id, or NULL */
static struct kxfer_export *erase_from_tables(struct kxfer_session *session, u32 id)
{
	xa_erase(&session->mailboxes, id);
	return xa_erase(&session->exports, id);
}

/* Once an export is in the table another thread may delete it. @cmd: NULL for a mailbox. */
static int insert_export(struct kxfer_session *session, struct kxfer_export *export,
			 const struct kxfer_export_add *cmd, u32 *id)
{
	int ret = 0;

	export->session = session;
	export->net = session->net;
	export->owner_uid = session->uid;
	export->owner_pid = session->pid;
	down_write(&session->lock);
	if (cmd)
		ret = prepare_memory(export, session, cmd);
	if (!ret)
		ret = insert_into_tables(session, export);
	if (!ret) {
		ret = kxfer_export_table_add(export);
		if (ret)
			erase_from_tables(session, export->id);
		else if (cmd)
			atomic_inc(&export->region->users);
	}
	*id = export->id;
	up_write(&session->lock);
	if (ret)
		kxfer_charge_drop(&export->charges);
	return ret;
}

/* Add an export with rules, counted for its user. Frees it on failure. @cmd: NULL: mailbox. */
static int add_export(struct kxfer_session *session, struct kxfer_export *export,
		      const struct kxfer_export_add *cmd, const struct kxfer_rules *rules,
		      u32 *id)
{
	int ret;

	export->memcg = get_mem_cgroup_from_mm(current->mm);
	ret = kxfer_try(EXPORT_RULES, kxfer_rule_copy(&export->rules, rules, export->rights));
	if (ret)
		goto err_put;
	export->nr_rules = rules->nr;
	ret = kxfer_user_take(session->user, KXFER_SHARE_EXPORTS);
	if (ret)
		goto err_put;
	export->user = session->user;
	ret = insert_export(session, export, cmd, id);
	if (ret)
		goto err_return;
	return 0;

err_return:
	kxfer_user_return(session->user, KXFER_SHARE_EXPORTS, 1);
err_put:
	kxfer_export_put(export);
	return ret;
}

/** kxfer_export_add() - KXFER_EXPORT_ADD */
int kxfer_export_add(struct kxfer_session *session, void *arg)
{
	struct kxfer_export_add *cmd = arg;
	struct kxfer_rules rules = { cmd->rules, cmd->nr_rules, cmd->rule_stride };
	struct kxfer_export *export;

	if (cmd->flags || cmd->rights & ~KXFER_RIGHT_ALL)
		return -EOPNOTSUPP;
	if (cmd->nr_events > KXFER_EVENTS_MAX || !cmd->rights || !cmd->length ||
	    !kxfer_name_valid(cmd->name))
		return -EINVAL;
	export = kxfer_export_alloc((const char *)cmd->name, cmd->rights);
	if (!export)
		return -ENOMEM;
	export->cookie = cmd->cookie;
	return add_export(session, export, cmd, &rules, &cmd->export_id);
}

/** kxfer_export_add_mailbox() - KXFER_MAILBOX_ADD */
int kxfer_export_add_mailbox(struct kxfer_session *session, void *arg)
{
	struct kxfer_mailbox_add *cmd = arg;
	struct kxfer_rules rules = { cmd->rules, cmd->nr_rules, cmd->rule_stride };
	struct kxfer_export *export;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!kxfer_mailbox_size_valid(cmd->message_size) || !cmd->capacity || !cmd->max_bytes ||
	    !kxfer_name_valid(cmd->name))
		return -EINVAL;
	if (cmd->capacity > KXFER_MAILBOX_MAX || cmd->max_bytes > KXFER_MESSAGE_LONG_MAX)
		return -EDQUOT;
	export = kxfer_export_alloc((const char *)cmd->name, KXFER_RIGHT_SEND);
	if (!export)
		return -ENOMEM;
	export->cookie = cmd->cookie;
	export->length = cmd->max_bytes;
	export->mailbox = kxfer_mailbox_create(cmd->capacity, cmd->max_bytes, cmd->message_size);
	if (!export->mailbox) {
		kxfer_export_put(export);
		return -ENOMEM;
	}
	return add_export(session, export, NULL, &rules, &cmd->export_id);
}

/** kxfer_export_del() - KXFER_EXPORT_DEL; returns when no peer reaches the memory */
int kxfer_export_del(struct kxfer_session *session, void *arg)
{
	struct kxfer_id *cmd = arg;
	struct kxfer_export *export;

	down_write(&session->lock);
	export = erase_from_tables(session, cmd->id);
	up_write(&session->lock);
	if (!export)
		return -ENOENT;
	kxfer_export_withdraw(export);
	return 0;
}

/**
 * kxfer_export_claim() - identity of a process at the peer, for access rules
 * @link: passive link, LIVE
 * @uid: uid of the process, as the peer says
 * @gid: gid of the process, as the peer says
 */
struct kxfer_claim kxfer_export_claim(const struct kxfer_link *link, __be32 uid, __be32 gid)
{
	const struct kxfer_key *key = link->handshake.proven;

	return (struct kxfer_claim) {
		.addr = link->remote,
		.key = key ? key->name : NULL,
		.uid = be32_to_cpu(uid),
		.gid = be32_to_cpu(gid),
	};
}

/**
 * kxfer_export_allowed() - rights that the rules of an export allow to a user at a peer
 * @export: export
 * @claim: from kxfer_export_claim(); a uid and gid not believed become KXFER_UID_UNKNOWN
 *
 * Return: KXFER_RIGHT_*; 0: none.
 */
u32 kxfer_export_allowed(const struct kxfer_export *export, struct kxfer_claim *claim)
{
	if (!export->nr_rules)
		return export->rights;
	return kxfer_rule_decide(export->rules, export->nr_rules, claim);
}

/** kxfer_export_possible() - the rights of @allowed that the link's device can do */
u32 kxfer_export_possible(const struct kxfer_link *link, u32 allowed)
{
	return link->dev->atomic ? allowed : allowed & ~KXFER_RIGHT_ATOMIC;
}

/** kxfer_export_length() - length for a link's peer; a mailbox's is limited by the link */
u64 kxfer_export_length(const struct kxfer_export *export, const struct kxfer_link *link)
{
	return export->mailbox ? min(export->length, kxfer_link_longest(link)) : export->length;
}

/** kxfer_export_content() - what an export holds, for the wire; does not sleep */
void kxfer_export_content(struct kxfer_export *export, struct kxfer_wire_content *wire)
{
	spin_lock_bh(&export->lock);
	kxfer_content_to_wire(wire, &export->content);
	spin_unlock_bh(&export->lock);
}

static void fill_entry(struct kxfer_wire_list_entry *entry, struct kxfer_export *export,
		       u32 rights)
{
	memset(entry, 0, sizeof(*entry));
	entry->id = cpu_to_be64(export->node_id);
	memcpy(entry->name, export->name, sizeof(entry->name));
	entry->length = cpu_to_be64(export->length);
	entry->rights = cpu_to_be32(rights);
	kxfer_export_content(export, &entry->content);
}

/** kxfer_export_list() - answer LIST: exports that are open to a user of a peer */
enum kxfer_wire_status kxfer_export_list(struct kxfer_link *link,
					 const struct kxfer_wire_list *request,
					 struct kxfer_wire_list_answer *answer,
					 u32 *length)
{
	u32 room = (KXFER_WIRE_CONTROL_BYTES - sizeof(struct kxfer_wire_header) -
		    sizeof(*answer)) / sizeof(answer->entries[0]);
	struct kxfer_export_walk walk = { .after = be64_to_cpu(request->cursor) };
	struct kxfer_export *export;
	struct kxfer_claim claim;
	u32 n = 0, rights;

	kxfer_exports_lock();
	while (n < room && (export = kxfer_export_walk_on(&walk))) {
		if (export->builtin || !net_eq(export->net, link->net))
			continue;
		claim = kxfer_export_claim(link, request->uid, request->gid);
		rights = kxfer_export_possible(link, kxfer_export_allowed(export, &claim));
		if (rights)
			fill_entry(&answer->entries[n++], export, rights);
	}
	kxfer_exports_unlock();
	answer->nr = cpu_to_be32(n);
	answer->reserved = 0;
	*length = struct_size(answer, entries, n);
	return KXFER_WIRE_OK;
}

/**
 * kxfer_export_deliver() - hand an event to the owner of an export; does not sleep
 * @export: export, perhaps withdrawn
 * @event: event, complete except for the id of the export
 *
 * Return: 0, -EAGAIN: the ring is full, or -EKEYREVOKED.
 */
int kxfer_export_deliver(struct kxfer_export *export, struct kxfer_event *event)
{
	int ret = -EKEYREVOKED;

	spin_lock_bh(&export->lock);
	event->export_id = export->id;
	if (export->session)
		ret = kxfer_event_push(export->session, event);
	spin_unlock_bh(&export->lock);
	return ret;
}

/** kxfer_export_set() - KXFER_EXPORT_SET */
int kxfer_export_set(struct kxfer_session *session, void *arg)
{
	struct kxfer_export_set *cmd = arg;
	struct kxfer_export *export;
	int ret = 0;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->content.generation)
		return -EINVAL;
	down_read(&session->lock);
	export = xa_load(&session->exports, cmd->export_id);
	if (!export)
		ret = -ENOENT;
	else if (export->mailbox)
		ret = -EOPNOTSUPP;
	else if (cmd->content.length > export->length)
		ret = -ERANGE;
	if (!ret) {
		spin_lock_bh(&export->lock);
		cmd->content.generation = export->content.generation + 1;
		export->content = cmd->content;
		spin_unlock_bh(&export->lock);
		kxfer_exposure_announce(export);
	}
	up_read(&session->lock);
	return ret;
}

static void unpublish(struct kxfer_export *export)
{
	kxfer_export_table_del(export);
	spin_lock_bh(&export->lock);
	export->session = NULL;
	spin_unlock_bh(&export->lock);
	if (export->mailbox)
		kxfer_mailbox_close(export->mailbox);
}

/**
 * kxfer_export_begin_withdrawal() - tell all holders of an export to let go
 * @export: export taken off its session's table, or to be freed with the table
 *
 * Does not wait for the holders. kxfer_export_end_withdrawal() has to follow.
 */
void kxfer_export_begin_withdrawal(struct kxfer_export *export)
{
	unpublish(export);
	kxfer_delay(EXPORT_BEGIN);
	kxfer_exposure_withdraw_all(export);
}

/**
 * kxfer_export_end_withdrawal() - wait until no peer reaches an export's memory
 * @export: after kxfer_export_begin_withdrawal(); its reference is dropped here
 *
 * Sleeps uninterruptibly, at most until every link with an exposure of @export was given
 * up, all in parallel, within KXFER_REVOKE_MS, and torn down. For a mailbox
 * kxfer_mailbox_drain() follows.
 */
void kxfer_export_end_withdrawal(struct kxfer_export *export)
{
	kxfer_exposure_wait_all(export);
	if (export->mailbox)
		kxfer_mailbox_drain(export->mailbox);
	kxfer_charge_drop(&export->charges);
	if (export->region)
		atomic_dec(&export->region->users);
	if (export->user)
		kxfer_user_return(export->user, KXFER_SHARE_EXPORTS, 1);
	kxfer_export_put(export);
}

/** kxfer_export_withdraw() - end an export: begin its withdrawal, and wait for the end */
void kxfer_export_withdraw(struct kxfer_export *export)
{
	kxfer_export_begin_withdrawal(export);
	kxfer_export_end_withdrawal(export);
}

static void fill_info(struct kxfer_export *export, struct kxfer_info_export *info)
{
	struct kxfer_exposure *exposure;

	*info = (struct kxfer_info_export) {
		.id = export->node_id,
		.length = export->length,
		.rights = export->rights,
		.nr_rules = export->nr_rules,
		.owner_uid = export->owner_uid,
		.owner_pid = export->owner_pid,
		.cookie = export->cookie,
	};
	memcpy(info->name, export->name, sizeof(info->name));
	spin_lock_bh(&export->lock);
	info->content = export->content;
	spin_unlock_bh(&export->lock);
	list_for_each_entry(exposure, &export->exposures, export_node) {
		info->nr_links++;
		info->nr_grants += exposure->nr_grants;
	}
}

/** kxfer_export_info() - INFO records of exports after *cursor; see info.c */
u32 kxfer_export_info(const struct kxfer_viewer *viewer, u64 *cursor,
		      void *records, u32 nr)
{
	struct kxfer_export_walk walk = { .after = *cursor };
	struct kxfer_info_export *info = records;
	struct kxfer_export *export;
	u32 n = 0;

	kxfer_exports_lock();
	while (n < nr && (export = kxfer_export_walk_on(&walk))) {
		if (!kxfer_viewer_sees(viewer, export->session, export->owner_uid, export->net))
			continue;
		fill_info(export, &info[n++]);
		*cursor = export->node_id;
	}
	kxfer_exports_unlock();
	return n;
}

static void note_grants(struct xarray *links, const struct kxfer_exposure *exposure)
{
	void *entry = xa_load(links, exposure->link->id);

	if (entry)
		xa_store(links, exposure->link->id,
			 xa_mk_value(xa_to_value(entry) + exposure->nr_grants), GFP_NOWAIT);
}

/**
 * kxfer_export_note_links() - note the links by which peers hold exports
 * @viewer: only exports that it may see are noted; see kxfer_viewer_sees()
 * @links: entries by link id, which grow by the grants; needs no memory
 */
void kxfer_export_note_links(const struct kxfer_viewer *viewer, struct xarray *links)
{
	struct kxfer_export_walk walk = {};
	struct kxfer_exposure *exposure;
	struct kxfer_export *export;

	kxfer_exports_lock();
	while ((export = kxfer_export_walk_on(&walk))) {
		if (!kxfer_viewer_sees(viewer, export->session, export->owner_uid, export->net))
			continue;
		list_for_each_entry(exposure, &export->exposures, export_node)
			note_grants(links, exposure);
	}
	kxfer_exports_unlock();
}
