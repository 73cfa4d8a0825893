/* SPDX-License-Identifier: MIT */
/* Call: an op becomes a system call. */
#ifndef KXFER_FUZZ_CALL_H
#define KXFER_FUZZ_CALL_H

#include <stdint.h>

#include <linux/kxfer.h>

#include "op.h"
#include "random.h"

#define CALL_JOBS	256
#define CALL_STRIDE	256
#define CALL_ROOM	(8u << 20)	/* no flipped bit makes a call give back more */

/**
 * struct actor - a thread that calls
 * @random: of the op that is being done
 * @jobs: room for an array that a call takes
 * @room: for what a call gives back
 * @child: in a process that will be killed: nobody sees what its last call did
 * @now: number of the op, from 1; 0: none
 * @since_ns: when it began
 */
struct actor {
	struct random random;
	uint8_t jobs[CALL_JOBS * CALL_STRIDE];
	uint8_t *room;
	bool child;
	_Atomic uint32_t now;
	_Atomic uint64_t since_ns;
};

int call_prepare(struct actor *actor, uint32_t nr);
void call_do(struct actor *actor, const struct op *op);

#endif /* KXFER_FUZZ_CALL_H */
