/* SPDX-License-Identifier: GPL-2.0 */
/* Messages that peers send to a session. See mailbox.c. */
#ifndef KXFER_MAILBOX_H
#define KXFER_MAILBOX_H

#include <linux/atomic.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "job/job.h"

#define KXFER_MESSAGE_SIZE_MAX	256	/* bytes; leaves room for a longer struct kxfer_message */

struct kxfer_lane;
struct kxfer_incoming;
struct kxfer_mailbox;

/**
 * struct kxfer_stored - place for a message; the payload of a short one follows
 * @node: entry in kxfer_mailbox.free or .queue
 * @incoming: queued long message; NULL if the queued message is short
 * @lane: lane that a queued short message came by; only to compare, for it may have gone
 * @message: header of the queued message
 */
struct kxfer_stored {
	struct list_head node;
	struct kxfer_incoming *incoming;
	const void *lane;
	struct kxfer_message message;
};

/**
 * struct kxfer_incoming - a long message, whose payload is with its sender
 * @lane: lane that the OFFER came by
 * @message: header of the message
 * @mailbox: mailbox of the message; stays as long as the message waits, or is READ
 * @mailbox_node: entry in kxfer_mailbox.filling; under the mailbox's lock, as the next two
 * @stored: place of the message in the mailbox while it waits there, or NULL
 * @own: place that a message brings which may wait though the mailbox is full
 * @held: RECVs that have their messages, but complete after @job
 * @job: RECV that gets the message; NULL: none does; not valid when it has completed
 * @handed: called when the mailbox is done with the message: the RECV @job, in no list, gets
 *	it, or @job is NULL and @status says why; called with the mailbox's lock held
 */
struct kxfer_incoming {
	struct kxfer_lane *lane;
	struct kxfer_message message;
	struct kxfer_mailbox *mailbox;
	struct list_head mailbox_node;
	struct kxfer_stored *stored;
	struct kxfer_stored own;
	struct kxfer_job_list held;
	struct kxfer_active_job *job;
	void (*handed)(struct kxfer_incoming *incoming, struct kxfer_active_job *job, int status);
};

/**
 * struct kxfer_mailbox - messages without a RECV, or RECVs without a message
 * @max_bytes: most payload of a message
 * @message_size: bytes before the payload in the range of a RECV
 * @nr_recvs: number of RECVs in flight; the mailbox stays until it is 0
 * @lock: protects all members below; bh-safe
 * @memory: array of struct kxfer_stored, one for each message that the mailbox can hold
 * @free: struct kxfer_stored without a message
 * @nr_free: length of @free
 * @promised: places of @free that are promised to senders (kxfer_mailbox_promise())
 * @queue: struct kxfer_stored of messages not received, in order of arrival
 * @recvs: waiting RECVs, by kxfer_active_job.lane_node; empty while a message waits
 * @filling: struct kxfer_incoming with a RECV, by mailbox_node, in the order they got it; until
 *	the RECV has completed, and those that it held up
 * @closed: withdrawn: nothing is put or received any more
 * @deadlines: deadlines of waiting RECVs
 */
struct kxfer_mailbox {
	u32 max_bytes;
	u32 message_size;
	atomic_t nr_recvs;
	spinlock_t lock;
	void *memory;
	struct list_head free;
	u32 nr_free;
	u32 promised;
	struct list_head queue;
	struct list_head recvs;
	struct list_head filling;
	bool closed;
	struct kxfer_deadlines deadlines;
};

bool kxfer_mailbox_size_valid(u32 message_size);
struct kxfer_mailbox *kxfer_mailbox_create(u32 capacity, u32 max_bytes, u32 message_size);
void kxfer_mailbox_destroy(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_close(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_drain(struct kxfer_mailbox *mailbox);
int kxfer_mailbox_deliver(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			  const void *payload, const void *lane, bool promised,
			  struct kxfer_job_list *ended);
u32 kxfer_mailbox_promise(struct kxfer_mailbox *mailbox, u32 most);
void kxfer_mailbox_take_promise(struct kxfer_mailbox *mailbox, u32 nr);
int kxfer_mailbox_offer(struct kxfer_incoming *incoming, bool promised, bool waits,
			struct kxfer_job_list *ended);
bool kxfer_mailbox_take_back(struct kxfer_incoming *incoming);
void kxfer_mailbox_fetched(struct kxfer_incoming *incoming, u64 now_ns);
void kxfer_mailbox_give_back(struct kxfer_incoming *incoming, struct kxfer_job_list *ended);
void kxfer_mailbox_receive(struct kxfer_active_job *job, struct kxfer_job_list *ended);
void kxfer_mailbox_give_up(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_head(struct kxfer_active_job *job, const struct kxfer_message *message);
bool kxfer_mailbox_stop(struct kxfer_active_job *job, struct kxfer_job_list *ended);

#endif /* KXFER_MAILBOX_H */
