// SPDX-License-Identifier: MIT
//
// Messages that are measured, as both ends of a mailbox count them. Beside the export
// NAME, into whose memory they go, stand the mailbox NAME.mailbox and the export
// NAME.received, a status that the sender READs.
//
// A series begins with an opening, a message that says what is to come; all behind it
// belong to it until the next opening. Message n lands in slot n modulo slots. Big endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <kxfer/kxfer.hpp>

#include "bench/workload.hpp"
#include "verbs/messages.hpp"

namespace kxfer::bench {

// As many as may be sent and not be received.
constexpr uint32_t mailbox_capacity = KXFER_MAILBOX_MAX;

std::string mailbox_name(const std::string& export_name);
std::string status_name(const std::string& export_name);

struct Opening {
    uint64_t series = 0; // not 0; no other sender's
    Operation operation = Operation::send;
    uint32_t slots = 0;
    uint32_t bytes = 0;  // of each message; of a WRITE with immediate none
    uint64_t stride = 0; // from one slot to the next
};

struct WireOpening {
    uint64_t magic;
    uint64_t series;
    uint64_t stride;
    uint32_t operation;
    uint32_t slots;
    uint32_t bytes;
    uint32_t reserved;
};

// What the sender READs.
struct WireSeries {
    uint64_t series; // the last one that was opened; 0: none
    uint64_t received;
    uint64_t wrong; // of these: other than what was to come; also an opening that cannot be
};

struct SeriesStatus {
    uint64_t series = 0;
    uint64_t received = 0;
    uint64_t wrong = 0;
};

WireOpening encode(const Opening& opening);
// Empty: it is none.
std::optional<Opening> decode_opening(std::span<const std::byte> message);
SeriesStatus decode(const WireSeries& status);

// Of the receiver: checks messages in their order and puts them into their slots.
class Series {
  public:
    // The memory has to outlive it.
    explicit Series(std::span<std::byte> memory) : memory_(memory) {}

    void take(const Message& message);
    // For who READs it meanwhile: each word is stored as a whole, the series last.
    void publish(WireSeries& status) const;

  private:
    void open(const Opening& opening);

    std::span<std::byte> memory_;
    Opening opening_;
    verbs::Receipts receipts_{Operation::send, {}};
    bool possible_ = false;
};

} // namespace kxfer::bench
