// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of jobs: NOTIFY, SEND, and what follows a WRITE with KXFER_JOB_F_NOTIFY.
 *
 * A message takes a slot of the lane's channel and no credits of the lane, and its job completes
 * when the peer answers. The bytes of a SEND are copied into the message, unless it is long
 * (offer.c). The message of a WRITE is posted behind its last chain and counts as one more: the
 * job completes with the last of them.
 *
 * Eager messages. A SEND that takes a credit (sender.c) is a chain: its bytes leave from the
 * region, and it completes when it has arrived at the peer's device, where a place in the mailbox
 * waits for it. A message that could be eager and finds no credit, though some are on their way,
 * is held: so no message overtakes another. A SEND with an immediate, without bytes, or with
 * KXFER_JOB_F_STORED is always answered, as is one that is too long; but it takes a credit too if
 * there is one, because the place is this sender's.
 *
 * Context: messages are posted under the lane's lock. Answers arrive in a kworker, a softirq
 * or a system call, with no lock held, and take that lock. Nothing sleeps.
 */
#include <linux/ktime.h>

#include "base/deadline.h"
#include "base/plan.h"
#include "base/stats.h"
#include "job/chain.h"
#include "job/completion.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/message.h"
#include "job/offer.h"
#include "job/sender.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"

/* The remote end of an eager message: the peer chooses the place. */
const struct kxfer_extent kxfer_message_place = { .length = KXFER_MESSAGE_EAGER_MAX };

/** kxfer_message_status() - status of a message's job from its answer or FETCHED */
int kxfer_message_status(int answer)
{
	switch (answer) {
	case 0:
	case -EAGAIN:
	case -EKEYREVOKED:
	case -ECONNRESET:
		return answer;
	default:
		return -EREMOTEIO;
	}
}

/* Whether a message ended with its link; see kxfer_link_job_error(). */
static bool is_break(int status)
{
	return status == -ECONNRESET || status == -ENODEV;
}

/**
 * kxfer_message_over() - end a posted job that is a message
 * @lane: lane that the job is posted on
 * @job: job that no other context ends
 * @status: 0 or -errno
 */
void kxfer_message_over(struct kxfer_lane *lane, struct kxfer_active_job *job, int status)
{
	spin_lock_bh(&lane->lock);
	kxfer_job_leave_posted(lane, job);
	job->target->flow->cut |= is_break(status);
	spin_unlock_bh(&lane->lock);
	kxfer_complete(job, status, ktime_get_ns());
}

/* Chains of the WRITE may be under way: of a polled CQ, or of one that failed. */
static void write_notified(struct kxfer_lane *lane, struct kxfer_active_job *job, int status)
{
	struct kxfer_job_list ended = {};

	spin_lock_bh(&lane->lock);
	job->status = job->status ?: status;
	job->target->flow->cut |= is_break(status);
	kxfer_chain_discount(job, &ended);
	spin_unlock_bh(&lane->lock);
	kxfer_complete_all(&ended, 0, ktime_get_ns());
}

/* Whether a message that was planned may be eager. */
static bool may_be_eager(const struct kxfer_active_job *job)
{
	return job->completion.op == KXFER_OP_SEND && job->mapping && kxfer_plan_left(&job->plan);
}

static void message_answered(struct kxfer_request *request)
{
	struct kxfer_lane *lane = request->channel->lane;
	struct kxfer_active_job *job = request->job;
	int status = kxfer_message_status(request->status);

	if (status == -ECONNRESET)
		status = kxfer_link_job_error(lane->link);
	if (job->completion.op == KXFER_OP_WRITE)
		write_notified(lane, job, status);
	else
		kxfer_message_over(lane, job, status);
}

static u32 write_notify(const struct kxfer_active_job *job, struct kxfer_wire_notify *notify)
{
	*notify = (struct kxfer_wire_notify) {
		.grant = cpu_to_be64(job->target->grant),
		.cookie = cpu_to_be64(job->cookie),
	};
	kxfer_stat_inc(KXFER_STAT_NOTIFIES_SENT);
	return sizeof(*notify);
}

/**
 * kxfer_message_flags() - KXFER_WIRE_SEND_* of an answered message; takes a credit if there is one
 * @job: SEND that is about to be posted; the caller holds the lock of its lane
 */
u32 kxfer_message_flags(const struct kxfer_active_job *job)
{
	u32 flags = (job->flags & KXFER_JOB_F_IMM ? KXFER_WIRE_SEND_IMM : 0) |
		    (job->flags & KXFER_JOB_F_WAIT ? KXFER_WIRE_SEND_WAIT : 0);

	if (!job->target->sender->credits)
		return flags;
	kxfer_sender_use_credit(job->target->sender);
	return flags | KXFER_WIRE_SEND_CREDIT;
}

static u32 write_send(const struct kxfer_active_job *job, struct kxfer_wire_send *send)
{
	*send = (struct kxfer_wire_send) {
		.grant = cpu_to_be64(job->target->grant),
		.flags = cpu_to_be32(kxfer_message_flags(job)),
		.immediate = cpu_to_be32(job->cookie),
	};
	if (job->length)
		kxfer_memory_copy_from(job->region->memory, job->offset, send + 1, job->length);
	kxfer_stat_inc(KXFER_STAT_SENDS_SENT);
	return sizeof(*send) + job->length;
}

