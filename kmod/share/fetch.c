// SPDX-License-Identifier: GPL-2.0
/*
 * Fetches: the receiver's side of long messages. The sender's side is offer.c.
 *
 * A message that a peer OFFERs on a data lane is noted in a fetch of that lane and in the
 * mailbox (mailbox.c). A lane has as many fetches as offers may be under way. The OFFER is
 * answered at once, so it keeps no slot of the channel. The states of a fetch are
 *
 *	FREE -> NOTED		OFFER came, and was not refused
 *	NOTED -> FREE		TAKE_BACK came, and the fetch still waited in its mailbox
 *	NOTED -> TOLD		the fetch is over: FETCHED is sent, as soon as there is a slot
 *	TOLD -> FREE		FETCHED is answered
 *
 * A NOTED fetch is in one place: either it waits in the mailbox; or it was handed to the lane
 * under the mailbox's lock, with a RECV or with the reason why it gets none, and is in @ready,
 * @reading or @fetched.
 *
 * A TAKE_BACK that crosses FETCHED waits for its slot of the channel, as every request does;
 * the answer to FETCHED does not. So one TAKE_BACK may come when the fetch is FREE again.
 *
 * The READ places the payload where the RECV has it (kxfer_active_job.payload). Struct
 * kxfer_message is written once the payload is there. Each READ has its own registration (a
 * landing), so it is one work request for any number of pages. On iWARP the landing is remotely
 * writable, so it is deregistered before the RECV completes; LOCAL_INV waits for nothing.
 * Elsewhere its key never leaves this node, so the landing stays registered until its next
 * READ invalidates it, or IDLE_MS have passed.
 *
 * The end of a lane, as a proof. It is stopped, so no device touches the memory of a RECV
 * through the lane, and no OFFER or TAKE_BACK comes.
 *  1. Fetches that wait in mailboxes are taken out, each under the mailbox's lock. So no
 *     mailbox hands over a fetch from then on.
 *  2. The work is cancelled; nothing queues it any more.
 *  3. RECVs whose READ has ended complete. All others go back to their mailboxes, to wait
 *     for the next message, and their mappings are put.
 *  4. Landings are deregistered, before the link lets go of PD and device.
 * A READ that neither ends nor fails for KXFER_STUCK_MS ends the link (kxfer_fetch_stuck()).
 * A fetch may wait for KXFER_WIRE_OFFERS / NR_LANDINGS - 1 others that use a landing before
 * it, and a slow link must have that time for each. So a RECV waits for a peer four times
 * that long at most; withdrawal and the end of a session fail the link after KXFER_CLOSE_MS.
 *
 * Context: messages and completions do not sleep, the work does.
 * Lock order: as in mailbox.c.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/fault.h"
#include "job/completion.h"
#include "job/mailbox.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"
#include "share/export.h"
#include "share/exposure.h"
#include "share/fetch.h"
#include "share/grant.h"

#define NR_LANDINGS	4	/* READs of a lane at the same time */
#define IDLE_MS		100	/* without a READ: drop the MRs */

static_assert(3 * NR_LANDINGS <= KXFER_LANE_LONG_WRS);

/**
 * struct landing - where a READ places a message
 * @node: in kxfer_fetches.free or kxfer_fetches.fetched
 * @fetches: fetches of the lane
 * @mr: MR or NULL
 * @valid: @mr was registered, and not invalidated since
 * @fetch: fetch whose READ is under way
 * @cqe: completion handler of @read
 * @silent_cqe: completion handler of @inv and @reg, which complete only in error
 * @inv: LOCAL_INV of the previous registration
 * @reg: REG_MR
 * @read: READ
 * @sge: SGE of @read
 */
struct landing {
	struct list_head node;
	struct kxfer_fetches *fetches;
	struct ib_mr *mr;
	bool valid;
	struct kxfer_fetch *fetch;
	struct ib_cqe cqe;
	struct ib_cqe silent_cqe;
	struct ib_send_wr inv;
	struct ib_reg_wr reg;
	struct ib_rdma_wr read;
	struct ib_sge sge;
};

/**
 * struct kxfer_fetches - fetches and landings of a lane
 * @lane: lane that the fetches belong to
 * @work: begins READs, and ends those of iWARP
 * @sg: scatter list to map a landing; used by @work only
 * @lock: protects all lists except @tell; a leaf; bh-safe
 * @ready: fetches handed to the lane
 * @reading: fetches with a READ posted, or on a link that is going down
 * @fetched: landings whose READ is done, to be deregistered
 * @free: landings without a READ
 * @nr_free: length of @free
 * @used_ns: time when the last READ was posted
 * @tell: fetches with a FETCHED to post; under the lane's lock
 * @landings: all landings
 * @each: all fetches, by the ids of their offers
 */
