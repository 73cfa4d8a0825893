/* SPDX-License-Identifier: GPL-2.0 */
/* Events for an exporter. See event.c. */
#ifndef KXFER_EVENT_H
#define KXFER_EVENT_H

#include <linux/types.h>

struct kxfer_event;
struct kxfer_session;

int kxfer_event_prepare(struct kxfer_session *session, u32 nr);
int kxfer_event_push(struct kxfer_session *session, const struct kxfer_event *event);
bool kxfer_event_is_there(struct kxfer_session *session);
int kxfer_event_reap(struct kxfer_session *session, void *arg);

#endif /* KXFER_EVENT_H */
