// SPDX-License-Identifier: GPL-2.0
/*
 * Offers: the sender's side of long messages. The receiver's side is fetch.c.
 *
 * The bytes of a SEND that is too long to be copied are registered for READs by the peer:
 * a REG_MR is posted on the job's lane, in the link's PD. OFFER follows it and says where
 * the bytes are. From then on the job is posted, and its offer goes
 *
 *	FREE -> POSTED		with the job
 *	POSTED -> OVER		REG_MR has completed; OFFER is answered; no TAKE_BACK is
 *				unanswered; and OFFER was refused, or FETCHED came, or
 *				TAKE_BACK was answered OK
 *	OVER -> FREE		by the lane's work, which completes the job
 *
 * FETCHED may overtake the answer to its OFFER, and cross a TAKE_BACK.
 *
 * An answer does not prove that the peer got the request: a peer that guesses slot and
 * sequence can answer an OFFER that is still in the send queue, after a REG_MR that the
 * device has not looked at. So REG_MR is signalled, and an MR is deregistered only after
 * that completion.
 *
 * A job completes only after the peer can no longer reach its memory: the work deregisters
 * the MR first. ib_dereg_mr() returns when no responder uses the registration any more (rxe
 * and siw wait for references); a LOCAL_INV would only mark the key. So each message has an
 * MR of its own. The work keeps a few in stock until there has been no message for IDLE_MS.
 *
 * A message that is not received waits for ever, as one in a mailbox does. Sessions share a
 * lane, so no session may hold all of its offers. CANCEL, the deadline of the job, the end
 * of its session, and the withdrawal of the mailbox take the message back: it ends at once,
 * unless the peer READs it by then. A peer that claims to READ it and says nothing more
 * loses the link (kxfer_offer_stuck_locked()), which bounds the wait.
 *
 * The end of a lane, as a proof. Its QP is reset or destroyed: no READ of the peer is answered.
 *  1. The work is cancelled and not queued again, because the lane is not open.
 *  2. The MR of each offer is deregistered, before the link releases its PD.
 *  3. Jobs of offers that are OVER complete with the status of their offers. Jobs of other
 *     offers are in the lane's list of posted jobs and complete with those
 *     (kxfer_job_fail_lane()), with or without a completion of REG_MR: not every siw
 *     flushes it.
 *
 * Context: everything but the work runs under the lane's lock. Only the work makes MRs; it
 * destroys them too, as does kxfer_offer_close().
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/stats.h"
#include "job/job.h"
#include "job/message.h"
#include "job/offer.h"
#include "job/target.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/mapping.h"

#define STOCK	4	/* MRs kept ready for messages */
#define IDLE_MS	100	/* without a message, then the stock is dropped */

static_assert(KXFER_WIRE_OFFERS <= KXFER_LANE_LONG_WRS);

enum offer_state {
	OFFER_FREE	= 0,
	OFFER_POSTED,
	OFFER_OVER,
};

/**
 * struct kxfer_offer - a long message that this node sends
 * @offers: offers of the lane
 * @node: entry in kxfer_offers.over while OVER
 * @state: state of the offer, as listed above
 * @mr: MR of the message; NULL: the offer cannot be posted
 * @reg: REG_MR of @mr
 * @reg_cqe: completion of @reg
 * @job: job that sends the message
 * @registered: REG_MR has completed: the device is done with @reg
 * @answered: OFFER is answered
 * @ended: the message will not be READ any more
 * @status: result of the message, 0 or -errno
 * @back: this node wants the message back
 * @back_posted: TAKE_BACK is posted and not answered
 * @back_sent: TAKE_BACK was posted once
 * @back_status: status of the job if TAKE_BACK succeeds, -errno
 * @back_ns: time when @back was set
 */
struct kxfer_offer {
	struct kxfer_offers *offers;
	struct list_head node;
	enum offer_state state;
	struct ib_mr *mr;
	struct ib_reg_wr reg;
	struct ib_cqe reg_cqe;
	struct kxfer_active_job *job;
	bool registered;
	bool answered;
	bool ended;
	int status;
	bool back;
	bool back_posted;
	bool back_sent;
	int back_status;
	u64 back_ns;
};

