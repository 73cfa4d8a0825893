// SPDX-License-Identifier: MIT
//
// Messages of a connection as both ends count them: which immediate the n-th
// carries, how many may be sent, and whether those that came are those that were
// to come. Arithmetic alone: nothing here knows of verbs.
#pragma once

#include <cstdint>

#include "verbs/wire.hpp"

namespace kxfer::verbs {

// No small number, and not 0 for the first.
constexpr uint32_t immediate_of(uint64_t message) { return static_cast<uint32_t>(message) ^ 0x6b786672; }

// Of the initiator. A message is sent only when a receive for it is known to be
// posted: no RNR NAK is provoked, and an iWARP connection does not break.
class Credits {
  public:
    explicit Credits(const Receiving& receiving = {}) : receives_(receiving.receives) {}

    uint64_t sent() const { return sent_; }
    uint64_t available() const { return receives_ - (sent_ - received_); }
    // Time to ask how many have been received.
    bool low() const { return available() < receives_ / 2; }
    // At most as many as are available.
    void spend(uint64_t messages) { sent_ += messages; }
    // What a Status says. False: that cannot be.
    bool learn(uint64_t received) {
        if (received < received_ || received > sent_) return false;
        received_ = received;
        return true;
    }

  private:
    uint64_t receives_;
    uint64_t sent_ = 0;
    uint64_t received_ = 0; // that we know of
};

// A message as its completion tells of it.
struct Message {
    uint64_t slot = 0; // that it landed in
    uint32_t bytes = 0;
    bool has_immediate = false;
    uint32_t immediate = 0;
};

// Of the responder: checks messages in the order in which they come.
class Receipts {
  public:
    Receipts(bench::Operation operation, const Receiving& receiving)
        : operation_(operation), receiving_(receiving) {}

    void add(const Message& message) {
        const bool has_immediate = bench::has_immediate(operation_);

        if (message.slot != status_.received % receiving_.slots || message.bytes != receiving_.bytes ||
            message.has_immediate != has_immediate ||
            (has_immediate && message.immediate != immediate_of(status_.received)))
            status_.wrong++;
        status_.received++;
    }
    const Status& status() const { return status_; }

  private:
    bench::Operation operation_;
    Receiving receiving_;
    Status status_;
};

} // namespace kxfer::verbs
