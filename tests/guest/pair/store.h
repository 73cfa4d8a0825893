/* SPDX-License-Identifier: GPL-2.0 */
/* What store keeps, and probe looks at from another machine. */
#ifndef KXFER_PAIR_STORE_H
#define KXFER_PAIR_STORE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/kxfer.h>

#define STORE_NAME	"store"
#define STORE_INBOX	"inbox"
#define STORE_SLOTS	64
#define STORE_SLOT	4096		/* bytes; one job writes or reads all of them */
#define STORE_NUMBERS	(1u << 21)	/* of each series, that can be told apart */
#define STORE_INBOX_MAX	256		/* messages that wait */

/** enum store_series - what comes with a number: 0 first, then the next higher one */
enum store_series {
	STORE_LETTERS,		/* messages to STORE_INBOX */
	STORE_NOTICES,		/* NOTIFYs; the cookie is the number */
	STORE_NR_SERIES,
};

/**
 * struct store - the memory that is exported as STORE_NAME
 * @id: differs for each process that exports it, and is never 0
 * @sum: what atomics add to
 * @reordered: numbers below that of one before
 * @slots: for WRITEs and READs
 * @counts: how often each number of a series has come
 */
struct store {
	uint64_t id;
	uint64_t sum;
	uint64_t reordered;
	uint8_t pad[4096 - 24];
	uint8_t slots[STORE_SLOTS][STORE_SLOT];
	uint8_t counts[STORE_NR_SERIES][STORE_NUMBERS];
};

/** struct letter - a message */
struct letter {
	uint64_t number;	/* below STORE_NUMBERS, and growing */
	uint8_t pad[56];
};

/* The name of an export among those of several stores of one machine. */
static inline void store_name(char name[KXFER_NAME_MAX + 1], const char *base)
{
	const char *store = getenv("KXFER_STORE");

	snprintf(name, KXFER_NAME_MAX + 1, "%s%s", base, store ? store : "");
}

#endif /* KXFER_PAIR_STORE_H */
