/* SPDX-License-Identifier: GPL-2.0 */
/* The completion ring of a session. See ring.c. */
#ifndef KXFER_RING_H
#define KXFER_RING_H

#include <linux/kxfer.h>
#include <linux/types.h>

struct eventfd_ctx;
struct kxfer_session;
struct vm_area_struct;

/**
 * struct kxfer_session_ring - the completion ring of a session
 * @shared: memory that the reader has mapped; @bytes of vmalloc memory
 * @slots: array of completions in @shared
 * @entries: number of @slots; a power of two
 * @published: completions that the tail in @shared covers; that tail is for the reader only
 * @bytes: length of @shared; whole pages
 * @eventfd: eventfd to signal for completions, or NULL
 */
struct kxfer_session_ring {
	struct kxfer_ring *shared;
	struct kxfer_completion *slots;
	u32 entries;
	u32 published;
	u64 bytes;
	struct eventfd_ctx *eventfd;
};

int kxfer_ring_create(struct kxfer_session *session, void *arg);
struct kxfer_session_ring *kxfer_ring_of(struct kxfer_session *session);
void kxfer_ring_destroy(struct kxfer_session_ring *ring);
int kxfer_ring_map(struct vm_area_struct *vma, void *shared, u64 bytes);
int kxfer_ring_mmap(struct kxfer_session *session, struct vm_area_struct *vma);
void kxfer_ring_publish(struct kxfer_session *session);
void kxfer_ring_look(struct kxfer_session *session);
void kxfer_ring_look_locked(struct kxfer_session *session);

/*
 * A call has seen in nr_done and nr_jobs, without job_lock, that completions came. What the process
 * reads in the ring after the call covers them.
 */
static inline void kxfer_ring_waited(void)
{
	/* Pairs with kxfer_complete_places(). */
	smp_rmb();
}

#endif /* KXFER_RING_H */
