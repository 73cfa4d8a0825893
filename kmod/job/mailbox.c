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
 * A long message stays with its sender until a RECV has it READ into its region (fetch.c);
 * one that waits for that counts as any other. The mailbox knows it by its fetch, which is
 * the mailbox's while it is in @queue (@stored), and is handed to its lane under the
 * mailbox's lock: with a RECV, or with the reason why it gets none.
 *
 * There are messages or RECVs that wait, never both; both are served in order. A RECV
 * that waits is in the mailbox's list, and whoever takes it off under the mailbox's lock
 * completes it: the message that came, CANCEL, the deadline or the withdrawal. One that got
 * a long message is in no list: nothing ends it but the READ, or the end of the link, by
 * which it comes back to the front. A message behind a long one of the same lane goes into
 * its RECV at once, but that RECV completes with that of the long one (@held), so that who
 * takes completions in their order sees messages in theirs.
 *
 * The end of a mailbox, as a proof.
 *  1. kxfer_mailbox_close() ends what waits, and refuses from then on under the lock.
 *     No RECV comes either: the export is out of its session's table, or the session
 *     is being closed. Fetches that wait are their lane's again.
 *  2. A RECV that somebody took off the list before is completed by that one, without
 *     sleeping, or by a long message, which ends with its READ; a READ that does not end ends
 *     with the link, which is given up after KXFER_CLOSE_MS. Until then it is in its
 *     session's list of jobs, where CANCEL finds it, and then the mailbox by it. So
 *     kxfer_mailbox_drain() waits until @nr_recvs is 0, which goes down under that
 *     session's job_lock, behind leaving its list.
 *  3. Grants hold their exposure, and that its export, and so does a fetch until its lane
 *     has seen that it is the lane's again: a SEND that arrives late finds a closed
 *     mailbox. With the last reference on the export it is freed.
 *
 * Context: messages come in a kworker or a softirq. What copies to a region does so under
 * the lock, KXFER_MESSAGE_MAX bytes at most for each message.
 *
 * Lock order: session lock, job_lock of the session, lock of a lane, lock of the mailbox,
 * lock of a lane's fetches; lock of a link's grants, lock of the mailbox.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/wait_bit.h>

#include "base/fault.h"
#include "job/job.h"
#include "job/mailbox.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"

static void deadline_work(struct work_struct *work);

static void make_rooms(struct kxfer_mailbox *mailbox, u32 capacity, size_t stride)
{
	u32 i;

	for (i = 0; i < capacity; i++) {
		struct kxfer_stored *stored = mailbox->memory + i * stride;

		list_add_tail(&stored->node, &mailbox->free);
	}
}

/**
 * kxfer_mailbox_create() - an empty mailbox, charged to the caller
 * @capacity: messages, at least 1
 * @max_bytes: of payload of each
 *
 * May sleep. Return: it, or NULL without memory.
 */
struct kxfer_mailbox *kxfer_mailbox_create(u32 capacity, u32 max_bytes)
{
	size_t stride = sizeof(struct kxfer_stored) +
			ALIGN(min_t(u32, max_bytes, KXFER_MESSAGE_MAX), 8);
	struct kxfer_mailbox *mailbox;

	mailbox = kxfer_fault(MAILBOX) ? NULL :
		  kzalloc(sizeof(*mailbox), GFP_KERNEL_ACCOUNT);
	if (!mailbox)
		return NULL;
	mailbox->max_bytes = max_bytes;
	mailbox->memory = kxfer_fault(MAILBOX_MESSAGES) ? NULL :
			  kvcalloc(capacity, stride, GFP_KERNEL_ACCOUNT);
	if (!mailbox->memory) {
		kfree(mailbox);
		return NULL;
	}
	spin_lock_init(&mailbox->lock);
	INIT_LIST_HEAD(&mailbox->free);
	INIT_LIST_HEAD(&mailbox->queue);
	INIT_LIST_HEAD(&mailbox->recvs);
	INIT_LIST_HEAD(&mailbox->filling);
	kxfer_deadlines_init(&mailbox->deadlines, kxfer_wq, deadline_work);
	make_rooms(mailbox, capacity, stride);
	return mailbox;
}

/** kxfer_mailbox_destroy() - free a mailbox; it was never published, or is drained */
void kxfer_mailbox_destroy(struct kxfer_mailbox *mailbox)
{
	kvfree(mailbox->memory);
	kfree(mailbox);
}

/* It waits no more. Called with the lock held. */
static void unlist_recv(struct kxfer_active_job *job)
{
	list_del_init(&job->lane_node);
	kxfer_deadlines_remove(&job->mailbox->deadlines, &job->deadline);
}