/**
 * struct kxfer_offers - the offers of a lane
 * @lane: lane of the offers
 * @work: work that ends offers and makes MRs
 * @sg: scatterlist to map an MR; kept as long as there is an MR
 * @over: offers that are OVER, in the order in which they ended
 * @wanted: a job waits for an MR
 * @nr_posted: number of offers that are POSTED or OVER
 * @used_ns: time when an offer was last posted or ended
 * @each: the offers, indexed by id
 */
struct kxfer_offers {
	struct kxfer_lane *lane;
	struct delayed_work work;
	struct scatterlist *sg;
	struct list_head over;
	bool wanted;
	u32 nr_posted;
	u64 used_ns;
	struct kxfer_offer each[KXFER_WIRE_OFFERS];
};

static struct kxfer_lane *lane_of(const struct kxfer_offer *offer)
{
	return offer->offers->lane;
}

static u32 id_of(const struct kxfer_offer *offer)
{
	return offer - offer->offers->each;
}

/* ---- the end of an offer ---- */

/* Called with the lane's lock held. */
static void end_if_over(struct kxfer_offer *offer)
{
	struct kxfer_offers *offers = offer->offers;

	if (offer->state != OFFER_POSTED || !offer->registered || !offer->answered ||
	    !offer->ended || offer->back_posted)
		return;
	offer->state = OFFER_OVER;
	list_add_tail(&offer->node, &offers->over);
	if (offers->lane->open)
		mod_delayed_work(kxfer_wq, &offers->work, 0);
}

/*
 * Note that a message will not be READ any more. Called with the lane's lock held. Return:
 * false if that was noted before: the peer breaks the protocol.
 */
static bool note_end(struct kxfer_offer *offer, int status)
{
	if (offer->ended)
		return false;
	offer->ended = true;
	offer->status = status;
	return true;
}

static void back_answered(struct kxfer_request *request)
{
	struct kxfer_offer *offer = request->owner;
	struct kxfer_lane *lane = lane_of(offer);
	bool wrong = false;

	/* The lane is closed. */
	if (request->status == -ECONNRESET)
		return;
	spin_lock_bh(&lane->lock);
	offer->back_posted = false;
	if (!request->status)
		wrong = !note_end(offer, offer->back_status);
	else
		wrong = request->status != -EAGAIN;
	if (!wrong)
		end_if_over(offer);
	spin_unlock_bh(&lane->lock);
	if (wrong)
		kxfer_link_protocol_error(lane->link, "a message taken back that cannot be");
}

/* Post TAKE_BACK if it is wanted, and possible now. Called with the lane's lock held. */
static void post_take_back(struct kxfer_offer *offer)
{
	struct kxfer_wire_take_back take = { .id = cpu_to_be32(id_of(offer)) };
	struct kxfer_request *request;

	/* The peer may not know the offer before OFFER is answered. */
	if (offer->state != OFFER_POSTED || !offer->back || offer->back_sent ||
	    !offer->answered || offer->ended)
		return;
	request = kxfer_channel_get_locked(&lane_of(offer)->channel);
	if (!request)
		return;
	request->owner = offer;
	request->answered = back_answered;
	offer->back_sent = true;
	/* If posting fails the link is broken. */
	if (!kxfer_channel_post_locked(request, KXFER_WIRE_TAKE_BACK, &take, sizeof(take)))
		offer->back_posted = true;
}

/* Called with the lane's lock held. */
static void take_back(struct kxfer_offer *offer, int status)
{
	if (offer->state != OFFER_POSTED || offer->back || offer->ended)
		return;
	offer->back = true;
	offer->back_status = status;
	offer->back_ns = ktime_get_ns();
	post_take_back(offer);
}

/**
 * kxfer_offer_take_back() - take back messages that the peer does not READ yet
 * @lane: lane of the messages; the caller holds its lock
 * @job: job of the message, or NULL: all messages of @target
 * @target: target of the messages, or NULL
 * @status: status of their jobs, -errno
 */
