// SPDX-License-Identifier: MIT
//
// Opening /dev/kxfer, with advice when that fails.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/output/failure.hpp"

namespace kxfer::cli {

// Status 3 if there is no module; the hint says what to do about it.
tl::expected<Session, Failure> open_session();

// As open_session(); status 3 also if the module is attached to no RDMA device.
tl::expected<Session, Failure> open_session_with_device();

// Adds to a failure to pin memory what it means and what helps.
Error pin_error(Error error, uint64_t bytes);

} // namespace kxfer::cli
