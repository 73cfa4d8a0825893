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
    auto block = run_block(engine, workload, mode, limits);
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

// One engine: its blocks. Two: A B B A.
tl::expected<std::optional<Ratio>, Error> run_rounds(std::span<Engine* const> engines,
                                                     const Workload& workload, Mode mode, const Plan& plan,
                                                     Cell& cell) {
    const std::vector<size_t> order =
        engines.size() == 1 ? std::vector<size_t>{0, 0} : std::vector<size_t>{0, 1, 1, 0};
    // Two modes share the budget.
    const Limits limits{plan.count, plan.budget / 2 / (order.size() * plan.rounds), plan.stopped};
    std::vector<std::pair<double, double>> pairs;

    for (unsigned round = 0; round < plan.rounds; round++) {
        double product[2] = {1, 1};
        for (size_t which : order) {
            auto figure = measure(*engines[which], workload, mode, limits, cell.engines[which]);
            if (!figure) return tl::unexpected(figure.error());
            product[which] *= *figure;
        }
        // Each figure was taken twice: the root is their geometric mean.
        pairs.emplace_back(std::sqrt(product[1]), std::sqrt(product[0]));
    }
    return engines.size() == 1 ? std::nullopt : ratio_of(pairs);
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
    for (Mode mode : {Mode::single, Mode::deep}) {
        auto ratio = run_rounds(engines, workload, mode, plan, cell);
        if (!ratio) return tl::unexpected(ratio.error());
        (mode == Mode::single ? cell.single_ratio : cell.deep_ratio) = *ratio;
    }
    for (size_t i = 0; i < engines.size(); i++)
        if (auto counted = count_calls(*engines[i], workload, cell.engines[i], cell.uncounted); !counted)
            return tl::unexpected(counted.error());
    for (size_t i = 0; i < engines.size(); i++) {
        if (auto fine = verify(*engines[i], memory, workload); !fine) return tl::unexpected(fine.error());
        cell.engines[i].verified = engines[i]->remote_writable();
    }
    return cell;
}

} // namespace kxfer::bench
