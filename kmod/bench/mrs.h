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
 * struct kxfer_mrs_layout - pieces of a region that MRs cover
 * @offset: offset of the first piece in the region, in bytes
 * @span: bytes from the first piece to the end of the last
 * @step: bytes from the start of one piece to the start of the next
 * @length: bytes of a piece; the last one ends with @span
 * @nr: number of pieces and MRs
 * @pool: the MRs form a pool of the QP
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
 * struct kxfer_mr - one MR of a run
 * @mr: MR of the link's PD; with a pool: MR that the last operation took, or NULL.
 *	need_inval is set once its REG_MR is built, until its invalidation is arranged
 * @sg: first scatter list entry of the piece that it covers
 * @nr_sg: entries of that piece
 * @lkey: key since the last mapping
 * @iova: start address since the last mapping
 * @reg: REG_MR of the last mapping
 * @inv: LOCAL_INV of the last mapping, or of the one before
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
 * @pool: QP whose pool the MRs form, or NULL
 * @sg: scatter list entries of all pieces
 * @nr: entries of @each
 * @each: the MRs
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
