/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Model of what may be accepted from a peer: received bytes are checked one by one, and the
 * decoded values have to encode to the same bytes. Used by the cases of decode_test.c and the
 * fuzzer of the wire format.
 */
#ifndef KXFER_PURE_DECODE_MODEL_H
#define KXFER_PURE_DECODE_MODEL_H

#include "base/decode.h"
#include "base/plan.h"

/* A big-endian number of @nr bytes. */
static inline u64 number_at(const u8 *bytes, u32 at, u32 nr)
{
	u64 number = 0;

	while (nr--)
		number = number << 8 | bytes[at++];
	return number;
}

/* Whether a big-endian number stands at an offset. */
static inline bool stands_at(const u8 *bytes, u32 at, u32 nr, u64 number)
{
	return number_at(bytes, at, nr) == number;
}

static inline const char *hello_wrong(const u8 *bytes, u32 length, u32 nr_lanes)
{
	u32 verdict = kxfer_wire_check_hello(bytes, length, nr_lanes);
	bool magic = length >= 40 && stands_at(bytes, 0, 4, 0x6b786672);
	bool version = magic && number_at(bytes, 4, 2) <= KXFER_WIRE_VERSION_MAX &&
		       number_at(bytes, 6, 2) >= KXFER_WIRE_VERSION_MIN;
	bool lane = version && (bytes[8] ? bytes[8] == 1 && bytes[9] >= 1 &&
				bytes[9] <= nr_lanes : !bytes[9]);

	if (verdict == KXFER_REFUSAL_NONE)
		return lane ? NULL : "a HELLO that is none is accepted";
	if (lane)
		return "a good HELLO is refused";
	if (verdict == KXFER_REFUSAL_VERSION)
		return magic && !version ? NULL : "the version is not what is wrong";
	return verdict == KXFER_REFUSAL_MAGIC && (!magic || version) ? NULL :
	       "refused for a wrong reason";
}

static inline const char *welcome_wrong(const u8 *bytes, u32 length, u32 nr_lanes)
{
	bool magic = length >= 12 && stands_at(bytes, 0, 4, 0x6b786672);
	bool version = magic && stands_at(bytes, 4, 2, KXFER_WIRE_VERSION_MAX);
	bool lanes = version && number_at(bytes, 6, 2) >= 1 &&
		     number_at(bytes, 6, 2) <= nr_lanes;
	int expected = lanes ? 0 : magic && !version ? -EPROTONOSUPPORT : -EPROTO;
	const struct kxfer_wire_refusal *refusal = kxfer_wire_refusal(bytes, length);

	if (kxfer_wire_check_welcome(bytes, length, nr_lanes) != expected)
		return "a wrong verdict about a welcome";
	/* A refusal has the same length and magic. */
	if (!refusal != !magic)
		return "a wrong verdict about a refusal";
	return !refusal || stands_at(bytes, 4, 2, be16_to_cpu(refusal->reason)) ? NULL :
	       "another reason";
}

/* The rules for requests from the comments of wire.h. */
static inline bool model_may_send(u8 type, u32 length, bool initiator, bool data)
{
	switch (type) {
	case KXFER_WIRE_HELLO:
		/* 32 bytes on a link with a key, which control.c checks. */
		return initiator && !data && length <= 32;
	case KXFER_WIRE_PING:
		return !data && length == 0;
	case KXFER_WIRE_GRANT:
		return initiator && !data && length == 88;
	case KXFER_WIRE_KEYS:
	case KXFER_WIRE_LIST:
		return initiator && !data && length == 16;
	case KXFER_WIRE_RELEASE:
		/* 16 bytes on a link with eager messages, which control.c checks. */
		return initiator && !data && length >= 8 && length <= 16;
	case KXFER_WIRE_INFO:
		return initiator && !data && length == 8;
	case KXFER_WIRE_RESUME:
		return initiator && !data && length == 24;
	case KXFER_WIRE_REVOKE:
		return !initiator && !data && length == 8;
	case KXFER_WIRE_CONTENT:
		return !initiator && !data && length == 56;
	case KXFER_WIRE_NOTIFY:
		return initiator && data && length == 16;
	case KXFER_WIRE_SEND:
		return initiator && data && length >= 16 && length <= 16 + 992;
	case KXFER_WIRE_OFFER:
		return initiator && data && length == 40;
	case KXFER_WIRE_FETCHED:
		return !initiator && data && length == 8;
	case KXFER_WIRE_TAKE_BACK:
	case KXFER_WIRE_CREDITS:
		return initiator && data && length == 8;
	default:
		return false;
	}
}

