// SPDX-License-Identifier: GPL-2.0
/* Tables of extents and a transfer: each plan is checked step by step (plan_model.h). */
#include "input.h"

#include <base/plan.c>
#include <plan_model.h>

#define MAX_EXTENTS	40
#define MAX_WRS		3000

struct table {
	struct kxfer_extent extents[MAX_EXTENTS];
	u32 nr;
	u64 length;
};

static void take_table(struct input *input, struct table *table)
{
	u32 nr = take_below(input, MAX_EXTENTS + 1);
	u64 end = take(input, 4);

	while (nr--) {
		u8 shape = take(input, 1);
		u32 length = shape & 1 ? take(input, 4) : take(input, 1) + 1;
		/* abutting, near, or anywhere */
		u64 addr = shape & 2 ? end : shape & 4 ? end + take(input, 1) : take(input, 8);

		table->extents[table->nr++] = (struct kxfer_extent) {
			.start = table->length,
			.addr = addr,
			.length = length,
			.key = shape >> 3,
		};
		table->length += length;
		end = addr + length;
	}
}

/* An invalid table, which kxfer_extents_check() has to reject. */
static void damage(struct input *input, struct table table)
{
	struct kxfer_extent *victim;
	u64 change = take(input, 8);

	if (!table.nr || !change)
		return;
	victim = &table.extents[take_below(input, table.nr)];
	if (take_below(input, 2))
		victim->start ^= change;
	else if ((u32)change)
		victim->length ^= (u32)change;
	else
		return;
	if (!kxfer_extents_check(table.extents, table.nr, table.length))
		found("a damaged table is accepted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table local = { .nr = 0 }, remote = { .nr = 0 };
	struct input input = { data, size };
	struct kxfer_plan plan;
	struct plan_input in;
	u64 most;
	int ret;

	take_table(&input, &local);
	take_table(&input, &remote);
	in = (struct plan_input) {
		.local = local.extents,
		.nr_local = local.nr,
		.remote = remote.extents,
		.nr_remote = remote.nr,
		.limits = {
			.max_sge = take(&input, 1),
			.max_wr_bytes = take(&input, 3),
			.border_bytes = take(&input, 1),
		},
	};
	if (take_below(&input, 4) == 0) {
		/* Any table: only the verdict is checked. */
		in.from = take(&input, 8);
		in.to = take(&input, 8);
		in.length = take(&input, 8);
	} else {
		most = local.length < remote.length ? local.length : remote.length;
		in.length = most ? 1 + take_below(&input, most) : 0;
		in.from = take_below(&input, local.length - in.length + 1);
		in.to = take_below(&input, remote.length - in.length + 1);
	}
	/* All later checks need valid tables. */
	if (kxfer_extents_check(local.extents, local.nr, local.length) ||
	    kxfer_extents_check(remote.extents, remote.nr, remote.length))
		return 0;
	ret = kxfer_plan_init(&plan, in.local, in.nr_local, in.from, in.remote, in.nr_remote,
			      in.to, in.length, &in.limits);
	if (ret == 0)
		found(plan_wrong(&in, MAX_WRS));
	else if (in.length && in.limits.max_sge && in.limits.max_wr_bytes &&
		 in.length <= local.length && in.from <= local.length - in.length &&
		 in.length <= remote.length && in.to <= remote.length - in.length)
		found("a good transfer is refused");
	damage(&input, local);
	return 0;
}
