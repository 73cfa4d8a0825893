/* SPDX-License-Identifier: MIT */
/* Random numbers for the cases of tests/host/pure: the same in every run, in KUnit and gtest. */
#ifndef KXFER_PURE_RANDOM_H
#define KXFER_PURE_RANDOM_H

#include <linux/types.h>

/* One step of splitmix64. */
static inline u64 next_random(u64 *state)
{
	u64 word = *state += 0x9e3779b97f4a7c15ULL;

	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
	return word ^ word >> 31;
}

/* From 0 to end - 1. */
static inline u64 random_below(u64 *state, u64 end)
{
	return next_random(state) % end;
}

#endif /* KXFER_PURE_RANDOM_H */
