// SPDX-License-Identifier: GPL-2.0
/*
 * What a peer sends, looked at before anything is done with it: pure functions
 * over bytes, no locks, no memory, no link.
 *
 * A peer may send anything. A connection's private data and a message are
 * refused here for their form: length, magic, version, fields that have to be
 * zero, a slot, a type that this side may get. Answers are refused here for what
 * makes no sense in them: a grant of no bytes, a table of keys that is longer
 * than was announced. What is accepted is within the bounds that the functions
 * name; whether ids in it mean something is for control.c, export.c and grant.c to
 * say.
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
 * @data: what came, or NULL
 * @length: bytes of it; providers may pad
 * @nr_lanes: data lanes that any link may have
 *
 * Return: why to refuse it, KXFER_REFUSAL_NONE if for nothing.
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

/** kxfer_wire_version() - the newest version of a checked HELLO's sender and of @newest */
u16 kxfer_wire_version(const struct kxfer_wire_hello *hello, u16 newest)
{
	u16 theirs = be16_to_cpu(hello->version_max);

	return theirs < newest ? theirs : newest;
}

/**
 * kxfer_wire_check_welcome() - private data of an acceptance
 * @data: what came, or NULL
 * @length: bytes of it; providers may pad
 * @nr_lanes: data lanes that were asked for
 *
 * Return: 0, or -errno: no kxfer, another version, none of the lanes or more of them.
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

/** kxfer_wire_refusal() - private data of a refusal. Return: it, or NULL if it is not ours */
const struct kxfer_wire_refusal *kxfer_wire_refusal(const void *data, u32 length)
{
	const struct kxfer_wire_refusal *refusal = data;

	if (!refusal || length < sizeof(*refusal) ||
	    be32_to_cpu(refusal->magic) != KXFER_WIRE_MAGIC)
		return NULL;
	return refusal;
}

/** kxfer_wire_refusal_errno() - what the caller is told of a refusal */
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
		/* Of a data lane whose link has broken at the peer's end meanwhile. */
		return -ECONNRESET;
	default:
		return -EACCES;
	}
}

/**
 * kxfer_wire_check_message() - the form of a message
 * @header: with its payload
 * @bytes: that came
 * @nr_slots: of each side of the lane
 *
 * Return: what is wrong with it, or NULL.
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

/* Who may send a request. */
enum sender {
	INITIATOR	= 1,
	RESPONDER	= 2,
	BOTH		= 3,
};

static const struct {
	enum sender sender;
	enum kxfer_wire_kind kind;	/* of the lane */
	u16 length;			/* of the payload */
	u16 more;			/* that may follow */
} requests[KXFER_WIRE_NR_TYPES] = {
	[KXFER_WIRE_HELLO]   = { INITIATOR, KXFER_WIRE_CONTROL, 0,
				 sizeof(struct kxfer_wire_proof) },
	[KXFER_WIRE_PING]    = { BOTH, KXFER_WIRE_CONTROL, 0 },
	[KXFER_WIRE_GRANT]   = { INITIATOR, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_grant) },
	[KXFER_WIRE_KEYS]    = { INITIATOR, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_keys) },
	[KXFER_WIRE_RELEASE] = { INITIATOR, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_grant_id) },
	[KXFER_WIRE_INFO]    = { INITIATOR, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_grant_id) },
	[KXFER_WIRE_LIST]    = { INITIATOR, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_list) },
	[KXFER_WIRE_REVOKE]  = { RESPONDER, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_exposure_id) },
	[KXFER_WIRE_CONTENT] = { RESPONDER, KXFER_WIRE_CONTROL,
				 sizeof(struct kxfer_wire_content_change) },
	[KXFER_WIRE_NOTIFY]  = { INITIATOR, KXFER_WIRE_DATA,
				 sizeof(struct kxfer_wire_notify) },
	[KXFER_WIRE_SEND]    = { INITIATOR, KXFER_WIRE_DATA,
				 sizeof(struct kxfer_wire_send), KXFER_MESSAGE_MAX },
	[KXFER_WIRE_OFFER]   = { INITIATOR, KXFER_WIRE_DATA,
				 sizeof(struct kxfer_wire_offer) },
	[KXFER_WIRE_FETCHED] = { RESPONDER, KXFER_WIRE_DATA,
				 sizeof(struct kxfer_wire_fetched) },
	[KXFER_WIRE_TAKE_BACK] = { INITIATOR, KXFER_WIRE_DATA,
				   sizeof(struct kxfer_wire_take_back) },
};

/**
 * kxfer_wire_may_send() - whether a peer may send a request now
 * @type: of the request
 * @length: of its payload
 * @initiator: the peer is the link's initiator
 * @kind: of the lane it came on
 * @connecting: the link is not LIVE yet
 *
 * Return: whether; if so @type is below KXFER_WIRE_NR_TYPES.
 */
bool kxfer_wire_may_send(u8 type, u32 length, bool initiator, enum kxfer_wire_kind kind,
			 bool connecting)
{
	if (type >= KXFER_WIRE_NR_TYPES || !requests[type].sender)
		return false;
	if (!(requests[type].sender & (initiator ? INITIATOR : RESPONDER)) ||
	    requests[type].kind != kind || length < requests[type].length ||
	    length > requests[type].length + requests[type].more)
		return false;
	/* HELLO comes first; what comes before the link is LIVE is nonsense. */
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

/** kxfer_wire_errno() - a status from the wire; -EPROTO if there is none such */
int kxfer_wire_errno(u16 status)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].error;
	return -EPROTO;
}

