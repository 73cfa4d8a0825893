// SPDX-License-Identifier: MIT
#include "cli/measure/sweep_summary.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/output/record.hpp"

namespace kxfer::cli {

namespace {

using bench::Grid;
using bench::SweepRow;
using bench::Way;

// Varies one axis of an engine's usual way; the others keep their first value.
Question question_of(const Grid& grid, std::string title, const std::string& engine,
                     std::vector<std::string> Grid::*axis) {
    Question question{std::move(title), {}, grid.*axis};
    for (const auto& value : grid.*axis) {
        Grid one = grid;
        one.*axis = {value};
        question.ways.push_back(bench::usual_way(one, engine));
    }
    return question;
}

bool has(const Grid& grid, const std::string& engine) {
    return std::ranges::find(grid.engines, engine) != grid.engines.end();
}

// Consecutive sizes with the same fastest ways.
struct Run {
    std::vector<size_t> best;
    uint64_t first = 0, last = 0;
    std::map<size_t, std::pair<double, double>> slower; // least and greatest ratio
};

Run run_of(const SweepRow& row, const std::vector<Standing>& standings) {
    Run run{{}, row.work.size, row.work.size, {}};
    for (size_t i = 0; i < standings.size(); i++) {
        const auto& standing = standings[i];
        if (!standing.cell) continue;
        if (standing.ties())
            run.best.push_back(i);
        else
            run.slower[i] = {standing.to_best->value, standing.to_best->value};
    }
    return run;
}

bool same(const Run& a, const Run& b) {
    const auto key = [](const auto& entry) { return entry.first; };
    return a.best == b.best && std::ranges::equal(a.slower, b.slower, {}, key, key);
}

void extend(Run& run, const Run& by) {
    run.last = by.last;
    for (auto& [way, range] : run.slower) {
        const auto& other = by.slower.at(way);
        range = {std::min(range.first, other.first), std::max(range.second, other.second)};
    }
}

std::string range_text(const std::pair<double, double>& range) {
    const std::string low = fmt::format("{:.2f}", range.first), high = fmt::format("{:.2f}", range.second);
    return low == high ? low : low + " to " + high;
}

// "a, b and c"
std::string list_text(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size(); i++)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    return text;
}

std::string run_text(const Run& run, const Question& question) {
    std::vector<std::string> best, slower;
    for (const size_t i : run.best) best.push_back(question.names[i]);
    for (const auto& [i, range] : run.slower)
        slower.push_back(fmt::format("{} {}", question.names[i], range_text(range)));
    std::string text = "no significant difference";
    if (best.size() == 1)
        text = best.front() + " is fastest";
    else if (!slower.empty())
        text += " between " + list_text(best);
    text += " at " + short_bytes(run.first);
    if (run.last != run.first) text += " to " + short_bytes(run.last);
    if (!slower.empty()) text += fmt::format(" (times as long: {})", fmt::join(slower, ", "));
    return text;
}

Answer answer_of(const bench::SweepResult& result, const std::string& kind, const Question& question) {
    std::vector<Run> runs;
    Answer answer{kind, {}};
    for (const auto* row : rows_of(result, kind)) {
        if (!row->obstacle.empty()) continue;
        const Run run = run_of(*row, standings_of(*row, question.ways));
        if (run.best.size() + run.slower.size() < 2) continue;
        if (!runs.empty() && same(runs.back(), run))
            extend(runs.back(), run);
        else
            runs.push_back(run);
    }
    for (const auto& run : runs) answer.sentences.push_back(run_text(run, question));
    return answer;
}

std::string fact(const bench::SweepResult& result, const std::string& key) {
    for (const auto& [name, value] : result.facts)
        if (name == key) return value;
    return "";
}

} // namespace

std::vector<Question> questions_of(const Grid& grid) {
    std::vector<Question> all;
    Question engines{"Engines", {}, grid.engines};
    for (const auto& engine : grid.engines) engines.ways.push_back(bench::usual_way(grid, engine));
    all.push_back(engines);
    if (has(grid, "kverbs")) {
        all.push_back(
            question_of(grid, fmt::format("Completion context of kverbs, memory {}", grid.memories.front()),
                        "kverbs", &Grid::contexts));
        all.push_back(question_of(
            grid, fmt::format("Registration of local memory by kverbs, context {}", grid.contexts.front()),
            "kverbs", &Grid::memories));
    }
    if (has(grid, "job")) {
        all.push_back(question_of(grid, "Completion context of job", "job", &Grid::contexts));
        if (grid.contexts.front() == "polled")
            all.push_back(question_of(grid, "How the caller of a job waits", "job", &Grid::polls));
    }
    std::erase_if(all, [](const Question& question) { return question.ways.size() < 2; });
    return all;
}

