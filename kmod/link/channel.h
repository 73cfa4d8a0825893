/* SPDX-License-Identifier: GPL-2.0 */
/* Messages on a lane: slots of requests and answers, and RECVs. See channel.c. */
#ifndef KXFER_CHANNEL_H
#define KXFER_CHANNEL_H

#include <linux/completion.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "base/slot.h"
#include "base/wire.h"

struct kxfer_active_job;
struct kxfer_channel;
struct kxfer_handler;
struct kxfer_lane;
struct kxfer_request;

/**
 * typedef kxfer_answered_fn - called with the answer of an asynchronous request
 * @request: request, with its result in @status and @answer; the slot is free again
 *	when this returns
 *
 * Runs where completions of the lane run (may be a softirq), or in the link's
 * teardown with status -ECONNRESET.
 */
typedef void (*kxfer_answered_fn)(struct kxfer_request *request);

/**
 * struct kxfer_arrived - something of the peer that is begun in order of arrival
 * @node: in kxfer_channel.arrivals until it is begun
 * @ready: data lanes: it may be begun
 * @eager: it is an eager message, in a struct kxfer_recv; else a request, in a struct
 *	kxfer_reply
 */
struct kxfer_arrived {
	struct list_head node;
	bool ready;
	bool eager;
};

/**
 * struct kxfer_request - a slot for one of our requests
 * @channel: channel that the slot belongs to
 * @index: number of the slot
 * @slot: state of the slot; while it is sending, the device owns @message
 * @message: KXFER header and payload
 * @dma: DMA address of @message
 * @cqe: completion handler of the SEND
 * @status: status of the answer, 0 or -errno
 * @answer: copy of the answer's payload
 * @answer_length: bytes of @answer
 * @answered: asynchronous: called with the answer
 * @done: synchronous: the answer came
 * @sent_ns: time when the request was posted
 * @acked_ns: time when its SEND completed; 0: not yet
 * @job: job of a NOTIFY or a SEND
 * @owner: offer or fetch of an OFFER, FETCHED or TAKE_BACK
 */
struct kxfer_request {
	struct kxfer_channel *channel;
	u8 index;
	struct kxfer_request_slot slot;
	struct kxfer_wire_header *message;
	u64 dma;
	struct ib_cqe cqe;
	int status;
	void *answer;
	u32 answer_length;
	kxfer_answered_fn answered;
	struct completion done;
	u64 sent_ns;
	u64 acked_ns;
	struct kxfer_active_job *job;
	void *owner;
};

/**
 * struct kxfer_reply - a slot for one of the peer's requests
 * @channel: channel that the slot belongs to
 * @index: number of the slot
 * @slot: state of the slot; while it is sending, the device owns @message
 * @message: our answer
 * @dma: DMA address of @message
 * @cqe: completion handler of the SEND
 * @request: copy of the request, header included
 * @request_length: bytes of the request's payload
 * @handler: handler of the request, once it is begun
 * @work: runs handlers that may sleep
 * @posted_ns: time when our answer was posted
 * @arrived: the request, until it is begun
 */
struct kxfer_reply {
	struct kxfer_channel *channel;
	u8 index;
	struct kxfer_reply_slot slot;
	struct kxfer_wire_header *message;
	u64 dma;
	struct ib_cqe cqe;
	struct kxfer_wire_header *request;
	u32 request_length;
	const struct kxfer_handler *handler;
	struct work_struct work;
	u64 posted_ns;
	struct kxfer_arrived arrived;
};

/**
 * struct kxfer_recv - a RECV, posted unless it holds an eager message
 * @channel: channel that the RECV belongs to
 * @message: what it brought: KXFER header and payload, or the payload of an eager message
 * @dma: DMA address of @message
 * @room: bytes at @message
 * @page: page that has @message, if it has room for an eager message; else NULL
 * @cqe: completion handler of the RECV
 * @arrived: the eager message, until it is begun
 * @grant: its immediate data, the id of a grant
 * @bytes: its length
 */
struct kxfer_recv {
	struct kxfer_channel *channel;
	struct kxfer_wire_header *message;
	u64 dma;
	u32 room;
	struct page *page;
	struct ib_cqe cqe;
	struct kxfer_arrived arrived;
	u32 grant;
	u32 bytes;
};

/**
 * struct kxfer_waiter - a context that waits for a slot; slots are handed over, not grabbed
 * @node: in kxfer_channel.waiters, or empty
 * @request: slot that was handed to this waiter
 * @work: queued on kxfer_handler_wq when there is a slot; NULL: a caller, which is woken
 */
struct kxfer_waiter {
	struct list_head node;
	struct kxfer_request *request;
	struct work_struct *work;
};