void kxfer_offer_take_back(struct kxfer_lane *lane, const struct kxfer_active_job *job,
			   const struct kxfer_target *target, int status)
{
	struct kxfer_offers *offers = lane->offers;
	u32 i;

	if (!offers || !offers->nr_posted || !lane->open)
		return;
	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		struct kxfer_offer *offer = &offers->each[i];

		if (offer->state == OFFER_POSTED &&
		    (offer->job == job || (!job && offer->job->target == target)))
			take_back(offer, status);
	}
}

/**
 * kxfer_offer_late() - take back messages whose deadline has passed
 * @lane: lane of the messages; the caller holds its lock
 * @now_ns: ktime_get_ns()
 *
 * Return: the next deadline, or 0.
 */
u64 kxfer_offer_late(struct kxfer_lane *lane, u64 now_ns)
{
	struct kxfer_offers *offers = lane->offers;
	u64 next = 0, deadline;
	u32 i;

	if (!offers || !offers->nr_posted || !lane->open)
		return 0;
	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		struct kxfer_offer *offer = &offers->each[i];

		deadline = offer->state == OFFER_POSTED && !offer->back ?
			   offer->job->deadline.ns : 0;
		if (deadline && deadline <= now_ns)
			take_back(offer, -ETIMEDOUT);
		else if (deadline && (!next || deadline < next))
			next = deadline;
	}
	return next;
}

/** kxfer_offer_pump() - post TAKE_BACKs: an initiator's lane has a free slot; does not sleep */
void kxfer_offer_pump(struct kxfer_lane *lane)
{
	struct kxfer_offers *offers = lane->offers;
	u32 i;

	if (!offers || !READ_ONCE(offers->nr_posted))
		return;
	spin_lock_bh(&lane->lock);
	for (i = 0; i < KXFER_WIRE_OFFERS; i++)
		post_take_back(&offers->each[i]);
	spin_unlock_bh(&lane->lock);
}

/* Return: whether the peer still holds the message KXFER_STUCK_MS after @back was set. */
static bool is_stuck(const struct kxfer_offer *offer, u64 now_ns)
{
	return offer->state == OFFER_POSTED && offer->back && now_ns > offer->back_ns &&
	       now_ns - offer->back_ns > (u64)KXFER_STUCK_MS * NSEC_PER_MSEC;
}

/** kxfer_offer_stuck_locked() - whether the peer claims to READ a message, and does not */
bool kxfer_offer_stuck_locked(const struct kxfer_lane *lane, u64 now_ns)
{
	u32 i;

	for (i = 0; lane->offers && i < KXFER_WIRE_OFFERS; i++)
		if (is_stuck(&lane->offers->each[i], now_ns))
			return true;
	return false;
}

/* ---- posting ---- */

static void offer_answered(struct kxfer_request *request)
{
	struct kxfer_offer *offer = request->owner;
	struct kxfer_lane *lane = lane_of(offer);
	bool wrong = false;

	if (request->status == -ECONNRESET)
		return;
	spin_lock_bh(&lane->lock);
	offer->answered = true;
	if (request->status)
		wrong = !note_end(offer, kxfer_message_status(request->status));
	else
		post_take_back(offer);
	if (!wrong)
		end_if_over(offer);
	spin_unlock_bh(&lane->lock);
	if (wrong)
		kxfer_link_protocol_error(lane->link, "a message READ and refused");
}

/** kxfer_offer_is_posted() - whether a lane, whose lock the caller holds, has a long message */
bool kxfer_offer_is_posted(const struct kxfer_lane *lane)
{
	return lane->offers && lane->offers->nr_posted;
}

/**
 * kxfer_offer_get() - an offer that can be posted, or NULL
 * @lane: a data lane of an initiator; the caller holds its lock
 * @job: job to be sent
 *
 * A session gets an offer only while it holds fewer than are free. A job that gets none
 * goes on as soon as there is one (kxfer_job_pump()).
 */
struct kxfer_offer *kxfer_offer_get(struct kxfer_lane *lane, const struct kxfer_active_job *job)
{
	struct kxfer_offers *offers = lane->offers;
	struct kxfer_offer *ready = NULL;
	u32 nr_free = 0, nr_own = 0, i;

