// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of what a peer sends, before it is used: pure functions over bytes, no
 * locks, no memory, no link.
 *
 * A peer may send anything. Private data of connections and messages are checked
 * here for their form: length, magic, version, fields that must be zero, a slot, a
 * type that this side may get. Answers are checked for sense: a grant of no bytes,
 * or a table of keys that is longer than was announced, is refused. Accepted data
 * is within the bounds that the functions name. The handlers of messages check the
 * ids in it.
 *
 * User space compiles this file too, to test and to fuzz it.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kxfer.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include <asm/byteorder.h>

#include "base/decode.h"
#include "base/plan.h"

/**
 * kxfer_wire_check_hello() - private data of a connection request
 * @data: private data, or NULL
 * @length: bytes of @data; providers may pad
 * @nr_lanes: most data lanes of a link
 *
 * Return: reason to refuse the connection, or KXFER_REFUSAL_NONE.
 */
u32 kxfer_wire_check_hello(const void *data, u32 length, u32 nr_lanes)
{
	const struct kxfer_wire_hello *hello = data;

	if (!hello || length < sizeof(*hello) ||
	    be32_to_cpu(hello->magic) != KXFER_WIRE_MAGIC)
		return KXFER_REFUSAL_MAGIC;
	if (be16_to_cpu(hello->version_max) < KXFER_WIRE_VERSION_MIN ||
	    be16_to_cpu(hello->version_min) > KXFER_WIRE_VERSION_MAX)
		return KXFER_REFUSAL_VERSION;
	if (hello->kind == KXFER_WIRE_CONTROL)
		return hello->lane ? KXFER_REFUSAL_MAGIC : KXFER_REFUSAL_NONE;
	if (hello->kind != KXFER_WIRE_DATA || !hello->lane || hello->lane > nr_lanes)
		return KXFER_REFUSAL_MAGIC;
	return KXFER_REFUSAL_NONE;
}

/** kxfer_wire_version() - the older of @newest and the newest version of a checked hello */
u16 kxfer_wire_version(const struct kxfer_wire_hello *hello, u16 newest)
{
	u16 theirs = be16_to_cpu(hello->version_max);

	return theirs < newest ? theirs : newest;
}

/**
 * kxfer_wire_check_welcome() - private data of an acceptance
 * @data: private data, or NULL
 * @length: bytes of @data; providers may pad
 * @nr_lanes: data lanes that were asked for
 *
 * Return: 0; -EPROTO: not kxfer, no lane, or more lanes than asked for; -EPROTONOSUPPORT.
 */
int kxfer_wire_check_welcome(const void *data, u32 length, u32 nr_lanes)
{
	const struct kxfer_wire_welcome *welcome = data;

	if (!welcome || length < sizeof(*welcome) ||
	    be32_to_cpu(welcome->magic) != KXFER_WIRE_MAGIC)
		return -EPROTO;
	if (be16_to_cpu(welcome->version) < KXFER_WIRE_VERSION_MIN ||
	    be16_to_cpu(welcome->version) > KXFER_WIRE_VERSION_MAX)
		return -EPROTONOSUPPORT;
	if (!welcome->nr_lanes || be16_to_cpu(welcome->nr_lanes) > nr_lanes)
		return -EPROTO;
	return 0;
}

/** kxfer_wire_refusal() - private data of a refusal. Return: the refusal; NULL: not kxfer */
const struct kxfer_wire_refusal *kxfer_wire_refusal(const void *data, u32 length)
{
	const struct kxfer_wire_refusal *refusal = data;

	if (!refusal || length < sizeof(*refusal) ||
	    be32_to_cpu(refusal->magic) != KXFER_WIRE_MAGIC)
		return NULL;
	return refusal;
}

