// SPDX-License-Identifier: GPL-2.0
/*
 * Channel: requests and answers on a lane, in fixed slots (wire.h). The states of a
 * slot are in slot.c; request.c takes slots and posts our requests, recv.c posts RECVs.
 *
 * No SEND lacks a RECV: the peer can have nr_slots requests here, and we can have
 * nr_slots answers to come. 2 * nr_slots RECVs are posted, and each is posted again
 * before the message it held is acted on.
 * No SEND lacks room in the send queue: each slot has at most one SEND there.
 *
 * On a data lane requests and eager messages are begun in order of arrival, because messages
 * of a mailbox have an order. A request that has to wait until the last answer of its slot is
 * sent keeps later ones waiting. Handlers on a data lane do not sleep, so a request is over
 * when its handler returns.
 *
 * An eager message is read from its RECV, which is posted again when the message was handled.
 * Only then can a later answer give a credit for that RECV. The sender counts an eager message
 * as sent once its SEND has completed. So one that has arrived is handled, even if its lane has
 * been closed meanwhile.
 *
 * All slots are under the lane's lock. Arrivals are begun where the lane's completions
 * run, possibly in a softirq.
 */
#include "base/log.h"

#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/stats.h"
#include "link/arrival.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "node/device.h"
#include "node/memory.h"

/** kxfer_channel_ibdev() - the device that a channel is mapped for */
struct ib_device *kxfer_channel_ibdev(const struct kxfer_channel *channel)
{
	return channel->lane->cm_id->device;
}

/**
 * kxfer_channel_send_locked() - post the SEND of a slot
 * @channel: channel; the lock of its lane is held
 * @cqe: completion handler of the slot
 * @dma: DMA address of @message
 * @message: KXFER header and payload; the device owns it from here on
 *
 * Return: 0, -ECONNRESET: the lane is closed; or the error of ib_post_send().
 */
int kxfer_channel_send_locked(struct kxfer_channel *channel, struct ib_cqe *cqe, u64 dma,
			      struct kxfer_wire_header *message)
{
	struct ib_sge sge = {
		.addr = dma,
		.length = sizeof(*message) + be16_to_cpu(message->length),
		.lkey = channel->lane->link->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (!channel->lane->open)
		return -ECONNRESET;
	ib_dma_sync_single_for_device(kxfer_channel_ibdev(channel), dma, sge.length,
				      DMA_BIDIRECTIONAL);
	return kxfer_lane_post_locked(channel->lane, &wr, 1);
}

static void begin_eager(struct kxfer_recv *recv)
{
	struct kxfer_lane *lane = recv->channel->lane;
	const char *wrong = lane->link->ops->eager(lane, recv->grant, recv->message, recv->bytes);

	if (wrong)
		kxfer_link_protocol_error(lane->link, wrong);
}

static void begin_arrived(struct kxfer_arrived *arrived)
{
	if (arrived->eager)
		begin_eager(container_of(arrived, struct kxfer_recv, arrived));
	else
		kxfer_arrival_begin(container_of(arrived, struct kxfer_reply, arrived));
}

/* Called with the lane's lock held, which is dropped on the way; no other context begins. */
static void begin_one(struct kxfer_channel *channel, struct kxfer_arrived *arrived)
{
	struct kxfer_lane *lane = channel->lane;

	channel->beginning = true;
	spin_unlock_bh(&lane->lock);
	begin_arrived(arrived);
	spin_lock_bh(&lane->lock);
	channel->beginning = false;
	if (arrived->eager)
		kxfer_recv_post_again(container_of(arrived, struct kxfer_recv, arrived));
}

/*
 * Begin what is ready at the head of @arrivals. What arrives meanwhile is left to the loop that
 * is already running. Called with the lane's lock held, which is dropped on the way.
 */
static void begin_in_order(struct kxfer_channel *channel)
{
	struct kxfer_arrived *arrived;

	while (!channel->beginning) {
		arrived = list_first_entry_or_null(&channel->arrivals, struct kxfer_arrived, node);
		if (!arrived || !arrived->ready)
			break;
		list_del(&arrived->node);
		begin_one(channel, arrived);
	}
}

static void begin(struct kxfer_reply *reply)
{
	struct kxfer_lane *lane = reply->channel->lane;

	if (kxfer_lane_is_control(lane)) {
		kxfer_arrival_begin(reply);
		return;
	}
	spin_lock_bh(&lane->lock);
	begin_in_order(reply->channel);
	spin_unlock_bh(&lane->lock);
}

static void reply_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_reply *reply =
		container_of(wc->wr_cqe, struct kxfer_reply, cqe);
	struct kxfer_lane *lane = reply->channel->lane;
	bool start;

