// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of jobs: NOTIFY, SEND, and what follows a WRITE with KXFER_JOB_F_NOTIFY.
 *
 * A message takes a slot of the lane's channel and no credits, and its job completes when the
 * peer answers. The bytes of a SEND are copied into the message, unless it is long (offer.c).
 * The message of a WRITE is posted behind its last chain and counts as one more: the job
 * completes with the last of them.
 *
 * Context: messages are posted under the lane's lock. Answers arrive in a kworker, a softirq
 * or a system call, with no lock held, and take that lock. Nothing sleeps.
 */
#include <linux/ktime.h>

#include "base/deadline.h"
#include "base/stats.h"
#include "job/chain.h"
#include "job/completion.h"
#include "job/job.h"
#include "job/message.h"
#include "job/offer.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"
#include "node/region.h"

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
	spin_unlock_bh(&lane->lock);
	kxfer_complete(job, status, ktime_get_ns());
}

/* Chains of the WRITE may be under way: of a polled CQ, or of one that failed. */
static void write_notified(struct kxfer_lane *lane, struct kxfer_active_job *job, int status)
{
	struct kxfer_job_list ended = {};

	spin_lock_bh(&lane->lock);
	job->status = job->status ?: status;
	kxfer_chain_discount(job, &ended);
	spin_unlock_bh(&lane->lock);
	kxfer_complete_all(&ended, 0, ktime_get_ns());
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

static u32 write_send(const struct kxfer_active_job *job, struct kxfer_wire_send *send)
{
	*send = (struct kxfer_wire_send) {
		.grant = cpu_to_be64(job->target->grant),
		.flags = cpu_to_be32(job->flags & KXFER_JOB_F_IMM ? KXFER_WIRE_SEND_IMM : 0),
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

/**
 * kxfer_message_post() - post the message of a job
 * @lane: open lane whose lock the caller holds
 * @job: NOTIFY, SEND or WRITE, in no list of posted jobs
 *
 * Return: false if nothing was posted: there is no slot, or no offer.
 */
bool kxfer_message_post(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	return kxfer_job_is_long(job) ? post_long(lane, job) : post_short(lane, job);
}
