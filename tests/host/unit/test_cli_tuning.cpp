// SPDX-License-Identifier: MIT
//
// What `kxfer tune` makes of what it measured.
#include "cli/measure/tuning.hpp"

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::cli;

namespace {

constexpr double us = 1e3, ms = 1e6, second = 1e9;

Load load(uint64_t size, unsigned depth, double per_second, double p50_ns, double longest_ns) {
    return {size, depth, 1000, 1000 * 1e9 / per_second, p50_ns, longest_ns};
}

// 64 KiB at 10,000/s are 625 MiB/s, with two in flight.
LinkFigures near() {
    LinkFigures figures;
    figures.connect_ns = 2 * ms;
    figures.small = {load(64, 1, 50000, 20 * us, 100 * us), load(64, 2, 80000, 25 * us, 110 * us),
                     load(64, 4, 98000, 40 * us, 120 * us), load(64, 8, 100000, 80 * us, 150 * us)};
    figures.pieces = {load(4096, 256, 40000, 6 * ms, 7 * ms), load(16384, 64, 39500, 1.6 * ms, 2 * ms),
                      load(65536, 16, 10000, 1.6 * ms, 2 * ms)};
    figures.bulk = {load(65536, 1, 6000, 160 * us, 300 * us), load(65536, 2, 10000, 200 * us, 400 * us),
                    load(65536, 4, 10100, 400 * us, 500 * us)};
    return figures;
}

// A round trip of 100 ms.
LinkFigures far() {
    LinkFigures figures = near();
    figures.connect_ns = 700 * ms;
    for (auto* loads : {&figures.small, &figures.pieces, &figures.bulk})
        for (Load& one : *loads) one.p50_ns = 100 * ms, one.longest_ns = 250 * ms;
    return figures;
}

// Of a link that was asked for nothing else.
const LinkSettings defaults = {.silence_ns = 8 * second,
                               .ack_exponent = 17,
                               .retries = 7,
                               .in_flight = 4 << 20,
                               .timeout_ns = 10 * second};

const Choice& find(const std::vector<Choice>& all, const std::string& key) {
    for (const Choice& one : all)
        if (one.key == key) return one;
    static const Choice none;
    ADD_FAILURE() << "no choice " << key;
    return none;
}

double time_of(const LinkFigures& figures, const std::string& key) {
    const auto all = choose(figures, defaults);
    return std::get<Nanoseconds>(find(all, key).value).count;
}

uint64_t bytes_of(const LinkFigures& figures, const std::string& key) {
    const auto all = choose(figures, defaults);
    return std::get<Bytes>(find(all, key).value).count;
}

} // namespace

TEST(Tuning, the_fewest_that_are_within_5_percent_of_the_best_are_chosen) {
    LinkFigures figures = near();
    EXPECT_EQ(std::get<uint64_t>(find(choose(figures, defaults), "depth").value), 4U);
    EXPECT_EQ(bytes_of(figures, "piece"), 16384U);
    EXPECT_EQ(bytes_of(figures, "bytes_in_flight"), 2U * 65536);
    figures.small[2].elapsed_ns *= 1.05; // 93 % of the best
    EXPECT_EQ(std::get<uint64_t>(find(choose(figures, defaults), "depth").value), 8U);
    figures.pieces[1].elapsed_ns *= 2;
    EXPECT_EQ(bytes_of(figures, "piece"), 65536U);
    EXPECT_NE(find(choose(figures, defaults), "piece").why.find("@ping ends there"), std::string::npos);
}

TEST(Tuning, a_near_peer_has_the_least_times) {
    const LinkFigures figures = near();
    EXPECT_EQ(time_of(figures, "keepalive"), 250 * ms);
    EXPECT_EQ(time_of(figures, "ack_timeout"), 4096.0 * 16384); // 67 ms
    EXPECT_EQ(time_of(figures, "silence"), second);             // the least; 8 tries take 537 ms
    EXPECT_EQ(time_of(figures, "timeout"), 1 * second);
    EXPECT_EQ(time_of(figures, "loss"), 12 * second);
}

