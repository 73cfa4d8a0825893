// SPDX-License-Identifier: GPL-2.0
/*
 * Requests: a context takes a slot of a channel, posts a request in it, and gets the answer.
 *
 * A slot is free, or belongs to who took it until it is put and its SEND has completed (slot.c).
 * Who finds none may stand in line: a freed slot is handed to the longest waiter, so nobody who
 * comes later takes it first. Slot 0 of a control QP is kept for PING. kxfer_channel_call() waits
 * for both, a slot and the answer; others give a function that gets the answer (@answered), or a
 * work that is queued when they have a slot (release.c).
 *
 * All slots are under the lane's lock.
 *
 * Context: kxfer_channel_call() sleeps, the rest does not.
 */
#include <linux/ktime.h>

#include "base/fault.h"
#include "base/wait.h"
#include "link/channel.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"

#define NUDGE_MS	250	/* without an answer: nudge the lane */

/* Called without the lane's lock, after a slot was freed. @handed: it went to a waiter. */
static void slot_freed(struct kxfer_channel *channel, bool handed)
{
	if (handed)
		wake_up_all(&channel->wait);
	else
		channel->lane->link->ops->slot_free(channel->lane);
}

static bool take_locked(struct kxfer_request *request)
{
	if (!kxfer_request_take(&request->slot))
		return false;
	request->answered = NULL;
	request->job = NULL;
	reinit_completion(&request->done);
	return true;
}

/** kxfer_request_is_ping() - whether a slot is the one kept for PING */
bool kxfer_request_is_ping(const struct kxfer_request *request)
{
	return kxfer_lane_is_control(request->channel->lane) &&
	       request->index == KXFER_WIRE_PING_SLOT;
}

/* Hand a freed slot to the longest waiter. Return: whether there is one. */
static bool hand_on_locked(struct kxfer_request *request)
{
	struct kxfer_channel *channel = request->channel;
	struct kxfer_waiter *waiter = list_first_entry_or_null(&channel->waiters,
							       struct kxfer_waiter, node);

	/* The work of a waiter must not be queued once its lane is closed: release.c. */
	if (!waiter || kxfer_request_is_ping(request) || (waiter->work && !channel->lane->open) ||
	    !take_locked(request))
		return false;
	list_del_init(&waiter->node);
	if (waiter->work)
		queue_work(kxfer_handler_wq, waiter->work);
	WRITE_ONCE(waiter->request, request);
	return true;
}

/** kxfer_request_send_done() - the SEND of a request has completed: done of its cqe */
void kxfer_request_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_request *request =
		container_of(wc->wr_cqe, struct kxfer_request, cqe);
	struct kxfer_lane *lane = request->channel->lane;
	bool freed, handed;

	kxfer_fault_wc(CHANNEL_REQUEST_SENT, wc);
	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(lane, wc, "SEND of a request");
	spin_lock_bh(&lane->lock);
	freed = kxfer_request_sent(&request->slot);
	handed = freed && hand_on_locked(request);
	request->acked_ns = ktime_get_ns();
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	spin_unlock_bh(&lane->lock);
	if (freed)
		slot_freed(request->channel, handed);
}

/**
 * kxfer_channel_get_locked() - take a free request slot
 * @channel: channel to search
 *
 * Called with the lane's lock held. Slot 0 of a control QP is kept for PING.
 * Return: the slot or NULL.
 */
struct kxfer_request *kxfer_channel_get_locked(struct kxfer_channel *channel)
{
	u32 i = kxfer_lane_is_control(channel->lane) ? KXFER_WIRE_PING_SLOT + 1 : 0;

	lockdep_assert_held(&channel->lane->lock);
	if (!channel->lane->open)
		return NULL;
	for (; i < channel->nr_slots; i++)
		if (take_locked(&channel->requests[i]))
			return &channel->requests[i];
	return NULL;
}

/** kxfer_channel_get() - take a free request slot; does not sleep. Return: the slot or NULL */
struct kxfer_request *kxfer_channel_get(struct kxfer_channel *channel)
{
	struct kxfer_request *request;

	spin_lock_bh(&channel->lane->lock);
	request = kxfer_channel_get_locked(channel);
	spin_unlock_bh(&channel->lane->lock);
	return request;
}

/** kxfer_channel_get_ping() - take the slot kept for PING. Return: NULL if busy or closed */
struct kxfer_request *kxfer_channel_get_ping(struct kxfer_channel *channel)
{
	struct kxfer_request *request = &channel->requests[KXFER_WIRE_PING_SLOT];

