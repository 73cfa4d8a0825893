// SPDX-License-Identifier: MIT
//
// Which message gets into which buffer: receives that wait, and messages that nobody has waited for, each
// in its order. Tagged and other messages do not meet. Callers hold the domain's lock.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "libfabric/arrival.hpp"
#include "libfabric/receive.hpp"

namespace kxfer::fi {

class Matching {
  public:
    ~Matching();

    // The first receive that takes the message; NULL: none. Of a buffer for several, the next part.
    std::unique_ptr<Receive> take_receive(const Arrival& arrival);

    // The first message for the receive, which leaves the list; NULL: none. One that was claimed is
    // only for its claimant.
    Arrival* take_arrival(const Receive& receive, void* claimant = nullptr);
    // The same, and it stays.
    Arrival* find_arrival(const Receive& receive) const;

    void add(std::unique_ptr<Receive> receive);
    void add(Arrival* arrival) { unexpected(arrival->is_tagged()).push_back(arrival); }

    // The next part of a buffer for several, for a message of this length.
    std::unique_ptr<Receive> part_of(Receive& whole, size_t length) const;

    // The first receive with this context, which leaves the list; NULL: none.
    std::unique_ptr<Receive> cancel(const void* context);

    // All receives that wait.
    std::list<std::unique_ptr<Receive>> take_receives();
    // Receives that only this peer can serve.
    bool waits_for(const Peer& peer) const;
    std::list<std::unique_ptr<Receive>> take_receives_from(const Peer& peer);

    // Messages of the peer whose bytes are missing.
    std::list<Arrival*> take_incomplete_from(const Peer& peer);

    size_t min_multi_recv = 64;

  private:
    using Receives = std::list<std::unique_ptr<Receive>>;
    using Arrivals = std::list<Arrival*>;

    Receives& posted(bool tagged) { return posted_[tagged]; }
    Arrivals& unexpected(bool tagged) { return unexpected_[tagged]; }

    Receives posted_[2];
    Arrivals unexpected_[2];
};

} // namespace kxfer::fi
