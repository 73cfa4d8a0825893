// SPDX-License-Identifier: GPL-2.0
/*
 * The states of a channel's slots: pure, no locks (the lane's lock covers them),
 * no memory, no device. What the slots are for stands in channel.c and wire.h.
 *
 * A request slot is busy from kxfer_request_take() until three things have
 * happened, in any order: its owner let go (held), the answer came (waiting), and
 * the SEND completed (sending). The function that sees the last of them says so,
 * once: it returns true, and the slot may be taken again. An answer that nobody
 * waits for any more is held by who received it, until that one has looked at it.
 *
 * A reply slot is busy from the arrival of a request until its answer is posted.
 * The answer of the request before may then still be under way, and its message
 * must not be touched: the request is deferred until that SEND has completed.
 *
 * So each slot has at most one SEND in the send queue, and takes at most one
 * request and one answer from the receive queue: the bounds by which channel.c
 * sizes both.
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
 * @slot: held, with nothing posted since it was taken
 * @type: enum kxfer_wire_type
 * @sequence: sent with it
 *
 * Before ib_post_send(), for the answer may come before that returns.
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

/** kxfer_request_sent() - its SEND has completed. Return: whether the slot is free now */
bool kxfer_request_sent(struct kxfer_request_slot *slot)
{
	slot->sending = false;
	return try_free(slot);
}

/**
 * kxfer_request_answered() - an answer names the slot
 * @slot: in any state, for the peer may name any
 * @type: of the answer
 * @sequence: in the answer
 *
 * Return: what to do with it. Unless it is unasked for the slot stays held, by
 * its owner or by the caller.
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
 * @slot: held by the caller, posted
 *
 * Return: false if the answer is there: then the slot is still the caller's.
 */
bool kxfer_request_abandon(struct kxfer_request_slot *slot)
{
	if (!slot->waiting)
		return false;
	slot->abandoned = true;
	slot->held = false;
	return true;
}

/** kxfer_request_put() - the holder lets go. Return: whether the slot is free now */
bool kxfer_request_put(struct kxfer_request_slot *slot)
{
	slot->held = false;
	return try_free(slot);
}

/**
 * kxfer_request_stop() - the QP is destroyed: no answer comes, no SEND completes
 * @slot: in any state
 *
 * Return: whether somebody waits, and is to be told.
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

/** kxfer_reply_posted() - the answer is about to be posted: the slot may be used again */
void kxfer_reply_posted(struct kxfer_reply_slot *slot)
{
	slot->busy = false;
	slot->sending = true;
}

/** kxfer_reply_sent() - its SEND has completed. Return: whether to handle a deferred request */
bool kxfer_reply_sent(struct kxfer_reply_slot *slot)
{
	bool start = slot->deferred;

	slot->sending = false;
	slot->deferred = false;
	return start;
}
