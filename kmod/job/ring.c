// SPDX-License-Identifier: GPL-2.0
/*
 * The completion ring: memory that a session shares with its process, in which
 * completions land, so that taking them needs no call.
 *
 * The kernel writes completion n into slot n % entries and then sets tail to n + 1.
 * The reader stores in head how many it has read. Both only grow, and wrap around at
 * 2^32.
 *
 * There is always room, as done.c shows: the slots are the places of the session's completions,
 * and nr_done counts those that are unread as far as the kernel knows. A look at head
 * (kxfer_ring_look_locked()) only decreases nr_done. The reader may write anything anywhere in
 * the ring. The kernel reads only head there, and ignores a head by which more than nr_done
 * completions are unread. So a wrong head spoils what its own process reads, or leaves that
 * process without room (EAGAIN) until the head is put right.
 *
 * Order in memory, each with its partner in the reader:
 *  - Completions are written before tail covers them, once for all that end together:
 *    smp_store_release() of tail, and the reader's load-acquire.
 *  - A completion is read before its slot is written again: the reader's store-release
 *    of head, and smp_load_acquire() of head. The context that sees the room holds
 *    job_lock, and so does the one that writes the slot later.
 *  - Either the reader sees the new tail, or the kernel sees the new head and signals
 *    the eventfd: a full barrier on both sides, between the store of the one and the
 *    load of the other (see tell()).
 *  - A call that waited returns only after the completions that it saw in nr_done can be seen in
 *    the ring, and so does one that saw in nr_jobs that none is in flight: both are stored with
 *    release after tail, and kxfer_ring_waited() orders these loads before the process's load of
 *    tail.
 *
 * tests/host/model/ring.pml has each pair as a litmus test, with and without the barrier.
 *
 * The ring lives as long as its session. A mapping of the ring keeps the file open, and
 * thus the session. The mapped pages also have references of their own.
 *
 * Context: the ring is made and mapped by calls of users, which may sleep. All else but
 * its end runs under job_lock, possibly in a softirq.
 */
#include <linux/eventfd.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/stats.h"
#include "job/ring.h"
#include "node/session.h"

#define RING_OFFSET	0	/* for mmap(2); sq.c has the other */

static int check_ring(const struct kxfer_cq_ring *cmd)
{
	if (cmd->flags & ~KXFER_CQ_RING_F_ALL)
		return -EOPNOTSUPP;
	if (!is_power_of_2(cmd->entries) || cmd->entries > KXFER_MAX_JOBS)
		return -EINVAL;
	return cmd->eventfd && !(cmd->flags & KXFER_CQ_RING_F_EVENTFD) ? -EINVAL : 0;
}

static int make_memory(struct kxfer_session_ring *ring)
{
	ring->bytes = PAGE_ALIGN(sizeof(*ring->shared) +
				 ring->entries * sizeof(*ring->slots));
	ring->shared = kxfer_try_alloc(RING_MEMORY,
				       __vmalloc(ring->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO));
	if (!ring->shared)
		return -ENOMEM;
	ring->shared->mask = ring->entries - 1;
	ring->shared->entries = ring->entries;
	ring->slots = (struct kxfer_completion *)(ring->shared + 1);
	return 0;
}

static int take_eventfd(struct kxfer_session_ring *ring, const struct kxfer_cq_ring *cmd)
{
	struct eventfd_ctx *eventfd;

	if (!(cmd->flags & KXFER_CQ_RING_F_EVENTFD))
		return 0;
	eventfd = kxfer_try_ptr(RING_EVENTFD, eventfd_ctx_fdget(cmd->eventfd));
	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	ring->eventfd = eventfd;
	return 0;
}

static void free_ring(struct kxfer_session_ring *ring)
{
	if (ring->eventfd)
		eventfd_ctx_put(ring->eventfd);
	vfree(ring->shared);
	kfree(ring);
}

static struct kxfer_session_ring *make_ring(const struct kxfer_cq_ring *cmd)
{
	struct kxfer_session_ring *ring;
	int ret;

	ring = kxfer_try_alloc(RING, kzalloc_obj(*ring, GFP_KERNEL_ACCOUNT));
	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->entries = cmd->entries;
	ret = make_memory(ring) ?: take_eventfd(ring, cmd);
	if (!ret)
		return ring;
	free_ring(ring);
	return ERR_PTR(ret);
}

/*
 * From here on all completions go to the ring, for no job is in flight. The session's
 * lock keeps out SUBMITs that are accepting jobs.
 */
static int give_ring(struct kxfer_session *session, struct kxfer_session_ring *ring)
{
	void *unused = NULL;
	int ret = 0;

	down_write(&session->lock);
	spin_lock_bh(&session->job_lock);
	if (session->ring) {
		ret = -EEXIST;
	} else if (session->nr_jobs || session->nr_done) {
		ret = -EBUSY;
	} else {
		unused = session->done;
		session->done = ring->slots;
		session->done_entries = ring->entries;
		session->done_tail = 0;
		session->max_jobs = ring->entries;
		/* A reader without a lock sees a complete ring. */
		smp_store_release(&session->ring, ring);
	}
	spin_unlock_bh(&session->job_lock);
	up_write(&session->lock);
	kvfree(unused);
	return ret;
}

