// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: from the lane's queue to the completion.
 *
 * A job in flight is in its session's list of jobs, and in one of two lists of a
 * lane: queued, in its session's flow there (flow.c), while something of it is left to
 * plan; or posted. A job moves
 *
 *	queued -> posted -> complete		the ordinary way
 *	queued -> complete			cancelled, deadline passed, withdrawn
 *	queued, posted -> complete		the lane was closed
 *
 * and whoever takes it off the lane's lists under the lane's lock completes it:
 * so each job completes exactly once. From there on it is in lists by @next only,
 * which are of the one who completes it. A job with work requests posted is taken
 * off only by the completion of its last chain, or by the link's teardown after
 * the QP was destroyed: so no device touches its memory after it completed.
 *
 * What is posted of a READ or WRITE are chains (chain.c); a job counts those under
 * way. A NOTIFY or SEND counts as one and is none: it is a message of the lane's
 * channel, takes a slot there and no credits, and completes when the peer answers. The
 * bytes of a SEND are copied into it.
 *
 * A RECV is on no lane: it waits in its mailbox, and who takes it off there completes it
 * (mailbox.c).
 *
 * Lock order: session lock, job_lock of the session, lock of the lane. Jobs are
 * completed with none of the latter two held. Completions run in a kworker or
 * a softirq.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "chain.h"
#include "fault.h"
#include "flow.h"
#include "job.h"
#include "lane.h"
#include "link.h"
#include "mailbox.h"
#include "memory.h"
#include "region.h"
#include "ring.h"
#include "session.h"
#include "stats.h"
#include "target.h"
#include "uring.h"
#include "user.h"

#define INLINE_NS	(10 * NSEC_PER_MSEC)	/* of posting in completions without a break */

#define COMPLETE_MAX	64	/* jobs that end while a session's lock is held */

/*
 * Jobs that a session keeps for reuse: with it they fit into 8 KiB. None where KASAN
 * looks for use after free.
 */
#define MAX_SPARE_JOBS	(IS_ENABLED(CONFIG_KASAN) ? 0 : 16)

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
 * kxfer_job_take_spares() - jobs kept for reuse, for one call
 * @session: whose job_lock the caller holds
 * @want: how many at most
 *
 * Return: them, linked by @next.
 */
struct kxfer_active_job *kxfer_job_take_spares(struct kxfer_session *session, u32 want)
{
	struct kxfer_active_job *taken = NULL, *job;

	while (want-- && (job = session->spare_jobs)) {
		session->spare_jobs = job->next;
		session->nr_spare_jobs--;
		job->next = taken;
		taken = job;
	}
	return taken;
}

/** kxfer_job_alloc() - memory for a job; @gfp: how to allocate it. Return: it, or NULL */
struct kxfer_active_job *kxfer_job_alloc(gfp_t gfp)
{
	return kmem_cache_alloc(job_cache, gfp);
}

/* Linked by @next. */
static void free_jobs(struct kxfer_active_job *job)
{
	struct kxfer_active_job *next;

	for (; job; job = next) {
		next = job->next;
		kmem_cache_free(job_cache, job);
	}
}

/**
 * kxfer_job_make() - a job as the user describes it, known to nobody yet
 * @job: filled in
 * @session: it will belong to
 * @user: checked
 * @now_ns: ktime_get_ns()
 */
void kxfer_job_make(struct kxfer_active_job *job, struct kxfer_session *session,
		    const struct kxfer_job *user, u64 now_ns)
{
	/* One by one: the plan, and how jobs are listed, are set where they are needed. */
	job->completion = (struct kxfer_completion) {
		.user_data = user->user_data,
		.op = user->op,
		.submitted_ns = now_ns,
	};
	job->session = session;
	job->uring = NULL;
	job->region = NULL;
	job->mapping = NULL;
	job->target = NULL;
	job->mailbox = NULL;
	job->lane = NULL;
	INIT_LIST_HEAD(&job->lane_node);
	job->flags = user->flags;
	job->offset = user->region_offset;
	job->length = user->length;
	job->cookie = user->cookie;
	job->deadline_ns = user->deadline_ns;
	job->status = 0;
	job->nr_chains = 0;
	job->started = false;
	job->planned = false;
}

