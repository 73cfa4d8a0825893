// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs that come by io_uring: each is a command, and its completion a CQE.
 *
 * A command is copied out of the SQE once, word by word, and checked afterwards: on
 * some kernels the SQE is memory that its user can still write. Jobs that SUBMIT would
 * refuse are refused here too, by the same functions. A NOP completes as soon as it has
 * been checked; it is never a job in flight.
 *
 * io_uring first calls with its own lock held and asks not to sleep
 * (IO_URING_F_NONBLOCK). A command that has to sleep (the session's tables are being
 * changed, a region is used for the first time on a device, memory is short) is left by
 * -EAGAIN to io-wq, a thread that may sleep. The -EAGAIN of a full queue goes to the
 * user as a CQE instead, so that io-wq does not try again. The lock of a ring is never
 * taken under a lock of this module but job_lock, and the functions called under
 * job_lock do not take it.
 *
 * Jobs of one io_uring_enter() are posted together: io_uring opens a plug when it takes
 * more than two SQEs. post_batch() is called when the plug is closed, or when the task
 * goes to sleep. Each lane of the jobs has an entry in the plug, with a reference to its
 * link.
 *
 * Lifetimes, as a proof. A request of io_uring holds its file until its CQE is made, and
 * also while ->uring_cmd() runs: a task makes the CQEs of its own requests, so not at
 * that time, and io-wq holds one more reference. So the session does not end while a job
 * is in flight; and
 *  1. while job_lock is held and a job is in its session's list, its command is there,
 *     and so are the ring and the task, which the request holds;
 *  2. kxfer_complete() takes the job off that list and notifies io_uring in one step
 *     under job_lock. The CQE may be made at once and the session may end: its end takes
 *     job_lock, so it comes after that step;
 *  3. finish(), which io_uring calls later in the task, or in a kworker if the task is
 *     gone, uses only the command. In a ring that polls (IORING_SETUP_IOPOLL) it is not
 *     called: step 2 is the last use of the command.
 * A command completes once: only the context that takes a job off its lane completes it
 * (job.c).
 *
 * The end of a ring, exit and execve() wait for requests. They end jobs in two ways:
 *  - RECVs wait for ever, and can be ended at any time. Since 6.7 they are marked, and
 *    io_uring asks for their end (IO_URING_F_CANCEL, with the ring's lock held; job_lock
 *    nests inside it). It asks without a pause until there is a CQE, so cancel() pauses
 *    while a RECV is being filled. A mark is in a list of the ring until the CQE is made,
 *    so a marked command is refused by a CQE. The mark is set while the CQE cannot be made
 *    yet: by the task itself after the job is accepted, by io-wq before that.
 *  - The watch runs every WATCH_MS while such jobs are in flight. It checks whether the
 *    ring of a job is being closed, or its task exits, is killed by the execve() of another
 *    thread, or is in execve() itself, and ends queued jobs. This is the only way for RECVs
 *    before 6.7 or in rings that poll, and for other jobs on all kernels: a posted job gets
 *    no CQE before the device lets go of it, and io_uring would ask all the time. Posted
 *    jobs end within the bounds of kxfer_job_end_session().
 *
 * An execve() that fails is no reason to end jobs. So the watch has to find the task in
 * execve() twice: asleep all the time, as while it waits for its requests, or with a signal
 * that it never returns to handle (then it does not sleep but loops). task_struct shows
 * that, and modversions cover it; io_uring shows it only in private members. Two private
 * members are used: the task of a request, which is compared when a command comes, and the
 * reference count of the ring.
 */
#include "base/compat.h"

#include <linux/blkdev.h>
#include <linux/compiler.h>
#include <linux/fs.h>
#include <linux/kxfer.h>
#include <linux/percpu-refcount.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "base/fault.h"
#include "base/stats.h"
#include "job/batch.h"
#include "job/job.h"
#include "job/reap.h"
#include "job/submit.h"
#include "job/uring.h"
#include "link/cq.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/session.h"

#define WATCH_MS	250

