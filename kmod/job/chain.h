/* SPDX-License-Identifier: GPL-2.0 */
/* Work requests of a job that are posted together. See chain.c. */
#ifndef KXFER_CHAIN_H
#define KXFER_CHAIN_H

#include <linux/list.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#include "base/plan.h"

struct kxfer_active_job;
struct kxfer_cq;
struct kxfer_lane;
struct kxfer_memory;
struct kxfer_sink;

#define KXFER_CHAIN_WRS		32	/* READs and WRITEs of one ib_post_send(), and atomics */

/**
 * struct kxfer_chain - work requests of a job that are posted together
 * @lane: they were posted on
 * @next: in kxfer_lane.free_chains while unused; posted, of those that complete with
 *	the same work request; then in finished
 * @first: of those, if the last work request is signalled
 * @cqe: of the signalled one
 * @silent_cqe: of those not signalled; completes only in error
 * @inv_cqe: of a LOCAL_INV behind a READ on iWARP
 * @job: they belong to; NULL while unused
 * @posted_at: in jiffies
 * @nr_wr: credits that they hold
 * @sink: of an iWARP READ
 * @offset: within the region, of the first byte that they move
 * @bytes: that they move
 */
struct kxfer_chain {
	struct kxfer_lane *lane;
	struct kxfer_chain *next;
	struct kxfer_chain *first;
	struct ib_cqe cqe;
	struct ib_cqe silent_cqe;
	struct ib_cqe inv_cqe;
	struct kxfer_active_job *job;
	unsigned long posted_at;
	u32 nr_wr;
	struct kxfer_sink *sink;
	u64 offset;
	u64 bytes;
};

/**
 * struct kxfer_scratch - where work requests are built: ib_post_send() copies them
 * @first: of those not posted yet, or NULL
 * @last: of them
 * @chains: of those, the first behind the last signalled one, or NULL
 * @last_chain: the last of them, undefined if there is none
 * @nr: how many work requests they are
 * @used: entries of @sge that they use, each with that of @wr or @atomic
 * @lkey: of @sge, unless they are of an MR
 * @wr: READs and WRITEs
 * @sge: their memory
 * @desc: the one that is being built
 * @sg: for the sink of a READ
 * @atomic: atomics
 */
struct kxfer_scratch {
	const struct ib_send_wr *first;
	struct ib_send_wr *last;
	struct kxfer_chain *chains;
	struct kxfer_chain *last_chain;
	u32 nr;
	u32 used;
	u32 lkey;
	struct ib_rdma_wr wr[KXFER_CHAIN_WRS];
	struct ib_sge sge[KXFER_CHAIN_WRS][KXFER_PLAN_MAX_SGE];
	struct kxfer_wr_desc desc;
	struct scatterlist sg[KXFER_PLAN_MAX_SGE];
	struct ib_atomic_wr atomic[KXFER_CHAIN_WRS];
};

void kxfer_chain_init(struct kxfer_chain *chain, struct kxfer_lane *lane);
bool kxfer_chain_add(struct kxfer_lane *lane, struct kxfer_active_job *job);
void kxfer_chain_flush(struct kxfer_lane *lane);
void kxfer_chain_settle(struct kxfer_cq *cq);
unsigned int kxfer_chain_oldest_ms(const struct kxfer_lane *lane);
void kxfer_chain_inline(const struct kxfer_lane *lane, struct ib_send_wr *wr,
			const struct kxfer_memory *memory, u64 offset, u64 length);

#endif /* KXFER_CHAIN_H */
