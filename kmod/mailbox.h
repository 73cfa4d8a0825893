/* SPDX-License-Identifier: GPL-2.0 */
/* Messages that peers send to a session. See mailbox.c. */
#ifndef KXFER_MAILBOX_H
#define KXFER_MAILBOX_H

#include <linux/atomic.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct kxfer_active_job;
struct kxfer_job_list;

/**
 * struct kxfer_mailbox - messages that were not received, or RECVs that have none
 * @capacity: messages
 * @max_bytes: of the payload of one
 * @stride: bytes from one to the next
 * @nr_recvs: RECVs in flight; while not 0 it stays
 * @lock: over all below; bh-safe
 * @messages: ring of @capacity, each a struct kxfer_message and its payload
 * @head: next to be taken
 * @tail: next to be put
 * @recvs: waiting, by kxfer_active_job.lane_node; none while there is a message
 * @closed: withdrawn: nothing is put or received any more
 * @deadline_work: ends RECVs whose deadline has passed
 * @next_deadline_ns: for which it is due; 0: none
 */
struct kxfer_mailbox {
	u32 capacity;
	u32 max_bytes;
	u32 stride;
	atomic_t nr_recvs;
	spinlock_t lock;
	void *messages;
	u32 head;
	u32 tail;
	struct list_head recvs;
	bool closed;
	struct delayed_work deadline_work;
	u64 next_deadline_ns;
};

struct kxfer_mailbox *kxfer_mailbox_create(u32 capacity, u32 max_bytes);
void kxfer_mailbox_destroy(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_close(struct kxfer_mailbox *mailbox);
void kxfer_mailbox_drain(struct kxfer_mailbox *mailbox);
int kxfer_mailbox_deliver(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			  const void *payload, struct kxfer_job_list *ended);
void kxfer_mailbox_receive(struct kxfer_active_job *job, struct kxfer_job_list *ended);
bool kxfer_mailbox_stop(struct kxfer_active_job *job, struct kxfer_job_list *ended);

#endif /* KXFER_MAILBOX_H */
