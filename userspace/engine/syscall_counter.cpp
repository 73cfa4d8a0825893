// SPDX-License-Identifier: MIT
#include "engine/syscall_counter.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kxfer::bench {

namespace {

Error count_error(int number) {
    return Error(SyscallCounter::cannot_count, "raw_syscalls:sys_enter", number,
                 "needs CAP_PERFMON (or root, or kernel.perf_event_paranoid=-1) and a readable "
                 "tracefs in /sys/kernel/tracing");
}

} // namespace

tl::expected<SyscallCounter, Error> SyscallCounter::open() {
    uint64_t id = 0;

    for (const char* mount : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
        errno = 0;
        std::ifstream file(std::string(mount) + "/events/raw_syscalls/sys_enter/id");
        if (file >> id) break;
    }
    if (id == 0) return tl::unexpected(count_error(errno ? errno : ENOENT));

    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof(attributes);
    attributes.config = id;
    const int fd =
        static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd < 0) return tl::unexpected(count_error(errno));
    return SyscallCounter(fd);
}

SyscallCounter::SyscallCounter(SyscallCounter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), started_(other.started_) {}

SyscallCounter::~SyscallCounter() {
    if (fd_ >= 0) close(fd_);
}

uint64_t SyscallCounter::read_count() {
    uint64_t count = 0;

    return read(fd_, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

void SyscallCounter::start() { started_ = read_count(); }

// A read counts itself: the read in start() is in both values, that in stop() is
// subtracted.
uint64_t SyscallCounter::stop() { return read_count() - started_ - 1; }

} // namespace kxfer::bench
