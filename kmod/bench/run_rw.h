/* SPDX-License-Identifier: GPL-2.0 */
/* Contexts of the kernel's rdma_rw for a measuring run. See run_rw.c. */
#ifndef KXFER_RUN_RW_H
#define KXFER_RUN_RW_H

#include <linux/types.h>

struct kxfer_lane;
struct kxfer_run;
struct kxfer_run_post;

int kxfer_run_rw_build(struct kxfer_run *run);
void kxfer_run_rw_unbuild(struct kxfer_run *run);
void kxfer_run_rw_close(struct kxfer_lane *lane);
bool kxfer_run_rw_ready(struct kxfer_run *run);
void kxfer_run_rw_chain_locked(struct kxfer_run *run, struct kxfer_run_post *post);
u32 kxfer_run_rw_longest(const struct kxfer_run *run);

#endif /* KXFER_RUN_RW_H */
