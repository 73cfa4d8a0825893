// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: from the lane's queue to the completion.
 *
 * A job in flight is in its session's list of jobs, and in one of two lists of a
 * lane: queue, while something of it is left to plan, or posted. What is queued is
 * in its session's flow too (flow.c), which says whose turn it is. A job moves
 *
 *	queue -> posted -> complete		the ordinary way
 *	queue -> complete			cancelled, deadline passed, withdrawn
 *	queue, posted -> complete		the lane was closed
 *
 * and whoever takes it off the lane's lists under the lane's lock completes it:
 * so each job completes exactly once. A job with work requests posted is taken
 * off only by the completion of its last chain, or by the link's teardown after
 * the QP was destroyed: so no device touches its memory after it completed.
 *
 * Work requests are posted in chains of at most KXFER_CHAIN_WRS, the last one
 * signalled. Credits are held by the chain and returned by its completion. On
 * iWARP the sink of a READ is registered for that READ (REG_MR, READ, and when
 * that has completed LOCAL_INV), and a WRITE is followed by a READ of a few bytes
 * that proves placement.
 *
 * Lock order: session lock, job_lock of the session, lock of the lane. Jobs are
 * completed with none of the latter two held. Completions run in a kworker or
 * a softirq.
 */
#include "log.h"

#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "fault.h"
#include "flow.h"
#include "job.h"
#include "lane.h"
#include "link.h"
#include "region.h"
#include "session.h"
#include "stats.h"
#include "target.h"
#include "user.h"

#define INLINE_NS	(10 * NSEC_PER_MSEC)	/* of posting in completions without a break */

static struct kmem_cache *job_cache;

/** kxfer_job_init() - make the cache of jobs */
int kxfer_job_init(void)
{
	job_cache = kxfer_fault(JOB_CACHE) ? NULL :
		    KMEM_CACHE(kxfer_active_job, SLAB_ACCOUNT);
	return job_cache ? 0 : -ENOMEM;
}

/** kxfer_job_exit() - no job is left */
void kxfer_job_exit(void)
{
	kmem_cache_destroy(job_cache);
}

/**
 * kxfer_job_alloc() - a job as the user describes it, known to nobody yet
 * @session: it will belong to
 * @user: checked
 *
 * Return: the job or NULL.
 */
struct kxfer_active_job *kxfer_job_alloc(struct kxfer_session *session,
					 const struct kxfer_job *user)
{
	struct kxfer_active_job *job;

	job = kxfer_fault(JOB) ? NULL : kmem_cache_zalloc(job_cache, GFP_KERNEL);
	if (!job)
		return NULL;
	job->session = session;
	job->completion.user_data = user->user_data;
	job->completion.op = user->op;
	job->completion.submitted_ns = ktime_get_ns();
	job->flags = user->flags;
	job->length = user->length;
	job->cookie = user->cookie;
	job->deadline_ns = user->deadline_ns;
	INIT_LIST_HEAD(&job->lane_node);
	INIT_LIST_HEAD(&job->flow_node);
	return job;
}

/** kxfer_job_free() - free a job that was refused, or whose completion was taken */
void kxfer_job_free(struct kxfer_active_job *job)
{
	kmem_cache_free(job_cache, job);
}

static void count_end(const struct kxfer_active_job *job, int status)
{
	kxfer_stat_dec(KXFER_STAT_LIVE_JOBS);
	if (!status)
		kxfer_stat_inc(KXFER_STAT_JOBS_COMPLETED);
	else if (status == -ECANCELED || status == -ETIMEDOUT)
		kxfer_stat_inc(KXFER_STAT_JOBS_CANCELLED);
	else
		kxfer_stat_inc(KXFER_STAT_JOBS_FAILED);
}

static void count_bytes(struct kxfer_link *link, const struct kxfer_active_job *job)
{
	if (job->completion.op == KXFER_OP_READ) {
		atomic64_add(job->length, &link->bytes_read);
		kxfer_stat_add(KXFER_STAT_BYTES_READ, job->length);
	} else {
		atomic64_add(job->length, &link->bytes_written);
		kxfer_stat_add(KXFER_STAT_BYTES_WRITTEN, job->length);
	}
}