/* Called with job_lock held. Return: those of @jobs that are not needed. */
static struct kxfer_active_job *keep_spares(struct kxfer_session *session,
					    struct kxfer_active_job *jobs)
{
	struct kxfer_active_job *job;

	while (jobs && session->nr_spare_jobs < MAX_SPARE_JOBS) {
		job = jobs;
		jobs = job->next;
		job->next = session->spare_jobs;
		session->spare_jobs = job;
		session->nr_spare_jobs++;
	}
	return jobs;
}

/**
 * kxfer_job_free() - free jobs that were refused, or whose completions were taken
 * @session: that they belonged to; keeps some for its next ones
 * @jobs: linked by @next
 */
void kxfer_job_free(struct kxfer_session *session, struct kxfer_active_job *jobs)
{
	spin_lock_bh(&session->job_lock);
	jobs = keep_spares(session, jobs);
	spin_unlock_bh(&session->job_lock);
	free_jobs(jobs);
}

static void count_end(int status)
{
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
	} else if (job->completion.op == KXFER_OP_WRITE) {
		atomic64_add(job->length, &link->bytes_written);
		kxfer_stat_add(KXFER_STAT_BYTES_WRITTEN, job->length);
	} else if (kxfer_op_is_atomic(job->completion.op)) {
		kxfer_stat_inc(KXFER_STAT_ATOMICS);
	}
}

static bool same_objects(const struct kxfer_active_job *a, const struct kxfer_active_job *b)
{
	return a->target == b->target && a->region == b->region && a->mapping == b->mapping &&
	       a->mailbox == b->mailbox;
}

/* Let go of what @nr jobs used, all the same; whoever waited for that may now free it. */
static void release_objects(const struct kxfer_active_job *job, int nr)
{
	struct kxfer_target *target = job->target;
	struct kxfer_link *link;

	if (job->mapping)
		kxfer_mapping_put(job->mapping, nr);
	if (job->region)
		atomic_sub(nr, &job->region->users);
	if (job->mailbox && atomic_sub_and_test(nr, &job->mailbox->nr_recvs))
		wake_up_var(&job->mailbox->nr_recvs);
	if (!target)
		return;
	link = target->link;
	kxfer_link_ref(link);
	atomic_sub(nr, &link->nr_jobs);
	if (atomic_sub_and_test(nr, &target->nr_jobs) && wq_has_sleeper(&link->wait))
		wake_up_all(&link->wait);
	kxfer_link_put(link);
}

/*
 * Where the completion goes: to the list of those not reaped, into the ring, or to
 * io_uring. With the latter two the job has done: @gone gets it. Called with job_lock
 * held.
 */
static void deliver(struct kxfer_session *session, struct kxfer_active_job *job,
		    struct kxfer_active_job **gone)
{
	list_del(&job->session_node);
	if (!session->ring && !job->uring) {
		kxfer_job_list_add(&session->done, job);
		return;
	}
	if (!job->uring)
		kxfer_ring_add(session->ring, &job->completion);
	job->next = *gone;
	*gone = job;
}

/*
 * Show the reader what deliver() wrote, or tell io_uring. Called with job_lock held, as
 * the last step: who sees a completion may use again at once what its job used, without
 * that lock.
 */
static void show(struct kxfer_session *session, struct kxfer_active_job *gone)
{
	struct kxfer_active_job *job;
	u32 nr = 0, nr_uring = 0;

	for (job = gone; job; job = job->next) {
		if (job->uring) {
			kxfer_uring_complete(job->uring, &job->completion);
			nr_uring++;
		}
		nr++;
	}
	free_jobs(keep_spares(session, gone));
	kxfer_user_return(session->user, KXFER_SHARE_JOBS, nr);
	if (nr > nr_uring)
		kxfer_ring_publish(session->ring);
}

static void end_job(struct kxfer_active_job *job, int status, u64 now_ns)
{
	job->completion.status = status;
	job->completion.completed_ns = now_ns;
	if (!status) {
		job->completion.bytes = job->length;
		if (job->target && job->length)
			count_bytes(job->target->link, job);
	}
	count_end(status);
}

