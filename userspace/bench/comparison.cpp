// SPDX-License-Identifier: MIT
//
// Verification of a cell: engines may share the peer's memory (kverbs and job do). So each
// engine first shows that it moves data of a sequence that no other engine has written. After
// the measurement all have the same data, which each engine reads back; and the data that its
// last block of READs brought is checked (read_check.hpp). Atomics count each slot up from
// zero; the count is read back.
//
// An engine that is not reliable may lose what it sends. A lost message moves all later ones
// to other slots, and a lost WRITE leaves its slot as it was. Then the data is sent again, a
// limited number of times, and verified if it arrives as a whole.

#include "bench/comparison.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "bench/read_check.hpp"
#include "bench/syscall_counter.hpp"
#include "bench/verification.hpp"

namespace kxfer::bench {

namespace {

constexpr int lossy_tries = 8;

tl::expected<void, Error> check_counts(Engine& engine, const Memory& memory, const Workload& workload,
                                       const Evidence& evidence) {
    const auto slot = [&](unsigned i) {
        return memory.bytes().subspan(workload.slot_offset(i), workload.size);
    };

    for (unsigned i = 0; i < workload.depth; i++) memset(slot(i).data(), -1, workload.size);
    if (auto swept = sweep(engine, workload, Operation::read); !swept) return swept;
    for (unsigned i = 0; i < workload.depth; i++) {
        uint64_t value = 0;

        memcpy(&value, slot(i).data(), sizeof(value));
        if (value != evidence.slot_operations[i])
            return tl::unexpected(
                Error(fmt::format("engine {} counted wrongly", engine.name()),
                      fmt::format("{} on slot {}: {} after {} operations", operation_name(workload.operation),
                                  i, value, evidence.slot_operations[i]),
                      EBADMSG, wrong_data_advice));
    }
    return {};
}

// The peer's memory cannot hold data that could be verified.
bool leaves_nothing(const Engine& engine, const Workload& workload) {
    return workload.work != Work::transfer || !engine.remote_writable();
}

// WRITEs that verify another operation are reliable.
bool loses_writes(const Engine& engine, const Workload& workload) {
    return !engine.is_reliable() && workload.operation == Operation::write;
}

// measured: checks what the measurement left; else WRITEs first. Lost data is WRITTEN again, up to
// lossy_tries times. A WRITE lost before the measurement may leave any data; after it, damage has to
// look like a loss.
tl::expected<void, Error> verify_writes(Engine& engine, const Memory& memory, const Workload& workload,
                                        uint64_t sequence, bool measured) {
    for (int i = measured ? 0 : 1;; i++) {
        if (i > 0)
            if (auto written = sweep(engine, workload, Operation::write); !written) return written;
        const auto found = find_damage(engine, memory, workload, sequence);
        if (!found) return tl::unexpected(found.error());
        if (!*found) return {};
        const Error error = wrong_data(engine, workload, **found);
        if (!loses_writes(engine, workload) || (measured && !is_loss((*found)->finding, workload)))
            return tl::unexpected(error);
        if (i == lossy_tries)
            return tl::unexpected(Error(fmt::format("no WRITE of {} arrived as a whole", lossy_tries), "",
                                        EBADMSG, "UC loses without telling; does --transport rc do it?",
                                        error.text()));
        refill_slots(memory, workload, sequence);
    }
}

// False: each try lost something.
tl::expected<bool, Error> verify_afresh(Engine& engine, const Memory& memory, const Workload& workload) {
    for (int i = 0; i < lossy_tries; i++) {
        if (auto ready = engine.make_ready(workload); !ready) return tl::unexpected(ready.error());
        const uint64_t sequence = fill_slots(memory, workload);
        if (auto sent = sweep(engine, workload, workload.operation); !sent)
            return tl::unexpected(sent.error());
        if (auto settled = engine.settle(); !settled) return tl::unexpected(settled.error());
        const auto losses = engine.losses();
        if (losses && losses->lost) continue;
        if (auto fine = verify_slots(engine, memory, workload, sequence); !fine)
            return tl::unexpected(fine.error());
        return true;
    }
    return false;
}

// Verifies the engine's operations, WRITEs and READs with a new sequence. Also brings
// everything into caches and page tables before the measurement.
tl::expected<void, Error> prepare(Engine& engine, const Memory& memory, const Workload& workload,
                                  Evidence& evidence) {
    evidence.slot_operations.assign(workload.depth, 0);
    if (auto ready = engine.make_ready(workload); !ready) return ready;
    if (leaves_nothing(engine, workload)) return sweep(engine, workload, Operation::read);
    if (is_atomic(workload.operation)) {
        if (auto zero = check_counts(engine, memory, workload, evidence); !zero) return zero;
        evidence.count(workload.depth, workload.depth);
        return sweep(engine, workload, workload.operation);
    }
    const uint64_t sequence = fill_slots(memory, workload);
    if (auto fine = verify_writes(engine, memory, workload, sequence, false); !fine) return fine;
    return is_message(workload.operation) ? sweep(engine, workload, workload.operation)
                                          : tl::expected<void, Error>();
}

bool counts(const Engine& engine, const Workload& workload) {
    return is_atomic(workload.operation) && !leaves_nothing(engine, workload);
}

// Engines may share the peer's words, so each block of atomics counts from zero.
tl::expected<void, Error> begin_block(Engine& engine, const Workload& workload, Evidence& evidence) {
    if (!counts(engine, workload)) return {};
    evidence.slot_operations.assign(workload.depth, 0);
    return engine.make_ready(workload);
}

tl::expected<void, Error> end_block(Engine& engine, const Memory& memory, const Workload& workload, Mode mode,
                                    uint64_t operations, Evidence& evidence) {
    evidence.count(engine.slots(workload, mode), operations);
    return counts(engine, workload) ? check_counts(engine, memory, workload, evidence)
                                    : tl::expected<void, Error>();
}

// Fills all engines' remote memory with the same data, which WRITEs and messages do themselves.
// Returns the data's sequence; 0 with atomics.
tl::expected<uint64_t, Error> fill_all(std::span<Engine* const> engines, const Memory& memory,
                                       const Workload& workload) {
    if (is_atomic(workload.operation) || workload.work != Work::transfer) return 0;
    const uint64_t sequence = fill_slots(memory, workload);
    for (Engine* engine : engines) {
        if (auto loaded = engine->load(); !loaded) return tl::unexpected(loaded.error());
        // In a mix, a READ may be done before the WRITE of its slot.
        if (workload.operation != Operation::read && !workload.is_mix()) continue;
        if (!engine->remote_writable()) continue;
        if (auto written = sweep(*engine, workload, Operation::write); !written)
            return tl::unexpected(written.error());
    }
    return sequence;
}

// Runs a block; returns it with what the thread used for it.
tl::expected<std::pair<Block, Usage>, Error> run_watched(Engine& engine, const Workload& workload, Mode mode,
                                                         Limits limits) {
    limits.bare = true;
    if (auto begun = engine.begin_block(workload); !begun) return tl::unexpected(begun.error());
    const Usage before = usage_now();
    auto block = engine.run_block(workload, mode, limits);
    const Usage used = usage_now() - before;
    if (!block) return tl::unexpected(block.error());
    if (auto ended = engine.end_block(workload); !ended) return tl::unexpected(ended.error());
    return std::pair(std::move(*block), used);
}

// Runs and checks one block; last: also checks the data that its READs bring.
tl::expected<double, Error> measure(Engine& engine, const Memory& memory, const Workload& workload, Mode mode,
                                    const Limits& limits, bool last, EngineResult& result) {
    ReadCheck reads(engine, memory, workload, mode);
    if (auto ready = begin_block(engine, workload, result.evidence); !ready)
        return tl::unexpected(ready.error());
    if (last)
        if (auto wiped = reads.begin(result.evidence); !wiped) return tl::unexpected(wiped.error());
    const auto run = run_watched(engine, workload, mode, limits);
    if (!run) return tl::unexpected(run.error());
    const auto& [block, used] = *run;
    if (auto fine = end_block(engine, memory, workload, mode, block.operations, result.evidence); !fine)
        return tl::unexpected(fine.error());
    if (auto fine = reads.end(result.evidence); !fine) return tl::unexpected(fine.error());

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
            auto figure = measure(*engines[which], memory, workload, mode, limits, last, cell.engines[which]);
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

tl::expected<void, Error> count_calls(Engine& engine, const Memory& memory, const Workload& workload,
                                      const Plan& plan, EngineResult& result, std::string& uncounted) {
    for (Mode mode : plan.modes) {
        uint64_t operations = 0;
        if (auto ready = begin_block(engine, workload, result.evidence); !ready) return ready;
        auto calls = count_syscalls(engine, workload, mode, &operations);
        auto fine = end_block(engine, memory, workload, mode, operations, result.evidence);

        if (!fine) return fine;
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

void Evidence::count(unsigned slots, uint64_t operations) {
    for (unsigned i = 0; i < slots; i++)
        slot_operations[i] += operations / slots + (i < operations % slots ? 1 : 0);
}

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
        auto ready = prepare(*engine, memory, workload, result.evidence);
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
    const auto sequence = fill_all(able, memory, workload);
    if (!sequence) return tl::unexpected(sequence.error());
    for (auto& result : cell.engines) result.evidence.sequence = *sequence;
    for (Mode mode : plan.modes)
        if (auto run = run_rounds(able, memory, workload, mode, plan, cell); !run)
            return tl::unexpected(run.error());
    for (size_t i = 0; i < able.size(); i++)
        if (auto counted = count_calls(*able[i], memory, workload, plan, cell.engines[i], cell.uncounted);
            !counted)
            return tl::unexpected(counted.error());
    for (size_t i = 0; i < able.size(); i++) {
        // Each block of atomics has been verified.
        cell.engines[i].verified = counts(*able[i], workload);
        if (cell.engines[i].verified) continue;
        if (auto settled = able[i]->settle(); !settled) return tl::unexpected(settled.error());
        cell.engines[i].losses = able[i]->losses();
        auto verified = verify_data(*able[i], memory, workload, cell.engines[i].evidence);
        if (!verified) return tl::unexpected(verified.error());
        cell.engines[i].verified = *verified;
    }
    return cell;
}

tl::expected<Evidence, Error> prepare_data(Engine& engine, const Memory& memory, const Workload& workload) {
    Engine* const engines[] = {&engine};
    Evidence evidence;

    if (auto ready = prepare(engine, memory, workload, evidence); !ready)
        return tl::unexpected(ready.error());
    const auto sequence = fill_all(engines, memory, workload);
    if (!sequence) return tl::unexpected(sequence.error());
    evidence.sequence = *sequence;
    return evidence;
}

tl::expected<bool, Error> verify_data(Engine& engine, const Memory& memory, const Workload& workload,
                                      const Evidence& evidence) {
    if (leaves_nothing(engine, workload)) return engine.verifies_itself();
    if (const auto losses = engine.losses(); losses && losses->lost)
        return verify_afresh(engine, memory, workload);
    auto fine = is_atomic(workload.operation)
                    ? check_counts(engine, memory, workload, evidence)
                    : verify_writes(engine, memory, workload, evidence.sequence, true);
    if (!fine) return tl::unexpected(fine.error());
    return true;
}

} // namespace kxfer::bench
