/* SPDX-License-Identifier: GPL-2.0 */
/* MRs in the PD of a link, and their registration. See mr.c. */
#ifndef KXFER_MR_H
#define KXFER_MR_H

#include <rdma/ib_verbs.h>

struct kxfer_lane;

/**
 * struct kxfer_registration - the registration under way on a lane
 * @cqe: CQE of its work request
 * @under_way: the work request has not completed
 * @error: result of the work request, 0 or -errno
 */
struct kxfer_registration {
	struct ib_cqe cqe;
	bool under_way;
	int error;
};

void kxfer_mr_init_lane(struct kxfer_lane *lane);
struct ib_mr *kxfer_mr_alloc(struct kxfer_lane *lane, u32 pages);
void kxfer_mr_dereg(struct kxfer_lane *lane, struct ib_mr *mr);
void kxfer_mr_count(struct kxfer_lane *lane, int nr);
int kxfer_mr_register(struct kxfer_lane *lane, struct ib_mr *mr, u32 key, int access);
int kxfer_mr_register_bytes(struct kxfer_lane *control, struct ib_mr *mr, u64 dma, u32 bytes,
			    int access);
void kxfer_mr_end_registration(struct kxfer_lane *lane, int error);

#endif /* KXFER_MR_H */
