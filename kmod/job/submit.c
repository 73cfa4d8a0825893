// SPDX-License-Identifier: GPL-2.0
/*
 * Submission of jobs.
 *
 * SUBMIT copies each job once, checks it, looks up the objects that it names, plans it and
 * puts it on its lane together with others (batch.c). The first job that is refused ends the
 * call. The jobs before it are accepted and each of them will complete, so the call then
 * succeeds. A job that can be accepted but not run (its link has broken, its device has
 * gone) is accepted and completes with the reason. Waiting comes last (reap.c); the end of
 * the wait, for whatever reason, does not change what was accepted.
 *
 * Context: calls of users; may sleep. Lock order: as in job.c.
 */
#include "base/log.h"

#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "job/batch.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/mailbox.h"
#include "job/message.h"
#include "job/quick.h"
#include "job/reap.h"
#include "job/ring.h"
#include "job/sq.h"
#include "job/submit.h"
#include "job/target.h"
#include "job/trace.h"
#include "link/lane.h"
#include "node/device.h"
#include "link/link.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"

#define FLUSH_JOBS	32	/* most jobs handed over at once */

#define ORDER_FLAGS	(KXFER_JOB_F_FENCE | KXFER_JOB_F_ORDERED)

static int check_unused(const struct kxfer_job *job)
{
	return job->region || job->region_offset || job->target_offset || job->length ||
	       job->compare_add || job->swap ? -EINVAL : 0;
}

static int check_transfer(const struct kxfer_job *job)
{
	if ((job->flags & (KXFER_JOB_F_LOCAL_ONLY | KXFER_JOB_F_NOTIFY |
			   KXFER_JOB_F_IDEMPOTENT) && job->op != KXFER_OP_WRITE) ||
	    job->flags & (KXFER_JOB_F_IMM | KXFER_JOB_F_STORED | KXFER_JOB_F_APART |
			  KXFER_JOB_F_WAIT) ||
	    (job->cookie && !(job->flags & KXFER_JOB_F_NOTIFY)))
		return -EINVAL;
	return job->length && !(job->compare_add | job->swap) ? 0 : -EINVAL;
}

static int check_atomic(const struct kxfer_job *job)
{
	if (job->flags & ~(KXFER_JOB_F_BATCH | ORDER_FLAGS) || job->cookie ||
	    (job->swap && job->op != KXFER_OP_COMPARE_SWAP))
		return -EINVAL;
	return job->length == KXFER_ATOMIC_BYTES ? 0 : -EINVAL;
}

static int check_send(const struct kxfer_job *job)
{
	u64 max_immediate = job->flags & KXFER_JOB_F_IMM ? U32_MAX : 0;

	if (job->flags & ~(KXFER_JOB_F_IMM | KXFER_JOB_F_STORED | KXFER_JOB_F_WAIT | ORDER_FLAGS) ||
	    job->cookie > max_immediate ||
	    job->target_offset || job->compare_add || job->swap)
		return -EINVAL;
	if (job->flags & KXFER_JOB_F_WAIT && !job->length)
		return -EINVAL;
	return !job->length && (job->region || job->region_offset) ? -EINVAL : 0;
}

static int check_recv(const struct kxfer_job *job)
{
	return job->flags & ~KXFER_JOB_F_APART || job->cookie ||
	       (job->target_offset && !(job->flags & KXFER_JOB_F_APART)) ||
	       job->compare_add || job->swap ? -EINVAL : 0;
}

static int check_range(u64 offset, u64 length, u64 limit)
{
	u64 end;

	if (check_add_overflow(offset, length, &end))
		return -EOVERFLOW;
	return end > limit ? -ERANGE : 0;
}

/*
 * A job usually names the same target and region as the job before. Called with the session's
 * lock held for reading; deleting an object takes that lock for writing.
 */
static struct kxfer_target *find_target(struct kxfer_session *session, u32 id)
{
	struct kxfer_target *target = READ_ONCE(session->last_target);

	if (target && target->id == id)
		return target;
	target = xa_load(&session->targets, id);
	WRITE_ONCE(session->last_target, target);
	return target;
}

static struct kxfer_region *find_region(struct kxfer_session *session, u32 id)
{
	struct kxfer_region *region = READ_ONCE(session->last_region);

	if (region && region->id == id)
		return region;
	region = xa_load(&session->regions, id);
	WRITE_ONCE(session->last_region, region);
	return region;
}

/* Whether a link has what a job wants of it beside room. Return: 0 or -EOPNOTSUPP. */
static int check_link(const struct kxfer_link *link, u32 op, u32 flags)
{
	if ((kxfer_op_is_atomic(op) && !link->dev->atomic) ||
	    (flags & KXFER_JOB_F_WAIT && !(link->features & KXFER_WIRE_FEATURE_WAIT)))
		return -EOPNOTSUPP;
	return 0;
}

