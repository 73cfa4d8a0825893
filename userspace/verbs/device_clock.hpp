// SPDX-License-Identifier: MIT
//
// Completions by the clock of the device, which stamps each when it comes about: how far
// apart they are, whenever the program looks at the CQ. Arithmetic alone.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "bench/histogram.hpp"

namespace kxfer::verbs {

class DeviceClock {
  public:
    // mask: of the bits that a time has, behind which it begins at zero again.
    explicit DeviceClock(uint64_t khz = 0, uint64_t mask = 0) : khz_(khz), mask_(mask) {}

    // Of one completion, in the order in which they came.
    void add(uint64_t ticks) {
        if (last_) gaps_.add(nanoseconds((ticks - *last_) & mask_));
        last_ = ticks;
    }
    uint64_t nanoseconds(uint64_t ticks) const {
        return khz_ ? static_cast<uint64_t>(static_cast<double>(ticks) * 1e6 / static_cast<double>(khz_)) : 0;
    }
    // What is between the completions since the last call.
    bench::Histogram take() {
        last_.reset();
        return std::exchange(gaps_, {});
    }

  private:
    uint64_t khz_;
    uint64_t mask_;
    std::optional<uint64_t> last_;
    bench::Histogram gaps_;
};

} // namespace kxfer::verbs
