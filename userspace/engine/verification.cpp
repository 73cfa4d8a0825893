// SPDX-License-Identifier: MIT
#include "engine/verification.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "base/try.hpp"
#include "engine/runner.hpp"

namespace kxfer::bench {

namespace {

constexpr std::byte wiped{0};
uint64_t last_sequence;
constexpr uint64_t seed = 1;
// The self-test's damage: where in the operations, and by how much they are cut short.
constexpr unsigned damaged_operation = 1;
constexpr size_t damaged_byte = 1000, swapped_block = 5, other_block = 9, cut_bytes = 100;

std::span<std::byte> slot(const Memory& memory, const Workload& workload, unsigned index) {
    return memory.bytes().subspan(workload.slot_offset(index), workload.size);
}

Stamp stamp_of(const Workload& workload, unsigned index, uint64_t sequence) {
    return {seed, index, sequence, workload.slot_offset(index)};
}

// A damage: inject() fills and WRITEs with a fault in between, and returns the sequence that
// the peer should have. It may change `read`, the workload that is READ.
struct Injection {
    const char* kind;
    const char* how;
    unsigned operation;
    size_t at;
    std::function<tl::expected<uint64_t, Error>(Workload& read)> inject;
};

tl::expected<uint64_t, Error> write_slots(Engine& engine, const Workload& workload, uint64_t sequence) {
    TRY(sweep(engine, workload, Operation::write));
    return sequence;
}

Workload cut_short(Workload workload) {
    workload.size -= cut_bytes;
    return workload;
}

std::vector<Injection> injections(Engine& engine, const Memory& memory, const Workload& workload) {
    const auto fill = [&] { return fill_slots(memory, workload); };
    const auto write = [&](uint64_t sequence) { return write_slots(engine, workload, sequence); };
    const auto victim = slot(memory, workload, damaged_operation);
    return {
        {"none", "nothing is done", 0, 0, [=](Workload&) { return write(fill()); }},
        {"corrupt", "a bit is flipped before the WRITE", damaged_operation, damaged_byte,
         [=](Workload&) {
             const uint64_t sequence = fill();
             victim[damaged_byte] ^= std::byte{0x10};
             return write(sequence);
         }},
        {"stale", "a WRITE is left out", 0, 0,
         [=](Workload&) -> tl::expected<uint64_t, Error> {
             TRY(write(fill()));
             return fill();
         }},
        {"misplaced", "two blocks change places before the WRITE", damaged_operation,
         swapped_block * stamp_block_bytes,
         [=](Workload&) {
             const uint64_t sequence = fill();
             const auto first = victim.begin() + swapped_block * stamp_block_bytes;
             std::swap_ranges(first, first + stamp_block_bytes,
                              victim.begin() + other_block * stamp_block_bytes);
             return write(sequence);
         }},
        {"torn", "a WRITE is cut short over an older one", 0, workload.size - cut_bytes,
         [=, &engine](Workload&) -> tl::expected<uint64_t, Error> {
             TRY(write(fill()));
             return write_slots(engine, cut_short(workload), fill());
         }},
        {"short", "a READ is cut short", 0, workload.size - cut_bytes,
         [=](Workload& read) {
             read = cut_short(workload);
             return write(fill());
         }},
        {"short", "a READ is left out", damaged_operation, 0,
         [=](Workload& read) {
             read.depth = read.batch = damaged_operation;
             return write(fill());
         }},
    };
}

tl::expected<std::optional<SlotFinding>, Error> read_and_check(Engine& engine, const Memory& memory,
                                                               const Workload& read, const Workload& workload,
                                                               uint64_t sequence) {
    // siw may leave an unsignalled WRITE where it is until TCP sends it (siw_prepare_fpdu()). A READ
    // that comes back says that it was sent.
    if (engine.parameters(workload).write_success == write_handed_to_tcp)
        TRY(sweep(engine, workload, Operation::read));
    for (unsigned i = 0; i < workload.depth; i++) wipe_slot(memory, workload, i);
    TRY(sweep(engine, read, Operation::read));
    std::optional<SlotFinding> loss;
    for (unsigned i = 0; i < workload.depth; i++) {
        const auto finding = check_slot(memory, workload, i, sequence);
        if (!finding) continue;
        if (!is_loss(*finding, workload)) return SlotFinding{i, *finding};
        if (!loss) loss = SlotFinding{i, *finding};
    }
    return loss;
}

// Up to three bytes from the damage on may be right by chance.
bool is_caught(const Trial& trial) {
    if (!trial.reported) return trial.injected == "none";
    const Finding& finding = trial.reported->finding;
    return trial.injected == damage_name(finding.damage) && trial.operation == trial.reported->operation &&
           finding.at >= trial.at && finding.at <= trial.at + 3;
}

double ns_per_kib(const Memory& memory, const std::function<void()>& work) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    uint64_t rounds = 0;
    for (; Clock::now() - start < std::chrono::milliseconds(20); rounds++) work();
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
    return elapsed.count() * 1024 / static_cast<double>(rounds * memory.length());
}

} // namespace

