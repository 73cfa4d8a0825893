// SPDX-License-Identifier: MIT
//
// Verification of a cell: each engine first shows that it moves data of a sequence
// that no other has written, because engines may share the peer's memory: kverbs and
// job do. Behind the measurement all have the same data, which is read back by each.

#include "bench/comparison.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bench/syscall_counter.hpp"
#include "bench/verification.hpp"

namespace kxfer::bench {

namespace {

// Proves the engine's own WRITEs and READs, by a sequence of its own. Also brings
// everything into caches and page tables before it is timed.
tl::expected<void, Error> prepare(Engine& engine, const Memory& memory, const Workload& workload) {
    if (!engine.remote_writable()) return sweep(engine, workload, Operation::read);
    const uint64_t sequence = fill_slots(memory, workload);
    if (auto written = sweep(engine, workload, Operation::write); !written) return written;
    return verify_slots(engine, memory, workload, sequence);
}

// Gives all engines' remote memory the same data, which a cell of WRITEs does itself.
// Returns its sequence.
tl::expected<uint64_t, Error> fill_all(std::span<Engine* const> engines, const Memory& memory,
                                       const Workload& workload) {
    const uint64_t sequence = fill_slots(memory, workload);

    if (workload.operation == Operation::write) return sequence;
    for (Engine* engine : engines) {
        if (!engine->remote_writable()) continue;
        if (auto written = sweep(*engine, workload, Operation::write); !written)
            return tl::unexpected(written.error());
    }
    return sequence;
}

tl::expected<double, Error> measure(Engine& engine, const Workload& workload, Mode mode, const Limits& limits,
                                    EngineResult& result) {
    auto block = engine.run_block(workload, mode, limits);
    if (!block) return tl::unexpected(block.error());

    ModeResult& into = mode == Mode::single ? result.single : result.deep;
    const double figure = mode == Mode::single ? static_cast<double>(block->latencies.percentile(50))
                                               : static_cast<double>(block->elapsed_ns) /
                                                     static_cast<double>(block->operations);
    into.blocks.push_back(figure);
    into.operations += block->operations;
    result.latencies.add(block->latencies);
    return figure;
}

// One engine: its blocks. More: A B B A, A B C C B A.
std::vector<size_t> round_order(size_t engines) {
    std::vector<size_t> order;

    for (size_t i = 0; i < engines; i++) order.push_back(i);
    for (size_t i = engines; i > 0; i--) order.push_back(i - 1);
    return order;
}

// Each engine gets the ratio of the last one's time to its own.
tl::expected<void, Error> run_rounds(std::span<Engine* const> engines, const Workload& workload, Mode mode,
                                     const Plan& plan, Cell& cell) {
    const auto order = round_order(engines.size());
    // Two modes share the budget.
    const Limits limits{plan.count, plan.budget / 2 / (order.size() * plan.rounds), plan.stopped};
    std::vector<std::vector<std::pair<double, double>>> pairs(engines.size());

    for (unsigned round = 0; round < plan.rounds; round++) {
        std::vector<double> product(engines.size(), 1);
        for (size_t which : order) {
            auto figure = measure(*engines[which], workload, mode, limits, cell.engines[which]);
            if (!figure) return tl::unexpected(figure.error());
            product[which] *= *figure;
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

tl::expected<void, Error> count_calls(Engine& engine, const Workload& workload, EngineResult& result,
                                      std::string& uncounted) {
    for (Mode mode : {Mode::single, Mode::deep}) {
        auto calls = count_syscalls(engine, workload, mode);

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

tl::expected<Cell, Error> run_cell(std::span<Engine* const> engines, const Memory& memory,
                                   const Workload& workload, const Plan& plan) {
    Cell cell;

    cell.workload = workload;
    for (Engine* engine : engines) {
        cell.engines.emplace_back().engine = engine->name();
        if (auto ready = prepare(*engine, memory, workload); !ready) return tl::unexpected(ready.error());
    }
    const auto sequence = fill_all(engines, memory, workload);
    if (!sequence) return tl::unexpected(sequence.error());
    for (Mode mode : {Mode::single, Mode::deep})
        if (auto run = run_rounds(engines, workload, mode, plan, cell); !run)
            return tl::unexpected(run.error());
    for (size_t i = 0; i < engines.size(); i++)
        if (auto counted = count_calls(*engines[i], workload, cell.engines[i], cell.uncounted); !counted)
            return tl::unexpected(counted.error());
    for (size_t i = 0; i < engines.size(); i++) {
        if (!engines[i]->remote_writable()) continue;
        if (auto fine = verify_slots(*engines[i], memory, workload, *sequence); !fine)
            return tl::unexpected(fine.error());
        cell.engines[i].verified = true;
    }
    return cell;
}

tl::expected<uint64_t, Error> prepare_data(Engine& engine, const Memory& memory, const Workload& workload) {
    Engine* const engines[] = {&engine};

    if (auto ready = prepare(engine, memory, workload); !ready) return tl::unexpected(ready.error());
    return fill_all(engines, memory, workload);
}

tl::expected<bool, Error> verify_data(Engine& engine, const Memory& memory, const Workload& workload,
                                      uint64_t sequence) {
    if (!engine.remote_writable()) return false;
    if (auto fine = verify_slots(engine, memory, workload, sequence); !fine)
        return tl::unexpected(fine.error());
    return true;
}

} // namespace kxfer::bench
