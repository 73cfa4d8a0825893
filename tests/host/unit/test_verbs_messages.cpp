// SPDX-License-Identifier: MIT
#include "verbs/messages.hpp"

#include <gtest/gtest.h>

using namespace kxfer::verbs;
using kxfer::bench::Operation;

namespace {

constexpr Receiving receiving{8, 3, 64};

// The correct n-th message.
Message right(Operation operation, uint64_t n) {
    const bool has_immediate = kxfer::bench::has_immediate(operation);

    return {n % receiving.slots, receiving.bytes, has_immediate, has_immediate ? immediate_of(n) : 0};
}

} // namespace

TEST(Credits, no_more_than_the_receives_that_are_known) {
    Credits credits(receiving);

    EXPECT_EQ(credits.available(), 8U);
    credits.spend(5);
    EXPECT_EQ(credits.available(), 3U);
    EXPECT_TRUE(credits.low());
    EXPECT_TRUE(credits.learn(4));
    EXPECT_EQ(credits.available(), 7U);
    EXPECT_FALSE(credits.low());
    credits.spend(7);
    EXPECT_EQ(credits.available(), 0U);
    EXPECT_EQ(credits.sent(), 12U);
}

TEST(Credits, a_count_that_cannot_be_is_not_believed) {
    Credits credits(receiving);

    credits.spend(5);
    EXPECT_FALSE(credits.learn(6));
    EXPECT_TRUE(credits.learn(3));
    EXPECT_FALSE(credits.learn(2));
    EXPECT_EQ(credits.available(), 6U);
}

TEST(Credits, of_datagrams_strays_are_not_ours) {
    Credits credits(receiving, true);

    credits.spend(5);
    EXPECT_TRUE(credits.learn(6));
    EXPECT_EQ(credits.received(), 5U);
    EXPECT_EQ(credits.available(), 8U);
    EXPECT_FALSE(credits.learn(4));
    credits.spend(8);
    EXPECT_EQ(credits.available(), 0U);
}

TEST(Credits, what_is_given_up_makes_room_and_may_still_come) {
    Credits credits(receiving);

    credits.spend(8);
    EXPECT_TRUE(credits.learn(3));
    EXPECT_EQ(credits.missing(), 5U);
    EXPECT_EQ(credits.available(), 3U);
    credits.give_up();
    EXPECT_EQ(credits.available(), 8U);
    credits.spend(2);
    EXPECT_EQ(credits.available(), 6U);
    // Two receives that had been given up, and no more.
    EXPECT_TRUE(credits.learn(5));
    EXPECT_EQ(credits.missing(), 5U);
    EXPECT_EQ(credits.available(), 8U);
    EXPECT_TRUE(credits.learn(10));
    EXPECT_EQ(credits.missing(), 0U);
    EXPECT_EQ(credits.available(), 8U);
    EXPECT_FALSE(credits.learn(11));
}

TEST(Immediates, neighbours_differ_and_none_is_small) {
    EXPECT_NE(immediate_of(0), 0U);
    for (uint64_t n = 0; n < 1000; n++) {
        EXPECT_NE(immediate_of(n), immediate_of(n + 1));
        EXPECT_GT(immediate_of(n), 1000U);
    }
    EXPECT_EQ(immediate_of(1ULL << 32), immediate_of(0));
}

TEST(Receipts, what_was_to_come_is_right) {
    for (const Operation operation : {Operation::send, Operation::send_imm, Operation::write_imm}) {
        Receipts receipts(operation, receiving);

        for (uint64_t n = 0; n < 10; n++) receipts.add(right(operation, n));
        EXPECT_EQ(receipts.status().received, 10U);
        EXPECT_EQ(receipts.status().wrong, 0U);
    }
}

TEST(Receipts, each_difference_is_counted_once) {
    const std::vector<void (*)(Message&)> changes{
        [](Message& message) { message.slot = (message.slot + 1) % receiving.slots; },
        [](Message& message) { message.bytes--; },
        [](Message& message) { message.immediate ^= 1; },
        [](Message& message) { message.has_immediate = false; },
        [](Message& message) { message.bytes = 0, message.slot = 17, message.immediate = 0; },
    };

    for (const auto change : changes) {
        Receipts receipts(Operation::send_imm, receiving);
        for (uint64_t n = 0; n < 10; n++) {
            Message message = right(Operation::send_imm, n);
            if (n == 4) change(message);
            receipts.add(message);
        }
        EXPECT_EQ(receipts.status().received, 10U);
        EXPECT_EQ(receipts.status().wrong, 1U);
    }
}

TEST(Receipts, a_lost_message_makes_all_behind_it_wrong) {
    Receipts receipts(Operation::send_imm, receiving);

    for (uint64_t n = 0; n < 10; n++)
        if (n != 4) receipts.add(right(Operation::send_imm, n));
    EXPECT_EQ(receipts.status().wrong, 5U);
}

TEST(Receipts, an_immediate_that_nobody_was_to_send_is_wrong) {
    Receipts receipts(Operation::send, receiving);

    receipts.add(right(Operation::send_imm, 0));
    EXPECT_EQ(receipts.status().wrong, 1U);
}

// Receives are taken in order, whatever is missing.
TEST(Receipts, with_gaps_what_comes_is_in_order) {
    const auto add = [](Receipts& receipts, uint64_t n) {
        Message message = right(Operation::send_imm, n);
        message.slot = receipts.status().received % receiving.slots;
        receipts.add(message);
    };
    Receipts receipts(Operation::send_imm, receiving, true);

    for (const uint64_t n : {2U, 3U, 7U, 8U, 1000U}) add(receipts, n);
    EXPECT_EQ(receipts.status().received, 5U);
    EXPECT_EQ(receipts.status().wrong, 0U);
    for (const uint64_t n : {1000U, 999U, 0U}) add(receipts, n);
    EXPECT_EQ(receipts.status().wrong, 3U);
    add(receipts, 1001);
    EXPECT_EQ(receipts.status().wrong, 3U);

    Receipts strict(Operation::send_imm, receiving);
    add(strict, 2);
    EXPECT_EQ(strict.status().wrong, 1U);
}
