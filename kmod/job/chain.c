// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: work requests of a job that are posted together.
 *
 * A chain is the part of a READ or WRITE that is posted at once, at most KXFER_CHAIN_WRS work
 * requests; or an atomic or an eager message (message.c), which are one. Chains are built in the
 * lane's scratch; one is enough, because ib_post_send() copies work requests. Chains of several
 * jobs are linked there and posted by one ib_post_send(), with one doorbell: when the scratch is
 * full, before a message is posted on the lane's channel, and before the lane's lock is dropped.
 *
 * The last work request of a chain is signalled, unless its job may complete with a later
 * one (KXFER_JOB_F_BATCH). The last of each post always is. A send queue completes in order:
 * so a signalled work request ends its own chain and the unsignalled ones before it.
 *
 * A lane has as many chains as credits. A chain is in the lane's list of free ones, or it is
 * posted: then it belongs to its job, or is a quick job itself (quick.c), and holds the credits of
 * its work requests. The owner of
 * a polled CQ collects the chains that are done, and takes all of them back in one hold of
 * the lane's lock (kxfer_chain_settle()). An unsignalled work request completes only when it
 * fails. If a work request fails its chain stays with the job: the link is broken, and its
 * teardown completes the job (job.c).
 *
 * On iWARP two things differ:
 *  - A READ needs a sink that is remotely writable. The sink is registered for that READ
 *    alone: the chain is a REG_MR and the READ, then a LOCAL_INV after the READ has completed,
 *    for which the chain holds a credit too. The chain ends with the LOCAL_INV, and gives
 *    the sink back.
 *  - A WRITE completes when TCP has its bytes. So the job's last chain ends with a placement
 *    READ (link/iwarp.c). WRITEs without one are noted on the target, which waits for them
 *    before it gives its grant back (kxfer_iwarp_wait_placed()).
 *
 * Context: chains are built and posted under the lane's lock. Completions run in a kworker, a
 * softirq or a system call, with no lock held, and take that lock. Nothing sleeps.
 *
 * Lock order: as in job.c.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/timekeeping.h>

#include "base/fault.h"
#include "base/stats.h"
#include "job/chain.h"
#include "job/completion.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/quick.h"
#include "job/target.h"
#include "job/trace.h"
#include "link/iwarp.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"

/* Members that neither this nor its callers set are 0. */
static void fill_send_wr(struct kxfer_lane *lane, struct kxfer_chain *chain, u32 i,
			 struct ib_send_wr *wr, const struct kxfer_wr_desc *desc,
			 enum ib_wr_opcode opcode)
{
	struct ib_sge *sge = lane->scratch->sge[i];
	u32 lkey = lane->scratch->lkey;
	u32 n;

	for (n = 0; n < desc->nr_sge; n++) {
		sge[n].addr = desc->sge[n].addr;
		sge[n].length = desc->sge[n].length;
		sge[n].lkey = lkey;
	}
	wr->wr_cqe = &chain->silent_cqe;
	wr->sg_list = sge;
	wr->num_sge = desc->nr_sge;
	wr->opcode = opcode;
	wr->send_flags = 0;
}

static void fill_wr(struct kxfer_lane *lane, struct kxfer_chain *chain, u32 i,
		    const struct kxfer_wr_desc *desc, enum ib_wr_opcode opcode)
{
	struct ib_rdma_wr *wr = &lane->scratch->wr[i];

	fill_send_wr(lane, chain, i, &wr->wr, desc, opcode);
	wr->remote_addr = desc->remote_addr;
	wr->rkey = desc->rkey;
}

/**
 * kxfer_chain_inline() - let a short WRITE carry its payload inline
 * @lane: lane of the WRITE; a WRITE too long for its max_inline is left as it is, as is one
 *	from a dma-buf
 * @wr: WRITE, with SGEs of its whole payload by local_dma_lkey
 * @memory: memory of the payload
 * @offset: offset of the first byte in @memory
 * @length: bytes
 *
 * The device, or its driver, copies the payload from the CPU's addresses, and the device
 * fetches nothing then. Any context.
 */
