// SPDX-License-Identifier: MIT
//
// Pipeline: a ring of pinned slots, each for one job at a time, so that the
// file is read or written while jobs of other slots are in flight.
//
// A slot is claimed, gets a job, is retired when the job has ended, and released.
// Each of the four steps goes through the slots in the same order, whatever the order
// in which jobs end:
//
//   put: claim, fill from the file, write(), retire(), release
//   get: claim, read(), retire(), store in the file, release
//
// A slot whose job has failed is not retired. The same job may be submitted again, to another
// target on the same export: it puts the same bytes into the same place.
//
// Only wait() and drain() block.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/node/file.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

class Pipeline {
  public:
    // region_flags: KXFER_REGION_F_WRITE if devices have to write into the slots. limit: bytes a
    // second that are claimed at most; 0: no limit.
    static tl::expected<Pipeline, Failure> make(Session session, uint32_t region_flags, uint64_t limit = 0);

    // Whether no slot can be claimed now: none is free, or it would be too early.
    bool full() const { return claimed_ - released_ == slots_.size() || kxfer_clock_ns() < next_ns_; }
    std::span<std::byte> claim();

    // Submits a job between the target and the first `length` bytes of the oldest claimed
    // slot that had no job yet.
    Expected<void> write(const Target& target, uint64_t target_offset, uint64_t length);
    Expected<void> read(const Target& target, uint64_t target_offset, uint64_t length);

    // Retires the oldest job: returns the bytes it moved, or its errno; empty if it has not ended.
    Expected<std::optional<std::span<std::byte>>> retire();

    // Waits until no job is in flight. ETIMEDOUT: some still are; EINTR: a signal came.
    Expected<void> drain(Milliseconds timeout);
    // Whether jobs have failed that were not submitted again.
    bool has_failed() const;
    // Submits the jobs that failed once more; none may be in flight.
    Expected<void> submit_again(const Target& target);

    void release() { released_++; }
    // Frees slots that were claimed but got no job; no job may be in flight.
    void clear() { claimed_ = submitted_ = retired_ = released_ = 0; }

    // Waits until a job has ended or `fd` (-1: none) is readable. With no job in flight it
    // waits for `fd` only, and may return early. EINTR: a signal came; ETIMEDOUT: no job has
    // ended within the timeout.
    Expected<void> wait(Milliseconds timeout, int fd = -1);

  private:
    struct Slot {
        bool is_read = false;
        uint64_t target_offset = 0;
        uint64_t length = 0;
        bool ended = false;
        int status = 0;
    };

    Pipeline(Session session, Memory memory, Region region, size_t slot_bytes, uint64_t limit);
    std::chrono::nanoseconds until_next() const;
    Slot& slot_of(uint64_t count) { return slots_[count % slots_.size()]; }
    const Slot& slot_of(uint64_t count) const { return slots_[count % slots_.size()]; }
    uint64_t offset_of(uint64_t count) const { return count % slots_.size() * slot_bytes_; }
    std::span<std::byte> memory_of(uint64_t count) const {
        return memory_.bytes().subspan(offset_of(count), slot_bytes_);
    }
    // Submits the job of a slot, the count-th.
    Expected<void> submit(uint64_t count, const Target& target);
    Expected<void> begin(Slot slot, const Target& target);
    Expected<void> take_completions();
    uint64_t in_flight() const;

    Session session_;
    Memory memory_; // outlives the region that pins it
    Region region_;
    size_t slot_bytes_;
    uint64_t pause_ns_;    // between two claims; 0: no limit
    uint64_t next_ns_ = 0; // no claim before
    std::vector<Slot> slots_;
    // Slots that have ever passed each step: claimed_ >= submitted_ >= retired_ >= released_.
    uint64_t claimed_ = 0;
    uint64_t submitted_ = 0;
    uint64_t retired_ = 0;
    uint64_t released_ = 0;
    uint64_t moved_ns_ = 0; // when a job last ended, or began with no other in flight
};

} // namespace kxfer::cli
