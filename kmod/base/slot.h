/* SPDX-License-Identifier: GPL-2.0 */
/* The states of request and reply slots of a channel. See slot.c. */
#ifndef KXFER_SLOT_H
#define KXFER_SLOT_H

#include <linux/types.h>

/**
 * struct kxfer_request_slot - state of one of our requests
 * @busy: the slot is taken; free again once not @held, @waiting or @sending
 * @held: the owner, or the context that delivers the answer, uses the slot
 * @waiting: the answer has not come
 * @sending: the SEND has not completed: the message belongs to the device
 * @abandoned: the owner no longer waits
 * @type: type of the request
 * @sequence: sequence number in the request
 */
struct kxfer_request_slot {
	bool busy;
	bool held;
	bool waiting;
	bool sending;
	bool abandoned;
	u8 type;
	u64 sequence;
};

/**
 * struct kxfer_reply_slot - state of one of the peer's requests
 * @busy: a request is being handled
 * @sending: the SEND of our last answer has not completed: the device owns the message
 * @deferred: a request came while @sending; it is handled when the SEND has completed
 */
struct kxfer_reply_slot {
	bool busy;
	bool sending;
	bool deferred;
};

/* What to do with an answer. */
enum kxfer_answer {
	KXFER_ANSWER_UNASKED,	/* no request fits it: the peer broke the protocol */
	KXFER_ANSWER_WANTED,	/* hand it over; then kxfer_request_put() */
	KXFER_ANSWER_ABANDONED,	/* the owner no longer waits; then kxfer_request_put() */
};

/* What to do with a request. */
enum kxfer_arrival {
	KXFER_ARRIVAL_TWICE,	/* the slot is taken: the peer broke the protocol */
	KXFER_ARRIVAL_START,	/* handle it */
	KXFER_ARRIVAL_DEFER,	/* kxfer_reply_sent() returns true when to handle it */
};

bool kxfer_request_take(struct kxfer_request_slot *slot);
void kxfer_request_posted(struct kxfer_request_slot *slot, u8 type, u64 sequence);
void kxfer_request_not_posted(struct kxfer_request_slot *slot);
bool kxfer_request_sent(struct kxfer_request_slot *slot);
enum kxfer_answer kxfer_request_answered(struct kxfer_request_slot *slot, u8 type,
					 u64 sequence);
bool kxfer_request_abandon(struct kxfer_request_slot *slot);
bool kxfer_request_put(struct kxfer_request_slot *slot);
bool kxfer_request_stop(struct kxfer_request_slot *slot);

enum kxfer_arrival kxfer_reply_arrived(struct kxfer_reply_slot *slot);
void kxfer_reply_posted(struct kxfer_reply_slot *slot);
bool kxfer_reply_sent(struct kxfer_reply_slot *slot);

#endif /* KXFER_SLOT_H */
