// SPDX-License-Identifier: GPL-2.0
/*
 * Senders: the credits that a peer gives for messages to one of its mailboxes.
 *
 * The peer gives credits when it is asked by CREDITS (share/eager.c says for what). A sender asks
 * when its first message is posted, and again when an eighth of its credits is left. So there are
 * more before the last is used, and no message waits for the answer unless the peer is slow. A
 * peer that gives none is asked again after REST messages.
 *
 * A CREDITS under way keeps the sender and its flow, not the target: that may be closed meanwhile.
 * What the answer brings then is of no use, and the peer takes it back with the grant.
 *
 * The peer handles CREDITS after all eager messages before it on the lane. So its answer also
 * proves that those are handled: then the flow may go to another lane (flow.c).
 *
 * Context: under a lane's lock, or where an answer arrives; nothing sleeps.
 */
#include <linux/slab.h>

#include "base/decode.h"
#include "base/fault.h"
#include "job/chain.h"
#include "job/flow.h"
#include "job/sender.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"

#define REST	32

/** kxfer_sender_create() - a sender without credits, with one reference; or NULL */
struct kxfer_sender *kxfer_sender_create(u64 grant)
{
	struct kxfer_sender *sender;

	sender = kxfer_try_alloc(SENDER, kzalloc_obj(*sender, GFP_KERNEL_ACCOUNT));
	if (!sender)
		return NULL;
	refcount_set(&sender->ref, 1);
	sender->grant = grant;
	return sender;
}

/** kxfer_sender_join() - tie a sender to the flow of its target, which is about to be used */
void kxfer_sender_join(struct kxfer_sender *sender, struct kxfer_flow *flow)
{
	kref_get(&flow->ref);
	sender->flow = flow;
}

/** kxfer_sender_put() - drop a reference; any context */
void kxfer_sender_put(struct kxfer_sender *sender)
{
	if (!refcount_dec_and_test(&sender->ref))
		return;
	if (sender->flow)
		kxfer_flow_put(sender->flow);
	kfree(sender);
}

/**
 * kxfer_sender_served() - whether the peer gives credits that can be used
 * @link: link of an initiator
 *
 * A message of two pages must be one work request.
 */
bool kxfer_sender_served(const struct kxfer_link *link)
{
	return link->features & KXFER_WIRE_FEATURE_EAGER && link->dev->write_limits.max_sge > 1;
}

/* Called with the lane's lock held. Return: 0 or -EPROTO. */
static int take_credits(struct kxfer_sender *sender, const struct kxfer_request *request)
{
	const struct kxfer_lane *lane = request->channel->lane;
	int credits = 0;

	sender->asking = false;
	if (!request->status)
		credits = kxfer_wire_take_credits(request->answer, request->answer_length,
						  sender->credits);
	if (credits < 0 || (credits && sender->credits && sender->lane != lane))
		return -EPROTO;
	if (credits)
		sender->lane = lane;
	else
		sender->rest = REST;
	sender->credits += credits;
	sender->window = sender->credits;
	return 0;
}

/* CREDITS is answered. Called with the lane's lock held. */
static void note_answer(struct kxfer_flow *flow, u32 asked_at)
{
	flow->nr_asked--;
	if (flow->nr_eager == asked_at)
		flow->unhandled = false;
}

/* The messages that wait are posted when the slot is free, which follows. */
static void answered(struct kxfer_request *request)
{
	struct kxfer_sender *sender = request->owner;
	struct kxfer_lane *lane = request->channel->lane;
	int ret;

	spin_lock_bh(&lane->lock);
	ret = take_credits(sender, request);
	note_answer(sender->flow, sender->asked_at);
	kxfer_flow_wake_held(lane);
	spin_unlock_bh(&lane->lock);
	if (ret)
		kxfer_link_protocol_error(lane->link, "credits that make no sense");
	kxfer_sender_put(sender);
}

static void proved(struct kxfer_request *request)
{
	struct kxfer_lane *lane = request->channel->lane;
	struct kxfer_flow *flow = request->owner;

	spin_lock_bh(&lane->lock);
	note_answer(flow, flow->proof_at);
	spin_unlock_bh(&lane->lock);
	kxfer_flow_put(flow);
}

/* Called with the lane's lock held. Return: false if nothing is posted. */
static bool post_credits(struct kxfer_flow *flow, u64 grant, kxfer_answered_fn done, void *owner)
{
	struct kxfer_wire_grant_id id = { .grant = cpu_to_be64(grant) };
	struct kxfer_request *request = kxfer_channel_get_locked(&flow->lane->channel);

	if (!request)
		return false;
	/* The answer proves that what was built before is handled. */
	kxfer_chain_flush(flow->lane);
	request->owner = owner;
	request->answered = done;
	/* If this fails the link is broken, and nothing waits for the answer any more. */
	if (kxfer_channel_post_locked(request, KXFER_WIRE_CREDITS, &id, sizeof(id))) {
		request->answered = NULL;
		return false;
	}
	flow->nr_asked++;
	return true;
}

static bool may_ask(struct kxfer_sender *sender)
{
	if (sender->asking)
		return false;
	if (!sender->rest)
		return true;
	sender->rest--;
	return false;
}

/**
 * kxfer_sender_ask() - ask for credits, unless that is being done or was in vain
 * @sender: sender that runs low, of a message that is about to be posted; the caller holds the
 *	lock of the lane that its flow is on
 *
 * Without a free slot the next message asks.
 */
void kxfer_sender_ask(struct kxfer_sender *sender)
{
	if (!may_ask(sender) || !post_credits(sender->flow, sender->grant, answered, sender))
		return;
	refcount_inc(&sender->ref);
	sender->asking = true;
	sender->asked_at = sender->flow->nr_eager;
}

/**
 * kxfer_sender_prove() - find out when the eager messages of a flow are handled
 * @flow: flow with such messages and no CREDITS under way; the caller holds its lane's lock
 *
 * Without a free slot the next job that wants another lane tries again.
 */
void kxfer_sender_prove(struct kxfer_flow *flow)
{
	/* A grant that is none gets no credits, which would have to be counted. */
	if (!post_credits(flow, 0, proved, flow))
		return;
	kref_get(&flow->ref);
	flow->proof_at = flow->nr_eager;
}
