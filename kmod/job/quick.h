/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs that go straight to their lane, and are a chain. See quick.c and quick_end.c. */
#ifndef KXFER_QUICK_H
#define KXFER_QUICK_H

#include <linux/types.h>

struct kxfer_chain;
struct kxfer_job_record;
struct kxfer_lane;
struct kxfer_session;
struct kxfer_session_sq;
struct kxfer_submit;

bool kxfer_quick_submit(struct kxfer_session *session, struct kxfer_submit *cmd,
			const struct kxfer_session_sq *sq);

/* quick_end.c */
struct kxfer_chain *kxfer_quick_end(struct kxfer_lane *lane, struct kxfer_chain *chain, int status,
				    u64 now_ns);
void kxfer_quick_fail(struct kxfer_lane *lane, int error);
struct kxfer_lane *kxfer_quick_lane(const struct kxfer_session *session);
u32 kxfer_quick_on(const struct kxfer_session *session, const struct kxfer_lane *lane,
		   bool *withdrawn);
u32 kxfer_quick_count(const struct kxfer_session *session, bool all, u64 user_data);
u32 kxfer_quick_records(const struct kxfer_session *session, struct kxfer_job_record *records,
			u32 nr);
void kxfer_quick_give_up(struct kxfer_session *session);

#endif /* KXFER_QUICK_H */
