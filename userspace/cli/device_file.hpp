// SPDX-License-Identifier: MIT
//
// Opening /dev/kxfer, with what to do when that does not work.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/failure.hpp"

namespace kxfer::cli {

// Status 3 if there is no module; the hint says what to do about it.
tl::expected<Session, Failure> open_session();

// As above, and status 3 too if the module is attached to no RDMA device.
tl::expected<Session, Failure> open_session_with_device();

// What a failure to pin memory means and what helps.
Error pin_error(Error error, uint64_t bytes);

} // namespace kxfer::cli
