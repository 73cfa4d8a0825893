// SPDX-License-Identifier: MIT
//
// Pipeline: a ring of pinned slots, each good for one job, so that the file is
// read or written while other slots are on their way. Jobs are retired in the
// order in which they were submitted.
//
//   while there is something left or in flight:
//       if not full:  fill next_slot(), submit(job of it)
//       else:         retire_oldest()
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/failure.hpp"
#include "cli/file.hpp"

namespace kxfer::cli {

class Pipeline {
  public:
    // region_flags: KXFER_REGION_F_WRITE if devices are to write into the slots.
    static tl::expected<Pipeline, Failure> make(Session session, uint32_t region_flags);

    bool full() const { return in_flight_ == slots_.size(); }
    bool empty() const { return in_flight_ == 0; }
    std::span<std::byte> next_slot() const { return memory_of(next_index()); }

    // A job between the first `length` bytes of next_slot() and the target.
    Expected<void> write(const Target& target, uint64_t target_offset, uint64_t length);
    Expected<void> read(const Target& target, uint64_t target_offset, uint64_t length);

    // Waits until the oldest job has ended and returns the bytes that it moved.
    // Fails with the job's errno, ETIMEDOUT if nothing ends for so long, or
    // EINTR if a signal came.
    Expected<std::span<std::byte>> retire_oldest(Milliseconds timeout);

  private:
    struct Slot {
        uint64_t length = 0;
        bool ended = false;
        int status = 0;
    };

    Pipeline(Session session, Memory memory, Region region, size_t slot_bytes);
    size_t next_index() const { return (oldest_ + in_flight_) % slots_.size(); }
    std::span<std::byte> memory_of(size_t slot) const;
    Expected<void> submit(const Job& job);
    Expected<void> take_completions(Milliseconds timeout);

    Session session_;
    Memory memory_; // outlives the region that pins it
    Region region_;
    size_t slot_bytes_;
    std::vector<Slot> slots_;
    size_t oldest_ = 0;
    size_t in_flight_ = 0;
};

} // namespace kxfer::cli
