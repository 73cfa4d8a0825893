// SPDX-License-Identifier: MIT
//
// The options of `kxfer bench`, and one run by them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/stats/assertion.hpp"
#include "cli/command/command.hpp"
#include "cli/measure/bench_report.hpp"
#include "cli/measure/rig.hpp"
#include "engine/mix.hpp"

namespace kxfer::cli {

struct BenchOptions : RigOptions {
    bench::Workload workload;
    bool size_given = false;
    bench::Mix mix = {{bench::Operation::read, 50}, {bench::Operation::write, 50}};
    bool mix_given = false;
    bool memory_given = false;
    bool engine_chosen = false;
    unsigned batch = 0; // 0: see batch_of()
    double seconds = 5;
    bool duration_given = false;
    uint64_t count = 0;
    double interval_seconds = 1;
    bool interval_given = false;
    uint64_t warm_up = 100;
    double rate = 0; // 0: closed loop
    std::vector<bench::Assertion> assertions;
    std::string baseline_file;
    double tolerance = 0.05;
    bool tolerance_given = false;
    std::string report_file;
    std::string output_file;
    bool judge_anyway = false;
    bool stages = false;
    bool all = false;            // each of a list of workloads
    bool tells_intervals = true; // while it runs, on a terminal
    bool verbose = false;        // text has where it was measured, and all parameters

    BenchOptions() {
        engines = {"job"};
        engines_given = true;
        export_name = "bench";
    }

    // Of an operation, a mix, or other work. Returns whether there is one of that name.
    bool set_operation(const std::string& name);
};

// Sets the options that depend on the operation.
BenchOptions with_defaults(BenchOptions options);

// Looks at a report before and after the run, and may refuse it. Its first call has no result yet.
using CheckReport = std::function<tl::expected<void, Failure>(const BenchReport&)>;

// Connects, runs and verifies; prints intervals only. options: with_defaults(). version: of the module.
tl::expected<BenchReport, Failure> run_workload(const BenchOptions& options, const std::string& version,
                                                const CheckReport& check, Context& context);

} // namespace kxfer::cli
