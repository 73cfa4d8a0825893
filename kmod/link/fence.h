/* SPDX-License-Identifier: GPL-2.0 */
/* The end of a link before another succeeds it. See fence.c. */
#ifndef KXFER_FENCE_H
#define KXFER_FENCE_H

struct kxfer_link;
struct kxfer_reply;

int kxfer_fence_close(struct kxfer_link *link, struct kxfer_link *old, unsigned int timeout_ms);
void kxfer_fence_handle(struct kxfer_reply *reply, const void *payload);

#endif /* KXFER_FENCE_H */
