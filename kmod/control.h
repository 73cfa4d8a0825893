/* SPDX-License-Identifier: GPL-2.0 */
/* What the messages on a link mean. See control.c. */
#ifndef KXFER_CONTROL_H
#define KXFER_CONTROL_H

#include <linux/workqueue.h>

#include "wire.h"

struct kxfer_lane;
struct kxfer_link;
struct kxfer_reply;
struct kxfer_request;

void kxfer_control_dispatch(struct kxfer_reply *reply);
void kxfer_control_work(struct work_struct *work);
void kxfer_control_turn_work(struct work_struct *work);
void kxfer_control_slot_free(struct kxfer_lane *lane);
void kxfer_control_abandoned(struct kxfer_request *request);
int kxfer_control_hello(struct kxfer_link *link, unsigned int timeout_ms);
int kxfer_control_ping(struct kxfer_link *link);

#endif /* KXFER_CONTROL_H */
