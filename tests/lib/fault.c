// SPDX-License-Identifier: MIT
/*
 * Faults: the failures on purpose of the module; see fault.h.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "fault.h"

#define FAULT_DIR	"/sys/kernel/debug/kxfer/fault"

static int write_number(const char *name, unsigned int number)
{
	char path[128];
	FILE *file;
	int ret;

	snprintf(path, sizeof(path), FAULT_DIR "/%s", name);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file, "%u\n", number);
	ret = fclose(file);
	return ret ? -errno : 0;
}

/** fault_available() - whether the module's sites can be reached */
bool fault_available(void)
{
	return !access(FAULT_DIR "/reset", W_OK);
}

/** fault_arm() - let the nth hit of a site fail, once; 0: none. Return: 0 or -errno */
int fault_arm(const char *site, unsigned int nth)
{
	return write_number(site, nth);
}

/** fault_reset() - disarm all, forget all counts, count no more. Return: 0 or -errno */
int fault_reset(void)
{
	return write_number("reset", 1);
}

/** fault_counts() - of a site. Return: 0 or -errno */
int fault_counts(const char *site, struct fault_counts *counts)
{
	char path[128];
	FILE *file;
	int n;

	snprintf(path, sizeof(path), FAULT_DIR "/%s", site);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fscanf(file, "%d %d %d", &counts->hits, &counts->injected, &counts->left);
	fclose(file);
	return n == 3 ? 0 : -EIO;
}
