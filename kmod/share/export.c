// SPDX-License-Identifier: GPL-2.0
/*
 * Exports: names, access rules, exposures, and withdrawal.
 *
 *	export		a range of a region, or a mailbox (mailbox.c), under a name
 *	exposure	the same, registered on one link with given rights
 *	grant		a peer's target on an exposure (grant.c)
 *
 * Withdrawal, as a proof that no peer reaches the memory afterwards. The holder
 * may be slow, hostile or dead.
 *  1. The export is taken off the table, under kxfer_exports_lock(), so no new grant or
 *     exposure of it appears. @session is cleared, so no event is delivered. A mailbox
 *     is closed, so no message comes.
 *  2. A work for each exposure waits until its registration has ended. After
 *     KXFER_REVOKE_MS the work fails the link, and that ends the registration, which
 *     waits only for work requests that the link's teardown would flush.
 *  3. The work tells the holder to stop (REVOKE). The holder answers when none of its
 *     jobs is posted. If no answer comes in the rest of KXFER_REVOKE_MS, or the link's
 *     keep-alive gives up before, the link is failed; its teardown destroys its QPs.
 *     Each holder has a work of its own for steps 2 and 3, and a session that ends
 *     withdraws all its exports in parallel: many silent holders take no longer than one.
 *  4. The context that takes the exposure off its lists destroys it: the work after the
 *     answer, the link's teardown, or the release of its last grant in a handler of the
 *     link. An exposure off the lists may still be open to the peer, and its MRs are in
 *     the link's PD. So @nr_exposures of the export goes down only after ib_dereg_mr() of
 *     all MRs, and @nr_objects of the link after that of each. The teardown waits for
 *     @nr_objects before it frees the PD and lets the device go (steps 4 to 6 of the proof
 *     in link.c). The work holds a reference on the link. From here to the end nothing
 *     waits for the peer.
 *  5. @nr_exposures is 0: the region loses a user, and may be unpinned.
 *
 * Lock order: kxfer_exports_lock(), then a link's lock or an export's lock. Nothing
 * that waits for a peer or a device runs under kxfer_exports_lock().
 */
#include "base/log.h"

#include <linux/memcontrol.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/name.h"
#include "base/plan.h"
#include "base/rule.h"
#include "base/stats.h"
#include "job/mailbox.h"
#include "link/lane.h"
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

/* Withdrawals wait for peers; on their own workqueue they hold up nothing else. */
static struct workqueue_struct *withdraw_wq;

#define MAX_PING_GRANTS	1024	/* of a link: no cgroup is charged for them */

static struct kxfer_export *ping_export;

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

static void exposure_release(struct kref *ref)
{
	struct kxfer_exposure *exposure =
		container_of(ref, struct kxfer_exposure, ref);

	kref_put(&exposure->export->ref, export_release);
	kvfree(exposure->keys);
	kfree(exposure);
	kxfer_stat_dec(KXFER_STAT_LIVE_EXPOSURES);
}

/** kxfer_exposure_put() - drop a reference */
void kxfer_exposure_put(struct kxfer_exposure *exposure)
{
	kref_put(&exposure->ref, exposure_release);
}

static struct kxfer_export *export_alloc(const char *name, u32 rights)
{
	struct kxfer_export *export;