	for (i = 0; offers && i < KXFER_WIRE_OFFERS; i++) {
		struct kxfer_offer *offer = &offers->each[i];

		if (offer->state != OFFER_FREE) {
			nr_own += offer->job->target->flow == job->target->flow;
			continue;
		}
		nr_free++;
		if (offer->mr && !ready)
			ready = offer;
	}
	if (nr_own >= nr_free)
		return NULL;
	if (!ready && lane->open) {
		offers->wanted = true;
		mod_delayed_work(kxfer_wq, &offers->work, 0);
	}
	return ready;
}

/**
 * kxfer_offer_register() - let the peer READ the bytes of a job
 * @offer: from kxfer_offer_get(); the lane's lock is still held
 * @job: job to be sent; it has a mapping
 *
 * Return: 0, or an error: the link is broken.
 */
int kxfer_offer_register(struct kxfer_offer *offer, const struct kxfer_active_job *job)
{
	struct kxfer_lane *lane = lane_of(offer);
	struct scatterlist *sg = offer->offers->sg;
	struct ib_mr *mr = offer->mr;
	u32 nr = kxfer_mapping_pieces(job->mapping, job->offset, job->length, NULL);

	sg_init_table(sg, nr);
	kxfer_mapping_pieces(job->mapping, job->offset, job->length, sg);
	if (kxfer_fault(OFFER_MAP) || kxfer_device_map_mr(mr, sg, nr, PAGE_SIZE)) {
		kxfer_link_fail(lane->link, -ECONNRESET);
		return -EIO;
	}
	offer->reg = (struct ib_reg_wr) {
		.wr = {
			.wr_cqe = &offer->reg_cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_REMOTE_READ,
	};
	offer->registered = false;
	kxfer_mapping_to_device(job->mapping, job->offset, job->length);
	return kxfer_lane_post_locked(lane, &offer->reg.wr, 1);
}

/**
 * kxfer_offer_post() - offer a message to the peer
 * @offer: registered; the lane's lock has been held since
 * @job: job of the message; posted from now on
 * @request: free slot of the lane's channel
 */
void kxfer_offer_post(struct kxfer_offer *offer, struct kxfer_active_job *job,
		      struct kxfer_request *request)
{
	struct kxfer_wire_offer wire = {
		.grant = cpu_to_be64(job->target->grant),
		.address = cpu_to_be64(offer->mr->iova),
		.rkey = cpu_to_be32(offer->mr->rkey),
		.bytes = cpu_to_be32(job->length),
		.flags = cpu_to_be32(kxfer_message_flags(job)),
		.immediate = cpu_to_be32(job->cookie),
		.id = cpu_to_be32(id_of(offer)),
	};

	offer->state = OFFER_POSTED;
	offer->job = job;
	offer->answered = false;
	offer->ended = false;
	offer->back = false;
	offer->back_posted = false;
	offer->back_sent = false;
	WRITE_ONCE(offer->offers->nr_posted, offer->offers->nr_posted + 1);
	offer->offers->used_ns = ktime_get_ns();
	request->owner = offer;
	request->answered = offer_answered;
	kxfer_stat_inc(KXFER_STAT_SENDS_SENT);
	/* If this fails the link is broken, and its teardown completes the job. */
	kxfer_channel_post_locked(request, KXFER_WIRE_OFFER, &wire, sizeof(wire));
}

static void registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_offer *offer = container_of(wc->wr_cqe, struct kxfer_offer, reg_cqe);
	struct kxfer_lane *lane = lane_of(offer);

	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "registration of a message");
		return;
	}
	spin_lock_bh(&lane->lock);
	offer->registered = true;
	end_if_over(offer);
	spin_unlock_bh(&lane->lock);
}

/**
 * kxfer_offer_fetched() - handle FETCHED
 * @lane: data lane of an initiator
 * @fetched: payload from the peer, untrusted
 *
 * Does not sleep. Return: the offer, for kxfer_offer_end() when the answer is posted; NULL:
 * no such offer is under way.
 */
struct kxfer_offer *kxfer_offer_fetched(struct kxfer_lane *lane,
					const struct kxfer_wire_fetched *fetched)
{
	u32 id = be32_to_cpu(fetched->id), status = be32_to_cpu(fetched->status);
	struct kxfer_offers *offers;
	struct kxfer_offer *offer;
	bool wrong;

	/* Pairs with kxfer_offer_make(). */
	offers = smp_load_acquire(&lane->offers);
	if (!offers || id >= KXFER_WIRE_OFFERS || status > U16_MAX)
		return NULL;
	offer = &offers->each[id];
	spin_lock_bh(&lane->lock);
	wrong = offer->state != OFFER_POSTED ||
		!note_end(offer, kxfer_message_status(kxfer_wire_errno(status)));
	spin_unlock_bh(&lane->lock);
	return wrong ? NULL : offer;
}

