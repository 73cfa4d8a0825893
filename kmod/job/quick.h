/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs that go straight to their lane. See quick.c. */
#ifndef KXFER_QUICK_H
#define KXFER_QUICK_H

#include <linux/types.h>

struct kxfer_job;
struct kxfer_session;
struct kxfer_submit;

int kxfer_quick_submit(struct kxfer_session *session, struct kxfer_submit *cmd);

#endif /* KXFER_QUICK_H */