/* Let go of what the job used; whoever waited for that may now free it. */
static void release_objects(struct kxfer_active_job *job)
{
	struct kxfer_target *target = job->target;
	struct kxfer_link *link;

	if (job->mapping)
		kxfer_mapping_put(job->mapping);
	if (job->region)
		atomic_dec(&job->region->users);
	if (!target)
		return;
	link = target->link;
	kxfer_link_ref(link);
	atomic_dec(&link->nr_jobs);
	if (atomic_dec_and_test(&target->nr_jobs))
		wake_up_all(&link->wait);
	kxfer_link_put(link);
}

/**
 * kxfer_job_complete() - end a job that is on no lane list
 * @job: not touched by any device
 * @status: 0 or -errno
 *
 * Any context but hard interrupts. The session cannot go before job_lock is
 * dropped here, for its end waits for nr_jobs under that lock.
 */
void kxfer_job_complete(struct kxfer_active_job *job, int status)
{
	struct kxfer_session *session = job->session;

	job->completion.status = status;
	job->completion.completed_ns = ktime_get_ns();
	if (!status) {
		job->completion.bytes = job->length;
		if (job->target && job->length)
			count_bytes(job->target->link, job);
	}
	count_end(job, status);

	/* One step for stop_jobs(): what is in the list of jobs has a lane that exists. */
	spin_lock_bh(&session->job_lock);
	release_objects(job);
	list_move_tail(&job->session_node, &session->done);
	session->nr_jobs--;
	session->nr_done++;
	wake_up(&session->wait);
	spin_unlock_bh(&session->job_lock);
}

static void complete_list(struct list_head *jobs, int status)
{
	struct kxfer_active_job *job, *next;

	list_for_each_entry_safe(job, next, jobs, lane_node) {
		list_del_init(&job->lane_node);
		kxfer_job_complete(job, job->status ?: status);
	}
}

/* Called with the lane's lock held. */
static void unqueue(struct kxfer_lane *lane, struct kxfer_active_job *job,
		    struct list_head *to)
{
	kxfer_flow_remove(job);
	list_move_tail(&job->lane_node, to);
	lane->nr_queued--;
}

/*
 * Take a queued job off the lane, or keep it from posting more.
 * Called with the lane's lock held; @ended gets what is to be completed.
 */
static void stop_queued(struct kxfer_lane *lane, struct kxfer_active_job *job,
			int status, struct list_head *ended)
{
	job->status = job->status ?: status;
	job->stopped = true;
	/* Whoever else would stop it sees that it is off the queue. */
	job->planned = true;
	if (!job->nr_chains) {
		unqueue(lane, job, ended);
		return;
	}
	unqueue(lane, job, &lane->posted);
	lane->nr_posted++;
}

static void fill_wr(struct kxfer_lane *lane, struct kxfer_chain *chain, u32 i,
		    const struct kxfer_wr_desc *desc, enum ib_wr_opcode opcode)
{
	struct ib_rdma_wr *wr = &lane->scratch->wr[i];
	struct ib_sge *sge = lane->scratch->sge[i];
	u32 n;

	for (n = 0; n < desc->nr_sge; n++) {
		sge[n].addr = desc->sge[n].addr;
		sge[n].length = desc->sge[n].length;
		sge[n].lkey = lane->link->pd->local_dma_lkey;
	}
	*wr = (struct ib_rdma_wr) {
		.wr = {
			.wr_cqe = &chain->silent_cqe,
			.sg_list = sge,
			.num_sge = desc->nr_sge,
			.opcode = opcode,
		},
		.remote_addr = desc->remote_addr,
		.rkey = desc->rkey,
	};
	if (i)
		lane->scratch->wr[i - 1].wr.next = &wr->wr;
}

/* A READ of a few bytes: when it completes, the WRITEs before it are placed. */
static void fill_fence(struct kxfer_lane *lane, struct kxfer_chain *chain, u32 i)
{
	struct kxfer_wr_desc *desc = &lane->scratch->desc;

	desc->remote_addr = lane->link->fence_addr;
	desc->rkey = lane->link->fence_key;
	desc->nr_sge = 1;
	desc->sge[0].addr = lane->fence_mr->iova;
	desc->sge[0].length = KXFER_FENCE_BYTES;
	fill_wr(lane, chain, i, desc, IB_WR_RDMA_READ);
	lane->scratch->sge[i][0].lkey = lane->fence_mr->lkey;
}

