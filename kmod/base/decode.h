/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of what a peer sends, before it is used. See decode.c. */
#ifndef KXFER_DECODE_H
#define KXFER_DECODE_H

#include <linux/kxfer.h>
#include <linux/types.h>

#include "base/wire.h"

struct kxfer_extent;

#define KXFER_WIRE_NR_TYPES	(KXFER_WIRE_RESUME + 1)
#define KXFER_WIRE_KEYS_MAX	(1024 * 1024)	/* 2 TiB at 512 pages each, 4 GiB at one page */

/* Sides that may send a request. */
enum kxfer_wire_sender {
	KXFER_WIRE_INITIATOR	= 1,
	KXFER_WIRE_RESPONDER	= 2,
	KXFER_WIRE_BOTH		= 3,
};

/**
 * struct kxfer_wire_rule - when a request may be sent
 * @sender: sides that may send it; 0: no such request
 * @kind: kind of the lane
 * @length: least payload, in bytes
 * @more: bytes that may follow
 */
struct kxfer_wire_rule {
	enum kxfer_wire_sender sender;
	enum kxfer_wire_kind kind;
	u16 length;
	u16 more;
};

/*
 * All requests, one a line: type, sender, kind of lane, least bytes of payload, bytes that may
 * follow, where the handler runs (enum kxfer_place), handler. Anything else that a peer sends
 * ends the link. @BYTES: the size of a payload. front/control.c makes its table of these
 * lines; tests of this file make their own.
 */
#define KXFER_WIRE_REQUESTS(X, BYTES) \
	X(HELLO, INITIATOR, CONTROL, 0, BYTES(proof), IN_TURN, kxfer_hello_handle) \
	X(PING, BOTH, CONTROL, 0, 0, HERE, kxfer_hello_handle_ping) \
	X(GRANT, INITIATOR, CONTROL, BYTES(grant), 0, IN_TURN, handle_grant) \
	X(KEYS, INITIATOR, CONTROL, BYTES(keys), 0, IN_A_WORK, handle_keys) \
	X(RELEASE, INITIATOR, CONTROL, BYTES(grant_id), \
	  BYTES(release) - BYTES(grant_id), IN_TURN, handle_release) \
	X(INFO, INITIATOR, CONTROL, BYTES(grant_id), 0, IN_A_WORK, handle_info) \
	X(LIST, INITIATOR, CONTROL, BYTES(list), 0, IN_A_WORK, handle_list) \
	X(REVOKE, RESPONDER, CONTROL, BYTES(exposure_id), 0, IN_TURN, handle_revoke) \
	X(CONTENT, RESPONDER, CONTROL, BYTES(content_change), 0, IN_A_WORK, handle_content) \
	X(NOTIFY, INITIATOR, DATA, BYTES(notify), 0, HERE, handle_notify) \
	X(SEND, INITIATOR, DATA, BYTES(send), KXFER_MESSAGE_MAX, HERE, handle_send) \
	X(OFFER, INITIATOR, DATA, BYTES(offer), 0, HERE, handle_offer) \
	X(FETCHED, RESPONDER, DATA, BYTES(fetched), 0, HERE, handle_fetched) \
	X(TAKE_BACK, INITIATOR, DATA, BYTES(take_back), 0, HERE, handle_take_back) \
	X(CREDITS, INITIATOR, DATA, BYTES(grant_id), 0, HERE, handle_credits) \
	X(RESUME, INITIATOR, CONTROL, BYTES(resume), 0, IN_TURN, kxfer_fence_handle)

#define KXFER_WIRE_BYTES(payload)	sizeof(struct kxfer_wire_##payload)

/**
 * struct kxfer_terms - terms of a grant by a peer
 * @grant: id of the grant on the link
 * @exposure: id of the registration on the link
 * @length: bytes of the export; for a mailbox: most payload of one message
 * @rights: KXFER_RIGHT_*
 * @nr_keys: entries of the table of keys; 0 for a mailbox
 * @cookie: value that the owner gave with the export; any value is valid
 * @content: content of the export
 */
struct kxfer_terms {
	u64 grant;
	u64 exposure;
	u64 length;
	u32 rights;
	u32 nr_keys;
	u64 cookie;
	struct kxfer_content content;
};

/**
 * struct kxfer_offered - a long message that a peer offers
 * @grant: id of a grant on a mailbox, as the peer claims
 * @address: address of the payload at the peer
 * @key: rkey of the payload
 * @id: id of the offer on its lane
 * @credit: the message takes a credit
 * @waits: the message is not refused because its mailbox is full
 */
struct kxfer_offered {
	u64 grant;
	u64 address;
	u32 key;
	u32 id;
	bool credit;
	bool waits;
};

u32 kxfer_wire_check_hello(const void *data, u32 length, u32 nr_lanes);
u16 kxfer_wire_version(const struct kxfer_wire_hello *hello, u16 newest);
int kxfer_wire_check_welcome(const void *data, u32 length, u32 nr_lanes);
const struct kxfer_wire_refusal *kxfer_wire_refusal(const void *data, u32 length);
int kxfer_wire_refusal_errno(u32 refusal);
const char *kxfer_wire_check_message(const struct kxfer_wire_header *header, u32 bytes,
				     u32 nr_slots);
bool kxfer_wire_may_send(u8 type, const struct kxfer_wire_rule *rule, u32 length,
			 bool initiator, enum kxfer_wire_kind kind, bool connecting);
int kxfer_wire_errno(u16 status);
enum kxfer_wire_status kxfer_wire_status(int error);
void kxfer_content_to_wire(struct kxfer_wire_content *wire,
			   const struct kxfer_content *content);
void kxfer_content_from_wire(struct kxfer_content *content,
			     const struct kxfer_wire_content *wire);
int kxfer_wire_take_grant(struct kxfer_terms *terms, u32 wanted,
			  const struct kxfer_wire_grant_answer *answer);
int kxfer_wire_take_keys(struct kxfer_extent *keys, u32 room, u64 *start,
			 const struct kxfer_wire_keys_answer *answer, u32 length);
int kxfer_wire_take_send(struct kxfer_message *message, const struct kxfer_wire_send *send,
			 u32 length, bool eager);
int kxfer_wire_take_credits(const struct kxfer_wire_credits *answer, u32 length, u32 left);
int kxfer_wire_take_offer(struct kxfer_message *message, struct kxfer_offered *offered,
			  const struct kxfer_wire_offer *offer, u32 features);
int kxfer_wire_nr_entries(const struct kxfer_wire_list_answer *answer, u32 length);

#endif /* KXFER_DECODE_H */