/** kxfer_wire_refusal_errno() - the errno that the caller gets for a refusal */
int kxfer_wire_refusal_errno(u32 refusal)
{
	switch (refusal) {
	case KXFER_REFUSAL_VERSION:
	case KXFER_REFUSAL_MAGIC:
		return -EPROTONOSUPPORT;
	case KXFER_REFUSAL_LIMIT:
	case KXFER_REFUSAL_RESOURCES:
		return -EDQUOT;
	case KXFER_REFUSAL_KEY:
		return -EKEYREJECTED;
	case KXFER_REFUSAL_CLOSING:
		return -ECONNREFUSED;
	case KXFER_REFUSAL_COOKIE:
		/* A data lane: its link has broken at the peer meanwhile. */
		return -ECONNRESET;
	default:
		return -EACCES;
	}
}

/**
 * kxfer_wire_check_message() - check the form of a message
 * @header: header, with the payload after it
 * @bytes: bytes received
 * @nr_slots: slots of each side of the lane
 *
 * Return: what is wrong with the message, or NULL.
 */
const char *kxfer_wire_check_message(const struct kxfer_wire_header *header, u32 bytes,
				     u32 nr_slots)
{
	if (bytes < sizeof(*header))
		return "a message shorter than its header";
	if (bytes != sizeof(*header) + be16_to_cpu(header->length))
		return "a message of another length than its header says";
	if (header->slot >= nr_slots)
		return "a slot that does not exist";
	if (header->reserved)
		return "a reserved field that is not zero";
	if (!(header->type & KXFER_WIRE_ANSWER) && header->status)
		return "a request with a status";
	return NULL;
}

/**
 * kxfer_wire_may_send() - whether a peer may send a request now
 * @type: type of the request, below KXFER_WIRE_NR_TYPES
 * @rule: rule of @type
 * @length: length of the payload
 * @initiator: the peer is the link's initiator
 * @kind: kind of the lane that the request came on
 * @connecting: the link is not LIVE yet
 */
bool kxfer_wire_may_send(u8 type, const struct kxfer_wire_rule *rule, u32 length,
			 bool initiator, enum kxfer_wire_kind kind, bool connecting)
{
	if (!(rule->sender & (initiator ? KXFER_WIRE_INITIATOR : KXFER_WIRE_RESPONDER)) ||
	    rule->kind != kind || length < rule->length || length > rule->length + rule->more)
		return false;
	/* Before the link is LIVE an initiator may send nothing but HELLO. */
	return !initiator || type == KXFER_WIRE_HELLO || !connecting;
}

static const struct {
	enum kxfer_wire_status status;
	int error;
} statuses[] = {
	{ KXFER_WIRE_OK, 0 },
	{ KXFER_WIRE_NO_ENTRY, -ENOENT },
	{ KXFER_WIRE_NO_ACCESS, -EACCES },
	{ KXFER_WIRE_NO_MEMORY, -ENOMEM },
	{ KXFER_WIRE_QUOTA, -EDQUOT },
	{ KXFER_WIRE_REVOKED, -EKEYREVOKED },
	{ KXFER_WIRE_BUSY, -EAGAIN },
	{ KXFER_WIRE_INVALID, -EINVAL },
	{ KXFER_WIRE_DEVICE, -EREMOTEIO },
	{ KXFER_WIRE_UNSUPPORTED, -EOPNOTSUPP },
};

/** kxfer_wire_errno() - the errno of a status from the wire; -EPROTO for unknown ones */
int kxfer_wire_errno(u16 status)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].error;
	return -EPROTO;
}

/** kxfer_wire_status() - the status of an errno, for the wire */
enum kxfer_wire_status kxfer_wire_status(int error)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].error == error)
			return statuses[i].status;
	return KXFER_WIRE_DEVICE;
}

/** kxfer_content_to_wire() - convert host to wire */
void kxfer_content_to_wire(struct kxfer_wire_content *wire,
			   const struct kxfer_content *content)
{
	wire->generation = cpu_to_be64(content->generation);
	wire->length = cpu_to_be64(content->length);
	memcpy(wire->sha256, content->sha256, sizeof(wire->sha256));
}

