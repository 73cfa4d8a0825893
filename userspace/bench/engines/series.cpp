// SPDX-License-Identifier: MIT
#include "bench/engines/series.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <endian.h>

namespace kxfer::bench {

namespace {

constexpr uint64_t opening_magic = 0x4b584645'52504f53; // "KXFERPOS"

} // namespace

std::string mailbox_name(const std::string& export_name) { return export_name + ".mailbox"; }
std::string status_name(const std::string& export_name) { return export_name + ".received"; }

WireOpening encode(const Opening& opening) {
    return {htobe64(opening_magic),
            htobe64(opening.series),
            htobe64(opening.stride),
            htobe32(static_cast<uint32_t>(opening.operation)),
            htobe32(opening.slots),
            htobe32(opening.bytes),
            0};
}

std::optional<Opening> decode_opening(std::span<const std::byte> message) {
    WireOpening wire;

    if (message.size() != sizeof(wire)) return std::nullopt;
    memcpy(&wire, message.data(), sizeof(wire));
    if (be64toh(wire.magic) != opening_magic) return std::nullopt;
    // An unknown operation becomes READ, which is no message, so open() rejects it.
    const uint32_t number = be32toh(wire.operation);
    const auto operation = number < all_operations.size() ? static_cast<Operation>(number) : Operation::read;
    return Opening{be64toh(wire.series), operation, be32toh(wire.slots), be32toh(wire.bytes),
                   be64toh(wire.stride)};
}

SeriesStatus decode(const WireSeries& status) {
    return {be64toh(status.series), be64toh(status.received), be64toh(status.wrong)};
}

void Series::open(const Opening& opening) {
    const verbs::Receiving receiving{mailbox_capacity, std::max(opening.slots, 1U), opening.bytes};

    opening_ = opening;
    receipts_ = verbs::Receipts(opening.operation, receiving);
    possible_ = is_message(opening.operation) && opening.slots > 0 && opening.bytes <= opening.stride &&
                opening.stride <= memory_.size() / opening.slots;
}

void Series::take(const Message& message) {
    const auto payload = message.payload();

    if (const auto opening = decode_opening(payload)) return open(*opening);
    const uint64_t slot = receipts_.status().received % std::max(opening_.slots, 1U);
    receipts_.add({slot, static_cast<uint32_t>(payload.size()), message.immediate().has_value(),
                   message.immediate().value_or(0)});
    if (possible_ && payload.size() <= opening_.stride)
        std::copy(payload.begin(), payload.end(),
                  memory_.begin() + static_cast<ptrdiff_t>(slot * opening_.stride));
}

void Series::publish(WireSeries& status) const {
    const verbs::Status& now = receipts_.status();
    const auto store = [](uint64_t& to, uint64_t value) {
        std::atomic_ref(to).store(htobe64(value), std::memory_order_release);
    };

    store(status.wrong, now.wrong + (possible_ ? 0 : 1));
    store(status.received, now.received);
    store(status.series, opening_.series);
}

} // namespace kxfer::bench
