// SPDX-License-Identifier: GPL-2.0
/*
 * The submission ring: memory that a session shares with its process, from which ENTER accepts
 * jobs. A call needs no structure and no copy from user memory then.
 *
 * The process writes job n into slot n % entries and then sets tail to n + 1. The kernel stores in
 * head how many it has accepted. Both wrap around at 2^32.
 *
 * The kernel never trusts the ring. It reads tail, flags and deadline_ns once a call, and nothing
 * that it wrote. A tail by which more jobs are in the ring than it has slots is EINVAL. What is
 * checked and carried out is one copy of a job (kxfer_sq_copy()). A process that writes while the
 * kernel reads submits a job that is partly the old one and partly the new one, and that job is
 * checked like any other. The first look at a job, and a copy that quick.c leaves to the batch,
 * only choose the way: the batch makes and checks a copy of its own.
 *
 * Order in memory, each with its partner in the process:
 *  - Jobs are written before tail covers them: store-release of tail, and smp_load_acquire().
 *  - A job is read before its slot is written again: smp_store_release() of head, and the
 *    load-acquire of head.
 * tests/host/model/ring.pml has both pairs as litmus tests: MESSAGE and REUSE, there with the
 * process as the reader.
 *
 * One call at a time accepts jobs from the ring. Others wait for it, and no call waits for
 * completions meanwhile: what a call holds the lock for is accepting 256 jobs.
 *
 * The ring lives as long as its session, as the completion ring does (ring.c).
 *
 * Context: calls of users; may sleep.
 */
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/fault.h"
#include "base/stats.h"
#include "job/ring.h"
#include "job/sq.h"
#include "job/submit.h"
#include "node/session.h"

#define SQ_OFFSET	BIT(28)	/* for mmap(2); ring.c has the other */

static int check_sq(struct kxfer_session *session, const struct kxfer_sq_ring *cmd)
{
	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!is_power_of_2(cmd->entries) || cmd->entries > KXFER_SUBMIT_MAX || cmd->__reserved)
		return -EINVAL;
	return kxfer_ring_of(session) ? 0 : -EINVAL;
}

static int make_memory(struct kxfer_session_sq *sq)
{
	sq->bytes = PAGE_ALIGN(sizeof(*sq->shared) + sq->entries * sizeof(*sq->jobs));
	sq->shared = kxfer_try_alloc(SQ_MEMORY,
				     __vmalloc(sq->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO));
	if (!sq->shared)
		return -ENOMEM;
	sq->shared->mask = sq->entries - 1;
	sq->shared->entries = sq->entries;
	sq->jobs = (const struct kxfer_job *)(sq->shared + 1);
	return 0;
}

static struct kxfer_session_sq *make_sq(u32 entries)
{
	struct kxfer_session_sq *sq;
	int ret;

	sq = kxfer_try_alloc(SQ, kzalloc_obj(*sq, GFP_KERNEL_ACCOUNT));
	if (!sq)
		return ERR_PTR(-ENOMEM);
	mutex_init(&sq->lock);
	sq->entries = entries;
	ret = make_memory(sq);
	if (!ret)
		return sq;
	kfree(sq);
	return ERR_PTR(ret);
}

static void free_sq(struct kxfer_session_sq *sq)
{
	mutex_destroy(&sq->lock);
	vfree(sq->shared);
	kfree(sq);
}

/** kxfer_sq_create() - KXFER_SQ_RING */
int kxfer_sq_create(struct kxfer_session *session, void *arg)
{
	struct kxfer_sq_ring *cmd = arg;
	struct kxfer_session_sq *sq;
	int ret;

	ret = check_sq(session, cmd);
	if (ret)
		return ret;
	sq = make_sq(cmd->entries);
	if (IS_ERR(sq))
		return PTR_ERR(sq);
	/* A call that sees the ring sees all of it; pairs with sq_of(). */
	if (cmpxchg_release(&session->sq, NULL, sq)) {
		free_sq(sq);
		return -EEXIST;
	}
	kxfer_stat_inc(KXFER_STAT_LIVE_RINGS);
	cmd->offset = SQ_OFFSET;
	cmd->bytes = sq->bytes;
	return 0;
}

static struct kxfer_session_sq *sq_of(const struct kxfer_session *session)
{
	/* Pairs with kxfer_sq_create(). */
	return smp_load_acquire(&session->sq);
}

/**
 * kxfer_sq_lock() - begin to accept jobs
 * @session: session of the caller
 * @nr: out: jobs in the ring
 *
 * Return: the ring, locked; or ERR_PTR: -EINVAL, -EINTR, or -EAGAIN: O_NONBLOCK is set.
 */
struct kxfer_session_sq *kxfer_sq_lock(struct kxfer_session *session, u32 *nr)
{
	struct kxfer_session_sq *sq = sq_of(session);
	int ret;

	if (!sq)
		return ERR_PTR(-EINVAL);
	if (!mutex_trylock(&sq->lock)) {
		ret = kxfer_session_may_wait(session) ?: mutex_lock_killable(&sq->lock);
		if (ret)
			return ERR_PTR(ret);
	}
	/* Pairs with the process's store-release: the jobs are there. */
	*nr = smp_load_acquire(&sq->shared->tail) - sq->head;
	if (*nr <= sq->entries)
		return sq;
	mutex_unlock(&sq->lock);
	return ERR_PTR(-EINVAL);
}

/**
 * kxfer_sq_unlock() - end that
 * @sq: ring
 * @accepted: number of jobs that were accepted
 * @error: positive errno for which the job behind these was left; or 0
 */
void kxfer_sq_unlock(struct kxfer_session_sq *sq, u32 accepted, u32 error)
{
	sq->head += accepted;
	WRITE_ONCE(sq->shared->error, error);
	/* Pairs with the process's load-acquire: the jobs are copied. */
	smp_store_release(&sq->shared->head, sq->head);
	mutex_unlock(&sq->lock);
}

/** kxfer_sq_destroy() - free a ring, or NULL, that no call uses; may sleep */
void kxfer_sq_destroy(struct kxfer_session_sq *sq)
{
	if (!sq)
		return;
	free_sq(sq);
	kxfer_stat_dec(KXFER_STAT_LIVE_RINGS);
}

/** kxfer_sq_is_at() - whether a mapping is to be one of the submission ring */
bool kxfer_sq_is_at(const struct vm_area_struct *vma)
{
	return vma->vm_pgoff == SQ_OFFSET >> PAGE_SHIFT;
}

/** kxfer_sq_mmap() - map a session's submission ring; as kxfer_ring_map() */
int kxfer_sq_mmap(struct kxfer_session *session, struct vm_area_struct *vma)
{
	struct kxfer_session_sq *sq = sq_of(session);

	return sq ? kxfer_ring_map(vma, sq->shared, sq->bytes) : -EINVAL;
}
