// SPDX-License-Identifier: MIT
//
// How the data of a cell is verified: engine/evidence.cpp, and for the data that an engine's last
// block of READs brought engine/read_check.hpp.

#include "bench/stats/comparison.hpp"

#include <cerrno>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "engine/read_check.hpp"
#include "engine/syscall_counter.hpp"

namespace kxfer::bench {

namespace {

// Runs a block; returns it with what the thread used for it.
tl::expected<std::pair<Block, Usage>, Error> run_watched(Engine& engine, const Workload& workload, Mode mode,
                                                         Limits limits) {
    limits.bare = true;
    TRY(engine.begin_block(workload));
    const Usage before = usage_now();
    auto block = engine.run_block(workload, mode, limits);
    const Usage used = usage_now() - before;
    if (!block) return tl::unexpected(block.error());
    TRY(engine.end_block(workload));
    return std::pair(std::move(*block), used);
}

// Runs and checks one block; last: also checks the data that its READs bring.
tl::expected<double, Error> measure(Engine& engine, const Memory& memory, const Workload& workload, Mode mode,
                                    const Limits& limits, bool last, EngineResult& result) {
    ReadCheck reads(engine, memory, workload, mode);
    TRY(begin_counting(engine, workload, result.evidence));
    if (last) TRY(reads.begin(result.evidence));
    TRY_SET(const auto run, run_watched(engine, workload, mode, limits));
    const auto& [block, used] = run;
    TRY(end_counting(engine, memory, workload, mode, block.operations, result.evidence));
    TRY(reads.end(result.evidence));

    ModeResult& into = mode == Mode::single ? result.single : result.deep;
    const double figure = mode == Mode::deep
                              ? static_cast<double>(block.elapsed_ns) / static_cast<double>(block.operations)
                              : block.median_ns.value_or(static_cast<double>(block.latencies.percentile(50)));
    into.blocks.push_back(figure);
    into.operations += block.operations;
    into.usage = into.usage + used;
    if (mode == Mode::single) result.latencies.add(block.latencies);
    return figure;
}

// Order of the blocks of a round: A A, A B B A, A B C C B A.
std::vector<size_t> round_order(size_t engines) {
    std::vector<size_t> order;

    for (size_t i = 0; i < engines; i++) order.push_back(i);
    for (size_t i = engines; i > 0; i--) order.push_back(i - 1);
    return order;
}

// Each engine gets the ratio of the last one's time to its own.
tl::expected<void, Error> run_rounds(std::span<Engine* const> engines, const Memory& memory,
                                     const Workload& workload, Mode mode, const Plan& plan, Cell& cell) {
    const auto order = round_order(engines.size());
    // The modes share the budget.
    const auto nr_blocks = plan.modes.size() * order.size() * plan.rounds;
    const Limits limits{plan.count, plan.block.value_or(plan.budget / nr_blocks), plan.stopped};
    std::vector<std::vector<std::pair<double, double>>> pairs(engines.size());

    for (unsigned round = 0; round < plan.rounds; round++) {
        std::vector<double> product(engines.size(), 1);
        for (size_t at = 0; at < order.size(); at++) {
            const size_t which = order[at];
            const bool last = round + 1 == plan.rounds && at >= engines.size();
            TRY_SET(auto figure,
                    measure(*engines[which], memory, workload, mode, limits, last, cell.engines[which]));
            product[which] *= figure;
        }
        // Each figure was taken twice: the root is their geometric mean.
        for (size_t i = 0; i < engines.size(); i++)
            pairs[i].emplace_back(std::sqrt(product.back()), std::sqrt(product[i]));
    }
    for (size_t i = 0; i + 1 < engines.size(); i++) {
        auto& result = mode == Mode::single ? cell.engines[i].single : cell.engines[i].deep;
        result.last_to_this = ratio_of(pairs[i]);
    }
    return {};
}

tl::expected<void, Error> count_calls(Engine& engine, const Memory& memory, const Workload& workload,
                                      const Plan& plan, EngineResult& result, std::string& uncounted) {
    for (Mode mode : plan.modes) {
        uint64_t operations = 0;
        TRY(begin_counting(engine, workload, result.evidence));
        auto calls = count_syscalls(engine, workload, mode, &operations);
        TRY(end_counting(engine, memory, workload, mode, operations, result.evidence));
        if (calls) {
            (mode == Mode::single ? result.single : result.deep).syscalls = *calls;
            continue;
        }
        if (calls.error().what != SyscallCounter::cannot_count) return tl::unexpected(calls.error());
        uncounted = fmt::format("{}; {}", calls.error().text(), calls.error().hint);
    }
    return {};
}

} // namespace

double ModeResult::operations_per_second() const {
    const double ns = ns_per_operation();

    return ns > 0 ? 1e9 / ns : 0;
}

double ModeResult::cpu_ns_per_operation() const {
    return operations ? usage.cpu_ns() / static_cast<double>(operations) : 0;
}

double ModeResult::switches_per_operation() const {
    return operations ? static_cast<double>(usage.switches()) / static_cast<double>(operations) : 0;
}

std::vector<Connection> Cell::connections() const {
    std::vector<Connection> all;
    for (const auto& engine : engines) all.push_back(engine.connection);
    return all;
}

std::string find_difference(const Cell& cell) {
    for (size_t b = 1; b < cell.engines.size(); b++)
        for (size_t a = 0; a < b; a++)
            if (auto difference = find_difference(cell.engines[a].engine, cell.engines[a].connection,
                                                  cell.engines[b].engine, cell.engines[b].connection);
                !difference.empty())
                return difference;
    return {};
}

tl::expected<Cell, Error> run_cell(std::span<Engine* const> engines, const Memory& memory,
                                   const Workload& workload, const Plan& plan) {
    std::vector<Engine*> able;
    Cell cell;

    cell.workload = workload;
    for (Engine* engine : engines) {
        EngineResult result;
        result.engine = engine->name();
        const auto parameters = engine->parameters(workload);
        result.local_registration = parameters.local_registration;
        if (is_message(workload.operation)) result.message_success = parameters.message_success;
        auto ready = prove(*engine, memory, workload, result.evidence);
        if (!ready && ready.error().number == EOPNOTSUPP) {
            cell.refusals.push_back({engine->name(), ready.error()});
            continue;
        }
        if (!ready) return tl::unexpected(ready.error());
        // An engine may have connected anew for the workload.
        result.connection = engine->parameters(workload).connection;
        able.push_back(engine);
        cell.engines.push_back(std::move(result));
    }
    if (able.empty()) return cell;
    TRY_SET(const auto sequence, fill_all(able, memory, workload));
    for (auto& result : cell.engines) result.evidence.sequence = sequence;
    for (Mode mode : plan.modes) TRY(run_rounds(able, memory, workload, mode, plan, cell));
    for (size_t i = 0; i < able.size(); i++)
        TRY(count_calls(*able[i], memory, workload, plan, cell.engines[i], cell.uncounted));
    for (size_t i = 0; i < able.size(); i++) {
        // Each block of atomics has been verified.
        cell.engines[i].verified = counts(*able[i], workload);
        if (cell.engines[i].verified) continue;
        TRY(able[i]->settle());
        cell.engines[i].losses = able[i]->losses();
        TRY_SET(cell.engines[i].verified, verify_data(*able[i], memory, workload, cell.engines[i].evidence));
    }
    return cell;
}

} // namespace kxfer::bench