/** kxfer_content_from_wire() - convert wire to host */
void kxfer_content_from_wire(struct kxfer_content *content,
			     const struct kxfer_wire_content *wire)
{
	content->generation = be64_to_cpu(wire->generation);
	content->length = be64_to_cpu(wire->length);
	memcpy(content->sha256, wire->sha256, sizeof(content->sha256));
}

/* A mailbox has only the right SEND and no keys; everything else has keys. */
static bool terms_fit(const struct kxfer_terms *terms)
{
	if (terms->rights == KXFER_RIGHT_SEND)
		return !terms->nr_keys && terms->length <= KXFER_MESSAGE_LONG_MAX;
	return terms->rights && !(terms->rights & ~KXFER_RIGHT_ALL) && terms->nr_keys &&
	       terms->nr_keys <= KXFER_WIRE_KEYS_MAX;
}

/**
 * kxfer_wire_take_grant() - decode the answer to GRANT
 * @terms: out: the terms; filled in even on failure
 * @wanted: KXFER_RIGHT_* that were asked for
 * @answer: the answer
 *
 * Return: 0, or -EPROTO if the answer makes no sense; if @terms->grant is not 0 then,
 * the peer may keep a grant of that id.
 */
int kxfer_wire_take_grant(struct kxfer_terms *terms, u32 wanted,
			  const struct kxfer_wire_grant_answer *answer)
{
	terms->grant = be64_to_cpu(answer->grant);
	terms->exposure = be64_to_cpu(answer->exposure);
	terms->length = be64_to_cpu(answer->length);
	terms->rights = be32_to_cpu(answer->rights);
	terms->nr_keys = be32_to_cpu(answer->nr_keys);
	terms->cookie = be64_to_cpu(answer->cookie);
	kxfer_content_from_wire(&terms->content, &answer->content);
	if (!terms->grant || !terms->length || !terms_fit(terms) ||
	    wanted & ~terms->rights || terms->content.length > terms->length)
		return -EPROTO;
	return 0;
}

/**
 * kxfer_wire_take_keys() - decode the answer to KEYS
 * @keys: out: room for @room entries
 * @room: entries that are still to come
 * @start: offset of the first entry within the export; moved past the last one
 * @answer: the answer
 * @length: bytes of @answer
 *
 * Return: entries stored, at least 1, or -EPROTO. When all entries have come, the caller
 * checks them with kxfer_extents_check().
 */
int kxfer_wire_take_keys(struct kxfer_extent *keys, u32 room, u64 *start,
			 const struct kxfer_wire_keys_answer *answer, u32 length)
{
	u32 n = length < sizeof(*answer) ? 0 : be32_to_cpu(answer->nr), i;

	if (!n || n > room || n > KXFER_WIRE_CONTROL_BYTES ||
	    length != struct_size(answer, keys, n))
		return -EPROTO;
	for (i = 0; i < n; i++) {
		keys[i] = (struct kxfer_extent) {
			.start = *start,
			.addr = be64_to_cpu(answer->keys[i].addr),
			.length = be32_to_cpu(answer->keys[i].length),
			.key = be32_to_cpu(answer->keys[i].rkey),
		};
		*start += keys[i].length;
	}
	return n;
}

/* @more: flags that the link allows beside _IMM. Return: whether a message may have the flags. */
static bool flags_valid(u32 flags, __be32 immediate, u32 more)
{
	u32 known = KXFER_WIRE_SEND_IMM | more;

	return !(flags & ~known) && (flags & KXFER_WIRE_SEND_IMM || !immediate);
}

/**
 * kxfer_wire_take_send() - decode a SEND
 * @message: out: flags, immediate and length
 * @send: the payload
 * @length: bytes of @send; kxfer_wire_may_send() has allowed them
 * @eager: the link has KXFER_WIRE_FEATURE_EAGER
 *
 * Return: 0, or -EINVAL if the SEND makes no sense.
 */