void kxfer_chain_inline(const struct kxfer_lane *lane, struct ib_send_wr *wr,
			const struct kxfer_memory *memory, u64 offset, u64 length)
{
	u64 at = memory->offset + offset, first, second = 0;
	struct ib_sge *sge = wr->sg_list;
	struct page **page;
	u32 here;

	if (length > lane->max_inline || !memory->pages)
		return;
	page = &memory->pages[at / PAGE_SIZE];
	here = min_t(u64, length, PAGE_SIZE - offset_in_page(at));
	first = (uintptr_t)page_address(page[0]) + offset_in_page(at);
	if (here < length) {
		second = (uintptr_t)page_address(page[1]);
		if (first + here == second)
			here = length;
		else if (wr->num_sge < 2)
			return;
	}
	sge[0].addr = first;
	sge[0].length = here;
	wr->num_sge = 1;
	if (here < length) {
		sge[1].addr = second;
		sge[1].length = length - here;
		wr->num_sge = 2;
	}
	wr->send_flags |= IB_SEND_INLINE;
}

/* Put a work request behind those in the scratch. */
static void append_wr(struct kxfer_scratch *scratch, struct ib_send_wr *wr)
{
	wr->next = NULL;
	if (scratch->first)
		scratch->last->next = wr;
	else
		scratch->first = wr;
	scratch->last = wr;
	scratch->nr++;
}

static bool proves_placement(const struct kxfer_lane *lane, const struct kxfer_active_job *job)
{
	return lane->iwarp.sink.mr && job->completion.op == KXFER_OP_WRITE &&
	       !(job->flags & KXFER_JOB_F_LOCAL_ONLY);
}

/*
 * siw lets TCP send an unsignalled WRITE of a page or more from where it is (siw_prepare_fpdu()):
 * a later completion says nothing of it, and TCP would send what the caller has put there since. A
 * READ behind it that has completed proves that its bytes have arrived. Without one such a WRITE is
 * signalled, and siw copies it.
 */
static u32 write_flags(const struct kxfer_lane *lane, const struct kxfer_active_job *job,
		       u32 bytes)
{
	return bytes >= PAGE_SIZE && lane->iwarp.sink.mr && !proves_placement(lane, job) ?
	       IB_SEND_SIGNALED : 0;
}

/* Before the plan moves on for this chain; end_chain() sees how far it went. */
static void begin_chain(struct kxfer_chain *chain, const struct kxfer_active_job *job)
{
	chain->sink = NULL;
	chain->offset = kxfer_plan_position(&job->plan);
	chain->bytes = kxfer_plan_left(&job->plan);
}

/* Signal the last work request of the scratch: it ends its chain, and those before. */
static void signal_last(struct kxfer_scratch *scratch)
{
	struct kxfer_chain *chain = scratch->last_chain;

	scratch->last->wr_cqe = &chain->cqe;
	scratch->last->send_flags |= IB_SEND_SIGNALED;
	chain->first = scratch->chains;
	scratch->chains = NULL;
}

static void append_chain(struct kxfer_scratch *scratch, struct kxfer_chain *chain)
{
	chain->next = NULL;
	chain->first = NULL;
	if (scratch->chains)
		scratch->last_chain->next = chain;
	else
		scratch->chains = chain;
	scratch->last_chain = chain;
}

/* The chain is its job's from now on, and holds credits. */
static void hold_chain(struct kxfer_lane *lane, struct kxfer_chain *chain,
		       struct kxfer_active_job *job, u32 credits)
{
	chain->job = job;
	chain->posted_at = jiffies;
	chain->nr_wr = credits;
	WARN_ON_ONCE(!kxfer_credits_take(&lane->credits, credits));
	lane->bytes_posted += chain->bytes;
	kxfer_mapping_to_device(job->mapping, chain->offset, chain->bytes);
}

/* The plan has moved past a chain of the job, which is about to be posted; that may fail. */
static void count_chain(struct kxfer_active_job *job)
{
	job->nr_chains++;
	job->started = true;
	if (!kxfer_plan_left(&job->plan) && !(job->flags & KXFER_JOB_F_NOTIFY))
		job->planned = true;
}

/* The last work request of the scratch ends the chain. */
static void end_chain(struct kxfer_lane *lane, struct kxfer_chain *chain,
		      struct kxfer_active_job *job, u32 credits)
{
	lane->free_chains = chain->next;
	append_chain(lane->scratch, chain);
	/* The sink of an iWARP READ is invalidated when that READ is done. */
	if (!(job->flags & KXFER_JOB_F_BATCH) || chain->sink)
		signal_last(lane->scratch);
	chain->bytes -= kxfer_plan_left(&job->plan);
	hold_chain(lane, chain, job, credits);
	count_chain(job);
}