/** kxfer_ring_create() - KXFER_CQ_RING */
int kxfer_ring_create(struct kxfer_session *session, void *arg)
{
	struct kxfer_cq_ring *cmd = arg;
	struct kxfer_session_ring *ring;
	int ret;

	ret = check_ring(cmd);
	if (ret)
		return ret;
	ring = make_ring(cmd);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	ret = give_ring(session, ring);
	if (ret) {
		free_ring(ring);
		return ret;
	}
	kxfer_stat_inc(KXFER_STAT_LIVE_RINGS);
	cmd->offset = RING_OFFSET;
	cmd->bytes = ring->bytes;
	return 0;
}

/** kxfer_ring_of() - the ring of a session, or NULL; needs no lock */
struct kxfer_session_ring *kxfer_ring_of(struct kxfer_session *session)
{
	/* Pairs with give_ring(). */
	return smp_load_acquire(&session->ring);
}

/** kxfer_ring_destroy() - free a ring, or NULL, once no job is in flight; may sleep */
void kxfer_ring_destroy(struct kxfer_session_ring *ring)
{
	if (!ring)
		return;
	kxfer_delay(RING_END);
	free_ring(ring);
	kxfer_stat_dec(KXFER_STAT_LIVE_RINGS);
}

/**
 * kxfer_ring_map() - map memory that a session shares with its process
 * @vma: new mapping; the caller holds its mmap_lock, which nests inside the session's locks
 * @shared: vmalloc memory
 * @bytes: length of @shared; whole pages
 *
 * Maps all of it, shared, never executable. A child does not inherit the mapping, because that
 * would keep the session alive. Return: 0, -EINVAL, -EACCES or -ENOMEM; the caller undoes what is
 * mapped then.
 */
int kxfer_ring_map(struct vm_area_struct *vma, void *shared, u64 bytes)
{
	unsigned long offset;
	int ret = 0;

	/* VM_SHARED is missing where the file was opened for reading only. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_end - vma->vm_start != bytes)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	kxfer_vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTCOPY, VM_MAYEXEC);
	for (offset = 0; !ret && offset < bytes; offset += PAGE_SIZE)
		ret = kxfer_try(RING_MAP, vm_insert_page(vma, vma->vm_start + offset,
							 vmalloc_to_page(shared + offset)));
	return ret;
}

/** kxfer_ring_mmap() - map a session's completion ring, if that is at the offset of @vma */
int kxfer_ring_mmap(struct kxfer_session *session, struct vm_area_struct *vma)
{
	struct kxfer_session_ring *ring = kxfer_ring_of(session);

	if (!ring || vma->vm_pgoff != RING_OFFSET >> PAGE_SHIFT)
		return -EINVAL;
	return kxfer_ring_map(vma, ring->shared, ring->bytes);
}

/*
 * A reader that is about to sleep has stored head, passed a full barrier, and then found
 * tail equal to head. If it has not seen the new tail, then its head is seen here: all
 * unread completions are new. If not all are new, the reader has seen the new tail, or
 * has yet to look at tail for the last time, and needs no signal.
 */
static void tell(struct kxfer_session_ring *ring, u32 nr_new)
{
	/* The store of tail before the load of head; pairs with the reader's. */
	smp_mb();
	if (ring->published - READ_ONCE(ring->shared->head) == nr_new)
		kxfer_eventfd_signal(ring->eventfd);
}

/**
 * kxfer_ring_publish() - show the reader what was added
 * @session: session with a ring, under the same hold of job_lock; something was added
 */
void kxfer_ring_publish(struct kxfer_session *session)
{
	struct kxfer_session_ring *ring = session->ring;
	u32 nr_new = session->done_tail - ring->published;

	ring->published = session->done_tail;
	/* Completions before tail; pairs with the reader's load-acquire of tail. */
	smp_store_release(&ring->shared->tail, ring->published);
	if (ring->eventfd)
		tell(ring, nr_new);
}

/**
 * kxfer_ring_look_locked() - see how many completions are unread now
 * @session: session with a ring or without; the caller holds its job_lock
 */
void kxfer_ring_look_locked(struct kxfer_session *session)
{
	struct kxfer_session_ring *ring = session->ring;
	u32 unread;

	if (!ring)
		return;
	/* Pairs with the reader's store-release of head: it is done with those slots. */
	unread = session->done_tail - smp_load_acquire(&ring->shared->head);
	if (unread < session->nr_done)
		WRITE_ONCE(session->nr_done, unread);
}

/**
 * kxfer_ring_look() - as kxfer_ring_look_locked()
 * @session: session with a ring or without
 *
 * Any context but hard interrupts.
 */
void kxfer_ring_look(struct kxfer_session *session)
{
	spin_lock_bh(&session->job_lock);
	kxfer_ring_look_locked(session);
	spin_unlock_bh(&session->job_lock);
}
