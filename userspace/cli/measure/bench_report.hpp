// SPDX-License-Identifier: MIT
//
// The result of `kxfer bench` as a record. --baseline reads its JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/peer/requester.hpp"
#include "bench/run/run.hpp"
#include "bench/stats/verdict.hpp"
#include "cli/measure/provenance.hpp"
#include "cli/measure/rig.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

struct BenchReport {
    Provenance from;
    RigOptions rig;
    bench::Parameters parameters;
    std::optional<bench::Registration> registration;
    bench::RunPlan plan;
    std::string mix;                       // "read=70,write=30"; empty: one operation
    std::optional<bench::Reverse> reverse; // the peer's result in the reverse direction
    bench::RunResult result;               // before the run: only the workload and the engine's name
    std::vector<bench::Verdict> verdicts;
    bool verbose = false; // text has where it was measured, and all parameters
};

Record bench_record(const BenchReport& report);

// What was measured: "READ of 4 KiB, 16 deep, engine job".
std::string bench_title(const bench::RunResult& result);

// A line shown during the run, and its record. width: that of the terminal; what does not fit, of
// the least wanted figures, is left out.
std::string interval_text(const bench::Interval& interval, uint64_t size,
                          std::optional<size_t> width = std::nullopt);
Record interval_record(const bench::Interval& interval, uint64_t size);

} // namespace kxfer::cli