struct kxfer_fetches {
	struct kxfer_lane *lane;
	struct delayed_work work;
	struct scatterlist *sg;
	spinlock_t lock;
	struct list_head ready;
	struct list_head reading;
	struct list_head fetched;
	struct list_head free;
	u32 nr_free;
	struct list_head tell;
	u64 used_ns;
	struct landing landings[NR_LANDINGS];
	struct kxfer_fetch each[KXFER_WIRE_OFFERS];
};

/* ---- reporting to the peer ---- */

/* The peer has seen FETCHED: an OFFER may use the id again. */
static void told(struct kxfer_request *request)
{
	struct kxfer_fetch *fetch = request->owner;

	if (request->status == -ECONNRESET)
		return;
	spin_lock_bh(&fetch->incoming.lane->lock);
	fetch->state = KXFER_FETCH_FREE;
	fetch->told = true;
	spin_unlock_bh(&fetch->incoming.lane->lock);
}

/* Called with the lane's lock held. */
static void post_told(struct kxfer_fetches *fetches, struct kxfer_fetch *fetch,
		      struct kxfer_request *request)
{
	struct kxfer_wire_fetched fetched = {
		.id = cpu_to_be32(fetch - fetches->each),
		.status = cpu_to_be32(kxfer_wire_status(fetch->status)),
	};

	request->owner = fetch;
	request->answered = told;
	/* If posting fails, the link is broken. */
	kxfer_channel_post_locked(request, KXFER_WIRE_FETCHED, &fetched, sizeof(fetched));
}

static void tell_locked(struct kxfer_fetches *fetches)
{
	struct kxfer_request *request;
	struct kxfer_fetch *fetch;

	while ((fetch = list_first_entry_or_null(&fetches->tell, struct kxfer_fetch, node))) {
		request = kxfer_channel_get_locked(&fetches->lane->channel);
		if (!request)
			return;
		list_del_init(&fetch->node);
		post_told(fetches, fetch, request);
	}
}

/** kxfer_fetch_tell() - use free request slots of a passive link's data lane; no sleeping */
void kxfer_fetch_tell(struct kxfer_lane *lane)
{
	if (!lane->fetches)
		return;
	spin_lock_bh(&lane->lock);
	tell_locked(lane->fetches);
	spin_unlock_bh(&lane->lock);
}

/* Report the end of a fetch to the peer; it is in no list, and done with its mailbox. */
static void end_fetch(struct kxfer_fetches *fetches, struct kxfer_fetch *fetch, int status)
{
	struct kxfer_exposure *exposure = fetch->exposure;

	spin_lock_bh(&fetches->lane->lock);
	fetch->state = KXFER_FETCH_TOLD;
	fetch->status = status;
	list_add_tail(&fetch->node, &fetches->tell);
	tell_locked(fetches);
	spin_unlock_bh(&fetches->lane->lock);
	kxfer_exposure_put(exposure);
}

/* ---- READs ---- */

/* @error: status of the RECV; the peer gets EREMOTEIO in any case. */
static void fail_fetch(struct kxfer_fetches *fetches, struct kxfer_fetch *fetch, int error)
{
	fetch->incoming.job->status = error;
	kxfer_mailbox_fetched(&fetch->incoming, ktime_get_ns());
	end_fetch(fetches, fetch, -EREMOTEIO);
}

/* The payload of the message is in the region, which no device can touch any more. */
static void finish_fetch(struct kxfer_fetches *fetches, struct kxfer_fetch *fetch)
{
	struct kxfer_active_job *job = fetch->incoming.job;

	kxfer_mapping_to_cpu(job->mapping, job->payload, fetch->incoming.message.bytes);
	kxfer_mailbox_head(job, &fetch->incoming.message);
	kxfer_mailbox_fetched(&fetch->incoming, ktime_get_ns());
	end_fetch(fetches, fetch, 0);
}

static void give_landing(struct kxfer_fetches *fetches, struct landing *landing)
{
	bool more;

	spin_lock_bh(&fetches->lock);
	landing->fetch = NULL;
	list_add(&landing->node, &fetches->free);
	fetches->nr_free++;
	more = !list_empty(&fetches->ready);
	spin_unlock_bh(&fetches->lock);
	if (more)
		mod_delayed_work(kxfer_wq, &fetches->work, 0);
}

