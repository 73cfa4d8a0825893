// SPDX-License-Identifier: MIT
//
// The only calls into the kernel, and the library's session.
#pragma once

#include <atomic>
#include <cstdint>

struct kxfer_ring;

struct kxfer_session {
    int fd = -1;
    std::atomic<unsigned int> wait_flags = 0; // KXFER_WAIT_F_* of its SUBMITs and REAPs
    unsigned int max_jobs_per_submit = 0;     // as QUERY reports
    kxfer_ring* ring = nullptr;               // mapped, or null
    uint64_t ring_bytes = 0;
    uint32_t ring_entries = 0;
};

namespace kxfer {

// ioctl(2) on the session; 0 or a negative errno.
int call(const kxfer_session* session, unsigned long request, void* argument);

// A call that takes a struct kxfer_id.
int call_id(const kxfer_session* session, unsigned long request, unsigned int id);

} // namespace kxfer
