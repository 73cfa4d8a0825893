/* SPDX-License-Identifier: GPL-2.0 */
/* Cutting a transfer into work requests: pure arithmetic. See plan.c. */
#ifndef KXFER_PLAN_H
#define KXFER_PLAN_H

#include <linux/types.h>

/* Most SGEs of one work request; rxe takes the most, 32. */
#define KXFER_PLAN_MAX_SGE	32

/* Page size of the peer's device; siw's responder copies short payload by such pages. */
#define KXFER_PLAN_PAGE		4096

/**
 * struct kxfer_extent - a piece of memory that is contiguous for the device
 * @start: offset of the extent within the region or export
 * @addr: DMA address (local) or virtual address under @key (remote) of the first byte
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
 * struct kxfer_plan_limits - limits of a device for one work request
 * @max_sge: most SGEs; values above KXFER_PLAN_MAX_SGE count as that
 * @max_wr_bytes: most bytes: the smaller of the longest message and the bulk piece
 * @border_bytes: a work request that begins fewer bytes than this before a multiple of
 *	KXFER_PLAN_PAGE in the remote address ends there; 0: all may cross
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
 * @remote_addr: first byte in the peer's memory
 * @rkey: rkey that covers all remote bytes
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
 * struct kxfer_piece - a transfer that is one work request with one SGE
 * @addr: DMA address of the local memory
 * @remote_addr: first byte in the peer's memory
 * @rkey: rkey that covers all remote bytes
 * @length: bytes
 */
struct kxfer_piece {
	u64 addr;
	u64 remote_addr;
	u32 rkey;
	u32 length;
};

/**
 * struct kxfer_plan - a cursor over the work requests of one transfer
 * @local: extents of the local memory; must outlive the plan
 * @remote: extents of the remote memory; must outlive the plan
 * @nr_local: entries of @local
 * @nr_remote: entries of @remote
 * @local_index: local extent of the next byte
 * @remote_index: remote extent of the next byte
 * @local_offset: offset of the next byte within its local extent
 * @remote_offset: offset of the next byte within its remote extent
 * @left: bytes not yet planned
 * @limits: limits of the device; must outlive the plan
 *
 * May be copied: the copy is an independent cursor.
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

/* Offset of the next byte in the local memory; called only if bytes are left. */
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
u32 kxfer_extents_search(const struct kxfer_extent *extents, u32 nr, u64 offset);
int kxfer_extents_check(const struct kxfer_extent *extents, u32 nr, u64 length);

/**
 * kxfer_extents_find() - find the extent that holds a byte
 * @extents: the table
 * @nr: entries of @extents
 * @offset: offset of the byte, inside the table
 *
 * Return: index of the extent.
 */
static inline u32 kxfer_extents_find(const struct kxfer_extent *extents, u32 nr, u64 offset)
{
	u64 guess = offset / KXFER_PLAN_PAGE;

	if (nr == 1)
		return 0;
	/* If the pages are scattered, each page is an extent. */
	if (guess < nr && extents[guess].start <= offset &&
	    offset - extents[guess].start < extents[guess].length)
		return guess;
	return kxfer_extents_search(extents, nr, offset);
}

/* Most bytes of a work request that begins at @addr of the remote memory. */
static inline u64 kxfer_plan_remote_room(const struct kxfer_plan_limits *limits, u64 addr)
{
	u64 to_border = KXFER_PLAN_PAGE - addr % KXFER_PLAN_PAGE;

	return to_border < limits->border_bytes && to_border < limits->max_wr_bytes ?
	       to_border : limits->max_wr_bytes;
}

/* Whether an extent has all of a range; of a range before it @from is above 2^32. */
static inline bool kxfer_extent_has(const struct kxfer_extent *extent, u64 offset, u64 length)
{
	u64 from = offset - extent->start;

	return from < extent->length && length <= extent->length - from;
}

/**
 * kxfer_plan_piece() - plan a transfer that is one work request with one SGE
 * @piece: out: the work request
 * @local: extent of the local memory that has the transfer
 * @local_offset: offset of the first byte there
 * @remote: extent of the remote memory that has the transfer
 * @remote_offset: offset of the first byte there
 * @length: bytes, within the limits of the device and not 0
 */
static inline void
kxfer_plan_piece(struct kxfer_piece *piece, const struct kxfer_extent *local, u64 local_offset,
		 const struct kxfer_extent *remote, u64 remote_offset, u64 length)
{
	piece->addr = local->addr + (local_offset - local->start);
	piece->remote_addr = remote->addr + (remote_offset - remote->start);
	piece->rkey = remote->key;
	piece->length = length;
}

#endif /* KXFER_PLAN_H */
