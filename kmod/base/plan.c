// SPDX-License-Identifier: GPL-2.0
/*
 * Cutting a transfer into work requests: pure arithmetic, no locks, no
 * allocation, no kernel. User space compiles this file too, to test it.
 *
 * Words. An *extent* is memory that is contiguous for the device: a DMA segment
 * of a region, or one registration of a peer's export. A *table* of extents
 * describes the whole region or export: sorted by start, gapless, first start
 * 0, no extent empty, no address that wraps. kxfer_extents_check() checks this for
 * a table that a peer sent; all other functions here rely on it. A *plan* is a
 * cursor that moves over a local and a remote table at the same pace.
 *
 * Invariants. Each byte of the transfer is in exactly one SGE of exactly one
 * work request, and bytes, SGEs and work requests come in ascending order. A
 * work request lies within one remote extent, because it has one rkey. It has at
 * most max_sge SGEs and max_wr_bytes bytes. If it begins less than border_bytes
 * before a page border, it does not cross that border. It has as many bytes as
 * these limits allow. Local extents that abut in address share an SGE. The 32-bit
 * length of an SGE cannot overflow: the SGE lies within a work request, and the
 * work request within a remote extent. Between calls the cursor stands on a byte
 * inside an extent of each table, unless nothing is left.
 *
 * Context: any. A plan is used by one caller at a time.
 */
#include <linux/errno.h>
#include <linux/overflow.h>

#include "base/plan.h"

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 table_length(const struct kxfer_extent *extents, u32 nr)
{
	return nr ? extents[nr - 1].start + extents[nr - 1].length : 0;
}

/** kxfer_extents_search() - kxfer_extents_find() among extents of any lengths */
u32 kxfer_extents_search(const struct kxfer_extent *extents, u32 nr, u64 offset)
{
	u32 first = 0, end = nr, middle;

	while (end - first > 1) {
		middle = first + (end - first) / 2;
		if (extents[middle].start <= offset)
			first = middle;
		else
			end = middle;
	}
	return first;
}

/**
 * kxfer_plan_init() - begin the plan of a transfer
 * @plan: plan to set up
 * @local: table of the local memory; must outlive the plan
 * @nr_local: entries of @local
 * @local_offset: first byte of the transfer in the local memory
 * @remote: table of the remote memory; must outlive the plan
 * @nr_remote: entries of @remote
 * @remote_offset: first byte of the transfer in the remote memory
 * @length: bytes of the transfer
 * @limits: limits of the device; must outlive the plan
 *
 * Return: 0, -EINVAL if @length or a limit is 0, -EOVERFLOW if an offset plus
 * @length wraps, -ERANGE if the transfer leaves a table. On failure @plan is
 * not touched.
 */
int kxfer_plan_init(struct kxfer_plan *plan,
		    const struct kxfer_extent *local, u32 nr_local, u64 local_offset,
		    const struct kxfer_extent *remote, u32 nr_remote, u64 remote_offset,
		    u64 length, const struct kxfer_plan_limits *limits)
{
	u64 local_end, remote_end;

	if (!length || !limits->max_sge || !limits->max_wr_bytes)
		return -EINVAL;
	if (check_add_overflow(local_offset, length, &local_end) ||
	    check_add_overflow(remote_offset, length, &remote_end))
		return -EOVERFLOW;
	if (local_end > table_length(local, nr_local) ||
	    remote_end > table_length(remote, nr_remote))
		return -ERANGE;

	plan->local = local;
	plan->nr_local = nr_local;
	plan->local_index = kxfer_extents_find(local, nr_local, local_offset);
	plan->local_offset = local_offset - local[plan->local_index].start;
	plan->remote = remote;
	plan->nr_remote = nr_remote;
	plan->remote_index = kxfer_extents_find(remote, nr_remote, remote_offset);
	plan->remote_offset = remote_offset - remote[plan->remote_index].start;
	plan->left = length;
	plan->limits = limits;
	return 0;
}

