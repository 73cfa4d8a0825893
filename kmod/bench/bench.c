// SPDX-License-Identifier: GPL-2.0
/*
 * The engine kverbs: what work requests cost without the job path above them.
 *
 * A run is a call that posts READs, WRITEs or atomics on a data lane, without jobs: the floor
 * under the job path. This file checks the call, takes the lane and returns the counts.
 * run_wr.c builds the work requests, and run.c posts them, or run_echo.c in turn with the peer.
 * On iWARP a WRITE is done when TCP has its data. A run may use a dedicated connection instead
 * (dedicated.c), where it can post messages, too (run_dedicated.c).
 *
 * The run has the lane to itself: it takes all credits of an idle lane, so no chain is
 * posted until the run gives them back. Jobs submitted meanwhile are queued and posted
 * then. (Messages of the channel need no credits and go on.) With the credits the run owns
 * the send queue entries that only chains use.
 *
 * Ends, as proofs. The run counts itself as a job of its target (if any), link and region
 * (nr_jobs, users) and as a user of the mapping. It drops these counts when all it has
 * posted has completed, or the link is DEAD: then QP and CQ are destroyed (lane.c), no device
 * reaches the memory and no completion will find the run. So
 *  - the withdrawal of the export waits for the run, and the run stops
 *    (kxfer_target_revoke());
 *  - REGION_DEL, TARGET_CLOSE and DEDICATED_CLOSE return EBUSY; the file cannot be closed
 *    during the call;
 *  - a link that fails, also because of device removal, is torn down without waiting for
 *    the run; the removal of the mapping, which comes later, does wait;
 *  - a peer that holds up posted work loses the link as with jobs: kxfer_lane_stuck()
 *    sees @exclusive and an unchanged nr_completions. So the run's sleep is bounded, too;
 *  - a responder that holds up a stopped run by completing little loses the dedicated
 *    connection (run.c). So the responder does not hold up a process that is killed.
 *
 * Context: a call; may sleep.
 */
#include <linux/capability.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "base/fault.h"
#include "bench/bench.h"
#include "bench/dedicated.h"
#include "bench/run.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/submit.h"
#include "job/target.h"
#include "link/link.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"

#define MIN_INTERVAL_PS	1000
#define MAX_INTERVAL_PS	(60 * PSEC_PER_SEC)
#define MAX_LATE_NS	(S64_MAX / 2)
#define ECHO_FLAGS	(KXFER_BENCH_F_PING | KXFER_BENCH_F_PONG)
#define BENCH_FLAGS	(KXFER_BENCH_F_IMM | KXFER_BENCH_F_NO_INLINE | KXFER_BENCH_F_MR_POOL | \
			 ECHO_FLAGS)

/* ---- checks of the request ---- */

static int check_nop(const struct kxfer_bench *cmd)
{
	return cmd->memory || cmd->nr_buckets || cmd->region || cmd->target || cmd->dedicated ||
	       cmd->interval_ps ||
	       cmd->region_offset || cmd->target_offset ||
	       cmd->length || cmd->stride || cmd->depth != 1 ? -EINVAL : 0;
}

static int check_transfer(const struct kxfer_bench *cmd)
{
	if (!cmd->length || (!cmd->stride && cmd->depth > 1))
		return -EINVAL;
	return (cmd->op == KXFER_OP_NOP || cmd->op == KXFER_OP_SEND) && cmd->target_offset ?
	       -EINVAL : 0;
}

static bool is_benched(u32 op)
{
	return op <= KXFER_OP_WRITE || op == KXFER_OP_SEND || kxfer_op_is_atomic(op);
}

/* Messages (SEND, or with immediate) need a dedicated connection. */
static int check_dedicated(const struct kxfer_bench *cmd)
{
	bool imm = cmd->flags & KXFER_BENCH_F_IMM;

	if (!cmd->dedicated)
		return imm || cmd->op == KXFER_OP_SEND ? -EOPNOTSUPP : 0;
	if (cmd->target)
		return -EINVAL;
	return imm && cmd->op != KXFER_OP_WRITE && cmd->op != KXFER_OP_SEND ? -EINVAL : 0;
}

