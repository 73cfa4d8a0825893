// SPDX-License-Identifier: MIT
//
// What a sweep found, in words that are computed from its figures: which engine, which
// completion context, which registration is fastest at which size, and where there is
// no significant difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/sweep_result.hpp"

namespace kxfer::cli {

// Ways of which only one thing differs, by which each is called.
struct Question {
    std::string title; // "Completion context of kverbs"
    std::vector<bench::Way> ways;
    std::vector<std::string> names;
};

// Those that the grid has an answer to: two values at least.
std::vector<Question> questions_of(const bench::Grid& grid);

// How the ways of a row compare with the fastest, over the rounds.
struct Standing {
    const bench::SweepCell* cell = nullptr; // null: not measured
    std::optional<bench::Ratio> to_best;    // its time to the best's; none of the best itself
    bool is_best = false;
    bool judged = true; // else the machine spoiled the row, and nobody is the best
    // Not the best beyond chance. Each is compared with the best by its own 95 % interval.
    bool ties() const { return judged && (is_best || (cell && !(to_best && to_best->significant()))); }
};
std::vector<Standing> standings_of(const bench::SweepRow& row, const std::vector<bench::Way>& ways);

struct Answer {
    std::string kind; // of work
    std::vector<std::string> sentences;
};

struct Answers {
    std::string title;
    std::vector<Answer> answers;
};
std::vector<Answers> summary_of(const bench::SweepResult& result);

// What has to be said beside any figure.
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