/* Add at most @room bytes of local memory to the work request. */
static void gather_local(struct kxfer_plan *plan, struct kxfer_wr_desc *wr, u64 room)
{
	const struct kxfer_extent *extent = &plan->local[plan->local_index];
	u32 max_sge = least(plan->limits->max_sge, KXFER_PLAN_MAX_SGE), nr_sge = 0;
	u64 addr, length = 0, offset = plan->local_offset;
	struct kxfer_sge_desc *sge = wr->sge;
	u32 piece;

	while (length < room) {
		addr = extent->addr + offset;
		piece = least(room - length, extent->length - offset);
		if (nr_sge && sge->addr + sge->length == addr) {
			sge->length += piece;
		} else {
			if (nr_sge == max_sge)
				break;
			sge = &wr->sge[nr_sge++];
			sge->addr = addr;
			sge->length = piece;
		}
		length += piece;
		offset += piece;
		if (offset == extent->length) {
			extent++;
			offset = 0;
		}
	}
	plan->local_index = extent - plan->local;
	plan->local_offset = offset;
	wr->nr_sge = nr_sge;
	wr->length = length;
}

/*
 * All that is left fits into the work request: take it if it is one SGE, as it is for
 * short transfers. The cursor need not move, because nothing is left.
 */
static bool take_all(struct kxfer_plan *plan, struct kxfer_wr_desc *wr)
{
	const struct kxfer_extent *extent = &plan->local[plan->local_index];

	if (extent->length - plan->local_offset < plan->left)
		return false;
	wr->sge[0].addr = extent->addr + plan->local_offset;
	wr->sge[0].length = plan->left;
	wr->nr_sge = 1;
	wr->length = plan->left;
	plan->left = 0;
	return true;
}

/**
 * kxfer_plan_next() - make the next work request of a transfer
 * @plan: plan; moves past the work request
 * @wr: out: the work request
 *
 * Return: false, with @wr not touched, once nothing is left.
 */
bool kxfer_plan_next(struct kxfer_plan *plan, struct kxfer_wr_desc *wr)
{
	const struct kxfer_extent *remote;
	u64 room;

	if (!plan->left)
		return false;
	remote = &plan->remote[plan->remote_index];
	wr->remote_addr = remote->addr + plan->remote_offset;
	room = least(plan->left, kxfer_plan_remote_room(plan->limits, wr->remote_addr));
	room = least(room, remote->length - plan->remote_offset);

	wr->rkey = remote->key;
	if (room == plan->left && take_all(plan, wr))
		return true;
	gather_local(plan, wr, room);

	plan->left -= wr->length;
	plan->remote_offset += wr->length;
	if (plan->remote_offset == remote->length) {
		plan->remote_index++;
		plan->remote_offset = 0;
	}
	return true;
}

/**
 * kxfer_plan_is_word() - whether a transfer is a word that an atomic can change
 * @plan: plan that was set up and has not moved
 * @bytes: length of a word
 *
 * Return: true if @bytes are left, under one rkey at a remote address that is a multiple
 * of @bytes, and in one piece of local memory.
 */
bool kxfer_plan_is_word(const struct kxfer_plan *plan, u32 bytes)
{
	const struct kxfer_extent *remote = &plan->remote[plan->remote_index];
	const struct kxfer_extent *local = &plan->local[plan->local_index];

	return plan->left == bytes && (remote->addr + plan->remote_offset) % bytes == 0 &&
	       remote->length - plan->remote_offset >= bytes &&
	       local->length - plan->local_offset >= bytes;
}

/**
 * kxfer_extents_check() - check a table that a peer sent
 * @extents: the table
 * @nr: entries of @extents
 * @length: bytes that the extents must add up to
 *
 * Return: 0; -EINVAL if the table is empty, not sorted, has a gap, an overlap or an
 * empty extent, or does not add up to @length; -EOVERFLOW if an address wraps.
 */
int kxfer_extents_check(const struct kxfer_extent *extents, u32 nr, u64 length)
{
	u64 next = 0, end;
	u32 i;

	if (!nr)
		return -EINVAL;
	for (i = 0; i < nr; i++) {
		if (extents[i].start != next || !extents[i].length)
			return -EINVAL;
		if (check_add_overflow(extents[i].addr, (u64)extents[i].length, &end))
			return -EOVERFLOW;
		/* Cannot wrap: fewer than 2^32 extents of less than 2^32 bytes each. */
		next += extents[i].length;
	}
	return next == length ? 0 : -EINVAL;
}
