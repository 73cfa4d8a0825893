// SPDX-License-Identifier: MIT
//
// Measured messages, as both ends of a mailbox count them. The messages go into the memory of
// the export NAME, which comes with the mailbox NAME.mailbox and the export NAME.received, a
// status that the sender READs.
//
// A series begins with an opening, a message that describes the messages to come; all messages
// until the next opening belong to it. Message n lands in slot n modulo slots. Big endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <kxfer/kxfer.hpp>

#include "engine/workload.hpp"
#include "verbs/messages.hpp"

namespace kxfer::bench {

// Messages that may be sent and not yet received.
constexpr uint32_t mailbox_capacity = KXFER_MAILBOX_MAX;

std::string mailbox_name(const std::string& export_name);
std::string status_name(const std::string& export_name);

struct Opening {
    uint64_t series = 0; // unique number, not 0
    Operation operation = Operation::send;
    uint32_t slots = 0;
    uint32_t bytes = 0;  // length of each message; 0 for a WRITE with immediate
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

// The status that the sender READs.
struct WireSeries {
    uint64_t series; // the series opened last; 0: none
    uint64_t received;
    uint64_t wrong; // received messages other than expected; one more if the opening was invalid
};

struct SeriesStatus {
    uint64_t series = 0;
    uint64_t received = 0;
    uint64_t wrong = 0;
};

WireOpening encode(const Opening& opening);
// Empty: the message is no opening.
std::optional<Opening> decode_opening(std::span<const std::byte> message);
SeriesStatus decode(const WireSeries& status);

// The receiver's side: checks messages in their order and puts them into their slots.
class Series {
  public:
    // The memory has to outlive the object.
    explicit Series(std::span<std::byte> memory) : memory_(memory) {}

    void take(const Message& message);
    // The sender may READ meanwhile, so each word is stored as a whole, the series last.
    void publish(WireSeries& status) const;

  private:
    void open(const Opening& opening);

    std::span<std::byte> memory_;
    Opening opening_;
    verbs::Receipts receipts_{Operation::send, {}};
    bool possible_ = false;
};

} // namespace kxfer::bench
