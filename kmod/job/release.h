/* SPDX-License-Identifier: GPL-2.0 */
/* Giving grants back to a peer. See release.c. */
#ifndef KXFER_RELEASE_H
#define KXFER_RELEASE_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct kxfer_link;
struct kxfer_request;
struct kxfer_target;

void kxfer_release_target(struct kxfer_target *target);
void kxfer_release_orphan(struct kxfer_link *link, u64 grant);
void kxfer_release_abandoned(struct kxfer_request *request);
void kxfer_release_work(struct work_struct *work);
void kxfer_release_link_closed(struct kxfer_link *link);

#endif /* KXFER_RELEASE_H */
