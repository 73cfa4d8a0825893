// SPDX-License-Identifier: GPL-2.0
/*
 * HELLO and PING: the first message of a link, and its keep-alive.
 *
 * The answer to HELLO gives the initiator the address of the bytes for placement READs
 * (iwarp.c). On a link with a key HELLO and its answer also prove that key (key.c). A link is
 * LIVE once HELLO is answered. Then each end sends PINGs (base/patience.h) to learn
 * whether the peer is there.
 *
 * Context: HELLO may sleep, PING does not.
 */
#include "base/log.h"

#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/decode.h"
#include "base/stats.h"
#include "link/channel.h"
#include "link/hello.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"

/* Called with register_mutex held. Return: 0, -EACCES, or -errno if this side cannot check */
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
		.placement_addr = cpu_to_be64(link->placement.mr->iova),
		.placement_key = cpu_to_be32(link->placement.mr->rkey),
	};
	return link->keys ? kxfer_handshake_answer(&link->handshake, keyed) : 0;
}

/** kxfer_hello_handle() - handle HELLO; may sleep */
void kxfer_hello_handle(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_link *link = reply->channel->lane->link;
	struct kxfer_wire_keyed_hello_answer *answer = kxfer_channel_payload(reply);
	int ret;

	if (!link->keys && reply->request_length) {
		kxfer_link_protocol_error(link, "a proof where there is no key");
		return;
	}
	/* On a passive link kxfer_mr_register() takes one caller at a time. */
	mutex_lock(&link->register_mutex);
	ret = link->placement.memory ? -EINVAL : check_proof(link, payload, reply->request_length);
	if (!ret)
		ret = kxfer_iwarp_make_source(link);
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

/** kxfer_hello_handle_ping() - handle PING; does not sleep */
void kxfer_hello_handle_ping(struct kxfer_reply *reply, const void *payload)
{
	kxfer_channel_answer(reply, KXFER_WIRE_OK, 0);
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
 * kxfer_hello_say() - send HELLO, the first message of an initiator, and wait for the answer
 * @link: link with a connected control QP
 * @timeout_ms: longest time to wait for the answer
 *
 * Sleeps; the link's teardown ends the wait by a signal to the caller, connect_thread.
 * Return: 0 or -errno.
 */
int kxfer_hello_say(struct kxfer_link *link, unsigned int timeout_ms)
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
	link->placement_addr = be64_to_cpu(answer.placement_addr);
	link->placement_key = be32_to_cpu(answer.placement_key);
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

/** kxfer_hello_ping() - send a PING. Return: 0 or -errno; -EBUSY: the last one is unanswered */
int kxfer_hello_ping(struct kxfer_link *link)
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
