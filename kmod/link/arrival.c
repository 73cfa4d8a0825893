// SPDX-License-Identifier: GPL-2.0
/*
 * Arrivals: where the handler of a peer's request runs.
 *
 * The table of messages (control.c) gives the handler of each request and says whether it
 * sleeps. A handler that does not sleep runs where the request arrived, all others run on
 * kxfer_handler_wq. Some wait for the peer, or for work requests posted after something that
 * the peer has to take: these run one at a time for each link, so that a peer keeps no more
 * than one worker waiting. Handlers that wait only for locks and the device run at once.
 *
 * Context: kxfer_arrival_begin() does not sleep, the works may.
 */
#include "base/fault.h"
#include "link/arrival.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"

static void queue_in_turn(struct kxfer_reply *reply)
{
	struct kxfer_channel *channel = reply->channel;

	spin_lock_bh(&channel->lane->lock);
	list_add_tail(&reply->arrived.node, &channel->arrivals);
	spin_unlock_bh(&channel->lane->lock);
	queue_work(kxfer_handler_wq, &channel->turn_work);
}

/** kxfer_arrival_begin() - begin to handle a request; does not sleep */
void kxfer_arrival_begin(struct kxfer_reply *reply)
{
	struct kxfer_link *link = reply->channel->lane->link;
	const struct kxfer_handler *handler = link->ops->handler(reply);

	reply->handler = handler;
	if (!handler)
		kxfer_link_protocol_error(link, "a request that it must not send");
	else if (handler->place == KXFER_IN_TURN)
		queue_in_turn(reply);
	else if (handler->place == KXFER_IN_A_WORK)
		queue_work(kxfer_handler_wq, &reply->work);
	else
		handler->handle(reply, reply->request + 1);
}

/** kxfer_arrival_work() - handle a request; may sleep */
void kxfer_arrival_work(struct work_struct *work)
{
	struct kxfer_reply *reply = container_of(work, struct kxfer_reply, work);

	kxfer_delay(CONTROL_WORK);
	reply->handler->handle(reply, reply->request + 1);
}

/* @more: out: others have arrived as well. One that arrives later queues the work itself. */
static struct kxfer_reply *next_in_turn(struct kxfer_channel *channel, bool *more)
{
	struct kxfer_reply *reply;

	spin_lock_bh(&channel->lane->lock);
	reply = list_first_entry_or_null(&channel->arrivals, struct kxfer_reply,
					 arrived.node);
	if (reply)
		list_del(&reply->arrived.node);
	*more = !list_empty(&channel->arrivals);
	spin_unlock_bh(&channel->lane->lock);
	return reply;
}

/** kxfer_arrival_turn_work() - run handlers that may wait for the peer, in order of arrival */
void kxfer_arrival_turn_work(struct work_struct *work)
{
	struct kxfer_channel *channel = container_of(work, struct kxfer_channel, turn_work);
	struct kxfer_reply *reply;
	bool more;

	reply = next_in_turn(channel, &more);
	if (!reply)
		return;
	kxfer_arrival_work(&reply->work);
	/* Requeue, so that others have a turn: a peer may send without end. */
	if (more)
		queue_work(kxfer_handler_wq, work);
}