int kxfer_wire_take_send(struct kxfer_message *message, const struct kxfer_wire_send *send,
			 u32 length, bool eager)
{
	u32 flags = be32_to_cpu(send->flags);

	if (!flags_valid(flags, send->immediate, eager ? KXFER_WIRE_SEND_CREDIT : 0))
		return -EINVAL;
	message->flags = flags & KXFER_WIRE_SEND_IMM ? KXFER_MESSAGE_F_IMM : 0;
	message->immediate = be32_to_cpu(send->immediate);
	message->bytes = length - sizeof(*send);
	return 0;
}

/**
 * kxfer_wire_take_credits() - decode the answer to CREDITS, if it is OK
 * @answer: the payload
 * @length: bytes of @answer
 * @left: credits that are left from earlier answers, at most KXFER_WIRE_EAGER
 *
 * Return: credits that the answer gives, or -EPROTO.
 */
int kxfer_wire_take_credits(const struct kxfer_wire_credits *answer, u32 length, u32 left)
{
	u32 credits;

	if (length != sizeof(*answer) || answer->reserved)
		return -EPROTO;
	credits = be32_to_cpu(answer->credits);
	return credits <= KXFER_WIRE_EAGER - left ? credits : -EPROTO;
}

/**
 * kxfer_wire_take_offer() - decode an OFFER
 * @message: out: flags, immediate and length
 * @offered: out: the offer; on success its id is below KXFER_WIRE_OFFERS
 * @offer: the payload
 * @features: KXFER_WIRE_FEATURE_* of the link
 *
 * Return: 0, or -EPROTO if the OFFER makes no sense.
 */
int kxfer_wire_take_offer(struct kxfer_message *message, struct kxfer_offered *offered,
			  const struct kxfer_wire_offer *offer, u32 features)
{
	u32 more = (features & KXFER_WIRE_FEATURE_EAGER ? KXFER_WIRE_SEND_CREDIT : 0) |
		   (features & KXFER_WIRE_FEATURE_WAIT ? KXFER_WIRE_SEND_WAIT : 0);
	u32 flags = be32_to_cpu(offer->flags);
	u32 shortest = flags & KXFER_WIRE_SEND_WAIT ? 1 : KXFER_MESSAGE_MAX + 1;
	u64 end;

	message->flags = flags & KXFER_WIRE_SEND_IMM ? KXFER_MESSAGE_F_IMM : 0;
	message->immediate = be32_to_cpu(offer->immediate);
	message->bytes = be32_to_cpu(offer->bytes);
	offered->grant = be64_to_cpu(offer->grant);
	offered->address = be64_to_cpu(offer->address);
	offered->key = be32_to_cpu(offer->rkey);
	offered->id = be32_to_cpu(offer->id);
	offered->credit = flags & KXFER_WIRE_SEND_CREDIT;
	offered->waits = flags & KXFER_WIRE_SEND_WAIT;
	if (!flags_valid(flags, offer->immediate, more) || offer->reserved ||
	    offered->id >= KXFER_WIRE_OFFERS || message->bytes < shortest ||
	    message->bytes > KXFER_MESSAGE_LONG_MAX ||
	    check_add_overflow(offered->address, (u64)message->bytes, &end))
		return -EPROTO;
	return 0;
}

/** kxfer_wire_nr_entries() - count the entries of an answer to LIST. Return: nr or -EPROTO */
int kxfer_wire_nr_entries(const struct kxfer_wire_list_answer *answer, u32 length)
{
	u32 nr = length < sizeof(*answer) ? U32_MAX : be32_to_cpu(answer->nr);

	if (nr > KXFER_WIRE_CONTROL_BYTES / sizeof(answer->entries[0]) ||
	    length != struct_size(answer, entries, nr))
		return -EPROTO;
	return nr;
}
