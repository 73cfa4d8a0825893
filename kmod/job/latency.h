/* SPDX-License-Identifier: GPL-2.0 */
/* How long the jobs of a lane took. See latency.c. */
#ifndef KXFER_LATENCY_H
#define KXFER_LATENCY_H

#include <linux/atomic.h>
#include <linux/kxfer.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/types.h>

struct kxfer_lane;
struct kxfer_viewer;

#define KXFER_LATENCY_FIRST_OP	KXFER_OP_READ	/* NOP and RECV use no lane */
#define KXFER_LATENCY_OPS	(KXFER_OP_SEND - KXFER_LATENCY_FIRST_OP + 1)
#define KXFER_LATENCY_SHIFT	8	/* buckets are 1 << 8 ns wide and wider */

/**
 * struct kxfer_latency - how long the jobs of one op took
 * @nr_failed: jobs that ended with an error
 * @sum_ns: sum of the times of the jobs in @buckets
 * @buckets: number of jobs that succeeded, by their time
 */
struct kxfer_latency {
	atomic64_t nr_failed;
	atomic64_t sum_ns;
	atomic64_t buckets[KXFER_LATENCY_BUCKETS];
};

/** kxfer_latency_bucket() - the bucket of a time in ns; see struct kxfer_info_latency */
static inline u32 kxfer_latency_bucket(u64 ns)
{
	u32 shift;

	if (ns < 4 << KXFER_LATENCY_SHIFT)
		return 0;
	/* What is left of the time is 4 to 7, its three highest bits. */
	shift = ilog2(ns) - 2;
	return min_t(u32, (shift - KXFER_LATENCY_SHIFT) * 4 + (ns >> shift) - 4,
		     KXFER_LATENCY_BUCKETS - 1);
}

/**
 * kxfer_latency_count() - count a job that has ended
 * @latencies: those of its lane
 * @job: its completion
 *
 * Any context.
 */
static inline void kxfer_latency_count(struct kxfer_latency *latencies,
				       const struct kxfer_completion *job)
{
	struct kxfer_latency *latency = &latencies[job->op - KXFER_LATENCY_FIRST_OP];
	u64 ns = job->completed_ns - job->submitted_ns;

	if (job->status) {
		atomic64_inc(&latency->nr_failed);
		return;
	}
	atomic64_add(ns, &latency->sum_ns);
	atomic64_inc(&latency->buckets[kxfer_latency_bucket(ns)]);
}

struct kxfer_latency *kxfer_latency_make(int numa_node);
u32 kxfer_latency_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr);

#endif /* KXFER_LATENCY_H */
