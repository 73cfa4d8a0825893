/* SPDX-License-Identifier: GPL-2.0 */
/* The submission ring of a session. See sq.c. */
#ifndef KXFER_SQ_H
#define KXFER_SQ_H

#include <linux/compiler.h>
#include <linux/kxfer.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/types.h>

struct kxfer_session;
struct vm_area_struct;

/**
 * struct kxfer_session_sq - the submission ring of a session
 * @lock: held while jobs are accepted from the ring
 * @shared: memory that the process has mapped; @bytes of vmalloc memory
 * @jobs: array of jobs in @shared, which the process may change at any time
 * @entries: number of @jobs; a power of two
 * @head: jobs accepted; the one in @shared is for the process only
 * @bytes: length of @shared; whole pages
 */
struct kxfer_session_sq {
	struct mutex lock;	/* of @head and what accepts jobs */
	struct kxfer_sq *shared;
	const struct kxfer_job *jobs;
	u32 entries;
	u32 head;
	u64 bytes;
};

/* Job @i behind those that were accepted, in shared memory. Called with the ring's lock held. */
static inline const struct kxfer_job *kxfer_sq_at(const struct kxfer_session_sq *sq, u32 i)
{
	return &sq->jobs[(sq->head + i) & (sq->entries - 1)];
}

/* Whether the @nr jobs from there on are side by side. */
static inline bool kxfer_sq_is_row(const struct kxfer_session_sq *sq, u32 i, u32 nr)
{
	return ((sq->head + i) & (sq->entries - 1)) + nr <= sq->entries;
}

/*
 * Copy @nr such jobs, a constant. The copy is complete before anything of it is used, so nothing
 * is read from shared memory again.
 */
static __always_inline void kxfer_sq_copy(const struct kxfer_session_sq *sq, u32 i, u32 nr,
					  struct kxfer_job *to)
{
	memcpy(to, kxfer_sq_at(sq, i), nr * sizeof(*to));
	barrier_data(to);
}

int kxfer_sq_create(struct kxfer_session *session, void *arg);
struct kxfer_session_sq *kxfer_sq_lock(struct kxfer_session *session, u32 *nr);
void kxfer_sq_unlock(struct kxfer_session_sq *sq, u32 accepted, u32 error);
void kxfer_sq_destroy(struct kxfer_session_sq *sq);
bool kxfer_sq_is_at(const struct vm_area_struct *vma);
int kxfer_sq_mmap(struct kxfer_session *session, struct vm_area_struct *vma);

#endif /* KXFER_SQ_H */
