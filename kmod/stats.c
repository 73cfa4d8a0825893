// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the whole module.
 *
 * KXFER_COUNTERS in stats.h is the one list of them: identifiers, the names
 * that INFO and debugfs show and what they mean all come from it.
 *
 * A gauge (live_*) goes up where an object is made and down where it is freed,
 * and nowhere else, so all gauges are 0 when the module goes; one below 0 is a
 * thing freed twice and is warned of. All other counters only grow.
 *
 * Context: any. Counters are independent atomics, each in a cache line of its
 * own, so that CPUs that count different things do not disturb each other;
 * a reader sees each exact but no common instant.
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/cache.h>

#include "stats.h"

struct counter {
	atomic64_t value;
} ____cacheline_aligned_in_smp;

static struct counter counters[KXFER_STAT_MAX];

#define STAT_TEXT(id, ...) \
	[KXFER_STAT_##id] = { __VA_ARGS__ },

static const struct {
	const char *name;
	const char *meaning;
} texts[] = { KXFER_COUNTERS(STAT_TEXT) };

/**
 * kxfer_stat_add() - count
 * @id: of the counter
 * @value: to add; negative only for gauges
 */
void kxfer_stat_add(enum kxfer_stat id, s64 value)
{
	s64 now = atomic64_add_return(value, &counters[id].value);

	WARN_ONCE(value < 0 && now < 0, "kxfer: counter %s fell to %lld\n",
		  texts[id].name, now);
}

/**
 * kxfer_stat_read() - the value of a counter as of now
 * @id: of the counter
 *
 * Return: its value.
 */
u64 kxfer_stat_read(enum kxfer_stat id)
{
	return atomic64_read(&counters[id].value);
}

/**
 * kxfer_stat_name() - what a counter is called
 * @id: of the counter
 *
 * Return: its name, shorter than 48 characters.
 */
const char *kxfer_stat_name(enum kxfer_stat id)
{
	return texts[id].name;
}

/**
 * kxfer_stat_meaning() - what a counter counts, in words
 * @id: of the counter
 *
 * Return: half a sentence.
 */
const char *kxfer_stat_meaning(enum kxfer_stat id)
{
	return texts[id].meaning;
}
