/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Model of a correct plan, independent of plan.c: it follows the work requests through both
 * tables, one contiguous run of bytes at a time. Used by the cases of plan_test.c and the
 * fuzzer of plans.
 */
#ifndef KXFER_PURE_PLAN_MODEL_H
#define KXFER_PURE_PLAN_MODEL_H

#include "base/plan.h"

/**
 * struct plan_input - one transfer
 * @local: local table
 * @nr_local: extents of @local
 * @from: first byte of the transfer in @local
 * @remote: remote table
 * @nr_remote: extents of @remote
 * @to: first byte of the transfer in @remote
 * @length: bytes of the transfer
 * @limits: limits of the lane
 */
struct plan_input {
	const struct kxfer_extent *local;
	u32 nr_local;
	u64 from;
	const struct kxfer_extent *remote;
	u32 nr_remote;
	u64 to;
	u64 length;
	struct kxfer_plan_limits limits;
};

/* Walks through a table from its beginning. */
struct walker {
	const struct kxfer_extent *table;
	u32 nr;
	u32 index;
	u64 inside;
};

static inline void walk(struct walker *walker, u64 bytes)
{
	walker->inside += bytes;
	while (walker->index < walker->nr &&
	       walker->inside >= walker->table[walker->index].length) {
		walker->inside -= walker->table[walker->index].length;
		walker->index++;
	}
}

static inline struct walker walker_at(const struct kxfer_extent *table, u32 nr, u64 offset)
{
	struct walker walker = { .table = table, .nr = nr };

	walk(&walker, offset);
	return walker;
}

static inline u64 walker_addr(const struct walker *walker)
{
	return walker->table[walker->index].addr + walker->inside;
}

/* Bytes from the current place to the end of the extent. */
static inline u64 walker_run(const struct walker *walker)
{
	return walker->table[walker->index].length - walker->inside;
}

/* Checks the SGEs of a work request, and moves @local past them. */
static inline const char *wrong_sges(const struct kxfer_wr_desc *wr, struct walker *local)
{
	u64 sum = 0, inside, run;
	u32 i;

	for (i = 0; i < wr->nr_sge; i++) {
		if (!wr->sge[i].length)
			return "an empty SGE";
		if (i && wr->sge[i - 1].addr + wr->sge[i - 1].length == wr->sge[i].addr)
			return "SGEs that abut";
		sum += wr->sge[i].length;
		if (sum > wr->length)
			return "SGEs longer than the work request";
		for (inside = 0; inside < wr->sge[i].length; inside += run) {
			if (local->index >= local->nr)
				return "local memory behind the table";
			if (wr->sge[i].addr + inside != walker_addr(local))
				return "wrong local byte";
			run = walker_run(local);
			if (run > wr->sge[i].length - inside)
				run = wr->sge[i].length - inside;
			walk(local, run);
		}
	}
	return sum == wr->length ? NULL : "SGEs shorter than the work request";
}

/* Whether the next byte would need one SGE too many. */
static inline bool sges_are_full(const struct kxfer_wr_desc *wr, const struct walker *local,
				 u32 max_sge)
{
	const struct kxfer_sge_desc *last = &wr->sge[wr->nr_sge - 1];

	return wr->nr_sge == max_sge && walker_addr(local) != last->addr + last->length;
}

