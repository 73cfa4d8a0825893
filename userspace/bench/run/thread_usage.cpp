// SPDX-License-Identifier: MIT
#include "bench/run/thread_usage.hpp"

#include <ctime>

#include <sys/resource.h>

namespace kxfer::bench {

namespace {

double timeval_ns(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
}

} // namespace

Usage usage_now() {
    rusage usage = {};
    timespec run = {};

    getrusage(RUSAGE_THREAD, &usage);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &run);
    return {timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime), static_cast<uint64_t>(usage.ru_nvcsw),
            static_cast<uint64_t>(usage.ru_nivcsw),
            static_cast<double>(run.tv_sec) * 1e9 + static_cast<double>(run.tv_nsec)};
}

Usage operator-(const Usage& after, const Usage& before) {
    return {after.user_ns - before.user_ns, after.system_ns - before.system_ns,
            after.voluntary_switches - before.voluntary_switches,
            after.involuntary_switches - before.involuntary_switches, after.run_ns - before.run_ns};
}

Usage operator+(const Usage& one, const Usage& other) {
    return {one.user_ns + other.user_ns, one.system_ns + other.system_ns,
            one.voluntary_switches + other.voluntary_switches,
            one.involuntary_switches + other.involuntary_switches, one.run_ns + other.run_ns};
}

} // namespace kxfer::bench
