/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mix: jobs of all kinds between the two halves of a rig, and measuring runs, for storms.
 *
 * Beside READs and WRITEs of the export there are atomics, where the provider has them, and
 * messages, short and long, to a mailbox of the same session, by way of the peer: a RECV
 * stands before each SEND. A run is short, and one of several kinds; on a dedicated
 * connection if there is a responder. What the bytes are is nobody's concern.
 */
#ifndef KXFER_TEST_MIX_H
#define KXFER_TEST_MIX_H

#include <stdatomic.h>

#include "rig.h"

enum mix_run {
	MIX_PLAIN,
	MIX_PACED,
	MIX_REGISTERED,		/* an MR for each operation */
	MIX_RW,			/* by rdma_rw */
	MIX_DEDICATED,		/* messages, which the responder may answer */
	NR_MIX_RUNS
};

/**
 * struct mix_done - what ended well, by all who share it
 * @jobs: by enum kxfer_op
 * @long_messages: of the SENDs
 * @runs: by enum mix_run
 * @port: of a responder; 0: there is none
 */
struct mix_done {
	atomic_uint jobs[KXFER_OP_RECV + 1];
	atomic_uint long_messages;
	atomic_uint runs[NR_MIX_RUNS];
	atomic_uint port;
};

/**
 * struct mix - of a client
 * @rig: with the client's half open
 * @done: or NULL
 * @seed: of rand_r()
 * @mailbox: export of the client's session
 * @target: on it
 */
struct mix {
	const struct rig *rig;
	struct mix_done *done;
	unsigned int *seed;
	uint32_t mailbox;
	uint32_t target;
};

/* With @rig, @done and @seed set. It ends with the session. Return: 0 or -errno */
int mix_open(struct mix *mix);
void mix_draw(const struct mix *mix, struct kxfer_job *jobs, uint32_t nr);
/* Count completions. Return: whether all of them say success */
bool mix_count(const struct mix *mix, const struct kxfer_completion *done, uint32_t nr);
/* Return: 0 or -errno, which says little while others use the lane or things go */
int mix_measure(const struct mix *mix);

/* All of it in one line. */
const char *mix_tell(const struct mix_done *done);
/* The first kind of which nothing ended well, or NULL. */
const char *mix_lacks(const struct mix_done *done);

#endif /* KXFER_TEST_MIX_H */