/**
 * kxfer_offer_end() - end an offer whose FETCHED is answered
 * @offer: from kxfer_offer_fetched()
 *
 * Not to be called before that: the next OFFER with the same id must not overtake the
 * answer. Answers of the peer end an offer as well, but they are handled in the context
 * that handles FETCHED, after it. Does not sleep.
 */
void kxfer_offer_end(struct kxfer_offer *offer)
{
	struct kxfer_lane *lane = lane_of(offer);

	spin_lock_bh(&lane->lock);
	end_if_over(offer);
	spin_unlock_bh(&lane->lock);
}

/* ---- the work ---- */

static struct kxfer_offer *take_over(struct kxfer_offers *offers)
{
	struct kxfer_offer *offer;

	spin_lock_bh(&offers->lane->lock);
	offer = list_first_entry_or_null(&offers->over, struct kxfer_offer, node);
	if (offer)
		list_del_init(&offer->node);
	spin_unlock_bh(&offers->lane->lock);
	return offer;
}

/* No other context changes an offer that is OVER. */
static void finish(struct kxfer_offer *offer)
{
	struct kxfer_lane *lane = lane_of(offer);
	struct kxfer_active_job *job = offer->job;
	int status = offer->status;

	kxfer_delay(OFFER_END);
	kxfer_mr_dereg(lane, offer->mr);
	spin_lock_bh(&lane->lock);
	offer->mr = NULL;
	offer->job = NULL;
	offer->state = OFFER_FREE;
	offer->offers->used_ns = ktime_get_ns();
	WRITE_ONCE(offer->offers->nr_posted, offer->offers->nr_posted - 1);
	spin_unlock_bh(&lane->lock);
	kxfer_message_over(lane, job, status);
}

/* Return: an offer that needs an MR, or NULL. Called with the lane's lock held. */
static struct kxfer_offer *find_bare(struct kxfer_offers *offers)
{
	struct kxfer_offer *bare = NULL;
	u32 stock = 0, i;

	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		struct kxfer_offer *offer = &offers->each[i];

		if (offer->state != OFFER_FREE)
			continue;
		stock += offer->mr ? 1 : 0;
		if (!offer->mr && !bare)
			bare = offer;
	}
	return stock < STOCK ? bare : NULL;
}

static int make_mr(struct kxfer_offers *offers, struct kxfer_offer *offer)
{
	u32 pages = kxfer_device_message_pages(offers->lane->link->dev);
	size_t bytes = array_size(pages, sizeof(*offers->sg));
	struct ib_mr *mr;

	if (!offers->sg)
		offers->sg = kxfer_try_alloc(OFFER_SG,
					     kxfer_link_kvzalloc(offers->lane->link, bytes));
	if (!offers->sg)
		return -ENOMEM;
	mr = kxfer_mr_alloc(offers->lane, pages);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	spin_lock_bh(&offers->lane->lock);
	offer->mr = mr;
	spin_unlock_bh(&offers->lane->lock);
	return 0;
}

/* Return: whether a job has found no MR since the last call. */
static bool take_wanted(struct kxfer_offers *offers)
{
	bool wanted;

	spin_lock_bh(&offers->lane->lock);
	wanted = offers->wanted;
	offers->wanted = false;
	spin_unlock_bh(&offers->lane->lock);
	return wanted;
}

/* Pass each MR to a waiting job before making the next. Return: 0, or why a job gets none. */
static int stock_up(struct kxfer_offers *offers)
{
	struct kxfer_offer *offer;
	int ret;

	for (;;) {
		spin_lock_bh(&offers->lane->lock);
		offer = find_bare(offers);
		spin_unlock_bh(&offers->lane->lock);
		if (!offer)
			return 0;
		ret = make_mr(offers, offer);
		if (ret)
			return take_wanted(offers) ? ret : 0;
		if (take_wanted(offers))
			kxfer_job_pump(offers->lane);
	}
}

