/* SPDX-License-Identifier: GPL-2.0 */
/* One QP with its CQ: credits, posting, completions. See lane.c. */
#ifndef KXFER_LANE_H
#define KXFER_LANE_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "base/credit.h"
#include "base/deadline.h"
#include "base/wire.h"
#include "link/channel.h"
#include "link/cq.h"
#include "link/iwarp.h"
#include "link/link_ops.h"
#include "link/mr.h"

struct kxfer_chain;
struct kxfer_fetches;
struct kxfer_latency;
struct kxfer_link;
struct kxfer_listener;
struct kxfer_mrs;
struct kxfer_offers;
struct kxfer_run_rw;
struct kxfer_scratch;

#define KXFER_LANE_JOB_WRS	256	/* work requests of jobs in a data lane's send queue */
#define KXFER_CONTROL_REG_WRS	16	/* fast registrations in a control QP's send queue */
#define KXFER_IN_FLIGHT_KIB	4096			/* limit on the lane of bulk jobs */
#define KXFER_SMALL_BYTES	(1024 * 1024)	/* limit on a small lane (flow.c) */
#define KXFER_LANE_LONG_WRS	16	/* of a data lane, for offer.c or fetch.c */
#define KXFER_LANE_INLINE	64	/* inline bytes of a work request, if the device can */
#define KXFER_STUCK_MS		30000	/* jobs posted, none completes: held up by the peer */
#define KXFER_NOTIFY_MS		8000	/* NOTIFY arrived, not answered: held up by the peer */

/**
 * enum kxfer_flow_wait - what a flow with queued jobs waits for
 * @KXFER_FLOW_TURN: its turn, and credits of the lane
 * @KXFER_FLOW_SLOT: a slot for the short message that is its first job
 * @KXFER_FLOW_OFFER: an offer for the long message that is its first job
 * @KXFER_FLOW_HELD: the end of its posted jobs, until which its first job is held
 * @KXFER_FLOW_WAITS: number of these values
 */
enum kxfer_flow_wait {
	KXFER_FLOW_TURN,
	KXFER_FLOW_SLOT,
	KXFER_FLOW_OFFER,
	KXFER_FLOW_HELD,
	KXFER_FLOW_WAITS
};

/**
 * struct kxfer_lane_user - user that has all credits of a lane, and posts without jobs
 * @owner: module of @drained; in use as long as the lane has this user
 * @drained: the lane is being closed, and no work request of its QP is under way; QP and CQ
 *	are still there; may sleep
 */
struct kxfer_lane_user {
	struct module *owner;
	void (*drained)(struct kxfer_lane *lane);
};

/**
 * struct kxfer_lane - a QP with its CQ
 * @link: link that owns the lane
 * @node: in kxfer_link.lanes
 * @id: node-wide: 16 times the link's id, plus @index
 * @index: 0: the control QP; data lanes from 1
 * @cm_id: connection of the lane
 * @qp: QP of @cm_id, destroyed before @cm_id; NULL: none
 * @size: size of queues and channel
 * @max_inline: bytes that a WRITE may carry in its work request; 0: the device cannot
 * @path_mtu: path MTU of @qp, in bytes, once it is connected; 0: not known
 * @cq: completions of sends and receives
 * @cm_done: the step of rdma_cm that is waited for has ended
 * @cm_error: result of that step, 0 or -errno
 * @refusal: enum kxfer_refusal that the peer gave
 * @accept_work: passive side: create the QP and accept
 * @hello: passive side: private data of the request
 * @conn_param: passive side: capabilities of the initiator
 * @lock: over all below, and over posting; bh-safe. Its unlock is the outermost enabling of
 *	bottom halves, so that a provider that works in a softirq runs at once
 * @open: work requests may be posted; cleared before the QP is drained
 * @credits: work requests of jobs that may be posted
 * @uncounted: work requests or messages may be under way that hold none of @credits
 * @bytes_posted: payload of the posted chains
 * @max_bytes: limit of @bytes_posted
 * @flows: flows of sessions with queued jobs, by what they wait for (flow.h)
 * @posted: jobs planned to the end, not completed, but those that are their chain (job/quick.c)
 * @nr_queued: jobs of @flows that are not planned to the end
 * @nr_posted: length of @posted, and the number of those others
 * @chains: array of chains, one for each credit
 * @free_chains: chains not in use, by kxfer_chain.next
 * @finished: completed chains not taken back yet, by kxfer_chain.next; belongs to the owner
 *	of @cq
 * @finished_end: place for the next chain of @finished; belongs to the owner of @cq
 * @scratch: memory for building chains
 * @iwarp: what iWARP needs
 * @registration: registration under way
 * @pump_work: posts queued jobs, outside of completions
 * @inline_since_ns: time since when completions have posted jobs without a break
 * @deadlines: deadlines of queued jobs, and of long messages that the peer does not READ yet
 * @exclusive: user that has all credits, and posts without jobs; or NULL
 * @run_want: number of completed operations at which the run of @exclusive is woken
 * @mr_mutex: over @mrs and @rw, and over making their objects on the device; taken
 *	with no other lock held
 * @mrs: MRs of that run, or NULL
 * @rw: rdma_rw contexts of that run, or NULL
 * @latencies: initiator: how long jobs took, by op (job/latency.h); or NULL
 * @offers: initiator: long messages (offer.c), or NULL
 * @fetches: passive side: long messages (fetch.c), or NULL
 * @grown: passive side: RECVs for eager messages are posted; under the lock of the link's grants
 * @unpromised: passive side: eager messages for which no grant has a credit; under the lock of
 *	the link's grants
 * @nr_wr: work requests posted since the lane was made
 * @nr_completions: completions seen since the lane was made
 * @heard_ns: time of the last message or completion; 0: none; without the lock
 * @bytes_read: payload of the chains of READs that completed
 * @bytes_written: payload of the chains of WRITEs that completed
 * @quiet_at: @nr_completions when kxfer_lane_stuck() last saw a change
 * @quiet_since_ns: time of that change, or when nothing was under way (kxfer_lane_rests())
 * @channel: messages of the lane
 */
