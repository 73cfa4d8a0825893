// SPDX-License-Identifier: GPL-2.0
/*
 * The states of a channel's slots: pure, no locks (the lane's lock covers them),
 * no memory, no device. channel.c and wire.h describe what the slots are for.
 *
 * A request slot is busy from kxfer_request_take() until three things have
 * happened, in any order: its owner let go (held), the answer came (waiting), and
 * the SEND completed (sending). The function that sees the last of them returns
 * true, once; then the slot may be taken again. The slot of an abandoned answer is
 * held by the receiver of the answer, until the receiver has looked at it.
 *
 * A reply slot is busy from the arrival of a request until its answer is posted.
 * When a request arrives, the SEND of the previous answer may still be under way, and
 * its message must not be touched. The request is then deferred until that SEND completes.
 *
 * So each slot has at most one SEND in the send queue, and takes at most one
 * request and one answer from the receive queue. channel.c sizes both queues by
 * these bounds.
 *
 * User space compiles this file too, to test it.
 */
#include "base/slot.h"
#include "base/wire.h"

static bool try_free(struct kxfer_request_slot *slot)
{
	if (!slot->busy || slot->held || slot->waiting || slot->sending)
		return false;
	slot->busy = false;
	return true;
}

/** kxfer_request_take() - take a slot. Return: false if it is busy */
bool kxfer_request_take(struct kxfer_request_slot *slot)
{
	if (slot->busy)
		return false;
	slot->busy = true;
	slot->held = true;
	slot->abandoned = false;
	return true;
}

/**
 * kxfer_request_posted() - the request is about to be posted
 * @slot: held slot, with nothing posted since it was taken
 * @type: enum kxfer_wire_type
 * @sequence: sequence number in the request
 *
 * Called before ib_post_send(), because the answer may come before that returns.
 */
void kxfer_request_posted(struct kxfer_request_slot *slot, u8 type, u64 sequence)
{
	slot->type = type;
	slot->sequence = sequence;
	slot->waiting = true;
	slot->sending = true;
}

/** kxfer_request_not_posted() - ib_post_send() failed; the slot is still held */
void kxfer_request_not_posted(struct kxfer_request_slot *slot)
{
	slot->waiting = false;
	slot->sending = false;
}

/** kxfer_request_sent() - the request's SEND has completed. Return: is the slot free now? */
bool kxfer_request_sent(struct kxfer_request_slot *slot)
{
	slot->sending = false;
	return try_free(slot);
}

/**
 * kxfer_request_answered() - an answer names the slot
 * @slot: slot in any state, because the peer may name any slot
 * @type: type of the answer
 * @sequence: sequence number in the answer
 *
 * Return: what to do with the answer. Unless that is KXFER_ANSWER_UNASKED, the slot
 * stays held, by its owner or by the caller.
 */
enum kxfer_answer kxfer_request_answered(struct kxfer_request_slot *slot, u8 type,
					 u64 sequence)
{
	if (!slot->waiting || sequence != slot->sequence ||
	    type != (slot->type | KXFER_WIRE_ANSWER))
		return KXFER_ANSWER_UNASKED;
	slot->waiting = false;
	if (!slot->abandoned)
		return KXFER_ANSWER_WANTED;
	slot->held = true;
	return KXFER_ANSWER_ABANDONED;
}

/**
 * kxfer_request_abandon() - the owner gives up waiting for the answer
 * @slot: slot held by the caller, with a posted request
 *
 * Return: false if the answer has come: then the caller still holds the slot.
 */
bool kxfer_request_abandon(struct kxfer_request_slot *slot)
{
	if (!slot->waiting)
		return false;
	slot->abandoned = true;
	slot->held = false;
	return true;
}

/** kxfer_request_put() - the holder lets go of the slot. Return: is the slot free now? */
bool kxfer_request_put(struct kxfer_request_slot *slot)
{
	slot->held = false;
	return try_free(slot);
}

/**
 * kxfer_request_stop() - the lane is stopped: no answer comes, no SEND completes
 * @slot: slot in any state
 *
 * Return: whether the owner still waits for the answer, and must be told.
 */
bool kxfer_request_stop(struct kxfer_request_slot *slot)
{
	bool waiting = slot->waiting;

	slot->waiting = false;
	slot->sending = false;
	return waiting && !slot->abandoned;
}

/** kxfer_reply_arrived() - a request names the slot. Return: what to do with it */
enum kxfer_arrival kxfer_reply_arrived(struct kxfer_reply_slot *slot)
{
	if (slot->busy)
		return KXFER_ARRIVAL_TWICE;
	slot->busy = true;
	slot->deferred = slot->sending;
	return slot->deferred ? KXFER_ARRIVAL_DEFER : KXFER_ARRIVAL_START;
}

/** kxfer_reply_posted() - the answer is about to be posted: the peer may reuse the slot */
void kxfer_reply_posted(struct kxfer_reply_slot *slot)
{
	slot->busy = false;
	slot->sending = true;
}

/** kxfer_reply_sent() - the answer's SEND has completed. Return: handle a deferred request? */
bool kxfer_reply_sent(struct kxfer_reply_slot *slot)
{
	bool start = slot->deferred;

	slot->sending = false;
	slot->deferred = false;
	return start;
}
