// SPDX-License-Identifier: GPL-2.0
/*
 * Exposures: an export on one link, from the first grant there to the end of its registration.
 *
 *	export		a range of a region, or a mailbox (mailbox.c), under a name
 *	exposure	the same, registered on one link with given rights (registration.c)
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
 * Context: calls of users, handlers of links and works; all may sleep.
 *
 * Lock order: kxfer_exports_lock(), then a link's lock or an export's lock. Nothing
 * that waits for a peer or a device runs under kxfer_exports_lock().
 */
#include "base/log.h"

#include <linux/memcontrol.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/plan.h"
#include "base/rule.h"
#include "base/stats.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"
#include "share/export.h"
#include "share/export_table.h"
#include "share/exposure.h"
#include "share/registration.h"
#include "share/share_trace.h"

#define MAX_BUILTIN_GRANTS	1024	/* of a link: no cgroup is charged for them */

/* Withdrawals wait for peers; on their own workqueue they hold up nothing else. */
static struct workqueue_struct *withdraw_wq;

static void exposure_release(struct kref *ref)
{
	struct kxfer_exposure *exposure =
		container_of(ref, struct kxfer_exposure, ref);

	kxfer_export_put(exposure->export);
	kvfree(exposure->keys);
	kfree(exposure);
	kxfer_stat_dec(KXFER_STAT_LIVE_EXPOSURES);
}

/** kxfer_exposure_put() - drop a reference */
void kxfer_exposure_put(struct kxfer_exposure *exposure)
{
	kref_put(&exposure->ref, exposure_release);
}

/* Called by the context that took the exposure off its lists. */
static void destroy_exposure(struct kxfer_exposure *exposure)
{
	struct kxfer_export *export = exposure->export;

	kxfer_delay(EXPORT_WITHDRAW);
	kxfer_registration_end(exposure);
	kxfer_delay(EXPORT_ENDED);
	/* The exposure's reference keeps the export until the end. */
	if (atomic_dec_and_test(&export->nr_exposures))
		wake_up_var(&export->nr_exposures);
	kxfer_exposure_put(exposure);
}

