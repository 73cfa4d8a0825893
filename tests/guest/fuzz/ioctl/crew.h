/* SPDX-License-Identifier: MIT */
/*
 * Crew: the threads that run a sequence, and one that watches them.
 *
 * Each thread does the ops with its number, in order; at SYNC all threads wait for each other.
 * The watching thread sends a signal to a thread that waits for long, changes page tables at
 * random while several threads run, and ends the program when a call does not return at all.
 */
#ifndef KXFER_FUZZ_CREW_H
#define KXFER_FUZZ_CREW_H

#include <stdint.h>

#include "op.h"

int crew_start(uint32_t nr_threads, uint64_t seed);
void crew_respond(void);
void crew_hush(void);
void crew_run(const struct sequence *sequence);

#endif /* KXFER_FUZZ_CREW_H */
