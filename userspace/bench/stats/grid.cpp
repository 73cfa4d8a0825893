// SPDX-License-Identifier: MIT
#include "bench/stats/grid.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace kxfer::bench {

namespace {

// Time around the blocks of a cell: for filling and verifying data, and counting system calls.
constexpr double seconds_around = 0.1;

} // namespace

std::string Task::kind() const {
    std::string text = operation_name(operation);
    for (char& c : text) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
    if (depth == 1) return text + ", one at a time";
    return fmt::format("{}, {} deep{}", text, depth, signal == "batch" ? ", a completion a batch" : "");
}

std::string Way::name() const {
    std::string text = engine;
    for (const auto* part : {&context, &memory, &poll})
        if (!part->empty()) text += ' ' + *part;
    return text;
}

Plan SweepPlan::plan_of(Mode mode) const {
    Plan plan{rounds, count};
    plan.modes = {mode};
    plan.block = block;
    return plan;
}

double SweepPlan::seconds_of(size_t ways) const {
    const std::chrono::duration<double> blocks = block * (2 * rounds);
    return static_cast<double>(ways) * (blocks.count() + seconds_around);
}

std::vector<Task> works_of(const Grid& grid) {
    std::vector<Task> works;

    for (const auto& signal : grid.signals)
        for (const auto& name : grid.operations)
            for (const uint64_t size : grid.sizes)
                for (const unsigned depth : grid.depths) {
                    Task work{*operation_from(name), size, depth, signal};
                    if (is_atomic(work.operation)) work.size = atomic_bytes;
                    if (depth == 1) work.signal = grid.signals.front();
                    if (std::ranges::find(works, work) == works.end()) works.push_back(work);
                }
    return works;
}

Way way_of(const std::string& engine, const std::string& context, const std::string& memory,
           const std::string& poll) {
    Way way{engine, "", "", ""};

    if (engine != "verbs") way.context = context;
    if (engine == "kverbs") way.memory = memory;
    if (engine == "job" && context == "polled") way.poll = poll;
    return way;
}

std::vector<Way> ways_of(const Grid& grid) {
    std::vector<Way> ways;

    for (const auto& engine : grid.engines)
        for (const auto& context : grid.contexts)
            for (const auto& memory : grid.memories)
                for (const auto& poll : grid.polls) {
                    // Direct needs a single poller of the CQ; with jobs, others poll it too.
                    if (engine == "job" && context == "direct") continue;
                    const Way way = way_of(engine, context, memory, poll);
                    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
                }
    return ways;
}

Way usual_way(const Grid& grid, const std::string& engine) {
    return way_of(engine, grid.contexts.front(), grid.memories.front(), grid.polls.front());
}

} // namespace kxfer::bench
