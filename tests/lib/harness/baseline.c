// SPDX-License-Identifier: MIT
/*
 * Baseline: counters that must be as before when a test is over; see baseline.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness/baseline.h"

/** baseline_command() - run a shell command. Return: its exit status, or -1 */
int baseline_command(const char *format, ...)
{
	char command[512];
	va_list arguments;
	int status;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/**
 * baseline_netdev() - the network interface that a soft RDMA device is on
 *
 * Asks rdma(8), because sysfs does not show it for siw on 6.1. Return: whether there is one.
 */
bool baseline_netdev(const char *name, char *netdev, size_t room)
{
	char command[160];
	FILE *pipe;
	bool ok;

	snprintf(command, sizeof(command),
		 "rdma link show %s/1 | sed -n 's/.* netdev \\([^ ]*\\).*/\\1/p'", name);
	pipe = popen(command, "re");
	ok = pipe && fgets(netdev, room, pipe);
	if (pipe)
		pclose(pipe);
	netdev[strcspn(netdev, "\n")] = 0;
	return ok;
}

/** baseline_pinned_kib() - VmPin of this process */
long baseline_pinned_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static long vmstat(const char *name)
{
	FILE *file = fopen("/proc/vmstat", "re");
	char line[128], format[64];
	long value = 0;

	snprintf(format, sizeof(format), "%s %%ld", name);
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

/* The sum of the per-CPU counts is only exact after this. */
static long held_pins(void)
{
	FILE *file = fopen("/proc/sys/vm/stat_refresh", "we");

	if (file) {
		fputs("1\n", file);
		fclose(file);
	}
	return vmstat("nr_foll_pin_acquired") - vmstat("nr_foll_pin_released");
}

/* 0 where no bus counts mappings */
static long bus_mappings(void)
{
	FILE *file = fopen("/sys/kernel/debug/siw-dma/mappings", "re");
	long value = 0;

	if (file) {
		if (fscanf(file, "%ld", &value) != 1)
			value = -1;
		fclose(file);
	}
	return value;
}

static void read_resources(char *text, size_t room)
{
	FILE *file = popen("rdma resource show 2>/dev/null", "r");
	size_t n = file ? fread(text, 1, room - 1, file) : 0;

	text[n] = 0;
	if (file)
		pclose(file);
}

static int count_of(const char *resources, const char *kind)
{
	char key[16];
	const char *found;

	snprintf(key, sizeof(key), " %s ", kind);
	found = strstr(resources, key);
	return found ? atoi(found + strlen(key)) : 0;
}

/*
 * Fewer is fine: a link of an earlier test is closed after half a minute of idling, perhaps
 * now.
 */
static int more_resources(const char *now, const char *before)
{
	static const char *const kinds[] = { "pd", "cq", "qp", "cm_id", "mr", "ctx", "srq" };
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (count_of(now, kinds[i]) > count_of(before, kinds[i]))
			return 1;
	return 0;
}

/** baseline_take() - record the counters. Return: 0 or -errno */
int baseline_take(int fd, struct baseline *baseline)
{
	read_resources(baseline->resources, sizeof(baseline->resources));
	baseline->pinned_kib = baseline_pinned_kib();
	baseline->held_pins = held_pins();
	baseline->bus_mappings = bus_mappings();
	return kx_live_take(fd, &baseline->live);
}

/**
 * baseline_wait() - wait until no counter is higher than before
 * @fd: a session
 * @baseline: counters from before
 * @ms: longest time to wait
 *
 * Return: NULL, or a description of the difference.
 */
const char *baseline_wait(int fd, const struct baseline *baseline, uint32_t ms)
{
	static char text[1200];
	const char *difference = kx_live_wait(fd, &baseline->live, ms);
	char now[512];

	if (difference)
		return difference;
	if (baseline_pinned_kib() != baseline->pinned_kib) {
		snprintf(text, sizeof(text), "VmPin is %ld KiB, was %ld KiB",
			 baseline_pinned_kib(), baseline->pinned_kib);
		return text;
	}
	if (held_pins() > baseline->held_pins) {
		snprintf(text, sizeof(text), "%ld pages are pinned in the kernel, were %ld",
			 held_pins(), baseline->held_pins);
		return text;
	}
	/* Fewer is fine: links of earlier tests are closed meanwhile. */
	if (!kx_wait_until(bus_mappings() <= baseline->bus_mappings, 3000)) {
		snprintf(text, sizeof(text), "%ld mappings for DMA are there, were %ld",
			 bus_mappings(), baseline->bus_mappings);
		return text;
	}
	/* The rdma_cm id of an accepted connection may exist for a moment. */
	if (kx_wait_until((read_resources(now, sizeof(now)),
			   !more_resources(now, baseline->resources)), 3000))
		return NULL;
	snprintf(text, sizeof(text), "RDMA resources are\n%swere\n%s", now,
		 baseline->resources);
	return text;
}