/* Build one work request and put it behind the others. */
static void add_wr(struct kxfer_lane *lane, struct kxfer_chain *chain,
		   enum ib_wr_opcode opcode)
{
	struct kxfer_scratch *scratch = lane->scratch;
	u32 i = scratch->used++;

	fill_wr(lane, chain, i, &scratch->desc, opcode);
	append_wr(scratch, &scratch->wr[i].wr);
}

/* A READ of a few bytes: when it completes, the WRITEs before it are placed. */
static void add_placement(struct kxfer_lane *lane, struct kxfer_chain *chain)
{
	u32 lkey = kxfer_iwarp_placement(lane, &lane->scratch->desc);

	add_wr(lane, chain, IB_WR_RDMA_READ);
	lane->scratch->last->sg_list->lkey = lkey;
}

/* Make room for a chain. Return: work requests of payload that it may have. */
static u32 chain_room(struct kxfer_lane *lane, u32 extra)
{
	struct kxfer_scratch *scratch = lane->scratch;
	u32 room;

	if (scratch->used + 1 + extra > KXFER_CHAIN_WRS)
		kxfer_chain_flush(lane);
	room = kxfer_credits_room(&lane->credits, KXFER_CHAIN_WRS - scratch->used, extra);
	return lane->bytes_posted < lane->max_bytes ? room : 0;
}

/* Build a chain of a READ or WRITE, by local_dma_lkey. Return: false without room. */
static bool add_plain(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	enum ib_wr_opcode opcode = job->completion.op == KXFER_OP_READ ?
				   IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	u32 proof = proves_placement(lane, job) ? 1 : 0;
	struct kxfer_chain *chain = lane->free_chains;
	struct kxfer_scratch *scratch = lane->scratch;
	u32 room = chain_room(lane, proof);
	u32 n = 0, bytes = 0;

	if (!chain || !room)
		return false;
	begin_chain(chain, job);
	do {
		kxfer_plan_next(&job->plan, &scratch->desc);
		bytes += scratch->desc.length;
		add_wr(lane, chain, opcode);
		if (opcode == IB_WR_RDMA_WRITE)
			scratch->last->send_flags |= write_flags(lane, job, scratch->desc.length);
		n++;
	} while (n < room && bytes < KXFER_TURN_BYTES && kxfer_plan_left(&job->plan));
	if (opcode == IB_WR_RDMA_WRITE && n == 1)
		kxfer_chain_inline(lane, scratch->last, job->region->memory, chain->offset,
				   bytes);
	proof = proof && !kxfer_plan_left(&job->plan);
	if (proof)
		add_placement(lane, chain);
	job->target->unplaced = lane->iwarp.sink.mr && !proof && opcode == IB_WR_RDMA_WRITE;
	job->target->flow->unplaced = job->target->unplaced;
	end_chain(lane, chain, job, n + proof);
	return true;
}

/* Build an atomic, which the plan has found to be one word. Return: false without room. */
static bool add_atomic(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	enum ib_wr_opcode opcode = job->completion.op == KXFER_OP_COMPARE_SWAP ?
				   IB_WR_ATOMIC_CMP_AND_SWP : IB_WR_ATOMIC_FETCH_AND_ADD;
	struct kxfer_chain *chain = lane->free_chains;
	struct kxfer_scratch *scratch = lane->scratch;
	struct kxfer_wr_desc *desc = &scratch->desc;
	u32 room = chain_room(lane, 0);
	struct ib_atomic_wr *wr;
	u32 i;

	if (!chain || !room)
		return false;
	begin_chain(chain, job);
	kxfer_plan_next(&job->plan, desc);
	i = scratch->used++;
	wr = &scratch->atomic[i];
	fill_send_wr(lane, chain, i, &wr->wr, desc, opcode);
	wr->remote_addr = desc->remote_addr;
	wr->rkey = desc->rkey;
	wr->compare_add = job->compare_add;
	wr->swap = job->swap;
	append_wr(scratch, &wr->wr);
	end_chain(lane, chain, job, 1);
	return true;
}

/**
 * kxfer_chain_add_message() - build the SEND of an eager message
 * @lane: open lane whose lock the caller holds, and flushes before it drops the lock
 * @job: SEND that is planned, as one work request
 *
 * Return: false if nothing was built: there is no room.
 */
