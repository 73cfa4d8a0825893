/* SPDX-License-Identifier: GPL-2.0 */
/* Messages on a lane: request slots and their answers. See channel.c. */
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
 * typedef kxfer_answered_fn - an asynchronous request has its answer
 * @request: whose @status and @answer tell the outcome; the slot is free again
 *	when this returns
 *
 * Runs where completions of the lane run (may be a softirq), or in the link's
 * teardown with status -ECONNRESET.
 */
typedef void (*kxfer_answered_fn)(struct kxfer_request *request);

/**
 * struct kxfer_request - a slot for one of our requests
 * @channel: it belongs to
 * @index: of the slot
 * @slot: where it stands; @message is the device's while it is sending
 * @message: KXFER header and payload
 * @dma: of @message
 * @cqe: of the SEND
 * @status: of the answer, 0 or -errno
 * @answer: copy of the answer's payload
 * @answer_length: bytes of it
 * @answered: asynchronous: called with the answer
 * @done: synchronous: the answer came
 * @sent_ns: when it was posted
 * @acked_ns: when its SEND had completed; 0: it has not
 * @job: of a NOTIFY or a SEND
 * @owner: of an OFFER, FETCHED or TAKE_BACK
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
 * @channel: it belongs to
 * @index: of the slot
 * @slot: where it stands; @message is the device's while it is sending
 * @message: our answer
 * @dma: of @message
 * @cqe: of the SEND
 * @request: copy of the request, header included
 * @request_length: bytes of its payload
 * @handler: of it, once it is begun
 * @work: runs handlers that may sleep
 * @posted_ns: when our answer was
 * @node: in kxfer_channel.arrivals until it is begun
 * @ready: data lanes: it may be
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
	struct list_head node;
	bool ready;
};

/* A posted RECV. */
struct kxfer_recv {
	struct kxfer_channel *channel;
	struct kxfer_wire_header *message;
	u64 dma;
	struct ib_cqe cqe;
};

/**
 * struct kxfer_waiter - something that waits for a slot; slots are handed over, not grabbed
 * @node: in kxfer_channel.waiters, or empty
 * @request: the slot that it has got
 * @work: queued on kxfer_handler_wq then; NULL: a caller, that is woken
 */
struct kxfer_waiter {
	struct list_head node;
	struct kxfer_request *request;
	struct work_struct *work;
};

/**
 * struct kxfer_channel - the messages of one lane; slots are under the lane's lock
 * @lane: it belongs to
 * @nr_slots: requests that each side may have unanswered
 * @max_bytes: longest message, header included
 * @wait: for a free slot
 * @waiters: who does, in the order in which they came; under the lane's lock
 * @releaser: control QP: the link's release_work, when it does
 * @arrivals: requests of the peer not begun yet, in the order in which they came; of a
 *	control QP those whose handlers wait; under the lane's lock
 * @turn_work: control QP: handles those, one at a time
 * @beginning: somebody begins them, likewise
 * @next_sequence: of the next request
 * @requests: ours
 * @replies: to the peer's
 * @recvs: twice @nr_slots
 * @memory: of all messages, DMA-mapped in one piece
 * @memory_dma: its address
 * @memory_bytes: its size
 * @copies: memory of the copies, not mapped
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
		       u32 nr_slots, u32 max_bytes);
int kxfer_channel_post_recvs(struct kxfer_channel *channel);
void kxfer_channel_stop(struct kxfer_channel *channel);
void kxfer_channel_destroy(struct kxfer_channel *channel);

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
bool kxfer_channel_idle_locked(const struct kxfer_channel *channel);
struct kxfer_request *kxfer_channel_ask(struct kxfer_channel *channel,
					struct kxfer_waiter *waiter);
void kxfer_channel_leave(struct kxfer_channel *channel, struct kxfer_waiter *waiter);
bool kxfer_channel_overdue_locked(const struct kxfer_channel *channel,
				  unsigned int arrived_ms, unsigned int sent_ms);
void *kxfer_channel_request_payload(struct kxfer_request *request);
void *kxfer_channel_payload(struct kxfer_reply *reply);
void kxfer_channel_answer(struct kxfer_reply *reply,
			  enum kxfer_wire_status status, u32 length);

#endif /* KXFER_CHANNEL_H */
