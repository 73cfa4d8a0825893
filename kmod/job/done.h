/* SPDX-License-Identifier: GPL-2.0 */
/* Completions of a session until they are taken. See done.c. */
#ifndef KXFER_DONE_H
#define KXFER_DONE_H

#include <linux/gfp.h>
#include <linux/kxfer.h>

#include "node/session.h"

/*
 * The place of a session's next completion. Called with job_lock held, once for each job that
 * ends and that was accepted while there was room for it; the caller counts it in nr_done.
 */
static inline struct kxfer_completion *kxfer_done_next(struct kxfer_session *session)
{
	return &session->done[session->done_tail++ & (session->done_entries - 1)];
}

/* A completion that is not reaped; @i: below nr_done, 0: the first. With job_lock held. */
static inline const struct kxfer_completion *kxfer_done_at(const struct kxfer_session *session,
							   u32 i)
{
	return &session->done[(session->done_tail - session->nr_done + i) &
			      (session->done_entries - 1)];
}

u32 kxfer_done_room(struct kxfer_session *session, u32 want);
bool kxfer_done_has_room(struct kxfer_session *session);
int kxfer_done_grow(struct kxfer_session *session, u32 want, gfp_t gfp);
void kxfer_done_end(struct kxfer_session *session);

#endif /* KXFER_DONE_H */
