/* SPDX-License-Identifier: GPL-2.0 */
/* Work requests of a job that are posted together. See chain.c. */
#ifndef KXFER_CHAIN_H
#define KXFER_CHAIN_H

#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#include "base/plan.h"
#include "link/lane.h"

struct kxfer_active_job;
struct kxfer_cq;
struct kxfer_job_list;
struct kxfer_mapping;
struct kxfer_memory;
struct kxfer_region;
struct kxfer_session;
struct kxfer_sink;
struct kxfer_target;

#define KXFER_CHAIN_WRS		32	/* READs, WRITEs and atomics of one ib_post_send() */

/**
 * struct kxfer_chain - work requests of a job that are posted together
 *
 * A chain is posted for a job, or it is a quick job itself (quick.c); then the last five members
 * are of that job. They are set and cleared with the session's job_lock and the lane's lock held.
 *
 * @lane: lane of the chain
 * @next: next chain in kxfer_lane.free_chains while unused; then of those that complete with
 *	the same work request; then in kxfer_lane.finished
 * @first: first of the chains that complete with the last work request of this one; NULL if
 *	that is not signalled
 * @cqe: completion of the signalled work request
 * @silent_cqe: completion of unsignalled work requests, only in error
 * @inv_cqe: completion of the LOCAL_INV after a READ on iWARP
 * @job: job of the chain; NULL while unused, and of a quick job
 * @posted_at: time of posting in jiffies
 * @nr_wr: credits that the chain holds; 0 while unused
 * @sink: sink of an iWARP READ, or NULL
 * @offset: offset within the region of the first byte that the chain moves
 * @bytes: bytes that the chain moves
 * @session: session of a quick job; else NULL
 * @target: target of the quick job
 * @region: region of its local memory
 * @mapping: mapping of @region
 * @completion: completion of the quick job
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
	struct kxfer_session *session;
	struct kxfer_target *target;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	struct kxfer_completion completion;
};

/**
 * struct kxfer_scratch - memory to build work requests in; ib_post_send() copies them
 * @first: first work request that is not posted yet, or NULL
 * @last: last work request; undefined if there is none
 * @chains: first chain after the last signalled one, or NULL
 * @last_chain: last chain; undefined if @chains is NULL
 * @nr: work requests that are not posted yet
 * @used: used entries of @sge, each with the one of @wr or @atomic
 * @lkey: lkey of entries of @sge that are not of an MR
 * @wr: READs and WRITEs
 * @sge: local memory of @wr and @atomic
 * @desc: the work request being built
 * @sg: scatter list to map the sink of a READ
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

/* Put a chain that holds no credits into the list of free ones; with the lane's lock held. */
static inline void kxfer_chain_free(struct kxfer_lane *lane, struct kxfer_chain *chain)
{
	chain->nr_wr = 0;
	chain->next = lane->free_chains;
	lane->free_chains = chain;
}

/* How often kxfer_chain_add_piece() may be called at most; with the lane's lock held. */
static inline u32 kxfer_chain_pieces(const struct kxfer_lane *lane)
{
	return min_t(u32, lane->credits.left, KXFER_CHAIN_WRS - lane->scratch->used);
}

/* Whether the lane's limit of bytes allows more; with the lane's lock held. */
static inline bool kxfer_chain_bytes_left(const struct kxfer_lane *lane)
{
	return lane->bytes_posted < lane->max_bytes;
}

void kxfer_chain_init(struct kxfer_chain *chain, struct kxfer_lane *lane);
struct kxfer_chain *kxfer_chain_add_piece(struct kxfer_lane *lane,
					  const struct kxfer_piece *piece,
					  enum ib_wr_opcode opcode, u32 immediate);
void kxfer_chain_discount(struct kxfer_active_job *job, struct kxfer_job_list *ended);
bool kxfer_chain_add(struct kxfer_lane *lane, struct kxfer_active_job *job);
bool kxfer_chain_add_message(struct kxfer_lane *lane, struct kxfer_active_job *job);
void kxfer_chain_flush(struct kxfer_lane *lane);
void kxfer_chain_settle(struct kxfer_cq *cq);
unsigned int kxfer_chain_oldest_ms(const struct kxfer_lane *lane);
void kxfer_chain_inline(const struct kxfer_lane *lane, struct ib_send_wr *wr,
			const struct kxfer_memory *memory, u64 offset, u64 length);

#endif /* KXFER_CHAIN_H */
