/* SPDX-License-Identifier: MIT */
/* Call: makes a system call from an op. */
#ifndef KXFER_FUZZ_CALL_H
#define KXFER_FUZZ_CALL_H

#include <stdint.h>

#include <linux/kxfer.h>

#include "op.h"
#include "random.h"

#define CALL_JOBS	256
#define CALL_STRIDE	256
#define CALL_ROOM	(8u << 20)	/* no flipped bit makes a call return more than this */

/**
 * struct actor - a thread that makes calls
 * @random: random numbers of the current op
 * @jobs: room for an input array of a call
 * @room: room for the results of a call
 * @child: whether its process will be killed, so that the result of its last call is unknown
 * @now: number of the current op, from 1; 0: none
 * @since_ns: start of the current op
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
