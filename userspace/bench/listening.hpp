// SPDX-License-Identifier: MIT
//
// To be reached by peers at an address of this node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

namespace kxfer::bench {

struct Listening {
    Listener own; // unless the node had one there
    uint16_t port = 0;
    bool wants_key = false;
};

// A listener that already admits peers at this address is as good as an own one, whose port is
// the address's, or KXFER_PORT. key: what peers have to prove to an own one, or empty.
tl::expected<Listening, Error> listen_at(Session& session, const kxfer_addr& address,
                                         const std::string& key = {});

// The same peers, with other rights.
std::vector<kxfer_rule> granting(std::span<const kxfer_rule> rules, uint32_t rights);

} // namespace kxfer::bench