/** kxfer_wire_status() - an errno for the wire */
enum kxfer_wire_status kxfer_wire_status(int error)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].error == error)
			return statuses[i].status;
	return KXFER_WIRE_DEVICE;
}

/** kxfer_content_to_wire() - host to wire */
void kxfer_content_to_wire(struct kxfer_wire_content *wire,
			   const struct kxfer_content *content)
{
	wire->generation = cpu_to_be64(content->generation);
	wire->length = cpu_to_be64(content->length);
	memcpy(wire->sha256, content->sha256, sizeof(wire->sha256));
}

/** kxfer_content_from_wire() - wire to host */
void kxfer_content_from_wire(struct kxfer_content *content,
			     const struct kxfer_wire_content *wire)
{
	content->generation = be64_to_cpu(wire->generation);
	content->length = be64_to_cpu(wire->length);
	memcpy(content->sha256, wire->sha256, sizeof(content->sha256));
}

/* A mailbox has its own right and no keys, and all else has keys. */
static bool terms_fit(const struct kxfer_terms *terms)
{
	if (terms->rights == KXFER_RIGHT_SEND)
		return !terms->nr_keys && terms->length <= KXFER_MESSAGE_LONG_MAX;
	return terms->rights && !(terms->rights & ~KXFER_RIGHT_ALL) && terms->nr_keys &&
	       terms->nr_keys <= KXFER_WIRE_KEYS_MAX;
}

/**
 * kxfer_wire_take_grant() - the answer to GRANT
 * @terms: filled in all cases
 * @wanted: KXFER_RIGHT_* that were asked for
 * @answer: what came
 *
 * Return: 0, or -EPROTO if it makes no sense; if then @terms->grant is not 0 the
 * peer may keep a grant of that id.
 */
int kxfer_wire_take_grant(struct kxfer_terms *terms, u32 wanted,
			  const struct kxfer_wire_grant_answer *answer)
{
	terms->grant = be64_to_cpu(answer->grant);
	terms->exposure = be64_to_cpu(answer->exposure);
	terms->length = be64_to_cpu(answer->length);
	terms->rights = be32_to_cpu(answer->rights);
	terms->nr_keys = be32_to_cpu(answer->nr_keys);
	kxfer_content_from_wire(&terms->content, &answer->content);
	if (!terms->grant || !terms->length || !terms_fit(terms) ||
	    wanted & ~terms->rights || terms->content.length > terms->length)
		return -EPROTO;
	return 0;
}

/**
 * kxfer_wire_take_keys() - the answer to KEYS
 * @keys: room for @room entries
 * @room: those that are still to come
 * @start: of the first one within the export; moved behind the last
 * @answer: what came
 * @length: bytes of it
 *
 * Return: entries stored, at least 1, or -EPROTO. Whether they make up a table is
 * for kxfer_extents_check() to say, when all are there.
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

/**
 * kxfer_wire_take_send() - a SEND
 * @message: its flags, immediate and length are filled in
 * @send: what came
 * @length: bytes of it, as kxfer_wire_may_send() allows them
 *
 * Return: 0, or -EINVAL if it makes no sense.
 */
int kxfer_wire_take_send(struct kxfer_message *message, const struct kxfer_wire_send *send,
			 u32 length)
{
	u32 flags = be32_to_cpu(send->flags);

	if (flags & ~KXFER_WIRE_SEND_IMM || (!flags && send->immediate))
		return -EINVAL;
	message->flags = flags ? KXFER_MESSAGE_F_IMM : 0;
	message->immediate = be32_to_cpu(send->immediate);
	message->bytes = length - sizeof(*send);
	return 0;
}

/**
 * kxfer_wire_take_offer() - an OFFER
 * @message: its flags, immediate and length are filled in
 * @offered: filled in; its id is below KXFER_WIRE_OFFERS
 * @offer: what came
 *
 * Return: 0, or -EPROTO if it makes no sense.
 */
int kxfer_wire_take_offer(struct kxfer_message *message, struct kxfer_offered *offered,
			  const struct kxfer_wire_offer *offer)
{
	u32 flags = be32_to_cpu(offer->flags);
	u64 end;

	message->flags = flags ? KXFER_MESSAGE_F_IMM : 0;
	message->immediate = be32_to_cpu(offer->immediate);
	message->bytes = be32_to_cpu(offer->bytes);
	offered->grant = be64_to_cpu(offer->grant);
	offered->address = be64_to_cpu(offer->address);
	offered->key = be32_to_cpu(offer->rkey);
	offered->id = be32_to_cpu(offer->id);
	if (flags & ~KXFER_WIRE_SEND_IMM || (!flags && offer->immediate) || offer->reserved ||
	    offered->id >= KXFER_WIRE_OFFERS || message->bytes <= KXFER_MESSAGE_MAX ||
	    message->bytes > KXFER_MESSAGE_LONG_MAX ||
	    check_add_overflow(offered->address, (u64)message->bytes, &end))
		return -EPROTO;
	return 0;
}

/** kxfer_wire_nr_entries() - of an answer to LIST. Return: how many, or -EPROTO */
int kxfer_wire_nr_entries(const struct kxfer_wire_list_answer *answer, u32 length)
{
	u32 nr = length < sizeof(*answer) ? U32_MAX : be32_to_cpu(answer->nr);

	if (nr > KXFER_WIRE_CONTROL_BYTES / sizeof(answer->entries[0]) ||
	    length != struct_size(answer, entries, nr))
		return -EPROTO;
	return nr;
}
