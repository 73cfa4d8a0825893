/* SPDX-License-Identifier: MIT */
/* Random: numbers that depend only on their seed. */
#ifndef KXFER_FUZZ_RANDOM_H
#define KXFER_FUZZ_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 to @end - 1 */
static inline uint32_t random_below(struct random *random, uint32_t end)
{
	return (random_next(random) >> 32) * end >> 32;
}

static inline bool random_one_in(struct random *random, uint32_t n)
{
	return !random_below(random, n);
}

/* A separate stream for the @n-th user of a seed. */
static inline struct random random_of(uint64_t seed, uint64_t n)
{
	struct random random = { seed ^ n * 0xd1342543de82ef95ull };

	random_next(&random);
	return random;
}

#endif /* KXFER_FUZZ_RANDOM_H */
