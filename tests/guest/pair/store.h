/* SPDX-License-Identifier: GPL-2.0 */
/* What store keeps, and probe looks at from another machine. */
#ifndef KXFER_PAIR_STORE_H
#define KXFER_PAIR_STORE_H

#include <stdint.h>

#define STORE_NAME	"store"
#define STORE_INBOX	"inbox"
#define STORE_SLOTS	64
#define STORE_SLOT	4096		/* bytes; one job writes or reads all of them */
#define STORE_LETTERS	(1u << 20)	/* messages that can be told apart */
#define STORE_INBOX_MAX	256		/* messages that wait */

/**
 * struct store - the memory that is exported as STORE_NAME
 * @id: differs for each process that exports it, and is never 0
 * @sum: what atomics add to
 * @reordered: messages with a number below that of one before
 * @slots: for WRITEs and READs
 * @letters: how often the message with a number has come
 */
struct store {
	uint64_t id;
	uint64_t sum;
	uint64_t reordered;
	uint8_t pad[4096 - 24];
	uint8_t slots[STORE_SLOTS][STORE_SLOT];
	uint8_t letters[STORE_LETTERS];
};

/** struct letter - a message */
struct letter {
	uint64_t number;	/* below STORE_LETTERS, and growing */
	uint8_t pad[56];
};

#endif /* KXFER_PAIR_STORE_H */
