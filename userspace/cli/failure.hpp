// SPDX-License-Identifier: MIT
//
// Exit statuses, and Failure: an Error with the status that it ends in.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>

#include "cli/record.hpp"

namespace kxfer::cli {

enum Exit : int {
    exit_ok = 0,
    exit_failed = 1,
    exit_usage = 2,
    exit_no_device = 3, // no module or no RDMA device
    exit_stopped = 4,   // stopped part-way; what was done is kept apart
    exit_sigint = 130,
    exit_sigterm = 143,
};

struct Failure {
    // NOLINTNEXTLINE(google-explicit-constructor): an Error is a Failure of status 1
    Failure(Error cause, int exit_status = exit_failed, Record more = {})
        : error(std::move(cause)), status(exit_status), details(std::move(more)) {}

    Error error;
    int status;
    Record details; // what a script may need beside it, such as the bytes done
};

// What a command ends with: an exit status, mostly exit_ok.
using Result = tl::expected<int, Failure>;

inline tl::unexpected<Failure> failed(Error error, int status = exit_failed, Record details = {}) {
    return tl::make_unexpected(Failure(std::move(error), status, std::move(details)));
}

// Of options: the exit status says what kind of failure it is, so it needs no errno.
inline tl::unexpected<Failure> wrong_usage(std::string what, std::string hint) {
    return failed(Error(std::move(what), "", 0, std::move(hint)), exit_usage);
}

} // namespace kxfer::cli