	kxfer_fault_wc(CHANNEL_REPLY_SENT, wc);
	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "SEND of an answer");
		return;
	}
	spin_lock_bh(&lane->lock);
	start = kxfer_reply_sent(&reply->slot);
	reply->arrived.ready |= start;
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	spin_unlock_bh(&lane->lock);
	if (start)
		begin(reply);
}

/* Give the answer to the waiter or the callback. The slot no longer waits for it. */
static void deliver_answer(struct kxfer_request *request)
{
	if (request->answered) {
		request->answered(request);
		kxfer_channel_put(request);
	} else {
		complete(&request->done);
	}
}

/* Return: what is wrong with the message, or NULL. */
static const char *accept_answer(struct kxfer_recv *recv,
				 const struct kxfer_wire_header *header)
{
	struct kxfer_channel *channel = recv->channel;
	struct kxfer_lane *lane = channel->lane;
	struct kxfer_request *request = &channel->requests[header->slot];
	enum kxfer_answer verdict;

	spin_lock_bh(&lane->lock);
	verdict = kxfer_request_answered(&request->slot, header->type,
					 be64_to_cpu(header->sequence));
	if (verdict == KXFER_ANSWER_UNASKED) {
		spin_unlock_bh(&lane->lock);
		return "an answer to nothing";
	}
	request->status = kxfer_wire_errno(be16_to_cpu(header->status));
	request->answer_length = request->status ? 0 : be16_to_cpu(header->length);
	memcpy(request->answer, header + 1, request->answer_length);
	kxfer_recv_post_again(recv);
	spin_unlock_bh(&lane->lock);

	if (verdict == KXFER_ANSWER_WANTED) {
		deliver_answer(request);
	} else {
		lane->link->ops->abandoned(request);
		kxfer_channel_put(request);
	}
	return NULL;
}

static const char *accept_request(struct kxfer_recv *recv,
				  const struct kxfer_wire_header *header)
{
	struct kxfer_channel *channel = recv->channel;
	struct kxfer_lane *lane = channel->lane;
	struct kxfer_reply *reply = &channel->replies[header->slot];
	enum kxfer_arrival verdict;

	spin_lock_bh(&lane->lock);
	verdict = kxfer_reply_arrived(&reply->slot);
	if (verdict == KXFER_ARRIVAL_TWICE) {
		spin_unlock_bh(&lane->lock);
		return "a second request in a slot";
	}
	reply->request_length = be16_to_cpu(header->length);
	memcpy(reply->request, header, sizeof(*header) + reply->request_length);
	reply->arrived.ready = verdict == KXFER_ARRIVAL_START;
	if (!kxfer_lane_is_control(lane))
		list_add_tail(&reply->arrived.node, &channel->arrivals);
	kxfer_recv_post_again(recv);
	spin_unlock_bh(&lane->lock);
	if (verdict == KXFER_ARRIVAL_START)
		begin(reply);
	return NULL;
}

/*
 * A peer may complete a RECV with something other than a plain SEND. A WRITE with immediate
 * data even leaves the previous message in the buffer. Return: what is wrong, or NULL.
 */
static const char *check_message(const struct kxfer_recv *recv, const struct ib_wc *wc)
{
	const struct kxfer_wire_header *header = recv->message;

	if (wc->opcode != IB_WC_RECV ||
	    wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE))
		return "a message that is not a plain SEND";
	return kxfer_wire_check_message(header, wc->byte_len, recv->channel->nr_slots);
}