static int check_atomic(const struct kxfer_bench *cmd)
{
	if (!kxfer_op_is_atomic(cmd->op))
		return cmd->words ? -EINVAL : 0;
	return cmd->length != KXFER_ATOMIC_BYTES ||
	       !cmd->words != (cmd->op != KXFER_OP_COMPARE_SWAP) ? -EINVAL : 0;
}

/* rdma_rw does plain READs and WRITEs only. */
static bool has_rw(const struct kxfer_bench *cmd)
{
	return cmd->op <= KXFER_OP_WRITE && !(cmd->flags & KXFER_BENCH_F_IMM);
}

/*
 * Each rdma_rw context asks for its own completion, and memory mapped for DMA must not share
 * cache lines. @at: start of the first operation, in bytes from the region's first page.
 */
static int check_rw(const struct kxfer_bench *cmd, u32 at)
{
	if (cmd->memory != KXFER_BENCH_MEMORY_RW || cmd->depth == 1)
		return 0;
	return cmd->signal != 1 || cmd->stride % L1_CACHE_BYTES ||
	       cmd->stride < at % L1_CACHE_BYTES + cmd->length ? -EINVAL : 0;
}

static int check_schedule(const struct kxfer_bench *cmd)
{
	if (!cmd->interval_ps)
		return cmd->late_ns || cmd->posted_histogram ? -EINVAL : 0;
	return cmd->interval_ps < MIN_INTERVAL_PS || cmd->interval_ps > MAX_INTERVAL_PS ||
	       cmd->late_ns > MAX_LATE_NS || cmd->late_ns < -MAX_LATE_NS ||
	       cmd->signal != 1 || cmd->nr_samples ||
	       (cmd->posted_histogram && !cmd->nr_buckets) ? -EINVAL : 0;
}

/* A round trip is one WRITE at a time, on a lane. */
static int check_echo(const struct kxfer_bench *cmd)
{
	u32 flags = cmd->flags & ECHO_FLAGS;

	if (!flags)
		return cmd->echo_offset || cmd->echo ? -EINVAL : 0;
	return flags == ECHO_FLAGS || cmd->flags & KXFER_BENCH_F_IMM || cmd->dedicated ||
	       cmd->op != KXFER_OP_WRITE || cmd->depth != 1 || cmd->interval_ps ||
	       cmd->memory > KXFER_BENCH_MEMORY_MR ? -EINVAL : 0;
}

/* False for flags, operations and combinations that only a later module may support. */
static bool is_supported(const struct kxfer_bench *cmd)
{
	if (cmd->flags & ~BENCH_FLAGS || !is_benched(cmd->op) ||
	    cmd->memory > KXFER_BENCH_MEMORY_RW ||
	    cmd->invalidate > KXFER_BENCH_INVALIDATE_REMOTE)
		return false;
	return cmd->memory != KXFER_BENCH_MEMORY_RW || has_rw(cmd);
}

