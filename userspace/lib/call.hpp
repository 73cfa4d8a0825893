// SPDX-License-Identifier: MIT
//
// The one way into the kernel, and what a session is inside the library.
#pragma once

#include <cstdint>

struct kxfer_ring;

struct kxfer_session {
    int fd;
    unsigned int wait_flags;          // KXFER_WAIT_F_* of its SUBMITs and REAPs
    unsigned int max_jobs_per_submit; // as the module says
    kxfer_ring* ring;                 // mapped, or null
    uint64_t ring_bytes;
    uint32_t ring_entries;
};

namespace kxfer {

// ioctl(2) on the session; 0 or a negative errno.
int call(const kxfer_session* session, unsigned long request, void* argument);

// A call that takes a struct kxfer_id.
int call_id(const kxfer_session* session, unsigned long request, unsigned int id);

} // namespace kxfer
