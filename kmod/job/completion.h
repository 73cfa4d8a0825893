/* SPDX-License-Identifier: GPL-2.0 */
/* The end of jobs. See completion.c. */
#ifndef KXFER_COMPLETION_H
#define KXFER_COMPLETION_H

#include <linux/types.h>

struct kxfer_active_job;
struct kxfer_job_list;
struct kxfer_session;
struct kxfer_target;

void kxfer_complete_target(struct kxfer_target *target, int nr);
void kxfer_complete_places(struct kxfer_session *session, u32 ended, u32 nr);
void kxfer_complete_recvs_locked(struct kxfer_session *session, struct kxfer_job_list *recvs,
				 u64 now_ns);
void kxfer_complete_all(struct kxfer_job_list *jobs, int status, u64 now_ns);
void kxfer_complete_all_bh(struct kxfer_job_list *jobs, int status, u64 now_ns);
void kxfer_complete(struct kxfer_active_job *job, int status, u64 now_ns);

#endif /* KXFER_COMPLETION_H */
