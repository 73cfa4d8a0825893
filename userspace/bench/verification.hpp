// SPDX-License-Identifier: MIT
//
// Verification of what an engine moves, by stamped data (stamp.hpp): slots are
// filled, written, read back into memory that was wiped, and checked. Each fill has
// a sequence of its own, for the whole life of the program. And its self-test, which
// brings each kind of damage about and looks whether it is told as that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/engine.hpp"
#include "bench/stamp.hpp"

namespace kxfer::bench {

// An export's memory is its peers' together: who measures on the same one disturbs.
constexpr const char* wrong_data_advice =
    "did others use this export at that time? else keep this result: it is a defect of engine or stack";

// What is wrong, and in which operation.
struct SlotFinding {
    unsigned operation = 0;
    Finding finding;
};

// What a WRITE that is lost leaves of stamped memory: all of what was there, or the end of it. The
// last bytes do not tell what they are of (stamp.hpp).
bool is_loss(const Finding& finding, const Workload& workload);

// Sequences from there on, for a process whose data is not to be taken for another's.
void begin_sequences(uint64_t first);
// Stamps all slots anew; returns their sequence.
uint64_t fill_slots(const Memory& memory, const Workload& workload);
// With that sequence again, for what was READ is there instead.
void refill_slots(const Memory& memory, const Workload& workload, uint64_t sequence);
// One of them, with a sequence that was used before.
void fill_slot(const Memory& memory, const Workload& workload, unsigned slot, uint64_t sequence);
// Before a READ, so that it is seen whether one came.
void wipe_slot(const Memory& memory, const Workload& workload, unsigned slot);
// What is wrong behind a READ.
std::optional<Finding> check_slot(const Memory& memory, const Workload& workload, unsigned slot,
                                  uint64_t sequence);
// EBADMSG; `moved`: by what, if not by verification's own operations.
Error wrong_data(const Engine& engine, const Workload& workload, const SlotFinding& found,
                 const std::string& moved = {});
// Wipes the slots, READs them from the peer, and checks them. The first damage, but no loss (is_loss())
// if there is any other.
tl::expected<std::optional<SlotFinding>, Error> find_damage(Engine& engine, const Memory& memory,
                                                            const Workload& workload, uint64_t sequence);
// The same, with damage as an error.
tl::expected<void, Error> verify_slots(Engine& engine, const Memory& memory, const Workload& workload,
                                       uint64_t sequence);

// One damage that was brought about, and what was said of it.
struct Trial {
    std::string injected; // "none": nothing may be found
    std::string how;
    unsigned operation = 0;
    size_t at = 0;
    std::optional<SlotFinding> reported;
    bool caught = false;
};

// The engine's remote memory has to be writable; slots of a page and more.
tl::expected<std::vector<Trial>, Error> self_test(Engine& engine, const Memory& memory,
                                                  const Workload& workload);

struct VerificationCost {
    double fill_ns = 0, check_ns = 0; // a KiB
};

// Of memory that is in the caches, if it fits them.
VerificationCost verification_cost(const Memory& memory);

} // namespace kxfer::bench
