// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes: messages that peers send to a session.
 *
 * A mailbox is an export without a region (export.c): names, rules, grants and
 * withdrawal are those of exports. Peers reach it by no work request of theirs but the
 * messages of a lane's channel, so a holder that does not let go reaches nothing.
 *
 * A message is stored where it arrives, or goes right into the region of a RECV that
 * waits. What can be stored was allocated with the mailbox: nothing that a peer sends
 * makes it grow, and what finds it full is refused.
 *
 * There are messages or RECVs that wait, never both; both are served in order. A RECV
 * that waits is in the mailbox's list, and whoever takes it off under the mailbox's lock
 * completes it: the message that came, CANCEL, the deadline or the withdrawal.
 *
 * The end of a mailbox, as a proof.
 *  1. kxfer_mailbox_close() ends what waits, and refuses from then on under the lock.
 *     No RECV comes either: the export is out of its session's table, or the session
 *     is being closed.
 *  2. A RECV that somebody took off the list before is completed by that one, without
 *     sleeping. Until then it is in its session's list of jobs, where CANCEL finds it,
 *     and then the mailbox by it. So kxfer_mailbox_drain() waits until @nr_recvs is 0,
 *     which goes down under that session's job_lock, behind leaving its list.
 *  3. Grants hold their exposure, and that its export: a SEND that arrives late finds a
 *     closed mailbox. With the last reference on the export it is freed.
 *
 * Context: messages come in a kworker or a softirq. What copies to a region does so under
 * the lock, KXFER_MESSAGE_MAX bytes at most for each message.
 *
 * Lock order: session lock, job_lock of the session, lock of a lane, lock of the mailbox;
 * lock of a link's grants, lock of the mailbox.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/wait_bit.h>

#include "fault.h"
#include "job.h"
#include "link.h"
#include "mailbox.h"
#include "memory.h"
#include "region.h"

static void deadline_work(struct work_struct *work);

/**
 * kxfer_mailbox_create() - an empty mailbox, charged to the caller
 * @capacity: messages, at least 1
 * @max_bytes: of payload of each
 *
 * May sleep. Return: it, or NULL without memory.
 */
struct kxfer_mailbox *kxfer_mailbox_create(u32 capacity, u32 max_bytes)
{
	struct kxfer_mailbox *mailbox;

	mailbox = kxfer_fault(MAILBOX) ? NULL :
		  kzalloc(sizeof(*mailbox), GFP_KERNEL_ACCOUNT);
	if (!mailbox)
		return NULL;
	mailbox->capacity = capacity;
	mailbox->max_bytes = max_bytes;
	mailbox->stride = sizeof(struct kxfer_message) + ALIGN(max_bytes, 8);
	mailbox->messages = kxfer_fault(MAILBOX_MESSAGES) ? NULL :
			    kvcalloc(capacity, mailbox->stride, GFP_KERNEL_ACCOUNT);
	if (!mailbox->messages) {
		kfree(mailbox);
		return NULL;
	}
	spin_lock_init(&mailbox->lock);
	INIT_LIST_HEAD(&mailbox->recvs);
	INIT_DELAYED_WORK(&mailbox->deadline_work, deadline_work);
	return mailbox;
}

/** kxfer_mailbox_destroy() - free a mailbox; it was never published, or is drained */
void kxfer_mailbox_destroy(struct kxfer_mailbox *mailbox)
{
	kvfree(mailbox->messages);
	kfree(mailbox);
}

static struct kxfer_message *message_at(const struct kxfer_mailbox *mailbox, u32 n)
{
	return mailbox->messages + (size_t)(n % mailbox->capacity) * mailbox->stride;
}

/* Called with the lock held: the caller of this one completes the job. */
static void end_recv(struct kxfer_active_job *job, int status, struct kxfer_job_list *ended)
{
	list_del_init(&job->lane_node);
	job->status = status;
	kxfer_job_list_add(ended, job);
}

/* Into the region of a RECV. Return: 0, or -EMSGSIZE: it has not so much room. */
static int bring(struct kxfer_active_job *job, const struct kxfer_message *message,
		 const void *payload)
{
	const struct kxfer_memory *memory = job->region->memory;

	if (job->length < sizeof(*message) + message->bytes)
		return -EMSGSIZE;
	job->length = sizeof(*message) + message->bytes;
	kxfer_memory_copy_to(memory, job->offset, message, sizeof(*message));
	kxfer_memory_copy_to(memory, job->offset + sizeof(*message), payload, message->bytes);
	return 0;
}

/* To the first RECV that has room; those before it end. Called with the lock held. */
static bool hand_to_recv(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			 const void *payload, struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;
	int ret;

	while ((job = list_first_entry_or_null(&mailbox->recvs, struct kxfer_active_job,
					       lane_node))) {
		ret = bring(job, message, payload);
		end_recv(job, ret, ended);
		if (!ret)
			return true;
	}
	return false;
}