static int check_bench(const struct kxfer_bench *cmd)
{
	int ret = check_dedicated(cmd);

	if (!is_supported(cmd))
		return -EOPNOTSUPP;
	if (ret)
		return ret;
	if (cmd->__reserved || check_echo(cmd) ||
	    (cmd->invalidate && cmd->memory != KXFER_BENCH_MEMORY_MR_EACH))
		return -EINVAL;
	if (cmd->flags & KXFER_BENCH_F_MR_POOL && cmd->memory != KXFER_BENCH_MEMORY_MR_EACH)
		return -EINVAL;
	if (cmd->flags & KXFER_BENCH_F_NO_INLINE && cmd->op != KXFER_OP_WRITE)
		return -EINVAL;
	if (!cmd->depth || cmd->depth > KXFER_LANE_JOB_WRS || !cmd->list ||
	    cmd->list > cmd->depth || !cmd->signal ||
	    cmd->signal > cmd->depth + 1 - cmd->list)
		return -EINVAL;
	if (!cmd->count || !cmd->time_limit_ms ||
	    cmd->time_limit_ms > KXFER_BENCH_MAX_TIME_MS ||
	    cmd->nr_samples > KXFER_BENCH_MAX_SAMPLES ||
	    (!cmd->samples != !cmd->nr_samples) || (cmd->nr_samples && cmd->depth != 1))
		return -EINVAL;
	if ((cmd->nr_buckets && cmd->nr_buckets != KXFER_BENCH_NR_BUCKETS) ||
	    !cmd->nr_buckets != !cmd->histogram || check_atomic(cmd) || check_schedule(cmd))
		return -EINVAL;
	return cmd->op == KXFER_OP_NOP && !kxfer_run_only_registers(cmd) ? check_nop(cmd) :
								  check_transfer(cmd);
}

/* Return: 0, -EOVERFLOW, or -ERANGE: operations do not all lie within @limit */
static int check_range(const struct kxfer_run *run, u64 offset, u64 limit)
{
	const struct kxfer_bench *cmd = run->cmd;
	u64 end;

	if (check_mul_overflow((u64)(run->nr_slots - 1), (u64)cmd->stride, &end) ||
	    check_add_overflow(end, (u64)cmd->length, &end) ||
	    check_add_overflow(end, offset, &end))
		return -EOVERFLOW;
	return end > limit ? -ERANGE : 0;
}

/* Does the target permit the run? Sets @nr_slots and @remote. Return: 0 or -errno */
static int check_target(struct kxfer_run *run)
{
	const struct kxfer_target *target = run->target;
	u32 op = run->cmd->op;

	run->nr_slots = run->cmd->depth;
	run->remote = target->keys;
	run->nr_remote = target->nr_keys;
	if (kxfer_run_only_registers(run->cmd))
		return 0;
	if (kxfer_op_is_atomic(op) && !target->link->dev->atomic)
		return -EOPNOTSUPP;
	if (!(target->rights & kxfer_op_right(op)))
		return -EACCES;
	return check_range(run, run->cmd->target_offset, target->length);
}

/* Does the dedicated connection permit the run? Return: 0 or -errno */
static int check_connection(struct kxfer_run *run)
{
	int ret = kxfer_run_check_dedicated(run);

	if (ret || kxfer_run_only_registers(run->cmd))
		return ret;
	return check_range(run, run->cmd->target_offset, run->remote->length);
}

static int check_region(struct kxfer_run *run)
{
	const struct kxfer_memory *memory = run->region->memory;

	if (!kxfer_run_only_registers(run->cmd) && kxfer_op_has_sink(run->cmd->op) &&
	    !memory->writable)
		return -EACCES;
	/* Some kinds of memory and round trips need the pages. */
	if (memory->dmabuf)
		return -EOPNOTSUPP;
	return check_range(run, run->cmd->region_offset, memory->length) ?:
	       kxfer_run_echo_find(run) ?:
	       check_rw(run->cmd, memory->offset + run->cmd->region_offset);
}

/* Called with the session's lock held for reading. */
static int find_objects(struct kxfer_session *session, struct kxfer_run *run)
{
	const struct kxfer_bench *cmd = run->cmd;
	int ret;

	run->region = xa_load(&session->regions, cmd->region);
	if (cmd->dedicated)
		run->dedicated = xa_load(&session->engine_objects, cmd->dedicated);
	else
		run->target = xa_load(&session->targets, cmd->target);
	if (!run->region || (!run->dedicated && !run->target))
		return -ENOENT;
	run->link = run->dedicated ? run->dedicated->link : run->target->link;
	ret = kxfer_run_check_invalidate(run);
	if (!ret)
		ret = run->dedicated ? check_connection(run) : check_target(run);
	return ret ?: check_region(run);
}

