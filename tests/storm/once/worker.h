/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workers of tests/storm/once.c:
 *
 *	worker	a process with a session of its own; its part of the one export and of
 *		its own memory is nobody else's
 *	number	of a job, counted by its worker from 0: the user_data is worker, slot
 *		and number, and the bytes that it moves tell worker, number and place
 *	slot	where a job in flight is remembered
 *	tide	what a session does between opening its target and losing it. What a
 *		WRITE that failed did is unknown, and when: so each tide is in the other
 *		half of the worker's part of the export
 *	mail	messages that a worker sends to a mailbox of its own: the immediate is the
 *		number, and each that was stored comes once, whole and in order
 *
 * Memory of jobs in flight does not overlap, and is used again when they have ended.
 * The odd workers have a completion ring, shorter than what they would have in flight.
 */
#ifndef KXFER_ONCE_WORKER_H
#define KXFER_ONCE_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rig.h"
#include "ring.h"

#define NR_WORKERS	8
#define DEPTH		256		/* jobs of a worker in flight */
#define NUMBERS		(1u << 25)	/* jobs of a worker: what pattern_of() can tell apart */
#define ROOM		(2u << 20)	/* bytes that jobs up to SHORT share, and those beyond */
#define SPACE		(2 * ROOM)	/* of a worker's memory, and of each half of its part */
#define MARGIN		16		/* bytes before and behind a job that stay as they are */
#define LONG		(1u << 20)	/* bytes of the longest job */
#define STUCK_MS	60000		/* without any, with jobs in flight */
#define BACK_MS		60000		/* device, listener, connection and target */

#define MAIL_PLACES	32		/* RECVs of a worker that wait */
#define MAIL_MAX	20000		/* bytes of the longest message */
#define MAIL_PLACE	(sizeof(struct kxfer_message) + MAIL_MAX)

#define LLU(x)		((unsigned long long)(x))

/**
 * struct count - what a worker has done
 * @accepted: jobs, of each enum kxfer_op
 * @verified: READs and WRITEs that moved what they should
 * @bytes: of these
 * @failed: jobs that ended with an error
 * @refused: jobs that SUBMIT did not accept
 * @messages: that came as they were sent
 * @long_messages: of these, that were not copied
 * @full: SENDs that found the mailbox full
 * @tides: see above
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
 * struct shared - what all processes see
 * @stop: workers are to end
 * @nr_faults: things that must not be; the first is in @fault
 * @nr_begun: breaks begun
 * @nr_over: breaks over
 * @over_ns: when the last was
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
 * @number: of it
 * @op: enum kxfer_op
 * @length: bytes; 0: none, or a NOP
 * @here: offset in the worker's memory, 0 to SPACE - 1
 * @there: likewise, in the half of its part of the export
 * @half: 0 or 1
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
 * struct mail - a worker's mailbox and the session that has it
 * @bytes: MAIL_PLACES places of RECVs, in turn
 * @ends: what became of the message of each number
 * @posted: RECVs submitted
 * @taken: messages taken from them, in order
 * @arrived: bytes that the RECV of a place has brought; 0: it waits, or they were taken
 * @nr_cancelled: RECVs that got none
 * @least: number that what arrives next has at least
 * @least_ns: when the one before that number arrived
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
 * @budget: jobs that it is to have accepted; the last batch may go beyond
 * @free: slots that are free, the first @nr_free
 * @opened_ns: when it began to open its target
 * @opened_begun: breaks begun then
 * @moved_ns: when a completion came last, or the first job of all in flight went
 * @broken: a job of this tide has failed
 */
struct worker {
	uint32_t id;
	unsigned int seed;
	struct shared *shared;
	struct count *count;
	const struct rig *server;
	struct kx_ring ring;
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

/* Something that must not be; all workers end, the first is told. */
void worker_fault(struct shared *shared, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* In a process of its own, with the options' random numbers; at least @budget jobs. */
void worker_run(uint32_t id, unsigned int seed, uint64_t budget, struct shared *shared,
		const struct rig *server) __attribute__((noreturn));

/* Where a job's bytes are in the export. */
uint64_t bytes_there(const struct worker *worker, const struct slot *slot);
/* Fill the source, and what surrounds the sink. */
void bytes_prepare(const struct worker *worker, const struct slot *slot);
/* Of a job that ended well: look at both. */
void bytes_verify(struct worker *worker, const struct slot *slot);
/* Are these what the SEND of that number has sent? */
bool bytes_of_message(const struct worker *worker, uint32_t number, const uint8_t *bytes);

/* Of a SEND: mail.c. */
uint32_t mail_length(uint32_t number);
int mail_open(struct worker *worker);
/* Submit RECVs for places that are free, and look at messages that have come. */
void mail_take(struct worker *worker);
/* A SEND of the worker's has ended. */
void mail_sent(struct worker *worker, uint32_t number, int status);
/* All SENDs have ended: is everything there? */
void mail_end(struct worker *worker);

#endif /* KXFER_ONCE_WORKER_H */