/* Called with the lock held: the caller of this one completes the job. */
static void end_recv(struct kxfer_active_job *job, int status, struct kxfer_job_list *ended)
{
	unlist_recv(job);
	job->status = status;
	kxfer_job_list_add(ended, job);
}

/* The first RECV that has room, off the list; those before it end. With the lock held. */
static struct kxfer_active_job *take_recv(struct kxfer_mailbox *mailbox, u32 bytes,
					  struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;

	while ((job = list_first_entry_or_null(&mailbox->recvs, struct kxfer_active_job,
					       lane_node))) {
		if (job->length >= sizeof(struct kxfer_message) + bytes) {
			unlist_recv(job);
			return job;
		}
		end_recv(job, -EMSGSIZE, ended);
	}
	return NULL;
}

/* It has its message, and ends behind those of the lane before it. With the lock held. */
static void end_in_order(struct kxfer_mailbox *mailbox, struct kxfer_active_job *job,
			 const void *lane, struct kxfer_job_list *ended)
{
	struct kxfer_incoming *incoming;

	list_for_each_entry_reverse(incoming, &mailbox->filling, mailbox_node) {
		if (incoming->lane == lane) {
			kxfer_job_list_add(&incoming->held, job);
			return;
		}
	}
	kxfer_job_list_add(ended, job);
}

/* A short message goes into the region of a RECV. Called with the lock held. */
static void bring(struct kxfer_mailbox *mailbox, struct kxfer_active_job *job,
		  const struct kxfer_message *message, const void *payload,
		  const void *lane, struct kxfer_job_list *ended)
{
	const struct kxfer_memory *memory = job->region->memory;

	job->length = sizeof(*message) + message->bytes;
	kxfer_memory_copy_to(memory, job->offset, message, sizeof(*message));
	kxfer_memory_copy_to(memory, job->offset + sizeof(*message), payload, message->bytes);
	end_in_order(mailbox, job, lane, ended);
}

/* A long one is to. Called with the lock held. */
static void begin_read(struct kxfer_mailbox *mailbox, struct kxfer_incoming *incoming,
		       struct kxfer_active_job *job)
{
	list_add_tail(&incoming->mailbox_node, &mailbox->filling);
	incoming->handed(incoming, job, 0);
}

/* Called with the lock held. */
static void unstore(struct kxfer_mailbox *mailbox, struct kxfer_stored *stored)
{
	if (stored->incoming)
		stored->incoming->stored = NULL;
	list_move(&stored->node, &mailbox->free);
}

/* Messages that wait go to RECVs that wait. Called with the lock held. */
static void serve(struct kxfer_mailbox *mailbox, struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;
	struct kxfer_stored *stored;
	struct kxfer_incoming *incoming;

	while ((stored = list_first_entry_or_null(&mailbox->queue, struct kxfer_stored, node))) {
		job = take_recv(mailbox, stored->message.bytes, ended);
		if (!job)
			return;
		incoming = stored->incoming;
		if (!incoming)
			bring(mailbox, job, &stored->message, stored->payload, stored->lane,
			      ended);
		unstore(mailbox, stored);
		if (incoming)
			begin_read(mailbox, incoming, job);
	}
}

/* Return: 0, or why nothing of that length is taken. Called with the lock held. */
static int check_room(const struct kxfer_mailbox *mailbox)
{
	if (mailbox->closed)
		return -EKEYREVOKED;
	return list_empty(&mailbox->free) ? -EAGAIN : 0;
}

/* There is room for it. Called with the lock held. Return: where it is. */
static struct kxfer_stored *store(struct kxfer_mailbox *mailbox,
				  const struct kxfer_message *message)
{
	struct kxfer_stored *stored = list_first_entry(&mailbox->free, struct kxfer_stored,
						       node);

	stored->message = *message;
	stored->incoming = NULL;
	list_move_tail(&stored->node, &mailbox->queue);
	return stored;
}

/**
 * kxfer_mailbox_deliver() - a message has come
 * @mailbox: perhaps closed
 * @message: all that is known of it
 * @payload: its bytes
 * @lane: that it came by
 * @ended: gets RECVs that end by it, for the caller to complete without locks
 *
 * Does not sleep. Return: 0, -EAGAIN: it is full, -EINVAL: the message is longer than it
 * takes, or -EKEYREVOKED.
 */