/**
 * kxfer_mailbox_deliver() - a message has come
 * @mailbox: perhaps closed
 * @message: all that is known of it
 * @payload: its bytes
 * @ended: gets RECVs that end by it, for the caller to complete without locks
 *
 * Does not sleep. Return: 0, -EAGAIN: it is full, -EINVAL: the message is longer than it
 * takes, or -EKEYREVOKED.
 */
int kxfer_mailbox_deliver(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			  const void *payload, struct kxfer_job_list *ended)
{
	struct kxfer_message *stored;
	int ret = 0;

	if (message->bytes > mailbox->max_bytes)
		return -EINVAL;
	spin_lock_bh(&mailbox->lock);
	if (mailbox->closed) {
		ret = -EKEYREVOKED;
	} else if (mailbox->tail - mailbox->head == mailbox->capacity) {
		ret = -EAGAIN;
	} else if (!hand_to_recv(mailbox, message, payload, ended)) {
		stored = message_at(mailbox, mailbox->tail++);
		*stored = *message;
		memcpy(stored + 1, payload, message->bytes);
	}
	spin_unlock_bh(&mailbox->lock);
	return ret;
}

/* Called with the lock held. */
static void arm_deadline(struct kxfer_mailbox *mailbox, u64 deadline_ns)
{
	if (!deadline_ns ||
	    (mailbox->next_deadline_ns && mailbox->next_deadline_ns <= deadline_ns))
		return;
	mailbox->next_deadline_ns = deadline_ns;
	mod_delayed_work(kxfer_wq, &mailbox->deadline_work,
			 kxfer_job_deadline_delay(deadline_ns));
}

static void deadline_work(struct work_struct *work)
{
	struct kxfer_mailbox *mailbox =
		container_of(to_delayed_work(work), struct kxfer_mailbox, deadline_work);
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list ended = {};
	u64 now = ktime_get_ns();

	spin_lock_bh(&mailbox->lock);
	mailbox->next_deadline_ns = 0;
	list_for_each_entry_safe(job, next, &mailbox->recvs, lane_node) {
		if (job->deadline_ns && job->deadline_ns <= now)
			end_recv(job, -ETIMEDOUT, &ended);
		else
			arm_deadline(mailbox, job->deadline_ns);
	}
	spin_unlock_bh(&mailbox->lock);
	kxfer_job_complete_all(&ended, -ETIMEDOUT, now);
}

/**
 * kxfer_mailbox_receive() - a RECV that was accepted: give it a message, or have it wait
 * @job: in its session's list, and in no other
 * @ended: gets it if it does not wait
 *
 * Called with that session's job_lock held, and perhaps the lock of a lane.
 */
void kxfer_mailbox_receive(struct kxfer_active_job *job, struct kxfer_job_list *ended)
{
	struct kxfer_mailbox *mailbox = job->mailbox;
	const struct kxfer_message *message;

	spin_lock_bh(&mailbox->lock);
	list_add_tail(&job->lane_node, &mailbox->recvs);
	if (mailbox->closed) {
		end_recv(job, -EKEYREVOKED, ended);
	} else if (mailbox->tail != mailbox->head) {
		message = message_at(mailbox, mailbox->head);
		if (hand_to_recv(mailbox, message, message + 1, ended))
			mailbox->head++;
	} else {
		arm_deadline(mailbox, job->deadline_ns);
	}
	spin_unlock_bh(&mailbox->lock);
}

/**
 * kxfer_mailbox_stop() - cancel a RECV
 * @job: of a session whose job_lock the caller holds, in its list of jobs
 * @ended: gets it if it was waiting
 *
 * Return: whether it was.
 */
bool kxfer_mailbox_stop(struct kxfer_active_job *job, struct kxfer_job_list *ended)
{
	bool waiting;

	spin_lock_bh(&job->mailbox->lock);
	waiting = !list_empty(&job->lane_node);
	if (waiting)
		end_recv(job, -ECANCELED, ended);
	spin_unlock_bh(&job->mailbox->lock);
	return waiting;
}

/** kxfer_mailbox_close() - end what waits; nothing is put or received any more */
void kxfer_mailbox_close(struct kxfer_mailbox *mailbox)
{
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list ended = {};

	spin_lock_bh(&mailbox->lock);
	mailbox->closed = true;
	list_for_each_entry_safe(job, next, &mailbox->recvs, lane_node)
		end_recv(job, -EKEYREVOKED, &ended);
	spin_unlock_bh(&mailbox->lock);
	kxfer_job_complete_all(&ended, -EKEYREVOKED, ktime_get_ns());
}

/** kxfer_mailbox_drain() - wait until no job knows a closed mailbox; sleeps, not for peers */
void kxfer_mailbox_drain(struct kxfer_mailbox *mailbox)
{
	wait_var_event(&mailbox->nr_recvs, !atomic_read(&mailbox->nr_recvs));
	cancel_delayed_work_sync(&mailbox->deadline_work);
}