/**
 * struct result - what a command keeps of a job that is or was in flight
 * @completed_ns: time of completion, for the CQE
 * @status: result of the job, for the CQE
 * @polled: the ring polls (IORING_SETUP_IOPOLL)
 * @in_exec: execve() polls for the command
 * @exec_wait: exec_wait() of the task at the last look of the watch; protected by job_lock
 * @recv: the job, if it is a RECV in its session's list; protected by job_lock
 */
struct result {
	u64 completed_ns;
	s32 status;
	bool polled;
	bool in_exec;
	u32 exec_wait;
	struct kxfer_active_job *recv;
};

static struct result *result_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct result) > sizeof(cmd->pdu));
	return (struct result *)cmd->pdu;
}

static void finish(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct result *result = result_of(cmd);

	kxfer_uring_done(cmd, result->status, result->completed_ns, issue_flags);
}

KXFER_URING_IN_TASK(finish)

/**
 * kxfer_uring_complete() - have the CQE of a job made
 * @cmd: command of the job; not to be used afterwards
 * @completion: completion of the job
 *
 * Called with the session's job_lock held, in any context but hard interrupts.
 */
void kxfer_uring_complete(struct io_uring_cmd *cmd,
			  const struct kxfer_completion *completion)
{
	struct result *result = result_of(cmd);

	result->recv = NULL;
	/* A ring that polls sees the result in the request: no wake-up, no lock is needed. */
	if (result->polled) {
		kxfer_uring_done(cmd, completion->status, completion->completed_ns,
				 IO_URING_F_UNLOCKED);
		return;
	}
	result->completed_ns = completion->completed_ns;
	result->status = completion->status;
	kxfer_uring_in_task(cmd, finish);
}

/**
 * kxfer_uring_cmd_iopoll() - look for completions, for a ring that polls
 * @cmd: command in flight, or just completed
 * @batch: not used
 * @poll_flags: not used
 *
 * Called repeatedly, with the ring's lock held; may sleep. Return: 0, because io_uring
 * itself sees which commands are complete.
 */
int kxfer_uring_cmd_iopoll(struct io_uring_cmd *cmd, struct io_comp_batch *batch,
			   unsigned int poll_flags)
{
	struct kxfer_session *session = cmd->file->private_data;
	struct result *result = result_of(cmd);

	/* execve() polls until nothing is in flight: the watch need not wait. */
	if (current->in_execve && !result->in_exec) {
		WRITE_ONCE(result->in_exec, true);
		mod_delayed_work(kxfer_wq, &session->uring_watch, 0);
	}
	kxfer_reap_look(session);
	return 0;
}

/*
 * Does the task wait in execve()? Return: 0: no; else a value that stays the same as long
 * as the task waits.
 */
static u32 exec_wait(struct task_struct *task)
{
	if (!task->in_execve)
		return 0;
	if (signal_pending(task))
		return 1;
	if (!(READ_ONCE(task->__state) & TASK_INTERRUPTIBLE))
		return 0;
	return (task->nvcsw + task->nivcsw) << 1 | BIT(31);
}

/**
 * kxfer_uring_abandoned() - whether the CQE of a job will never be taken
 * @cmd: command of a job in flight; the caller holds job_lock of the job's session
 *
 * Any context. Return: true if the ring is being closed, the process is exiting, or the
 * task is in execve() or killed by one.
 */
bool kxfer_uring_abandoned(struct io_uring_cmd *cmd)
{
	struct io_ring_ctx *ring = cmd_to_io_kiocb(cmd)->ctx;
	struct task_struct *task = kxfer_uring_task(cmd);
	const struct task_struct *killer = READ_ONCE(task->signal->group_exec_task);
	struct result *result = result_of(cmd);
	u32 before = result->exec_wait;

	/* data_race: a change missed now is seen the next time. */
	result->exec_wait = data_race(exec_wait(task));
	/* data_race: as above. */
	return data_race(percpu_ref_is_dying(&ring->refs)) ||
	       READ_ONCE(task->signal->flags) & SIGNAL_GROUP_EXIT ||
	       (killer && killer != task) || READ_ONCE(result->in_exec) ||
	       (before && before == result->exec_wait);
}