int kxfer_mailbox_deliver(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			  const void *payload, const void *lane,
			  struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;
	struct kxfer_stored *stored;
	int ret;

	if (message->bytes > mailbox->max_bytes)
		return -EINVAL;
	spin_lock_bh(&mailbox->lock);
	ret = check_room(mailbox);
	if (ret)
		goto out;
	job = take_recv(mailbox, message->bytes, ended);
	if (job) {
		bring(mailbox, job, message, payload, lane, ended);
	} else {
		stored = store(mailbox, message);
		stored->lane = lane;
		memcpy(stored->payload, payload, message->bytes);
	}
out:
	spin_unlock_bh(&mailbox->lock);
	return ret;
}

/**
 * kxfer_mailbox_offer() - a long message is there to be READ
 * @incoming: with a reference on its exposure
 * @ended: as of kxfer_mailbox_deliver(), and the values too
 *
 * Unless it is refused its READ may be over when this returns.
 */
int kxfer_mailbox_offer(struct kxfer_incoming *incoming, struct kxfer_job_list *ended)
{
	struct kxfer_mailbox *mailbox = incoming->mailbox;
	struct kxfer_active_job *job;
	int ret;

	if (incoming->message.bytes > mailbox->max_bytes)
		return -EINVAL;
	spin_lock_bh(&mailbox->lock);
	ret = check_room(mailbox);
	if (ret)
		goto out;
	job = take_recv(mailbox, incoming->message.bytes, ended);
	if (job) {
		begin_read(mailbox, incoming, job);
	} else {
		incoming->stored = store(mailbox, &incoming->message);
		incoming->stored->incoming = incoming;
	}
out:
	spin_unlock_bh(&mailbox->lock);
	return ret;
}

/**
 * kxfer_mailbox_take_back() - a long message is not to be READ
 * @incoming: with a reference on its exposure
 *
 * Called with the lock of its lane held. Return: false if it waits no more: it was handed
 * to the lane.
 */
bool kxfer_mailbox_take_back(struct kxfer_incoming *incoming)
{
	bool waiting;

	spin_lock_bh(&incoming->mailbox->lock);
	waiting = incoming->stored;
	if (waiting)
		unstore(incoming->mailbox, incoming->stored);
	spin_unlock_bh(&incoming->mailbox->lock);
	return waiting;
}

/* What ends with a long message ends behind those of its lane before it. With the lock held. */
static struct kxfer_job_list *ends_with(struct kxfer_mailbox *mailbox,
					struct kxfer_incoming *incoming,
					struct kxfer_job_list *ended)
{
	struct kxfer_incoming *before = incoming;

	list_for_each_entry_continue_reverse(before, &mailbox->filling, mailbox_node)
		if (before->lane == incoming->lane)
			return &before->held;
	return ended;
}

/* Those held behind a long message, as they are. With the lock held. */
static void take_held(struct kxfer_incoming *incoming, struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job, *next;

	for (job = incoming->held.first; job; job = next) {
		next = job->next;
		kxfer_job_list_add(ended, job);
	}
	incoming->held.first = NULL;
	list_del_init(&incoming->mailbox_node);
}

/**
 * kxfer_mailbox_fetched() - the RECV of a long message has it, or ends with its status
 * @incoming: with a RECV, which keeps the mailbox
 * @ended: gets it, and those that it held up, unless one before it is still under way
 *
 * READs of a lane end in their order, but one that cannot be begun ends at once.
 */
void kxfer_mailbox_fetched(struct kxfer_incoming *incoming, struct kxfer_job_list *ended)
{
	struct kxfer_mailbox *mailbox = incoming->mailbox;

	spin_lock_bh(&mailbox->lock);
	ended = ends_with(mailbox, incoming, ended);
	kxfer_job_list_add(ended, incoming->job);
	take_held(incoming, ended);
	spin_unlock_bh(&mailbox->lock);
}

static void end_late(struct kxfer_deadline *deadline, void *ended)
{
	end_recv(container_of(deadline, struct kxfer_active_job, deadline), -ETIMEDOUT, ended);
}

/* Return: whether there may be more to end. */
static bool end_late_recvs(struct kxfer_mailbox *mailbox)
{
	struct kxfer_job_list ended = {};
	u64 now_ns = ktime_get_ns();
	bool more;

	spin_lock_bh(&mailbox->lock);
	more = kxfer_deadlines_end_some(&mailbox->deadlines, now_ns, end_late, &ended);
	spin_unlock_bh(&mailbox->lock);
	kxfer_job_complete_all(&ended, -ETIMEDOUT, now_ns);
	return more;
}

static void deadline_work(struct work_struct *work)
{
	struct kxfer_mailbox *mailbox =
		container_of(to_delayed_work(work), struct kxfer_mailbox, deadlines.work);

	kxfer_delay(MAILBOX_DEADLINE_WORK);
	while (end_late_recvs(mailbox))
		cond_resched();
}

