// SPDX-License-Identifier: MIT
//
// The result of `kxfer compare` as records: where and how it was measured, which engine
// can do which operation, two tables for people, all figures for scripts, and notes on
// the limits of the figures.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/stats/comparison.hpp"
#include "cli/measure/provenance.hpp"
#include "cli/output/record.hpp"
#include "engine/verification.hpp"

namespace kxfer::cli {

// The cost of registering an engine's memory.
struct EngineRegistration {
    std::string engine;
    bench::Registration cost;
};

struct CompareReport {
    Provenance from;
    bench::Conditions conditions;
    bool judge_anyway = false; // ignore bad conditions and differing connections
    std::string context;       // completion context in the kernel; empty: no engine has one
    std::string no_floor;      // why kverbs was left out of the default engines; or empty
    std::string poll;          // adaptive, always or never, in context polled; empty without jobs
    bool verbs_events = false; // verbs sleeps until an event of the CQ
    bool ring = false;         // the jobs' completions come into shared memory
    bench::Plan plan;
    std::chrono::milliseconds timeout{};
    bench::Parameters parameters; // common to the engines
    std::vector<EngineRegistration> registrations;
    std::string memory;   // --memory of kverbs
    std::string cq;       // --cq of kverbs, if it was given
    std::string inlining; // auto or never: --inline of verbs and kverbs
    std::vector<bench::Cell> cells;
    size_t nr_wanted = 0; // cells to measure; after an interrupt there are fewer

    bool is_whole() const { return cells.size() >= nr_wanted; }
    // Why no ratio is judged; empty: they are.
    std::string obstacle() const;
    // A difference between the engines' connections in some cell; empty: no known one.
    std::string difference() const;
};

Record report_record(const CompareReport& report);

// A damage that the self-test of verification caused, and what was reported.
Record trial_record(const std::string& engine, const bench::Trial& trial);

// "0.75 [0.74, 0.76] faster": a ratio of two engines with its interval and its meaning, or
// "not judged". great_is_fast: true for rates, false for times. Empty without a ratio.
std::string ratio_text(const std::optional<bench::Ratio>& ratio, bool great_is_fast, bool judged);

} // namespace kxfer::cli
