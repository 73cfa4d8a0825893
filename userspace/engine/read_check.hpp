// SPDX-License-Identifier: MIT
//
// Checks that measured READs bring data: preparing the data has left it in local memory, too.
// So the local slots are wiped before the READs and checked after them, outside of all figures.
// This verifies the last READ of each slot, and that there was one.
#pragma once

#include <cstdint>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "engine/engine.hpp"
#include "engine/evidence.hpp"

namespace kxfer::bench {

class ReadCheck {
  public:
    // The arguments have to outlive the object.
    ReadCheck(Engine& engine, const Memory& memory, const Workload& workload, Mode mode)
        : engine_(engine), memory_(memory), workload_(workload), mode_(mode) {}

    // Wipes nothing if the workload READs nothing, or if the peer's data is unknown. In a mix it wipes
    // the slots whose first operation is a READ, because later WRITEs and messages send the data it
    // brought. If a later operation might overtake the READ, it wipes nothing.
    tl::expected<void, Error> begin(const Evidence& evidence);
    // EBADMSG: wrong data in a slot that had an operation since begin(). Slots without one are filled
    // again. Does nothing if begin() has wiped nothing.
    tl::expected<void, Error> end(const Evidence& evidence);

  private:
    bool can_tell() const;
    bool is_read(unsigned slot) const { return workload_.operation_at(slot) == Operation::read; }

    Engine& engine_;
    const Memory& memory_;
    const Workload& workload_;
    Mode mode_;
    std::vector<uint64_t> before_; // operations of each checked slot before begin()
};

} // namespace kxfer::bench