/* A RECV that is in the list. Called with the lock held. */
static void serve_recv(struct kxfer_mailbox *mailbox, struct kxfer_active_job *job,
		       struct kxfer_job_list *ended)
{
	if (mailbox->closed) {
		end_recv(job, -EKEYREVOKED, ended);
		return;
	}
	serve(mailbox, ended);
	/* As long as the lock is held nobody else completes it. */
	if (!list_empty(&job->lane_node))
		kxfer_deadlines_add(&mailbox->deadlines, &job->deadline);
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

	spin_lock_bh(&mailbox->lock);
	list_add_tail(&job->lane_node, &mailbox->recvs);
	serve_recv(mailbox, job, ended);
	spin_unlock_bh(&mailbox->lock);
}

/**
 * kxfer_mailbox_give_back() - the link of a long message has ended: its RECV waits again
 * @incoming: with a RECV, which keeps the mailbox; no device knows its region
 * @ended: gets that if it does not wait, and those that it held up
 */
void kxfer_mailbox_give_back(struct kxfer_incoming *incoming, struct kxfer_job_list *ended)
{
	struct kxfer_mailbox *mailbox = incoming->mailbox;
	struct kxfer_active_job *job = incoming->job;

	spin_lock_bh(&mailbox->lock);
	list_add(&job->lane_node, &mailbox->recvs);
	if (job->stopped)
		end_recv(job, -ECANCELED, ended);
	else
		serve_recv(mailbox, job, ended);
	take_held(incoming, ends_with(mailbox, incoming, ended));
	spin_unlock_bh(&mailbox->lock);
}

/**
 * kxfer_mailbox_stop() - cancel a RECV
 * @job: of a session whose job_lock the caller holds, in its list of jobs
 * @ended: gets it if it was waiting
 *
 * One that is being filled is, but if its link ends, so does it. Return: whether it was waiting.
 */
bool kxfer_mailbox_stop(struct kxfer_active_job *job, struct kxfer_job_list *ended)
{
	bool waiting;

	spin_lock_bh(&job->mailbox->lock);
	waiting = !list_empty(&job->lane_node);
	if (waiting)
		end_recv(job, -ECANCELED, ended);
	else
		job->stopped = true;
	spin_unlock_bh(&job->mailbox->lock);
	return waiting;
}

/**
 * kxfer_mailbox_give_up() - give up the links that the RECVs of a mailbox wait for
 * @mailbox: of the caller, or of a RECV of a session whose job_lock the caller holds
 *
 * A RECV may have its message and wait for the one before, which comes by another link.
 */
void kxfer_mailbox_give_up(struct kxfer_mailbox *mailbox)
{
	struct kxfer_incoming *incoming;

	spin_lock_bh(&mailbox->lock);
	list_for_each_entry(incoming, &mailbox->filling, mailbox_node)
		kxfer_link_fail(incoming->lane->link, -ETIMEDOUT);
	spin_unlock_bh(&mailbox->lock);
}

/** kxfer_mailbox_close() - end what waits; nothing is put or received any more */
void kxfer_mailbox_close(struct kxfer_mailbox *mailbox)
{
	struct kxfer_stored *stored, *next_stored;
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list ended = {};

	spin_lock_bh(&mailbox->lock);
	mailbox->closed = true;
	list_for_each_entry_safe(stored, next_stored, &mailbox->queue, node) {
		struct kxfer_incoming *incoming = stored->incoming;

		unstore(mailbox, stored);
		if (incoming)
			incoming->handed(incoming, NULL, -EKEYREVOKED);
	}
	list_for_each_entry_safe(job, next, &mailbox->recvs, lane_node)
		end_recv(job, -EKEYREVOKED, &ended);
	spin_unlock_bh(&mailbox->lock);
	kxfer_job_complete_all(&ended, -EKEYREVOKED, ktime_get_ns());
}

/**
 * kxfer_mailbox_drain() - wait until no job knows a closed mailbox
 * @mailbox: closed
 *
 * Sleeps, for READs from peers as well: see 2. above. After KXFER_CLOSE_MS their links are
 * given up.
 */
void kxfer_mailbox_drain(struct kxfer_mailbox *mailbox)
{
	if (!wait_var_event_timeout(&mailbox->nr_recvs, !atomic_read(&mailbox->nr_recvs),
				    msecs_to_jiffies(KXFER_CLOSE_MS))) {
		kxfer_mailbox_give_up(mailbox);
		wait_var_event(&mailbox->nr_recvs, !atomic_read(&mailbox->nr_recvs));
	}
	cancel_delayed_work_sync(&mailbox->deadlines.work);
}