/* Called with the session's lock held for reading. */
static int bind_target(struct kxfer_active_job *job, const struct kxfer_job *user)
{
	struct kxfer_target *target = find_target(job->session, user->target);
	u32 right = kxfer_op_right(user->op);
	int ret;

	if (!target)
		return -ENOENT;
	ret = check_link(target->link, user->op, user->flags);
	if (ret)
		return ret;
	if (!(target->rights & right))
		return -EACCES;
	ret = check_range(user->target_offset, user->length, target->length);
	if (ret)
		return right == KXFER_RIGHT_SEND ? -EMSGSIZE : ret;
	job->target = target;
	return 0;
}

/* Called with the session's lock held for reading. */
static int bind_mailbox(struct kxfer_active_job *job, const struct kxfer_job *user)
{
	job->mailbox = xa_load(&job->session->mailboxes, user->target);
	if (!job->mailbox)
		return -ENOENT;
	job->payload = user->flags & KXFER_JOB_F_APART ? user->target_offset :
		       user->region_offset + job->mailbox->message_size;
	return user->length < job->mailbox->message_size ? -EINVAL : 0;
}

/* The ranges of a RECV with its payload apart; @limit: bytes of the region. */
static int check_apart(const struct kxfer_active_job *job, const struct kxfer_job *user,
		       u64 limit)
{
	u64 head = job->mailbox->message_size, payload = user->length - head;
	int ret = check_range(user->region_offset, head, limit) ?:
		  check_range(user->target_offset, payload, limit);

	if (ret)
		return ret;
	return user->region_offset < user->target_offset + payload &&
	       user->target_offset < user->region_offset + head ? -EINVAL : 0;
}

static int bind_region(struct kxfer_active_job *job, const struct kxfer_job *user)
{
	struct kxfer_region *region = find_region(job->session, user->region);
	int ret;

	if (!region)
		return -ENOENT;
	ret = user->flags & KXFER_JOB_F_APART ?
	      check_apart(job, user, region->memory->length) :
	      check_range(user->region_offset, user->length, region->memory->length);
	if (ret)
		return ret;
	if (kxfer_op_has_sink(user->op) && !region->memory->writable)
		return -EACCES;
	/* The CPU copies messages, and works on no byte of a dma-buf. */
	if (user->op >= KXFER_OP_SEND && region->memory->dmabuf)
		return -EOPNOTSUPP;
	job->region = region;
	return 0;
}

/* Return: 0, -errno or KXFER_WOULD_SLEEP. */
static int map_region(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	struct kxfer_device *dev = job->target->link->dev;
	struct kxfer_mapping *mapping;

	mapping = kxfer_batch_find_mapping(batch, job->region, dev);
	if (!mapping) {
		if (!batch->may_sleep)
			return KXFER_WOULD_SLEEP;
		mapping = kxfer_batch_make_mapping(batch, job->region, dev);
	}
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	job->mapping = mapping;
	return 0;
}

/* Plan what is left of a mapped READ, WRITE or atomic behind its first @done bytes. */
static int plan_from(struct kxfer_active_job *job, u64 done)
{
	const struct kxfer_target *target = job->target;

	return kxfer_plan_init(&job->plan, job->mapping->extents, job->mapping->nr_extents,
			       job->offset + done, target->keys, target->nr_keys,
			       job->target_offset + done, job->length - done,
			       kxfer_device_limits(target->link->dev, job->completion.op));
}

static int plan_transfer(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	return map_region(batch, job) ?: plan_from(job, 0);
}

static int plan_message(struct kxfer_batch *batch, struct kxfer_active_job *job)
{
	int ret = map_region(batch, job);

	if (!ret)
		kxfer_message_plan(job);
	return ret;
}

/* A planned atomic must be one work request at aligned addresses. */
static int check_word(const struct kxfer_active_job *job)
{
	u64 here = job->region->memory->offset + job->offset;

	return here % KXFER_ATOMIC_BYTES || !kxfer_plan_is_word(&job->plan, KXFER_ATOMIC_BYTES) ?
	       -EINVAL : 0;
}

/**
 * kxfer_submit_plan_again() - plan a job that waited for a link, for that of its target
 * @job: job on no lane, without a mapping; no other context uses it
 *
 * May sleep. The bytes that are known to be there are left out. A WRITE on iWARP completes before
 * its bytes are. Return: 0; -ENODEV: the device is going; -EMSGSIZE: the message is too long for
 * that link; -EOPNOTSUPP: it lacks what the job wants; or another error that ends the job.
 */
