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
