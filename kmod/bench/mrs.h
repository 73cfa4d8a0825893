/* SPDX-License-Identifier: GPL-2.0 */
/* Fast-registration MRs of a measuring run. See mrs.c. */
#ifndef KXFER_MRS_H
#define KXFER_MRS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct kxfer_lane;
struct kxfer_mapping;
struct scatterlist;

/**
 * struct kxfer_mrs_layout - what the MRs cover of a region
 * @offset: bytes; where the first one begins
 * @span: bytes of all
 * @step: bytes from one to the next
 * @length: bytes of one; the last one ends with the span
 * @nr: MRs
 * @pool: they are to be a pool
 */
struct kxfer_mrs_layout {
	u64 offset;
	u64 span;
	u64 step;
	u64 length;
	u32 nr;
	bool pool;
};

/**
 * struct kxfer_mr - one of them
 * @mr: of the link's PD; of a pool: that the last operation took, or NULL. Its need_inval: a
 *	REG_MR of it was built, and it is not yet seen to that it becomes invalid
 * @sg: first entry of what it covers
 * @nr_sg: entries
 * @lkey: since it was mapped last
 * @iova: likewise; where it begins
 * @reg: that REG_MR
 * @inv: LOCAL_INV of it, or of the one before
 */
struct kxfer_mr {
	struct ib_mr *mr;
	struct scatterlist *sg;
	u32 nr_sg;
	u32 lkey;
	u64 iova;
	struct ib_reg_wr reg;
	struct ib_send_wr inv;
};

/**
 * struct kxfer_mrs - MRs of a run
 * @pool: QP that they are a pool of, or NULL
 * @sg: of all
 * @nr: entries of @each
 * @each: them
 */
struct kxfer_mrs {
	struct ib_qp *pool;
	struct scatterlist *sg;
	u32 nr;
	struct kxfer_mr each[];
};

struct kxfer_mrs *kxfer_mrs_create(struct kxfer_lane *lane, struct ib_cqe *cqe, int access,
				   const struct kxfer_mapping *mapping,
				   const struct kxfer_mrs_layout *layout);
void kxfer_mrs_destroy(struct kxfer_lane *lane, struct kxfer_mrs *mrs);
void kxfer_mrs_close(struct kxfer_lane *lane);
int kxfer_mr_map_locked(struct kxfer_mr *mr);
void kxfer_mr_exchange_locked(struct kxfer_mrs *mrs, struct kxfer_mr *mr);

#endif /* KXFER_MRS_H */
