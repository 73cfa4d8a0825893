// SPDX-License-Identifier: MIT
/*
 * Faults: injected failures of the module; see fault.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/fault.h"

#define FAULT_DIR	"/sys/kernel/debug/kxfer/fault"
#define DELAY_DIR	"/sys/kernel/debug/kxfer/delay"

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

/** fault_available() - whether the module's fault sites can be reached */
bool fault_available(void)
{
	return !access(FAULT_DIR "/reset", W_OK);
}

/* The fail-nth file of the task that armed it, and its count of failures. */
static struct {
	int fd;
	pid_t task;
	struct fault_counts counts;
} fail_nth = { .fd = -1 };

static int open_fail_nth(void)
{
	pid_t task = syscall(SYS_gettid);
	char path[64];

	if (fail_nth.task == task)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/fail-nth", task);
	fail_nth.fd = open(path, O_RDWR | O_CLOEXEC);
	if (fail_nth.fd < 0)
		return -errno;
	fail_nth.task = task;
	return 0;
}

/*
 * The read or write of fail-nth itself may be what fails. Then no failure was injected before
 * it.
 */
static void disarm_fail_nth(void)
{
	char left[16] = "";
	bool injected;

	injected = pread(fail_nth.fd, left, sizeof(left) - 1, 0) == 2 && left[0] == '0';
	while (pwrite(fail_nth.fd, "0", 1, 0) < 0 && errno == EFAULT)
		injected = false;
	fail_nth.counts.injected += injected && fail_nth.counts.left;
	fail_nth.counts.left = 0;
}

static int arm_fail_nth(unsigned int nth)
{
	char text[16];
	int n, ret = open_fail_nth();

	if (ret)
		return ret;
	if (!nth) {
		disarm_fail_nth();
		return 0;
	}
	fail_nth.counts.left = nth;
	n = snprintf(text, sizeof(text), "%u", nth);
	return pwrite(fail_nth.fd, text, n, 0) == n ? 0 : -errno;
}

/** fault_arm() - make the nth hit of a site fail, once; 0: none. Return: 0 or -errno */
int fault_arm(const char *site, unsigned int nth)
{
	if (!strcmp(site, FAULT_NTH))
		return arm_fail_nth(nth);
	return write_number(site, nth);
}

/** fault_reset() - disarm all sites, clear all counts, stop counting. Return: 0 or -errno */
int fault_reset(void)
{
	return write_number("reset", 1);
}

/** fault_counts() - read the counts of a site. Return: 0 or -errno */
int fault_counts(const char *site, struct fault_counts *counts)
{
	char path[128];
	FILE *file;
	int n;

	if (!strcmp(site, FAULT_NTH)) {
		*counts = fail_nth.counts;
		return 0;
	}
	snprintf(path, sizeof(path), FAULT_DIR "/%s", site);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fscanf(file, "%d %d %d", &counts->hits, &counts->injected, &counts->left);
	fclose(file);
	return n == 3 ? 0 : -EIO;
}

/** delay_arm() - delay @count hits (0: all) of a site by @ms (0: no delay). Return: 0 or -errno */
int delay_arm(const char *site, unsigned int ms, unsigned int count)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), DELAY_DIR "/%s", site);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file, "%u %u\n", ms, count);
	return fclose(file) ? -errno : 0;
}

/** delay_counts() - read the counts of a site that can delay. Return: 0 or -errno */
int delay_counts(const char *site, struct delay_counts *counts)
{
	char path[128];
	FILE *file;
	int n;

	snprintf(path, sizeof(path), DELAY_DIR "/%s", site);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fscanf(file, "%d %d %d %u", &counts->hits, &counts->delayed, &counts->now,
		   &counts->ms);
	fclose(file);
	return n == 4 ? 0 : -EIO;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/** delay_sites() - names of the sites that can delay. Return: number of sites, or -errno */
int delay_sites(char names[][DELAY_NAME_MAX], int nr)
{
	DIR *dir = opendir(DELAY_DIR);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return -errno;
	while (n < nr && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(names[n++], DELAY_NAME_MAX, "%.*s", DELAY_NAME_MAX - 1,
				 entry->d_name);
	closedir(dir);
	qsort(names, n, DELAY_NAME_MAX, by_name);
	return n;
}
