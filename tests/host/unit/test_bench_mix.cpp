// SPDX-License-Identifier: MIT
#include "engine/mix.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::bench;

TEST(Mix, shares_are_read_and_said) {
    const auto mix = parse_mix("read=70,write=30");
    ASSERT_TRUE(mix) << mix.error();
    EXPECT_EQ(*mix, (Mix{{Operation::read, 70}, {Operation::write, 30}}));
    EXPECT_EQ(mix_text(*mix), "read=70,write=30");
    EXPECT_TRUE(parse_mix("write=100"));
    EXPECT_TRUE(parse_mix("read=50,write=30,send=20"));
}

TEST(Mix, what_is_wrong_is_said) {
    const std::vector<std::pair<const char*, const char*>> all = {
        {"", "0 percent"},
        {"read=50", "50 percent"},
        {"read=70,write=31", "101 percent"},
        {"read=50,fetch-add=50", "'fetch-add=50': a mix is of read, write and send"},
        {"read=50,read=50", "'read' is there twice"},
        {"read", "1 to 100"},
        {"read=", "1 to 100"},
        {"read=0,write=100", "1 to 100"},
        {"read=101", "1 to 100"},
        {"read=-1", "1 to 100"},
        {"read=5x,write=95", "1 to 100"},
        {"read=50,,write=50", "a mix is of"},
    };
    for (const auto& [text, words] : all) {
        const auto mix = parse_mix(text);
        ASSERT_FALSE(mix) << text;
        EXPECT_NE(mix.error().find(words), std::string::npos) << text << ": " << mix.error();
    }
}

TEST(Mix, turns_are_exact_and_spread) {
    for (unsigned percent = 1; percent < 100; percent++) {
        const auto turns = turns_of({{Operation::read, percent}, {Operation::write, 100 - percent}});
        ASSERT_EQ(turns.size(), 100U);
        EXPECT_EQ(std::count(turns.begin(), turns.end(), Operation::read), percent);
        // The share is never more than one operation off.
        unsigned reads = 0;
        for (unsigned i = 0; i < turns.size(); i++) {
            reads += turns[i] == Operation::read ? 1 : 0;
            EXPECT_LE(std::abs(static_cast<double>(reads) - (i + 1) * percent / 100.0), 1.0)
                << percent << ' ' << i;
        }
    }
    EXPECT_TRUE(turns_of({}).empty());
}

TEST(Mix, a_workload_of_turns_is_a_mix) {
    Workload workload;
    EXPECT_FALSE(workload.is_mix());
    EXPECT_EQ(workload.operation_at(7), Operation::read);
    workload.turns = {Operation::read, Operation::write, Operation::write};
    EXPECT_TRUE(workload.is_mix());
    EXPECT_STREQ(workload.name(), "mix");
    EXPECT_EQ(workload.operation_at(3), Operation::read);
    EXPECT_EQ(workload.operation_at(5), Operation::write);
}

TEST(Mix, has_messages_if_some_turn_is_one) {
    Workload workload;
    EXPECT_FALSE(has_messages(workload));
    workload.operation = Operation::send;
    EXPECT_TRUE(has_messages(workload));
    // For a mix only the turns count, not the operation.
    workload.turns = turns_of({{Operation::read, 50}, {Operation::write, 50}});
    EXPECT_FALSE(has_messages(workload));
    workload.turns = turns_of({{Operation::read, 99}, {Operation::send, 1}});
    EXPECT_TRUE(has_messages(workload));
}