/*
 * End those jobs at the front of the list that are one session's. The session cannot
 * go before job_lock is dropped here, for its end waits for nr_jobs under that lock.
 */
static void complete_session(struct kxfer_job_list *jobs, int status, u64 now_ns)
{
	struct kxfer_active_job *job = jobs->first, *next, *gone = NULL;
	struct kxfer_session *session = job->session;
	const struct kxfer_active_job *first = job;
	u32 nr_same = 0, nr = 0, nr_uring = 0;

	spin_lock_bh(&session->job_lock);
	for (; job && job->session == session && nr < COMPLETE_MAX; job = next) {
		next = job->next;
		if (!same_objects(first, job)) {
			release_objects(first, nr_same);
			first = job;
			nr_same = 0;
		}
		nr_same++;
		nr++;
		nr_uring += job->uring ? 1 : 0;
		end_job(job, job->status ?: status, now_ns);
		/* For stop_jobs(): what is in the list of jobs has a lane that exists. */
		deliver(session, job, &gone);
	}
	jobs->first = job;
	release_objects(first, nr_same);
	kxfer_stat_add(KXFER_STAT_LIVE_JOBS, -(s64)nr);
	WRITE_ONCE(session->nr_jobs, session->nr_jobs - nr);
	WRITE_ONCE(session->nr_done, session->nr_done + nr - nr_uring);
	if (gone)
		show(session, gone);
	if (wq_has_sleeper(&session->wait))
		wake_up(&session->wait);
	spin_unlock_bh(&session->job_lock);
}

/**
 * kxfer_job_complete_all() - end jobs that are on no lane list
 * @jobs: not touched by any device. Empty afterwards
 * @status: 0 or -errno, of those that have none of their own
 * @now_ns: ktime_get_ns()
 *
 * Each session gets its lock taken, and is woken, once for those that stand together.
 * Any context but hard interrupts.
 */
void kxfer_job_complete_all(struct kxfer_job_list *jobs, int status, u64 now_ns)
{
	while (jobs->first)
		complete_session(jobs, status, now_ns);
}

/** kxfer_job_complete() - the same for one job */
void kxfer_job_complete(struct kxfer_active_job *job, int status, u64 now_ns)
{
	struct kxfer_job_list one = {};

	kxfer_job_list_add(&one, job);
	kxfer_job_complete_all(&one, status, now_ns);
}

static void complete_list(struct kxfer_job_list *jobs, int status)
{
	if (jobs->first)
		kxfer_job_complete_all(jobs, status, ktime_get_ns());
}

/* Called with the lane's lock held. */
static void unqueue(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	kxfer_flow_remove(job);
	WRITE_ONCE(lane->nr_queued, lane->nr_queued - 1);
}

/* All that it posts is posted. Called with the lane's lock held. */
static void add_to_posted(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	list_add_tail(&job->lane_node, &lane->posted);
	WRITE_ONCE(lane->nr_posted, lane->nr_posted + 1);
}

/* Called with the lane's lock held. */
static void move_to_posted(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	unqueue(lane, job);
	add_to_posted(lane, job);
}

/* Nothing of it is under way any more. Called with the lane's lock held. */
static void leave_posted(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	list_del_init(&job->lane_node);
	kxfer_flow_leave(job);
	WRITE_ONCE(lane->nr_posted, lane->nr_posted - 1);
}

/*
 * Take a queued job off the lane, or keep it from posting more.
 * Called with the lane's lock held; @ended gets what is to be completed.
 */
static void stop_queued(struct kxfer_lane *lane, struct kxfer_active_job *job,
			int status, struct kxfer_job_list *ended)
{
	job->status = job->status ?: status;
	/* Whoever else would stop it sees that it is off the queue. */
	job->planned = true;
	if (job->nr_chains) {
		move_to_posted(lane, job);
	} else {
		unqueue(lane, job);
		kxfer_flow_leave(job);
		kxfer_job_list_add(ended, job);
	}
}

/**
 * kxfer_job_chain_posted() - the job has a chain more under way
 * @job: of a lane whose lock the caller holds; queued
 *
 * The plan has moved on for this chain. Before ib_post_send(), which may fail.
 */
