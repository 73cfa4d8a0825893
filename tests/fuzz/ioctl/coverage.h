/* SPDX-License-Identifier: MIT */
/*
 * Coverage: which edges of the module's code this process's threads have taken,
 * by kcov, where the kernel has it. Work that the module does elsewhere
 * (workqueues, softirqs) is not seen.
 */
#ifndef KXFER_FUZZ_COVERAGE_H
#define KXFER_FUZZ_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

int coverage_make(uint32_t thread);
void coverage_start(uint32_t thread);
uint32_t coverage_collect(void);
bool coverage_there(void);
uint32_t coverage_edges(void);

#endif /* KXFER_FUZZ_COVERAGE_H */
