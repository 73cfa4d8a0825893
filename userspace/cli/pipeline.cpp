// SPDX-License-Identifier: MIT
#include "cli/pipeline.hpp"

#include <array>
#include <cerrno>

#include <poll.h>

#include "cli/device_file.hpp"
#include "cli/interrupt.hpp"

namespace kxfer::cli {

namespace {

constexpr size_t nr_slots = 8;
constexpr size_t slot_bytes_most = 512 * 1024;
constexpr size_t slot_bytes_least = 4096;

} // namespace

Pipeline::Pipeline(Session session, Memory memory, Region region, size_t slot_bytes)
    : session_(std::move(session)), memory_(std::move(memory)), region_(std::move(region)),
      slot_bytes_(slot_bytes), slots_(nr_slots) {}

// Takes less where the user may pin only a little.
tl::expected<Pipeline, Failure> Pipeline::make(Session session, uint32_t region_flags) {
    for (size_t slot_bytes = slot_bytes_most;; slot_bytes /= 2) {
        auto memory = Memory::allocate(nr_slots * slot_bytes);
        if (!memory) return failed(std::move(memory.error()));
        auto region = session.add_region(memory->bytes(), region_flags);
        if (region) return Pipeline(std::move(session), std::move(*memory), std::move(*region), slot_bytes);
        if (region.error().number != ENOMEM || slot_bytes == slot_bytes_least)
            return failed(pin_error(std::move(region.error()), nr_slots * slot_bytes));
    }
}

std::span<std::byte> Pipeline::memory_of(size_t slot) const {
    return memory_.bytes().subspan(slot * slot_bytes_, slot_bytes_);
}

Expected<void> Pipeline::write(const Target& target, uint64_t target_offset, uint64_t length) {
    const size_t slot = next_index();
    return submit(Job::write(region_, slot * slot_bytes_, target, target_offset, length, slot));
}

Expected<void> Pipeline::read(const Target& target, uint64_t target_offset, uint64_t length) {
    const size_t slot = next_index();
    return submit(Job::read(region_, slot * slot_bytes_, target, target_offset, length, slot));
}

Expected<void> Pipeline::submit(const Job& job) {
    auto accepted = session_.submit(job);
    if (!accepted) return accepted;
    slots_[job.user_data] = {job.length, false, 0};
    in_flight_++;
    return {};
}

Expected<void> Pipeline::take_completions(Milliseconds timeout) {
    std::array<Completion, nr_slots> room = {};
    const short events = wait_events(session_.fd(), POLLIN, timeout);
    if (interrupted()) return fail("stopped", "", EINTR);
    if (events == 0) return fail("the transfer stands still", "", ETIMEDOUT);
    const auto taken = session_.reap(room);
    if (!taken) return tl::make_unexpected(taken.error());
    for (const Completion& completion : *taken) {
        Slot& slot = slots_.at(completion.user_data);
        slot.ended = true;
        slot.status = completion.status;
    }
    return {};
}

Expected<std::span<std::byte>> Pipeline::retire_oldest(Milliseconds timeout) {
    Slot& slot = slots_[oldest_];
    while (!slot.ended) {
        auto taken = take_completions(timeout);
        if (!taken) return tl::make_unexpected(std::move(taken.error()));
    }
    const std::span<std::byte> bytes = memory_of(oldest_).first(slot.length);
    oldest_ = (oldest_ + 1) % slots_.size();
    in_flight_--;
    if (slot.status < 0) return fail("the transfer failed at", "", slot.status);
    return bytes;
}

} // namespace kxfer::cli
