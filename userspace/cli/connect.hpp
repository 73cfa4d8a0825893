// SPDX-License-Identifier: MIT
//
// The way to a peer and its exports, with what to do when it is barred.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/command.hpp"
#include "cli/peer.hpp"

namespace kxfer::cli {

// A session with one peer; the peer goes before the session.
struct Connection {
    Session session;
    kxfer::Peer peer;
};

// Tries the addresses of the peer one after the other.
tl::expected<Connection, Failure> connect(const Peer& peer, const CommonOptions& common);

// rights: KXFER_RIGHT_* that are needed.
tl::expected<Target, Failure> open_target(Connection& connection, const Remote& remote, uint32_t rights,
                                          const CommonOptions& common);

// What a job's or call's errno means to somebody who uses an export.
Failure target_failure(Error error, const Remote& remote, const CommonOptions& common);

// "read", "write"
Words rights_words(uint32_t rights);

} // namespace kxfer::cli