static bool needs_fence(const struct kxfer_lane *lane,
			const struct kxfer_active_job *job)
{
	return lane->fence_mr && job->completion.op == KXFER_OP_WRITE &&
	       !(job->flags & KXFER_JOB_F_LOCAL_ONLY);
}

/* Before the plan moves on for this chain; post_chain() sees how far it went. */
static void begin_chain(struct kxfer_chain *chain, const struct kxfer_active_job *job)
{
	chain->offset = kxfer_plan_position(&job->plan);
	chain->bytes = kxfer_plan_left(&job->plan);
}

static void post_chain(struct kxfer_lane *lane, struct kxfer_chain *chain,
		       struct kxfer_active_job *job, const struct ib_send_wr *first,
		       struct ib_send_wr *last, u32 nr, u32 credits)
{
	last->wr_cqe = &chain->cqe;
	last->send_flags = IB_SEND_SIGNALED;
	last->next = NULL;
	list_del_init(&chain->node);
	chain->job = job;
	chain->nr_wr = credits;
	chain->bytes -= kxfer_plan_left(&job->plan);
	WARN_ON_ONCE(!kxfer_credits_take(&lane->credits, credits));
	lane->bytes_posted += chain->bytes;
	kxfer_flow_count(lane, job, chain->bytes);
	job->nr_chains++;
	job->started = true;
	if (!kxfer_plan_left(&job->plan))
		job->planned = true;
	kxfer_mapping_to_device(job->mapping, chain->offset, chain->bytes);
	kxfer_stat_add(KXFER_STAT_WR_POSTED, nr);
	/* If this fails the link is broken, and its teardown completes the job. */
	kxfer_lane_post_locked(lane, first, nr);
}

/* Post some of a READ or WRITE by local_dma_lkey. Return: false without room. */
static bool post_plain(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	enum ib_wr_opcode opcode = job->completion.op == KXFER_OP_READ ?
				   IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	u32 fence = needs_fence(lane, job) ? 1 : 0;
	struct kxfer_scratch *scratch = lane->scratch;
	struct kxfer_chain *chain;
	u32 room = kxfer_credits_room(&lane->credits, KXFER_CHAIN_WRS, fence);
	u32 n = 0, bytes = 0;

	chain = list_first_entry_or_null(&lane->free_chains, struct kxfer_chain, node);
	if (!chain || !room || lane->bytes_posted >= KXFER_LANE_BYTES)
		return false;
	begin_chain(chain, job);
	while (n < room && bytes < KXFER_TURN_BYTES &&
	       kxfer_plan_next(&job->plan, &scratch->desc)) {
		bytes += scratch->desc.length;
		fill_wr(lane, chain, n++, &scratch->desc, opcode);
	}
	fence = fence && !kxfer_plan_left(&job->plan);
	if (fence)
		fill_fence(lane, chain, n++);
	job->target->unfenced = lane->fence_mr && !fence && opcode == IB_WR_RDMA_WRITE;
	chain->sink = NULL;
	post_chain(lane, chain, job, &scratch->wr[0].wr, &scratch->wr[n - 1].wr, n, n);
	return true;
}