	export = kxfer_fault(EXPORT) ? NULL : kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
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
				       kxfer_exposure_registrations(export, dev));

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
		ret = kxfer_event_prepare(session);
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
	ret = kxfer_fault_error(EXPORT_RULES) ?:
	      kxfer_rule_copy(&export->rules, rules, export->rights);
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
	kref_put(&export->ref, export_release);
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
	if (cmd->__reserved || !cmd->rights || !cmd->length || !kxfer_name_valid(cmd->name))
		return -EINVAL;
	if (!session->init_net)
		return -EOPNOTSUPP;
	export = export_alloc((const char *)cmd->name, cmd->rights);
	if (!export)
		return -ENOMEM;
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
	if (cmd->__reserved || !cmd->capacity || !cmd->max_bytes ||
	    !kxfer_name_valid(cmd->name))
		return -EINVAL;
	if (cmd->capacity > KXFER_MAILBOX_MAX || cmd->max_bytes > KXFER_MESSAGE_LONG_MAX)
		return -EDQUOT;
	if (!session->init_net)
		return -EOPNOTSUPP;
	export = export_alloc((const char *)cmd->name, KXFER_RIGHT_SEND);
	if (!export)
		return -ENOMEM;
	export->length = cmd->max_bytes;
	export->mailbox = kxfer_mailbox_create(cmd->capacity, cmd->max_bytes);
	if (!export->mailbox) {
		kref_put(&export->ref, export_release);
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

/* Return: rights allowed to a user at a peer; 0: none. @claim: see kxfer_rule_decide() */
static u32 allowed_rights(const struct kxfer_export *export, struct kxfer_claim *claim)
{
	if (!export->nr_rules)
		return export->rights;
	return kxfer_rule_decide(export->rules, export->nr_rules, claim);
}

/* Return: the rights of @allowed that the link's device can do. */
static u32 possible_rights(const struct kxfer_link *link, u32 allowed)
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

static void withdraw_work(struct work_struct *work);

/* Called with kxfer_exports_lock(). */
static struct kxfer_exposure *add_exposure(struct kxfer_link *link,
					   struct kxfer_export *export, u32 rights)
{
	struct mem_cgroup *old = set_active_memcg(export->memcg);
	struct kxfer_exposure *exposure;

	exposure = kxfer_fault(EXPOSURE) ? NULL :
		   kzalloc(sizeof(*exposure), KXFER_GFP_FOR_PEER);
	set_active_memcg(old);
	if (!exposure)
		return NULL;
	kref_init(&exposure->ref);
	kref_get(&export->ref);
	exposure->export = export;
	exposure->link = link;
	exposure->rights = rights;
	init_completion(&exposure->ready);
	INIT_WORK(&exposure->withdraw_work, withdraw_work);
	atomic_inc(&export->nr_exposures);
	kxfer_exposure_table_add(exposure);
	kxfer_stat_inc(KXFER_STAT_LIVE_EXPOSURES);
	return exposure;
}

/* Called by the context that took the exposure off its lists. */
static void destroy_exposure(struct kxfer_exposure *exposure)
{
	struct kxfer_export *export = exposure->export;

	kxfer_delay(EXPORT_WITHDRAW);
	kxfer_exposure_deregister(exposure);
	kxfer_delay(EXPORT_ENDED);
	/* The exposure's reference keeps the export until the end. */
	if (atomic_dec_and_test(&export->nr_exposures))
		wake_up_var(&export->nr_exposures);
	kxfer_exposure_put(exposure);
}

/**
 * kxfer_export_unexpose() - remove a grant from an exposure; the last one ends the exposure
 * @exposure: exposure from kxfer_export_expose(); the caller keeps its reference
 *
 * May sleep.
 */
void kxfer_export_unexpose(struct kxfer_exposure *exposure)
{
	bool last;

	kxfer_exports_lock();
	last = !--exposure->nr_grants && kxfer_exposure_table_del(exposure);
	kxfer_exports_unlock();
	if (last)
		destroy_exposure(exposure);
}

/* @wanted: 0: all that is possible. Return: 0; -EACCES; -EOPNOTSUPP: the device cannot. */
static int check_wanted(const struct kxfer_link *link, u32 wanted, u32 allowed)
{
	u32 possible = possible_rights(link, allowed);

	if (!allowed || wanted & ~allowed)
		return -EACCES;
	return !possible || wanted & ~possible ? -EOPNOTSUPP : 0;
}

/* Find the export and count a grant on its exposure. Called with kxfer_exports_lock(). */
static int reserve_exposure(struct kxfer_link *link,
			    const struct kxfer_wire_grant *request,
			    struct kxfer_claim *claim, struct kxfer_exposure **found,
			    bool *created)
{
	struct kxfer_export *export = kxfer_export_table_find(request->name);
	u32 wanted = be32_to_cpu(request->rights), rights;
	struct kxfer_exposure *exposure;
	int ret;

	if (!export)
		return -ENOENT;
	rights = allowed_rights(export, claim);
	ret = check_wanted(link, wanted, rights);
	if (ret) {
		kxfer_notice("link %llu: export %s refused to uid %u gid %u: %s",
			     link->id, export->name, claim->uid, claim->gid,
			     ret != -EACCES ? "the device has no atomics" :
			     rights ? "a right that it does not have" : "no rule allows it");
		return ret;
	}
	rights = wanted ?: possible_rights(link, rights);
	exposure = kxfer_exposure_table_find(link, export, rights);
	if (export == ping_export && exposure && exposure->nr_grants >= MAX_PING_GRANTS)
		return -EDQUOT;
	*created = !exposure;
	if (!exposure)
		exposure = add_exposure(link, export, rights);
	if (!exposure)
		return -ENOMEM;
	exposure->nr_grants++;
	kref_get(&exposure->ref);
	*found = exposure;
	return 0;
}

/**
 * kxfer_export_expose() - count a grant on the exposure that a peer asks for
 * @link: passive link
 * @request: payload of GRANT, untrusted
 * @claim: from kxfer_export_claim(); a uid and gid not believed become KXFER_UID_UNKNOWN
 * @exposure: out: set, also on failure, if the exposure got one more grant and reference
 *
 * The first caller with these rights on the link registers the export; others wait
 * until the registration has ended. May sleep.
 *
 * Return: 0, -ENOENT, -EACCES, -EDQUOT, -EOPNOTSUPP, -ENOMEM, or why registration failed.
 */
int kxfer_export_expose(struct kxfer_link *link, const struct kxfer_wire_grant *request,
			struct kxfer_claim *claim, struct kxfer_exposure **exposure)
{
	bool created;
	int ret;

	kxfer_exports_lock();
	ret = reserve_exposure(link, request, claim, exposure, &created);
	kxfer_exports_unlock();
	if (ret)
		return ret;
	if (created) {
		struct mem_cgroup *old = set_active_memcg((*exposure)->export->memcg);

		(*exposure)->error = kxfer_exposure_register(*exposure);
		set_active_memcg(old);
		complete_all(&(*exposure)->ready);
	} else {
		wait_for_completion(&(*exposure)->ready);
	}
	return (*exposure)->error;
}

/** kxfer_export_keys() - answer KEYS: a page of the table of an exposure of this link */
enum kxfer_wire_status kxfer_export_keys(struct kxfer_link *link,
					 const struct kxfer_wire_keys *request,
					 struct kxfer_wire_keys_answer *answer,
					 u32 *length)
{
	u32 room = (KXFER_WIRE_CONTROL_BYTES - sizeof(struct kxfer_wire_header) -
		    sizeof(*answer)) / sizeof(answer->keys[0]);
	u32 first = be32_to_cpu(request->first), n = 0;
	enum kxfer_wire_status status = KXFER_WIRE_REVOKED;
	struct kxfer_exposure *exposure;

	kxfer_exports_lock();
	exposure = kxfer_exposure_table_by_id(link, be64_to_cpu(request->exposure));
	if (exposure && completion_done(&exposure->ready)) {
		for (; n < room && first < exposure->nr_keys; n++, first++) {
			const struct kxfer_extent *key = &exposure->keys[first];

			answer->keys[n].addr = cpu_to_be64(key->addr);
			answer->keys[n].rkey = cpu_to_be32(key->key);
			answer->keys[n].length = cpu_to_be32(key->length);
		}
		status = KXFER_WIRE_OK;
	}
	kxfer_exports_unlock();
	answer->nr = cpu_to_be32(n);
	answer->reserved = 0;
	*length = struct_size(answer, keys, n);
	return status;
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
		if (export == ping_export)
			continue;
		claim = kxfer_export_claim(link, request->uid, request->gid);
		rights = allowed_rights(export, &claim);
		rights = possible_rights(link, rights);
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

/** kxfer_export_link_closed() - end the exposures of a link whose QPs are destroyed */
void kxfer_export_link_closed(struct kxfer_link *link)
{
	struct kxfer_exposure *exposure;

	for (;;) {
		kxfer_exports_lock();
		exposure = list_first_entry_or_null(&link->exposures,
						    struct kxfer_exposure, link_node);
		if (exposure)
			kxfer_exposure_table_del(exposure);
		kxfer_exports_unlock();
		if (!exposure)
			break;
		destroy_exposure(exposure);
	}
}

static void content_answered(struct kxfer_request *request)
{
	/* Any answer will do: a holder that has gone needs no content. */
}

/* Called with kxfer_exports_lock(). Return: false if no slot is free. */
static bool send_content(struct kxfer_exposure *exposure)
{
	struct kxfer_wire_content_change change = {
		.exposure = cpu_to_be64(exposure->id),
	};
	struct kxfer_request *request;

	request = kxfer_channel_get(&exposure->link->control->channel);
	if (!request)
		return false;
	exposure->content_dirty = false;
	kxfer_export_content(exposure->export, &change.content);
	request->answered = content_answered;
	if (kxfer_channel_post(request, KXFER_WIRE_CONTENT, &change, sizeof(change)))
		kxfer_channel_put(request);
	return true;
}

/** kxfer_export_content_work() - send new content to a peer, as far as slots are free */
void kxfer_export_content_work(struct work_struct *work)
{
	struct kxfer_link *link = container_of(work, struct kxfer_link, content_work);
	struct kxfer_exposure *exposure;

	kxfer_delay(EXPORT_CONTENT);
	kxfer_exports_lock();
	list_for_each_entry(exposure, &link->exposures, link_node)
		if (exposure->content_dirty && !send_content(exposure))
			break;
	kxfer_exports_unlock();
}

static void announce_content(struct kxfer_export *export)
{
	struct kxfer_exposure *exposure;

	kxfer_exports_lock();
	list_for_each_entry(exposure, &export->exposures, export_node) {
		exposure->content_dirty = true;
		kxfer_link_queue_content(exposure->link);
	}
	kxfer_exports_unlock();
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
		announce_content(export);
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

/* Make the holder stop. Return: false if it did not, and the link is failed instead. */
static bool revoke(struct kxfer_exposure *exposure, unsigned int timeout_ms)
{
	struct kxfer_wire_exposure_id id = { .exposure = cpu_to_be64(exposure->id) };
	struct kxfer_link *link = exposure->link;
	int ret;

	kxfer_stat_inc(KXFER_STAT_REVOKES_SENT);
	ret = kxfer_channel_call(&link->control->channel, KXFER_WIRE_REVOKE, &id,
				 sizeof(id), NULL, NULL, timeout_ms,
				 KXFER_WAIT_UNINTERRUPTIBLE);
	if (!ret) {
		kxfer_stat_inc(KXFER_STAT_REVOKES_ANSWERED);
		return true;
	}
	if (ret == -ETIMEDOUT) {
		kxfer_stat_inc(KXFER_STAT_REVOKES_TIMED_OUT);
		kxfer_notice("link %llu: the peer does not let go of export %s, giving the link up",
			     link->id, exposure->export->name);
	}
	kxfer_link_fail(link, -ETIMEDOUT);
	return false;
}

/* The work has a reference on the exposure and one on its link. */
static void withdraw_work(struct work_struct *work)
{
	struct kxfer_exposure *exposure =
		container_of(work, struct kxfer_exposure, withdraw_work);
	struct kxfer_link *link = exposure->link;
	unsigned long left;
	bool mine = false;

	left = wait_for_completion_timeout(&exposure->ready, msecs_to_jiffies(KXFER_REVOKE_MS));
	if (!left) {
		/* The peer may hold up each registration of the exposure for almost as long. */
		kxfer_link_fail(link, -ETIMEDOUT);
		wait_for_completion(&exposure->ready);
	}
	kxfer_delay(EXPORT_REVOKE);
	if (revoke(exposure, jiffies_to_msecs(left) + 1)) {
		kxfer_delay(EXPORT_REVOKED);
		kxfer_exports_lock();
		mine = kxfer_exposure_table_del(exposure);
		kxfer_exports_unlock();
	}
	if (mine)
		destroy_exposure(exposure);
	kxfer_exposure_put(exposure);
	kxfer_link_put(link);
}

/**
 * kxfer_export_begin_withdrawal() - tell all holders of an export to let go
 * @export: export taken off its session's table, or to be freed with the table
 *
 * Does not wait for the holders. kxfer_export_end_withdrawal() has to follow.
 */
void kxfer_export_begin_withdrawal(struct kxfer_export *export)
{
	struct kxfer_exposure *exposure;

	unpublish(export);
	kxfer_delay(EXPORT_BEGIN);
	kxfer_exports_lock();
	list_for_each_entry(exposure, &export->exposures, export_node) {
		kref_get(&exposure->ref);
		kxfer_link_ref(exposure->link);
		queue_work(withdraw_wq, &exposure->withdraw_work);
	}
	kxfer_exports_unlock();
}

/**
 * kxfer_export_end_withdrawal() - wait until no peer reaches an export's memory
 * @export: after kxfer_export_begin_withdrawal(); its reference is dropped here
 *
 * Sleeps uninterruptibly, at most until every link with an exposure of @export was given
 * up, all in parallel, within KXFER_REVOKE_MS or KXFER_KEEPALIVE_MS + KXFER_SILENCE_MS,
 * and torn down. For a mailbox kxfer_mailbox_drain() follows.
 */
void kxfer_export_end_withdrawal(struct kxfer_export *export)
{
	wait_var_event(&export->nr_exposures, !atomic_read(&export->nr_exposures));
	if (export->mailbox)
		kxfer_mailbox_drain(export->mailbox);
	kxfer_charge_drop(&export->charges);
	if (export->region)
		atomic_dec(&export->region->users);
	if (export->user)
		kxfer_user_return(export->user, KXFER_SHARE_EXPORTS, 1);
	kref_put(&export->ref, export_release);
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
u32 kxfer_export_info(const struct kxfer_session *viewer, u64 *cursor,
		      void *records, u32 nr)
{
	struct kxfer_export_walk walk = { .after = *cursor };
	struct kxfer_info_export *info = records;
	struct kxfer_export *export;
	u32 n = 0;

	kxfer_exports_lock();
	while (n < nr && (export = kxfer_export_walk_on(&walk))) {
		if (!kxfer_session_sees(viewer, export->session, export->owner_uid))
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
 * @viewer: only exports that it may see are noted; see kxfer_session_sees()
 * @links: entries by link id, which grow by the grants; needs no memory
 */
void kxfer_export_note_links(const struct kxfer_session *viewer, struct xarray *links)
{
	struct kxfer_export_walk walk = {};
	struct kxfer_exposure *exposure;
	struct kxfer_export *export;

	kxfer_exports_lock();
	while ((export = kxfer_export_walk_on(&walk))) {
		if (!kxfer_session_sees(viewer, export->session, export->owner_uid))
			continue;
		list_for_each_entry(exposure, &export->exposures, export_node)
			note_grants(links, exposure);
	}
	kxfer_exports_unlock();
}

static void fill_ping(struct kxfer_memory *memory)
{
	u32 i;

	for (i = 0; i < KXFER_PING_SIZE; i++) {
		u8 *page = page_address(memory->pages[i / PAGE_SIZE]);

		page[i % PAGE_SIZE] = (u8)(i * 7 + i / 256);
	}
}

static int publish_ping(void)
{
	struct kxfer_memory *memory;
	struct kxfer_region *region;
	int ret;

	memory = kxfer_memory_alloc(KXFER_PING_SIZE);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	fill_ping(memory);
	region = kxfer_region_create(memory);
	if (IS_ERR(region))
		return PTR_ERR(region);
	ping_export = export_alloc(KXFER_PING_NAME, KXFER_RIGHT_READ);
	if (!ping_export) {
		ret = -ENOMEM;
		goto err_destroy;
	}
	ping_export->region = region;
	ping_export->length = KXFER_PING_SIZE;
	ret = kxfer_export_table_add(ping_export);
	if (ret)
		goto err_put;
	atomic_inc(&region->users);
	return 0;

err_put:
	kref_put(&ping_export->ref, export_release);
err_destroy:
	kxfer_region_destroy(region);
	return ret;
}

/** kxfer_export_init() - create the workqueue of withdrawals; publish @ping */
int kxfer_export_init(void)
{
	int ret;

	withdraw_wq = kxfer_fault(EXPORT_WORKQUEUE) ? NULL :
		      alloc_workqueue("kxfer_withdraw", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!withdraw_wq)
		return -ENOMEM;
	ret = publish_ping();
	if (ret)
		destroy_workqueue(withdraw_wq);
	return ret;
}

/** kxfer_export_exit() - withdraw @ping; no link is left */
void kxfer_export_exit(void)
{
	struct kxfer_region *region = ping_export->region;

	kxfer_export_withdraw(ping_export);
	kxfer_region_destroy(region);
	destroy_workqueue(withdraw_wq);
}
