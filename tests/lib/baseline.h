/* SPDX-License-Identifier: MIT */
/*
 * Baseline: what must be as before when a test is over. All live_* counters of
 * the module, what `rdma resource show` counts (QPs, CQs, PDs, MRs, ids of
 * rdma_cm), the memory that this process has pinned, and the pins that the kernel
 * has given out and not got back (FOLL_PIN, of anybody); on siw-dma (tests/dma)
 * what is mapped for DMA, too.
 *
 * Links stay up for a while after their last user, so a baseline is taken with
 * the link up: by a first rig that was opened and closed.
 */
#ifndef KXFER_TEST_BASELINE_H
#define KXFER_TEST_BASELINE_H

#include "kxfer_test.h"

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
