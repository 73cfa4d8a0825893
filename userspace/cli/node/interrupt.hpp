// SPDX-License-Identifier: MIT
//
// SIGINT and SIGTERM, for commands that have something to finish first; SIGHUP, for services.
//
// The first signal is remembered and makes a descriptor readable, so that a
// wait with poll(2) cannot miss it; blocking calls end with EINTR. A second
// one of the same kind has its default effect: the process ends at once.
#pragma once

#include <array>
#include <chrono>

#include "cli/output/failure.hpp"

namespace kxfer::cli {

void catch_interrupts();

// Has SIGHUP ask for a reload, as services do, instead of ending the process; after
// catch_interrupts().
void catch_reloads();

// Whether a reload was asked for since the last call.
bool take_reload();

// The signal that came first, or 0.
int interrupted();

// For poll(2): readable after the first signal.
int interrupt_fd();

// 130 or 143.
int interrupt_status();

// Waits for the descriptor's events, a signal or reload, or the timeout; returns
// the events that are there. fd -1: only sleeps.
short wait_events(int fd, short events, std::chrono::nanoseconds timeout);

// Waits for a readable descriptor (-1: none), a signal, or the timeout; returns whether
// a descriptor is readable.
bool wait_readable(std::array<int, 2> fds, std::chrono::nanoseconds timeout);

// The failure of a command that was interrupted in the middle of `what`.
Failure interrupt_failure(const std::string& what, const std::string& on);

// The result of a command that measures: after an interrupt, any failure counts as interrupted.
Result unless_interrupted(Result result);

} // namespace kxfer::cli