bool is_loss(const Finding& finding, const Workload& workload) {
    return finding.damage == Damage::stale || finding.damage == Damage::torn ||
           finding.at + telling_bytes > workload.size;
}

void begin_sequences(uint64_t first) { last_sequence = first; }

uint64_t fill_slots(const Memory& memory, const Workload& workload) {
    refill_slots(memory, workload, ++last_sequence);
    return last_sequence;
}

void refill_slots(const Memory& memory, const Workload& workload, uint64_t sequence) {
    for (unsigned i = 0; i < workload.depth; i++) fill_slot(memory, workload, i, sequence);
}

void fill_slot(const Memory& memory, const Workload& workload, unsigned index, uint64_t sequence) {
    fill_stamped(slot(memory, workload, index), stamp_of(workload, index, sequence));
}

void wipe_slot(const Memory& memory, const Workload& workload, unsigned index) {
    memset(slot(memory, workload, index).data(), std::to_integer<int>(wiped), workload.size);
}

std::optional<Finding> check_slot(const Memory& memory, const Workload& workload, unsigned index,
                                  uint64_t sequence) {
    return check_stamped(slot(memory, workload, index), stamp_of(workload, index, sequence), wiped);
}

Error wrong_data(const Engine& engine, const Workload& workload, const SlotFinding& found,
                 const std::string& moved) {
    return Error(fmt::format("engine {} moved wrong data", engine.name()),
                 fmt::format("{}{} of {} bytes, operation {}, byte {}", workload.name(),
                             moved.empty() ? "" : ' ' + moved, workload.size, found.operation,
                             found.finding.at),
                 EBADMSG, wrong_data_advice, found.finding.text());
}

tl::expected<std::optional<SlotFinding>, Error> find_damage(Engine& engine, const Memory& memory,
                                                            const Workload& workload, uint64_t sequence) {
    return read_and_check(engine, memory, workload, workload, sequence);
}

tl::expected<void, Error> verify_slots(Engine& engine, const Memory& memory, const Workload& workload,
                                       uint64_t sequence) {
    TRY_SET(const auto found, find_damage(engine, memory, workload, sequence));
    if (!found) return {};
    return tl::unexpected(wrong_data(engine, workload, *found));
}

tl::expected<std::vector<Trial>, Error> self_test(Engine& engine, const Memory& memory,
                                                  const Workload& workload) {
    std::vector<Trial> trials;

    if (!engine.remote_writable() || workload.size < page_bytes || workload.depth <= damaged_operation)
        return tl::unexpected(
            Error("the self-test needs writable memory, pages and two operations", "", EINVAL));
    for (const Injection& injection : injections(engine, memory, workload)) {
        Workload read = workload;
        TRY_SET(const auto sequence, injection.inject(read));
        TRY_SET(auto found, read_and_check(engine, memory, read, workload, sequence));
        Trial trial{injection.kind, injection.how, injection.operation, injection.at, found, false};
        trial.caught = is_caught(trial);
        trials.push_back(std::move(trial));
    }
    return trials;
}

VerificationCost verification_cost(const Memory& memory) {
    const Stamp stamp{seed, 0, 1, 0};
    VerificationCost cost;

    cost.fill_ns = ns_per_kib(memory, [&] { fill_stamped(memory.bytes(), stamp); });
    cost.check_ns = ns_per_kib(memory, [&] { check_stamped(memory.bytes(), stamp, wiped); });
    return cost;
}

} // namespace kxfer::bench
