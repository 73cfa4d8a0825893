// SPDX-License-Identifier: MIT
//
// What `kxfer bench` makes of a result: a figure that too few operations tell is null.
#include "bench/stats/baseline.hpp"
#include "cli/measure/bench_report.hpp"
#include "cli/output/output.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kxfer::cli;
namespace bench = kxfer::bench;

namespace {

nlohmann::json json_of(const BenchReport& report) {
    return nlohmann::json::parse(json_text(bench_record(report)));
}

} // namespace

TEST(BenchReport, the_half_of_a_median_that_is_not_told_is_not_told) {
    BenchReport report;
    report.result.workload.work = bench::Work::write_ping_pong;
    for (int i = 0; i < 5; i++) report.result.latencies.add(1000);
    EXPECT_TRUE(json_of(report)["total"]["write_latency_p50_ns"].is_null());
    for (int i = 0; i < 20; i++) report.result.latencies.add(1000);
    EXPECT_EQ(json_of(report)["total"]["write_latency_p50_ns"], 500);
}

TEST(BenchReport, one_way_is_half_of_a_round_trip_if_both_ways_are_alike) {
    for (const auto& [work, key] : {std::pair{bench::Work::send_ping_pong, "send_latency_"},
                                    std::pair{bench::Work::write_ping_pong, "write_latency_"},
                                    std::pair{bench::Work::notify_ping_pong, "notify_latency_"}}) {
        BenchReport report;
        report.result.workload.work = work;
        for (int i = 0; i < 2000; i++) report.result.latencies.add(i < 1000 ? 100 : 200);
        const auto total = json_of(report)["total"];
        EXPECT_EQ(total[std::string(key) + "min_ns"], 50) << key;
        EXPECT_EQ(total[std::string(key) + "p50_ns"], 50) << key;
        EXPECT_EQ(total[std::string(key) + "mean_ns"], 75) << key;
        EXPECT_EQ(total[std::string(key) + "p99_ns"], 100) << key;
        EXPECT_TRUE(total[std::string(key) + "p99_9_ns"].is_null()) << key;
        EXPECT_EQ(total[std::string(key) + "max_ns"], 100) << key;
    }
    BenchReport report; // there a READ, back a WRITE
    report.result.workload.work = bench::Work::ping_pong;
    for (const auto& [key, value] : json_of(report)["total"].items())
        EXPECT_FALSE(key.starts_with("send_") || key.starts_with("write_")) << key;
}

TEST(BenchReport, what_the_peer_used_is_the_word_of_another_node) {
    BenchReport report;
    report.result.operations = 10;
    EXPECT_TRUE(json_of(report)["total"]["peer_usage_source"].is_null());
    report.result.footprint.peer = bench::ProcessUsage{1000, 5};
    EXPECT_EQ(json_of(report)["total"]["peer_usage_source"], "this node");
    report.rig.peer_given = true;
    EXPECT_EQ(json_of(report)["total"]["peer_usage_source"], "the peer");
    EXPECT_EQ(json_of(report)["total"]["peer_cpu_per_operation_ns"], 100);
}

TEST(BenchReport, of_no_latencies_there_is_no_greatest) {
    BenchReport report;
    report.reverse = bench::Reverse();
    report.reverse->result.operations = 7;
    EXPECT_EQ(json_of(report)["reverse"]["operations"], 7);
    EXPECT_TRUE(json_of(report)["reverse"]["latency_max_ns"].is_null());
    report.reverse->result.latencies.add(1234);
    EXPECT_EQ(json_of(report)["reverse"]["latency_max_ns"], 1234);
}

TEST(BenchReport, an_interrupted_run_says_so_and_how_much_of_it_there_is) {
    BenchReport report;
    report.plan.count = 1000;
    report.result.operations = 5;
    EXPECT_EQ(json_of(report)["interrupted"], false);
    report.result.interrupted = true;
    EXPECT_EQ(json_of(report)["interrupted"], true);
    EXPECT_EQ(json_of(report)["notes"][0], "Interrupted: 5 of 1000 operations were measured");
    report.plan.count = 0;
    report.plan.duration = std::chrono::seconds(60);
    report.result.elapsed_ns = 3210000000;
    EXPECT_EQ(json_of(report)["notes"][0], "Interrupted: 3.2 of 60 s were measured");
    EXPECT_FALSE(json_of(report).contains("reverse"));
    report.rig.bidirectional = true;
    EXPECT_TRUE(json_of(report)["reverse"].is_null());
    EXPECT_TRUE(bench::parse_baseline(json_of(report).dump())->interrupted);
}
