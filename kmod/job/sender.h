/* SPDX-License-Identifier: GPL-2.0 */
/* Credits of a target for messages. See sender.c. */
#ifndef KXFER_SENDER_H
#define KXFER_SENDER_H

#include <linux/refcount.h>
#include <linux/types.h>

struct kxfer_flow;
struct kxfer_lane;
struct kxfer_link;

/**
 * struct kxfer_sender - credits of a target on a mailbox
 * @ref: references, held by the target and by CREDITS under way
 * @grant: the peer's id of the grant
 * @flow: flow of the target; a reference; NULL before the target is in its table
 * @lane: lane that the credits are for; undefined without any
 * @credits: messages that may take one
 * @window: @credits after the last answer to CREDITS; 0: the peer gives none
 * @rest: messages that will pass before the next CREDITS
 * @sent: messages posted that took one, modulo 2^32
 * @asking: CREDITS is under way; @flow stays on its lane
 * @asked_at: @nr_eager of @flow when it was posted
 *
 * All from @lane on are protected by the lock of the lane that @flow is on.
 */
struct kxfer_sender {
	refcount_t ref;
	u64 grant;
	struct kxfer_flow *flow;
	const struct kxfer_lane *lane;
	u32 credits;
	u32 window;
	u32 rest;
	u32 sent;
	bool asking;
	u32 asked_at;
};

struct kxfer_sender *kxfer_sender_create(u64 grant);
void kxfer_sender_put(struct kxfer_sender *sender);
bool kxfer_sender_served(const struct kxfer_link *link);
void kxfer_sender_join(struct kxfer_sender *sender, struct kxfer_flow *flow);
void kxfer_sender_ask(struct kxfer_sender *sender);
void kxfer_sender_prove(struct kxfer_flow *flow);

/* The following are called with the lane's lock held. */

/* Whether a message may be eager. One that is answered may take a credit for any lane. */
static inline bool kxfer_sender_has_credit(const struct kxfer_sender *sender,
					   const struct kxfer_lane *lane)
{
	return sender->credits && sender->lane == lane;
}

/* Whether to ask for more, if that is not being done. */
static inline bool kxfer_sender_runs_low(const struct kxfer_sender *sender)
{
	return sender->credits <= sender->window / 8;
}

static inline void kxfer_sender_use_credit(struct kxfer_sender *sender)
{
	sender->credits--;
	sender->sent++;
}

/* Whether credits will come, and until then no message should go without one. */
static inline bool kxfer_sender_waits(const struct kxfer_sender *sender)
{
	return !sender->credits && sender->window && sender->asking;
}

#endif /* KXFER_SENDER_H */