/* Only a SEND with immediate data, where credits may have been given for such. */
static bool is_eager(const struct kxfer_recv *recv, const struct ib_wc *wc)
{
	return recv->channel->lane->size.recvs && wc->opcode == IB_WC_RECV &&
	       (wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE)) == IB_WC_WITH_IMM;
}

static void accept_eager(struct kxfer_recv *recv, const struct ib_wc *wc)
{
	struct kxfer_channel *channel = recv->channel;

	recv->grant = be32_to_cpu(wc->ex.imm_data);
	recv->bytes = wc->byte_len;
	spin_lock_bh(&channel->lane->lock);
	if (channel->beginning || !list_empty(&channel->arrivals))
		list_add_tail(&recv->arrived.node, &channel->arrivals);
	else
		begin_one(channel, &recv->arrived);
	begin_in_order(channel);
	spin_unlock_bh(&channel->lane->lock);
}

static const char *accept_message(struct kxfer_recv *recv, const struct ib_wc *wc)
{
	const struct kxfer_wire_header *header = recv->message;
	bool eager = is_eager(recv, wc);
	const char *wrong = eager ? NULL : check_message(recv, wc);

	if (wrong) {
		kxfer_stat_inc(KXFER_STAT_MESSAGES_MALFORMED);
		return wrong;
	}
	kxfer_stat_inc(KXFER_STAT_MESSAGES_RECEIVED);
	if (eager) {
		accept_eager(recv, wc);
		return NULL;
	}
	if (header->type & KXFER_WIRE_ANSWER)
		return accept_answer(recv, header);
	return accept_request(recv, header);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_recv *recv = container_of(wc->wr_cqe, struct kxfer_recv, cqe);
	struct kxfer_lane *lane = recv->channel->lane;
	const char *wrong;

	kxfer_fault_wc(CHANNEL_RECEIVED, wc);
	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "RECV");
		return;
	}
	WRITE_ONCE(lane->heard_ns, ktime_get_ns());
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	ib_dma_sync_single_for_cpu(kxfer_channel_ibdev(recv->channel), recv->dma, recv->room,
				   DMA_BIDIRECTIONAL);
	wrong = accept_message(recv, wc);
	if (wrong)
		kxfer_link_protocol_error(lane->link, wrong);
}

static void init_slots(struct kxfer_channel *channel)
{
	u32 n = channel->nr_slots, bytes = channel->max_bytes, i;
	void *memory = channel->memory, *copies = channel->copies;
	u64 dma = channel->memory_dma;

	for (i = 0; i < n; i++, memory += bytes, dma += bytes, copies += bytes) {
		struct kxfer_request *request = &channel->requests[i];

		request->channel = channel;
		request->index = i;
		request->message = memory;
		request->dma = dma;
		request->cqe.done = kxfer_request_send_done;
		request->answer = copies;
		init_completion(&request->done);
	}
	for (i = 0; i < n; i++, memory += bytes, dma += bytes, copies += bytes) {
		struct kxfer_reply *reply = &channel->replies[i];

		reply->channel = channel;
		reply->index = i;
		reply->message = memory;
		reply->dma = dma;
		reply->cqe.done = reply_sent;
		reply->request = copies;
		INIT_WORK(&reply->work, kxfer_arrival_work);
	}
	for (i = 0; i < kxfer_channel_recvs(n); i++, memory += bytes, dma += bytes) {
		struct kxfer_recv *recv = &channel->recvs[i];

		recv->message = memory;
		recv->dma = dma;
		recv->room = bytes;
	}
	for (i = 0; i < channel->nr_recvs; i++) {
		struct kxfer_recv *recv = &channel->recvs[i];

		recv->channel = channel;
		recv->cqe.done = recv_done;
		recv->arrived.ready = true;
		recv->arrived.eager = true;
	}
}

