/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Credits: work requests that may still be posted on a lane.
 *
 * A credit stands for a place in the send queue. It is taken before a work
 * request is posted, and given back when the completion of the work request's
 * chain shows that the place is free again. So the queue never overflows,
 * whatever the provider and the peer do. Taking more credits than there are and
 * giving back more than were taken both fail; either would mean that a
 * completion was counted twice or never.
 *
 * Pure, no locks: the lane's lock covers them, but for a look at @left without it
 * (job_lane.c). User space compiles this file too, to test it.
 */
#ifndef KXFER_CREDIT_H
#define KXFER_CREDIT_H

#include <linux/compiler.h>
#include <linux/types.h>

/**
 * struct kxfer_credits - places in a send queue
 * @left: credits that may be taken
 * @max: value of @left when no credit is taken
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

/* Return: false, with nothing taken, if fewer than @nr are left. */
static inline bool kxfer_credits_take(struct kxfer_credits *credits, u32 nr)
{
	if (nr > credits->left)
		return false;
	WRITE_ONCE(credits->left, credits->left - nr);
	return true;
}

/* Return: false, with nothing given back, if fewer than @nr are taken. */
static inline bool kxfer_credits_give(struct kxfer_credits *credits, u32 nr)
{
	if (nr > credits->max - credits->left)
		return false;
	WRITE_ONCE(credits->left, credits->left + nr);
	return true;
}

/**
 * kxfer_credits_room() - how many payload work requests one chain may have
 * @credits: credits of the lane
 * @chain_max: work requests of the longest chain
 * @extra: work requests that the chain needs besides the payload
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
