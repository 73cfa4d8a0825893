/* SPDX-License-Identifier: GPL-2.0 */
/* Connecting and accepting lanes with rdma_cm. See cm.c. */
#ifndef KXFER_CM_H
#define KXFER_CM_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

struct kxfer_addr;
struct kxfer_keys;
struct kxfer_link;
struct kxfer_patience;

int kxfer_cm_connect(struct kxfer_link *link);
int kxfer_cm_request(struct rdma_cm_id *id, const struct rdma_cm_event *event,
		     bool any_port, struct kxfer_keys *keys,
		     const struct kxfer_patience *patience);
void kxfer_cm_accept_work(struct work_struct *work);
void kxfer_cm_bind_scope(struct rdma_cm_id *id, struct kxfer_addr *from, u32 scope_id);
const char *kxfer_cm_refusal_text(u32 refusal);

#endif /* KXFER_CM_H */