/* Find the objects that the call names, and count the run as a job of them. */
static int bind(struct kxfer_session *session, struct kxfer_run *run)
{
	int ret;

	down_read(&session->lock);
	ret = find_objects(session, run);
	if (!ret) {
		if (run->target) {
			kref_get(&run->target->ref);
			atomic_inc(&run->target->nr_jobs);
		}
		atomic_inc(&run->link->nr_calls);
		atomic_inc(&run->region->users);
	}
	up_read(&session->lock);
	return ret;
}

static void unbind(struct kxfer_run *run)
{
	struct kxfer_target *target = run->target;

	atomic_dec(&run->region->users);
	/* DEDICATED_CLOSE may end the connection after this. */
	atomic_dec(&run->link->nr_calls);
	if (!target)
		return;
	if (atomic_dec_and_test(&target->nr_jobs))
		wake_up_all(&target->link->wait);
	kxfer_target_put(target);
}

/* ---- the lane ---- */

/* The session's flow stays on the lane, as it does for a job. */
static int take_lane_of_target(struct kxfer_run *run)
{
	struct kxfer_flow *flow = run->target->flow;
	struct kxfer_lane *lane;
	int ret = 0;

	local_bh_disable();
	lane = kxfer_flow_lock_for(flow, run->cmd->length);
	if (run->target->revoked) {
		ret = -EKEYREVOKED;
	} else if (!lane->open || !kxfer_link_is_live(lane->link)) {
		ret = kxfer_link_job_error(lane->link);
	} else if (lane->nr_queued || lane->nr_posted ||
		   !kxfer_credits_take(&lane->credits, lane->credits.max)) {
		ret = -EBUSY;
	} else {
		kxfer_run_have_lane_locked(lane);
		flow->nr_jobs++;
		run->lane = lane;
	}
	spin_unlock(&lane->lock);
	local_bh_enable();
	return ret;
}

static void give_lane_of_target(struct kxfer_run *run)
{
	struct kxfer_flow *flow = run->target->flow;
	struct kxfer_lane *lane = run->lane;

	spin_lock_bh(&lane->lock);
	kxfer_run_leave_lane_locked(lane);
	flow->nr_jobs--;
	kxfer_flow_wake(flow);
	if (lane->iwarp.sink.mr && run->cmd->op == KXFER_OP_WRITE) {
		run->target->unplaced = true;
		flow->unplaced = true;
	}
	WARN_ON_ONCE(!kxfer_credits_give(&lane->credits, lane->credits.max));
	spin_unlock_bh(&lane->lock);
	kxfer_job_pump(lane);
}

static int take_lane(struct kxfer_run *run)
{
	return run->dedicated ? kxfer_run_take_dedicated(run) : take_lane_of_target(run);
}

static void give_lane(struct kxfer_run *run)
{
	if (run->dedicated)
		kxfer_dedicated_give(run->dedicated);
	else
		give_lane_of_target(run);
}

/* ---- the call ---- */

static int run_phases(struct kxfer_run *run, struct kxfer_bench *cmd)
{
	s64 ns;

	run->signal = cmd->signal;
	ns = kxfer_run_phase(run, cmd->warm_up, 0, false);
	if (ns >= 0)
		ns = kxfer_run_phase(run, cmd->count, cmd->nr_samples, true);
	if (ns < 0)
		return ns;
	if (run->over < 0)
		return run->over;
	cmd->operations = run->done - min_t(u32, run->done, run->echo.lost);
	cmd->echo = run->echo.in ? run->echo.number : 0;
	cmd->nr_wr = kxfer_run_longest(run);
	cmd->total_ns = ns;
	cmd->late_ns = run->late_ns;
	return 0;
}