/* Return: whether there has been no message for IDLE_MS. */
static bool is_idle(struct kxfer_offers *offers)
{
	struct kxfer_lane *lane = offers->lane;
	bool idle;

	spin_lock_bh(&lane->lock);
	idle = !offers->nr_posted && !offers->wanted &&
	       ktime_get_ns() - offers->used_ns >= (u64)IDLE_MS * NSEC_PER_MSEC;
	spin_unlock_bh(&lane->lock);
	return idle;
}

static void drop_stock(struct kxfer_offers *offers)
{
	struct scatterlist *sg;
	bool used = false;
	struct ib_mr *mr;
	u32 i;

	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		struct kxfer_offer *offer = &offers->each[i];

		spin_lock_bh(&offers->lane->lock);
		mr = offer->state == OFFER_FREE ? offer->mr : NULL;
		if (mr)
			offer->mr = NULL;
		spin_unlock_bh(&offers->lane->lock);
		kxfer_mr_dereg(offers->lane, mr);
	}
	/* An MR that is left may be posted, which needs @sg. */
	spin_lock_bh(&offers->lane->lock);
	for (i = 0; i < KXFER_WIRE_OFFERS; i++)
		used |= !!offers->each[i].mr;
	sg = used ? NULL : offers->sg;
	if (sg)
		offers->sg = NULL;
	spin_unlock_bh(&offers->lane->lock);
	kvfree(sg);
}

static void offer_work(struct work_struct *work)
{
	struct kxfer_offers *offers =
		container_of(to_delayed_work(work), struct kxfer_offers, work);
	struct kxfer_offer *offer;
	int ret;

	kxfer_delay(OFFER_WORK);
	while ((offer = take_over(offers)))
		finish(offer);
	/* Pump even if idle: an ORDERED job may have been held until one of those ended. */
	kxfer_job_pump(offers->lane);
	if (is_idle(offers)) {
		drop_stock(offers);
		return;
	}
	ret = stock_up(offers);
	if (ret)
		kxfer_job_fail_long(offers->lane, ret);
	queue_delayed_work(kxfer_wq, &offers->work, msecs_to_jiffies(IDLE_MS) + 1);
}

/* ---- making and closing ---- */

/**
 * kxfer_offer_make() - prepare a data lane of an initiator to send long messages
 * @lane: connected; its link is not LIVE yet
 *
 * May sleep. Return: 0 or -ENOMEM.
 */
int kxfer_offer_make(struct kxfer_lane *lane)
{
	struct kxfer_offers *offers;
	u32 i;

	if (!(lane->link->features & KXFER_WIRE_FEATURE_LONG))
		return 0;
	offers = kxfer_try_alloc(OFFERS, kxfer_link_kvzalloc(lane->link, sizeof(*offers)));
	if (!offers)
		return -ENOMEM;
	offers->lane = lane;
	INIT_DELAYED_WORK(&offers->work, offer_work);
	INIT_LIST_HEAD(&offers->over);
	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		offers->each[i].offers = offers;
		offers->each[i].reg_cqe.done = registered;
	}
	/* Pairs with kxfer_offer_fetched(): the peer may send before the link is LIVE. */
	smp_store_release(&lane->offers, offers);
	return 0;
}

/** kxfer_offer_close() - end all offers of a stopped lane; may sleep; see the proof above */
void kxfer_offer_close(struct kxfer_lane *lane)
{
	struct kxfer_offers *offers = lane->offers;
	struct kxfer_offer *offer;
	u32 i;

	if (!offers)
		return;
	cancel_delayed_work_sync(&offers->work);
	while ((offer = take_over(offers)))
		finish(offer);
	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		kxfer_mr_dereg(lane, offers->each[i].mr);
		offers->each[i].mr = NULL;
		offers->each[i].state = OFFER_FREE;
	}
}

/** kxfer_offer_free() - free the offers of a lane, after kxfer_offer_close() */
void kxfer_offer_free(struct kxfer_lane *lane)
{
	if (lane->offers)
		kvfree(lane->offers->sg);
	kvfree(lane->offers);
}