int kxfer_submit_plan_again(struct kxfer_active_job *job)
{
	const struct kxfer_device *dev = job->target->link->dev;
	bool transfer = job->completion.op < KXFER_OP_SEND;
	struct kxfer_mapping *mapping;
	int ret;

	ret = check_link(job->target->link, job->completion.op, job->flags);
	if (!ret && job->completion.op == KXFER_OP_SEND && job->length > job->target->length)
		ret = -EMSGSIZE;
	if (ret)
		return ret;
	if (!job->region || !(transfer || kxfer_message_wants_mapping(job)))
		return 0;
	mapping = kxfer_mapping_get(job->region, job->target->link->dev);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	job->mapping = mapping;
	if (!transfer) {
		kxfer_message_plan(job);
		return 0;
	}
	if (job->done == job->length || (dev->iwarp && job->completion.op == KXFER_OP_WRITE))
		job->done = 0;
	ret = plan_from(job, job->done);
	return ret || !kxfer_op_is_atomic(job->completion.op) ? ret : check_word(job);
}

static int take_operands(struct kxfer_active_job *job, const struct kxfer_job *user)
{
	int ret = check_word(job);

	if (ret)
		return ret;
	job->compare_add = user->compare_add;
	job->swap = user->swap;
	return 0;
}

/**
 * kxfer_submit_check() - check a job without looking up the objects that it names
 * @user: the kernel's copy of the job
 *
 * Any context. Return: 0 or -errno.
 */
int kxfer_submit_check(const struct kxfer_job *user)
{
	if (user->op > KXFER_OP_RECV || user->flags & ~KXFER_JOB_F_ALL)
		return -EOPNOTSUPP;
	switch (user->op) {
	case KXFER_OP_NOP:
		if (user->target || user->cookie || user->flags)
			return -EINVAL;
		return check_unused(user);
	case KXFER_OP_NOTIFY:
		return user->flags & ~ORDER_FLAGS ? -EINVAL : check_unused(user);
	case KXFER_OP_COMPARE_SWAP:
	case KXFER_OP_FETCH_ADD:
		return check_atomic(user);
	case KXFER_OP_SEND:
		return check_send(user);
	case KXFER_OP_RECV:
		return check_recv(user);
	default:
		return check_transfer(user);
	}
}

/* Look up the objects that the job names. Return: 0, or -errno: refuse the job. */
static int bind_job(struct kxfer_active_job *job, const struct kxfer_job *user)
{
	int ret = 0;

	if (user->op == KXFER_OP_NOP)
		return 0;
	ret = user->op == KXFER_OP_RECV ? bind_mailbox(job, user) : bind_target(job, user);
	if (!ret && user->op != KXFER_OP_NOTIFY && user->length)
		ret = bind_region(job, user);
	return ret;
}

/**
 * kxfer_submit_accept() - put a job into a batch
 * @batch: batch of the caller
 * @user: the kernel's copy of the job, passed by kxfer_submit_check()
 *
 * Return: 0; -errno: the job is refused; KXFER_WOULD_SLEEP: nothing was done, because it
 * would have to sleep and @batch does not allow that.
 */
int kxfer_submit_accept(struct kxfer_batch *batch, const struct kxfer_job *user)
{
	struct kxfer_active_job *job;
	int ret;

	job = kxfer_batch_job(batch, user);
	if (!job)
		return batch->may_sleep ? -ENOMEM : KXFER_WOULD_SLEEP;
	ret = bind_job(job, user);
	trace_kxfer_job_checked(job->session, &job->completion, job->length, NULL, job->target);
	if (!ret && job->region && user->op < KXFER_OP_SEND)
		ret = plan_transfer(batch, job);
	else if (!ret && kxfer_message_wants_mapping(job))
		ret = plan_message(batch, job);
	if (!ret && kxfer_op_is_atomic(user->op))
		ret = take_operands(job, user);
	/* If the device has gone the job ends, not the call. */
	if (ret == -ENODEV) {
		job->status = ret;
		ret = 0;
	}
	trace_kxfer_job_planned(job->session, &job->completion, job->length, NULL, job->target);
	if (!ret)
		ret = kxfer_batch_add(batch, job);
	if (ret)
		kxfer_batch_refuse(batch, job);
	return ret;
}

/**
 * kxfer_submit_own() - become the owner of the CQ of jobs that are about to be posted
 * @flow: flow of the jobs, or NULL
 * @cmd: the call
 *
 * A soft provider may carry out jobs before the post returns: a call that will wait takes those
 * completions at once. (If the flow moves to another lane meanwhile, the CQ of the lane that it
 * left is polled in vain.) Return: the CQ, for kxfer_submit_poll(); or NULL.
 */
