// SPDX-License-Identifier: MIT
//
// Verification of the data that an engine moves, with stamps (stamp.hpp): slots are
// filled, written, read back into memory that was wiped, and checked. Each fill has
// a sequence of its own, unique in the process. The self-test causes each kind of damage
// and checks that it is reported as that kind.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "engine/engine.hpp"
#include "engine/stamp.hpp"

namespace kxfer::bench {

// All peers share an export's memory, so another measurement on the same export disturbs.
constexpr const char* wrong_data_advice =
    "did others use this export at that time? else keep this result: it is a defect of engine or stack";

// A finding, and the operation it is in.
struct SlotFinding {
    unsigned operation = 0;
    Finding finding;
};

// Whether the finding is what a lost WRITE leaves in stamped memory: all of the old data, or the
// end of it. The last bytes do not show what they belong to (stamp.hpp).
bool is_loss(const Finding& finding, const Workload& workload);

// Starts sequences there, for a process whose data must differ from another's.
void begin_sequences(uint64_t first);
// Stamps all slots anew; returns their sequence.
uint64_t fill_slots(const Memory& memory, const Workload& workload);
// Stamps all slots with that sequence again, after READs have overwritten them.
void refill_slots(const Memory& memory, const Workload& workload, uint64_t sequence);
// Stamps one slot with a sequence that was used before.
void fill_slot(const Memory& memory, const Workload& workload, unsigned slot, uint64_t sequence);
// Wipes a slot before a READ, so that a missing READ is found.
void wipe_slot(const Memory& memory, const Workload& workload, unsigned slot);
// Checks a slot after a READ.
std::optional<Finding> check_slot(const Memory& memory, const Workload& workload, unsigned slot,
                                  uint64_t sequence);
// The error EBADMSG; `moved`: what moved the data, if not verification's own operations.
Error wrong_data(const Engine& engine, const Workload& workload, const SlotFinding& found,
                 const std::string& moved = {});
// Wipes the slots, READs them from the peer, and checks them. Returns the first damage that is no loss
// (is_loss()), otherwise the first loss.
tl::expected<std::optional<SlotFinding>, Error> find_damage(Engine& engine, const Memory& memory,
                                                            const Workload& workload, uint64_t sequence);
// As find_damage(), with any damage as an error.
tl::expected<void, Error> verify_slots(Engine& engine, const Memory& memory, const Workload& workload,
                                       uint64_t sequence);

// One damage that was caused, and what was reported.
struct Trial {
    std::string injected; // "none": nothing must be found
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
    double fill_ns = 0, check_ns = 0; // per KiB
};

// Measured with memory in the caches, if it fits them.
VerificationCost verification_cost(const Memory& memory);

} // namespace kxfer::bench
