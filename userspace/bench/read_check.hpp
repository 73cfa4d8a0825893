// SPDX-License-Identifier: MIT
//
// Whether READs that are measured bring anything: who prepared the data has left it in local
// memory, too. So the local slots are wiped before them, and looked at behind them; neither is in
// a figure. What is found is the last READ of each slot, and that there was one.
#pragma once

#include <cstdint>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/engine.hpp"

namespace kxfer::bench {

struct Evidence;

class ReadCheck {
  public:
    // All of them have to outlive it.
    ReadCheck(Engine& engine, const Memory& memory, const Workload& workload, Mode mode)
        : engine_(engine), memory_(memory), workload_(workload), mode_(mode) {}

    // Nothing is wiped if the workload READs nothing, or nobody knows what the peer has. Of a mix it
    // is what a READ comes first to, as the WRITEs and messages behind it send what it brought;
    // where one behind it might overtake it, nothing is.
    tl::expected<void, Error> begin(const Evidence& evidence);
    // EBADMSG: wrong data in a slot that had an operation since begin(). Others are filled
    // again. Without begin() nothing is done.
    tl::expected<void, Error> end(const Evidence& evidence);

  private:
    bool can_tell() const;
    bool is_read(unsigned slot) const { return workload_.operation_at(slot) == Operation::read; }

    Engine& engine_;
    const Memory& memory_;
    const Workload& workload_;
    Mode mode_;
    std::vector<uint64_t> before_; // operations of each slot that is looked at
};

} // namespace kxfer::bench
