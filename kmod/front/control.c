// SPDX-License-Identifier: GPL-2.0
/*
 * Control: the table of messages and what each side does with them.
 *
 * KXFER_WIRE_REQUESTS() of decode.h says which side may send a request, on which kind of lane,
 * how long its payload is, and where its handler runs (arrival.c). Handlers get payloads
 * of an allowed length; the content comes from the peer and is checked where it is used.
 */
#include "base/log.h"

#include <linux/kxfer.h>

#include "base/decode.h"
#include "front/control.h"
#include "job/offer.h"
#include "job/target.h"
#include "link/channel.h"
#include "link/fence.h"
#include "link/hello.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "share/export.h"
#include "share/exposure.h"
#include "share/fetch.h"
#include "share/grant.h"

static void handle_grant(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_wire_grant_answer *answer = kxfer_channel_payload(reply);
	enum kxfer_wire_status status;
	u32 length = 0;

	status = kxfer_grant_create(reply->channel->lane->link, payload, answer, &length);
	kxfer_channel_answer(reply, status, length);
}

static void handle_keys(struct kxfer_reply *reply, const void *payload)
{
	enum kxfer_wire_status status;
	u32 length;

	status = kxfer_exposure_keys(reply->channel->lane->link, payload,
				     kxfer_channel_payload(reply), &length);
	kxfer_channel_answer(reply, status, length);
}

static void handle_release(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_link *link = reply->channel->lane->link;
	bool eager = link->features & KXFER_WIRE_FEATURE_EAGER;
	const struct kxfer_wire_grant_id *id = payload;

	if (reply->request_length != (eager ? sizeof(struct kxfer_wire_release) : sizeof(*id)) ||
	    (eager && kxfer_grant_wait_messages(link, payload)))
		kxfer_link_protocol_error(link, "a RELEASE that makes no sense");
	else
		kxfer_channel_answer(reply, kxfer_grant_release(link, be64_to_cpu(id->grant)), 0);
}

static void handle_info(struct kxfer_reply *reply, const void *payload)
{
	const struct kxfer_wire_grant_id *id = payload;
	enum kxfer_wire_status status;
	u32 length = 0;

	status = kxfer_grant_describe(reply->channel->lane->link, be64_to_cpu(id->grant),
				      kxfer_channel_payload(reply), &length);
	kxfer_channel_answer(reply, status, length);
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
	struct kxfer_lane *lane = reply->channel->lane;
	int ret = kxfer_grant_send(lane, payload, reply->request_length);

	if (ret == -EPROTO)
		kxfer_link_protocol_error(lane->link, "a message without a credit");
	else
		kxfer_channel_answer(reply, kxfer_wire_status(ret), 0);
}

static void handle_credits(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_wire_credits *answer = kxfer_channel_payload(reply);
	struct kxfer_lane *lane = reply->channel->lane;
	const struct kxfer_wire_grant_id *id = payload;
	u32 credits = 0;
	int ret;

	if (!(lane->link->features & KXFER_WIRE_FEATURE_EAGER)) {
		kxfer_link_protocol_error(lane->link, "CREDITS without eager messages");
		return;
	}
	ret = kxfer_grant_credits(lane, be64_to_cpu(id->grant), &credits);
	*answer = (struct kxfer_wire_credits) { .credits = cpu_to_be32(credits) };
	kxfer_channel_answer(reply, kxfer_wire_status(ret), sizeof(*answer));
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

#define HANDLER(type, sender, kind, length, more, place, handle) \
	[KXFER_WIRE_##type] = { { KXFER_WIRE_##sender, KXFER_WIRE_##kind, length, more }, \
				KXFER_##place, handle },

static const struct kxfer_handler handlers[KXFER_WIRE_NR_TYPES] = {
	KXFER_WIRE_REQUESTS(HANDLER, KXFER_WIRE_BYTES)
};

/** kxfer_control_handler() - handler of a request; NULL: the peer may not send it now */
const struct kxfer_handler *kxfer_control_handler(const struct kxfer_reply *reply)
{
	const struct kxfer_lane *lane = reply->channel->lane;
	bool connecting = READ_ONCE(lane->link->state) == KXFER_LINK_CONNECTING;
	u8 type = reply->request->type;

	if (type >= ARRAY_SIZE(handlers) ||
	    !kxfer_wire_may_send(type, &handlers[type].rule, reply->request_length,
				 !lane->link->initiator,
				 kxfer_lane_is_control(lane) ? KXFER_WIRE_CONTROL :
				 KXFER_WIRE_DATA, connecting))
		return NULL;
	/* A peer that has not proved the key of this link gets answers to PING only. */
	if (lane->link->key.secret && !READ_ONCE(lane->link->handshake.proven) &&
	    type != KXFER_WIRE_PING)
		return NULL;
	return &handlers[type];
}
