// SPDX-License-Identifier: MIT
#include "cli/interrupt.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

volatile sig_atomic_t caught = 0;
int event_fd = -1;

void remember(int signal) {
    const int saved = errno;
    const uint64_t one = 1;
    if (caught == 0) caught = signal;
    // Cannot fail but for a counter that overflows, and then it is readable.
    if (write(event_fd, &one, sizeof(one)) < 0) errno = saved;
    errno = saved;
}

} // namespace

void catch_interrupts() {
    if (event_fd < 0) event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action = {};
    action.sa_handler = remember;
    action.sa_flags = static_cast<int>(SA_RESETHAND); // and not SA_RESTART
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

int interrupted() { return caught; }

int interrupt_fd() { return event_fd; }

int interrupt_status() { return 128 + caught; }

short wait_events(int fd, short events, std::chrono::nanoseconds timeout) {
    std::array<pollfd, 2> fds = {pollfd{fd, events, 0}, pollfd{event_fd, POLLIN, 0}};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timespec limit = {seconds.count(), (timeout - seconds).count()};
    if (ppoll(fds.data(), fds.size(), &limit, nullptr) <= 0) return 0;
    return fds[0].revents;
}

Failure interrupt_failure(const std::string& what, const std::string& on) {
    return {Error(what, on, 0, "", caught == SIGTERM ? "terminated" : "interrupted"), interrupt_status()};
}

} // namespace kxfer::cli
