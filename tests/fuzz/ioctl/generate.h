/* SPDX-License-Identifier: MIT */
/* Generate: new sequences, and new ones of old ones. */
#ifndef KXFER_FUZZ_GENERATE_H
#define KXFER_FUZZ_GENERATE_H

#include "op.h"
#include "random.h"

/**
 * struct generate_options - what a sequence may hold
 * @nr_threads: 1: the order of its ops is the order in which they run
 * @unplug_one_in: sequences that remove the device; 0: none
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
