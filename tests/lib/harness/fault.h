/* SPDX-License-Identifier: MIT */
/*
 * Faults: the injected failures of kmod/base/fault.h, by debugfs. FAULT_NTH is a site name too:
 * it stands for failures of the kernel itself in the calls of this task, by
 * /proc/self/fail-nth.
 */
#ifndef KXFER_TEST_FAULT_H
#define KXFER_TEST_FAULT_H

#include <stdbool.h>

#define FAULT_NTH	"fail-nth"
#define DELAY_NAME_MAX	32	/* bytes of a site's name, including the final 0 */

/**
 * struct fault_counts - counts of a site, since fault_reset() and the first fault_arm()
 * @hits: number of passes
 * @injected: number of passes that failed
 * @left: hits until the next failure, or 0
 */
struct fault_counts {
	int hits;
	int injected;
	int left;
};

/**
 * struct delay_counts - counts of a site that can delay
 * @hits: number of passes
 * @delayed: number of passes that were delayed
 * @now: tasks that are being delayed at the moment
 * @ms: delay of the next hit, or 0
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