bool kxfer_chain_add_message(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_chain *chain = lane->free_chains;
	struct kxfer_scratch *scratch = lane->scratch;
	u32 room = chain_room(lane, 0);

	if (!chain || !room)
		return false;
	begin_chain(chain, job);
	kxfer_plan_next(&job->plan, &scratch->desc);
	add_wr(lane, chain, IB_WR_SEND_WITH_IMM);
	scratch->last->ex.imm_data = cpu_to_be32(job->target->grant);
	kxfer_chain_inline(lane, scratch->last, job->region->memory, chain->offset, job->length);
	end_chain(lane, chain, job, 1);
	return true;
}

/* Build one READ of iWARP with its registration. Return: false without room, or on failure. */
static bool add_sink_read(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_scratch *scratch = lane->scratch;
	struct kxfer_wr_desc *desc = &scratch->desc;
	struct kxfer_chain *chain = lane->free_chains;
	u32 room = chain_room(lane, 2);
	struct kxfer_sink *sink;

	sink = list_first_entry_or_null(&lane->iwarp.sinks, struct kxfer_sink, node);
	if (!chain || !sink || !room)
		return false;
	begin_chain(chain, job);
	if (!kxfer_plan_next(&job->plan, desc) || kxfer_iwarp_map_sink(sink, scratch->sg, desc)) {
		kxfer_link_fail(lane->link, -ECONNRESET);
		return false;
	}
	list_del_init(&sink->node);
	chain->sink = sink;
	sink->reg.wr.wr_cqe = &chain->silent_cqe;
	append_wr(scratch, &sink->reg.wr);
	desc->nr_sge = 1;
	desc->sge[0].addr = sink->mr->iova;
	desc->sge[0].length = desc->length;
	add_wr(lane, chain, IB_WR_RDMA_READ);
	scratch->last->sg_list->lkey = sink->mr->lkey;
	end_chain(lane, chain, job, 3);
	return true;
}

/**
 * kxfer_chain_add() - build the next chain of a READ, a WRITE or an atomic
 * @lane: open lane whose lock the caller holds, and flushes before it drops the lock
 * @job: job with something left to plan
 *
 * Return: false if nothing was built: there is no room, or the link has failed.
 */
bool kxfer_chain_add(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	if (job->completion.op == KXFER_OP_READ && lane->iwarp.sink_array)
		return add_sink_read(lane, job);
	if (kxfer_op_is_atomic(job->completion.op))
		return add_atomic(lane, job);
	return add_plain(lane, job);
}

/**
 * kxfer_chain_add_piece() - build a chain that is one work request with one SGE
 * @lane: open lane with room (kxfer_chain_pieces()). The caller holds its lock, has built no
 *	other chains than such, and flushes before it drops the lock
 * @piece: what the work request moves
 * @opcode: opcode of the work request, the last one in the scratch
 * @immediate: immediate of a SEND
 *
 * Return: the chain, with one credit; the caller says what job it is.
 */
struct kxfer_chain *kxfer_chain_add_piece(struct kxfer_lane *lane,
					  const struct kxfer_piece *piece,
					  enum ib_wr_opcode opcode, u32 immediate)
{
	struct kxfer_scratch *scratch = lane->scratch;
	struct kxfer_chain *chain = lane->free_chains;
	u32 i = scratch->used++;
	struct ib_rdma_wr *wr = &scratch->wr[i];
	struct ib_sge *sge = scratch->sge[i];

	*sge = (struct ib_sge) { piece->addr, piece->length, scratch->lkey };
	wr->wr.wr_cqe = &chain->cqe;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = 1;
	wr->wr.opcode = opcode;
	wr->wr.send_flags = IB_SEND_SIGNALED;
	wr->wr.ex.imm_data = cpu_to_be32(immediate);
	wr->remote_addr = piece->remote_addr;
	wr->rkey = piece->rkey;
	append_wr(scratch, &wr->wr);
	lane->free_chains = chain->next;
	chain->next = NULL;
	chain->first = chain;
	chain->posted_at = jiffies;
	chain->nr_wr = 1;
	chain->bytes = piece->length;
	WARN_ON_ONCE(!kxfer_credits_take(&lane->credits, 1));
	lane->bytes_posted += piece->length;
	return chain;
}

