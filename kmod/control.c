// SPDX-License-Identifier: GPL-2.0
/*
 * Control: the table of messages and what each side does with them.
 *
 * The table is the index: the handler of each request and where it runs. What does not
 * sleep runs where the request arrived, all else on kxfer_handler_wq: what waits for the peer
 * or for work that is posted behind what the peer has to take, one at a time for each link,
 * so that no peer has more than one worker wait for it; what waits for locks and the device
 * alone, at once. Who may send a request, on
 * which kind of lane and how long its payload is, says the table in decode.c. What
 * is not in that costs the sender the link. Handlers get payloads of a length that it
 * allows; their content is the peer's word and is checked where it
 * is used.
 */
#include "log.h"

#include <linux/kxfer.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "channel.h"
#include "control.h"
#include "decode.h"
#include "device.h"
#include "export.h"
#include "fault.h"
#include "fetch.h"
#include "grant.h"
#include "job.h"
#include "lane.h"
#include "link.h"
#include "offer.h"
#include "release.h"
#include "stats.h"
#include "target.h"

static int make_fence(struct kxfer_link *link)
{
	struct ib_mr *mr;
	int ret;

	link->fence = kxfer_fault(CONTROL_FENCE) ? NULL :
		      kzalloc(KXFER_FENCE_BYTES, GFP_KERNEL);
	if (!link->fence)
		return -ENOMEM;
	ret = kxfer_device_map(link->pd->device, link->fence, KXFER_FENCE_BYTES,
			       DMA_TO_DEVICE, &link->fence_dma);
	if (ret)
		return ret;
	mr = kxfer_lane_alloc_mr(link->control, 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	link->fence_mr = mr;
	return kxfer_lane_register_bytes(link->control, mr, link->fence_dma,
					 KXFER_FENCE_BYTES, IB_ACCESS_REMOTE_READ);
}

/* Called with register_mutex held. Return: 0, -EACCES, or why this side cannot say */
static int check_proof(struct kxfer_link *link, const void *proof, u32 length)
{
	int ret;

	if (!link->keys)
		return 0;
	ret = kxfer_handshake_check(&link->handshake, link->keys, proof, length);
	if (ret != -EACCES)
		return ret;
	kxfer_stat_inc(KXFER_STAT_KEYS_REFUSED);
	kxfer_notice("link %llu: refused: %pISpc proves no key of the listener", link->id,
		     &link->control->cm_id->route.addr.dst_addr);
	return ret;
}

static int fill_hello_answer(struct kxfer_link *link,
			     struct kxfer_wire_keyed_hello_answer *keyed)
{
	keyed->answer = (struct kxfer_wire_hello_answer) {
		.fence_addr = cpu_to_be64(link->fence_mr->iova),
		.fence_key = cpu_to_be32(link->fence_mr->rkey),
	};
	return link->keys ? kxfer_handshake_answer(&link->handshake, keyed) : 0;
}

static void handle_hello(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_link *link = reply->channel->lane->link;
	struct kxfer_wire_keyed_hello_answer *answer = kxfer_channel_payload(reply);
	int ret;

	if (!link->keys && reply->request_length) {
		kxfer_link_protocol_error(link, "a proof where there is no key");
		return;
	}
	/* Two HELLOs in two slots are handled side by side. */
	mutex_lock(&link->register_mutex);
	ret = link->fence ? -EINVAL : check_proof(link, payload, reply->request_length);
	if (!ret)
		ret = make_fence(link);
	mutex_unlock(&link->register_mutex);
	if (!ret)
		ret = fill_hello_answer(link, answer);
	if (!ret)
		ret = kxfer_link_set_live(link);
	if (!ret)
		kxfer_stat_inc(KXFER_STAT_LINKS_ACCEPTED);
	kxfer_channel_answer(reply, kxfer_wire_status(ret),
			     link->keys ? sizeof(*answer) : sizeof(answer->answer));
	if (ret == -EACCES)
		kxfer_link_end_soon(link);
}

static void handle_ping(struct kxfer_reply *reply, const void *payload)
{
	kxfer_channel_answer(reply, KXFER_WIRE_OK, 0);
}

static void handle_grant(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_wire_grant_answer *answer = kxfer_channel_payload(reply);
	enum kxfer_wire_status status;

	status = kxfer_grant_create(reply->channel->lane->link, payload, answer);
	kxfer_channel_answer(reply, status, sizeof(*answer));
}

static void handle_keys(struct kxfer_reply *reply, const void *payload)
{
	enum kxfer_wire_status status;
	u32 length;

	status = kxfer_export_keys(reply->channel->lane->link, payload,
				   kxfer_channel_payload(reply), &length);
	kxfer_channel_answer(reply, status, length);
}

static void handle_release(struct kxfer_reply *reply, const void *payload)
{
	const struct kxfer_wire_grant_id *id = payload;

	kxfer_channel_answer(reply, kxfer_grant_release(reply->channel->lane->link,
							be64_to_cpu(id->grant)), 0);
}

static void handle_info(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_wire_info_answer *answer = kxfer_channel_payload(reply);
	const struct kxfer_wire_grant_id *id = payload;
	enum kxfer_wire_status status;

	status = kxfer_grant_describe(reply->channel->lane->link,
				      be64_to_cpu(id->grant), answer);
	kxfer_channel_answer(reply, status, sizeof(*answer));
}

static void handle_list(struct kxfer_reply *reply, const void *payload)
{
	enum kxfer_wire_status status;
	u32 length;

	status = kxfer_export_list(reply->channel->lane->link, payload,
				   kxfer_channel_payload(reply), &length);
	kxfer_channel_answer(reply, status, length);
}

static void handle_revoke(struct kxfer_reply *reply, const void *payload)
{
	const struct kxfer_wire_exposure_id *id = payload;

	kxfer_target_revoke(reply->channel->lane->link, be64_to_cpu(id->exposure));
	kxfer_channel_answer(reply, KXFER_WIRE_OK, 0);
}

static void handle_content(struct kxfer_reply *reply, const void *payload)
{
	const struct kxfer_wire_content_change *change = payload;

	kxfer_target_content(reply->channel->lane->link,
			     be64_to_cpu(change->exposure), &change->content);
	kxfer_channel_answer(reply, KXFER_WIRE_OK, 0);
}

static void handle_notify(struct kxfer_reply *reply, const void *payload)
{
	const struct kxfer_wire_notify *notify = payload;

	kxfer_channel_answer(reply,
			     kxfer_grant_notify(reply->channel->lane->link,
						be64_to_cpu(notify->grant),
						be64_to_cpu(notify->cookie)), 0);
}

static void handle_send(struct kxfer_reply *reply, const void *payload)
{
	kxfer_channel_answer(reply, kxfer_grant_send(reply->channel->lane, payload,
						     reply->request_length), 0);
}

static void no_such_offer(struct kxfer_reply *reply)
{
	kxfer_link_protocol_error(reply->channel->lane->link,
				  "a long message that makes no sense");
}

static void handle_offer(struct kxfer_reply *reply, const void *payload)
{
	int ret = kxfer_fetch_offered(reply->channel->lane, payload);

	if (ret == -EPROTO)
		no_such_offer(reply);
	else
		kxfer_channel_answer(reply, kxfer_wire_status(ret), 0);
}

static void handle_fetched(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_offer *offer = kxfer_offer_fetched(reply->channel->lane, payload);

	if (!offer) {
		no_such_offer(reply);
		return;
	}
	kxfer_channel_answer(reply, KXFER_WIRE_OK, 0);
	kxfer_offer_end(offer);
}

static void handle_take_back(struct kxfer_reply *reply, const void *payload)
{
	int ret = kxfer_fetch_take_back(reply->channel->lane, payload);

	if (ret == -EPROTO)
		no_such_offer(reply);
	else
		kxfer_channel_answer(reply, kxfer_wire_status(ret), 0);
}

enum place {
	HERE,		/* does not sleep */
	IN_A_WORK,	/* sleeps, but for no peer */
	IN_TURN,	/* may wait for the peer */
};

static const struct message {
	enum place place;
	void (*handle)(struct kxfer_reply *reply, const void *payload);
} messages[KXFER_WIRE_NR_TYPES] = {
	[KXFER_WIRE_HELLO]	= { IN_TURN, handle_hello },
	[KXFER_WIRE_PING]	= { HERE, handle_ping },
	[KXFER_WIRE_GRANT]	= { IN_TURN, handle_grant },
	[KXFER_WIRE_KEYS]	= { IN_A_WORK, handle_keys },
	[KXFER_WIRE_RELEASE]	= { IN_A_WORK, handle_release },
	[KXFER_WIRE_INFO]	= { IN_A_WORK, handle_info },
	[KXFER_WIRE_LIST]	= { IN_A_WORK, handle_list },
	[KXFER_WIRE_REVOKE]	= { IN_TURN, handle_revoke },
	[KXFER_WIRE_CONTENT]	= { IN_A_WORK, handle_content },
	[KXFER_WIRE_NOTIFY]	= { HERE, handle_notify },
	[KXFER_WIRE_SEND]	= { HERE, handle_send },
	[KXFER_WIRE_OFFER]	= { HERE, handle_offer },
	[KXFER_WIRE_FETCHED]	= { HERE, handle_fetched },
	[KXFER_WIRE_TAKE_BACK]	= { HERE, handle_take_back },
};

/* Return: the entry for a request, or NULL if the peer may not send it now. */
static const struct message *find_message(const struct kxfer_reply *reply)
{
	const struct kxfer_lane *lane = reply->channel->lane;
	bool connecting = READ_ONCE(lane->link->state) == KXFER_LINK_CONNECTING;
	u8 type = reply->request->type;

	if (!kxfer_wire_may_send(type, reply->request_length, !lane->link->initiator,
				 kxfer_lane_is_control(lane) ? KXFER_WIRE_CONTROL :
				 KXFER_WIRE_DATA, connecting))
		return NULL;
	/* Who has not proved the key of this link is told that it is there, and no more. */
	if (lane->link->key.secret && !READ_ONCE(lane->link->handshake.proven) &&
	    type != KXFER_WIRE_PING)
		return NULL;
	return &messages[type];
}

static void queue_in_turn(struct kxfer_reply *reply)
{
	struct kxfer_channel *channel = reply->channel;

	spin_lock_bh(&channel->lane->lock);
	list_add_tail(&reply->node, &channel->arrivals);
	spin_unlock_bh(&channel->lane->lock);
	queue_work(kxfer_handler_wq, &channel->turn_work);
}

/** kxfer_control_dispatch() - a request has arrived; does not sleep */
void kxfer_control_dispatch(struct kxfer_reply *reply)
{
	const struct message *message = find_message(reply);

	if (!message)
		kxfer_link_protocol_error(reply->channel->lane->link,
					  "a request that it must not send");
	else if (message->place == IN_TURN)
		queue_in_turn(reply);
	else if (message->place == IN_A_WORK)
		queue_work(kxfer_handler_wq, &reply->work);
	else
		message->handle(reply, reply->request + 1);
}

/** kxfer_control_work() - handle a request; may sleep */
void kxfer_control_work(struct work_struct *work)
{
	struct kxfer_reply *reply = container_of(work, struct kxfer_reply, work);

	kxfer_delay(CONTROL_WORK);
	messages[reply->request->type].handle(reply, reply->request + 1);
}

static struct kxfer_reply *next_in_turn(struct kxfer_channel *channel)
{
	struct kxfer_reply *reply;

	spin_lock_bh(&channel->lane->lock);
	reply = list_first_entry_or_null(&channel->arrivals, struct kxfer_reply, node);
	if (reply)
		list_del(&reply->node);
	spin_unlock_bh(&channel->lane->lock);
	return reply;
}

/** kxfer_control_turn_work() - handle requests that may wait for the peer, in their order */
void kxfer_control_turn_work(struct work_struct *work)
{
	struct kxfer_channel *channel = container_of(work, struct kxfer_channel, turn_work);
	struct kxfer_reply *reply = next_in_turn(channel);

	if (!reply)
		return;
	kxfer_control_work(&reply->work);
	/* Others have a turn first: a peer sends on and on. */
	queue_work(kxfer_handler_wq, work);
}

/** kxfer_control_slot_free() - a request slot of a lane is free: use it; does not sleep */
void kxfer_control_slot_free(struct kxfer_lane *lane)
{
	if (!kxfer_lane_is_control(lane) && lane->link->initiator) {
		kxfer_offer_pump(lane);
		kxfer_job_pump(lane);
	} else if (!kxfer_lane_is_control(lane)) {
		kxfer_fetch_tell(lane);
	} else if (!lane->link->initiator) {
		kxfer_link_queue_content(lane->link);
	}
}

/* The passive side does not take the key, or does not prove it. */
static int key_rejected(struct kxfer_link *link)
{
	WRITE_ONCE(link->refusal, KXFER_REFUSAL_KEY);
	kxfer_stat_inc(KXFER_STAT_KEYS_REFUSED);
	kxfer_notice("link %llu: the peer does not prove the key %s", link->id,
		     link->key.secret->name);
	return -EKEYREJECTED;
}

static int hello_with_key(struct kxfer_link *link, struct kxfer_wire_keyed_hello_answer *answer,
			  unsigned int timeout_ms)
{
	struct kxfer_wire_proof proof;
	u32 length = sizeof(*answer);
	int ret;

	ret = kxfer_handshake_prove(&link->handshake, link->key.secret, &proof);
	if (ret)
		return ret;
	ret = kxfer_channel_call(&link->control->channel, KXFER_WIRE_HELLO, &proof,
				 sizeof(proof), answer, &length, timeout_ms,
				 KXFER_WAIT_KILLABLE);
	if (!ret)
		ret = length != sizeof(*answer) ? -EKEYREJECTED :
		      kxfer_handshake_check_answer(&link->handshake, link->key.secret, answer);
	return ret == -EACCES || ret == -EKEYREJECTED ? key_rejected(link) : ret;
}

/**
 * kxfer_control_hello() - an initiator's first message
 * @link: whose control QP is connected
 * @timeout_ms: to wait for the answer
 *
 * Sleeps; the link's teardown ends that by a signal to the caller, connect_thread.
 * Return: 0 or -errno.
 */
int kxfer_control_hello(struct kxfer_link *link, unsigned int timeout_ms)
{
	struct kxfer_wire_keyed_hello_answer keyed;
	struct kxfer_wire_hello_answer answer;
	u32 length = sizeof(answer);
	int ret;

	if (link->key.secret) {
		ret = hello_with_key(link, &keyed, timeout_ms);
		answer = keyed.answer;
	} else {
		ret = kxfer_channel_call(&link->control->channel, KXFER_WIRE_HELLO, NULL, 0,
					 &answer, &length, timeout_ms, KXFER_WAIT_KILLABLE);
	}
	if (ret)
		return ret;
	if (length != sizeof(answer))
		return -EPROTO;
	link->fence_addr = be64_to_cpu(answer.fence_addr);
	link->fence_key = be32_to_cpu(answer.fence_key);
	return 0;
}

static void ping_answered(struct kxfer_request *request)
{
	if (request->status)
		return;
	WRITE_ONCE(request->channel->lane->link->rtt_ns,
		   ktime_get_ns() - request->sent_ns);
	kxfer_stat_inc(KXFER_STAT_KEEPALIVES);
}

/** kxfer_control_ping() - ask whether the peer is there. Return: 0, -EBUSY: one is unanswered */
int kxfer_control_ping(struct kxfer_link *link)
{
	struct kxfer_request *request = kxfer_channel_get_ping(&link->control->channel);
	int ret;

	if (!request)
		return -EBUSY;
	request->answered = ping_answered;
	ret = kxfer_channel_post(request, KXFER_WIRE_PING, NULL, 0);
	if (ret)
		kxfer_channel_put(request);
	return ret;
}

/** kxfer_control_abandoned() - an answer came that nobody waits for; does not sleep */
void kxfer_control_abandoned(struct kxfer_request *request)
{
	const struct kxfer_wire_grant_answer *answer = request->answer;

	if (request->message->type == KXFER_WIRE_GRANT && !request->status &&
	    request->answer_length == sizeof(*answer))
		kxfer_release_orphan(request->channel->lane->link,
				     be64_to_cpu(answer->grant));
}
