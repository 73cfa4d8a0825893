// SPDX-License-Identifier: MIT
//
// The only calls into the kernel, and the library's session.
#pragma once

#include <atomic>
#include <cstdint>

struct kxfer_ring;
struct kxfer_sq;

struct kxfer_session {
    int fd = -1;
    std::atomic<unsigned int> wait_flags = 0; // KXFER_WAIT_F_* of its SUBMITs and REAPs
    unsigned int max_jobs_per_submit = 0;     // as QUERY reports
    kxfer_ring* ring = nullptr;               // mapped, or null
    uint64_t ring_bytes = 0;
    uint32_t ring_entries = 0;
    kxfer_sq* sq = nullptr; // mapped, or null
    uint64_t sq_bytes = 0;
    uint32_t sq_entries = 0;
    uint32_t sq_tail = 0; // jobs in slots; the tail in the ring is that of the last call
    uint32_t sq_head = 0; // jobs accepted
};

namespace kxfer {

// ioctl(2) on the session; 0 or a negative errno.
int call(const kxfer_session* session, unsigned long request, void* argument);

// The same for a call whose argument is a number; its result, or a negative errno.
int call_with(const kxfer_session* session, unsigned long request, unsigned long number);

// mmap(2) of memory that the session shares with the kernel; 0 or a negative errno.
int map(const kxfer_session* session, uint64_t offset, uint64_t bytes, void** mapped);

// A call that takes a struct kxfer_id.
int call_id(const kxfer_session* session, unsigned long request, unsigned int id);

} // namespace kxfer
