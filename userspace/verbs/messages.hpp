// SPDX-License-Identifier: MIT
//
// Messages of a connection as both ends count them: which immediate the n-th
// carries, how many may be sent, and whether those that came are those that were
// to come. Arithmetic alone: nothing here knows of verbs.
//
// UC and UD lose messages without telling: those that are missing for long are given up,
// and what comes is in order but for gaps, which an immediate shows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "verbs/wire.hpp"

namespace kxfer::verbs {

// No small number, and not 0 for the first.
constexpr uint32_t immediate_of(uint64_t message) { return static_cast<uint32_t>(message) ^ 0x6b786672; }

// Of the initiator. A message is sent only when a receive for it is known to be
// posted: no RNR NAK is provoked, and an iWARP connection does not break.
class Credits {
  public:
    // strays: datagrams of others may be counted with ours.
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
    // What a Status says. False: that cannot be.
    bool learn(uint64_t received) {
        if (strays_) received = std::min(received, sent_);
        if (received < received_ || received > sent_) return false;
        received_ = received;
        given_up_ = std::min(given_up_, missing());
        return true;
    }
    // What has not been received is lost, as far as one can know; it may still come.
    void give_up() { given_up_ = missing(); }

  private:
    uint64_t receives_;
    bool strays_;
    uint64_t sent_ = 0;
    uint64_t received_ = 0; // that we know of
    uint64_t given_up_ = 0;
};

// A message as its completion tells of it.
struct Message {
    uint64_t slot = 0; // that it landed in
    uint32_t bytes = 0;
    bool has_immediate = false;
    uint32_t immediate = 0;
    bool misnumbered = false; // its command has the number of another
};

// Of the responder: checks messages in the order in which they come.
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
    // Of the message that was to come, or with gaps of one behind it.
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
    uint64_t next_ = 0; // with gaps
    Status status_;
};

} // namespace kxfer::verbs
