/* SPDX-License-Identifier: MIT */
/*
 * Corpus: sequences that reached new code, for mutation; and how any sequence of a run is
 * reproduced.
 *
 * Sequence N is a function of the seed, N and, if it was mutated, of its two parents. The
 * program prints them before it runs a sequence:
 *
 *	# sequence N
 *	# sequence N of P and Q
 *
 * so its output is enough to reproduce a sequence that has killed the guest.
 */
#ifndef KXFER_FUZZ_CORPUS_H
#define KXFER_FUZZ_CORPUS_H

#include "generate.h"

#define CORPUS_MAX	512

/**
 * struct origin - inputs of a sequence
 * @number: number of the sequence, from 1
 * @parents: numbers of the parents, or 0
 */
struct origin {
	uint32_t number;
	uint32_t parents[2];
};

struct origin corpus_choose(uint64_t seed, uint32_t number);
void corpus_make(uint64_t seed, const struct generate_options *options,
		 const struct origin *origin, struct sequence *sequence);
int corpus_add(const struct origin *origin, const struct sequence *sequence);
uint32_t corpus_size(void);
int corpus_recall(uint64_t seed, const struct generate_options *options, const char *log,
		  uint32_t number, struct sequence *sequence);

#endif /* KXFER_FUZZ_CORPUS_H */