/* Map the pieces of a READ into its sink; each entry is given as a DMA address. */
static int map_sink(struct kxfer_lane *lane, struct kxfer_sink *sink,
		    const struct kxfer_wr_desc *desc)
{
	struct scatterlist *sg = lane->scratch->sg;
	u32 i;

	sg_init_table(sg, desc->nr_sge);
	for (i = 0; i < desc->nr_sge; i++) {
		sg_dma_address(&sg[i]) = desc->sge[i].addr;
		sg_dma_len(&sg[i]) = desc->sge[i].length;
	}
	if (kxfer_fault(JOB_MAP_SINK) ||
	    ib_map_mr_sg(sink->mr, sg, desc->nr_sge, NULL, PAGE_SIZE) != desc->nr_sge)
		return -EINVAL;
	ib_update_fast_reg_key(sink->mr, ib_inc_rkey(sink->mr->rkey));
	sink->reg = (struct ib_reg_wr) {
		.wr = { .opcode = IB_WR_REG_MR },
		.mr = sink->mr,
		.key = sink->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	return 0;
}

/* Post one READ of iWARP with its registration. Return: false without room. */
static bool post_sink_read(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_scratch *scratch = lane->scratch;
	struct kxfer_wr_desc *desc = &scratch->desc;
	struct kxfer_chain *chain;
	struct kxfer_sink *sink;

	chain = list_first_entry_or_null(&lane->free_chains, struct kxfer_chain, node);
	sink = list_first_entry_or_null(&lane->sinks, struct kxfer_sink, node);
	if (!chain || !sink || lane->bytes_posted >= KXFER_LANE_BYTES ||
	    !kxfer_credits_room(&lane->credits, KXFER_CHAIN_WRS, 2))
		return false;
	begin_chain(chain, job);
	if (!kxfer_plan_next(&job->plan, desc) || map_sink(lane, sink, desc)) {
		kxfer_link_fail(lane->link, -ECONNRESET);
		return false;
	}
	list_del_init(&sink->node);
	chain->sink = sink;
	desc->nr_sge = 1;
	desc->sge[0].addr = sink->mr->iova;
	desc->sge[0].length = desc->length;
	fill_wr(lane, chain, 0, desc, IB_WR_RDMA_READ);
	scratch->sge[0][0].lkey = sink->mr->lkey;
	sink->reg.wr.wr_cqe = &chain->silent_cqe;
	sink->reg.wr.next = &scratch->wr[0].wr;
	post_chain(lane, chain, job, &sink->reg.wr, &scratch->wr[0].wr, 2, 3);
	return true;
}

static int notify_status(int answer)
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

static void notify_answered(struct kxfer_request *request)
{
	struct kxfer_lane *lane = request->channel->lane;
	struct kxfer_active_job *job = request->job;
	int status = notify_status(request->status);

	spin_lock_bh(&lane->lock);
	list_del_init(&job->lane_node);
	lane->nr_posted--;
	spin_unlock_bh(&lane->lock);
	if (status == -ECONNRESET)
		status = kxfer_link_job_error(lane->link);
	kxfer_job_complete(job, status);
}

static bool post_notify(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	struct kxfer_wire_notify notify = {
		.grant = cpu_to_be64(job->target->grant),
		.cookie = cpu_to_be64(job->cookie),
	};
	struct kxfer_request *request = kxfer_channel_get_locked(&lane->channel);

	if (!request)
		return false;
	request->job = job;
	request->answered = notify_answered;
	job->started = true;
	job->planned = true;
	job->nr_chains = 1;
	kxfer_flow_count(lane, job, 0);
	kxfer_stat_inc(KXFER_STAT_NOTIFIES_SENT);
	/* If this fails the link's teardown completes the job with the lane's others. */
	if (kxfer_channel_post_locked(request, KXFER_WIRE_NOTIFY, &notify, sizeof(notify)))
		request->job = NULL;
	return true;
}

static bool post_some(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	switch (job->completion.op) {
	case KXFER_OP_NOTIFY:
		return post_notify(lane, job);
	case KXFER_OP_READ:
		if (lane->sink_array)
			return post_sink_read(lane, job);
		return post_plain(lane, job);
	default:
		return post_plain(lane, job);
	}
}

/*
 * Post some of the session whose turn it is. A lane without credits has none for
 * anybody, but a NOTIFY without a slot keeps no other session waiting. Called with
 * the lane's lock held. Return: false if nothing was posted.
 */
static bool pump_turn(struct kxfer_lane *lane)
{
	struct kxfer_active_job *job;
	struct kxfer_flow *flow;

	list_for_each_entry(flow, &lane->flows, lane_node) {
		job = list_first_entry(&flow->jobs, struct kxfer_active_job, flow_node);
		if (post_some(lane, job)) {
			if (job->planned) {
				unqueue(lane, job, &lane->posted);
				lane->nr_posted++;
			}
			return true;
		}
		if (job->completion.op != KXFER_OP_NOTIFY)
			break;
	}
	return false;
}

/**
 * kxfer_job_pump() - post what the lane has room for; does not sleep
 * @lane: a data lane, open or not
 *
 * Bounded by the lane's credits and slots, which completions give back. Nothing
 * more is posted from the moment when the link fails: on one CPU a soft provider
 * that is kept busy would keep the teardown waiting.
 */
void kxfer_job_pump(struct kxfer_lane *lane)
{
	spin_lock_bh(&lane->lock);
	while (lane->open && kxfer_link_is_live(lane->link) && pump_turn(lane))
		;
	spin_unlock_bh(&lane->lock);
}

static bool peer_refused(enum ib_wc_status status)
{
	return status == IB_WC_REM_ACCESS_ERR || status == IB_WC_REM_INV_REQ_ERR ||
	       status == IB_WC_REM_OP_ERR;
}

/* The job is completed by the link's teardown; remember what it is to be told. */
static void chain_failed(struct kxfer_chain *chain, const struct ib_wc *wc)
{
	struct kxfer_lane *lane = chain->lane;

	if (peer_refused(wc->status)) {
		spin_lock_bh(&lane->lock);
		if (chain->job && !chain->job->status)
			chain->job->status = -EREMOTEIO;
		spin_unlock_bh(&lane->lock);
	}
	kxfer_lane_wc_error(lane, wc, "work request of a job");
}

/**
 * kxfer_job_pump_work() - post on, after others have had their turn on the CPU
 * @work: a lane's pump_work
 */
void kxfer_job_pump_work(struct work_struct *work)
{
	struct kxfer_lane *lane = container_of(work, struct kxfer_lane, pump_work);

	WRITE_ONCE(lane->inline_since_ns, ktime_get_ns());
	kxfer_job_pump(lane);
}

/*
 * Posting from a completion is cheap, but a soft provider may carry out what was
 * posted before the post returns: then the CQ never runs dry, and on one CPU
 * nobody else, no withdrawal and no keep-alive, runs until all jobs are done. So
 * every INLINE_NS the next post is left to a work, and the CQ does run dry.
 */
static void pump_after_completion(struct kxfer_lane *lane)
{
	/* Who queues a job meanwhile sees the credits just given back. */
	if (!READ_ONCE(lane->nr_queued))
		return;
	if (ktime_get_ns() - READ_ONCE(lane->inline_since_ns) < INLINE_NS)
		kxfer_job_pump(lane);
	else
		queue_work(kxfer_wq, &lane->pump_work);
}

static void finish_chain(struct kxfer_chain *chain)
{
	struct kxfer_lane *lane = chain->lane;
	struct kxfer_active_job *job = chain->job;
	bool ended;

	if (job->completion.op == KXFER_OP_READ)
		kxfer_mapping_to_cpu(job->mapping, chain->offset, chain->bytes);
	spin_lock_bh(&lane->lock);
	WARN_ON_ONCE(!kxfer_credits_give(&lane->credits, chain->nr_wr));
	lane->bytes_posted -= chain->bytes;
	lane->nr_completions++;
	if (chain->sink)
		list_add_tail(&chain->sink->node, &lane->sinks);
	chain->job = NULL;
	chain->sink = NULL;
	list_add(&chain->node, &lane->free_chains);
	ended = !--job->nr_chains && job->planned;
	if (ended) {
		list_del_init(&job->lane_node);
		lane->nr_posted--;
	}
	spin_unlock_bh(&lane->lock);

	kxfer_stat_inc(KXFER_STAT_COMPLETIONS);
	if (ended)
		kxfer_job_complete(job, job->status);
	pump_after_completion(lane);
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

static void chain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_chain *chain = container_of(wc->wr_cqe, struct kxfer_chain, cqe);

	kxfer_fault_wc(JOB_CHAIN_DONE, wc);
	if (wc->status != IB_WC_SUCCESS) {
		chain_failed(chain, wc);
		return;
	}
	WRITE_ONCE(chain->lane->link->heard_ns, ktime_get_ns());
	if (chain->sink)
		post_invalidation(chain);
	else
		finish_chain(chain);
}

static void invalidated(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_chain *chain = container_of(wc->wr_cqe, struct kxfer_chain, inv_cqe);

	kxfer_fault_wc(JOB_INVALIDATED, wc);
	if (wc->status != IB_WC_SUCCESS)
		kxfer_lane_wc_error(chain->lane, wc, "LOCAL_INV");
	else
		finish_chain(chain);
}

/* Unsignalled work requests complete only when they fail. */
static void silent_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_chain *chain =
		container_of(wc->wr_cqe, struct kxfer_chain, silent_cqe);

	if (wc->status != IB_WC_SUCCESS)
		chain_failed(chain, wc);
}

