// SPDX-License-Identifier: GPL-2.0
/*
 * Releases: grants go back to the peer, and no caller waits for that.
 *
 * A target without references goes to its link's list of closed targets. A grant that came
 * after its caller had given up waiting, an orphan, goes to another list. One work for each
 * link empties both: it settles the WRITEs of a target, stands in line for a slot of the
 * channel with the callers that wait for one, and posts RELEASE. So as many RELEASEs are under
 * way as there are slots. The answer carries nothing. A peer that does not answer within
 * KXFER_REQUEST_MS loses the link, as with any request.
 *
 * A target counts for its user until its RELEASE is posted: so the user's share limits the
 * list. The work waits for the peer in one place only: for the placement READ of WRITEs on
 * iWARP, PLACEMENT_MS of iwarp.c at most. The work does not wait for a slot, but stands in
 * line and is queued again when it has one.
 *
 * The end, as a proof. Once the link is CLOSING kxfer_link_queue_release() no longer queues
 * the work, and targets are freed where they are closed. The link's teardown closes the
 * lanes: the wait for the placement READ has ended, and the work gets no slot any more (channel.c).
 * Then the teardown cancels the work, and frees all that is left in both lists; no grant has
 * to be given back then. The context that takes a target off the list, under targets_lock,
 * frees the target.
 *
 * Context: kxfer_release_work() may sleep, all else does not.
 */
#include <linux/slab.h>

#include "base/fault.h"
#include "job/release.h"
#include "job/sender.h"
#include "job/target.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"

/* A grant that no target took. */
struct orphan {
	struct list_head node;
	u64 grant;
};

/**
 * kxfer_release_target() - give back the grant of a target, and free the target
 * @target: target without references, in no list of its link
 *
 * Does not sleep, nor wait for the peer.
 */
void kxfer_release_target(struct kxfer_target *target)
{
	struct kxfer_link *link = target->link;

	if (!target->grant) {
		kxfer_target_free(target);
		return;
	}
	/* Keep the link until the work has been queued: another context may free the target. */
	kxfer_link_ref(link);
	spin_lock_bh(&link->targets_lock);
	list_add_tail(&target->link_node, &link->closed_targets);
	spin_unlock_bh(&link->targets_lock);
	if (!kxfer_link_queue_release(link))
		kxfer_release_link_closed(link);
	kxfer_link_put(link);
}

/**
 * kxfer_release_orphan() - give back a grant that no target took
 * @link: link of an initiator
 * @grant: the peer's id of the grant
 *
 * Without memory the grant stays with the peer until the link ends; the link then ends as
 * soon as it has no users. Any context but hard interrupts.
 */
void kxfer_release_orphan(struct kxfer_link *link, u64 grant)
{
	struct orphan *orphan;

	orphan = kxfer_try_alloc(RELEASE_ORPHAN, kmalloc_obj(*orphan, GFP_ATOMIC));
	if (!orphan) {
		WRITE_ONCE(link->keeps_grant, true);
		return;
	}
	orphan->grant = grant;
	spin_lock_bh(&link->targets_lock);
	list_add_tail(&orphan->node, &link->orphans);
	spin_unlock_bh(&link->targets_lock);
	/* A link going down frees the orphan in its teardown: this runs on one of its lanes. */
	kxfer_link_queue_release(link);
}

static struct kxfer_target *first_closed(struct kxfer_link *link)
{
	struct kxfer_target *target;

	spin_lock_bh(&link->targets_lock);
	target = list_first_entry_or_null(&link->closed_targets, struct kxfer_target,
					  link_node);
	if (target)
		list_del_init(&target->link_node);
	spin_unlock_bh(&link->targets_lock);
	return target;
}

static void put_back(struct kxfer_target *target)
{
	spin_lock_bh(&target->link->targets_lock);
	list_add(&target->link_node, &target->link->closed_targets);
	spin_unlock_bh(&target->link->targets_lock);
}

static struct orphan *first_orphan(struct kxfer_link *link)
{
	struct orphan *orphan;

	spin_lock_bh(&link->targets_lock);
	orphan = list_first_entry_or_null(&link->orphans, struct orphan, node);
	if (orphan)
		list_del(&orphan->node);
	spin_unlock_bh(&link->targets_lock);
	return orphan;
}

static void put_orphan_back(struct kxfer_link *link, struct orphan *orphan)
{
	spin_lock_bh(&link->targets_lock);
	list_add(&orphan->node, &link->orphans);
	spin_unlock_bh(&link->targets_lock);
}

static void released(struct kxfer_request *request)
{
	/* Any answer will do: a grant that the peer does not know counts as given back. */
}

/*
 * @sent: messages to the grant that took a credit. Return: false if there is no slot; the work is
 * queued again when there is one.
 */
static bool give_back(struct kxfer_link *link, u64 grant, u32 sent)
{
	struct kxfer_channel *channel = &link->control->channel;
	struct kxfer_wire_release release = {
		.grant = cpu_to_be64(grant),
		.sent = cpu_to_be32(sent),
	};
	u32 length = link->features & KXFER_WIRE_FEATURE_EAGER ?
		     sizeof(release) : sizeof(struct kxfer_wire_grant_id);
	struct kxfer_request *request;

	if (!kxfer_link_is_live(link))
		return true;
	request = kxfer_channel_ask(channel, &channel->releaser);
	if (!request)
		return !kxfer_link_is_live(link);
	request->answered = released;
	if (kxfer_channel_post(request, KXFER_WIRE_RELEASE, &release, length))
		kxfer_channel_put(request);
	return true;
}

static bool give_back_targets(struct kxfer_link *link)
{
	struct kxfer_target *target;

	while ((target = first_closed(link))) {
		kxfer_target_settle(target);
		kxfer_delay(TARGET_RELEASE);
		if (!give_back(link, target->grant, target->sender ? target->sender->sent : 0)) {
			put_back(target);
			return false;
		}
		kxfer_target_free(target);
	}
	return true;
}

static bool give_back_orphans(struct kxfer_link *link)
{
	struct orphan *orphan;

	while ((orphan = first_orphan(link))) {
		kxfer_delay(CONTROL_ORPHAN);
		if (!give_back(link, orphan->grant, 0)) {
			put_orphan_back(link, orphan);
			return false;
		}
		kfree(orphan);
	}
	return true;
}

/** kxfer_release_work() - give back grants: release_work of a link; may sleep */
void kxfer_release_work(struct work_struct *work)
{
	struct kxfer_link *link = container_of(work, struct kxfer_link, release_work);

	/* Leave the line; a slot that was handed over and is not needed goes to others. */
	if (give_back_targets(link) && give_back_orphans(link))
		kxfer_channel_leave(&link->control->channel,
				    &link->control->channel.releaser);
}

/**
 * kxfer_release_link_closed() - free what a link that goes down has left to give back
 * @link: link that is not LIVE
 */
void kxfer_release_link_closed(struct kxfer_link *link)
{
	struct kxfer_target *target;
	struct orphan *orphan;

	while ((target = first_closed(link)))
		kxfer_target_free(target);
	while ((orphan = first_orphan(link)))
		kfree(orphan);
}

/** kxfer_release_abandoned() - give back the grant of an abandoned answer; does not sleep */
void kxfer_release_abandoned(struct kxfer_request *request)
{
	const struct kxfer_wire_grant_answer *answer = request->answer;

	if (request->message->type == KXFER_WIRE_GRANT && !request->status &&
	    request->answer_length >= sizeof(*answer))
		kxfer_release_orphan(request->channel->lane->link,
				     be64_to_cpu(answer->grant));
}