struct kxfer_lane {
	struct kxfer_link *link;
	struct list_head node;
	u64 id;
	u32 index;
	struct rdma_cm_id *cm_id;
	struct ib_qp *qp;
	struct kxfer_lane_size size;
	u32 max_inline;
	u32 path_mtu;
	struct kxfer_cq cq;
	struct completion cm_done;
	int cm_error;
	u32 refusal;
	struct work_struct accept_work;
	struct kxfer_wire_hello hello;
	struct rdma_conn_param conn_param;

	spinlock_t lock;
	bool open;
	struct kxfer_credits credits;
	bool uncounted;
	u32 bytes_posted;
	u32 max_bytes;
	struct list_head flows[KXFER_FLOW_WAITS];
	struct list_head posted;
	u32 nr_queued;
	u32 nr_posted;
	struct kxfer_chain *chains;
	struct kxfer_chain *free_chains;
	struct kxfer_chain *finished;
	struct kxfer_chain **finished_end;
	struct kxfer_scratch *scratch;
	struct kxfer_iwarp iwarp;
	struct kxfer_registration registration;
	struct work_struct pump_work;
	u64 inline_since_ns;
	struct kxfer_deadlines deadlines;
	const struct kxfer_lane_user *exclusive;
	u32 run_want;
	struct mutex mr_mutex;
	struct kxfer_mrs *mrs;
	struct kxfer_run_rw *rw;
	struct kxfer_latency *latencies;
	struct kxfer_offers *offers;
	struct kxfer_fetches *fetches;
	bool grown;
	u32 unpromised;
	u64 nr_wr;
	u64 nr_completions;
	u64 heard_ns;
	u64 bytes_read;
	u64 bytes_written;
	u64 quiet_at;
	u64 quiet_since_ns;

	struct kxfer_channel channel;
};

struct kxfer_lane *kxfer_lane_create(struct kxfer_link *link, u32 index, int numa_node);
int kxfer_lane_open(struct kxfer_lane *lane, enum kxfer_context context);
void kxfer_lane_drain(struct kxfer_lane *lane);
void kxfer_lane_stop(struct kxfer_lane *lane);
void kxfer_lane_close(struct kxfer_lane *lane);
void kxfer_lane_free(struct kxfer_lane *lane);
void kxfer_lane_wc_error(struct kxfer_lane *lane, const struct ib_wc *wc,
			 const char *what);
bool kxfer_lane_is_idle(const struct kxfer_lane *lane);
bool kxfer_lane_stuck(struct kxfer_lane *lane);
bool kxfer_lane_overdue(struct kxfer_lane *lane);
void kxfer_lane_rests(struct kxfer_lane *lane);
int kxfer_lane_post_counted(struct kxfer_lane *lane, const struct ib_send_wr *wr, u32 nr);
int kxfer_lane_post(struct kxfer_lane *lane, const struct ib_send_wr *wr, u32 nr);
int kxfer_lane_post_locked(struct kxfer_lane *lane, const struct ib_send_wr *wr,
			   u32 nr);
int kxfer_lane_post_to_locked(struct kxfer_lane *lane, struct ib_qp *qp,
			      const struct ib_send_wr *wr, u32 nr);

#define KXFER_LANE_LOOK_US	20	/* between two polls of kxfer_lane_wait() */

/*
 * wait_event() for the effect of a completion of @lane; sleeps. A CQ of KXFER_CONTEXT_DIRECT
 * is not polled by any other context: the waiter polls it.
 */
#define kxfer_lane_wait(lane, condition)						\
do {											\
	struct kxfer_lane *__lane = (lane);						\
											\
	while (__lane->cq.direct && !(condition)) {					\
		kxfer_cq_look(&__lane->cq);						\
		usleep_range(KXFER_LANE_LOOK_US, 2 * KXFER_LANE_LOOK_US);		\
	}										\
	wait_event(__lane->link->wait, condition);					\
} while (0)

/*
 * kxfer_lane_wait() for at most @ms. Return: whether @condition is true.
 */
#define kxfer_lane_wait_ms(lane, condition, ms)						\
({											\
	unsigned long __end = jiffies + msecs_to_jiffies(ms);				\
	struct kxfer_lane *__timed = (lane);						\
											\
	while (__timed->cq.direct && !(condition) && time_before(jiffies, __end)) {	\
		kxfer_cq_look(&__timed->cq);						\
		usleep_range(KXFER_LANE_LOOK_US, 2 * KXFER_LANE_LOOK_US);		\
	}										\
	wait_event_timeout(__timed->link->wait, condition,				\
			   __timed->cq.direct ? 1 : msecs_to_jiffies(ms) + 1) > 0;	\
})

static inline bool kxfer_lane_is_control(const struct kxfer_lane *lane)
{
	return lane->index == 0;
}

#endif /* KXFER_LANE_H */