/** kxfer_job_chain_init() - tie a chain to its lane */
void kxfer_job_chain_init(struct kxfer_chain *chain, struct kxfer_lane *lane)
{
	chain->lane = lane;
	chain->cqe.done = chain_done;
	chain->silent_cqe.done = silent_done;
	chain->inv_cqe.done = invalidated;
}

/**
 * kxfer_job_fail_lane() - end all jobs of a lane that is closed
 * @lane: any; a control QP has none
 *
 * From the link's teardown, after kxfer_lane_close(): no device can touch the
 * memory of any of them.
 */
void kxfer_job_fail_lane(struct kxfer_lane *lane)
{
	struct kxfer_active_job *job;
	LIST_HEAD(ended);

	spin_lock_bh(&lane->lock);
	/* As in stop_queued(): nobody else is to stop them. */
	list_for_each_entry(job, &lane->queue, lane_node) {
		kxfer_flow_remove(job);
		job->planned = true;
	}
	list_splice_tail_init(&lane->posted, &ended);
	list_splice_tail_init(&lane->queue, &ended);
	lane->nr_queued = 0;
	lane->nr_posted = 0;
	spin_unlock_bh(&lane->lock);
	complete_list(&ended, kxfer_link_job_error(lane->link));
}

/**
 * kxfer_job_revoke() - end queued jobs of a withdrawn target; posted ones go on
 * @link: of the target
 * @target: marked revoked by the caller, under the lock of each lane in turn
 */
