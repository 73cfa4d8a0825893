/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mix: jobs of all kinds between the two halves of a rig, and measuring runs, for storms.
 *
 * The jobs are READs and WRITEs of the export, atomics where the provider has them, and short
 * and long messages over the peer to a mailbox of the same session: each SEND has a RECV before
 * it. A run is short and of one of several kinds; it uses a dedicated connection if there is a
 * responder. The content of the bytes is not checked.
 */
#ifndef KXFER_TEST_MIX_H
#define KXFER_TEST_MIX_H

#include <stdatomic.h>

#include "rigs/rig.h"

enum mix_run {
	MIX_PLAIN,
	MIX_PACED,
	MIX_REGISTERED,		/* an MR for each operation */
	MIX_RW,			/* by rdma_rw */
	MIX_DEDICATED,		/* messages that the responder may answer */
	NR_MIX_RUNS
};

/**
 * struct mix_done - counts of successful operations, shared by several clients
 * @jobs: jobs, by enum kxfer_op
 * @long_messages: SENDs that were long
 * @runs: runs, by enum mix_run
 * @port: port of a responder; 0: none
 */
struct mix_done {
	atomic_uint jobs[KXFER_OP_RECV + 1];
	atomic_uint long_messages;
	atomic_uint runs[NR_MIX_RUNS];
	atomic_uint port;
};

/**
 * struct mix - state of a client
 * @rig: rig whose client half is open
 * @done: counts, or NULL
 * @seed: seed of rand_r()
 * @mailbox: export of the client's session
 * @target: target on @mailbox
 */
struct mix {
	const struct rig *rig;
	struct mix_done *done;
	unsigned int *seed;
	uint32_t mailbox;
	uint32_t target;
};

/* Needs @rig, @done and @seed. The mailbox ends with the session. Return: 0 or -errno */
int mix_open(struct mix *mix);
void mix_draw(const struct mix *mix, struct kxfer_job *jobs, uint32_t nr);
/* Counts completions. Return: whether all of them succeeded */
bool mix_count(const struct mix *mix, const struct kxfer_completion *done, uint32_t nr);
/* Return: 0 or -errno, which proves little while other users share the lane or objects end */
int mix_measure(const struct mix *mix);

/* Prints all counts in one line. */
const char *mix_tell(const struct mix_done *done);
/* The first kind without a successful operation, or NULL. */
const char *mix_lacks(const struct mix_done *done);

#endif /* KXFER_TEST_MIX_H */
