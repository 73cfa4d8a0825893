// SPDX-License-Identifier: MIT
//
// What `kxfer bench` tells scripts beside its figures.
#include "cli/measure/bench_report.hpp"

#include <cstdint>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/output/output.hpp"

using namespace kxfer;
using namespace kxfer::cli;
using bench::Histogram;

namespace {

nlohmann::json buckets_of(const Histogram& latencies) {
    BenchReport report;
    report.result.latencies = latencies;
    return nlohmann::json::parse(json_text(bench_record(report)))["total"]["histogram_ns"];
}

} // namespace

TEST(BenchReport, buckets_of_several_results_add_up) {
    Histogram one, other, both;
    for (uint64_t i = 0; i < 3000; i++) {
        Histogram& part = i % 3 ? one : other;
        part.add(i * i);
        both.add(i * i);
    }
    EXPECT_TRUE(buckets_of(Histogram()).empty());
    std::map<double, uint64_t> sum;
    for (const auto& part : {one, other})
        for (const auto& bucket : buckets_of(part)) {
            EXPECT_GT(bucket["count"], 0);
            sum[bucket["begin_ns"].get<double>()] += bucket["count"].get<uint64_t>();
        }
    const auto whole = buckets_of(both);
    ASSERT_EQ(whole.size(), sum.size());
    for (const auto& bucket : whole) EXPECT_EQ(sum[bucket["begin_ns"].get<double>()], bucket["count"]);
}

TEST(BenchReport, a_bucket_begins_at_its_least_value) {
    Histogram histogram;
    for (const uint64_t ns : {5U, 255U, 256U, 257U, 100000U}) histogram.add(ns);
    const auto buckets = buckets_of(histogram);
    ASSERT_EQ(buckets.size(), 4U);
    EXPECT_EQ(buckets[0]["begin_ns"], 5);
    EXPECT_EQ(buckets[1]["begin_ns"], 255);
    EXPECT_EQ(buckets[2]["begin_ns"], 256); // two wide
    EXPECT_EQ(buckets[2]["count"], 2);
    EXPECT_EQ(buckets[3]["begin_ns"], 99840); // 512 wide
}
