// SPDX-License-Identifier: MIT
//
// Counting of a connection's messages at both ends: which immediate the n-th
// carries, how many may be sent, and whether those that arrived are the expected
// ones. Arithmetic alone: nothing here depends on verbs.
//
// UC and UD lose messages without notice. Messages that are missing for long are given up.
// Those that arrive are in order, with gaps that an immediate shows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "verbs/wire.hpp"

namespace kxfer::verbs {

// No small number, and not 0 for the first message.
constexpr uint32_t immediate_of(uint64_t message) { return static_cast<uint32_t>(message) ^ 0x6b786672; }

// The initiator's side. A message is sent only when a receive for it is known to be
// posted: so there is no RNR NAK, and no iWARP connection breaks.
class Credits {
  public:
    // strays: the responder may count datagrams of others too.
    explicit Credits(const Receiving& receiving = {}, bool strays = false)
        : receives_(receiving.receives), strays_(strays) {}

    uint64_t sent() const { return sent_; }
    uint64_t received() const { return received_; }
    uint64_t missing() const { return sent_ - received_; }
    uint64_t available() const { return receives_ - (missing() - given_up_); }
    // Time to ask how many have been received.
    bool low() const { return available() < receives_ / 2; }
    // At most as many as are available.
    void spend(uint64_t messages) { sent_ += messages; }
    // Takes the count of a Status. False: the count is impossible.
    bool learn(uint64_t received) {
        if (strays_) received = std::min(received, sent_);
        if (received < received_ || received > sent_) return false;
        received_ = received;
        given_up_ = std::min(given_up_, missing());
        return true;
    }
    // Counts the messages not received as lost; they may still arrive.
    void give_up() { given_up_ = missing(); }

  private:
    uint64_t receives_;
    bool strays_;
    uint64_t sent_ = 0;
    uint64_t received_ = 0; // as of the last status
    uint64_t given_up_ = 0;
};

// A message as its completion describes it.
struct Message {
    uint64_t slot = 0; // where it landed
    uint32_t bytes = 0;
    bool has_immediate = false;
    uint32_t immediate = 0;
    bool misnumbered = false; // its command has the number of another message
};

// The responder's side: checks messages in the order in which they arrive.
class Receipts {
  public:
    // gaps: messages may be missing.
    Receipts(bench::Operation operation, const Receiving& receiving, bool gaps = false)
        : operation_(operation), receiving_(receiving), gaps_(gaps) {}

    void add(const Message& message) {
        const bool has_immediate = bench::has_immediate(operation_);

        if (message.slot != status_.received % receiving_.slots || message.bytes != receiving_.bytes ||
            message.misnumbered || message.has_immediate != has_immediate ||
            (has_immediate && !is_next(message.immediate)))
            status_.wrong++;
        status_.received++;
    }
    const Status& status() const { return status_; }

  private:
    // The immediate is that of the expected message, or with gaps that of a later one.
    bool is_next(uint32_t immediate) {
        const uint32_t ahead = (immediate ^ immediate_of(0)) - static_cast<uint32_t>(next_);

        if (!gaps_) return immediate == immediate_of(status_.received);
        if (ahead > INT32_MAX) return false;
        next_ += uint64_t{ahead} + 1;
        return true;
    }

    bench::Operation operation_;
    Receiving receiving_;
    bool gaps_;
    uint64_t next_ = 0; // message expected next, if there may be gaps
    Status status_;
};

} // namespace kxfer::verbs