static void deregister(struct landing *landing)
{
	kxfer_mr_dereg(landing->fetches->lane, landing->mr);
	landing->mr = NULL;
	landing->valid = false;
}

static void fetched(struct ib_cq *cq, struct ib_wc *wc)
{
	struct landing *landing = container_of(wc->wr_cqe, struct landing, cqe);
	struct kxfer_fetches *fetches = landing->fetches;
	struct kxfer_fetch *fetch = landing->fetch;
	struct kxfer_lane *lane = fetches->lane;
	bool iwarp = lane->link->dev->iwarp;

	kxfer_fault_wc(FETCHED, wc);
	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "READ of a message");
		return;
	}
	WRITE_ONCE(lane->heard_ns, ktime_get_ns());
	WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	spin_lock_bh(&fetches->lock);
	list_del_init(&fetch->node);
	if (iwarp)
		list_add_tail(&landing->node, &fetches->fetched);
	spin_unlock_bh(&fetches->lock);
	if (iwarp) {
		mod_delayed_work(kxfer_wq, &fetches->work, 0);
		return;
	}
	finish_fetch(fetches, fetch);
	give_landing(fetches, landing);
}

static void silent_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct landing *landing = container_of(wc->wr_cqe, struct landing, silent_cqe);

	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(landing->fetches->lane, wc, "registration for a message");
}

/* Return: a landing whose READ is done, or NULL. */
static struct landing *take_fetched(struct kxfer_fetches *fetches)
{
	struct landing *landing;

	spin_lock_bh(&fetches->lock);
	landing = list_first_entry_or_null(&fetches->fetched, struct landing, node);
	if (landing)
		list_del_init(&landing->node);
	spin_unlock_bh(&fetches->lock);
	return landing;
}

/* Return: a fetch to begin, with a landing unless it gets no RECV; or NULL. */
static struct kxfer_fetch *take_ready(struct kxfer_fetches *fetches, struct landing **landing)
{
	struct kxfer_fetch *fetch;

	spin_lock_bh(&fetches->lock);
	fetch = list_first_entry_or_null(&fetches->ready, struct kxfer_fetch, node);
	*landing = list_first_entry_or_null(&fetches->free, struct landing, node);
	if (fetch && fetch->incoming.job && !*landing)
		fetch = NULL;
	if (fetch)
		list_del_init(&fetch->node);
	if (fetch && fetch->incoming.job) {
		list_del_init(&(*landing)->node);
		fetches->nr_free--;
	}
	spin_unlock_bh(&fetches->lock);
	return fetch;
}

static int make_mr(struct kxfer_fetches *fetches, struct landing *landing)
{
	u32 pages = kxfer_device_message_pages(fetches->lane->link->dev);
	size_t bytes = array_size(pages, sizeof(*fetches->sg));
	struct ib_mr *mr;

	if (!fetches->sg)
		fetches->sg = kxfer_try_alloc(FETCH_SG,
					      kxfer_link_kvzalloc(fetches->lane->link, bytes));
	if (!fetches->sg)
		return -ENOMEM;
	if (landing->mr)
		return 0;
	mr = kxfer_mr_alloc(fetches->lane, pages);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	landing->mr = mr;
	return 0;
}

static int map_mr(struct kxfer_fetches *fetches, struct landing *landing,
		  const struct kxfer_fetch *fetch)
{
	const struct kxfer_mapping *mapping = fetch->incoming.job->mapping;
	u64 offset = fetch->incoming.job->payload, bytes = fetch->incoming.message.bytes;
	u32 nr = kxfer_mapping_pieces(mapping, offset, bytes, NULL);

	/* Cannot happen: kxfer_link_longest() limits messages. */
	if (WARN_ON_ONCE(nr > kxfer_device_message_pages(fetches->lane->link->dev)))
		return -EIO;
	sg_init_table(fetches->sg, nr);
	kxfer_mapping_pieces(mapping, offset, bytes, fetches->sg);
	landing->inv.ex.invalidate_rkey = landing->mr->rkey;
	return kxfer_try(FETCH_MAP, kxfer_device_map_mr(landing->mr, fetches->sg, nr, PAGE_SIZE));
}

