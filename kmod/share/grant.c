// SPDX-License-Identifier: GPL-2.0
/*
 * Grants: what a peer holds of an export. For the peer a grant is a target.
 *
 * The passive side of a link has a table of grants. A grant id comes from the peer: it
 * is looked up in the table of the link on which it came, so it reaches no grant of
 * another peer. A grant keeps the uid and gid that the peer gave for its process, or
 * KXFER_UID_UNKNOWN, and the word of that process, which goes with each message.
 *
 * A grant counts on its exposure, which ends with its last grant. A grant also holds a
 * reference on its exposure, so the grant outlives the withdrawal of the export. It can
 * still be given back then; INFO, NOTIFY, SEND and OFFER are answered with REVOKED.
 *
 * A grant ends when the peer gives it back, or by the link's teardown. The context that
 * takes it out of the table frees it at once: INFO, NOTIFY, SEND and OFFER hold the
 * table's lock as long as they use a grant. The teardown has ended the exposures before
 * (exposure.c), so all that is left of the grants is their references.
 *
 * Context: handlers of the link that may sleep, and its teardown. Only NOTIFY, SEND and
 * OFFER are handled where they arrive and do not sleep.
 *
 * Lock order: kxfer_exports_lock(), the lock of the link's table (bh-safe), the export's
 * lock or its mailbox's.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kxfer.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/xarray.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/name.h"
#include "base/rule.h"
#include "base/stats.h"
#include "job/completion.h"
#include "job/job.h"
#include "job/mailbox.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"
#include "share/export.h"
#include "share/export_table.h"
#include "share/exposure.h"
#include "share/fetch.h"
#include "share/grant.h"
#include "share/share_trace.h"

#define EAGER_MS	5000	/* for a lane to handle completions */
#define EAGER_LOOK_US	50

static int add_grant(struct kxfer_link *link, struct kxfer_exposure *exposure,
		     const struct kxfer_claim *claim, u64 word, u32 *id)
{
	struct mem_cgroup *old = set_active_memcg(exposure->export->memcg);
	struct kxfer_grant *grant;
	int ret;

	grant = kxfer_try_alloc(GRANT, kzalloc_obj(*grant, KXFER_GFP_FOR_PEER));
	if (!grant) {
		set_active_memcg(old);
		return -ENOMEM;
	}
	grant->exposure = exposure;
	grant->uid = claim->uid;
	grant->gid = claim->gid;
	grant->word = word;
	ret = kxfer_try(GRANT_ID, xa_alloc_bh(&link->grants, id, grant,
					      XA_LIMIT(1, KXFER_MAX_GRANTS), KXFER_GFP_FOR_PEER));
	set_active_memcg(old);
	if (ret) {
		kfree(grant);
		return ret == -EBUSY ? -EDQUOT : ret;
	}
	atomic_inc(&link->nr_grants);
	kxfer_stat_inc(KXFER_STAT_LIVE_GRANTS);
	return 0;
}

/* Return: bytes of the answer. */
static u32 fill_answer(struct kxfer_wire_grant_answer *answer, struct kxfer_exposure *exposure)
{
	answer->exposure = cpu_to_be64(exposure->id);
	answer->length = cpu_to_be64(kxfer_export_length(exposure->export, exposure->link));
	answer->rights = cpu_to_be32(exposure->rights);
	answer->nr_keys = cpu_to_be32(exposure->nr_keys);
	answer->cookie = cpu_to_be64(exposure->export->cookie);
	kxfer_export_content(exposure->export, &answer->content);
	if (!exposure->nr_keys || !(exposure->link->features & KXFER_WIRE_FEATURE_FIRST_KEYS))
		return sizeof(*answer);
	return sizeof(*answer) +
	       kxfer_exposure_page(exposure, 0, KXFER_WIRE_CONTROL_PAYLOAD - sizeof(*answer),
				   (struct kxfer_wire_keys_answer *)(answer + 1));
}

/**
 * kxfer_grant_create() - handle GRANT: the peer opens a target
 * @link: passive link
 * @request: payload of GRANT, untrusted
 * @answer: answer, filled on success; room for KXFER_WIRE_CONTROL_PAYLOAD bytes
 * @length: out: bytes of the answer, on success
 *
 * Runs in a handler that may sleep.
 */
