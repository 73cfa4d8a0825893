/* SPDX-License-Identifier: MIT */
/*
 * Faults: the failures on purpose of kmod/base/fault.h, by debugfs; and under the name
 * FAULT_NTH, as if it were a site, those of the kernel itself in the calls of this task,
 * by /proc/self/fail-nth.
 */
#ifndef KXFER_TEST_FAULT_H
#define KXFER_TEST_FAULT_H

#include <stdbool.h>

#define FAULT_NTH	"fail-nth"
#define DELAY_NAME_MAX	32	/* bytes of a site's name, the 0 at its end included */

/**
 * struct fault_counts - of a site, since fault_reset() and the first fault_arm()
 * @hits: how often it was passed
 * @injected: how many of those failed
 * @left: hits until the next one that fails, or 0
 */
struct fault_counts {
	int hits;
	int injected;
	int left;
};

/**
 * struct delay_counts - of a site that can delay
 * @hits: how often it was passed
 * @delayed: how many of those were delayed
 * @now: tasks that are being delayed
 * @ms: how long the next hit is, or 0
 */
struct delay_counts {
	int hits;
	int delayed;
	int now;
	unsigned int ms;
};

bool fault_available(void);
int fault_arm(const char *site, unsigned int nth);
int fault_counts(const char *site, struct fault_counts *counts);
int fault_reset(void);
int delay_arm(const char *site, unsigned int ms, unsigned int count);
int delay_counts(const char *site, struct delay_counts *counts);
int delay_sites(char names[][DELAY_NAME_MAX], int nr);

#endif /* KXFER_TEST_FAULT_H */
