// SPDX-License-Identifier: MIT
//
// A summary of a sweep in words computed from its figures: which engine, which
// completion context, which registration is fastest at which size, and where there is
// no significant difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/stats/sweep_result.hpp"

namespace kxfer::cli {

// Ways that differ in one thing only, which gives each its name.
struct Question {
    std::string title; // "Completion context of kverbs"
    std::vector<bench::Way> ways;
    std::vector<std::string> names;
};

// The questions that the grid can answer: those with at least two values.
std::vector<Question> questions_of(const bench::Grid& grid);

// Comparison of a way with the fastest of the row, over the rounds.
struct Standing {
    const bench::SweepCell* cell = nullptr; // null: not measured
    std::optional<bench::Ratio> to_best;    // ratio of its time to the best's; empty for the best
    bool is_best = false;
    bool judged = true; // false: the machine spoiled the row, so there is no best
    // No significant difference from the best, by the cell's own 95 % interval.
    bool ties() const { return judged && (is_best || (cell && !(to_best && to_best->significant()))); }
};
std::vector<Standing> standings_of(const bench::SweepRow& row, const std::vector<bench::Way>& ways);

struct Answer {
    std::string kind; // kind of work
    std::vector<std::string> sentences;
};

struct Answers {
    std::string title;
    std::vector<Answer> answers;
};
std::vector<Answers> summary_of(const bench::SweepResult& result);

// Notes that belong to all figures.
std::vector<std::string> notes_of(const bench::SweepResult& result);

// "64 B", "4 KiB"
std::string short_bytes(uint64_t bytes);
// Three digits: "1.17 ms"
std::string short_time(double ns);
// The kinds of work in the result, in its order.
std::vector<std::string> kinds_of(const bench::SweepResult& result);
// The rows of a kind, by size.
std::vector<const bench::SweepRow*> rows_of(const bench::SweepResult& result, const std::string& kind);

} // namespace kxfer::cli