enum kxfer_wire_status kxfer_grant_create(struct kxfer_link *link,
					  const struct kxfer_wire_grant *request,
					  struct kxfer_wire_grant_answer *answer,
					  u32 *length)
{
	struct kxfer_claim claim = kxfer_export_claim(link, request->uid, request->gid);
	struct kxfer_exposure *exposure = NULL;
	u32 id = 0;
	int ret;

	if (be32_to_cpu(request->rights) & ~KXFER_RIGHT_ANY)
		return KXFER_WIRE_INVALID;
	ret = kxfer_exposure_open(link, request, &claim, &exposure);
	if (!ret) {
		/* Once there is an id, a RELEASE that guesses it may end the exposure. */
		*length = fill_answer(answer, exposure);
		ret = add_grant(link, exposure, &claim, be64_to_cpu(request->word), &id);
	}
	/* What could not be a name is not shown. */
	trace_kxfer_grant(link, kxfer_name_valid(request->name) ? (char *)request->name : "",
			  claim.uid, id, ret);
	if (ret) {
		if (exposure) {
			kxfer_exposure_close(exposure);
			kxfer_exposure_put(exposure);
		}
		return kxfer_wire_status(ret);
	}
	answer->grant = cpu_to_be64(id);
	return KXFER_WIRE_OK;
}

static void free_grant(struct kxfer_link *link, struct kxfer_grant *grant)
{
	trace_kxfer_grant_ended(link, grant);
	xa_lock_bh(&link->grants);
	kxfer_eager_end(&grant->eager, grant->exposure->export->mailbox);
	xa_unlock_bh(&link->grants);
	if (atomic_dec_and_test(&link->nr_grants))
		WRITE_ONCE(link->unused_ns, ktime_get_ns());
	kxfer_exposure_put(grant->exposure);
	kfree(grant);
	kxfer_stat_dec(KXFER_STAT_LIVE_GRANTS);
}

/* Take a grant out of the table. @id: untrusted. Return: the grant or NULL. */
static struct kxfer_grant *take_grant(struct kxfer_link *link, u64 id)
{
	if (!id || id > KXFER_MAX_GRANTS)
		return NULL;
	return xa_erase_bh(&link->grants, id);
}

/* Messages with a credit that a peer says it sent, and that have not come; or -EPROTO. */
static int missing_messages(struct kxfer_link *link, u64 id, u32 sent)
{
	struct kxfer_grant *grant;
	int missing = 0;

	xa_lock_bh(&link->grants);
	grant = xa_load(&link->grants, id);
	if (grant) {
		missing = sent - grant->eager.received;
		if (missing > (int)grant->eager.credits)
			missing = -EPROTO;
	}
	xa_unlock_bh(&link->grants);
	return missing;
}

/**
 * kxfer_grant_wait_messages() - wait until the messages of a target have been handled
 * @link: passive link
 * @release: payload of RELEASE, untrusted
 *
 * They have arrived when the peer sends RELEASE, and wait only for this node to handle the
 * completions of their lane. Sleeps, EAGER_MS at most. Return: 0; -EPROTO: the peer has said
 * something else than it did.
 */
int kxfer_grant_wait_messages(struct kxfer_link *link, const struct kxfer_wire_release *release)
{
	unsigned long end = jiffies + msecs_to_jiffies(EAGER_MS);
	u64 id = be64_to_cpu(release->grant);
	u32 sent = be32_to_cpu(release->sent);
	int missing;

	if (release->reserved)
		return -EPROTO;
	if (id > KXFER_MAX_GRANTS)
		return 0;
	while ((missing = missing_messages(link, id, sent)) > 0 && kxfer_link_is_live(link) &&
	       time_before(jiffies, end))
		usleep_range(EAGER_LOOK_US, 2 * EAGER_LOOK_US);
	return missing && kxfer_link_is_live(link) ? -EPROTO : 0;
}

/** kxfer_grant_release() - handle RELEASE: the peer has closed a target */
enum kxfer_wire_status kxfer_grant_release(struct kxfer_link *link, u64 grant_id)
{
	struct kxfer_grant *grant = take_grant(link, grant_id);

	if (!grant)
		return KXFER_WIRE_NO_ENTRY;
	kxfer_delay(GRANT_RELEASE);
	kxfer_exposure_close(grant->exposure);
	free_grant(link, grant);
	return KXFER_WIRE_OK;
}

/* Return: bytes of the answer. */
static u32 describe(const struct kxfer_link *link, struct kxfer_export *export,
		    struct kxfer_wire_info_answer *answer)
{
	struct kxfer_wire_identity *identity = (struct kxfer_wire_identity *)(answer + 1);

	answer->length = cpu_to_be64(kxfer_export_length(export, link));
	answer->cookie = cpu_to_be64(export->cookie);
	kxfer_export_content(export, &answer->content);
	if (!(link->features & KXFER_WIRE_FEATURE_RESUME))
		return sizeof(*answer);
	identity->node = cpu_to_be64(kxfer_export_node());
	identity->export = cpu_to_be64(export->node_id);
	return sizeof(*answer) + sizeof(*identity);
}

/**
 * kxfer_grant_describe() - handle INFO: what the export of a grant is and holds
 * @link: passive link
 * @grant_id: id of the grant, untrusted
 * @answer: answer, filled on success; room for struct kxfer_wire_identity behind it
 * @length: out: bytes of the answer, on success
 */
