// SPDX-License-Identifier: GPL-2.0
/*
 * Latencies: how long the jobs of a lane took from submission to completion, by op, always counted.
 *
 * A lane has a struct kxfer_latency for each op that uses lanes. Jobs of several sessions end on
 * one lane at the same time, each under the lock of its own session, so the counts are atomic. A
 * lane of its own for each CPU keeps them from being shared. INFO adds nothing up: a record is of
 * one lane and op.
 *
 * The memory of a lane's counts lives as long as the lane. A job that ends holds a target,
 * and so the link and its lanes, until it is counted (completion.c, quick_end.c).
 *
 * Context: kxfer_latency_make() may sleep, the rest does not.
 */
#include <linux/slab.h>

#include "base/fault.h"
#include "job/latency.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"

/** kxfer_latency_make() - counts for a data lane; freed by kfree(). Return: NULL: no memory */
struct kxfer_latency *kxfer_latency_make(int numa_node)
{
	return kxfer_try_alloc(LANE_LATENCY, kcalloc_node(KXFER_LATENCY_OPS,
							  sizeof(struct kxfer_latency),
							  KXFER_GFP_FOR_PEER, numa_node));
}

/**
 * struct listing - records of latencies that are being listed
 * @records: where they go
 * @nr: room there
 * @done: records stored
 * @cursor: id of the last one
 */
struct listing {
	struct kxfer_info_latency *records;
	u32 nr;
	u32 done;
	u64 cursor;
};

/* Return: whether a job of the op has ended. */
static bool fill(const struct kxfer_latency *latency, struct kxfer_info_latency *info)
{
	u64 nr;
	u32 i;

	nr = atomic64_read(&latency->nr_failed);
	info->nr_failed = nr;
	info->sum_ns = atomic64_read(&latency->sum_ns);
	for (i = 0; i < KXFER_LATENCY_BUCKETS; i++) {
		info->buckets[i] = atomic64_read(&latency->buckets[i]);
		nr += info->buckets[i];
	}
	return nr;
}

/* Return: whether there is room for more. */
static bool list_lane(const struct kxfer_lane *lane, void *context)
{
	const struct kxfer_latency *latencies = READ_ONCE(lane->latencies);
	struct listing *list = context;
	u32 i;

	for (i = 0; latencies && i < KXFER_LATENCY_OPS && list->done < list->nr; i++) {
		u32 op = KXFER_LATENCY_FIRST_OP + i;
		struct kxfer_info_latency *info = &list->records[list->done];

		*info = (struct kxfer_info_latency) {
			.id = lane->id << 3 | op,
			.lane = lane->id,
			.link = lane->link->id,
			.op = op,
		};
		if (info->id <= list->cursor || !fill(&latencies[i], info))
			continue;
		list->cursor = info->id;
		list->done++;
	}
	return list->done < list->nr;
}

/** kxfer_latency_info() - INFO records of latencies, by lane and op; see info.c */
u32 kxfer_latency_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr)
{
	struct listing list = { .records = records, .nr = nr, .cursor = *cursor };

	BUILD_BUG_ON(KXFER_OP_RECV > 7);
	kxfer_lane_visit(viewer, list_lane, &list);
	*cursor = list.cursor;
	return list.done;
}
