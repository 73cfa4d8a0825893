/* SPDX-License-Identifier: GPL-2.0 */
/* Submission of jobs. See submit.c. */
#ifndef KXFER_SUBMIT_H
#define KXFER_SUBMIT_H

#include <linux/types.h>

struct kxfer_active_job;
struct kxfer_batch;
struct kxfer_cq;
struct kxfer_flow;
struct kxfer_job;
struct kxfer_session;
struct kxfer_submit;

#define KXFER_SUBMIT_MAX	256	/* jobs in one SUBMIT */
#define KXFER_WOULD_SLEEP	1	/* of kxfer_submit_accept(): retry where it may sleep */

int kxfer_submit_plan_again(struct kxfer_active_job *job);
int kxfer_submit_check(const struct kxfer_job *user);
int kxfer_submit_accept(struct kxfer_batch *batch, const struct kxfer_job *user);
struct kxfer_cq *kxfer_submit_own(struct kxfer_flow *flow, const struct kxfer_submit *cmd);
void kxfer_submit_poll(struct kxfer_session *session, struct kxfer_cq *cq,
		       const struct kxfer_submit *cmd);
int kxfer_submit(struct kxfer_session *session, void *arg);
int kxfer_submit_enter(struct kxfer_session *session, void *arg);

#endif /* KXFER_SUBMIT_H */