/**
 * struct kxfer_channel - the messages of one lane; slots are under the lane's lock
 * @lane: lane that the channel belongs to
 * @nr_slots: requests that each side may have unanswered
 * @max_bytes: longest message, header included
 * @wait: wait queue for a free slot
 * @waiters: waiters for a slot, the longest first; under the lane's lock
 * @releaser: control QP: waiter of the link's release_work
 * @arrivals: struct kxfer_arrived that are not begun yet, in order of arrival; on a control
 *	QP only requests whose handlers may wait for the peer; under the lane's lock
 * @turn_work: control QP: handles @arrivals, one at a time
 * @beginning: data lanes: a context begins @arrivals; under the lane's lock
 * @next_sequence: sequence number of the last request
 * @requests: slots of our requests
 * @replies: slots of the peer's requests
 * @recvs: RECVs, twice @nr_slots and those for eager messages
 * @nr_recvs: entries of @recvs
 * @nr_posted: of these, RECVs that have ever been posted; under the lane's lock, as the next
 * @growing: RECVs are being given room for eager messages
 * @nr_small: posted RECVs without that room
 * @memory: buffer of all messages, DMA-mapped in one piece
 * @memory_dma: DMA address of @memory
 * @memory_bytes: bytes of @memory
 * @copies: buffer of the copies of requests and answers, not mapped
 */
struct kxfer_channel {
	struct kxfer_lane *lane;
	u32 nr_slots;
	u32 max_bytes;
	wait_queue_head_t wait;
	struct list_head waiters;
	struct kxfer_waiter releaser;
	struct list_head arrivals;
	struct work_struct turn_work;
	bool beginning;
	u64 next_sequence;
	struct kxfer_request *requests;
	struct kxfer_reply *replies;
	struct kxfer_recv *recvs;
	u32 nr_recvs;
	u32 nr_posted;
	bool growing;
	u32 nr_small;
	void *memory;
	u64 memory_dma;
	size_t memory_bytes;
	void *copies;
};

static inline u32 kxfer_channel_recvs(u32 nr_slots)
{
	return 2 * nr_slots;
}

static inline u32 kxfer_channel_sends(u32 nr_slots)
{
	return 2 * nr_slots;
}

int kxfer_channel_init(struct kxfer_channel *channel, struct kxfer_lane *lane,
		       u32 nr_slots, u32 nr_eager, u32 max_bytes);
void kxfer_channel_stop(struct kxfer_channel *channel);
void kxfer_channel_destroy(struct kxfer_channel *channel);
struct ib_device *kxfer_channel_ibdev(const struct kxfer_channel *channel);
int kxfer_channel_send_locked(struct kxfer_channel *channel, struct ib_cqe *cqe, u64 dma,
			      struct kxfer_wire_header *message);
bool kxfer_channel_overdue_locked(const struct kxfer_channel *channel,
				  unsigned int arrived_ms, unsigned int sent_ms);
bool kxfer_channel_idle_locked(const struct kxfer_channel *channel);
void *kxfer_channel_payload(struct kxfer_reply *reply);
void kxfer_channel_answer(struct kxfer_reply *reply,
			  enum kxfer_wire_status status, u32 length);

/* recv.c */
int kxfer_channel_post_recvs(struct kxfer_channel *channel);
bool kxfer_channel_grow(struct kxfer_channel *channel);
void kxfer_recv_post_again(struct kxfer_recv *recv);
void kxfer_recv_unmap_all(struct kxfer_channel *channel);
void kxfer_recv_free_all(struct kxfer_channel *channel);

/* request.c */

/* How a caller of kxfer_channel_call() waits. */
enum kxfer_wait {
	KXFER_WAIT_KILLABLE,
	KXFER_WAIT_UNINTERRUPTIBLE,
};

int kxfer_channel_call(struct kxfer_channel *channel, u8 type,
		       const void *payload, u32 length, void *answer,
		       u32 *answer_length, unsigned int timeout_ms,
		       enum kxfer_wait wait);
struct kxfer_request *kxfer_channel_get(struct kxfer_channel *channel);
struct kxfer_request *kxfer_channel_get_locked(struct kxfer_channel *channel);
struct kxfer_request *kxfer_channel_get_ping(struct kxfer_channel *channel);
int kxfer_channel_post(struct kxfer_request *request, u8 type,
		       const void *payload, u32 length);
int kxfer_channel_post_locked(struct kxfer_request *request, u8 type,
			      const void *payload, u32 length);
void kxfer_channel_put(struct kxfer_request *request);
struct kxfer_request *kxfer_channel_ask(struct kxfer_channel *channel,
					struct kxfer_waiter *waiter);
void kxfer_channel_leave(struct kxfer_channel *channel, struct kxfer_waiter *waiter);
void *kxfer_channel_request_payload(struct kxfer_request *request);
bool kxfer_request_is_ping(const struct kxfer_request *request);
void kxfer_request_send_done(struct ib_cq *cq, struct ib_wc *wc);

#endif /* KXFER_CHANNEL_H */
