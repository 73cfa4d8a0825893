// SPDX-License-Identifier: MIT
//
// Latency: how long jobs took from submission to completion, as the module counts it for each op
// and lane (struct kxfer_info_latency).
//
// The counts are in buckets, so a quantile is the end of a bucket: up to a quarter too high, never
// too low. One in the last bucket, which has no end, is its beginning.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <kxfer/kxfer.hpp>
#include <linux/kxfer.h>

namespace kxfer::cli {

struct Latency {
    uint64_t failed = 0; // jobs that ended with an error, in no bucket
    uint64_t sum_ns = 0; // of the jobs in all buckets
    std::array<uint64_t, KXFER_LATENCY_BUCKETS> buckets = {};

    void add(const kxfer_info_latency& record);
    // What was counted since `before`. A count that is less than before began anew.
    Latency since(const Latency& before) const;
    // Jobs that succeeded.
    uint64_t jobs() const;
    // Empty: no job succeeded.
    std::optional<double> mean_ns() const;
    std::optional<double> quantile_ns(double percent) const;
};

// Where a bucket ends, in ns; 0: the last one has no end.
uint64_t bucket_end_ns(size_t bucket);

// The ops of which jobs are counted, and their names.
std::vector<uint32_t> counted_ops();
const char* op_name(uint32_t op);

// All that this user may see; none of a module that does not count them.
Expected<std::vector<kxfer_info_latency>> latencies_of(const Session& session);

// Of all lanes of a link: one op, or all of them.
Latency latency_of(const std::vector<kxfer_info_latency>& records, uint64_t link,
                   std::optional<uint32_t> op = {});

} // namespace kxfer::cli