#define RULE(type, sender, kind, length, more, ...) \
	[KXFER_WIRE_##type] = { KXFER_WIRE_##sender, KXFER_WIRE_##kind, length, more },

/* The module's answer to the same question (front/control.c). */
static inline bool may_send(u8 type, u32 length, bool initiator, enum kxfer_wire_kind kind,
			    bool connecting)
{
	static const struct kxfer_wire_rule rules[KXFER_WIRE_NR_TYPES] = {
		KXFER_WIRE_REQUESTS(RULE, KXFER_WIRE_BYTES)
	};

	return type < KXFER_WIRE_NR_TYPES &&
	       kxfer_wire_may_send(type, &rules[type], length, initiator, kind, connecting);
}

static inline const char *message_wrong(const u8 *bytes, u32 length, u32 nr_slots)
{
	const char *verdict = kxfer_wire_check_message((const void *)bytes, length, nr_slots);
	bool good = length >= 16 && bytes[1] < nr_slots &&
		    stands_at(bytes, 4, 2, length - 16) && stands_at(bytes, 6, 2, 0) &&
		    (bytes[0] >= 0x80 || stands_at(bytes, 2, 2, 0));
	u32 i;

	if (!verdict != good)
		return good ? "a good message is refused" : "a message that is none is accepted";
	for (i = 0; good && i < 8; i++) {
		bool initiator = i & 1, data = i & 2, connecting = i & 4;
		bool may = model_may_send(bytes[0], length - 16, initiator, data) &&
			   (!connecting || !initiator || bytes[0] == KXFER_WIRE_HELLO);

		if (may_send(bytes[0], length - 16, initiator,
			     data ? KXFER_WIRE_DATA : KXFER_WIRE_CONTROL, connecting) != may)
			return may ? "a request that is allowed is refused" :
				     "a request that is not allowed is accepted";
	}
	return NULL;
}

static inline const char *grant_wrong(const u8 *bytes, u32 wanted)
{
	struct kxfer_terms terms;
	int verdict = kxfer_wire_take_grant(&terms, wanted, (const void *)bytes);
	u64 length = number_at(bytes, 16, 8), rights = number_at(bytes, 24, 4);
	u64 nr_keys = number_at(bytes, 28, 4);
	bool memory = rights && rights < 8 && nr_keys && nr_keys <= KXFER_WIRE_KEYS_MAX;
	bool mailbox = rights == 8 && !nr_keys && length <= 1 << 20;
	bool good = number_at(bytes, 0, 8) && length && (memory || mailbox) &&
		    (rights | wanted) == rights && number_at(bytes, 48, 8) <= length;
	struct kxfer_wire_content content;

	if (verdict != (good ? 0 : -EPROTO))
		return good ? "a good grant is refused" : "a grant that makes no sense is accepted";
	if (!stands_at(bytes, 0, 8, terms.grant) || !stands_at(bytes, 8, 8, terms.exposure) ||
	    !stands_at(bytes, 16, 8, terms.length) || !stands_at(bytes, 24, 4, terms.rights) ||
	    !stands_at(bytes, 28, 4, terms.nr_keys) ||
	    !stands_at(bytes, 32, 8, terms.cookie) ||
	    !stands_at(bytes, 40, 8, terms.content.generation) ||
	    !stands_at(bytes, 48, 8, terms.content.length))
		return "other terms than the peer's";
	kxfer_content_to_wire(&content, &terms.content);
	return memcmp(&content, bytes + 40, sizeof(content)) ? "other content" : NULL;
}

/* @keys has @room entries and one more, which must not change. */
static inline const char *keys_wrong(struct kxfer_extent *keys, u32 room, u64 start,
				     const u8 *bytes, u32 length)
{
	const struct kxfer_extent guard = { .start = 1, .addr = 2, .length = 3, .key = 4 };
	u64 next = start, nr = length >= 8 ? number_at(bytes, 0, 4) : 0;
	bool good = nr && nr <= room && length == 8 + 16 * nr;
	int n;
	u32 i;

	keys[room] = guard;
	n = kxfer_wire_take_keys(keys, room, &next, (const void *)bytes, length);
	if (n != (good ? (int)nr : -EPROTO))
		return good ? "good keys are refused" : "keys that make no sense are accepted";
	if (memcmp(&keys[room], &guard, sizeof(guard)))
		return "keys behind the room";
	for (i = 0; n > 0 && i < (u32)n; i++) {
		if (keys[i].start != start || !stands_at(bytes, 8 + 16 * i, 8, keys[i].addr) ||
		    !stands_at(bytes, 16 + 16 * i, 4, keys[i].key) ||
		    !stands_at(bytes, 20 + 16 * i, 4, keys[i].length))
			return "other keys than the peer's";
		start += keys[i].length;
	}
	return next == start ? NULL : "a wrong start of what follows";
}

/* @length: an allowed length. @eager: of a link with eager messages. */
static inline const char *send_wrong(const u8 *bytes, u32 length, bool eager)
{
	struct kxfer_message message = {};
	int verdict = kxfer_wire_take_send(&message, (const void *)bytes, length, eager);
	u64 flags = number_at(bytes, 8, 4), immediate = number_at(bytes, 12, 4);
	bool good = flags <= (eager ? 3 : 1) && (flags & 1 || !immediate);

	if (verdict != (good ? 0 : -EINVAL))
		return good ? "a good SEND is refused" : "a SEND that makes no sense is accepted";
	if (!good)
		return NULL;
	return message.flags == (flags & 1) && message.immediate == immediate &&
	       message.bytes + 16 == length ? NULL : "another message";
}

/* @left: at most 64. */
static inline const char *credits_wrong(const u8 *bytes, u32 length, u32 left)
{
	int credits = kxfer_wire_take_credits((const void *)bytes, length, left);
	bool good = length == 8 && number_at(bytes, 0, 4) + left <= 64 &&
		    stands_at(bytes, 4, 4, 0);

	if (credits < 0)
		return good ? "good credits are refused" : NULL;
	return good && stands_at(bytes, 0, 4, credits) ? NULL : "credits that were not given";
}

/* @bytes: 40 bytes. @features: of the link; 8: eager messages, 16: messages that wait. */
static inline const char *offer_wrong(const u8 *bytes, u32 features)
{
	struct kxfer_message message = {};
	struct kxfer_offered offered;
	int verdict = kxfer_wire_take_offer(&message, &offered, (const void *)bytes, features);
	u64 known = 1 | (features & 8 ? 2 : 0) | (features & 16 ? 4 : 0);
	u64 flags = number_at(bytes, 24, 4), immediate = number_at(bytes, 28, 4);
	u64 address = number_at(bytes, 8, 8), length = number_at(bytes, 20, 4);
	bool good = !(flags & ~known) && (flags & 1 || !immediate) &&
		    length > (flags & 4 ? 0 : 992) && length <= 1 << 20 &&
		    address + length > address &&
		    number_at(bytes, 32, 4) < 16 && stands_at(bytes, 36, 4, 0);

	if (verdict != (good ? 0 : -EPROTO))
		return good ? "a good OFFER is refused" : "an OFFER of nonsense is accepted";
	if (!good)
		return NULL;
	return message.flags == (flags & 1) && message.immediate == immediate &&
	       offered.credit == (flags / 2 & 1) && offered.waits == flags / 4 &&
	       message.bytes == length &&
	       stands_at(bytes, 0, 8, offered.grant) &&
	       offered.address == address && stands_at(bytes, 16, 4, offered.key) &&
	       stands_at(bytes, 32, 4, offered.id) ? NULL : "another long message";
}

static inline const char *list_wrong(const u8 *bytes, u32 length)
{
	int n = kxfer_wire_nr_entries((const void *)bytes, length);

	if (n < 0)
		return length >= 8 && length <= KXFER_WIRE_CONTROL_BYTES &&
		       length == 8 + 136 * number_at(bytes, 0, 4) ? "a good list is refused" : NULL;
	return stands_at(bytes, 0, 4, n) && length == 8 + 136 * (u32)n ? NULL :
	       "entries that did not come";
}

#endif /* KXFER_PURE_DECODE_MODEL_H */