TEST(Tuning, a_far_peer_gets_more_time) {
    const LinkFigures figures = far();
    EXPECT_EQ(time_of(figures, "keepalive"), 2 * second);
    EXPECT_GE(time_of(figures, "ack_timeout"), 4 * 250 * ms);
    EXPECT_LT(time_of(figures, "ack_timeout"), 8 * 250 * ms);
    EXPECT_GE(time_of(figures, "silence"), 8 * time_of(figures, "ack_timeout"));
    EXPECT_GE(time_of(figures, "timeout"), 20 * 700 * ms);
    EXPECT_GE(time_of(figures, "loss"), time_of(figures, "silence") + 10 * second);
}

TEST(Tuning, however_long_a_read_took_the_times_have_an_end) {
    LinkFigures figures = far();
    for (Load& one : figures.bulk) one.longest_ns = 1e6 * second;
    EXPECT_EQ(time_of(figures, "ack_timeout"), 4096.0 * 1048576); // 4.3 s
    EXPECT_EQ(time_of(figures, "silence"), 30 * second);
    EXPECT_EQ(time_of(figures, "timeout"), 30 * second);
}

TEST(Tuning, tcp_has_its_own_ack_timeout) {
    LinkFigures figures = near();
    figures.iwarp = true;
    for (const Choice& one : choose(figures, defaults)) EXPECT_NE(one.key, "ack_timeout");
    EXPECT_EQ(time_of(figures, "silence"), second); // the least
}

TEST(Tuning, what_is_not_known_is_not_used_and_said) {
    LinkFigures figures = near();
    figures.connect_ns = NAN;
    figures.small.front().p50_ns = NAN; // too few READs
    for (const Choice& one : choose(figures, defaults)) {
        EXPECT_EQ(one.why.find("nan"), std::string::npos) << one.why;
        EXPECT_EQ(human_value(one.value).find("nan"), std::string::npos) << one.key;
    }
    EXPECT_NE(find(choose(figures, defaults), "timeout").why.find("not known"), std::string::npos);
}

TEST(Tuning, each_choice_says_what_is_used_now_and_why) {
    for (const Choice& one : choose(near(), defaults)) {
        EXPECT_FALSE(one.setting.empty());
        EXPECT_FALSE(one.now.empty()) << one.key;
        EXPECT_GT(one.why.size(), 20U) << one.key;
    }
}

TEST(Tuning, what_is_used_now_is_of_the_link) {
    const auto first = choose(near(), defaults);
    EXPECT_EQ(find(first, "silence").now, human_nanoseconds(8 * second));
    EXPECT_EQ(find(first, "keepalive").now, human_nanoseconds(2 * second));
    EXPECT_EQ(find(first, "ack_timeout").now, "536.9 ms, 7 retries");
    EXPECT_EQ(find(first, "timeout").now, human_nanoseconds(10 * second));
    EXPECT_NE(find(first, "bytes_in_flight").now.find("4 MiB of a link"), std::string::npos);
    const auto second_link = choose(near(), {.silence_ns = 2 * second,
                                             .ack_exponent = 14,
                                             .retries = 2,
                                             .in_flight = 64 << 20,
                                             .timeout_ns = 3 * second});
    EXPECT_EQ(find(second_link, "silence").now, human_nanoseconds(2 * second));
    EXPECT_EQ(find(second_link, "keepalive").now, human_nanoseconds(500 * ms));
    EXPECT_EQ(find(second_link, "ack_timeout").now, "67.1 ms, 2 retries");
    EXPECT_EQ(find(second_link, "timeout").now, human_nanoseconds(3 * second));
    EXPECT_NE(find(second_link, "bytes_in_flight").now.find("64 MiB of a link"), std::string::npos);
    EXPECT_EQ(find(choose(near(), {}), "ack_timeout").now, "not known");
}
