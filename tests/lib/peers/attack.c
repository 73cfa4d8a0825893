// SPDX-License-Identifier: GPL-2.0
/*
 * Shared by all attackers; see attack.h.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peers/attack.h"

#define SECRET_RUN	8	/* bytes of the secret that do not match by chance */

/** dice_roll() - splitmix64 */
uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint32_t dice_below(struct dice *dice, uint32_t limit)
{
	return (dice_roll(dice) >> 32) * limit >> 32;
}

bool dice_chance(struct dice *dice, uint32_t per_mille)
{
	return dice_below(dice, 1000) < per_mille;
}

uint64_t dice_odd(struct dice *dice)
{
	uint64_t power = 1ull << dice_below(dice, 64);

	switch (dice_below(dice, 6)) {
	case 0:
		return 0;
	case 1:
		return dice_below(dice, 32);
	case 2:
		return power - 1;
	case 3:
		return power + dice_below(dice, 2);
	case 4:
		return UINT64_MAX - dice_below(dice, 3);
	default:
		return dice_roll(dice);
	}
}

void dice_fill(struct dice *dice, void *memory, uint32_t length)
{
	uint8_t *bytes = memory;

	while (length--)
		*bytes++ = dice_roll(dice);
}

struct attack *attack_alloc(void)
{
	struct attack *attack = mmap(NULL, sizeof(*attack), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return attack == MAP_FAILED ? NULL : attack;
}

void attack_free(struct attack *attack)
{
	munmap(attack, sizeof(*attack));
}

void attack_fault(struct attack *attack, const char *format, ...)
{
	va_list arguments;

	if (atomic_fetch_add(&attack->nr_faults, 1))
		return;
	va_start(arguments, format);
	vsnprintf(attack->fault, sizeof(attack->fault), format, arguments);
	va_end(arguments);
}

/*
 * A stopped process keeps its QPs: its device still acknowledges, but the process does not
 * answer.
 */
void attack_vanish(struct attack *attack, struct dice *dice)
{
	atomic_fetch_add(&attack->nr_vanished, 1);
	if (dice_chance(dice, 200))
		raise(SIGSTOP);
	if (dice_chance(dice, 500))
		raise(SIGKILL);
	_exit(0);
}

bool attack_secret_in(const uint8_t *memory, uint32_t length)
{
	uint32_t run = 0, i;

	for (i = 0; i < length && run < SECRET_RUN; i++)
		run = memory[i] == ATTACK_SECRET ? run + 1 : 0;
	return run == SECRET_RUN;
}