std::vector<Standing> standings_of(const SweepRow& row, const std::vector<Way>& ways) {
    std::vector<Standing> standings;
    const bench::SweepCell* best = nullptr;

    for (const auto& way : ways) {
        const auto* cell = row.find(way);
        standings.push_back({cell, {}, false, row.obstacle.empty()});
        if (cell && (!best || cell->mean_ns() < best->mean_ns())) best = cell;
    }
    for (auto& standing : standings) {
        if (!standing.cell || !standing.judged) continue;
        standing.is_best = standing.cell == best;
        if (!standing.is_best) standing.to_best = bench::time_ratio(*standing.cell, *best);
    }
    return standings;
}

std::vector<Answers> summary_of(const bench::SweepResult& result) {
    std::vector<Answers> summary;
    for (const auto& question : questions_of(result.grid)) {
        Answers answers{question.title, {}};
        for (const auto& kind : kinds_of(result))
            if (auto answer = answer_of(result, kind, question); !answer.sentences.empty())
                answers.answers.push_back(std::move(answer));
        if (!answers.answers.empty()) summary.push_back(std::move(answers));
    }
    return summary;
}

std::vector<std::string> notes_of(const bench::SweepResult& result) {
    std::vector<std::string> notes;
    if (fact(result, "software") == "true") {
        notes.push_back(
            fmt::format("On {} user-space verbs make a system call for each doorbell, so the kernel "
                        "path can win here. This says nothing about hardware, where user-space "
                        "verbs bypass the kernel. In software TCP is faster than either.",
                        fact(result, "driver")));
    }
    if (const size_t missing = result.missing().size())
        notes.push_back(fmt::format("{} of {} works are not measured yet.", missing,
                                    bench::works_of(result.grid).size()));
    size_t nr_spoiled = 0, nr_unverified = 0;
    for (const auto& row : result.rows) {
        nr_spoiled += row.obstacle.empty() ? 0 : 1;
        nr_unverified +=
            static_cast<size_t>(std::ranges::count(row.cells, false, &bench::SweepCell::verified));
    }
    if (nr_unverified)
        notes.push_back(
            fmt::format("The data of {} cells was not verified: the peer's memory was opened for READ only.",
                        nr_unverified));
    if (nr_spoiled)
        notes.push_back(
            fmt::format("{} works are in no sentence, because the machine spoiled them: the host took "
                        "CPU time, or the CPU's frequency changed.",
                        nr_spoiled));
    notes.emplace_back(
        "A difference is called significant when the 95 % interval of the ratio to the fastest, "
        "over the rounds, does not hold 1; intervals are not widened for how many are compared, so "
        "of twenty equal ways one may seem to differ.");
    return notes;
}

std::string short_bytes(uint64_t bytes) {
    return bytes < 1024 ? fmt::format("{} B", bytes) : human_bytes(bytes);
}

std::string short_time(double ns) {
    static constexpr std::pair<double, const char*> units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    for (const auto& [unit, name] : units) {
        const double number = ns / unit;
        if (number >= 1)
            return fmt::format("{:.{}f} {}", number, number < 10 ? 2 : number < 100 ? 1 : 0, name);
    }
    return fmt::format("{:.0f} ns", ns);
}

std::vector<std::string> kinds_of(const bench::SweepResult& result) {
    std::vector<std::string> kinds;
    for (const auto& row : result.rows)
        if (std::ranges::find(kinds, row.work.kind()) == kinds.end()) kinds.push_back(row.work.kind());
    return kinds;
}

std::vector<const SweepRow*> rows_of(const bench::SweepResult& result, const std::string& kind) {
    std::vector<const SweepRow*> rows;
    for (const auto& row : result.rows)
        if (row.work.kind() == kind) rows.push_back(&row);
    std::ranges::sort(rows, {}, [](const auto* row) { return row->work.size; });
    return rows;
}

} // namespace kxfer::cli
