// SPDX-License-Identifier: MIT
//
// Engines may share the peer's memory (kverbs and job do). So each engine first shows that it moves
// data of a sequence that no other engine has written. After the measurement all have the same data,
// which each engine reads back. Atomics count each slot up from zero; the count is read back.
//
// An engine that is not reliable may lose what it sends. A lost message moves all later ones
// to other slots, and a lost WRITE leaves its slot as it was. Then the data is sent again, a
// limited number of times, and verified if it arrives as a whole.

#include "engine/evidence.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/try.hpp"
#include "engine/runner.hpp"
#include "engine/verification.hpp"

namespace kxfer::bench {

namespace {

constexpr int lossy_tries = 8;

tl::expected<void, Error> check_counts(Engine& engine, const Memory& memory, const Workload& workload,
                                       const Evidence& evidence) {
    const auto slot = [&](unsigned i) {
        return memory.bytes().subspan(workload.slot_offset(i), workload.size);
    };

    for (unsigned i = 0; i < workload.depth; i++) memset(slot(i).data(), -1, workload.size);
    TRY(sweep(engine, workload, Operation::read));
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
        if (i > 0) TRY(sweep(engine, workload, Operation::write));
        TRY_SET(const auto found, find_damage(engine, memory, workload, sequence));
        if (!found) return {};
        const Error error = wrong_data(engine, workload, *found);
        if (!loses_writes(engine, workload) || (measured && !is_loss(found->finding, workload)))
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
        TRY(engine.make_ready(workload));
        const uint64_t sequence = fill_slots(memory, workload);
        TRY(sweep(engine, workload, workload.operation));
        TRY(engine.settle());
        const auto losses = engine.losses();
        if (losses && losses->lost) continue;
        TRY(verify_slots(engine, memory, workload, sequence));
        return true;
    }
    return false;
}

} // namespace

void Evidence::count(unsigned slots, uint64_t operations) {
    for (unsigned i = 0; i < slots; i++)
        slot_operations[i] += operations / slots + (i < operations % slots ? 1 : 0);
}

tl::expected<void, Error> prove(Engine& engine, const Memory& memory, const Workload& workload,
                                Evidence& evidence) {
    evidence.slot_operations.assign(workload.depth, 0);
    TRY(engine.make_ready(workload));
    if (leaves_nothing(engine, workload)) return sweep(engine, workload, Operation::read);
    if (is_atomic(workload.operation)) {
        TRY(check_counts(engine, memory, workload, evidence));
        evidence.count(workload.depth, workload.depth);
        return sweep(engine, workload, workload.operation);
    }
    const uint64_t sequence = fill_slots(memory, workload);
    TRY(verify_writes(engine, memory, workload, sequence, false));
    return is_message(workload.operation) ? sweep(engine, workload, workload.operation)
                                          : tl::expected<void, Error>();
}

bool counts(const Engine& engine, const Workload& workload) {
    return is_atomic(workload.operation) && !leaves_nothing(engine, workload);
}

tl::expected<void, Error> begin_counting(Engine& engine, const Workload& workload, Evidence& evidence) {
    if (!counts(engine, workload)) return {};
    evidence.slot_operations.assign(workload.depth, 0);
    return engine.make_ready(workload);
}

tl::expected<void, Error> end_counting(Engine& engine, const Memory& memory, const Workload& workload,
                                       Mode mode, uint64_t operations, Evidence& evidence) {
    evidence.count(engine.slots(workload, mode), operations);
    return counts(engine, workload) ? check_counts(engine, memory, workload, evidence)
                                    : tl::expected<void, Error>();
}

tl::expected<uint64_t, Error> fill_all(std::span<Engine* const> engines, const Memory& memory,
                                       const Workload& workload) {
    if (is_atomic(workload.operation) || workload.work != Work::transfer) return 0;
    const uint64_t sequence = fill_slots(memory, workload);
    for (Engine* engine : engines) {
        TRY(engine->load());
        // In a mix, a READ may be done before the WRITE of its slot.
        if (workload.operation != Operation::read && !workload.is_mix()) continue;
        if (!engine->remote_writable()) continue;
        TRY(sweep(*engine, workload, Operation::write));
    }
    return sequence;
}

tl::expected<Evidence, Error> prepare_data(Engine& engine, const Memory& memory, const Workload& workload) {
    Engine* const engines[] = {&engine};
    Evidence evidence;

    TRY(prove(engine, memory, workload, evidence));
    TRY_SET(evidence.sequence, fill_all(engines, memory, workload));
    return evidence;
}

tl::expected<bool, Error> verify_data(Engine& engine, const Memory& memory, const Workload& workload,
                                      const Evidence& evidence) {
    if (leaves_nothing(engine, workload)) return engine.verifies_itself();
    if (const auto losses = engine.losses(); losses && losses->lost)
        return verify_afresh(engine, memory, workload);
    TRY(is_atomic(workload.operation) ? check_counts(engine, memory, workload, evidence)
                                      : verify_writes(engine, memory, workload, evidence.sequence, true));
    return true;
}

} // namespace kxfer::bench