enum kxfer_wire_status kxfer_grant_describe(struct kxfer_link *link, u64 grant_id,
					    struct kxfer_wire_info_answer *answer, u32 *length)
{
	enum kxfer_wire_status status = KXFER_WIRE_NO_ENTRY;
	struct kxfer_exposure *exposure;
	struct kxfer_grant *grant;

	if (grant_id > KXFER_MAX_GRANTS)
		return status;
	kxfer_exports_lock();
	xa_lock_bh(&link->grants);
	grant = xa_load(&link->grants, grant_id);
	exposure = grant ? grant->exposure : NULL;
	if (exposure && list_empty(&exposure->link_node)) {
		status = KXFER_WIRE_REVOKED;
	} else if (exposure) {
		*length = describe(link, exposure->export, answer);
		status = KXFER_WIRE_OK;
	}
	xa_unlock_bh(&link->grants);
	kxfer_exports_unlock();
	return status;
}

/** kxfer_grant_notify() - hand a cookie to the owner of a grant's export; does not sleep */
enum kxfer_wire_status kxfer_grant_notify(struct kxfer_link *link, u64 grant_id,
					  u64 cookie)
{
	struct kxfer_event event = {
		.type = KXFER_EVENT_NOTIFY,
		.cookie = cookie,
		.time_ns = ktime_get_ns(),
		.peer = link->remote,
	};
	enum kxfer_wire_status status = KXFER_WIRE_NO_ENTRY;
	struct kxfer_grant *grant;

	if (grant_id > KXFER_MAX_GRANTS)
		return status;
	xa_lock_bh(&link->grants);
	grant = xa_load(&link->grants, grant_id);
	if (grant && !(grant->exposure->rights & KXFER_RIGHT_WRITE)) {
		status = KXFER_WIRE_NO_ACCESS;
	} else if (grant) {
		event.uid = grant->uid;
		event.gid = grant->gid;
		status = kxfer_wire_status(kxfer_export_deliver(grant->exposure->export, &event));
	}
	xa_unlock_bh(&link->grants);
	if (status == KXFER_WIRE_OK)
		kxfer_stat_inc(KXFER_STAT_NOTIFIES_RECEIVED);
	return status;
}

static void message_over(struct kxfer_job_list *ended, u64 now_ns, int ret)
{
	kxfer_complete_all(ended, 0, now_ns);
	if (!ret)
		kxfer_stat_inc(KXFER_STAT_SENDS_STORED);
	else if (ret == -EAGAIN)
		kxfer_stat_inc(KXFER_STAT_SENDS_REFUSED);
}

/*
 * Find the grant of a message, and use a credit if the message takes one. @eager_on: lane of an
 * eager message, else NULL. Called with the lock of the link's table held. Return: the grant;
 * ERR_PTR(-EPROTO): the peer broke the protocol; another: the message is refused.
 */
static struct kxfer_grant *grant_of_message(struct kxfer_link *link, u64 id, bool credit,
					    const struct kxfer_lane *eager_on)
{
	struct kxfer_grant *grant = id > KXFER_MAX_GRANTS ? NULL : xa_load(&link->grants, id);

	if (credit && !(grant && kxfer_eager_take(&grant->eager, eager_on)))
		return ERR_PTR(-EPROTO);
	if (!grant)
		return ERR_PTR(-ENOENT);
	return grant->exposure->rights & KXFER_RIGHT_SEND ? grant : ERR_PTR(-EACCES);
}

/* Return: 0 or -errno, as for kxfer_grant_send(). */
static int deliver(struct kxfer_lane *lane, u64 grant_id, struct kxfer_message *message,
		   const void *payload, bool credit, bool eager)
{
	struct kxfer_link *link = lane->link;
	struct kxfer_job_list ended = {};
	struct kxfer_grant *grant;
	int ret;

	message->time_ns = READ_ONCE(lane->heard_ns);
	message->peer = link->remote;
	xa_lock_bh(&link->grants);
	grant = grant_of_message(link, grant_id, credit, eager ? lane : NULL);
	ret = PTR_ERR_OR_ZERO(grant);
	if (!ret) {
		message->uid = grant->uid;
		message->gid = grant->gid;
		message->word = grant->word;
		ret = kxfer_mailbox_deliver(grant->exposure->export->mailbox, message, payload,
					    lane, credit, &ended);
		trace_kxfer_message(grant->exposure, grant->uid, message->bytes, ret);
	}
	xa_unlock_bh(&link->grants);
	message_over(&ended, message->time_ns, ret);
	return ret;
}

/**
 * kxfer_grant_send() - put a message into the mailbox of a grant; does not sleep
 * @lane: lane of a passive link
 * @send: payload of SEND, untrusted, followed by the payload of the message
 * @length: bytes of @send and payload, as kxfer_wire_may_send() allows them
 *
 * Return: 0; -EPROTO: the peer broke the protocol; another -errno: the message is refused.
 */
