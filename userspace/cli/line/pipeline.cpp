// SPDX-License-Identifier: MIT
#include "cli/line/pipeline.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "base/try.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"

namespace kxfer::cli {

namespace {

constexpr size_t nr_slots = 8;
constexpr size_t slot_bytes_most = 512 * 1024;
constexpr size_t slot_bytes_least = 4096;
constexpr uint64_t claims_a_second = 20; // with a limit
constexpr uint64_t nanoseconds_a_second = 1000000000;

} // namespace

Pipeline::Pipeline(Session session, Memory memory, Region region, size_t slot_bytes, uint64_t limit)
    : session_(std::move(session)), memory_(std::move(memory)), region_(std::move(region)),
      slot_bytes_(slot_bytes), pause_ns_(limit ? slot_bytes * nanoseconds_a_second / limit : 0),
      slots_(nr_slots) {}

// Takes less memory if the user may pin only a little, and smaller slots to be even under a limit.
tl::expected<Pipeline, Failure> Pipeline::make(Session session, uint32_t region_flags, uint64_t limit) {
    const uint64_t even =
        limit ? std::bit_floor(std::max<uint64_t>(limit / claims_a_second, 1)) : slot_bytes_most;
    const uint64_t most = std::clamp<uint64_t>(even, slot_bytes_least, slot_bytes_most);
    for (size_t slot_bytes = most;; slot_bytes /= 2) {
        auto memory = Memory::allocate(nr_slots * slot_bytes);
        if (!memory) return failed(std::move(memory.error()));
        auto region = session.add_region(memory->bytes(), region_flags);
        if (region)
            return Pipeline(std::move(session), std::move(*memory), std::move(*region), slot_bytes, limit);
        if (region.error().number != ENOMEM || slot_bytes == slot_bytes_least)
            return failed(pin_error(std::move(region.error()), nr_slots * slot_bytes));
    }
}

std::span<std::byte> Pipeline::claim() {
    if (pause_ns_ != 0) next_ns_ = std::max(next_ns_, kxfer_clock_ns()) + pause_ns_;
    return memory_of(claimed_++);
}

// How long a free slot waits for its time; a minute if none does.
std::chrono::nanoseconds Pipeline::until_next() const {
    const uint64_t now = kxfer_clock_ns();
    if (pause_ns_ == 0 || claimed_ - released_ == slots_.size()) return std::chrono::minutes(1);
    return std::chrono::nanoseconds(next_ns_ > now ? next_ns_ - now : 0);
}

Expected<void> Pipeline::write(const Target& target, uint64_t target_offset, uint64_t length) {
    return begin({false, target_offset, length, false, 0}, target);
}

Expected<void> Pipeline::read(const Target& target, uint64_t target_offset, uint64_t length) {
    return begin({true, target_offset, length, false, 0}, target);
}

// A job that is not accepted counts as one that failed.
Expected<void> Pipeline::begin(Slot slot, const Target& target) {
    if (retired_ == submitted_) moved_ns_ = kxfer_clock_ns();
    slot_of(submitted_) = slot;
    submitted_++;
    return submit(submitted_ - 1, target);
}

Expected<void> Pipeline::submit(uint64_t count, const Target& target) {
    Slot& slot = slot_of(count);
    const auto make = slot.is_read ? Job::read : Job::write;
    Job job = make(region_, offset_of(count), target, slot.target_offset, slot.length, count % nr_slots);
    // The slot keeps its bytes until its job has ended.
    if (!slot.is_read) job.flags |= KXFER_JOB_F_IDEMPOTENT;
    auto submitted = session_.submit(job);
    slot.ended = !submitted;
    slot.status = submitted ? 0 : -submitted.error().number;
    return submitted;
}

Expected<void> Pipeline::submit_again(const Target& target) {
    moved_ns_ = kxfer_clock_ns();
    for (uint64_t count = retired_; count < submitted_; count++)
        if (slot_of(count).status != 0) TRY(submit(count, target));
    return {};
}

bool Pipeline::has_failed() const {
    for (uint64_t count = retired_; count < submitted_; count++)
        if (slot_of(count).status != 0) return true;
    return false;
}

uint64_t Pipeline::in_flight() const {
    uint64_t nr = 0;
    for (uint64_t count = retired_; count < submitted_; count++) nr += slot_of(count).ended ? 0 : 1;
    return nr;
}

Expected<void> Pipeline::drain(Milliseconds timeout) {
    const Deadline deadline = timeout;
    for (;;) {
        TRY(take_completions());
        if (in_flight() == 0) return {};
        if (interrupted()) return fail("stopped", "", EINTR);
        if (deadline.passed()) return fail("the transfer stands still at", "", ETIMEDOUT);
        wait_readable({session_.fd(), -1}, std::chrono::milliseconds(100));
    }
}

Expected<void> Pipeline::take_completions() {
    std::array<Completion, nr_slots> room = {};
    TRY_SET(const auto taken, session_.reap(room));
    for (const Completion& completion : taken) {
        Slot& slot = slots_.at(completion.user_data);
        slot.ended = true;
        slot.status = completion.status;
    }
    if (!taken.empty()) moved_ns_ = kxfer_clock_ns();
    return {};
}

Expected<std::optional<std::span<std::byte>>> Pipeline::retire() {
    if (retired_ == submitted_) return std::nullopt;
    const Slot& slot = slot_of(retired_);
    if (!slot.ended) {
        TRY(take_completions());
    }
    if (!slot.ended) return std::nullopt;
    if (slot.status < 0) return fail("the transfer failed at", "", slot.status);
    return memory_of(retired_++).first(slot.length);
}

// A job that has ended makes the session readable, however late this looks. So a process
// that was stopped for long does not mistake its own pause for a silent peer.
Expected<void> Pipeline::wait(Milliseconds timeout, int fd) {
    const bool in_flight = retired_ != submitted_;
    const auto still = std::chrono::nanoseconds(kxfer_clock_ns() - moved_ns_);
    const std::chrono::nanoseconds left = timeout > still ? timeout - still : std::chrono::nanoseconds(0);
    const bool readable = wait_readable({in_flight ? session_.fd() : -1, fd},
                                        in_flight ? std::min(left, until_next()) : until_next());
    if (interrupted()) return fail("stopped", "", EINTR);
    if (in_flight && !readable && left == std::chrono::nanoseconds(0))
        return fail("the transfer stands still at", "", ETIMEDOUT);
    return {};
}

} // namespace kxfer::cli