/**
 * kxfer_channel_init() - make the channel of a lane whose device is known
 * @channel: zeroed, in @lane
 * @lane: lane with a cm_id, whose link has a PD
 * @nr_slots: requests each side may have unanswered
 * @nr_eager: eager messages that the peer may have under way
 * @max_bytes: longest message, header included
 *
 * May sleep. On failure kxfer_channel_destroy() frees what was allocated.
 */
int kxfer_channel_init(struct kxfer_channel *channel, struct kxfer_lane *lane,
		       u32 nr_slots, u32 nr_eager, u32 max_bytes)
{
	u32 nr_recvs = kxfer_channel_recvs(nr_slots) + nr_eager;
	u32 nr_messages = 2 * nr_slots + kxfer_channel_recvs(nr_slots);
	int node = kxfer_link_numa_node(lane->link), ret;

	channel->lane = lane;
	channel->nr_slots = nr_slots;
	channel->nr_recvs = nr_recvs;
	channel->max_bytes = max_bytes;
	init_waitqueue_head(&channel->wait);
	INIT_LIST_HEAD(&channel->waiters);
	INIT_LIST_HEAD(&channel->releaser.node);
	channel->releaser.work = &lane->link->release_work;
	INIT_LIST_HEAD(&channel->arrivals);
	INIT_WORK(&channel->turn_work, kxfer_arrival_turn_work);
	channel->memory_bytes = nr_messages * max_bytes;
	channel->memory = kxfer_try_alloc(CHANNEL_MESSAGES,
					  kzalloc_node(channel->memory_bytes, KXFER_GFP_FOR_PEER,
						       node));
	channel->copies = kxfer_try_alloc(CHANNEL_COPIES, kvzalloc_node(2 * nr_slots * max_bytes,
									KXFER_GFP_FOR_PEER, node));
	channel->requests = kxfer_try_alloc(CHANNEL_REQUESTS,
					    kcalloc_node(nr_slots, sizeof(*channel->requests),
							 KXFER_GFP_FOR_PEER, node));
	channel->replies = kxfer_try_alloc(CHANNEL_REPLIES,
					   kcalloc_node(nr_slots, sizeof(*channel->replies),
							KXFER_GFP_FOR_PEER, node));
	channel->recvs = kxfer_try_alloc(CHANNEL_RECVS, kcalloc_node(nr_recvs,
								     sizeof(*channel->recvs),
								     KXFER_GFP_FOR_PEER, node));
	if (!channel->memory || !channel->copies || !channel->requests ||
	    !channel->replies || !channel->recvs)
		return -ENOMEM;
	ret = kxfer_device_map(kxfer_channel_ibdev(channel), channel->memory,
			       channel->memory_bytes, DMA_BIDIRECTIONAL,
			       &channel->memory_dma);
	if (!ret)
		init_slots(channel);
	return ret;
}

/* Handle eager messages that have arrived. Requests before them end with the link. */
static void handle_late(struct kxfer_channel *channel)
{
	struct kxfer_arrived *arrived;

	list_for_each_entry(arrived, &channel->arrivals, node)
		if (arrived->eager)
			begin_arrived(arrived);
}

/**
 * kxfer_channel_stop() - end all waiting on a channel whose QP is reset or destroyed
 * @channel: channel of a lane that is being stopped
 *
 * No completion of the lane runs or will run. Waits for handlers of requests;
 * their own waiting ends with the QP or with the link's state. Then each request
 * without an answer gets -ECONNRESET. May sleep.
 */
