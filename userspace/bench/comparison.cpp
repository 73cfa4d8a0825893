// SPDX-License-Identifier: MIT
//
// Verification of a cell: the peer's memory gets a pattern by the engine's own
// WRITEs, or has it already from a cell's WRITEs, and is read back after the
// local memory was wiped. Each engine has remote memory of its own.

#include "bench/comparison.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "bench/syscall_counter.hpp"

namespace kxfer::bench {

namespace {

constexpr uint64_t read_seed = 1, write_seed = 2;

std::span<std::byte> slot(const Memory& memory, const Workload& workload, unsigned index) {
    return memory.bytes().subspan(workload.slot_offset(index), workload.size);
}

void fill_slots(const Memory& memory, const Workload& workload, uint64_t seed) {
    for (unsigned i = 0; i < workload.depth; i++)
        fill_pattern(slot(memory, workload, i), seed, workload.slot_offset(i));
}

tl::expected<void, Error> check_slots(const Engine& engine, const Memory& memory, const Workload& workload,
                                      uint64_t seed) {
    for (unsigned i = 0; i < workload.depth; i++)
        if (auto at = find_damage(slot(memory, workload, i), seed, workload.slot_offset(i)))
            return tl::unexpected(
                Error(fmt::format("engine {} moved wrong data", engine.name()),
                      fmt::format("{} of {} bytes, operation {}, byte {}", operation_name(workload.operation),
                                  workload.size, i, *at),
                      EBADMSG, "keep this result: it is a defect of engine or stack"));
    return {};
}

tl::expected<void, Error> read_back(Engine& engine, const Memory& memory, const Workload& workload,
                                    uint64_t seed) {
    for (unsigned i = 0; i < workload.depth; i++) memset(slot(memory, workload, i).data(), 0, workload.size);
    if (auto swept = sweep(engine, workload, Operation::read); !swept) return swept;
    return check_slots(engine, memory, workload, seed);
}

// Also brings everything into caches and page tables before it is timed.
tl::expected<void, Error> prepare(Engine& engine, const Memory& memory, const Workload& workload) {
    if (!engine.remote_writable()) return sweep(engine, workload, Operation::read);
    fill_slots(memory, workload, read_seed);
    if (auto written = sweep(engine, workload, Operation::write); !written) return written;
    return read_back(engine, memory, workload, read_seed);
}

tl::expected<void, Error> verify(Engine& engine, const Memory& memory, const Workload& workload) {
    if (!engine.remote_writable()) return {};
    return read_back(engine, memory, workload,
                     workload.operation == Operation::write ? write_seed : read_seed);
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
    if (workload.operation == Operation::write) fill_slots(memory, workload, write_seed);
    for (Mode mode : {Mode::single, Mode::deep})
        if (auto run = run_rounds(engines, workload, mode, plan, cell); !run)
            return tl::unexpected(run.error());
    for (size_t i = 0; i < engines.size(); i++)
        if (auto counted = count_calls(*engines[i], workload, cell.engines[i], cell.uncounted); !counted)
            return tl::unexpected(counted.error());
    for (size_t i = 0; i < engines.size(); i++) {
        if (auto fine = verify(*engines[i], memory, workload); !fine) return tl::unexpected(fine.error());
        cell.engines[i].verified = engines[i]->remote_writable();
    }
    return cell;
}

tl::expected<void, Error> prepare_data(Engine& engine, const Memory& memory, const Workload& workload) {
    if (auto ready = prepare(engine, memory, workload); !ready) return ready;
    if (workload.operation == Operation::write) fill_slots(memory, workload, write_seed);
    return {};
}

tl::expected<bool, Error> verify_data(Engine& engine, const Memory& memory, const Workload& workload) {
    if (auto fine = verify(engine, memory, workload); !fine) return tl::unexpected(fine.error());
    return engine.remote_writable();
}

} // namespace kxfer::bench