/**
 * kxfer_chain_flush() - post the chains that were built
 * @lane: open lane whose lock the caller holds
 *
 * If that fails the link is broken, and its teardown completes the jobs.
 */
void kxfer_chain_flush(struct kxfer_lane *lane)
{
	struct kxfer_scratch *scratch = lane->scratch;
	const struct ib_send_wr *first = scratch->first;
	u32 nr = scratch->nr;

	if (!first)
		return;
	if (scratch->chains)
		signal_last(scratch);
	scratch->first = NULL;
	scratch->last = NULL;
	scratch->nr = 0;
	scratch->used = 0;
	kxfer_stat_add(KXFER_STAT_WR_POSTED, nr);
	kxfer_lane_post_counted(lane, first, nr);
}

static bool peer_refused(enum ib_wc_status status)
{
	return status == IB_WC_REM_ACCESS_ERR || status == IB_WC_REM_INV_REQ_ERR ||
	       status == IB_WC_REM_OP_ERR;
}

/* The link's teardown completes the job: note the status to report. */
static void chain_failed(struct kxfer_chain *chain, const struct ib_wc *wc)
{
	struct kxfer_lane *lane = chain->lane;

	if (peer_refused(wc->status)) {
		spin_lock_bh(&lane->lock);
		if (chain->session)
			chain->completion.status = -EREMOTEIO;
		else if (chain->job && !chain->job->status)
			chain->job->status = -EREMOTEIO;
		spin_unlock_bh(&lane->lock);
	}
	kxfer_lane_wc_error(lane, wc, "work request of a job");
}

/**
 * kxfer_chain_discount() - a chain of a job, or the message of a WRITE, has ended
 * @job: job of a lane whose lock the caller holds
 * @ended: gets the job, off the lane's lists, if that was the last part of it; the caller
 *	completes it without the lock
 */
void kxfer_chain_discount(struct kxfer_active_job *job, struct kxfer_job_list *ended)
{
	if (--job->nr_chains || !job->planned)
		return;
	kxfer_job_leave_posted(job->lane, job);
	kxfer_job_list_add(ended, job);
}

/* Called with the lane's lock held; @ended gets the job if this was its last chain. */
static void take_back(struct kxfer_chain *chain, struct kxfer_job_list *ended)
{
	struct kxfer_lane *lane = chain->lane;
	struct kxfer_active_job *job = chain->job;

	WARN_ON_ONCE(!kxfer_credits_give(&lane->credits, chain->nr_wr));
	lane->bytes_posted -= chain->bytes;
	if (job->completion.op == KXFER_OP_READ)
		WRITE_ONCE(lane->bytes_read, lane->bytes_read + chain->bytes);
	else if (job->completion.op == KXFER_OP_WRITE)
		WRITE_ONCE(lane->bytes_written, lane->bytes_written + chain->bytes);
	if (chain->first)
		WRITE_ONCE(lane->nr_completions, lane->nr_completions + 1);
	if (chain->sink)
		list_add_tail(&chain->sink->node, &lane->iwarp.sinks);
	/* A chain before it may not have been posted. */
	if (chain->offset == job->offset + job->done)
		job->done += chain->bytes;
	chain->job = NULL;
	chain->sink = NULL;
	kxfer_chain_free(lane, chain);
	kxfer_chain_discount(job, ended);
}

/* All mappings on a lane are of one device. */
static void sync_chains(const struct kxfer_chain *chain)
{
	if (!chain->job->mapping->synced)
		return;
	for (; chain && chain->job; chain = chain->next)
		if (kxfer_op_has_sink(chain->job->completion.op))
			kxfer_mapping_to_cpu(chain->job->mapping, chain->offset, chain->bytes);
}

/*
 * End the chains at the head of the list that are no quick jobs, and their jobs. Called with
 * bottom halves off. Return: the first of the others.
 */
static struct kxfer_chain *end_chains(struct kxfer_lane *lane, struct kxfer_chain *chain,
				      u64 now_ns)
{
	struct kxfer_job_list ended = {};
	struct kxfer_chain *next;
	u64 nr;

	sync_chains(chain);
	spin_lock(&lane->lock);
	nr = -lane->nr_completions;
	for (; chain && chain->job; chain = next) {
		next = chain->next;
		take_back(chain, &ended);
	}
	nr += lane->nr_completions;
	spin_unlock(&lane->lock);
	kxfer_stat_add(KXFER_STAT_COMPLETIONS, nr);
	kxfer_complete_all_bh(&ended, 0, now_ns);
	return chain;
}

