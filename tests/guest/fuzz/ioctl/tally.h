/* SPDX-License-Identifier: MIT */
/* Tally: counts how calls of all threads and children ended, and whether they may end so. */
#ifndef KXFER_FUZZ_TALLY_H
#define KXFER_FUZZ_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

#include "op.h"

#define TALLY_ERRNO_MAX	140

struct tally {
	_Atomic uint64_t calls[OP_NR_CALLS];
	_Atomic uint64_t good[OP_NR_CALLS];
	_Atomic uint64_t errors[OP_NR_CALLS][TALLY_ERRNO_MAX];
	_Atomic uint64_t nops_accepted;
	_Atomic uint64_t long_messages;	/* successful SENDs of long messages, at least */
	_Atomic uint64_t dedicated;	/* successful runs on dedicated connections */
	_Atomic uint64_t unplugs;
	_Atomic uint64_t kills;
};

extern struct tally *tally;

int tally_make(void);
void tally_call(const struct op *op, int error);
uint64_t tally_calls(void);
uint64_t tally_good(void);
void tally_print(void);

#endif /* KXFER_FUZZ_TALLY_H */
