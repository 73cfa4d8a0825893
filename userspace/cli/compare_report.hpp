// SPDX-License-Identifier: MIT
//
// What `kxfer compare` found, as records: where and how it was measured, which engine
// can do which operation, two tables for people, all figures for scripts, and what
// they do not say.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/comparison.hpp"
#include "bench/verification.hpp"
#include "cli/provenance.hpp"
#include "cli/record.hpp"

namespace kxfer::cli {

// What it took an engine, by its name, to register its memory.
struct EngineRegistration {
    std::string engine;
    bench::Registration cost;
};

struct CompareReport {
    Provenance from;
    bench::Conditions conditions;
    bool judge_anyway = false; // whatever the conditions and the connections were
    std::string context;       // of completions in the kernel; empty if no engine has any there
    std::string no_floor;      // why kverbs, by default there, was not measured; or empty
    std::string poll;          // adaptive, always or never, in context polled; empty without jobs
    bool verbs_events = false; // verbs sleeps for them
    bool ring = false;         // the job's completions come into shared memory
    bench::Plan plan;
    std::chrono::milliseconds timeout{};
    bench::Parameters parameters; // that the engines have in common
    std::vector<EngineRegistration> registrations;
    std::string memory;   // --memory of kverbs
    std::string cq;       // likewise --cq, if it was given
    std::string inlining; // auto or never: --inline of verbs and kverbs
    std::vector<bench::Cell> cells;
    size_t nr_wanted = 0; // cells; if it was interrupted there are fewer

    bool is_whole() const { return cells.size() >= nr_wanted; }
    // Why no ratio is called a difference, or none; empty: they are.
    std::string obstacle() const;
    // What of the engines' connections differs in some cell; empty: nothing that is known.
    std::string difference() const;
};

Record report_record(const CompareReport& report);

// A damage that the self-test of verification brought about, and what was reported.
Record trial_record(const std::string& engine, const bench::Trial& trial);

// "0.75 [0.74, 0.76] faster": a ratio of two engines with its interval and what
// it means, or "not judged"; `great_is_fast` of rates, not of times. Empty without a ratio.
std::string ratio_text(const std::optional<bench::Ratio>& ratio, bool great_is_fast, bool judged);

} // namespace kxfer::cli
