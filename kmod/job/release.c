// SPDX-License-Identifier: GPL-2.0
/*
 * Releases: grants go back to the peer, and no caller waits for that.
 *
 * A target without references comes to its link's list of closed ones; a grant that came
 * when its caller had given up waiting, an orphan, comes to another list. One work for each
 * link empties both: it settles the WRITEs of a target, stands in line for a slot of the
 * channel with the callers that wait for one, and posts RELEASE. So as many are under way as
 * there are slots. The answer says nothing. A peer that does not give it within
 * KXFER_REQUEST_MS loses the link, as with any request.
 *
 * A target counts for its user until its RELEASE is posted: so the list is limited by that
 * share. The work waits for the peer in one place only: for the fence READ of WRITEs on
 * iWARP, KXFER_FENCE_MS at most (lane.c). It does not wait for a slot, but stands in line and
 * is queued again when it has one.
 *
 * The end, as a proof. Once the link is CLOSING kxfer_link_queue_release() queues the work
 * no more, and closed targets end where they are closed. The link's teardown closes the
 * lanes: the waiting for the fence has ended, and no slot is handed to the work any more
 * (channel.c). Then the teardown cancels the work, and ends all that is left in both lists;
 * nothing has to be given back then. The context that takes a target off the list, under
 * targets_lock, frees it.
 *
 * Context: kxfer_release_work() may sleep, all else does not.
 */
#include <linux/slab.h>

#include "base/fault.h"
#include "job/release.h"
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
 * kxfer_release_target() - give back what a target has of its peer, and free the target
 * @target: without references, in no list of its link
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
	/* Stays until the work has been queued, whoever frees the target. */
	kxfer_link_ref(link);
	spin_lock_bh(&link->targets_lock);
	list_add_tail(&target->link_node, &link->closed_targets);
	spin_unlock_bh(&link->targets_lock);
	if (!kxfer_link_queue_release(link))
		kxfer_release_link_closed(link);
	kxfer_link_put(link);
}

/**
 * kxfer_release_orphan() - give back a grant that no target took; any context
 * @link: initiator's
 * @grant: the peer's id of it
 *
 * Without memory the grant stays with the peer until the link ends, which it then
 * does as soon as nobody uses it.
 */
void kxfer_release_orphan(struct kxfer_link *link, u64 grant)
{
	struct orphan *orphan;

	orphan = kxfer_fault(RELEASE_ORPHAN) ? NULL : kmalloc(sizeof(*orphan), GFP_ATOMIC);
	if (!orphan) {
		WRITE_ONCE(link->keeps_grant, true);
		return;
	}
	orphan->grant = grant;
	spin_lock_bh(&link->targets_lock);
	list_add_tail(&orphan->node, &link->orphans);
	spin_unlock_bh(&link->targets_lock);
	/* If the link is going down its teardown frees the orphan: this is on a lane of it. */
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
	/* Any answer will do: a grant that the peer does not know is given back, too. */
}

/* Return: false if there is no slot; the work is queued again when there is. */
static bool give_back(struct kxfer_link *link, u64 grant)
{
	struct kxfer_channel *channel = &link->control->channel;
	struct kxfer_wire_grant_id id = { .grant = cpu_to_be64(grant) };
	struct kxfer_request *request;

	if (!kxfer_link_is_live(link))
		return true;
	request = kxfer_channel_ask(channel, &channel->releaser);
	if (!request)
		return !kxfer_link_is_live(link);
	request->answered = released;
	if (kxfer_channel_post(request, KXFER_WIRE_RELEASE, &id, sizeof(id)))
		kxfer_channel_put(request);
	return true;
}

static bool give_back_targets(struct kxfer_link *link)
{
	struct kxfer_target *target;

	while ((target = first_closed(link))) {
		kxfer_target_settle(target);
		kxfer_delay(TARGET_RELEASE);
		if (!give_back(link, target->grant)) {
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
		if (!give_back(link, orphan->grant)) {
			put_orphan_back(link, orphan);
			return false;
		}
		kfree(orphan);
	}
	return true;
}

/** kxfer_release_work() - a link's release_work; may sleep */
void kxfer_release_work(struct work_struct *work)
{
	struct kxfer_link *link = container_of(work, struct kxfer_link, release_work);

	/* A slot that was handed over and is not wanted any more goes to others. */
	if (give_back_targets(link) && give_back_orphans(link))
		kxfer_channel_leave(&link->control->channel,
				    &link->control->channel.releaser);
}

/**
 * kxfer_release_link_closed() - a link is going down: free what waits to be given back
 * @link: not LIVE
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

/** kxfer_release_abandoned() - an answer came that nobody waits for; does not sleep */
void kxfer_release_abandoned(struct kxfer_request *request)
{
	const struct kxfer_wire_grant_answer *answer = request->answer;

	if (request->message->type == KXFER_WIRE_GRANT && !request->status &&
	    request->answer_length == sizeof(*answer))
		kxfer_release_orphan(request->channel->lane->link,
				     be64_to_cpu(answer->grant));
}