/**
 * kxfer_uring_recv() - the RECV of a command
 * @cmd: command that is not complete; its session's job_lock is held
 *
 * Return: the RECV; NULL: it is not accepted yet, or has ended.
 */
struct kxfer_active_job *kxfer_uring_recv(struct io_uring_cmd *cmd)
{
	return result_of(cmd)->recv;
}

/**
 * kxfer_uring_set_recv() - note that a RECV is in its session's list from now on
 * @cmd: command by which the RECV came
 * @job: the RECV
 *
 * Called with the session's job_lock held.
 */
void kxfer_uring_set_recv(struct io_uring_cmd *cmd, struct kxfer_active_job *job)
{
	result_of(cmd)->recv = job;
}

/* io_uring wants a RECV to end, and asks again until the CQE is made. */
static void cancel(struct io_uring_cmd *cmd)
{
	if (!kxfer_job_stop_recv(cmd->file->private_data, cmd))
		schedule_timeout_uninterruptible(1);
}

/**
 * kxfer_uring_watch() - end jobs whose CQEs will never be taken
 * @work: uring_watch of a session
 */
void kxfer_uring_watch(struct work_struct *work)
{
	struct kxfer_session *session =
		container_of(to_delayed_work(work), struct kxfer_session, uring_watch);

	kxfer_delay(URING_WATCH);
	if (kxfer_job_stop_abandoned(session))
		queue_delayed_work(kxfer_wq, &session->uring_watch,
				   msecs_to_jiffies(WATCH_MS));
}

static void watch(struct kxfer_session *session)
{
	/* The job is listed before pending is read; the work reads the list after it begins. */
	smp_mb();
	if (!delayed_work_pending(&session->uring_watch))
		queue_delayed_work(kxfer_wq, &session->uring_watch,
				   msecs_to_jiffies(WATCH_MS));
}

/*
 * Post, and take the completions of what a soft provider has carried out before the post
 * returned: else each post would wake a work for them.
 */
static void post(struct kxfer_lane *lane)
{
	bool own = kxfer_cq_own(&lane->cq);

	kxfer_job_pump(lane);
	if (!own)
		return;
	kxfer_cq_poll(&lane->cq, &(struct kxfer_cq_wait) {});
	kxfer_cq_disown(&lane->cq);
}

/* A lane to post on when the plug is closed. */
struct batch {
	struct blk_plug_cb cb;
	struct kxfer_lane *lane;
};

static void post_batch(struct blk_plug_cb *cb, bool from_schedule)
{
	struct batch *batch = container_of(cb, struct batch, cb);
	struct kxfer_lane *lane = batch->lane;

	if (from_schedule)
		kxfer_job_pump(lane);
	else
		post(lane);
	kxfer_link_put(lane->link);
	kfree(batch);
}

/* Post on a lane whose link stays while this runs: at once, or at the end of a batch. */
static void post_later(struct kxfer_lane *lane)
{
	struct blk_plug_cb *cb = kxfer_try_alloc(URING_BATCH,
						 blk_check_plugged(post_batch, lane,
								   sizeof(struct batch)));
	struct batch *batch;

	if (!cb) {
		post(lane);
		return;
	}
	batch = container_of(cb, struct batch, cb);
	if (batch->lane)
		return;
	kxfer_link_ref(lane->link);
	batch->lane = lane;
}

/* Return: as kxfer_submit_accept(). */
static int accept(struct kxfer_session *session, struct io_uring_cmd *cmd,
		  const struct kxfer_job *job, bool may_sleep)
{
	struct kxfer_batch batch;
	int ret;

	if (may_sleep)
		down_read(&session->lock);
	else if (!down_read_trylock(&session->lock))
		return KXFER_WOULD_SLEEP;
	kxfer_batch_begin(&batch, session, 1, may_sleep);
	batch.uring = cmd;
	ret = kxfer_submit_accept(&batch, job);
	kxfer_batch_flush(&batch);
	if (batch.lane)
		post_later(batch.lane);
	kxfer_batch_end(&batch);
	up_read(&session->lock);
	return ret;
}