struct kxfer_cq *kxfer_submit_own(struct kxfer_flow *flow, const struct kxfer_submit *cmd)
{
	struct kxfer_cq *cq;

	if (!flow || !cmd->wait || cmd->flags & KXFER_WAIT_F_SLEEP)
		return NULL;
	cq = &READ_ONCE(flow->lane)->cq;
	return kxfer_cq_own(cq) ? cq : NULL;
}

/** kxfer_submit_poll() - handle what a CQ of kxfer_submit_own() has, and disown it */
void kxfer_submit_poll(struct kxfer_session *session, struct kxfer_cq *cq,
		       const struct kxfer_submit *cmd)
{
	if (!cq)
		return;
	kxfer_cq_poll(cq, &(struct kxfer_cq_wait) {
		.done = &session->nr_done,
		.want = cmd->wait,
	});
	kxfer_cq_disown(cq);
}

/* Hand over the accepted jobs. */
static void flush(struct kxfer_batch *batch, const struct kxfer_submit *cmd)
{
	struct kxfer_cq *cq = kxfer_submit_own(batch->nr ? batch->flow : NULL, cmd);

	kxfer_batch_flush(batch);
	kxfer_submit_poll(batch->session, cq, cmd);
}

/* Copy a job without page faults. Return: 0, or not 0 if some of it was not copied. */
static unsigned long copy_at_once(struct kxfer_job *job, const void __user *from, u32 stride)
{
	unsigned long left = 1;

	if ((stride != sizeof(*job) && stride != KXFER_JOB_SIZE_MIN) ||
	    !access_ok(from, stride))
		return left;
	pagefault_disable();
	if (stride == sizeof(*job)) {
		left = __copy_from_user_inatomic(job, from, sizeof(*job));
	} else {
		job->compare_add = 0;
		job->swap = 0;
		left = __copy_from_user_inatomic(job, from, KXFER_JOB_SIZE_MIN);
	}
	pagefault_enable();
	return left;
}

/*
 * Copy the next job. If the copy may wait for user memory the batch is flushed first
 * (batch.c). Return: 0 or -errno.
 */
static int copy_job(struct kxfer_batch *batch, const struct kxfer_submit *cmd,
		    const struct kxfer_session_sq *sq, struct kxfer_job *job)
{
	const void __user *from = u64_to_user_ptr(cmd->jobs) +
				  (size_t)cmd->accepted * cmd->stride;

	if (sq) {
		kxfer_sq_copy(sq, cmd->accepted, 1, job);
		return 0;
	}
	if (!copy_at_once(job, from, cmd->stride))
		return 0;
	flush(batch, cmd);
	return copy_struct_from_user(job, sizeof(*job), from, cmd->stride);
}

/* Accept jobs in batches, until @end of the call are accepted. Return: as accept_jobs(). */
static int accept_batches(struct kxfer_session *session, struct kxfer_submit *cmd,
			  const struct kxfer_session_sq *sq, u32 end)
{
	struct kxfer_batch batch;
	struct kxfer_job job __uninitialized;
	int ret = 0;

	kxfer_batch_begin(&batch, session, end - cmd->accepted, true);
	batch.at_once = true;
	for (; cmd->accepted < end; cmd->accepted++) {
		ret = copy_job(&batch, cmd, sq, &job) ?: kxfer_submit_check(&job) ?:
		      kxfer_submit_accept(&batch, &job);
		if (ret)
			break;
		if (batch.nr == FLUSH_JOBS)
			flush(&batch, cmd);
	}
	flush(&batch, cmd);
	kxfer_batch_end(&batch);
	return ret;
}

/*
 * Accept jobs from a submission ring, locked; or, if @sq is NULL, from user memory. A look at what
 * is unread in the completion ring comes before the first job that the call may wait for.
 * Return: 0 if all jobs were accepted, else -errno for the first that was not.
 */
static int accept_jobs(struct kxfer_session *session, struct kxfer_submit *cmd,
		       const struct kxfer_session_sq *sq)
{
	bool unknown;
	int ret = 0;

	if (!down_read_trylock(&session->lock)) {
		ret = kxfer_session_may_wait(session) ?: down_read_killable(&session->lock);
		if (ret)
			return ret;
	}
	unknown = kxfer_quick_submit(session, cmd, sq);
	if (cmd->accepted < cmd->nr_jobs && cmd->wait && kxfer_ring_of(session))
		kxfer_ring_look(session);
	/* The objects that the first names are known then, and its region is mapped. */
	if (unknown) {
		ret = accept_batches(session, cmd, sq, cmd->accepted + 1);
		if (!ret && cmd->accepted < cmd->nr_jobs)
			kxfer_quick_submit(session, cmd, sq);
	}
	if (!ret && cmd->accepted < cmd->nr_jobs)
		ret = accept_batches(session, cmd, sq, cmd->nr_jobs);
	up_read(&session->lock);
	return ret;
}

