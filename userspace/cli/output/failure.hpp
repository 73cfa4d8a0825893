// SPDX-License-Identifier: MIT
//
// Exit statuses, and Failure: an Error with its exit status.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>

#include "cli/output/record.hpp"

namespace kxfer::cli {

enum Exit : int {
    exit_ok = 0,
    exit_failed = 1,
    exit_usage = 2,
    exit_no_device = 3, // no module or no RDMA device
    exit_stopped = 4,   // stopped part-way; the part done is kept apart
    exit_sigint = 130,
    exit_sigterm = 143,
};

struct Failure {
    // NOLINTNEXTLINE(google-explicit-constructor): an Error is a Failure of status 1
    Failure(Error cause, int exit_status = exit_failed, Record more = {})
        : error(std::move(cause)), status(exit_status), details(std::move(more)) {}

    Error error;
    int status;
    Record details; // more for scripts, such as the bytes done
};

// The end of a command: an exit status, mostly exit_ok, or a failure.
using Result = tl::expected<int, Failure>;

inline tl::unexpected<Failure> failed(Error error, int status = exit_failed, Record details = {}) {
    return tl::make_unexpected(Failure(std::move(error), status, std::move(details)));
}

// For wrong options: the exit status shows the kind of failure, so it needs no errno.
inline tl::unexpected<Failure> wrong_usage(std::string what, std::string hint) {
    return failed(Error(std::move(what), "", 0, std::move(hint)), exit_usage);
}

} // namespace kxfer::cli
