// SPDX-License-Identifier: MIT
//
// SIGINT and SIGTERM, for commands that have something to finish first.
//
// The first signal is remembered and makes a descriptor readable, so that a
// wait with poll(2) cannot miss it; blocking calls end with EINTR. The second
// one of the same kind has its default effect: the process ends at once.
#pragma once

#include <array>
#include <chrono>

#include "cli/failure.hpp"

namespace kxfer::cli {

void catch_interrupts();

// The signal that came first, or 0.
int interrupted();

// Readable once a signal came; for poll(2).
int interrupt_fd();

// 130 or 143.
int interrupt_status();

// Waits for the descriptor's events, a signal, or the time to pass; returns
// the events that are there. fd -1: just sleeps.
short wait_events(int fd, short events, std::chrono::nanoseconds timeout);

// Waits until one of the descriptors is readable (-1: none), a signal, or the time to
// pass; whether one is readable.
bool wait_readable(std::array<int, 2> fds, std::chrono::nanoseconds timeout);

// The failure of a command that was interrupted in the middle of `what`.
Failure interrupt_failure(const std::string& what, const std::string& on);

// How a command that measures ends: whatever an interrupt broke off, it was interrupted.
Result unless_interrupted(Result result);

} // namespace kxfer::cli