static int check_submit(const struct kxfer_submit *cmd,
			const struct kxfer_session_ring *ring)
{
	u32 max_wait = ring ? ring->entries : cmd->nr_completions;
	int ret = kxfer_reap_check_flags(cmd->flags);

	if (ret)
		return ret;
	if (cmd->__reserved || !cmd->nr_jobs || cmd->nr_jobs > KXFER_SUBMIT_MAX ||
	    cmd->stride < KXFER_JOB_SIZE_MIN || cmd->stride > 256 ||
	    cmd->stride % 8)
		return -EINVAL;
	if (cmd->nr_completions > KXFER_REAP_MAX || cmd->wait > max_wait ||
	    (!cmd->completions != !cmd->nr_completions) || (ring && cmd->nr_completions))
		return -EINVAL;
	return 0;
}

/** kxfer_submit() - KXFER_SUBMIT */
int kxfer_submit(struct kxfer_session *session, void *arg)
{
	struct kxfer_session_ring *ring = kxfer_ring_of(session);
	struct kxfer_submit *cmd = arg;
	int ret;

	trace_kxfer_submit(session, cmd->nr_jobs);
	ret = check_submit(cmd, ring);
	if (ret)
		return ret;
	/* Accept no job whose completion cannot be stored: write a byte of each page. */
	if (fault_in_writeable(u64_to_user_ptr(cmd->completions),
			       cmd->nr_completions * sizeof(struct kxfer_completion)))
		return -EFAULT;
	cmd->accepted = 0;
	ret = accept_jobs(session, cmd, NULL);
	if (!cmd->accepted)
		return ret;
	cmd->error = -ret;
	cmd->reaped = 0;
	if (!cmd->wait && !cmd->nr_completions)
		return 0;
	/* Often all have completed while they were posted. */
	if (READ_ONCE(session->nr_done) < cmd->wait)
		kxfer_reap_wait(session, cmd->wait, cmd->deadline_ns, cmd->flags);
	trace_kxfer_waited(session, cmd->wait);
	if (ring)
		kxfer_ring_waited();
	else
		kxfer_reap_store(session, cmd->completions, cmd->nr_completions,
				 &cmd->reaped);
	return 0;
}

/* Accept the jobs of the submission ring, locked. Return: as accept_jobs(). */
static int enter(struct kxfer_session *session, struct kxfer_submit *cmd,
		 const struct kxfer_session_sq *sq)
{
	int ret;

	if (cmd->wait > kxfer_ring_of(session)->entries)
		return -EINVAL;
	ret = kxfer_reap_check_flags(cmd->flags);
	if (ret)
		return ret;
	trace_kxfer_submit(session, cmd->nr_jobs);
	if (cmd->nr_jobs)
		return accept_jobs(session, cmd, sq);
	kxfer_ring_look(session);
	return 0;
}

/** kxfer_submit_enter() - KXFER_ENTER; @arg: the number of completions to wait for */
int kxfer_submit_enter(struct kxfer_session *session, void *arg)
{
	unsigned long wait = (unsigned long)arg;
	struct kxfer_submit cmd __uninitialized;
	struct kxfer_session_sq *sq;
	int ret;

	sq = kxfer_sq_lock(session, &cmd.nr_jobs);
	if (IS_ERR(sq))
		return PTR_ERR(sq);
	cmd.stride = sizeof(struct kxfer_job);
	cmd.flags = READ_ONCE(sq->shared->flags);
	cmd.deadline_ns = READ_ONCE(sq->shared->deadline_ns);
	cmd.wait = min_t(unsigned long, wait, U32_MAX);
	cmd.accepted = 0;
	ret = enter(session, &cmd, sq);
	kxfer_sq_unlock(sq, cmd.accepted, -ret);
	if (ret && !cmd.accepted)
		return ret;
	if (!cmd.wait)
		return cmd.accepted;
	ret = 0;
	if (READ_ONCE(session->nr_done) < cmd.wait)
		ret = kxfer_reap_wait(session, cmd.wait, cmd.deadline_ns, cmd.flags);
	trace_kxfer_waited(session, cmd.wait);
	kxfer_ring_waited();
	return cmd.accepted ?: ret;
}
