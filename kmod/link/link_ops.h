/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks by which links and lanes call their user.
 *
 * Links, lanes and channels know nothing of jobs, exports and measuring. A link has the
 * hooks of its user from its beginning to its end: roles.c has the hooks of shared links,
 * for jobs and for exports, bench/dedicated.c those of a link of a session's own.
 */
#ifndef KXFER_LINK_OPS_H
#define KXFER_LINK_OPS_H

#include <linux/types.h>

#include "base/decode.h"

struct kxfer_cq;
struct kxfer_lane;
struct kxfer_link;
struct kxfer_reply;
struct kxfer_request;
struct module;

#define KXFER_INTRODUCTION_MAX	56	/* bytes of private data that rdma_cm carries */

/**
 * enum kxfer_place - where the handler of a request runs
 * @KXFER_HERE: where the request arrived: the handler does not sleep
 * @KXFER_IN_A_WORK: in a work: the handler may sleep, but does not wait for the peer
 * @KXFER_IN_TURN: in a work, one handler at a time: the handler may wait for the peer
 */
enum kxfer_place {
	KXFER_HERE,
	KXFER_IN_A_WORK,
	KXFER_IN_TURN,
};

/**
 * struct kxfer_handler - a request of a peer, and what is done with it
 * @rule: when the peer may send it
 * @place: where @handle runs
 * @handle: function that answers @reply, or ends the link
 */
struct kxfer_handler {
	struct kxfer_wire_rule rule;
	enum kxfer_place place;
	void (*handle)(struct kxfer_reply *reply, const void *payload);
};

/**
 * struct kxfer_lane_size - size of a lane
 * @slots: requests that each side may have unanswered; 0: the lane has no channel
 * @credits: work requests that the user may have posted, with SGEs and inline data; fewer
 *	if the device takes fewer
 * @sends: work requests in addition to @credits
 * @recvs: RECVs in addition to those for requests and answers; in a channel they are for eager
 *	messages
 * @twin: another QP completes on the lane's CQ, with as many credits
 * @pooled: the CQ comes from the RDMA core's pool
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
 * @owner: module of the hooks; each link holds a reference to it; NULL: this module
 * @single: the link has one data lane and no control QP, and is never shared
 * @init: the link was allocated
 * @free: the last reference is gone
 * @stop: the link is CLOSING: cancel works that use its lanes; may sleep
 * @ended: all lanes are stopped: end what used them; may sleep
 * @init_lane: a lane was allocated, without QP
 * @free_lane: a lane is being freed
 * @size: write the size of a data lane
 * @prepare: passive: a lane is about to be opened; may sleep. Return: 0 or -errno
 * @open_lane: a lane has QP and CQ and is about to be open; may sleep. Return: 0 or -errno
 * @check_device: the device is known, and nothing is posted yet. Return: 0 or -errno
 * @introduce: write private data of the connection request. Return: its length in bytes, at
 *	most KXFER_INTRODUCTION_MAX. NULL: kxfer's own private data
 * @welcomed: the peer has accepted; @data: its private data or NULL; does not sleep. Return: 0
 *	or -errno
 * @rejected: the peer has refused; @data: its private data or NULL; does not sleep. Return:
 *	-errno
 * @connected: initiator: a data lane is connected; may sleep. Return: 0 or -errno
 * @handler: find the handler of a request of the peer; does not sleep. Return: the handler;
 *	NULL: the peer may not send the request
 * @eager: an eager message of the peer has arrived, @length bytes at @payload for the grant with
 *	the id @grant, untrusted; does not sleep. Return: what is wrong with it, or NULL. NULL
 *	where no lane with a channel has RECVs for eager messages
 * @abandoned: an answer came that no context waits for; does not sleep
 * @slot_free: a request slot of a lane is free; does not sleep
 * @settle: completions of a polled CQ were handled; see kxfer_cq_create()
 * @idle: whether nothing is under way on a polled CQ; see kxfer_cq_create()
 * @stuck: whether the peer holds up what is under way on a data lane; called with
 *	each keep-alive; does not sleep
 * @closing: a lane takes no more work requests; its QP is still there; may sleep
 * @drained: a lane's QP is drained, and reset or destroyed; its CQ is still there; may sleep
 * @stopped: no completion of a lane is handled any more; requests may still be; may sleep
 * @closed: nor are requests, and no device uses memory through the lane; may sleep
 *
 * A hook that has nothing to do is NULL, except @size, @stuck and, where lanes have a channel,
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
	const char *(*eager)(struct kxfer_lane *lane, u32 grant, const void *payload, u32 length);
	void (*abandoned)(struct kxfer_request *request);
	void (*slot_free)(struct kxfer_lane *lane);
	void (*settle)(struct kxfer_cq *cq);
	bool (*idle)(struct kxfer_cq *cq);
	bool (*stuck)(struct kxfer_lane *lane);
	void (*closing)(struct kxfer_lane *lane);
	void (*drained)(struct kxfer_lane *lane);
	void (*stopped)(struct kxfer_lane *lane);
	void (*closed)(struct kxfer_lane *lane);
};

/* Calls of hooks that may be NULL. */

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
