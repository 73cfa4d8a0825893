/* SPDX-License-Identifier: GPL-2.0 */
/* Cutting a transfer into work requests: pure arithmetic. See plan.c. */
#ifndef KXFER_PLAN_H
#define KXFER_PLAN_H

#include <linux/types.h>

/* SGEs of one work request at most; rxe, the most generous, takes 32. */
#define KXFER_PLAN_MAX_SGE	32

/* The page of the peer's device, in which siw's responder copies short payload. */
#define KXFER_PLAN_PAGE		4096

/**
 * struct kxfer_extent - a piece of memory that is contiguous for the device
 * @start: offset of its first byte within the whole
 * @addr: DMA address (local) or virtual address under @key (remote) of that byte
 * @length: bytes, not 0
 * @key: rkey; 0 for local memory
 *
 * Extents come in tables: sorted by @start, without gaps, the first @start is 0.
 */
struct kxfer_extent {
	u64 start;
	u64 addr;
	u32 length;
	u32 key;
};

/**
 * struct kxfer_plan_limits - what a device takes in one work request
 * @max_sge: SGEs; more than KXFER_PLAN_MAX_SGE count as that many
 * @max_wr_bytes: bytes: the least of the longest message and the bulk piece
 * @border_bytes: a work request that begins less than this before a border of
 *	KXFER_PLAN_PAGE bytes of the remote address ends there; 0 if any may cross
 */
struct kxfer_plan_limits {
	u32 max_sge;
	u64 max_wr_bytes;
	u32 border_bytes;
};

/**
 * struct kxfer_sge_desc - one piece of local memory
 * @addr: DMA address
 * @length: bytes
 */
struct kxfer_sge_desc {
	u64 addr;
	u32 length;
};

/**
 * struct kxfer_wr_desc - one READ, WRITE or atomic
 * @remote_addr: where in the peer's memory
 * @rkey: that covers all of it
 * @nr_sge: entries of @sge in use
 * @length: bytes, the sum over @sge
 * @sge: local memory, in the order of the remote bytes
 */
struct kxfer_wr_desc {
	u64 remote_addr;
	u32 rkey;
	u32 nr_sge;
	u64 length;
	struct kxfer_sge_desc sge[KXFER_PLAN_MAX_SGE];
};

/**
 * struct kxfer_plan - a cursor over the work requests of one transfer
 * @local: extents of the local memory; they have to outlive the plan
 * @remote: extents of the remote memory; likewise
 * @nr_local: entries of @local
 * @nr_remote: entries of @remote
 * @local_index: extent of the next byte
 * @remote_index: likewise
 * @local_offset: of the next byte within its extent
 * @remote_offset: likewise
 * @left: bytes not yet planned
 * @limits: of the device; likewise
 *
 * May be copied: the copy goes on by itself.
 */
struct kxfer_plan {
	const struct kxfer_extent *local;
	const struct kxfer_extent *remote;
	u32 nr_local;
	u32 nr_remote;
	u32 local_index;
	u32 remote_index;
	u64 local_offset;
	u64 remote_offset;
	u64 left;
	const struct kxfer_plan_limits *limits;
};

/* Bytes that no work request covers yet. */
static inline u64 kxfer_plan_left(const struct kxfer_plan *plan)
{
	return plan->left;
}

/* Where in the local memory the next byte is: its offset. With something left. */
static inline u64 kxfer_plan_position(const struct kxfer_plan *plan)
{
	return plan->local[plan->local_index].start + plan->local_offset;
}

int kxfer_plan_init(struct kxfer_plan *plan,
		    const struct kxfer_extent *local, u32 nr_local, u64 local_offset,
		    const struct kxfer_extent *remote, u32 nr_remote, u64 remote_offset,
		    u64 length, const struct kxfer_plan_limits *limits);
bool kxfer_plan_next(struct kxfer_plan *plan, struct kxfer_wr_desc *wr);
bool kxfer_plan_is_word(const struct kxfer_plan *plan, u32 bytes);
u32 kxfer_extents_find(const struct kxfer_extent *extents, u32 nr, u64 offset);
int kxfer_extents_check(const struct kxfer_extent *extents, u32 nr, u64 length);

#endif /* KXFER_PLAN_H */