void kxfer_job_revoke(struct kxfer_link *link, struct kxfer_target *target)
{
	struct kxfer_active_job *job, *next;
	LIST_HEAD(ended);
	u32 i;

	for (i = 0; i < link->nr_data; i++) {
		struct kxfer_lane *lane = link->data[i];

		spin_lock_bh(&lane->lock);
		target->revoked = true;
		list_for_each_entry_safe(job, next, &lane->queue, lane_node)
			if (job->target == target)
				stop_queued(lane, job, -EKEYREVOKED, &ended);
		spin_unlock_bh(&lane->lock);
	}
	complete_list(&ended, -EKEYREVOKED);
	for (i = 0; i < link->nr_data; i++)
		kxfer_job_pump(link->data[i]);
}

static unsigned long deadline_delay(u64 deadline_ns)
{
	u64 now = ktime_get_ns();

	return deadline_ns > now ? nsecs_to_jiffies(deadline_ns - now) + 1 : 0;
}

/* Called with the lane's lock held. */
static void arm_deadline(struct kxfer_lane *lane, u64 deadline_ns)
{
	if (!deadline_ns ||
	    (lane->next_deadline_ns && lane->next_deadline_ns <= deadline_ns))
		return;
	lane->next_deadline_ns = deadline_ns;
	mod_delayed_work(kxfer_wq, &lane->deadline_work, deadline_delay(deadline_ns));
}

/**
 * kxfer_job_enqueue() - put an accepted job on its lane
 * @job: with its lane
 *
 * Return: 1, or why it ends at once: -EKEYREVOKED, -ECONNRESET, -ENODEV.
 */
int kxfer_job_enqueue(struct kxfer_active_job *job)
{
	struct kxfer_lane *lane = job->lane;
	int ret = 1;

	spin_lock_bh(&lane->lock);
	if (job->target->revoked) {
		ret = -EKEYREVOKED;
	} else if (!lane->open) {
		ret = kxfer_link_job_error(lane->link);
	} else {
		list_add_tail(&job->lane_node, &lane->queue);
		kxfer_flow_add(lane, job);
		lane->nr_queued++;
		arm_deadline(lane, job->deadline_ns);
	}
	spin_unlock_bh(&lane->lock);
	return ret;
}

/** kxfer_job_deadline_work() - end jobs of a lane that were not posted in time */
void kxfer_job_deadline_work(struct work_struct *work)
{
	struct kxfer_lane *lane =
		container_of(to_delayed_work(work), struct kxfer_lane, deadline_work);
	struct kxfer_active_job *job, *next;
	u64 now = ktime_get_ns();
	LIST_HEAD(ended);

	spin_lock_bh(&lane->lock);
	lane->next_deadline_ns = 0;
	list_for_each_entry_safe(job, next, &lane->queue, lane_node) {
		if (!job->deadline_ns || job->started)
			continue;
		if (job->deadline_ns <= now)
			stop_queued(lane, job, -ETIMEDOUT, &ended);
		else if (lane->open)
			arm_deadline(lane, job->deadline_ns);
	}
	spin_unlock_bh(&lane->lock);
	complete_list(&ended, -ETIMEDOUT);
	kxfer_job_pump(lane);
}

