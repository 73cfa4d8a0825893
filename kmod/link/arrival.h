/* SPDX-License-Identifier: GPL-2.0 */
/* Requests of a peer, and where they are handled. See arrival.c. */
#ifndef KXFER_ARRIVAL_H
#define KXFER_ARRIVAL_H

#include <linux/workqueue.h>

struct kxfer_reply;

void kxfer_arrival_begin(struct kxfer_reply *reply);
void kxfer_arrival_work(struct work_struct *work);
void kxfer_arrival_turn_work(struct work_struct *work);

#endif /* KXFER_ARRIVAL_H */
