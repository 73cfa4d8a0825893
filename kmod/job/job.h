/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs: queue, pump, complete; stop. See job.c and job_stop.c. */
#ifndef KXFER_JOB_H
#define KXFER_JOB_H

#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/workqueue.h>

#include "base/deadline.h"
#include "job/job_list.h"
#include "base/plan.h"
#include "node/session.h"

#define KXFER_ATOMIC_BYTES	8	/* that an atomic changes, and their alignment */

struct io_uring_cmd;
struct kxfer_lane;
struct kxfer_link;
struct kxfer_mailbox;
struct kxfer_mapping;
struct kxfer_region;
struct kxfer_session;
struct kxfer_target;

/**
 * struct kxfer_active_job - a job in flight, then its completion until it is reaped
 * @completion: completion for the user
 * @session: session of the job; lives as long as any of its jobs
 * @session_node: entry in the session's jobs
 * @next: next job in a struct kxfer_job_list, or of jobs kept for reuse or being freed
 * @uring: io_uring command that brought the job and gets its completion; or NULL
 * @region: region of the local memory, or NULL
 * @mapping: mapping of @region for the link's device, or NULL
 * @target: target at the peer, or NULL
 * @mailbox: mailbox of a RECV, or NULL
 * @lane: lane that the job runs on; NULL if it was not queued on one, or waits for a link
 * @lane_node: entry in the flow of its target while queued (flow.c), then in the lane's
 *	posted; while it waits for a link, in its line's jobs (line.c); RECV: in its mailbox's recvs
 *	while waiting
 * @plan: part that is left to post (READ, WRITE, atomics; SEND that may be an eager message)
 * @flags: KXFER_JOB_F_*
 * @offset: offset in the region of the first byte; RECV: of the header
 * @target_offset: offset in the target of the first byte
 * @done: bytes at the beginning whose chains have ended
 * @length: bytes; RECV: length of its range, then of the received message
 * @cookie: NOTIFY, WRITE with KXFER_JOB_F_NOTIFY: the cookie; SEND: the immediate
 * @compare_add: atomics: value to compare with or to add
 * @payload: RECV: offset of the first byte of the payload in the region
 * @swap: COMPARE_SWAP: new value; undefined if the job is no atomic
 * @deadline: time until which the job waits to be posted, or for a message
 * @status: first error of the job, 0 or -errno; its completion reports this one
 * @nr_tries: links that have broken under the job
 * @nr_taken: completions that the session had taken when the job began to wait for a link
 * @nr_chains: chains posted and not completed; the message of a WRITE counts as one
 * @stopped: RECV: it must not wait again
 * @started: some of the job was posted
 * @planned: nothing of the job is left to post
 */
struct kxfer_active_job {
	struct kxfer_completion completion;
	struct kxfer_session *session;
	struct list_head session_node;
	struct kxfer_active_job *next;
	struct io_uring_cmd *uring;
	struct kxfer_region *region;
	struct kxfer_mapping *mapping;
	struct kxfer_target *target;
	struct kxfer_mailbox *mailbox;
	struct kxfer_lane *lane;
	struct list_head lane_node;
	struct kxfer_plan plan;
	u32 flags;
	u64 offset;
	u64 target_offset;
	u64 done;
	u64 length;
	u64 cookie;
	union {
		u64 compare_add;
		u64 payload;
	};
	u64 swap;
	struct kxfer_deadline deadline;
	int status;
	u32 nr_tries;
	u32 nr_taken;
	u32 nr_chains;
	bool stopped;
	bool started;
	bool planned;
};

static inline void kxfer_job_list_add(struct kxfer_job_list *list,
				      struct kxfer_active_job *job)
{
	job->next = NULL;
	if (list->first)
		list->last->next = job;
	else
		list->first = job;
	list->last = job;
}

/**
 * struct kxfer_job_record - a job in flight, for debugfs
 * @user_data: user_data of the job
 * @length: bytes
 * @submitted_ns: ktime_get_ns() of the submission
 * @link: id of the link, 0: none
 * @lane: index of the lane
 * @op: enum kxfer_op
 * @posted: some of the job was posted
 */
struct kxfer_job_record {
	u64 user_data;
	u64 length;
	u64 submitted_ns;
	u64 link;
	u32 lane;
	u32 op;
	bool posted;
};

static inline bool kxfer_op_is_atomic(u32 op)
{
	return op == KXFER_OP_COMPARE_SWAP || op == KXFER_OP_FETCH_ADD;
}

/* Whether an op that moves bytes writes them to local memory. */
static inline bool kxfer_op_has_sink(u32 op)
{
	return op == KXFER_OP_READ || op == KXFER_OP_RECV || kxfer_op_is_atomic(op);
}

