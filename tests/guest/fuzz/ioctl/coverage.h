/* SPDX-License-Identifier: MIT */
/*
 * Coverage: the edges of the module's code that threads of this process have taken, on a kernel
 * with kcov. Work of the module in other contexts (workqueues, softirqs) is not seen.
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
