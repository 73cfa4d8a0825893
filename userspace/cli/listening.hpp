// SPDX-License-Identifier: MIT
//
// What `listen` and `serve` share about listeners.
#pragma once

#include <optional>

#include <kxfer/kxfer.hpp>

#include "cli/failure.hpp"

namespace kxfer::cli {

// The listener of exactly this address and port.
Expected<std::optional<kxfer_info_listener>> find_listener(const Session& session, const kxfer_addr& address);
// That, or the one on this port of every address of the family, beside which none can be.
Expected<std::optional<kxfer_info_listener>> find_serving_listener(const Session& session,
                                                                   const kxfer_addr& address);

// Why listening failed (negative errno) and what to do.
Failure listen_failure(const Session& session, const kxfer_addr& address, int number);

} // namespace kxfer::cli
