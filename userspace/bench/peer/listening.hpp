// SPDX-License-Identifier: MIT
//
// Listening for peers at an address of this node.
#pragma once

#include <cstdint>
#include <string>

#include <kxfer/kxfer.hpp>

namespace kxfer::bench {

struct Listening {
    Listener own; // empty if the node had a listener there already
    uint16_t port = 0;
    bool wants_key = false;
};

// Uses a listener that already admits peers at this address; otherwise creates one, on the
// address's port or KXFER_PORT. key: the key that peers have to prove to a new one, or empty.
tl::expected<Listening, Error> listen_at(Session& session, const kxfer_addr& address,
                                         const std::string& key = {});

} // namespace kxfer::bench
