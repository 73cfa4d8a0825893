// SPDX-License-Identifier: MIT
//
// What `listen` and `serve` share about listeners.
#pragma once

#include <optional>

#include <kxfer/kxfer.hpp>

#include "cli/output/failure.hpp"

namespace kxfer::cli {

// The listener of exactly this address and port.
Expected<std::optional<kxfer_info_listener>> find_listener(const Session& session, const kxfer_addr& address);
// That, or the listener on this port of all addresses of the family, which excludes others.
Expected<std::optional<kxfer_info_listener>> find_serving_listener(const Session& session,
                                                                   const kxfer_addr& address);

// The failure to listen (negative errno), with the reason and advice.
Failure listen_failure(const Session& session, const kxfer_addr& address, int number);

} // namespace kxfer::cli
