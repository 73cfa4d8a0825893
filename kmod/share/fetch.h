/* SPDX-License-Identifier: GPL-2.0 */
/* Long messages of a peer, which are READ into RECVs. See fetch.c. */
#ifndef KXFER_FETCH_H
#define KXFER_FETCH_H

#include <linux/kxfer.h>
#include <linux/list.h>

#include "base/decode.h"
#include "job/mailbox.h"

struct kxfer_exposure;
struct kxfer_lane;

/* Whose word the state of a fetch waits for; under the lock of its lane. */
enum kxfer_fetch_state {
	KXFER_FETCH_FREE	= 0,
	KXFER_FETCH_NOTED,	/* a RECV, the device or the lane's work */
	KXFER_FETCH_TOLD,	/* FETCHED is posted, or waits for a slot: the peer */
};

/**
 * struct kxfer_fetch - a long message that a peer has offered
 * @incoming: it, as its mailbox knows it
 * @state: under the lock of that
 * @told: FREE since FETCHED was answered, and no TAKE_BACK has come since; likewise
 * @offered: where it is over there
 * @exposure: a reference, until @state is TOLD
 * @status: if no RECV gets it, why: -errno
 * @node: in a list of struct kxfer_fetches
 * @posted_ns: when the READ was
 */
struct kxfer_fetch {
	struct kxfer_incoming incoming;
	enum kxfer_fetch_state state;
	bool told;
	struct kxfer_offered offered;
	struct kxfer_exposure *exposure;
	int status;
	struct list_head node;
	u64 posted_ns;
};

int kxfer_fetch_make(struct kxfer_lane *lane);
void kxfer_fetch_close(struct kxfer_lane *lane);
void kxfer_fetch_free(struct kxfer_lane *lane);
bool kxfer_fetch_stuck(struct kxfer_lane *lane);
int kxfer_fetch_offered(struct kxfer_lane *lane, const struct kxfer_wire_offer *offer);
int kxfer_fetch_take_back(struct kxfer_lane *lane, const struct kxfer_wire_take_back *take);
void kxfer_fetch_tell(struct kxfer_lane *lane);

#endif /* KXFER_FETCH_H */
