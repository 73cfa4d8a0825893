// SPDX-License-Identifier: GPL-2.0
/*
 * Credits for eager messages: messages that are not answered.
 *
 * An eager message completes at its sender when it has arrived at this device. Two things make
 * sure that it gets into its mailbox then:
 *  - a RECV that no other message takes. A lane has KXFER_WIRE_EAGER RECVs for eager messages,
 *    and gives no more credits than that (kxfer_lane.unpromised);
 *  - a place in the mailbox (kxfer_mailbox_promise()).
 *
 * Credits go with the answer to CREDITS, to the grant that it names, on the lane by which it came.
 * A grant has credits on one lane at a time. Three quarters of what the lane has left are given at
 * most, and a quarter of the places, so that later senders get some. Messages without a credit are
 * answered, and need neither. A lane has no RECVs for eager messages until it is asked for
 * credits the first time (kxfer_channel_grow()).
 *
 * A message that is answered takes a credit, too, if its sender has one, for the place, by
 * whatever lane it comes. A credit is used when its message comes. Its RECV is posted again, and
 * the place is taken or free again, before a later answer can give the credit to another
 * (channel.c). The credits of a grant that ends are free again: the peer has said how many it
 * used, and all those messages have come (kxfer_grant_wait_messages()).
 *
 * A message that finds its mailbox withdrawn is dropped, like the messages in it. Its sender
 * learns of it by the withdrawal of the export.
 *
 * Context: handlers of a lane, and where a grant ends; nothing sleeps. Lock order: as in
 * mailbox.c.
 */
#include <linux/minmax.h>

#include "base/wire.h"
#include "job/mailbox.h"
#include "link/lane.h"
#include "share/eager.h"

#define GRANT_MAX	(KXFER_WIRE_EAGER * 3 / 4)	/* credits of a grant */

/**
 * kxfer_eager_give() - give credits to a grant
 * @eager: credits of the grant, under the lock of the link's grants
 * @lane: lane of the CREDITS that is being answered
 * @mailbox: mailbox of the grant
 *
 * Return: credits that were given.
 */
u32 kxfer_eager_give(struct kxfer_eager *eager, struct kxfer_lane *lane,
		     struct kxfer_mailbox *mailbox)
{
	u32 nr;

	if (eager->credits && eager->lane != lane)
		return 0;
	nr = min(lane->unpromised * 3 / 4, GRANT_MAX - eager->credits);
	nr = nr ? kxfer_mailbox_promise(mailbox, nr) : 0;
	eager->lane = lane;
	eager->credits += nr;
	lane->unpromised -= nr;
	return nr;
}

/**
 * kxfer_eager_take() - use a credit for a message that has come
 * @eager: credits of the grant, under the lock of the link's grants
 * @lane: lane of an eager message; NULL: the message is answered, and needs only a place
 *
 * The caller hands the message to the mailbox, as a promised one, before it drops the lock.
 * Return: false if the grant has no credit there.
 */
bool kxfer_eager_take(struct kxfer_eager *eager, const struct kxfer_lane *lane)
{
	if (!eager->credits || (lane && eager->lane != lane))
		return false;
	eager->credits--;
	eager->received++;
	eager->lane->unpromised++;
	return true;
}

/**
 * kxfer_eager_end() - take back the credits of a grant that ends
 * @eager: credits of a grant that no message can find any more; the lock of the link's grants
 *	is held
 * @mailbox: mailbox of the grant, or NULL if it is on another export
 */
void kxfer_eager_end(struct kxfer_eager *eager, struct kxfer_mailbox *mailbox)
{
	if (!eager->credits)
		return;
	eager->lane->unpromised += eager->credits;
	kxfer_mailbox_take_promise(mailbox, eager->credits);
	eager->credits = 0;
}