static bool on_queue(const struct kxfer_lane *lane, const struct kxfer_active_job *job)
{
	return !list_empty(&job->lane_node) && !job->planned;
}

struct stop_count {
	u32 found;
	u32 stopped;
};

/* Stop jobs of a session: all, or those of @user_data; partly posted ones too if @started. */
static struct stop_count stop_jobs(struct kxfer_session *session, bool all,
				   u64 user_data, bool started)
{
	struct kxfer_active_job *job;
	struct stop_count count = {};
	LIST_HEAD(ended);

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (!job->lane || (!all && job->completion.user_data != user_data))
			continue;
		count.found++;
		spin_lock(&job->lane->lock);
		if (on_queue(job->lane, job) && (started || !job->started)) {
			stop_queued(job->lane, job, -ECANCELED, &ended);
			count.stopped++;
		}
		spin_unlock(&job->lane->lock);
	}
	spin_unlock_bh(&session->job_lock);
	complete_list(&ended, -ECANCELED);
	return count;
}

/** kxfer_job_cancel() - KXFER_CANCEL */
int kxfer_job_cancel(struct kxfer_session *session, void *arg)
{
	struct kxfer_cancel *cmd = arg;
	struct stop_count count;

	if (cmd->flags & ~KXFER_CANCEL_F_ALL)
		return -EOPNOTSUPP;
	if (cmd->__reserved || ((cmd->flags & KXFER_CANCEL_F_ALL) && cmd->user_data))
		return -EINVAL;
	count = stop_jobs(session, cmd->flags & KXFER_CANCEL_F_ALL, cmd->user_data, false);
	cmd->cancelled = count.stopped;
	return count.found || cmd->flags & KXFER_CANCEL_F_ALL ? 0 : -ENOENT;
}

static bool no_jobs(struct kxfer_session *session)
{
	bool none;

	spin_lock_bh(&session->job_lock);
	none = !session->nr_jobs;
	spin_unlock_bh(&session->job_lock);
	return none;
}

/**
 * kxfer_job_end_session() - end all jobs of a session that is being closed
 * @session: no call of it is under way
 *
 * Queued jobs end here; posted ones are waited for, and they end at the latest
 * when their link is declared dead: because the peer is silent (KXFER_KEEPALIVE_MS
 * + KXFER_SILENCE_MS) or holds them up (kxfer_lane_stuck()). May sleep,
 * uninterruptibly.
 */
void kxfer_job_end_session(struct kxfer_session *session)
{
	struct kxfer_active_job *job, *next;

	stop_jobs(session, true, 0, true);
	wait_event(session->wait, no_jobs(session));
	list_for_each_entry_safe(job, next, &session->done, session_node) {
		kxfer_user_return(session->user, KXFER_SHARE_JOBS);
		kxfer_job_free(job);
	}
	INIT_LIST_HEAD(&session->done);
	session->nr_done = 0;
}

/**
 * kxfer_job_records() - the jobs of a session that are in flight at one instant
 * @session: stays while this runs
 * @records: filled
 * @nr: room, at most KXFER_MAX_JOBS is used
 *
 * Any context but hard interrupts. Return: records filled.
 */
u32 kxfer_job_records(struct kxfer_session *session, struct kxfer_job_record *records,
		      u32 nr)
{
	struct kxfer_active_job *job;
	u32 n = 0;

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (n == nr)
			break;
		records[n++] = (struct kxfer_job_record) {
			.user_data = job->completion.user_data,
			.length = job->length,
			.submitted_ns = job->completion.submitted_ns,
			.link = job->lane ? job->lane->link->id : 0,
			.lane = job->lane ? job->lane->index : 0,
			.op = job->completion.op,
			.posted = READ_ONCE(job->started),
		};
	}
	spin_unlock_bh(&session->job_lock);
	return n;
}
