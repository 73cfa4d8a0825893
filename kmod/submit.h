/* SPDX-License-Identifier: GPL-2.0 */
/* Where jobs come from. See submit.c. */
#ifndef KXFER_SUBMIT_H
#define KXFER_SUBMIT_H

struct kxfer_session;

#define KXFER_SUBMIT_MAX	256	/* jobs of one SUBMIT */

int kxfer_job_submit(struct kxfer_session *session, void *arg);

#endif /* KXFER_SUBMIT_H */
