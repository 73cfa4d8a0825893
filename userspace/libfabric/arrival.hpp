// SPDX-License-Identifier: MIT
//
// A message that is arriving or has arrived. Without a Receive its bytes are kept here. It is in the list
// of unexpected messages, or has a Receive; while bytes are missing its peer knows it by its id.
#pragma once

#include <cstdlib>
#include <memory>

#include "libfabric/receive.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Peer;

struct Arrival {
    Arrival(Peer& from, const Header& first) : peer(from), header(first) {}

    // Whether the peer may send these bytes now: those of a message come once, one after the other, and
    // those of an offer after they were asked for. A READ of them is not in flight then.
    bool may_get(uint64_t place, uint64_t length) const {
        return (!is_offer() || wanted) && place == received && length <= header.length - received;
    }

    // The next bytes, to the receive or to where they are kept. What is kept takes memory for what has come,
    // whatever the length that the peer has told; without memory nothing is kept.
    void add(const uint8_t* payload, size_t length);

    // To the receive that it has got now, what was kept. 0 or -ENOMEM.
    int hand_over();

    Peer& peer;
    Header header;
    uint64_t received = 0;
    std::unique_ptr<Receive> receive;
    void* claimant = nullptr; // context of the FI_PEEK | FI_CLAIM that took it
    bool fetching = false;    // a READ is in flight
    bool wanted = false;      // the bytes of an offer were asked for
    uint64_t word = 0;        // of the peer's connection that it came by

    bool is_offer() const { return header.kind == Kind::offer; }
    bool is_tagged() const { return (header.flags & header_tagged) != 0; }
    bool is_complete() const { return !is_offer() && received == header.length; }

  private:
    struct Free {
        void operator()(uint8_t* at) const { free(at); }
    };

    bool make_room(size_t needed);

    std::unique_ptr<uint8_t, Free> bytes_;
    size_t room_ = 0;
    bool unkept_ = false; // there was no memory for them
};

} // namespace kxfer::fi
