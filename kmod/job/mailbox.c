// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes: messages that peers send to a session.
 *
 * A mailbox is an export without a region (export.c): names, rules, grants and
 * withdrawal are those of exports. The only work requests by which a peer reaches it are the
 * messages of a lane's channel, so a peer that does not let go of a grant reaches nothing.
 *
 * A message is stored on arrival, or goes right into the region of a waiting RECV. The room
 * for messages is allocated with the mailbox: nothing that a peer sends makes it grow, and
 * a message that finds it full is refused.
 *
 * A message that may wait (KXFER_JOB_F_WAIT) comes like a long one, whatever its length, and
 * brings its own place (@own): the fetch of its lane. So it joins @queue, in order, though the
 * mailbox is full, and takes no memory of it.
 *
 * Places may be promised to a sender beforehand (share/eager.c): its messages then find one,
 * whatever others send. All others find the mailbox full when no more is left than was promised.
 *
 * A long message stays with its sender until it is READ into the region of a RECV (fetch.c);
 * while it waits for that it takes a place like any other. The mailbox knows it by its
 * fetch, which belongs to the mailbox while it is in @queue (@stored). Under the mailbox's
 * lock it is handed to its lane: with a RECV, or with the reason why it gets none.
 *
 * Either messages wait or RECVs, never both, and both are served in order. A waiting RECV is
 * in the mailbox's list. The context that takes it off under the mailbox's lock completes
 * it: the arrival of a message, CANCEL, the deadline or the withdrawal. A RECV that got a
 * long message is off the list: it ends with the READ, or returns to the front of the list
 * when the link ends. A message after a long one of the same lane goes into its RECV at
 * once, but that RECV completes with the one of the long message (@held). RECVs that find
 * messages when they come complete in one hold of job_lock (batch.c). So completions come in the
 * order of the messages of a lane.
 *
 * The end of a mailbox, as a proof.
 *  1. kxfer_mailbox_close() ends what waits; from then on everything is refused, under the
 *     lock. No RECV comes either: the export is out of its session's table, or the session
 *     is being closed. Waiting fetches belong to their lanes again.
 *  2. A RECV that was taken off the list before is completed by the context that took it,
 *     without sleeping, or by a long message, which ends with its READ. A READ that does not
 *     end ends with the link, which is given up after KXFER_CLOSE_MS. Until then the RECV is
 *     in its session's list of jobs, where CANCEL finds it, and by it the mailbox. So
 *     kxfer_mailbox_drain() waits until @nr_recvs is 0; @nr_recvs is decremented under that
 *     session's job_lock, after the RECV has left the list. A long message is in @filling a
 *     little longer, for what it holds up; then only its fetch keeps the mailbox, by 3.
 *  3. A grant holds its exposure, and the exposure its export. A fetch holds the exposure
 *     too, until its lane has seen that it owns the fetch again. So a SEND that arrives late
 *     finds a closed mailbox. The mailbox is freed with the last reference on the export.
 *
 * Context: messages arrive in a kworker or a softirq. Copies to a region are made under the
 * lock, KXFER_MESSAGE_EAGER_MAX bytes at most for each message.
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
#include "job/completion.h"
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
	mailbox->nr_free = capacity;
}

/** kxfer_mailbox_size_valid() - whether sizeof(struct kxfer_message) of a caller is one, or 0 */
bool kxfer_mailbox_size_valid(u32 message_size)
{
	return !message_size || (message_size >= KXFER_MESSAGE_SIZE_MIN &&
				 message_size <= KXFER_MESSAGE_SIZE_MAX && !(message_size % 8));
}

/**
 * kxfer_mailbox_create() - an empty mailbox, charged to the caller
 * @capacity: messages that it can hold, at least 1
 * @max_bytes: most payload of a message
 * @message_size: sizeof(struct kxfer_message) as the caller knows it; 0: as it was at first
 *
 * May sleep. Return: the mailbox, or NULL without memory.
 */
struct kxfer_mailbox *kxfer_mailbox_create(u32 capacity, u32 max_bytes, u32 message_size)
{
	size_t stride = sizeof(struct kxfer_stored) +
			ALIGN(min_t(u32, max_bytes, KXFER_MESSAGE_EAGER_MAX), 8);
	struct kxfer_mailbox *mailbox;

