// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes of jobs: what an initiator's data lane has for jobs, from its creation to its end.
 *
 * KXFER_LANE_JOB_WRS work requests are given out as credits (chain.c). One more is for a
 * placement READ, and KXFER_LANE_LONG_WRS are for long messages (offer.c). On iWARP a lane has
 * READ sinks. How long its jobs took is counted (latency.c).
 *
 * Context: kxfer_job_lane_init(), _size(), _stuck(), _slot_free() and _free() do not sleep,
 * the others may.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "base/deadline.h"
#include "base/fault.h"
#include "job/chain.h"
#include "job/job.h"
#include "job/job_lane.h"
#include "job/latency.h"
#include "job/offer.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"

/** kxfer_job_lane_init() - initialise the works of a new lane */
void kxfer_job_lane_init(struct kxfer_lane *lane)
{
	INIT_WORK(&lane->pump_work, kxfer_job_pump_work);
	kxfer_deadlines_init(&lane->deadlines, kxfer_wq, kxfer_job_deadline_work);
}

/** kxfer_job_lane_size() - set the slots and work requests of a data lane */
void kxfer_job_lane_size(const struct kxfer_lane *lane, struct kxfer_lane_size *size)
{
	size->slots = KXFER_WIRE_DATA_SLOTS;
	size->credits = KXFER_LANE_JOB_WRS;
	size->sends = KXFER_PLACEMENT_WRS + KXFER_LANE_LONG_WRS;
}

/* What is left by a failure, kxfer_job_lane_free() frees. */
static int make_memory(struct kxfer_lane *lane)
{
	size_t bytes = array_size(lane->credits.max, sizeof(*lane->chains));
	int node = kxfer_link_numa_node(lane->link);
	u32 i;

	lane->chains = kxfer_try_alloc(LANE_CHAINS, kvzalloc_node(bytes, KXFER_GFP_FOR_PEER, node));
	lane->scratch = kxfer_try_alloc(LANE_SCRATCH, kvzalloc_node(sizeof(*lane->scratch),
								    KXFER_GFP_FOR_PEER, node));
	/* INFO may look at it at once. */
	smp_store_release(&lane->latencies, kxfer_latency_make(node));
	if (!lane->chains || !lane->scratch || !lane->latencies)
		return -ENOMEM;
	lane->scratch->lkey = lane->link->pd->local_dma_lkey;
	for (i = 0; i < lane->credits.max; i++) {
		kxfer_chain_init(&lane->chains[i], lane);
		lane->chains[i].next = lane->free_chains;
		lane->free_chains = &lane->chains[i];
	}
	return 0;
}

/** kxfer_job_lane_open() - allocate what posting needs. Return: 0 or -ENOMEM */
int kxfer_job_lane_open(struct kxfer_lane *lane)
{
	if (kxfer_lane_is_control(lane)) {
		/* For ever: it has no credits, and is not seen by kxfer_job_lane_stuck(). */
		lane->uncounted = true;
		return 0;
	}
	/* The last data lane is for bulk jobs. */
	lane->max_bytes = lane->index == lane->link->max_data ?
			  lane->link->key.in_flight_kib * 1024 : KXFER_SMALL_BYTES;
	return make_memory(lane);
}

/** kxfer_job_lane_connected() - make what needs the connection. Return: 0 or -errno */
int kxfer_job_lane_connected(struct kxfer_lane *lane)
{
	return kxfer_iwarp_make_sinks(lane) ?: kxfer_offer_make(lane);
}

/**
 * kxfer_job_lane_idle() - whether nothing is under way on the CQ of a lane
 * @cq: CQ of an initiator's lane
 *
 * A lane that has messages is not idle until kxfer_job_lane_stuck() has found none. Any
 * context; takes no lock.
 */
bool kxfer_job_lane_idle(struct kxfer_cq *cq)
{
	struct kxfer_lane *lane = container_of(cq, struct kxfer_lane, cq);

	return !READ_ONCE(lane->uncounted) &&
	       READ_ONCE(lane->credits.left) == lane->credits.max;
}

/** kxfer_job_lane_stuck() - whether the peer holds up jobs; as kxfer_lane_stuck() */
bool kxfer_job_lane_stuck(struct kxfer_lane *lane)
{
	bool stuck = kxfer_lane_stuck(lane);

	spin_lock_bh(&lane->lock);
	if (kxfer_lane_is_idle(lane) && !kxfer_offer_is_posted(lane))
		WRITE_ONCE(lane->uncounted, false);
	stuck |= kxfer_offer_stuck_locked(lane, ktime_get_ns()) ||
		 kxfer_chain_oldest_ms(lane) > KXFER_STUCK_MS;
	spin_unlock_bh(&lane->lock);
	return stuck;
}

/** kxfer_job_lane_slot_free() - a request slot is free: post what waits for one */
void kxfer_job_lane_slot_free(struct kxfer_lane *lane)
{
	if (kxfer_lane_is_control(lane))
		return;
	kxfer_offer_pump(lane);
	kxfer_job_pump(lane);
}

/** kxfer_job_lane_closing() - cancel the deadline work; nothing is posted any more */
void kxfer_job_lane_closing(struct kxfer_lane *lane)
{
	cancel_delayed_work_sync(&lane->deadlines.work);
}

/** kxfer_job_lane_stopped() - cancel pump_work; no completion comes any more */
void kxfer_job_lane_stopped(struct kxfer_lane *lane)
{
	/* Completions queued it; pump_later() does only while the lane is open. */
	cancel_work_sync(&lane->pump_work);
}

/** kxfer_job_lane_free() - free what jobs have of a lane */
void kxfer_job_lane_free(struct kxfer_lane *lane)
{
	kxfer_offer_free(lane);
	kfree(lane->latencies);
	kvfree(lane->scratch);
	kvfree(lane->chains);
}
