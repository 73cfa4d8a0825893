// SPDX-License-Identifier: MIT
// Measured messages: how the receiver classifies each, and what it reports.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "bench/engines/series.hpp"
#include "verbs/messages.hpp"

using namespace kxfer;
using namespace kxfer::bench;

namespace {

constexpr uint64_t series_id = 0x1234567890abcdef;
constexpr uint32_t slots = 4, bytes = 100;

class Inboxes : public testing::Test {
  protected:
    // Delivers a message like a RECV.
    void take(std::span<const std::byte> payload, std::optional<uint32_t> immediate = std::nullopt) {
        kxfer_message head = {};
        head.bytes = static_cast<uint32_t>(payload.size());
        head.flags = immediate ? KXFER_MESSAGE_F_IMM : 0;
        head.immediate = immediate.value_or(0);
        std::vector<std::byte> range(sizeof(head) + payload.size());
        memcpy(range.data(), &head, sizeof(head));
        std::copy(payload.begin(), payload.end(), range.begin() + sizeof(head));
        const auto message = Message::at(range, range.size());
        ASSERT_TRUE(message);
        series.take(*message);
    }

    void open(Opening opening) {
        const WireOpening wire = encode(opening);
        take(std::as_bytes(std::span(&wire, 1)));
    }

    void open(Operation operation) {
        open({series_id, operation, slots, operation == Operation::write_imm ? 0 : bytes, page_bytes});
    }

    SeriesStatus status() const {
        WireSeries wire = {};
        series.publish(wire);
        return decode(wire);
    }

    std::vector<std::byte> memory = std::vector<std::byte>(slots * page_bytes);
    Series series{memory};
    std::vector<std::byte> payload = std::vector<std::byte>(bytes, std::byte{7});
};

} // namespace

TEST_F(Inboxes, tell_of_no_series_before_one_is_opened) {
    EXPECT_EQ(status().series, 0U);
    open(Operation::send);
    EXPECT_EQ(status().series, series_id);
    EXPECT_EQ(status().received, 0U);
    EXPECT_EQ(status().wrong, 0U);
}

TEST_F(Inboxes, put_messages_into_their_slots_in_turn) {
    open(Operation::send);
    for (unsigned i = 0; i < slots + 1; i++) {
        payload[0] = static_cast<std::byte>(i + 1);
        take(payload);
    }
    EXPECT_EQ(status().received, slots + 1U);
    EXPECT_EQ(status().wrong, 0U);
    EXPECT_EQ(memory[0], std::byte{slots + 1}) << "of the second turn";
    for (unsigned i = 1; i < slots; i++) EXPECT_EQ(memory[i * page_bytes], static_cast<std::byte>(i + 1));
    EXPECT_EQ(memory[bytes - 1], std::byte{7});
    EXPECT_EQ(memory[bytes], std::byte{0}) << "behind the message";
}

TEST_F(Inboxes, count_what_was_not_to_come) {
    open(Operation::send_imm);
    take(payload, verbs::immediate_of(0));
    EXPECT_EQ(status().wrong, 0U);
    take(payload, verbs::immediate_of(0)); // the first message again
    EXPECT_EQ(status().wrong, 1U);
    take(payload); // without an immediate
    EXPECT_EQ(status().wrong, 2U);
    take(std::span(payload).first(bytes - 1), verbs::immediate_of(3)); // too short
    EXPECT_EQ(status().wrong, 3U);
    take(payload, verbs::immediate_of(4));
    EXPECT_EQ(status().wrong, 3U);
    EXPECT_EQ(status().received, 5U);
    open(Operation::send);
    EXPECT_EQ(status().wrong, 0U);
    take(payload, 5);
    EXPECT_EQ(status().wrong, 1U);
}

TEST_F(Inboxes, leave_memory_to_the_write_of_a_write_with_immediate) {
    open(Operation::write_imm);
    take({}, verbs::immediate_of(0));
    EXPECT_EQ(status().wrong, 0U);
    EXPECT_EQ(status().received, 1U);
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0}; }));
}

// No series leads to an access outside the memory.
TEST_F(Inboxes, take_no_series_that_does_not_fit) {
    for (const Opening opening : {Opening{1, Operation::send, 0, bytes, page_bytes},
                                  Opening{2, Operation::send, slots + 1, bytes, page_bytes},
                                  Opening{3, Operation::send, slots, bytes, bytes - 1},
                                  Opening{4, Operation::send, 0xffffffff, bytes, UINT64_MAX},
                                  Opening{5, Operation::send, 2, bytes, UINT64_MAX / 2},
                                  Opening{6, Operation::read, slots, bytes, page_bytes}}) {
        open(opening);
        EXPECT_EQ(status().series, opening.series);
        EXPECT_EQ(status().wrong, 1U) << opening.series;
        for (unsigned i = 0; i < 3 * slots; i++) take(payload);
    }
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(Inboxes, keep_a_message_longer_than_its_slot_out) {
    open({series_id, Operation::send, 2, 50, 50});
    take(payload);
    EXPECT_EQ(status().wrong, 1U);
    EXPECT_EQ(memory[0], std::byte{0});
}

TEST(Openings, of_an_unknown_operation_are_of_none_that_sends) {
    WireOpening wire = encode(Opening{series_id, Operation::send, 1, 2, 3});
    wire.operation = htobe32(256 + static_cast<uint32_t>(Operation::send));
    const auto decoded = decode_opening(std::as_bytes(std::span(&wire, 1)));
    ASSERT_TRUE(decoded);
    EXPECT_FALSE(is_message(decoded->operation));
    EXPECT_EQ(decoded->stride, 3U);
}

TEST(Openings, are_no_other_messages) {
    std::array<std::byte, sizeof(WireOpening)> bytes_of_a_message = {};
    EXPECT_FALSE(decode_opening(bytes_of_a_message));
    const WireOpening wire = encode(Opening{series_id, Operation::send, 1, 2, 3});
    EXPECT_FALSE(decode_opening(std::as_bytes(std::span(&wire, 1)).first(sizeof(wire) - 1)));
}
