/* SPDX-License-Identifier: GPL-2.0 */
/* Long messages of a peer, READ into RECVs of jobs. See fetch.c. */
#ifndef KXFER_FETCH_H
#define KXFER_FETCH_H

#include <linux/kxfer.h>
#include <linux/list.h>

#include "base/decode.h"
#include "job/mailbox.h"

struct kxfer_exposure;
struct kxfer_lane;

/* State of a fetch, by what it waits for; under the lock of its lane. */
enum kxfer_fetch_state {
	KXFER_FETCH_FREE	= 0,
	KXFER_FETCH_NOTED,	/* waits for a RECV, the device or the lane's work */
	KXFER_FETCH_TOLD,	/* waits for the peer: FETCHED is posted, or waits for a slot */
};

/**
 * struct kxfer_fetch - a long message that a peer has offered
 * @incoming: the message, as its mailbox knows it
 * @state: state of the fetch; under the lane's lock
 * @told: FETCHED was answered, and no TAKE_BACK or OFFER came since; under the lane's lock
 * @offered: where the message is at the peer, as the OFFER says
 * @exposure: exposure of the mailbox; a reference while @state is NOTED
 * @status: result, for FETCHED: 0, or -errno if no RECV gets the message
 * @node: in a list of struct kxfer_fetches
 * @posted_ns: time when the READ was posted
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