void kxfer_channel_stop(struct kxfer_channel *channel)
{
	u32 i;

	if (!channel->memory_dma)
		return;
	cancel_work_sync(&channel->turn_work);
	for (i = 0; i < channel->nr_slots; i++)
		cancel_work_sync(&channel->replies[i].work);
	handle_late(channel);
	wake_up_all(&channel->wait);
	for (i = 0; i < channel->nr_slots; i++) {
		struct kxfer_request *request = &channel->requests[i];
		bool waiting;

		spin_lock_bh(&channel->lane->lock);
		waiting = kxfer_request_stop(&request->slot);
		/* A waiter that already has its answer keeps it. */
		if (waiting) {
			request->status = -ECONNRESET;
			request->answer_length = 0;
		}
		spin_unlock_bh(&channel->lane->lock);
		if (waiting)
			deliver_answer(request);
	}
	kxfer_recv_unmap_all(channel);
	ib_dma_unmap_single(kxfer_channel_ibdev(channel), channel->memory_dma,
			    channel->memory_bytes, DMA_BIDIRECTIONAL);
	channel->memory_dma = 0;
}

/** kxfer_channel_destroy() - free memory; no slot is held any more */
void kxfer_channel_destroy(struct kxfer_channel *channel)
{
	kxfer_recv_free_all(channel);
	kfree(channel->replies);
	kfree(channel->requests);
	kvfree(channel->copies);
	kfree(channel->memory);
}

static bool older(u64 since_ns, u64 now_ns, unsigned int ms)
{
	return now_ns > since_ns && now_ns - since_ns > (u64)ms * NSEC_PER_MSEC;
}

/**
 * kxfer_channel_overdue_locked() - whether the peer has kept a message waiting too long
 * @channel: channel; the lock of its lane is held
 * @arrived_ms: limit for the answer to a request, from its arrival at the peer
 * @sent_ms: limit for a SEND of a request or an answer to complete
 *
 * The answer to PING has no limit here: a busy peer is not silent (link.c).
 * Return: true if a message is older than its limit.
 */
bool kxfer_channel_overdue_locked(const struct kxfer_channel *channel,
				  unsigned int arrived_ms, unsigned int sent_ms)
{
	u64 now = ktime_get_ns();
	bool overdue = false;
	u32 i;

	lockdep_assert_held(&channel->lane->lock);
	for (i = 0; !overdue && i < channel->nr_slots; i++) {
		const struct kxfer_request *request = &channel->requests[i];
		const struct kxfer_reply *reply = &channel->replies[i];

		overdue = (reply->slot.sending && older(reply->posted_ns, now, sent_ms)) ||
			  (request->slot.sending && older(request->sent_ns, now, sent_ms)) ||
			  (request->slot.waiting && request->acked_ns &&
			   !kxfer_request_is_ping(request) &&
			   older(request->acked_ns, now, arrived_ms));
	}
	return overdue;
}

/** kxfer_channel_idle_locked() - whether no request slot is busy; with the lane's lock held */
bool kxfer_channel_idle_locked(const struct kxfer_channel *channel)
{
	u32 i;

	for (i = 0; i < channel->nr_slots; i++)
		if (channel->requests[i].slot.busy)
			return false;
	return true;
}

/** kxfer_channel_payload() - where a handler writes its answer */
void *kxfer_channel_payload(struct kxfer_reply *reply)
{
	return reply->message + 1;
}

/**
 * kxfer_channel_answer() - answer a request; does not sleep
 * @reply: slot with the payload written
 * @status: result of the request
 * @length: bytes of payload; taken as 0 unless @status is OK
 */
void kxfer_channel_answer(struct kxfer_reply *reply,
			  enum kxfer_wire_status status, u32 length)
{
	struct kxfer_channel *channel = reply->channel;
	int ret;

	*reply->message = (struct kxfer_wire_header) {
		.type = reply->request->type | KXFER_WIRE_ANSWER,
		.slot = reply->index,
		.status = cpu_to_be16(status),
		.length = cpu_to_be16(status == KXFER_WIRE_OK ? length : 0),
		.sequence = reply->request->sequence,
	};
	spin_lock_bh(&channel->lane->lock);
	kxfer_reply_posted(&reply->slot);
	reply->posted_ns = ktime_get_ns();
	ret = kxfer_channel_send_locked(channel, &reply->cqe, reply->dma, reply->message);
	spin_unlock_bh(&channel->lane->lock);
	if (ret)
		kxfer_link_fail(channel->lane->link, -ECONNRESET);
}