/* Sync only what operations move. The bytes between belong to the process (region.c). */
static void sync_slots(const struct kxfer_run *run,
		       void (*sync)(struct kxfer_mapping *mapping, u64 offset, u64 bytes))
{
	const struct kxfer_bench *cmd = run->cmd;
	u32 slot;

	if (!run->mapping)
		return;
	if (cmd->stride <= cmd->length) {
		sync(run->mapping, cmd->region_offset, kxfer_run_span(run));
		return;
	}
	for (slot = 0; slot < run->nr_slots; slot++)
		sync(run->mapping, cmd->region_offset + slot * cmd->stride, cmd->length);
}

/* The run has its lane. */
static int run_on_lane(struct kxfer_run *run, struct kxfer_bench *cmd)
{
	int ret = kxfer_run_build(run);

	if (!ret) {
		sync_slots(run, kxfer_mapping_to_device);
		ret = run_phases(run, cmd);
		if (kxfer_op_has_sink(cmd->op))
			sync_slots(run, kxfer_mapping_to_cpu);
	}
	kxfer_run_unbuild(run);
	return ret;
}

/*
 * A region has one mapping per device for all its uses (region.c), but rdma_rw maps the memory
 * itself. So on a device with real DMA there must be no other mapping of the region.
 * (A job submitted during the run maps it nevertheless, as the owner of both asked for. A
 * kernel with DMA_API_DEBUG then logs a line.) Return: 0 or -errno
 */
static int get_mapping(struct kxfer_run *run)
{
	struct kxfer_device *dev = run->link->dev;
	struct kxfer_mapping *mapping;
	bool virtual;

	if (run->cmd->memory != KXFER_BENCH_MEMORY_RW) {
		mapping = kxfer_mapping_get(run->region, dev);
		run->mapping = IS_ERR(mapping) ? NULL : mapping;
		return PTR_ERR_OR_ZERO(mapping);
	}
	mapping = kxfer_mapping_find(run->region, dev);
	if (!mapping)
		return 0;
	/* The mapping holds the device. */
	virtual = ib_uses_virt_dma(dev->ibdev);
	kxfer_mapping_put(mapping, 1);
	return virtual ? 0 : -EBUSY;
}

static int run_on_link(struct kxfer_session *session, struct kxfer_run *run,
		       struct kxfer_bench *cmd)
{
	int ret;

	ret = bind(session, run);
	if (ret)
		return ret;
	ret = get_mapping(run) ?: take_lane(run);
	if (!ret) {
		ret = run_on_lane(run, cmd);
		kxfer_delay(BENCH_END);
		give_lane(run);
	}
	if (run->mapping)
		kxfer_mapping_put(run->mapping, 1);
	unbind(run);
	return ret;
}

/* Return: 0, -ENOMEM or -EFAULT */
static int take_words(struct kxfer_run *run, const struct kxfer_bench *cmd)
{
	if (!cmd->words)
		return 0;
	run->words = kxfer_try_alloc(BENCH_WORDS, kvcalloc(cmd->depth, sizeof(*run->words),
							   GFP_KERNEL_ACCOUNT));
	if (!run->words)
		return -ENOMEM;
	return copy_from_user(run->words, u64_to_user_ptr(cmd->words),
			      cmd->depth * sizeof(*run->words)) ? -EFAULT : 0;
}

/* Return: 0 or -ENOMEM */
static int make_schedule(struct kxfer_run *run, const struct kxfer_bench *cmd)
{
	if (!cmd->interval_ps)
		return 0;
	run->due = kxfer_try_alloc(BENCH_SCHEDULE,
				   kvcalloc(cmd->depth, sizeof(*run->due), GFP_KERNEL_ACCOUNT));
	if (!run->due)
		return -ENOMEM;
	if (!cmd->posted_histogram)
		return 0;
	run->posted_histogram = kxfer_try_alloc(BENCH_SCHEDULE,
						kvcalloc(cmd->nr_buckets,
							 sizeof(*run->posted_histogram),
							 GFP_KERNEL_ACCOUNT));
	return run->posted_histogram ? 0 : -ENOMEM;
}

