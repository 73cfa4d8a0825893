/* SPDX-License-Identifier: MIT */
/* Generate: new sequences, and mutations of old ones. */
#ifndef KXFER_FUZZ_GENERATE_H
#define KXFER_FUZZ_GENERATE_H

#include "op.h"
#include "random.h"

/**
 * struct generate_options - what a sequence may contain
 * @nr_threads: number of threads; with 1 the ops run in their order in the sequence
 * @unplug_one_in: one in so many sequences removes the device; 0: none
 */
struct generate_options {
	uint32_t nr_threads;
	uint32_t unplug_one_in;
};

void generate(struct random *random, const struct generate_options *options,
	      struct sequence *sequence);
void mutate(struct random *random, const struct generate_options *options,
	    const struct sequence *parent, const struct sequence *other,
	    struct sequence *child);

#endif /* KXFER_FUZZ_GENERATE_H */