static void message_posted(struct kxfer_active_job *job)
{
	if (job->completion.op == KXFER_OP_WRITE)
		job->nr_chains++;
	job->started = true;
	job->planned = true;
}

/* Offer a long message: its bytes stay where they are until the peer READs them. */
static bool post_long(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_offer *offer = kxfer_offer_get(lane, job);
	struct kxfer_request *request;

	if (!offer)
		return false;
	request = kxfer_channel_get_locked(&lane->channel);
	if (!request)
		return false;
	kxfer_chain_flush(lane);
	message_posted(job);
	/* If something fails the link's teardown completes the job with the lane's others. */
	if (!kxfer_offer_register(offer, job))
		kxfer_offer_post(offer, job, request);
	kxfer_deadlines_arm(&lane->deadlines, job->deadline.ns);
	return true;
}

static bool post_short(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_request *request = kxfer_channel_get_locked(&lane->channel);
	bool send = job->completion.op == KXFER_OP_SEND;
	void *payload;
	u32 length;

	if (!request)
		return false;
	kxfer_chain_flush(lane);
	request->job = job;
	request->answered = message_answered;
	message_posted(job);
	payload = kxfer_channel_request_payload(request);
	length = send ? write_send(job, payload) : write_notify(job, payload);
	/* If this fails the link's teardown completes the job with the lane's others. */
	if (kxfer_channel_post_locked(request, send ? KXFER_WIRE_SEND : KXFER_WIRE_NOTIFY,
				      NULL, length))
		request->job = NULL;
	return true;
}

/* Whether a message could be eager. */
static bool is_for_eager(const struct kxfer_active_job *job)
{
	return job->length <= KXFER_MESSAGE_EAGER_MAX &&
	       !(job->flags & (KXFER_JOB_F_IMM | KXFER_JOB_F_STORED)) &&
	       kxfer_sender_served(job->target->link);
}

/**
 * kxfer_message_wants_mapping() - whether the device may read the bytes of a job's message
 * @job: job with its target; its region may be NULL
 *
 * A long message may be READ by the peer; another may be eager.
 */
bool kxfer_message_wants_mapping(const struct kxfer_active_job *job)
{
	return job->completion.op == KXFER_OP_SEND && job->length &&
	       (kxfer_job_is_long(job) || is_for_eager(job));
}

/**
 * kxfer_message_plan() - plan a SEND, as one work request if it may be eager
 * @job: SEND with a mapping
 */
void kxfer_message_plan(struct kxfer_active_job *job)
{
	const struct kxfer_device *dev = job->target->link->dev;

	job->plan.left = 0;
	if (is_for_eager(job))
		kxfer_plan_init(&job->plan, job->mapping->extents, job->mapping->nr_extents,
				job->offset, &kxfer_message_place, 1, 0, job->length,
				kxfer_device_limits(dev, KXFER_OP_WRITE));
}

/**
 * kxfer_message_waits() - whether a message has to wait for credits
 * @job: job at the head of its flow, or about to be; the caller holds the lock of its lane
 *
 * If it has to wait, an answer will come and wake the lane's flows, or the link ends.
 */
bool kxfer_message_waits(const struct kxfer_active_job *job)
{
	return may_be_eager(job) && kxfer_sender_waits(job->target->sender);
}

/**
 * kxfer_message_may_go() - whether there is a credit for an eager message
 * @target: target of the message
 * @lane: lane that its flow is on; the caller holds its lock
 *
 * Asks for more if there are few.
 */
bool kxfer_message_may_go(struct kxfer_target *target, struct kxfer_lane *lane)
{
	if (kxfer_sender_runs_low(target->sender))
		kxfer_sender_ask(target->sender);
	return kxfer_sender_has_credit(target->sender, lane);
}

/** kxfer_message_went() - count an eager message that is built; it had a credit */
void kxfer_message_went(struct kxfer_target *target)
{
	struct kxfer_flow *flow = target->flow;

	kxfer_sender_use_credit(target->sender);
	flow->unhandled = true;
	flow->nr_eager++;
	kxfer_stat_inc(KXFER_STAT_SENDS_SENT);
	kxfer_stat_inc(KXFER_STAT_SENDS_EAGER);
}

static bool post_eager(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	if (!kxfer_chain_add_message(lane, job))
		return false;
	kxfer_message_went(job->target);
	return true;
}

/**
 * kxfer_message_post() - post the message of a job
 * @lane: open lane whose lock the caller holds
 * @job: NOTIFY, SEND or WRITE, in no list of posted jobs
 *
 * Return: false if nothing was posted: there is no slot, no offer, or no room for a chain.
 */
bool kxfer_message_post(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	if (may_be_eager(job) && kxfer_message_may_go(job->target, lane))
		return post_eager(lane, job);
	return kxfer_job_is_long(job) ? post_long(lane, job) : post_short(lane, job);
}