void kxfer_job_chain_posted(struct kxfer_active_job *job)
{
	job->nr_chains++;
	job->started = true;
	if (!kxfer_plan_left(&job->plan))
		job->planned = true;
}

/**
 * kxfer_job_chain_ended() - the job has a chain less under way
 * @job: of a lane whose lock the caller holds
 * @ended: if it was the last one the job goes there, off the lane's lists; the caller
 *	completes it, without the lock
 */
void kxfer_job_chain_ended(struct kxfer_active_job *job, struct kxfer_job_list *ended)
{
	if (--job->nr_chains || !job->planned)
		return;
	leave_posted(job->lane, job);
	kxfer_job_list_add(ended, job);
}

static int message_status(int answer)
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

static void message_answered(struct kxfer_request *request)
{
	struct kxfer_lane *lane = request->channel->lane;
	struct kxfer_active_job *job = request->job;
	int status = message_status(request->status);

	spin_lock_bh(&lane->lock);
	leave_posted(lane, job);
	spin_unlock_bh(&lane->lock);
	if (status == -ECONNRESET)
		status = kxfer_link_job_error(lane->link);
	kxfer_job_complete(job, status, ktime_get_ns());
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

static bool post_message(struct kxfer_lane *lane, struct kxfer_active_job *job)
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
	job->started = true;
	job->planned = true;
	job->nr_chains = 1;
	payload = kxfer_channel_request_payload(request);
	length = send ? write_send(job, payload) : write_notify(job, payload);
	/* If this fails the link's teardown completes the job with the lane's others. */
	if (kxfer_channel_post_locked(request, send ? KXFER_WIRE_SEND : KXFER_WIRE_NOTIFY,
				      NULL, length))
		request->job = NULL;
	return true;
}

static bool post_some(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	if (kxfer_op_is_message(job->completion.op))
		return post_message(lane, job);
	return kxfer_chain_add(lane, job);
}

/*
 * Post some of the session whose turn it is. A lane without credits has none for
 * anybody, but a message without a slot keeps no other session waiting. Called with
 * the lane's lock held. Return: false if nothing was posted.
 */
static bool pump_turn(struct kxfer_lane *lane)
{
	u32 bytes = lane->bytes_posted;
	struct kxfer_active_job *job;
	struct kxfer_flow *flow;

	list_for_each_entry(flow, &lane->flows, lane_node) {
		job = list_first_entry(&flow->jobs, struct kxfer_active_job, lane_node);
		if (post_some(lane, job)) {
			kxfer_flow_count(lane, job, lane->bytes_posted - bytes);
			if (job->planned)
				move_to_posted(lane, job);
			return true;
		}
		if (!kxfer_op_is_message(job->completion.op))
			break;
	}
	return false;
}

/**
 * kxfer_job_pump_locked() - post what the lane has room for
 * @lane: a data lane whose lock the caller holds, open or not
 *
 * Bounded by the lane's credits and slots, which completions give back. Nothing
 * more is posted from the moment when the link fails: on one CPU a soft provider
 * that is kept busy would keep the teardown waiting.
 */
void kxfer_job_pump_locked(struct kxfer_lane *lane)
{
	if (!lane->open)
		return;
	while (!list_empty(&lane->flows) && kxfer_link_is_live(lane->link) &&
	       pump_turn(lane))
		;
	kxfer_chain_flush(lane);
}