/* End chains that are done, and their jobs, and continue posting. */
static void settle(struct kxfer_lane *lane, struct kxfer_chain *finished, u64 now_ns)
{
	WRITE_ONCE(lane->heard_ns, now_ns);
	local_bh_disable();
	while (finished)
		finished = finished->job ? end_chains(lane, finished, now_ns) :
			   kxfer_quick_end(lane, finished, 0, now_ns);
	local_bh_enable();
	kxfer_job_pump_on(lane);
}

/**
 * kxfer_chain_settle() - end the chains that the owner of a polled CQ found done
 * @cq: CQ of a lane; the caller owns it
 *
 * Called after each batch of completions, with no lock held.
 */
void kxfer_chain_settle(struct kxfer_cq *cq)
{
	struct kxfer_lane *lane = container_of(cq, struct kxfer_lane, cq);
	struct kxfer_chain *finished = lane->finished;

	if (!finished)
		return;
	lane->finished = NULL;
	lane->finished_end = &lane->finished;
	settle(lane, finished, cq->now_ns);
}

/*
 * A chain is done, and with it the unsignalled ones before it. The owner of a polled CQ
 * settles all chains of a batch of completions at once.
 */
static void finish_chain(struct kxfer_chain *chain)
{
	struct kxfer_lane *lane = chain->lane;

	if (!lane->cq.polled) {
		settle(lane, chain->first, ktime_get_ns());
		return;
	}
	*lane->finished_end = chain->first;
	lane->finished_end = &chain->next;
}

static void post_invalidation(struct kxfer_chain *chain)
{
	struct kxfer_sink *sink = chain->sink;

	sink->inv = (struct ib_send_wr) {
		.wr_cqe = &chain->inv_cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = sink->mr->rkey,
	};
	kxfer_lane_post(chain->lane, &sink->inv, 1);
}

static void trace_found(const struct kxfer_chain *chain)
{
	const struct kxfer_active_job *job = chain->job;

	if (job)
		trace_kxfer_job_found(job->session, &job->completion, job->length, chain->lane,
				      job->target);
	else
		trace_kxfer_job_found(chain->session, &chain->completion, chain->bytes,
				      chain->lane, chain->target);
}

static void chain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_chain *chain = container_of(wc->wr_cqe, struct kxfer_chain, cqe);

	kxfer_fault_wc(CHAIN_DONE, wc);
	if (wc->status != IB_WC_SUCCESS) {
		chain_failed(chain, wc);
		return;
	}
	if (trace_kxfer_job_found_enabled())
		trace_found(chain);
	if (chain->sink)
		post_invalidation(chain);
	else
		finish_chain(chain);
}

static void invalidated(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_chain *chain = container_of(wc->wr_cqe, struct kxfer_chain, inv_cqe);

	kxfer_fault_wc(CHAIN_INVALIDATED, wc);
	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(chain->lane, wc, "LOCAL_INV");
	else
		finish_chain(chain);
}

/* Work requests that do not end a chain. Most are unsignalled, and complete only when they fail. */
static void silent_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_chain *chain =
		container_of(wc->wr_cqe, struct kxfer_chain, silent_cqe);

	if (wc->status != IB_WC_SUCCESS)
		chain_failed(chain, wc);
}

/**
 * kxfer_chain_oldest_ms() - age of the oldest posted work requests of jobs
 * @lane: lane whose lock is held
 *
 * Return: milliseconds; 0 if none are posted.
 */
unsigned int kxfer_chain_oldest_ms(const struct kxfer_lane *lane)
{
	unsigned long oldest = 0;
	u32 i;

	lockdep_assert_held(&lane->lock);
	for (i = 0; lane->chains && i < lane->credits.max; i++)
		if (lane->chains[i].nr_wr)
			oldest = max(oldest, jiffies - lane->chains[i].posted_at);
	return jiffies_to_msecs(oldest);
}

/**
 * kxfer_chain_init() - tie a chain to its lane
 * @chain: zeroed chain
 * @lane: lane that the chain will be posted on
 */
void kxfer_chain_init(struct kxfer_chain *chain, struct kxfer_lane *lane)
{
	chain->lane = lane;
	chain->cqe.done = chain_done;
	chain->silent_cqe.done = silent_done;
	chain->inv_cqe.done = invalidated;
}
