// SPDX-License-Identifier: MIT
//
// Times between completions by the clock of the device, which stamps each completion when it
// is generated, whenever the program polls the CQ. Arithmetic alone.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "engine/histogram.hpp"

namespace kxfer::verbs {

class DeviceClock {
  public:
    // mask: the valid bits of a time; after that it wraps to zero.
    explicit DeviceClock(uint64_t khz = 0, uint64_t mask = 0) : khz_(khz), mask_(mask) {}

    // Adds one completion's time; completions in order of arrival.
    void add(uint64_t ticks) {
        if (last_) gaps_.add(nanoseconds((ticks - *last_) & mask_));
        last_ = ticks;
    }
    uint64_t nanoseconds(uint64_t ticks) const {
        return khz_ ? static_cast<uint64_t>(static_cast<double>(ticks) * 1e6 / static_cast<double>(khz_)) : 0;
    }
    // The gaps between the completions since the last call.
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
