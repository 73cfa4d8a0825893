/* SPDX-License-Identifier: GPL-2.0 */
/* Messages that peers send to a session. See mailbox.c. */
#ifndef KXFER_MAILBOX_H
#define KXFER_MAILBOX_H

#include <linux/atomic.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "job/job.h"

struct kxfer_lane;
struct kxfer_mailbox;
struct kxfer_stored;

/**
 * struct kxfer_incoming - a long message, whose payload is with its sender
 * @lane: that it came by
 * @message: all that is known of it
 * @mailbox: stays as long as the message waits, or is READ
 * @mailbox_node: in kxfer_mailbox.filling, under its lock, as the next two
 * @stored: its place in the mailbox while it waits there, or NULL
 * @held: RECVs that have their messages, and end behind @job
 * @job: the RECV that gets it; NULL: none does
 * @handed: the mailbox is done with it, which waited there or was to: @job, in no list, gets
 *	it; or none does, and @status says why; called with the mailbox's lock held
 */
struct kxfer_incoming {
	struct kxfer_lane *lane;
	struct kxfer_message message;
	struct kxfer_mailbox *mailbox;
	struct list_head mailbox_node;
	struct kxfer_stored *stored;
	struct kxfer_job_list held;
	struct kxfer_active_job *job;
	void (*handed)(struct kxfer_incoming *incoming, struct kxfer_active_job *job, int status);
};

/**
 * struct kxfer_stored - room for a message
 * @node: in kxfer_mailbox.free or .queue
 * @incoming: queued: of a long message; else NULL
 * @lane: queued: the one that it came by, to be compared only: it may have gone
 * @message: queued: all that is known of it
 * @payload: of one that is not long
 */
struct kxfer_stored {
	struct list_head node;
	struct kxfer_incoming *incoming;
	const void *lane;
	struct kxfer_message message;
	u8 payload[];
};

/**
 * struct kxfer_mailbox - messages that were not received, or RECVs that have none
 * @max_bytes: of the payload of a message
 * @nr_recvs: RECVs in flight; while not 0 it stays
 * @lock: over all below; bh-safe
 * @memory: of as many struct kxfer_stored as it holds messages
 * @free: those of no message
 * @queue: those of messages not received, as they came
 * @recvs: waiting, by kxfer_active_job.lane_node; none while there is a message
 * @filling: struct kxfer_incoming with a RECV, as they got it, by mailbox_node
 * @closed: withdrawn: nothing is put or received any more
 * @deadlines: of RECVs that wait
 */
struct kxfer_mailbox {
	u32 max_bytes;
	atomic_t nr_recvs;
	spinlock_t lock;
	void *memory;
	struct list_head free;
	struct list_head queue;
	struct list_head recvs;
	struct list_head filling;
	bool closed;
	struct kxfer_deadlines deadlines;
};

struct kxfer_mailbox *kxfer_mailbox_create(u32 capacity, u32 max_bytes);
void kxfer_mailbox_destroy(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_close(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_drain(struct kxfer_mailbox *mailbox);
int kxfer_mailbox_deliver(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			  const void *payload, const void *lane,
			  struct kxfer_job_list *ended);
int kxfer_mailbox_offer(struct kxfer_incoming *incoming, struct kxfer_job_list *ended);
bool kxfer_mailbox_take_back(struct kxfer_incoming *incoming);
void kxfer_mailbox_fetched(struct kxfer_incoming *incoming, struct kxfer_job_list *ended);
void kxfer_mailbox_give_back(struct kxfer_incoming *incoming, struct kxfer_job_list *ended);
void kxfer_mailbox_receive(struct kxfer_active_job *job, struct kxfer_job_list *ended);
void kxfer_mailbox_give_up(struct kxfer_mailbox *mailbox);
bool kxfer_mailbox_stop(struct kxfer_active_job *job, struct kxfer_job_list *ended);

#endif /* KXFER_MAILBOX_H */