int kxfer_grant_send(struct kxfer_lane *lane, const struct kxfer_wire_send *send, u32 length)
{
	bool credit = be32_to_cpu(send->flags) & KXFER_WIRE_SEND_CREDIT;
	struct kxfer_message message = {};
	int ret;

	ret = kxfer_wire_take_send(&message, send, length,
				   lane->link->features & KXFER_WIRE_FEATURE_EAGER);
	if (ret)
		return ret;
	return deliver(lane, be64_to_cpu(send->grant), &message, send + 1, credit, false);
}

/**
 * kxfer_grant_eager() - put an eager message into the mailbox of a grant; does not sleep
 * @lane: lane of a passive link, that the message came by
 * @grant_id: id of the grant, untrusted
 * @payload: bytes of the message
 * @length: their number
 *
 * A withdrawn mailbox drops the message. Return: how the peer broke the protocol, or NULL.
 */
const char *kxfer_grant_eager(struct kxfer_lane *lane, u32 grant_id, const void *payload,
			      u32 length)
{
	struct kxfer_message message = { .bytes = length };

	if (length > KXFER_MESSAGE_EAGER_MAX)
		return "an eager message that is too long";
	switch (deliver(lane, grant_id, &message, payload, true, true)) {
	case -EPROTO:
		return "an eager message without a credit";
	case -EINVAL:
		return "an eager message that its mailbox does not take";
	default:
		return NULL;
	}
}

/**
 * kxfer_grant_credits() - give credits to a grant on a mailbox; does not sleep
 * @lane: lane of a passive link
 * @grant_id: id of the grant, untrusted
 * @credits: out: credits given
 *
 * Return: 0 or -errno, for the wire.
 */
int kxfer_grant_credits(struct kxfer_lane *lane, u64 grant_id, u32 *credits)
{
	struct kxfer_link *link = lane->link;
	bool grown = kxfer_channel_grow(&lane->channel);
	struct kxfer_grant *grant;

	xa_lock_bh(&link->grants);
	if (grown && !lane->grown)
		lane->unpromised = KXFER_WIRE_EAGER;
	lane->grown = grown;
	grant = grant_of_message(link, grant_id, false, NULL);
	if (!IS_ERR(grant))
		*credits = kxfer_eager_give(&grant->eager, lane,
					    grant->exposure->export->mailbox);
	xa_unlock_bh(&link->grants);
	return PTR_ERR_OR_ZERO(grant);
}

/* Called with the lock of the link's table held. */
static int offer(struct kxfer_link *link, struct kxfer_fetch *fetch,
		 struct kxfer_job_list *ended)
{
	bool credit = fetch->offered.credit;
	u32 bytes = fetch->incoming.message.bytes;
	struct kxfer_grant *grant;
	int ret;

	grant = grant_of_message(link, fetch->offered.grant, credit, NULL);
	if (IS_ERR(grant))
		return PTR_ERR(grant);
	fetch->incoming.message.uid = grant->uid;
	fetch->incoming.message.gid = grant->gid;
	fetch->incoming.message.word = grant->word;
	fetch->exposure = grant->exposure;
	fetch->incoming.mailbox = grant->exposure->export->mailbox;
	kref_get(&fetch->exposure->ref);
	ret = kxfer_mailbox_offer(&fetch->incoming, credit, fetch->offered.waits, ended);
	trace_kxfer_message(grant->exposure, grant->uid, bytes, ret);
	/* The grant still has its own reference. */
	if (ret)
		kxfer_exposure_put(grant->exposure);
	return ret;
}

/**
 * kxfer_grant_offer() - note a long message in the mailbox of a grant; does not sleep
 * @link: passive link
 * @fetch: fetch of the caller; unless refused it belongs to the mailbox or the lane from
 *	here on, with a reference on its exposure
 *
 * Return: 0 or -errno, for the wire; -EPROTO: the peer broke the protocol.
 */
int kxfer_grant_offer(struct kxfer_link *link, struct kxfer_fetch *fetch)
{
	u64 now = fetch->incoming.message.time_ns;
	struct kxfer_job_list ended = {};
	int ret;

	xa_lock_bh(&link->grants);
	ret = offer(link, fetch, &ended);
	xa_unlock_bh(&link->grants);
	message_over(&ended, now, ret);
	return ret;
}

/** kxfer_grant_link_closed() - end the grants of a link whose QPs and exposures are gone */
void kxfer_grant_link_closed(struct kxfer_link *link)
{
	struct kxfer_grant *grant;
	unsigned long id;

	xa_for_each(&link->grants, id, grant) {
		xa_erase_bh(&link->grants, id);
		free_grant(link, grant);
	}
}