/* Count @nr more jobs of a session, whose job_lock the caller holds, as in flight. */
static inline void kxfer_job_reserve_locked(struct kxfer_session *session, u32 nr)
{
	WRITE_ONCE(session->nr_jobs, session->nr_jobs + nr);
	session->peak_jobs = max(session->peak_jobs, session->nr_jobs + session->nr_done);
}

/* The right on the target that an op needs: KXFER_RIGHT_*. */
static inline u32 kxfer_op_right(u32 op)
{
	if (op == KXFER_OP_READ)
		return KXFER_RIGHT_READ;
	if (op == KXFER_OP_SEND)
		return KXFER_RIGHT_SEND;
	return kxfer_op_is_atomic(op) ? KXFER_RIGHT_ATOMIC : KXFER_RIGHT_WRITE;
}

/* Whether an op is a message of the lane's channel, not chains. */
static inline bool kxfer_op_is_message(u32 op)
{
	return op == KXFER_OP_NOTIFY || op == KXFER_OP_SEND;
}

/* Whether what is posted next of a job, of which something is left, is a message. */
static inline bool kxfer_job_sends_next(const struct kxfer_active_job *job)
{
	return kxfer_op_is_message(job->completion.op) ||
	       (job->flags & KXFER_JOB_F_NOTIFY && !kxfer_plan_left(&job->plan));
}

/* Whether a job ends by a work of the peer's module. An eager message that is posted does not. */
static inline bool kxfer_job_is_answered(const struct kxfer_active_job *job)
{
	return (kxfer_op_is_message(job->completion.op) && !job->nr_chains) ||
	       job->flags & KXFER_JOB_F_NOTIFY;
}

/* Whether a job is a message that is not copied (offer.c): a long one, or one that may wait. */
static inline bool kxfer_job_is_long(const struct kxfer_active_job *job)
{
	return job->completion.op == KXFER_OP_SEND &&
	       (job->length > KXFER_MESSAGE_MAX || job->flags & KXFER_JOB_F_WAIT);
}

/**
 * kxfer_job_make() - fill in a job as the user describes it; in no list yet
 * @job: job to fill in
 * @session: session of the job
 * @user: checked description of the job
 * @now_ns: ktime_get_ns()
 */
static inline void kxfer_job_make(struct kxfer_active_job *job, struct kxfer_session *session,
				  const struct kxfer_job *user, u64 now_ns)
{
	/* Member by member: the plan and the links of lists are set where they are needed. */
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
	job->target_offset = user->target_offset;
	job->done = 0;
	job->length = user->length;
	job->cookie = user->cookie;
	job->deadline.ns = user->deadline_ns;
	RB_CLEAR_NODE(&job->deadline.node);
	job->status = 0;
	job->nr_tries = 0;
	job->nr_chains = 0;
	job->stopped = false;
	job->started = false;
	job->planned = false;
}

int kxfer_job_init(void);
void kxfer_job_exit(void);
struct kxfer_active_job *kxfer_job_take_spares(struct kxfer_session *session, u32 want);
struct kxfer_active_job *kxfer_job_alloc(gfp_t gfp);
void kxfer_job_free_locked(struct kxfer_session *session, struct kxfer_active_job *jobs);
void kxfer_job_free(struct kxfer_session *session, struct kxfer_active_job *jobs);
void kxfer_job_start(struct kxfer_active_job *job, struct kxfer_lane *lane, bool at_once,
		     struct kxfer_job_list *ended);
void kxfer_job_end_session(struct kxfer_session *session);
void kxfer_job_pump(struct kxfer_lane *lane);
void kxfer_job_pump_locked(struct kxfer_lane *lane);
void kxfer_job_pump_on(struct kxfer_lane *lane);
void kxfer_job_pump_work(struct work_struct *work);
u32 kxfer_job_records(struct kxfer_session *session, struct kxfer_job_record *records,
		      u32 nr);

/* job.c, for job_stop.c */
void kxfer_job_unqueue(struct kxfer_lane *lane, struct kxfer_active_job *job);
void kxfer_job_move_to_posted(struct kxfer_lane *lane, struct kxfer_active_job *job);
void kxfer_job_leave_posted(struct kxfer_lane *lane, struct kxfer_active_job *job);
bool kxfer_job_is_held(const struct kxfer_active_job *job);

/* job_stop.c */
int kxfer_job_cancel(struct kxfer_session *session, void *arg);
bool kxfer_job_stop_abandoned(struct kxfer_session *session);
bool kxfer_job_stop_recv(struct kxfer_session *session, struct io_uring_cmd *cmd);
void kxfer_job_stop_all(struct kxfer_session *session);
void kxfer_job_give_up_all(struct kxfer_session *session);
void kxfer_job_revoke(struct kxfer_link *link, struct kxfer_target *target);
void kxfer_job_fail_long(struct kxfer_lane *lane, int error);
void kxfer_job_fail_lane(struct kxfer_lane *lane);
void kxfer_job_deadline_work(struct work_struct *work);

#endif /* KXFER_JOB_H */