	spin_lock_bh(&channel->lane->lock);
	if (!channel->lane->open || !take_locked(request))
		request = NULL;
	spin_unlock_bh(&channel->lane->lock);
	return request;
}

/** kxfer_channel_put() - let go of a slot; the slot is free once its SEND has completed */
void kxfer_channel_put(struct kxfer_request *request)
{
	struct kxfer_channel *channel = request->channel;
	bool freed, handed;

	spin_lock_bh(&channel->lane->lock);
	freed = kxfer_request_put(&request->slot);
	handed = freed && hand_on_locked(request);
	spin_unlock_bh(&channel->lane->lock);
	if (freed)
		slot_freed(channel, handed);
}

/**
 * kxfer_channel_post_locked() - send a request; called with the lane's lock held
 * @request: slot, from one of the kxfer_channel_get*() functions or kxfer_channel_ask()
 * @type: enum kxfer_wire_type
 * @payload: copied; NULL: it was written to kxfer_channel_request_payload()
 * @length: bytes of the payload
 *
 * Return: 0, or an error after which the slot has to be put and the link is
 * broken: no answer will be delivered.
 */
int kxfer_channel_post_locked(struct kxfer_request *request, u8 type,
			      const void *payload, u32 length)
{
	struct kxfer_channel *channel = request->channel;
	struct kxfer_wire_header *message = request->message;
	u64 sequence = channel->next_sequence + 1;
	int ret;

	if (!channel->lane->open)
		return -ECONNRESET;
	if (WARN_ON_ONCE(sizeof(*message) + length > channel->max_bytes))
		return -EMSGSIZE;
	channel->next_sequence = sequence;
	*message = (struct kxfer_wire_header) {
		.type = type,
		.slot = request->index,
		.length = cpu_to_be16(length),
		.sequence = cpu_to_be64(sequence),
	};
	if (payload)
		memcpy(message + 1, payload, length);
	kxfer_request_posted(&request->slot, type, sequence);
	request->sent_ns = ktime_get_ns();
	request->acked_ns = 0;
	ret = kxfer_channel_send_locked(channel, &request->cqe, request->dma, message);
	if (ret)
		kxfer_request_not_posted(&request->slot);
	return ret;
}

/** kxfer_channel_post() - kxfer_channel_post_locked() that takes the lock */
int kxfer_channel_post(struct kxfer_request *request, u8 type,
		       const void *payload, u32 length)
{
	int ret;

	spin_lock_bh(&request->channel->lane->lock);
	ret = kxfer_channel_post_locked(request, type, payload, length);
	spin_unlock_bh(&request->channel->lane->lock);
	return ret;
}

/* Take a free slot if there are no other waiters, else join the waiters. */
static void queue_for_slot(struct kxfer_channel *channel, struct kxfer_waiter *waiter)
{
	lockdep_assert_held(&channel->lane->lock);
	if (list_empty(&channel->waiters))
		waiter->request = kxfer_channel_get_locked(channel);
	if (!waiter->request)
		list_add_tail(&waiter->node, &channel->waiters);
}

/**
 * kxfer_channel_ask() - take a free request slot, or queue for one without sleeping
 * @channel: channel to search
 * @waiter: waiter with a work; at first in no list and without a slot
 *
 * Return: a slot; or NULL: @waiter is queued, and its work is queued when it has a slot,
 * unless the lane is closed first.
 */
struct kxfer_request *kxfer_channel_ask(struct kxfer_channel *channel,
					struct kxfer_waiter *waiter)
{
	struct kxfer_request *request;

	spin_lock_bh(&channel->lane->lock);
	if (!waiter->request && list_empty(&waiter->node) && channel->lane->open)
		queue_for_slot(channel, waiter);
	request = waiter->request;
	waiter->request = NULL;
	spin_unlock_bh(&channel->lane->lock);
	return request;
}

/** kxfer_channel_leave() - undo kxfer_channel_ask(): leave the queue, put a slot handed over */
void kxfer_channel_leave(struct kxfer_channel *channel, struct kxfer_waiter *waiter)
{
	struct kxfer_request *request;

	spin_lock_bh(&channel->lane->lock);
	list_del_init(&waiter->node);
	request = waiter->request;
	waiter->request = NULL;
	spin_unlock_bh(&channel->lane->lock);
	if (request)
		kxfer_channel_put(request);
}

