// SPDX-License-Identifier: GPL-2.0
/*
 * The state table of a link: pure, no locks. The head of link.c lists the owner of a link
 * in each state.
 *
 * States only go forward, so each is entered at most once in a link's life. That
 * is why the teardown is queued once, and why the first error counts. A link
 * that never became LIVE may be closed. A link that is CLOSING can only become DEAD.
 *
 * User space compiles this file too, to test it.
 */
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/kernel.h>

#include "base/state.h"

static const u8 followers[] = {
	[KXFER_LINK_CONNECTING]	= BIT(KXFER_LINK_LIVE) | BIT(KXFER_LINK_CLOSING),
	[KXFER_LINK_LIVE]	= BIT(KXFER_LINK_CLOSING),
	[KXFER_LINK_CLOSING]	= BIT(KXFER_LINK_DEAD),
	[KXFER_LINK_DEAD]	= 0,
};

/** kxfer_state_may_follow() - whether @to may follow directly after @from */
bool kxfer_state_may_follow(enum kxfer_link_state from, enum kxfer_link_state to)
{
	if (from >= ARRAY_SIZE(followers) || to >= ARRAY_SIZE(followers))
		return false;
	return followers[from] & BIT(to);
}

/**
 * kxfer_state_change() - go to a state if that is allowed
 * @state: state of a link; the caller holds the link's lock
 * @to: next state
 *
 * Return: whether the state changed; true for only one of the callers that ask for @to.
 */
bool kxfer_state_change(enum kxfer_link_state *state, enum kxfer_link_state to)
{
	if (!kxfer_state_may_follow(*state, to))
		return false;
	WRITE_ONCE(*state, to); /* also read without the lock */
	return true;
}
