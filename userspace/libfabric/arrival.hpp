// SPDX-License-Identifier: MIT
//
// A message that is arriving or has arrived. Without a Receive its bytes are kept here. It is in the list
// of unexpected messages, or has a Receive; while bytes are missing its peer knows it by its id.
#pragma once

#include <memory>

#include "libfabric/receive.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Peer;

struct Arrival {
    Arrival(Peer& from, const Header& first) : peer(from), header(first) {}

    Peer& peer;
    Header header;
    std::unique_ptr<uint8_t[]> bytes;
    uint64_t received = 0;
    std::unique_ptr<Receive> receive;
    void* claimant = nullptr; // context of the FI_PEEK | FI_CLAIM that took it
    bool fetching = false;    // a READ is in flight

    bool is_offer() const { return header.kind == Kind::offer; }
    bool is_tagged() const { return (header.flags & header_tagged) != 0; }
    bool is_complete() const { return !is_offer() && received == header.length; }
};

} // namespace kxfer::fi