/* Refuse by a CQE: io_uring tries -EAGAIN again, and a mark ends only with the CQE. */
static int refuse(struct io_uring_cmd *cmd, unsigned int issue_flags, int error)
{
	kxfer_uring_done(cmd, error, 0, issue_flags);
	return -EIOCBQUEUED;
}

static int transfer(struct io_uring_cmd *cmd, unsigned int issue_flags,
		    const struct kxfer_job *job)
{
	struct kxfer_session *session = cmd->file->private_data;
	bool polled = issue_flags & IO_URING_F_IOPOLL;
	bool recv = job->op == KXFER_OP_RECV && !polled;
	bool by_task = !(issue_flags & IO_URING_F_UNLOCKED);
	int ret;

	*result_of(cmd) = (struct result) { .polled = polled };
	if (recv && !by_task)
		kxfer_uring_mark_cancelable(cmd, issue_flags);
	ret = accept(session, cmd, job, !(issue_flags & IO_URING_F_NONBLOCK));
	if (!ret) {
		if (recv && by_task)
			kxfer_uring_mark_cancelable(cmd, issue_flags);
		watch(session);
		return -EIOCBQUEUED;
	}
	/* Not where it may sleep, so not in io-wq. */
	if (ret == KXFER_WOULD_SLEEP)
		return -EAGAIN;
	if (ret == -EAGAIN || (recv && !by_task))
		return refuse(cmd, issue_flags, ret);
	return ret;
}

static int do_nothing(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	kxfer_stat_inc(KXFER_STAT_JOBS_SUBMITTED);
	kxfer_stat_inc(KXFER_STAT_JOBS_COMPLETED);
	/* io_uring of 6.1 goes on to poll for a command that returned 0, which it has freed. */
	if (!(issue_flags & (IO_URING_F_CQE32 | IO_URING_F_IOPOLL)))
		return 0;
	kxfer_uring_done(cmd, 0, ktime_get_ns(), issue_flags);
	return -EIOCBQUEUED;
}

static void copy_job(struct io_uring_cmd *cmd, struct kxfer_job *job)
{
	const struct kxfer_uring_job *user = kxfer_uring_payload(cmd);
	const u64 *from = (const u64 *)&user->job;
	u64 *to = (u64 *)job;
	size_t i;

	for (i = 0; i < sizeof(*job) / sizeof(u64); i++)
		to[i] = READ_ONCE(from[i]);
}

/**
 * kxfer_uring_cmd() - a command of io_uring on /dev/kxfer
 * @cmd: the command
 * @issue_flags: IO_URING_F_*
 *
 * May sleep unless IO_URING_F_NONBLOCK is set. Return: -EIOCBQUEUED: the CQE comes by
 * itself, or has come; -EAGAIN: io_uring tries again where it may sleep; else the result
 * for the CQE. What a call with KXFER_URING_F_CANCEL returns is ignored.
 */
int kxfer_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct kxfer_job job;
	int ret;

	if (issue_flags & KXFER_URING_F_CANCEL) {
		cancel(cmd);
		return -ECANCELED;
	}
	if (cmd->cmd_op != KXFER_URING_CMD_JOB)
		return -ENOTTY;
	if (!(issue_flags & IO_URING_F_UNLOCKED) && kxfer_uring_task(cmd) != current)
		return -EOPNOTSUPP;
	if (!(issue_flags & IO_URING_F_SQE128))
		return -EINVAL;
	if (cmd->flags & IORING_URING_CMD_FIXED)
		return -EOPNOTSUPP;
	copy_job(cmd, &job);
	ret = kxfer_submit_check(&job);
	if (ret)
		return ret;
	return job.op == KXFER_OP_NOP ? do_nothing(cmd, issue_flags) :
					transfer(cmd, issue_flags, &job);
}