/* Checks a work request; @done bytes were planned before it. */
static inline const char *wrong_wr(const struct plan_input *in, const struct kxfer_wr_desc *wr,
				   u64 done, struct walker *local, struct walker *remote)
{
	u32 max_sge = in->limits.max_sge < KXFER_PLAN_MAX_SGE ? in->limits.max_sge :
		      KXFER_PLAN_MAX_SGE;
	u64 to_border = KXFER_PLAN_PAGE - wr->remote_addr % KXFER_PLAN_PAGE;
	bool near = to_border < in->limits.border_bytes;
	const char *wrong;

	if (!wr->length || wr->length > in->limits.max_wr_bytes || wr->length > in->length - done)
		return "wrong length";
	if (!wr->nr_sge || wr->nr_sge > max_sge)
		return "wrong number of SGEs";
	if (wr->remote_addr != walker_addr(remote) ||
	    wr->rkey != remote->table[remote->index].key)
		return "wrong remote byte";
	if (wr->length > walker_run(remote))
		return "leaves the remote extent";
	if (near && wr->length > to_border)
		return "crosses a border of the peer's pages";
	wrong = wrong_sges(wr, local);
	if (wrong)
		return wrong;
	/* Reasons for which a work request may end before the transfer does. */
	if (wr->length == in->length - done || wr->length == in->limits.max_wr_bytes ||
	    wr->length == walker_run(remote) || (near && wr->length == to_border) ||
	    sges_are_full(wr, local, max_sge)) {
		walk(remote, wr->length);
		return NULL;
	}
	return "ends too early";
}

/* The extents beside the one that has a byte do not have it. */
static inline bool others_have(const struct kxfer_extent *table, u32 nr, u32 index, u64 offset)
{
	return (index && kxfer_extent_has(&table[index - 1], offset, 1)) ||
	       (index + 1 < nr && kxfer_extent_has(&table[index + 1], offset, 1));
}

/* Checks kxfer_plan_piece(); the walkers stand at the first byte. */
static inline const char *wrong_piece(const struct plan_input *in, const struct walker *local,
				      const struct walker *remote)
{
	u32 from = kxfer_extents_find(in->local, in->nr_local, in->from);
	u32 to = kxfer_extents_find(in->remote, in->nr_remote, in->to);
	struct kxfer_piece piece;
	bool is_piece;

	if (others_have(in->local, in->nr_local, from, in->from) ||
	    others_have(in->remote, in->nr_remote, to, in->to))
		return "a byte in two extents";
	is_piece = in->length <= walker_run(local) && in->length <= walker_run(remote);
	if ((kxfer_extent_has(&in->local[from], in->from, in->length) &&
	     kxfer_extent_has(&in->remote[to], in->to, in->length)) != is_piece)
		return is_piece ? "one piece that needs a plan" : "a piece that is none";
	kxfer_plan_piece(&piece, &in->local[from], in->from, &in->remote[to], in->to, in->length);
	if (is_piece && (piece.addr != walker_addr(local) ||
			 piece.remote_addr != walker_addr(remote) ||
			 piece.rkey != remote->table[remote->index].key ||
			 piece.length != in->length))
		return "a wrong piece";
	return NULL;
}

/**
 * plan_wrong() - check a plan, also as one piece
 * @in: transfer that fits both tables
 * @max_wrs: stop after as many work requests
 *
 * Return: description of the fault, or NULL.
 */
static inline const char *plan_wrong(const struct plan_input *in, u32 max_wrs)
{
	struct walker remote = walker_at(in->remote, in->nr_remote, in->to);
	struct walker local = walker_at(in->local, in->nr_local, in->from);
	struct kxfer_plan plan;
	struct kxfer_wr_desc wr;
	const char *wrong;
	u64 done = 0;

	if (kxfer_plan_init(&plan, in->local, in->nr_local, in->from, in->remote,
			    in->nr_remote, in->to, in->length, &in->limits))
		return "refused";
	if (kxfer_plan_position(&plan) != in->from)
		return "begins at a wrong position";
	wrong = wrong_piece(in, &local, &remote);
	if (wrong)
		return wrong;
	while (kxfer_plan_next(&plan, &wr)) {
		wrong = wrong_wr(in, &wr, done, &local, &remote);
		if (wrong)
			return wrong;
		done += wr.length;
		if (kxfer_plan_left(&plan) != in->length - done)
			return "wrong rest";
		if (done < in->length && kxfer_plan_position(&plan) != in->from + done)
			return "wrong position";
		if (!--max_wrs)
			return NULL;
	}
	return done == in->length ? NULL : "some bytes are in no work request";
}

#endif /* KXFER_PURE_PLAN_MODEL_H */
