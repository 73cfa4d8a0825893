// SPDX-License-Identifier: MIT
//
// Connecting to a peer and its exports, with advice when that fails.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/command/command.hpp"
#include "cli/command/peer.hpp"

namespace kxfer::cli {

// A session with one peer; the peer is destroyed before the session.
struct Connection {
    Session session;
    kxfer::Peer peer;
};

// Tries the addresses of the peer one after the other.
tl::expected<Connection, Failure> connect(const Peer& peer, const CommonOptions& common);

// The same, in an open session. first: the path to prefer, of those of the peer and --via; the others
// stand by.
tl::expected<kxfer::Peer, Failure> connect_in(Session& session, const Peer& peer, const CommonOptions& common,
                                              size_t first = 0);

// rights: KXFER_RIGHT_* that are needed.
tl::expected<Target, Failure> open_target(Connection& connection, const Remote& remote, uint32_t rights,
                                          const CommonOptions& common);

// The failure for the errno of a job or call, explained to the user of an export.
Failure target_failure(Error error, const Remote& remote, const CommonOptions& common);

// "read", "write"
Words rights_words(uint32_t rights);

} // namespace kxfer::cli
