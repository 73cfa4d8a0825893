/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses on which this node accepts links. See listener.c. */
#ifndef KXFER_LISTENER_H
#define KXFER_LISTENER_H

#include <linux/types.h>

struct ib_device;
struct kxfer_session;
struct kxfer_viewer;

#define KXFER_MAX_LISTENERS	64

int kxfer_listener_add(struct kxfer_session *session, void *arg);
int kxfer_listener_del(struct kxfer_session *session, void *arg);
void kxfer_listener_end_session(struct kxfer_session *session);
void kxfer_listener_device_added(void);
void kxfer_listener_device_removed(struct ib_device *ibdev);
void kxfer_listener_check(void);
void kxfer_listener_end_all(void);
int kxfer_listener_init(void);
void kxfer_listener_exit(void);
u32 kxfer_listener_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr);

#endif /* KXFER_LISTENER_H */
