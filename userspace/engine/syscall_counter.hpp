// SPDX-License-Identifier: MIT
//
// Counts the system calls that the calling thread enters, by perf_event_open(2)
// on the tracepoint raw_syscalls:sys_enter. While a counter exists every system
// call of the thread takes the kernel's slow way, so nothing is timed then.
#pragma once

#include <cstdint>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

namespace kxfer::bench {

class SyscallCounter {
  public:
    // Error::what of all errors of open().
    static constexpr char cannot_count[] = "cannot count system calls";

    // EACCES or EPERM: the caller lacks the right; the hint names it.
    static tl::expected<SyscallCounter, Error> open();
    SyscallCounter(SyscallCounter&& other) noexcept;
    SyscallCounter& operator=(SyscallCounter&&) = delete;
    ~SyscallCounter();

    // stop() returns the system calls since start(), without those of the two functions.
    void start();
    uint64_t stop();

  private:
    explicit SyscallCounter(int fd) : fd_(fd) {}
    uint64_t read_count();

    int fd_;
    uint64_t started_ = 0;
};

} // namespace kxfer::bench