/** kxfer_job_pump() - kxfer_job_pump_locked() that takes the lock; does not sleep */
void kxfer_job_pump(struct kxfer_lane *lane)
{
	spin_lock_bh(&lane->lock);
	kxfer_job_pump_locked(lane);
	spin_unlock_bh(&lane->lock);
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

/**
 * kxfer_job_pump_on() - post on, in the completion of a chain
 * @lane: its credits have been given back
 *
 * Posting from a completion is cheap, but a soft provider may carry out what was
 * posted before the post returns: then the CQ never runs dry, and on one CPU
 * nobody else, no withdrawal and no keep-alive, runs until all jobs are done. So
 * every INLINE_NS the next post is left to a work, and the CQ does run dry.
 */
void kxfer_job_pump_on(struct kxfer_lane *lane)
{
	/* Who queues a job meanwhile sees the credits just given back. */
	if (!READ_ONCE(lane->nr_queued))
		return;
	if (ktime_get_ns() - READ_ONCE(lane->inline_since_ns) < INLINE_NS)
		kxfer_job_pump(lane);
	else
		queue_work(kxfer_wq, &lane->pump_work);
}

/* Behind those that are posted. As in stop_queued(): nobody else is to stop them. */
static void stop_all_queued(struct kxfer_lane *lane)
{
	struct kxfer_flow *flow, *next_flow;
	struct kxfer_active_job *job, *next;

	list_for_each_entry_safe(flow, next_flow, &lane->flows, lane_node)
		list_for_each_entry_safe(job, next, &flow->jobs, lane_node) {
			job->planned = true;
			move_to_posted(lane, job);
		}
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
	struct kxfer_active_job *job, *next;
	struct kxfer_job_list ended = {};

	spin_lock_bh(&lane->lock);
	stop_all_queued(lane);
	list_for_each_entry_safe(job, next, &lane->posted, lane_node) {
		leave_posted(lane, job);
		kxfer_job_list_add(&ended, job);
	}
	spin_unlock_bh(&lane->lock);
	complete_list(&ended, kxfer_link_job_error(lane->link));
}

/* Called with the lane's lock held. A target that is being opened has no flow yet. */
static void stop_jobs_of(struct kxfer_target *target, struct kxfer_lane *lane,
			 struct kxfer_job_list *ended)
{
	/* Pairs with the one who opens the target. */
	struct kxfer_flow *flow = smp_load_acquire(&target->flow);
	struct kxfer_active_job *job, *next;

	if (!flow || READ_ONCE(flow->lane) != lane)
		return;
	list_for_each_entry_safe(job, next, &flow->jobs, lane_node)
		if (job->target == target)
			stop_queued(lane, job, -EKEYREVOKED, ended);
}

/**
 * kxfer_job_revoke() - end queued jobs of a withdrawn target; posted ones go on
 * @link: of the target
 * @target: marked revoked by the caller, under the lock of each lane in turn
 */
void kxfer_job_revoke(struct kxfer_link *link, struct kxfer_target *target)
{
	struct kxfer_job_list ended = {};
	u32 i;

	for (i = 0; i < link->nr_data; i++) {
		struct kxfer_lane *lane = link->data[i];

		spin_lock_bh(&lane->lock);
		target->revoked = true;
		stop_jobs_of(target, lane, &ended);
		spin_unlock_bh(&lane->lock);
	}
	complete_list(&ended, -EKEYREVOKED);
	for (i = 0; i < link->nr_data; i++)
		kxfer_job_pump(link->data[i]);
}

/* Called with the lane's lock held. */
static void arm_deadline(struct kxfer_lane *lane, u64 deadline_ns)
{
	if (!deadline_ns ||
	    (lane->next_deadline_ns && lane->next_deadline_ns <= deadline_ns))
		return;
	lane->next_deadline_ns = deadline_ns;
	mod_delayed_work(kxfer_wq, &lane->deadline_work,
			 kxfer_job_deadline_delay(deadline_ns));
}

/*
 * Where nothing is queued there is no queue to stand in. Called with the lane's lock
 * held. Return: false if something of the job is left to be queued.
 */
static bool post_at_once(struct kxfer_lane *lane, struct kxfer_active_job *job)
{
	if (!list_empty(&lane->flows) || !kxfer_link_is_live(lane->link) ||
	    !post_some(lane, job) || !job->planned)
		return false;
	kxfer_flow_join(job);
	add_to_posted(lane, job);
	return true;
}

/**
 * kxfer_job_start() - put an accepted job on its lane
 * @job: in no list of a lane
 * @lane: that its flow is on; whose lock the caller holds
 * @at_once: post it if nothing is queued there; kxfer_job_pump_locked() is to follow
 * @ended: gets it instead if it cannot run any more, with the reason as its status
 */
void kxfer_job_start(struct kxfer_active_job *job, struct kxfer_lane *lane, bool at_once,
		     struct kxfer_job_list *ended)
{
	if (job->target->revoked)
		job->status = -EKEYREVOKED;
	else if (!lane->open)
		job->status = kxfer_link_job_error(lane->link);
	if (job->status) {
		kxfer_job_list_add(ended, job);
		return;
	}
	job->lane = lane;
	if (at_once && post_at_once(lane, job))
		return;
	kxfer_flow_add(lane, job);
	WRITE_ONCE(lane->nr_queued, lane->nr_queued + 1);
	arm_deadline(lane, job->deadline_ns);
}

/* Called with the lane's lock held. */
static void stop_late_jobs(struct kxfer_lane *lane, struct kxfer_flow *flow, u64 now_ns,
			   struct kxfer_job_list *ended)
{
	struct kxfer_active_job *job, *next;

	list_for_each_entry_safe(job, next, &flow->jobs, lane_node) {
		if (!job->deadline_ns || job->started)
			continue;
		if (job->deadline_ns <= now_ns)
			stop_queued(lane, job, -ETIMEDOUT, ended);
		else if (lane->open)
			arm_deadline(lane, job->deadline_ns);
	}
}

/** kxfer_job_deadline_work() - end jobs of a lane that were not posted in time */
void kxfer_job_deadline_work(struct work_struct *work)
{
	struct kxfer_lane *lane =
		container_of(to_delayed_work(work), struct kxfer_lane, deadline_work);
	struct kxfer_flow *flow, *next;
	struct kxfer_job_list ended = {};
	u64 now = ktime_get_ns();

	spin_lock_bh(&lane->lock);
	lane->next_deadline_ns = 0;
	list_for_each_entry_safe(flow, next, &lane->flows, lane_node)
		stop_late_jobs(lane, flow, now, &ended);
	spin_unlock_bh(&lane->lock);
	complete_list(&ended, -ETIMEDOUT);
	kxfer_job_pump(lane);
}

static bool is_queued(const struct kxfer_active_job *job)
{
	return !list_empty(&job->lane_node) && !job->planned;
}

/*
 * Stop a job of a session whose job_lock the caller holds, a partly posted one only if
 * @started. Return: it was queued; @ended may have got it.
 */
static bool stop_job(struct kxfer_active_job *job, bool started, struct kxfer_job_list *ended)
{
	struct kxfer_lane *lane = job->lane;
	bool stopped;

	if (job->mailbox)
		return kxfer_mailbox_stop(job, ended);
	/* NULL: it ends without having been queued. */
	if (!lane)
		return false;
	spin_lock(&lane->lock);
	stopped = is_queued(job) && (started || !job->started);
	if (stopped)
		stop_queued(lane, job, -ECANCELED, ended);
	spin_unlock(&lane->lock);
	return stopped;
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
	struct kxfer_job_list ended = {};

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if ((!job->target && !job->mailbox) ||
		    (!all && job->completion.user_data != user_data))
			continue;
		count.found++;
		count.stopped += stop_job(job, started, &ended);
	}
	spin_unlock_bh(&session->job_lock);
	complete_list(&ended, -ECANCELED);
	return count;
}

/**
 * kxfer_job_stop_abandoned() - stop jobs that came by io_uring and that nobody waits for
 * @session: stays while this runs
 *
 * Any context but hard interrupts. Return: true if jobs are left that came by io_uring.
 */
bool kxfer_job_stop_abandoned(struct kxfer_session *session)
{
	struct kxfer_active_job *job;
	bool left = false;
	struct kxfer_job_list ended = {};

	spin_lock_bh(&session->job_lock);
	list_for_each_entry(job, &session->jobs, session_node) {
		if (!job->uring)
			continue;
		left = true;
		if (kxfer_uring_abandoned(job->uring))
			stop_job(job, true, &ended);
	}
	spin_unlock_bh(&session->job_lock);
	complete_list(&ended, -ECANCELED);
	return left;
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
	struct kxfer_active_job *job;

	stop_jobs(session, true, 0, true);
	wait_event(session->wait, no_jobs(session));
	for (job = session->done.first; job; job = job->next)
		kxfer_user_return(session->user, KXFER_SHARE_JOBS, 1);
	free_jobs(session->done.first);
	free_jobs(session->spare_jobs);
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