	mailbox = kxfer_try_alloc(MAILBOX, kzalloc_obj(*mailbox, GFP_KERNEL_ACCOUNT));
	if (!mailbox)
		return NULL;
	mailbox->max_bytes = max_bytes;
	mailbox->message_size = message_size ?: KXFER_MESSAGE_SIZE_MIN;
	mailbox->memory = kxfer_try_alloc(MAILBOX_MESSAGES,
					  kvcalloc(capacity, stride, GFP_KERNEL_ACCOUNT));
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

/* A RECV waits no more. Called with the lock held. */
static void unlist_recv(struct kxfer_active_job *job)
{
	list_del_init(&job->lane_node);
	kxfer_deadlines_remove(&job->mailbox->deadlines, &job->deadline);
}

/* Called with the lock held. The job goes to @ended, for the caller to complete. */
static void end_recv(struct kxfer_active_job *job, int status, struct kxfer_job_list *ended)
{
	unlist_recv(job);
	job->status = status;
	kxfer_job_list_add(ended, job);
}

/* Take the first RECV with enough room; those before it end. Called with the lock held. */
static struct kxfer_active_job *take_recv(struct kxfer_mailbox *mailbox, u32 bytes,
					  struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;

	while ((job = list_first_entry_or_null(&mailbox->recvs, struct kxfer_active_job,
					       lane_node))) {
		if (job->length >= mailbox->message_size + bytes) {
			unlist_recv(job);
			return job;
		}
		end_recv(job, -EMSGSIZE, ended);
	}
	return NULL;
}

/* End a RECV that has its message after earlier ones of the lane. Called with the lock held. */
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

/**
 * kxfer_mailbox_head() - put what comes before the payload into the range of a RECV
 * @job: RECV that gets the message; its length becomes that of both
 * @message: header of the message; the caller gets what it knows of it
 */
void kxfer_mailbox_head(struct kxfer_active_job *job, const struct kxfer_message *message)
{
	static const u8 unknown[KXFER_MESSAGE_SIZE_MAX - KXFER_MESSAGE_SIZE_MIN];
	const struct kxfer_memory *memory = job->region->memory;
	u32 size = job->mailbox->message_size, known = min_t(u32, size, sizeof(*message));

	kxfer_memory_copy_to(memory, job->offset, message, known);
	kxfer_memory_copy_to(memory, job->offset + known, unknown, size - known);
	job->length = size + message->bytes;
}

/* Copy a short message into the region of a RECV. Called with the lock held. */
static void bring(struct kxfer_mailbox *mailbox, struct kxfer_active_job *job,
		  const struct kxfer_message *message, const void *payload,
		  const void *lane, struct kxfer_job_list *ended)
{
	kxfer_mailbox_head(job, message);
	kxfer_memory_copy_to(job->region->memory, job->payload, payload, message->bytes);
	end_in_order(mailbox, job, lane, ended);
}

/* Have a long message READ into @job. Called with the lock held. */
static void begin_read(struct kxfer_mailbox *mailbox, struct kxfer_incoming *incoming,
		       struct kxfer_active_job *job)
{
	list_add_tail(&incoming->mailbox_node, &mailbox->filling);
	incoming->handed(incoming, job, 0);
}

/* Called with the lock held. */
static void unstore(struct kxfer_mailbox *mailbox, struct kxfer_stored *stored)
{
	struct kxfer_incoming *incoming = stored->incoming;

	if (incoming)
		incoming->stored = NULL;
	if (incoming && stored == &incoming->own) {
		list_del_init(&stored->node);
		return;
	}
	list_move(&stored->node, &mailbox->free);
	mailbox->nr_free++;
}

/* Hand waiting messages to waiting RECVs. Called with the lock held. */
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
			bring(mailbox, job, &stored->message, stored + 1, stored->lane, ended);
		unstore(mailbox, stored);
		if (incoming)
			begin_read(mailbox, incoming, job);
	}
}

/* Return: 0, or why no message is taken. Called with the lock held. */
static int check_room(const struct kxfer_mailbox *mailbox)
{
	if (mailbox->closed)
		return -EKEYREVOKED;
	return mailbox->nr_free == mailbox->promised ? -EAGAIN : 0;
}

