/* SPDX-License-Identifier: GPL-2.0 */
/* Which state of a link may follow which. See state.c. */
#ifndef KXFER_STATE_H
#define KXFER_STATE_H

#include <linux/kxfer.h>
#include <linux/types.h>

bool kxfer_state_may_follow(enum kxfer_link_state from, enum kxfer_link_state to);
bool kxfer_state_change(enum kxfer_link_state *state, enum kxfer_link_state to);

/* Whether new users, lanes, grants and targets may still join the link. */
static inline bool kxfer_state_is_open(enum kxfer_link_state state)
{
	return state == KXFER_LINK_CONNECTING || state == KXFER_LINK_LIVE;
}

#endif /* KXFER_STATE_H */
