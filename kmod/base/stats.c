// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the whole module.
 *
 * KXFER_GAUGES and KXFER_TOTALS in stats.h are the only list of counters: the
 * identifiers, the names that INFO and debugfs show, and the meanings come from it.
 *
 * A gauge (live_*) goes up where an object is made and down where it is freed,
 * and nowhere else, so all gauges are 0 when the module goes. A gauge below 0 means
 * that an object was freed twice, and causes a warning. Each gauge is an atomic in a
 * cache line of its own. A total only grows. Totals are counted for each CPU, so
 * that no two CPUs write the same cache line when jobs count. The gauge of jobs is the
 * difference of such totals: jobs accepted, and jobs that have ended in one way or another.
 *
 * Context: any. Each value read is exact, but the values are not of one instant.
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/cache.h>

#include "base/stats.h"

struct gauge {
	atomic64_t value;
} ____cacheline_aligned_in_smp;

static struct gauge gauges[KXFER_STAT_GAUGES];

DEFINE_PER_CPU(struct kxfer_stat_totals, kxfer_stat_totals);

#define STAT_TEXT(id, ...) \
	[KXFER_STAT_##id] = { __VA_ARGS__ },

static const struct {
	const char *name;
	const char *meaning;
} texts[] = { KXFER_GAUGES(STAT_TEXT) KXFER_TOTALS(STAT_TEXT) };

/**
 * kxfer_stat_move() - count objects that were made or freed
 * @id: id of the gauge
 * @value: number to add
 *
 * Any context.
 */
void kxfer_stat_move(enum kxfer_stat id, s64 value)
{
	s64 now = atomic64_add_return(value, &gauges[id].value);

	WARN_ONCE(value < 0 && now < 0, "kxfer: counter %s fell to %lld\n",
		  texts[id].name, now);
}

static u64 total(enum kxfer_stat id)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(kxfer_stat_totals.values[id], cpu));
	return sum;
}

static u64 live_jobs(void)
{
	u64 ended = total(KXFER_STAT_JOBS_COMPLETED) + total(KXFER_STAT_JOBS_FAILED) +
		    total(KXFER_STAT_JOBS_CANCELLED) + total(KXFER_STAT_JOBS_WITHDRAWN);

	/* Then at least as many were accepted. Pairs with the locks that a job passes. */
	smp_rmb();
	return total(KXFER_STAT_JOBS_SUBMITTED) - ended;
}

/**
 * kxfer_stat_read() - read a counter
 * @id: id of the counter
 *
 * An increment of a total during the call may be missed. Return: the value.
 */
u64 kxfer_stat_read(enum kxfer_stat id)
{
	if (id == KXFER_STAT_LIVE_JOBS)
		return live_jobs();
	if (id < KXFER_STAT_GAUGES)
		return atomic64_read(&gauges[id].value);
	return total(id);
}

/**
 * kxfer_stat_name() - name of a counter
 * @id: id of the counter
 *
 * Return: the name, shorter than 48 characters.
 */
const char *kxfer_stat_name(enum kxfer_stat id)
{
	return texts[id].name;
}

/**
 * kxfer_stat_meaning() - what a counter counts, in words
 * @id: id of the counter
 *
 * Return: half a sentence.
 */
const char *kxfer_stat_meaning(enum kxfer_stat id)
{
	return texts[id].meaning;
}