/* Return: the first of the work requests that READ a message. */
static struct ib_send_wr *fill_wrs(struct landing *landing, const struct kxfer_fetch *fetch,
				   bool iwarp)
{
	struct ib_mr *mr = landing->mr;
	bool valid = landing->valid;

	landing->sge = (struct ib_sge) {
		.addr = mr->iova, .length = fetch->incoming.message.bytes, .lkey = mr->lkey,
	};
	landing->read = (struct ib_rdma_wr) {
		.wr = {
			.wr_cqe = &landing->cqe,
			.sg_list = &landing->sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_READ,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = fetch->offered.address,
		.rkey = fetch->offered.key,
	};
	landing->reg = (struct ib_reg_wr) {
		.wr = {
			.next = &landing->read.wr,
			.wr_cqe = &landing->silent_cqe,
			.opcode = IB_WR_REG_MR,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | (iwarp ? IB_ACCESS_REMOTE_WRITE : 0),
	};
	landing->inv.next = &landing->reg.wr;
	landing->inv.wr_cqe = &landing->silent_cqe;
	landing->inv.opcode = IB_WR_LOCAL_INV;
	landing->valid = true;
	return valid ? &landing->inv : &landing->reg.wr;
}

/* If posting fails, or the link is going down, kxfer_fetch_close() gives the RECV back. */
static void post_read(struct kxfer_fetches *fetches, struct landing *landing,
		      struct kxfer_fetch *fetch)
{
	struct kxfer_lane *lane = fetches->lane;
	struct ib_send_wr *wr = fill_wrs(landing, fetch, lane->link->dev->iwarp);

	landing->fetch = fetch;
	kxfer_mapping_to_device(fetch->incoming.job->mapping, fetch->incoming.job->payload,
				fetch->incoming.message.bytes);
	spin_lock_bh(&fetches->lock);
	fetch->posted_ns = ktime_get_ns();
	fetches->used_ns = fetch->posted_ns;
	list_add_tail(&fetch->node, &fetches->reading);
	spin_unlock_bh(&fetches->lock);
	kxfer_lane_post(lane, wr, wr == &landing->inv ? 3 : 2);
}

static void begin_read(struct kxfer_fetches *fetches, struct landing *landing,
		       struct kxfer_fetch *fetch)
{
	struct kxfer_active_job *job = fetch->incoming.job;
	struct kxfer_mapping *mapping;
	int ret;

	mapping = kxfer_mapping_get(job->region, fetches->lane->link->dev);
	ret = PTR_ERR_OR_ZERO(mapping);
	if (ret == -ENODEV) {
		/* The link goes with its device: kxfer_fetch_close() gives the RECV back. */
		spin_lock_bh(&fetches->lock);
		fetch->posted_ns = ktime_get_ns();
		list_add_tail(&fetch->node, &fetches->reading);
		spin_unlock_bh(&fetches->lock);
		return;
	}
	if (!ret) {
		job->mapping = mapping;
		ret = make_mr(fetches, landing) ?: map_mr(fetches, landing, fetch);
	}
	if (!ret) {
		post_read(fetches, landing, fetch);
		return;
	}
	fail_fetch(fetches, fetch, ret);
	give_landing(fetches, landing);
}

static void settle(struct kxfer_fetches *fetches, struct landing *landing)
{
	kxfer_delay(FETCH_END);
	deregister(landing);
	finish_fetch(fetches, landing->fetch);
	give_landing(fetches, landing);
}

/* Only the work takes free landings. Return: whether a landing still has an MR. */
static bool drop_idle(struct kxfer_fetches *fetches)
{
	bool left = false, idle;
	u32 i;

	spin_lock_bh(&fetches->lock);
	idle = fetches->nr_free == NR_LANDINGS &&
	       ktime_get_ns() - fetches->used_ns >= (u64)IDLE_MS * NSEC_PER_MSEC;
	spin_unlock_bh(&fetches->lock);
	for (i = 0; i < NR_LANDINGS; i++) {
		if (idle)
			deregister(&fetches->landings[i]);
		if (fetches->landings[i].mr)
			left = true;
	}
	if (idle) {
		kvfree(fetches->sg);
		fetches->sg = NULL;
	}
	return left;
}

static void fetch_work(struct work_struct *work)
{
	struct kxfer_fetches *fetches =
		container_of(to_delayed_work(work), struct kxfer_fetches, work);
	struct landing *landing;
	struct kxfer_fetch *fetch;

	kxfer_delay(FETCH_WORK);
	do {
		while ((landing = take_fetched(fetches)))
			settle(fetches, landing);
		fetch = take_ready(fetches, &landing);
		if (fetch && fetch->incoming.job)
			begin_read(fetches, landing, fetch);
		else if (fetch)
			end_fetch(fetches, fetch, fetch->status);
	} while (fetch);
	if (drop_idle(fetches))
		queue_delayed_work(kxfer_wq, &fetches->work, msecs_to_jiffies(IDLE_MS) + 1);
}

/* Called with the mailbox's lock held, so that the end of the lane sees the fetch. */
static void handed(struct kxfer_incoming *incoming, struct kxfer_active_job *job, int status)
{
	struct kxfer_fetch *fetch = container_of(incoming, struct kxfer_fetch, incoming);
	struct kxfer_fetches *fetches = incoming->lane->fetches;

	incoming->job = job;
	fetch->status = status;
	spin_lock(&fetches->lock);
	list_add_tail(&fetch->node, &fetches->ready);
	mod_delayed_work(kxfer_wq, &fetches->work, 0);
	spin_unlock(&fetches->lock);
}

/* ---- the peer's requests ---- */

/**
 * kxfer_fetch_offered() - handle OFFER
 * @lane: lane of a passive link
 * @offer: payload of OFFER, untrusted
 *
 * Does not sleep. Return: 0 or -errno for the answer; -EPROTO: @offer breaks the protocol.
 */
int kxfer_fetch_offered(struct kxfer_lane *lane, const struct kxfer_wire_offer *offer)
{
	struct kxfer_message message = {
		.time_ns = ktime_get_ns(),
		.peer = lane->link->remote,
	};
	struct kxfer_offered offered;
	struct kxfer_fetch *fetch;
	bool taken;
	int ret;

	if (!lane->fetches ||
	    kxfer_wire_take_offer(&message, &offered, offer, lane->link->features) ||
	    message.bytes > kxfer_link_longest(lane->link))
		return -EPROTO;
	fetch = &lane->fetches->each[offered.id];
	spin_lock_bh(&lane->lock);
	taken = fetch->state != KXFER_FETCH_FREE;
	if (!taken) {
		fetch->state = KXFER_FETCH_NOTED;
		fetch->told = false;
	}
	spin_unlock_bh(&lane->lock);
	if (taken)
		return -EPROTO;
	fetch->offered = offered;
	fetch->incoming.message = message;
	ret = kxfer_grant_offer(lane->link, fetch);
	if (!ret)
		return 0;
	spin_lock_bh(&lane->lock);
	fetch->state = KXFER_FETCH_FREE;
	spin_unlock_bh(&lane->lock);
	return ret;
}

/**
 * kxfer_fetch_take_back() - handle TAKE_BACK
 * @lane: lane of a passive link
 * @take: payload of TAKE_BACK, untrusted
 *
 * Does not sleep. Return: 0; -EAGAIN: FETCHED will be or was sent; -EPROTO: there is no
 * such offer, which breaks the protocol.
 */
int kxfer_fetch_take_back(struct kxfer_lane *lane, const struct kxfer_wire_take_back *take)
{
	u32 id = be32_to_cpu(take->id);
	struct kxfer_fetch *fetch;
	int ret = -EAGAIN;

	if (!lane->fetches || id >= KXFER_WIRE_OFFERS || take->reserved)
		return -EPROTO;
	fetch = &lane->fetches->each[id];
	spin_lock_bh(&lane->lock);
	if (fetch->state == KXFER_FETCH_FREE) {
		ret = fetch->told ? -EAGAIN : -EPROTO;
		fetch->told = false;
	} else if (fetch->state == KXFER_FETCH_NOTED && kxfer_mailbox_take_back(&fetch->incoming)) {
		fetch->state = KXFER_FETCH_FREE;
		ret = 0;
	}
	spin_unlock_bh(&lane->lock);
	/* No OFFER sets fetch->exposure: requests of a lane are handled one at a time. */
	if (!ret)
		kxfer_exposure_put(fetch->exposure);
	return ret;
}

/**
 * kxfer_fetch_stuck() - whether the peer holds a READ up
 * @lane: lane of a LIVE passive link
 *
 * Called with each keep-alive; does not sleep.
 */
bool kxfer_fetch_stuck(struct kxfer_lane *lane)
{
	u64 now = ktime_get_ns(), limit = (u64)KXFER_STUCK_MS * NSEC_PER_MSEC;
	struct kxfer_fetches *fetches;
	struct kxfer_fetch *fetch;
	bool stuck = false;

	spin_lock_bh(&lane->lock);
	fetches = lane->open ? lane->fetches : NULL;
	spin_unlock_bh(&lane->lock);
	if (!fetches)
		return false;
	spin_lock_bh(&fetches->lock);
	list_for_each_entry(fetch, &fetches->reading, node)
		stuck |= now > fetch->posted_ns && now - fetch->posted_ns > limit;
	spin_unlock_bh(&fetches->lock);
	return stuck;
}

/* ---- making and closing ---- */

/**
 * kxfer_fetch_make() - allocate what a lane of a passive link needs for long messages
 * @lane: lane that is not open yet; its link has its device
 *
 * May sleep. Return: 0 or -ENOMEM.
 */
int kxfer_fetch_make(struct kxfer_lane *lane)
{
	struct kxfer_fetches *fetches;
	u32 i;

	if (kxfer_lane_is_control(lane) || !(lane->link->features & KXFER_WIRE_FEATURE_LONG))
		return 0;
	fetches = kxfer_try_alloc(FETCHES, kxfer_link_kvzalloc(lane->link, sizeof(*fetches)));
	if (!fetches)
		return -ENOMEM;
	fetches->lane = lane;
	spin_lock_init(&fetches->lock);
	INIT_DELAYED_WORK(&fetches->work, fetch_work);
	INIT_LIST_HEAD(&fetches->ready);
	INIT_LIST_HEAD(&fetches->reading);
	INIT_LIST_HEAD(&fetches->fetched);
	INIT_LIST_HEAD(&fetches->free);
	INIT_LIST_HEAD(&fetches->tell);
	for (i = 0; i < NR_LANDINGS; i++) {
		struct landing *landing = &fetches->landings[i];

		landing->fetches = fetches;
		landing->cqe.done = fetched;
		landing->silent_cqe.done = silent_done;
		list_add_tail(&landing->node, &fetches->free);
	}
	fetches->nr_free = NR_LANDINGS;
	for (i = 0; i < KXFER_WIRE_OFFERS; i++) {
		fetches->each[i].incoming.lane = lane;
		fetches->each[i].incoming.handed = handed;
	}
	lane->fetches = fetches;
	return 0;
}

/* Take a waiting fetch out of its mailbox, as TAKE_BACK does. */
static void leave_mailbox(struct kxfer_lane *lane, struct kxfer_fetch *fetch)
{
	bool left;

	spin_lock_bh(&lane->lock);
	left = fetch->state == KXFER_FETCH_NOTED && kxfer_mailbox_take_back(&fetch->incoming);
	if (left)
		fetch->state = KXFER_FETCH_FREE;
	spin_unlock_bh(&lane->lock);
	if (left)
		kxfer_exposure_put(fetch->exposure);
}

static void give_back(struct kxfer_fetch *fetch)
{
	struct kxfer_active_job *job = fetch->incoming.job;
	struct kxfer_job_list ended = {};

	list_del_init(&fetch->node);
	if (job && job->mapping)
		kxfer_mapping_put(job->mapping, 1);
	if (job) {
		job->mapping = NULL;
		kxfer_mailbox_give_back(&fetch->incoming, &ended);
		kxfer_complete_all(&ended, 0, ktime_get_ns());
	}
	kxfer_exposure_put(fetch->exposure);
}

/** kxfer_fetch_close() - end the fetches of a stopped lane; may sleep. See the proof above */
void kxfer_fetch_close(struct kxfer_lane *lane)
{
	struct kxfer_fetches *fetches = lane->fetches;
	struct kxfer_fetch *fetch, *next;
	struct landing *landing;
	u32 i;

	if (!fetches)
		return;
	for (i = 0; i < KXFER_WIRE_OFFERS; i++)
		leave_mailbox(lane, &fetches->each[i]);
	cancel_delayed_work_sync(&fetches->work);
	while ((landing = take_fetched(fetches))) {
		deregister(landing);
		finish_fetch(fetches, landing->fetch);
	}
	/* Each RECV goes to the front of its mailbox, so the first one goes last. */
	list_for_each_entry_safe_reverse(fetch, next, &fetches->ready, node)
		give_back(fetch);
	list_for_each_entry_safe_reverse(fetch, next, &fetches->reading, node)
		give_back(fetch);
	for (i = 0; i < NR_LANDINGS; i++)
		deregister(&fetches->landings[i]);
}

/** kxfer_fetch_free() - free the fetches of a lane, after kxfer_fetch_close() */
void kxfer_fetch_free(struct kxfer_lane *lane)
{
	if (lane->fetches)
		kvfree(lane->fetches->sg);
	kvfree(lane->fetches);
}