/* Make the holder stop. Return: false if it did not, and the link is failed instead. */
static bool revoke(struct kxfer_exposure *exposure, unsigned int timeout_ms)
{
	struct kxfer_wire_exposure_id id = { .exposure = cpu_to_be64(exposure->id) };
	struct kxfer_link *link = exposure->link;
	int ret;

	kxfer_stat_inc(KXFER_STAT_REVOKES_SENT);
	trace_kxfer_withdraw(exposure, 0);
	ret = kxfer_channel_call(&link->control->channel, KXFER_WIRE_REVOKE, &id,
				 sizeof(id), NULL, NULL, timeout_ms,
				 KXFER_WAIT_UNINTERRUPTIBLE);
	trace_kxfer_withdrawn(exposure, ret);
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

/* Called with kxfer_exports_lock(). */
static struct kxfer_exposure *add_exposure(struct kxfer_link *link,
					   struct kxfer_export *export, u32 rights)
{
	struct mem_cgroup *old = set_active_memcg(export->memcg);
	struct kxfer_exposure *exposure;

	exposure = kxfer_try_alloc(EXPOSURE, kzalloc_obj(*exposure, KXFER_GFP_FOR_PEER));
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

/**
 * kxfer_exposure_close() - remove a grant from an exposure; the last one ends the exposure
 * @exposure: exposure from kxfer_exposure_open(); the caller keeps its reference
 *
 * May sleep.
 */
void kxfer_exposure_close(struct kxfer_exposure *exposure)
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
	u32 possible = kxfer_export_possible(link, allowed);

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
	struct kxfer_export *export = kxfer_export_table_find(link->net, request->name);
	u32 wanted = be32_to_cpu(request->rights), rights;
	struct kxfer_exposure *exposure;
	int ret;

	if (!export)
		return -ENOENT;
	rights = kxfer_export_allowed(export, claim);
	ret = check_wanted(link, wanted, rights);
	if (ret) {
		kxfer_notice("link %llu: export %s refused to uid %u gid %u: %s",
			     link->id, export->name, claim->uid, claim->gid,
			     ret != -EACCES ? "the device has no atomics" :
			     rights ? "a right that it does not have" : "no rule allows it");
		return ret;
	}
	rights = wanted ?: kxfer_export_possible(link, rights);
	exposure = kxfer_exposure_table_find(link, export, rights);
	if (export->builtin && exposure && exposure->nr_grants >= MAX_BUILTIN_GRANTS)
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
 * kxfer_exposure_open() - count a grant on the exposure that a peer asks for
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
int kxfer_exposure_open(struct kxfer_link *link, const struct kxfer_wire_grant *request,
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

		(*exposure)->error = kxfer_registration_make(*exposure);
		set_active_memcg(old);
		complete_all(&(*exposure)->ready);
	} else {
		wait_for_completion(&(*exposure)->ready);
	}
	return (*exposure)->error;
}

/**
 * kxfer_exposure_page() - write a page of the table of keys
 * @exposure: exposure whose registration has ended; the caller has a reference
 * @first: first entry
 * @room: bytes at @answer, at least those of an answer without entries
 * @answer: out: the page
 *
 * Return: bytes of @answer.
 */
u32 kxfer_exposure_page(const struct kxfer_exposure *exposure, u32 first, u32 room,
			struct kxfer_wire_keys_answer *answer)
{
	u32 n = 0;

	room = (room - sizeof(*answer)) / sizeof(answer->keys[0]);
	for (; n < room && first < exposure->nr_keys; n++, first++) {
		const struct kxfer_extent *key = &exposure->keys[first];

		answer->keys[n].addr = cpu_to_be64(key->addr);
		answer->keys[n].rkey = cpu_to_be32(key->key);
		answer->keys[n].length = cpu_to_be32(key->length);
	}
	answer->nr = cpu_to_be32(n);
	answer->reserved = 0;
	return struct_size(answer, keys, n);
}

/** kxfer_exposure_keys() - answer KEYS: a page of the table of an exposure of this link */
enum kxfer_wire_status kxfer_exposure_keys(struct kxfer_link *link,
					   const struct kxfer_wire_keys *request,
					   struct kxfer_wire_keys_answer *answer,
					   u32 *length)
{
	enum kxfer_wire_status status = KXFER_WIRE_REVOKED;
	struct kxfer_exposure *exposure;

	*length = 0;
	kxfer_exports_lock();
	exposure = kxfer_exposure_table_by_id(link, be64_to_cpu(request->exposure));
	if (exposure && completion_done(&exposure->ready)) {
		*length = kxfer_exposure_page(exposure, be32_to_cpu(request->first),
					      KXFER_WIRE_CONTROL_PAYLOAD, answer);
		status = KXFER_WIRE_OK;
	}
	kxfer_exports_unlock();
	return status;
}

/** kxfer_exposure_link_closed() - end the exposures of a link whose lanes are stopped */
void kxfer_exposure_link_closed(struct kxfer_link *link)
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

/** kxfer_exposure_content_work() - send new content to a peer, as far as slots are free */
void kxfer_exposure_content_work(struct work_struct *work)
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

/** kxfer_exposure_announce() - send the new content of an export to all that hold it */
void kxfer_exposure_announce(struct kxfer_export *export)
{
	struct kxfer_exposure *exposure;

	kxfer_exports_lock();
	list_for_each_entry(exposure, &export->exposures, export_node) {
		exposure->content_dirty = true;
		kxfer_link_queue_content(exposure->link);
	}
	kxfer_exports_unlock();
}

/** kxfer_exposure_withdraw_all() - begin steps 2 to 4 of the proof for an export off the table */
void kxfer_exposure_withdraw_all(struct kxfer_export *export)
{
	struct kxfer_exposure *exposure;

	kxfer_exports_lock();
	list_for_each_entry(exposure, &export->exposures, export_node) {
		kref_get(&exposure->ref);
		kxfer_link_ref(exposure->link);
		queue_work(withdraw_wq, &exposure->withdraw_work);
	}
	kxfer_exports_unlock();
}

/** kxfer_exposure_wait_all() - wait until all MRs of an export are deregistered */
void kxfer_exposure_wait_all(struct kxfer_export *export)
{
	wait_var_event(&export->nr_exposures, !atomic_read(&export->nr_exposures));
}

/** kxfer_exposure_init() - create the workqueue of withdrawals. Return: 0 or -ENOMEM */
int kxfer_exposure_init(void)
{
	withdraw_wq = kxfer_try_alloc(EXPORT_WORKQUEUE,
				      alloc_workqueue("kxfer_withdraw", WQ_UNBOUND,
						      WQ_MAX_ACTIVE));
	return withdraw_wq ? 0 : -ENOMEM;
}

/** kxfer_exposure_exit() - destroy it; no export is left */
void kxfer_exposure_exit(void)
{
	destroy_workqueue(withdraw_wq);
}
