/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a link is for: how links and lanes call what uses them.
 *
 * Links, lanes and channels know nothing of jobs, exports and measuring. A link has the
 * hooks of its user from its beginning to its end: roles.c has those of links that are shared,
 * for jobs and for exports, bench/dedicated.c those of a link of a session's own.
 */
#ifndef KXFER_LINK_OPS_H
#define KXFER_LINK_OPS_H

#include <linux/types.h>

struct kxfer_cq;
struct kxfer_lane;
struct kxfer_link;
struct kxfer_reply;
struct kxfer_request;
struct module;

#define KXFER_INTRODUCTION_MAX	56	/* bytes of private data that rdma_cm carries */

/**
 * enum kxfer_place - where the handler of a request runs
 * @KXFER_HERE: where the request arrived: it does not sleep
 * @KXFER_IN_A_WORK: it sleeps, but for no peer
 * @KXFER_IN_TURN: it may wait for the peer
 */
enum kxfer_place {
	KXFER_HERE,
	KXFER_IN_A_WORK,
	KXFER_IN_TURN,
};

/**
 * struct kxfer_handler - what is done with a request of a peer
 * @place: where
 * @handle: answers @reply, or ends the link
 */
struct kxfer_handler {
	enum kxfer_place place;
	void (*handle)(struct kxfer_reply *reply, const void *payload);
};

/**
 * struct kxfer_lane_size - what a data lane is made with
 * @slots: requests that each side may have unanswered; 0: it has no channel
 * @credits: work requests that the user may have posted, with SGEs and inline data; fewer
 *	if the device takes fewer
 * @sends: work requests beside those
 * @recvs: RECVs beside those of the channel
 * @twin: another QP completes on its CQ, with as many credits
 * @pooled: its CQ is of the RDMA core's pool
 */
struct kxfer_lane_size {
	u32 slots;
	u32 credits;
	u32 sends;
	u32 recvs;
	bool twin;
	bool pooled;
};

/**
 * struct kxfer_link_ops - the user of a link
 * @owner: module that the hooks are of; each link has a reference to it; NULL: this one
 * @single: the link has one data lane and no control QP, and is never shared
 * @init: the link was allocated
 * @free: the last reference is gone
 * @stop: the link is CLOSING: cancel works that use its lanes; may sleep
 * @ended: all lanes are closed: end what used them; may sleep
 * @init_lane: a lane was allocated, without QP
 * @free_lane: likewise freed
 * @size: what a data lane is to have
 * @prepare: passive: before a lane is opened; may sleep; 0 or -errno
 * @open_lane: a lane has QP and CQ and is about to be open; may sleep; 0 or -errno
 * @check_device: the device is known, and nothing is posted yet; 0 or -errno
 * @introduce: write private data to connect with. Return: its bytes, KXFER_INTRODUCTION_MAX at
 *	most. NULL: kxfer's own
 * @welcomed: the peer has accepted; @data: private data or NULL; does not sleep; 0 or -errno
 * @rejected: the peer has refused; likewise; -errno
 * @connected: initiator: a data lane is connected; may sleep; 0 or -errno
 * @handler: of a request of the peer, or NULL: it may not send that; does not sleep
 * @abandoned: an answer came that nothing waits for; does not sleep
 * @slot_free: a request slot of a lane is free; does not sleep
 * @settle: completions of a polled CQ were handled; see kxfer_cq_create()
 * @stuck: whether the peer holds up what is under way on a data lane; every
 *	KXFER_KEEPALIVE_MS; does not sleep
 * @closing: a lane takes no more work requests; its QP is still there; may sleep
 * @drained: no work request of its QP is under way; QP and CQ are still there; may sleep
 * @stopped: QP and CQ are destroyed, requests may still be handled; may sleep
 * @closed: and requests neither; may sleep
 *
 * NULL where there is nothing to do, but for @size, @stuck and, where lanes have a channel,
 * @handler, @abandoned and @slot_free.
 */
struct kxfer_link_ops {
	struct module *owner;
	bool single;
	void (*init)(struct kxfer_link *link);
	void (*free)(struct kxfer_link *link);
	void (*stop)(struct kxfer_link *link);
	void (*ended)(struct kxfer_link *link);
	void (*init_lane)(struct kxfer_lane *lane);
	void (*free_lane)(struct kxfer_lane *lane);
	void (*size)(const struct kxfer_lane *lane, struct kxfer_lane_size *size);
	int (*prepare)(struct kxfer_lane *lane);
	int (*open_lane)(struct kxfer_lane *lane);
	int (*check_device)(struct kxfer_link *link);
	u8 (*introduce)(struct kxfer_link *link, void *data);
	int (*welcomed)(struct kxfer_link *link, const void *data, u8 length);
	int (*rejected)(struct kxfer_link *link, const void *data, u8 length);
	int (*connected)(struct kxfer_lane *lane);
	const struct kxfer_handler *(*handler)(const struct kxfer_reply *reply);
	void (*abandoned)(struct kxfer_request *request);
	void (*slot_free)(struct kxfer_lane *lane);
	void (*settle)(struct kxfer_cq *cq);
	bool (*stuck)(struct kxfer_lane *lane);
	void (*closing)(struct kxfer_lane *lane);
	void (*drained)(struct kxfer_lane *lane);
	void (*stopped)(struct kxfer_lane *lane);
	void (*closed)(struct kxfer_lane *lane);
};

/* Hooks that may be NULL: then there is nothing to do. */

static inline void kxfer_link_hook(void (*hook)(struct kxfer_link *link), struct kxfer_link *link)
{
	if (hook)
		hook(link);
}

static inline int kxfer_link_ask(int (*hook)(struct kxfer_link *link), struct kxfer_link *link)
{
	return hook ? hook(link) : 0;
}

static inline void kxfer_lane_hook(void (*hook)(struct kxfer_lane *lane), struct kxfer_lane *lane)
{
	if (hook)
		hook(lane);
}

static inline int kxfer_lane_ask(int (*hook)(struct kxfer_lane *lane), struct kxfer_lane *lane)
{
	return hook ? hook(lane) : 0;
}

#endif /* KXFER_LINK_OPS_H */
