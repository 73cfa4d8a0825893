/* SPDX-License-Identifier: GPL-2.0 */
/* All sessions, their beginning and their end. See sessions.c. */
#ifndef KXFER_SESSIONS_H
#define KXFER_SESSIONS_H

#include <linux/types.h>

struct file;
struct kxfer_session;
struct kxfer_viewer;

struct kxfer_session *kxfer_session_create(const struct file *file);
void kxfer_session_destroy(struct kxfer_session *session);
u32 kxfer_session_info(const struct kxfer_viewer *viewer, u64 *cursor,
		       void *records, u32 nr);
void kxfer_session_for_each(void (*look)(struct kxfer_session *session, void *context),
			    void *context);

#endif /* KXFER_SESSIONS_H */
