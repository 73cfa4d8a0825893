// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of jobs: NOTIFY, SEND, and what follows a WRITE with KXFER_JOB_F_NOTIFY.
 *
 * A message takes a slot of the lane's channel and no credits of the lane, and its job completes
 * when the peer answers. The bytes of a SEND are copied into the message, unless it is long
 * (offer.c). The message of a WRITE is posted behind its last chain and counts as one more: the
 * job completes with the last of them.
 *
 * Eager messages. The answer to a SEND that asks may bring credits (share/eager.c). A SEND that
 * takes one is a chain: its bytes leave from the region, and it completes when it has arrived at
 * the peer's device, where a place in the mailbox waits for it. When few credits are left one
 * SEND asks for more. When none are left the session's jobs on the link are held until the
 * answer comes: so no message overtakes another. A SEND with an immediate, without bytes, or
 * with KXFER_JOB_F_STORED is always answered, and asks for nothing; but it takes a credit if
 * there is one, because the place is this sender's.
 *
 * Context: messages are posted under the lane's lock. Answers arrive in a kworker, a softirq
 * or a system call, with no lock held, and take that lock. Nothing sleeps.
 */
#include <linux/ktime.h>

#include "base/deadline.h"
#include "base/decode.h"
#include "base/plan.h"
#include "base/stats.h"
#include "job/chain.h"
#include "job/completion.h"
#include "job/job.h"
#include "job/message.h"
#include "job/offer.h"
#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"
#include "node/mapping.h"
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

static bool has_credit(const struct kxfer_sender *sender, const struct kxfer_lane *lane)
{
	return sender->credits && sender->lane == lane;
}

static void use_credit(struct kxfer_sender *sender)
{
	sender->credits--;
	sender->sent++;
}

/* The credits of an answer that could give some. Called with the lane's lock held. */
static int take_credits(struct kxfer_lane *lane, struct kxfer_sender *sender,
			const struct kxfer_request *request)
{
	int credits = 0;

	sender->nr_asked--;
	if (!request->status)
		credits = kxfer_wire_take_credits(request->answer, request->answer_length,
						  sender->credits);
	if (credits < 0 || (credits && sender->credits && sender->lane != lane))
		return -EPROTO;
	if (credits)
		sender->lane = lane;
	sender->credits += credits;
	sender->window = sender->credits;
	return 0;
}

static void send_answered(struct kxfer_request *request)
{
	const struct kxfer_wire_send *send = kxfer_channel_request_payload(request);
	struct kxfer_lane *lane = request->channel->lane;
	int ret;

	if (!(be32_to_cpu(send->flags) & KXFER_WIRE_SEND_ASK))
		return;
	spin_lock_bh(&lane->lock);
	ret = take_credits(lane, &request->job->target->sender, request);
	spin_unlock_bh(&lane->lock);
	if (ret)
		kxfer_link_protocol_error(lane->link, "credits that make no sense");
}

/* Whether the peer may give credits: two pages are enough for a short message. */
static bool gives_credits(const struct kxfer_link *link)
{
	return link->features & KXFER_WIRE_FEATURE_EAGER && link->dev->write_limits.max_sge > 1;
}

static bool may_be_eager(const struct kxfer_active_job *job)
{
	return job->completion.op == KXFER_OP_SEND && job->mapping && !kxfer_job_is_long(job);
}

static void message_answered(struct kxfer_request *request)
{
	struct kxfer_lane *lane = request->channel->lane;
	struct kxfer_active_job *job = request->job;
	int status = kxfer_message_status(request->status);

	if (status == -ECONNRESET)
		status = kxfer_link_job_error(lane->link);
	if (job->completion.op == KXFER_OP_SEND)
		send_answered(request);
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

/* An answered message asks for credits if a later one could be eager. */
static u32 send_flags(const struct kxfer_active_job *job, struct kxfer_sender *sender)
{
	u32 flags = job->flags & KXFER_JOB_F_IMM ? KXFER_WIRE_SEND_IMM : 0;

	if (has_credit(sender, job->lane)) {
		use_credit(sender);
		flags |= KXFER_WIRE_SEND_CREDIT;
	}
	if (may_be_eager(job)) {
		sender->nr_asked++;
		flags |= KXFER_WIRE_SEND_ASK;
	}
	return flags;
}

static u32 write_send(const struct kxfer_active_job *job, struct kxfer_wire_send *send)
{
	*send = (struct kxfer_wire_send) {
		.grant = cpu_to_be64(job->target->grant),
		.flags = cpu_to_be32(send_flags(job, &job->target->sender)),
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
 * kxfer_message_plan() - plan a SEND, which may become an eager message
 * @job: SEND with a region and a mapping
 */
void kxfer_message_plan(struct kxfer_active_job *job)
{
	/* The peer chooses the place. */
	static const struct kxfer_extent anywhere = { .length = KXFER_MESSAGE_MAX };
	const struct kxfer_device *dev = job->target->link->dev;

	if (kxfer_job_is_long(job))
		return;
	kxfer_plan_init(&job->plan, job->mapping->extents, job->mapping->nr_extents, job->offset,
			&anywhere, 1, 0, job->length, kxfer_device_limits(dev, KXFER_OP_WRITE));
}

/**
 * kxfer_message_wants_mapping() - whether the device may read the bytes of a job's message
 * @job: job with its target; its region may be NULL
 *
 * A long message is READ by the peer; another may become an eager one.
 */
bool kxfer_message_wants_mapping(const struct kxfer_active_job *job)
{
	if (job->completion.op != KXFER_OP_SEND || !job->length)
		return false;
	return kxfer_job_is_long(job) ||
	       (!(job->flags & (KXFER_JOB_F_IMM | KXFER_JOB_F_STORED)) &&
		gives_credits(job->target->link));
}

/* Called with the lane's lock held. Return: false: the message is answered. */
static bool is_eager(const struct kxfer_lane *lane, const struct kxfer_active_job *job)
{
	const struct kxfer_sender *sender = &job->target->sender;
	bool enough = sender->nr_asked || sender->credits > sender->window / 4;

	return may_be_eager(job) && has_credit(sender, lane) && enough;
}

/**
 * kxfer_message_waits() - whether a message has to wait for credits
 * @job: job at the head of its flow, or about to be; the caller holds the lock of its lane
 *
 * If it has to wait, the answer to a posted SEND of the flow will come, or the link ends.
 */
bool kxfer_message_waits(const struct kxfer_active_job *job)
{
	const struct kxfer_sender *sender = &job->target->sender;

	return may_be_eager(job) && !sender->credits && sender->window && sender->nr_asked;
}

static bool post_eager(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_sender *sender = &job->target->sender;

	if (!kxfer_chain_add_message(lane, job))
		return false;
	use_credit(sender);
	kxfer_stat_inc(KXFER_STAT_SENDS_SENT);
	kxfer_stat_inc(KXFER_STAT_SENDS_EAGER);
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
	if (kxfer_job_is_long(job))
		return post_long(lane, job);
	return is_eager(lane, job) ? post_eager(lane, job) : post_short(lane, job);
}
