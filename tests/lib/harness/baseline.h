/* SPDX-License-Identifier: MIT */
/*
 * Baseline: counters that must be as before when a test is over. They are all live_* counters
 * of the module, the counts of `rdma resource show` (QPs, CQs, PDs, MRs, ids of rdma_cm), the
 * memory that this process has pinned, and the outstanding pins of the whole kernel (FOLL_PIN);
 * on siw-dma (tests/guest/dma) also the DMA mappings.
 *
 * A link stays up for a while after its last user. So a test opens and closes a first rig, and
 * takes the baseline while that link is up.
 */
#ifndef KXFER_TEST_BASELINE_H
#define KXFER_TEST_BASELINE_H

#include "harness/kxfer_test.h"

#define BASELINE_WAIT_MS	20000	/* longer than a silent peer can hold anything */

struct baseline {
	struct kx_live live;
	char resources[512];
	long pinned_kib;
	long held_pins;
	long bus_mappings;
};

int baseline_take(int fd, struct baseline *baseline);
const char *baseline_wait(int fd, const struct baseline *baseline, uint32_t ms);
long baseline_pinned_kib(void);
bool baseline_netdev(const char *name, char *netdev, size_t room);
int baseline_command(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* KXFER_TEST_BASELINE_H */