/* Store a message; there is room. Called with the lock held. Return: its place. */
static struct kxfer_stored *store(struct kxfer_mailbox *mailbox,
				  const struct kxfer_message *message)
{
	struct kxfer_stored *stored = list_first_entry(&mailbox->free, struct kxfer_stored,
						       node);

	stored->message = *message;
	stored->incoming = NULL;
	list_move_tail(&stored->node, &mailbox->queue);
	mailbox->nr_free--;
	return stored;
}

/* Store a long message, in its own place if there is no other. Called with the lock held. */
static void store_incoming(struct kxfer_mailbox *mailbox, struct kxfer_incoming *incoming)
{
	struct kxfer_stored *stored = &incoming->own;

	if (check_room(mailbox)) {
		stored->message = incoming->message;
		list_add_tail(&stored->node, &mailbox->queue);
	} else {
		stored = store(mailbox, &incoming->message);
	}
	stored->incoming = incoming;
	incoming->stored = stored;
}

/**
 * kxfer_mailbox_deliver() - take a message that has arrived
 * @mailbox: mailbox of the message; may be closed
 * @message: header of the message
 * @payload: bytes of the message
 * @lane: lane that the message came by
 * @promised: a place was promised for the message; the promise is kept, or void
 * @ended: gets RECVs that end, for the caller to complete without locks
 *
 * Does not sleep. Return: 0; -EAGAIN: the mailbox is full; -EINVAL: the message is longer
 * than it takes; -EKEYREVOKED: it is closed.
 */
int kxfer_mailbox_deliver(struct kxfer_mailbox *mailbox, const struct kxfer_message *message,
			  const void *payload, const void *lane, bool promised,
			  struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job;
	struct kxfer_stored *stored;
	int ret;

	spin_lock_bh(&mailbox->lock);
	mailbox->promised -= promised;
	ret = message->bytes > mailbox->max_bytes ? -EINVAL : check_room(mailbox);
	if (ret)
		goto out;
	job = take_recv(mailbox, message->bytes, ended);
	if (job) {
		bring(mailbox, job, message, payload, lane, ended);
	} else {
		stored = store(mailbox, message);
		stored->lane = lane;
		memcpy(stored + 1, payload, message->bytes);
	}
out:
	spin_unlock_bh(&mailbox->lock);
	return ret;
}

/**
 * kxfer_mailbox_promise() - promise places to a sender
 * @mailbox: mailbox; may be closed
 * @most: most places
 *
 * At most a quarter of what is free and not promised, so that others find places too. So many
 * places are left that messages which this sender has under way, without a promise, find one:
 * a lane has as many slots for them. Does not sleep. Return: places that were promised.
 */
u32 kxfer_mailbox_promise(struct kxfer_mailbox *mailbox, u32 most)
{
	u32 nr = 0, left;

	spin_lock_bh(&mailbox->lock);
	left = mailbox->nr_free - mailbox->promised;
	if (!mailbox->closed && left > KXFER_WIRE_DATA_SLOTS)
		nr = min3(most, left / 4, left - KXFER_WIRE_DATA_SLOTS);
	mailbox->promised += nr;
	spin_unlock_bh(&mailbox->lock);
	return nr;
}

/** kxfer_mailbox_take_promise() - take back the promise of @nr places that no message needed */
void kxfer_mailbox_take_promise(struct kxfer_mailbox *mailbox, u32 nr)
{
	spin_lock_bh(&mailbox->lock);
	mailbox->promised -= nr;
	spin_unlock_bh(&mailbox->lock);
}

/**
 * kxfer_mailbox_offer() - take a long message that can be READ
 * @incoming: the message, with a reference on its exposure
 * @promised: as for kxfer_mailbox_deliver()
 * @waits: a full mailbox does not refuse the message
 * @ended: as for kxfer_mailbox_deliver()
 *
 * Unless the message is refused, its READ may be over when this returns. Return: as
 * kxfer_mailbox_deliver().
 */
int kxfer_mailbox_offer(struct kxfer_incoming *incoming, bool promised, bool waits,
			struct kxfer_job_list *ended)
{
	struct kxfer_mailbox *mailbox = incoming->mailbox;
	struct kxfer_active_job *job;
	int ret;

	spin_lock_bh(&mailbox->lock);
	mailbox->promised -= promised;
	ret = incoming->message.bytes > mailbox->max_bytes ? -EINVAL : check_room(mailbox);
	if (ret && !(waits && ret == -EAGAIN))
		goto out;
	ret = 0;
	job = take_recv(mailbox, incoming->message.bytes, ended);
	if (job)
		begin_read(mailbox, incoming, job);
	else
		store_incoming(mailbox, incoming);
out:
	spin_unlock_bh(&mailbox->lock);
	return ret;
}

