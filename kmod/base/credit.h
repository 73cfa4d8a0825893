/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Credits: work requests that may still be posted on a lane.
 *
 * A credit stands for a place in the send queue. It is taken before a work
 * request is posted and given back when the completion of its chain says that
 * the queue has the place again: so the queue never overflows, whatever the
 * provider and the peer do. Nobody may take more than there are, and nobody may
 * give back more than were taken; both would mean that a completion was counted
 * twice or never.
 *
 * Pure, no locks: the lane's lock covers them. User space compiles this file
 * too, to test it.
 */
#ifndef KXFER_CREDIT_H
#define KXFER_CREDIT_H

#include <linux/types.h>

/**
 * struct kxfer_credits - places in a send queue
 * @left: may be taken
 * @max: when none is taken
 */
struct kxfer_credits {
	u32 left;
	u32 max;
};

static inline void kxfer_credits_init(struct kxfer_credits *credits, u32 max)
{
	credits->left = max;
	credits->max = max;
}

/* Return: false, with nothing taken, if there are not as many. */
static inline bool kxfer_credits_take(struct kxfer_credits *credits, u32 nr)
{
	if (nr > credits->left)
		return false;
	credits->left -= nr;
	return true;
}

/* Return: false, with nothing given, if fewer are out. */
static inline bool kxfer_credits_give(struct kxfer_credits *credits, u32 nr)
{
	if (nr > credits->max - credits->left)
		return false;
	credits->left += nr;
	return true;
}

/**
 * kxfer_credits_room() - work requests of payload that one chain may have
 * @credits: of the lane
 * @chain_max: longest chain
 * @extra: work requests that the chain needs beside them
 *
 * Return: at least 1, or 0 if the chain has to wait.
 */
static inline u32 kxfer_credits_room(const struct kxfer_credits *credits, u32 chain_max,
				     u32 extra)
{
	u32 room = credits->left < chain_max ? credits->left : chain_max;

	return room > extra ? room - extra : 0;
}

#endif /* KXFER_CREDIT_H */