static struct kxfer_request *leave_queue(struct kxfer_channel *channel,
					 struct kxfer_waiter *waiter)
{
	spin_lock_bh(&channel->lane->lock);
	if (!waiter->request)
		list_del(&waiter->node);
	spin_unlock_bh(&channel->lane->lock);
	return waiter->request;
}

static bool given_or_closed(struct kxfer_channel *channel, struct kxfer_waiter *waiter)
{
	return READ_ONCE(waiter->request) || !READ_ONCE(channel->lane->open);
}

static struct kxfer_request *wait_for_slot(struct kxfer_channel *channel,
					   unsigned long *left,
					   enum kxfer_wait wait)
{
	struct kxfer_waiter waiter = {};
	struct kxfer_request *request;
	long ret;

	spin_lock_bh(&channel->lane->lock);
	queue_for_slot(channel, &waiter);
	spin_unlock_bh(&channel->lane->lock);
	if (wait == KXFER_WAIT_KILLABLE)
		ret = kxfer_wait_event_timeout(channel->wait,
					       given_or_closed(channel, &waiter), *left);
	else
		ret = wait_event_timeout(channel->wait,
					 given_or_closed(channel, &waiter), *left);
	request = leave_queue(channel, &waiter);
	if (request) {
		*left = max(ret, 1L);
		return request;
	}
	if (ret > 0)
		return ERR_PTR(-ECONNRESET);
	return ERR_PTR(ret ? -EINTR : -ETIMEDOUT);
}

static long wait_for_done(struct kxfer_request *request, unsigned long timeout,
			  enum kxfer_wait wait)
{
	if (wait == KXFER_WAIT_KILLABLE)
		return kxfer_wait_for_completion_timeout(&request->done, timeout);
	return wait_for_completion_timeout(&request->done, timeout);
}

/* Return: 0: the answer is there; else -errno, and the slot has been given up. */
static int wait_for_answer(struct kxfer_request *request, unsigned long left,
			   enum kxfer_wait wait)
{
	bool abandoned;
	long ret;

	do {
		unsigned long some = min(left, msecs_to_jiffies(NUDGE_MS) + 1);

		ret = wait_for_done(request, some, wait);
		left -= some;
		if (!ret)
			kxfer_iwarp_nudge(request->channel->lane);
	} while (!ret && left);
	if (ret > 0)
		return 0;
	spin_lock_bh(&request->channel->lane->lock);
	abandoned = kxfer_request_abandon(&request->slot);
	spin_unlock_bh(&request->channel->lane->lock);
	if (!abandoned)
		return 0;
	return ret ? -EINTR : -ETIMEDOUT;
}

/**
 * kxfer_channel_call() - send a request and wait for its answer
 * @channel: channel of a link on which the caller holds a reference
 * @type: enum kxfer_wire_type
 * @payload: payload to copy
 * @length: bytes of @payload
 * @answer: where the answer's payload goes, or NULL
 * @answer_length: in: bytes of room at @answer; out: bytes of the answer; or NULL
 * @timeout_ms: limit for the slot and the answer together
 * @wait: whether a fatal signal ends the waiting (base/wait.h)
 *
 * Return: 0; the peer's refusal as -errno; -ETIMEDOUT, -EINTR (fatal signal),
 * -ECONNRESET; -EPROTO if the answer is longer than the room, which is 0 if
 * @answer_length is NULL.
 */
int kxfer_channel_call(struct kxfer_channel *channel, u8 type,
		       const void *payload, u32 length, void *answer,
		       u32 *answer_length, unsigned int timeout_ms,
		       enum kxfer_wait wait)
{
	unsigned long left = msecs_to_jiffies(timeout_ms) + 1;
	u32 room = answer_length ? *answer_length : 0;
	struct kxfer_request *request;
	int ret;

	request = wait_for_slot(channel, &left, wait);
	if (IS_ERR(request))
		return PTR_ERR(request);
	ret = kxfer_channel_post(request, type, payload, length);
	if (ret) {
		kxfer_channel_put(request);
		return -ECONNRESET;
	}
	kxfer_delay(CHANNEL_CALL);
	ret = wait_for_answer(request, left, wait);
	if (ret)
		return ret;
	ret = request->status;
	if (!ret && request->answer_length > room)
		ret = -EPROTO;
	if (!ret && answer_length) {
		memcpy(answer, request->answer, request->answer_length);
		*answer_length = request->answer_length;
	}
	kxfer_channel_put(request);
	return ret;
}

/** kxfer_channel_request_payload() - where the slot's owner writes the payload of a request */
void *kxfer_channel_request_payload(struct kxfer_request *request)
{
	return request->message + 1;
}
