/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attacks on the wire: peers in user space that speak it well enough to be heard
 * and mean harm. All that they do follows from a seed.
 *
 *	invader		connects to the module's listener, as an initiator
 *	ambusher	listens, and attacks the module when that connects
 *
 * An attacker is a process of its own, so that it can vanish in any way. What it
 * shares with the test is struct attack: where to go, what has been done, and
 * what it found that must not be. Most messages are in order but for what they
 * say, for a message that breaks the protocol costs the link.
 */
#ifndef KXFER_TEST_ATTACK_H
#define KXFER_TEST_ATTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../kmod/base/wire.h"

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

/* ---- what the processes share ---- */

#define ATTACK_OPEN	"fuzz-open"	/* for everybody, all rights */
#define ATTACK_READ	"fuzz-read"	/* for everybody, to read */
#define ATTACK_MAILBOX	"fuzz-mailbox"	/* for everybody */
#define ATTACK_FOREIGN	"fuzz-foreign"	/* for ATTACK_FRIEND alone */
#define ATTACK_CLOSED	"fuzz-closed"	/* for nobody */
#define ATTACK_MAIL_NAME "mail"		/* of an ambusher: what victims SEND to */
#define ATTACK_FRIEND	4242		/* uid that no attacker claims to be */

#define ATTACK_SECRET	0xe7	/* fills memory that no attacker may reach */
#define ATTACK_MARK	0x5a	/* what attackers write */

/**
 * struct attack - shared by the test and its attackers
 * @port: of the module's listener
 * @open_port: of one that takes any source port
 * @ambush_port: where ambushers listen
 * @foreign: key of ATTACK_FOREIGN on another link
 * @read_key: key of ATTACK_READ on another link
 * @nr_messages: SENDs posted
 * @nr_answers: well-formed answers got from the module
 * @nr_connections: tried
 * @nr_established: of these
 * @nr_rdma: READs, WRITEs and atomics posted
 * @nr_offered: OFFERs that ambushers got
 * @nr_fetched: FETCHEDs that they sent, for these and for none
 * @nr_friendly: SENDs of a peer that means well
 * @nr_vanished: attackers that ended without goodbye
 * @nr_honest: steps of an honest pair
 * @honest_ms: the longest of them
 * @close_ms: the longest close() of an honest session or of a victim
 * @nr_faults: of the module
 * @fault: the first of them
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
/* Ends this process as a crash would, or worse. */
void attack_vanish(struct attack *attack, struct dice *dice);
/* Whether memory holds a piece of what attackers may not see. */
bool attack_secret_in(const uint8_t *memory, uint32_t length);

/* Attacks until about @nr_messages were sent; may not return. */
void invader_run(struct attack *attack, uint64_t seed, uint32_t nr_messages);
/* Attacks for @ms; may not return. */
void ambusher_run(struct attack *attack, uint64_t seed, uint32_t ms);
/* Is slow for @ms. */
void laggard_run(struct attack *attack, uint64_t seed, uint32_t ms);

#endif /* KXFER_TEST_ATTACK_H */
