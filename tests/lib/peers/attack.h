/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attacks on the wire: hostile peers in user space that follow the protocol closely enough to
 * reach the handlers. A seed determines everything that they do.
 *
 *	invader		an initiator that connects to the module's listener
 *	ambusher	a server that attacks the module when the module connects
 *
 * An attacker is a separate process, so that it can vanish in any way. It shares struct attack
 * with the test: the target, counts of what was done, and faults of the module that it found.
 * Most messages are well formed and only their content is hostile, because a message that
 * breaks the protocol costs the link.
 */
#ifndef KXFER_TEST_ATTACK_H
#define KXFER_TEST_ATTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kmod/base/wire.h"

/* ---- dice: numbers that a seed determines ---- */

struct dice {
	uint64_t state;
};

uint64_t dice_roll(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t limit);
bool dice_chance(struct dice *dice, uint32_t per_mille);
/* A number as attackers like them: small, huge, or next to a power of two. */
uint64_t dice_odd(struct dice *dice);
void dice_fill(struct dice *dice, void *memory, uint32_t length);

/* ---- shared by the processes ---- */

#define ATTACK_OPEN	"fuzz-open"	/* for every uid, all rights */
#define ATTACK_READ	"fuzz-read"	/* for every uid, to read */
#define ATTACK_MAILBOX	"fuzz-mailbox"	/* for every uid */
#define ATTACK_FOREIGN	"fuzz-foreign"	/* for ATTACK_FRIEND only */
#define ATTACK_CLOSED	"fuzz-closed"	/* for no uid */
#define ATTACK_MAIL_NAME "mail"		/* mailbox of an ambusher, to which victims SEND */
#define ATTACK_FRIEND	4242		/* uid that no attacker claims */

#define ATTACK_SECRET	0xe7	/* fills memory that no attacker may reach */
#define ATTACK_MARK	0x5a	/* bytes that attackers write */

/**
 * struct attack - shared by the test and its attackers
 * @port: port of the module's listener
 * @open_port: port of a listener that accepts any source port
 * @ambush_port: port that ambushers listen on
 * @foreign: key of ATTACK_FOREIGN on another link
 * @read_key: key of ATTACK_READ on another link
 * @nr_messages: SENDs posted
 * @nr_answers: well-formed answers from the module
 * @nr_connections: connection attempts
 * @nr_established: successful connection attempts
 * @nr_rdma: READs, WRITEs and atomics posted
 * @nr_offered: OFFERs that ambushers received
 * @nr_fetched: FETCHEDs that they sent, for offered and other ids
 * @nr_friendly: SENDs of a well-behaved peer
 * @nr_vanished: attackers that ended without a disconnect
 * @nr_honest: steps of the honest pair
 * @honest_ms: longest step of the honest pair
 * @close_ms: longest close() of an honest session or of a victim
 * @nr_faults: faults of the module
 * @fault: description of the first fault
 */
struct attack {
	uint16_t port;
	uint16_t open_port;
	uint16_t ambush_port;
	struct kxfer_wire_key foreign;
	struct kxfer_wire_key read_key;
	_Atomic uint64_t nr_messages;
	_Atomic uint64_t nr_answers;
	_Atomic uint64_t nr_connections;
	_Atomic uint64_t nr_established;
	_Atomic uint64_t nr_rdma;
	_Atomic uint64_t nr_offered;
	_Atomic uint64_t nr_fetched;
	_Atomic uint64_t nr_friendly;
	_Atomic uint64_t nr_vanished;
	_Atomic uint64_t nr_honest;
	_Atomic uint64_t honest_ms;
	_Atomic uint64_t close_ms;
	_Atomic uint32_t nr_faults;
	char fault[256];
};

struct attack *attack_alloc(void);
void attack_free(struct attack *attack);
void attack_fault(struct attack *attack, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Ends this process like a crash, or stops it. */
void attack_vanish(struct attack *attack, struct dice *dice);
/* Whether memory holds a piece of the secret, which attackers may not see. */
bool attack_secret_in(const uint8_t *memory, uint32_t length);

/* Attacks until about @nr_messages were sent; may not return. */
void invader_run(struct attack *attack, uint64_t seed, uint32_t nr_messages);
/* Attacks for @ms; may not return. */
void ambusher_run(struct attack *attack, uint64_t seed, uint32_t ms);
/* Responds slowly for @ms. */
void laggard_run(struct attack *attack, uint64_t seed, uint32_t ms);

#endif /* KXFER_TEST_ATTACK_H */