/* Allocate samples and histogram. Return: 0 or -ENOMEM */
static int make_counts(struct kxfer_run *run, const struct kxfer_bench *cmd)
{
	if (cmd->nr_samples) {
		run->samples = kxfer_try_alloc(BENCH_SAMPLES, kvmalloc_array(cmd->nr_samples,
									     sizeof(*run->samples),
									     GFP_KERNEL_ACCOUNT));
		if (!run->samples)
			return -ENOMEM;
	}
	if (!cmd->nr_buckets)
		return 0;
	run->posted_ns = kvcalloc(KXFER_LANE_JOB_WRS, sizeof(*run->posted_ns),
				  GFP_KERNEL_ACCOUNT);
	run->histogram = kxfer_try_alloc(BENCH_HISTOGRAM,
					 kvcalloc(cmd->nr_buckets, sizeof(*run->histogram),
						  GFP_KERNEL_ACCOUNT));
	return run->posted_ns && run->histogram ? 0 : -ENOMEM;
}

/* Return: 0 or -EFAULT */
static int store_counts(const struct kxfer_run *run, const struct kxfer_bench *cmd)
{
	u32 __user *samples = u64_to_user_ptr(cmd->samples);
	u32 __user *histogram = u64_to_user_ptr(cmd->histogram);
	u32 __user *posted = u64_to_user_ptr(cmd->posted_histogram);
	u64 __user *words = u64_to_user_ptr(cmd->words);

	if (run->posted_histogram &&
	    copy_to_user(posted, run->posted_histogram, cmd->nr_buckets * sizeof(*posted)))
		return -EFAULT;
	if (run->words && copy_to_user(words, run->words, cmd->depth * sizeof(*words)))
		return -EFAULT;
	if (copy_to_user(samples, run->samples, run->nr_samples * sizeof(*samples)) ||
	    copy_to_user(histogram, run->histogram, cmd->nr_buckets * sizeof(*histogram)))
		return -EFAULT;
	return 0;
}

static int run_and_store(struct kxfer_session *session, struct kxfer_run *run,
			 struct kxfer_bench *cmd)
{
	int ret;

	ret = make_counts(run, cmd) ?: make_schedule(run, cmd) ?: take_words(run, cmd);
	if (ret)
		return ret;
	run->cmd = cmd;
	run->cqe.done = kxfer_run_operation_done;
	run->deadline_ns = ktime_get_ns() + (u64)cmd->time_limit_ms * NSEC_PER_MSEC;
	ret = cmd->op == KXFER_OP_NOP && !kxfer_run_only_registers(cmd) ?
	      run_phases(run, cmd) : run_on_link(session, run, cmd);
	if (!ret)
		ret = store_counts(run, cmd);
	cmd->nr_samples = run->nr_samples;
	return ret;
}

static void free_run(struct kxfer_run *run)
{
	kvfree(run->samples);
	kvfree(run->histogram);
	kvfree(run->posted_ns);
	kvfree(run->posted_histogram);
	kvfree(run->due);
	kvfree(run->words);
	kfree(run);
}

/* Fault in a buffer of results. This overwrites bytes of it. */
static bool writable(u64 to, u32 nr)
{
	return !fault_in_writeable(u64_to_user_ptr(to), (size_t)nr * sizeof(u32));
}

/** kxfer_bench_run() - KXFER_BENCH */
int kxfer_bench_run(struct kxfer_session *session, void *arg)
{
	struct kxfer_bench *cmd = arg;
	struct kxfer_run *run;
	int ret;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	ret = check_bench(cmd);
	if (ret)
		return ret;
	if (!writable(cmd->samples, cmd->nr_samples) ||
	    !writable(cmd->histogram, cmd->nr_buckets) ||
	    (cmd->posted_histogram && !writable(cmd->posted_histogram, cmd->nr_buckets)))
		return -EFAULT;
	run = kxfer_try_alloc(BENCH, kzalloc_obj(*run, GFP_KERNEL_ACCOUNT));
	if (!run)
		return -ENOMEM;
	ret = run_and_store(session, run, cmd);
	free_run(run);
	return ret;
}
