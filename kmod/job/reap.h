/* SPDX-License-Identifier: GPL-2.0 */
/* Completions of a session: waiting for them and taking them. See reap.c. */
#ifndef KXFER_REAP_H
#define KXFER_REAP_H

#include <linux/types.h>

struct kxfer_session;

#define KXFER_REAP_MAX		4096	/* completions that one call takes */
#define KXFER_LOOK_PROBE_NS	10000	/* how long a new session polls before it sleeps */

int kxfer_reap_check_flags(u32 flags);
void kxfer_reap_look(struct kxfer_session *session);
int kxfer_reap_wait(struct kxfer_session *session, u32 want, u64 deadline_ns, u32 flags);
int kxfer_reap_store(struct kxfer_session *session, u64 to, u32 max, u32 *stored);
int kxfer_reap(struct kxfer_session *session, void *arg);

#endif /* KXFER_REAP_H */
