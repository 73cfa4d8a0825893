// SPDX-License-Identifier: MIT
//
// What `kxfer bench` found, as a record. Its JSON is also what --baseline reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/requester.hpp"
#include "bench/run.hpp"
#include "bench/verdict.hpp"
#include "cli/provenance.hpp"
#include "cli/record.hpp"
#include "cli/rig.hpp"

namespace kxfer::cli {

struct BenchReport {
    Provenance from;
    RigOptions rig;
    bench::Parameters parameters;
    std::optional<bench::Registration> registration;
    bench::RunPlan plan;
    std::string mix;                       // "read=70,write=30"; empty: one operation
    std::optional<bench::Reverse> reverse; // what the peer did at the same time
    bench::RunResult result;               // before the run: the workload and the engine's name
    std::vector<bench::Verdict> verdicts;
};

Record bench_record(const BenchReport& report);

// "READ of 4 KiB, 16 deep, engine job": what was measured.
std::string bench_title(const bench::RunResult& result);

// A live line and its record.
std::string interval_text(const bench::Interval& interval, uint64_t size);
Record interval_record(const bench::Interval& interval, uint64_t size);

} // namespace kxfer::cli