/**
 * kxfer_mailbox_take_back() - drop a long message that still waits
 * @incoming: the message, with a reference on its exposure
 *
 * Called with the lock of the message's lane held. Return: false if the message waits no
 * more: it was handed to the lane.
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

/* Return: the list for RECVs that end with a long message. Called with the lock held. */
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

/* Move RECVs that a long message held up to @ended, in order. Called with the lock held. */
static void take_held(struct kxfer_incoming *incoming, struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job, *next;

	for (job = incoming->held.first; job; job = next) {
		next = job->next;
		kxfer_job_list_add(ended, job);
	}
	incoming->held.first = NULL;
}

/* A long message holds up no more. Called with the lock held. */
static void leave_filling(struct kxfer_incoming *incoming, struct kxfer_job_list *ended)
{
	take_held(incoming, ended);
	list_del_init(&incoming->mailbox_node);
}

/**
 * kxfer_mailbox_fetched() - complete the RECV of a long message, and those that it held up
 * @incoming: the message. Its RECV has it, or has a status; a reference on its exposure keeps the
 *	mailbox
 * @now_ns: ktime_get_ns()
 *
 * While an earlier READ of the lane is under way they are left to that. READs of a lane end in
 * order, but one that cannot be begun ends at once. A RECV that gets a later message while these
 * complete is held up until they have.
 */
void kxfer_mailbox_fetched(struct kxfer_incoming *incoming, u64 now_ns)
{
	struct kxfer_mailbox *mailbox = incoming->mailbox;
	struct kxfer_job_list first = {}, *ended;

	spin_lock_bh(&mailbox->lock);
	ended = ends_with(mailbox, incoming, &first);
	kxfer_job_list_add(ended, incoming->job);
	take_held(incoming, ended);
	while (first.first) {
		spin_unlock_bh(&mailbox->lock);
		kxfer_complete_all(&first, 0, now_ns);
		spin_lock_bh(&mailbox->lock);
		take_held(incoming, &first);
	}
	list_del_init(&incoming->mailbox_node);
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
	kxfer_complete_all(&ended, -ETIMEDOUT, now_ns);
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

/* Serve a RECV that is in the list, or have it wait. Called with the lock held. */
static void serve_recv(struct kxfer_mailbox *mailbox, struct kxfer_active_job *job,
		       struct kxfer_job_list *ended)
{
	if (mailbox->closed) {
		end_recv(job, -EKEYREVOKED, ended);
		return;
	}
	serve(mailbox, ended);
	/* While the lock is held no other context completes the RECV. */
	if (!list_empty(&job->lane_node))
		kxfer_deadlines_add(&mailbox->deadlines, &job->deadline);
}

/**
 * kxfer_mailbox_receive() - give an accepted RECV a message, or have it wait
 * @job: RECV that is in its session's list, and in no other
 * @ended: gets the RECV if it does not wait
 *
 * Called with the session's job_lock held, and perhaps the lock of a lane.
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
 * @incoming: the message; its RECV keeps the mailbox, and no device knows the RECV's region
 * @ended: gets the RECV if it does not wait, and those that it held up
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
	leave_filling(incoming, ends_with(mailbox, incoming, ended));
	spin_unlock_bh(&mailbox->lock);
}

/**
 * kxfer_mailbox_stop() - cancel a RECV
 * @job: RECV in the list of jobs of a session whose job_lock the caller holds
 * @ended: gets the RECV if it was waiting
 *
 * A RECV that is being filled goes on, but ends if the link does. Return: whether it waited.
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
 * @mailbox: mailbox of the caller, or of a RECV of a session whose job_lock the caller holds
 *
 * A RECV waits for its own READ, or has its message and waits for the READ of an earlier one.
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
	kxfer_complete_all(&ended, -EKEYREVOKED, ktime_get_ns());
}

/**
 * kxfer_mailbox_drain() - wait until no job uses a closed mailbox
 * @mailbox: closed mailbox
 *
 * Sleeps, also until READs from peers end: see 2. above. After KXFER_CLOSE_MS their links
 * are given up.
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
