/* SPDX-License-Identifier: GPL-2.0 */
/* Where jobs come from. See submit.c. */
#ifndef KXFER_SUBMIT_H
#define KXFER_SUBMIT_H

#include <linux/types.h>

struct kxfer_batch;
struct kxfer_job;
struct kxfer_session;

#define KXFER_SUBMIT_MAX	256	/* jobs of one SUBMIT */
#define KXFER_WOULD_SLEEP	1	/* of kxfer_job_accept(): to be tried where it may */

int kxfer_job_check(const struct kxfer_job *user);
int kxfer_job_accept(struct kxfer_batch *batch, const struct kxfer_job *user);
int kxfer_job_submit(struct kxfer_session *session, void *arg);

#endif /* KXFER_SUBMIT_H */
