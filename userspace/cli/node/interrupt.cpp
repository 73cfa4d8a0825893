// SPDX-License-Identifier: MIT
#include "cli/node/interrupt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

std::atomic<int> caught = 0; // other threads look at it too
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<bool> reload_wanted = false;
static_assert(std::atomic<bool>::is_always_lock_free);
int event_fd = -1;

// Fails only if the counter would overflow; then the descriptor is readable anyway.
void make_readable() {
    const int saved = errno;
    const uint64_t one = 1;
    if (write(event_fd, &one, sizeof(one)) < 0) errno = saved;
    errno = saved;
}

void remember(int signal) {
    if (caught == 0) caught = signal;
    make_readable();
}

void remember_reload(int) {
    reload_wanted = true;
    make_readable();
}

} // namespace

void catch_interrupts() {
    if (event_fd < 0) event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action = {};
    action.sa_handler = remember;
    action.sa_flags = static_cast<int>(SA_RESETHAND); // without SA_RESTART
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

// With SA_RESTART: the files that are being read and written then have to be complete.
void catch_reloads() {
    struct sigaction action = {};
    action.sa_handler = remember_reload;
    action.sa_flags = SA_RESTART;
    sigaction(SIGHUP, &action, nullptr);
}

// The descriptor stays readable after an interrupt, whichever of both came first.
bool take_reload() {
    if (!reload_wanted.exchange(false)) return false;
    uint64_t count = 0;
    const bool emptied = read(event_fd, &count, sizeof(count)) == sizeof(count);
    if (emptied && caught != 0) make_readable();
    return true;
}

int interrupted() { return caught; }

int interrupt_fd() { return event_fd; }

int interrupt_status() { return 128 + caught; }

static timespec time_of(std::chrono::nanoseconds duration) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    return {seconds.count(), (duration - seconds).count()};
}

short wait_events(int fd, short events, std::chrono::nanoseconds timeout) {
    std::array<pollfd, 2> fds = {pollfd{fd, events, 0}, pollfd{event_fd, POLLIN, 0}};
    const timespec limit = time_of(timeout);
    if (ppoll(fds.data(), fds.size(), &limit, nullptr) <= 0) return 0;
    return fds[0].revents;
}

bool wait_readable(std::array<int, 2> fds, std::chrono::nanoseconds timeout) {
    std::array<pollfd, 3> polled = {pollfd{fds[0], POLLIN, 0}, pollfd{fds[1], POLLIN, 0},
                                    pollfd{event_fd, POLLIN, 0}};
    const timespec limit = time_of(timeout);
    if (ppoll(polled.data(), polled.size(), &limit, nullptr) <= 0) return false;
    return polled[0].revents != 0 || polled[1].revents != 0;
}

Failure interrupt_failure(const std::string& what, const std::string& on) {
    return {Error(what, on, 0, "", caught == SIGTERM ? "terminated" : "interrupted"), interrupt_status()};
}

Result unless_interrupted(Result result) {
    if (result || !interrupted() || result.error().status == interrupt_status()) return result;
    return tl::make_unexpected(interrupt_failure("stopped measuring", ""));
}

} // namespace kxfer::cli
