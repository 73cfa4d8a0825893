/* SPDX-License-Identifier: MIT */
/*
 * A second address of the test machine, which can fall silent: packets for it are dropped without
 * an answer.
 *
 * rxe passes packets for its own addresses on without the network stack, so the address is deleted.
 * siw's TCP runs over lo, where nft drops it.
 */
#ifndef KXFER_TEST_SECOND_H
#define KXFER_TEST_SECOND_H

#include <stdbool.h>

#define SECOND_ADDRESS	"10.77.0.2"

/* Whether the tester may change the network, and it is that of the test machine. */
bool second_available(void);
/* Adds the address, or ends its silence. Return: 0, or the status of ip(8). */
int second_add(void);
/* Return: 0, or the status of the command that failed. */
int second_silence(void);
void second_remove(void);

#endif /* KXFER_TEST_SECOND_H */
