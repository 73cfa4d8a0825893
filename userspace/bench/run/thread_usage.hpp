// SPDX-License-Identifier: MIT
//
// CPU time and context switches of the thread that measures, without the work that the kernel
// does for it in kernel threads.
#pragma once

#include <cstdint>

namespace kxfer::bench {

struct Usage {
    double user_ns = 0; // user and system time, as of the kernel's last tick
    double system_ns = 0;
    uint64_t voluntary_switches = 0;
    uint64_t involuntary_switches = 0;
    double run_ns = 0; // CPU time, exact

    double cpu_ns() const { return run_ns; }
    uint64_t switches() const { return voluntary_switches + involuntary_switches; }
};

// Usage of the calling thread since it began.
Usage usage_now();
Usage operator-(const Usage& after, const Usage& before);
Usage operator+(const Usage& one, const Usage& other);

} // namespace kxfer::bench
