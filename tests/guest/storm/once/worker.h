/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workers of tests/guest/storm/once.c:
 *
 *	worker	a process with a session of its own; only it uses its part of the
 *		export and its own memory
 *	number	number of a job, counted by its worker from 0: the user_data is worker,
 *		slot and number, and the moved bytes encode worker, number and place
 *	slot	where a job in flight is remembered
 *	tide	the time of a session from the opening of its target to its loss. It is
 *		unknown whether and when a failed WRITE changes memory, so each tide is
 *		in the other half of the worker's part of the export
 *	mail	messages that a worker sends to a mailbox of its own: the immediate is the
 *		number, and each stored message comes once, whole and in order
 *
 * Memory of jobs in flight does not overlap, and is used again when they have ended.
 * The odd workers have a completion ring, shorter than the jobs that others have in flight, and
 * hand in half of their jobs by a submission ring.
 */
#ifndef KXFER_ONCE_WORKER_H
#define KXFER_ONCE_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rigs/rig.h"
#include "rigs/ring.h"

#define NR_WORKERS	8
#define DEPTH		256		/* jobs of a worker in flight */
#define NUMBERS		(1u << 25)	/* jobs of a worker: what pattern_of() can distinguish */
#define ROOM		(2u << 20)	/* bytes for jobs up to SHORT, and bytes for longer jobs */
#define SPACE		(2 * ROOM)	/* of a worker's memory, and of each half of its part */
#define MARGIN		16		/* bytes before and after a job that must not change */
#define LONG		(1u << 20)	/* bytes of the longest job */
#define STUCK_MS	60000		/* time without a completion, with jobs in flight */
#define BACK_MS		60000		/* for device, listener, connection and target */

#define MAIL_PLACES	32		/* waiting RECVs of a worker */
#define MAIL_MAX	20000		/* bytes of the longest message */
#define MAIL_PLACE	(sizeof(struct kxfer_message) + MAIL_MAX)

#define LLU(x)		((unsigned long long)(x))

/**
 * struct count - counts of a worker
 * @accepted: accepted jobs, by enum kxfer_op
 * @verified: READs and WRITEs with correct data
 * @bytes: bytes of the verified jobs
 * @failed: jobs that ended with an error
 * @refused: jobs that SUBMIT did not accept
 * @messages: messages that arrived as they were sent
 * @long_messages: messages among them that were not copied
 * @full: SENDs that found the mailbox full
 * @tides: tides, see above
 */
struct count {
	uint64_t accepted[KXFER_OP_RECV + 1];
	uint64_t verified;
	uint64_t bytes;
	uint64_t failed;
	uint64_t refused;
	uint64_t messages;
	uint64_t long_messages;
	uint64_t full;
	uint64_t tides;
};

/**
 * struct shared - memory shared by all processes
 * @stop: tells the workers to end
 * @nr_faults: number of faults; the first is in @fault
 * @nr_begun: number of breaks that have begun
 * @nr_over: number of breaks that are over
 * @over_ns: end of the last break
 */
struct shared {
	atomic_bool stop;
	atomic_uint nr_faults;
	atomic_uint nr_begun;
	atomic_uint nr_over;
	atomic_uint_fast64_t over_ns;
	struct count counts[NR_WORKERS];
	char fault[1024];
};

enum state { UNUSED, ACCEPTED, REFUSED, ENDED };

/**
 * struct slot - a job in flight
 * @number: number of the job
 * @op: enum kxfer_op
 * @length: bytes; 0: no job, or a NOP
 * @here: offset in the worker's memory, 0 to SPACE - 1
 * @there: offset in the half of its part of the export, 0 to SPACE - 1
 * @half: half of the part, 0 or 1
 */
struct slot {
	uint32_t number;
	uint32_t op;
	uint32_t length;
	uint32_t here;
	uint32_t there;
	uint32_t half;
};

/**
 * struct mail - a worker's mailbox and its session
 * @bytes: MAIL_PLACES places for RECVs, used in turn
 * @ends: result of each message, by number
 * @posted: number of submitted RECVs
 * @taken: number of messages taken from RECVs, in order
 * @arrived: bytes stored by the RECV of each place; 0: the RECV waits, or they were taken
 * @nr_cancelled: RECVs without a message
 * @least: smallest possible number of the next message
 * @least_ns: arrival of the message before @least
 */
struct mail {
	int fd;
	char name[32];
	uint8_t *bytes;
	uint8_t *ends;
	uint32_t region;
	uint32_t mailbox;
	uint32_t posted;
	uint32_t taken;
	uint64_t arrived[MAIL_PLACES];
	uint32_t nr_cancelled;
	uint32_t least;
	uint64_t least_ns;
};

/**
 * struct worker - one process
 * @states: enum state of each number
 * @next: number of the next job
 * @budget: jobs to be accepted; the last batch may exceed it
 * @free: free slots, the first @nr_free entries
 * @opened_ns: time when the opening of its target began
 * @opened_begun: breaks that had begun by then
 * @moved_ns: time of the last completion, or of the first submission into an idle session
 * @broken: whether a job of this tide has failed
 */
struct worker {
	uint32_t id;
	unsigned int seed;
	struct shared *shared;
	struct count *count;
	const struct rig *server;
	struct kx_ring ring;
	struct kx_sq sq;
	struct slot slots[DEPTH];
	uint16_t free[DEPTH];
	uint32_t nr_free;
	uint8_t *states;
	uint32_t next;
	uint64_t budget;
	uint8_t *here;
	int fd;
	uint32_t region;
	uint32_t peer;
	uint32_t target;
	struct mail mail;
	uint32_t mail_target;
	uint32_t half;
	uint32_t opened_begun;
	uint64_t opened_ns;
	uint64_t moved_ns;
	bool broken;
};

/* Records a fault; all workers end, and the first fault is reported. */
void worker_fault(struct shared *shared, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Runs in a separate process, with random numbers from @seed; at least @budget jobs. */
void worker_run(uint32_t id, unsigned int seed, uint64_t budget, struct shared *shared,
		const struct rig *server) __attribute__((noreturn));

/* Offset of a job's bytes in the export. */
uint64_t bytes_there(const struct worker *worker, const struct slot *slot);
/* Fills the source, and the surroundings of the sink. */
void bytes_prepare(const struct worker *worker, const struct slot *slot);
/* Checks source and sink of a successful job. */
void bytes_verify(struct worker *worker, const struct slot *slot);
/* Whether these are the bytes of the SEND with that number. */
bool bytes_of_message(const struct worker *worker, uint32_t number, const uint8_t *bytes);

/* ---- messages: mail.c ---- */
uint32_t mail_length(uint32_t number);
int mail_open(struct worker *worker);
/* Submits RECVs for free places, and checks messages that have come. */
void mail_take(struct worker *worker);
/* Handles the end of a SEND of the worker. */
void mail_sent(struct worker *worker, uint32_t number, int status);
/* All SENDs have ended: checks that every message has come. */
void mail_end(struct worker *worker);

#endif /* KXFER_ONCE_WORKER_H */
