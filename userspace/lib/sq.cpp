// SPDX-License-Identifier: MIT
//
// The submission ring of a session: creating it, and handing in the jobs of its slots.
// struct kxfer_sq defines the memory order.

#include <kxfer/kxfer.h>

#include "lib/call.hpp"

#include <atomic>
#include <cerrno>

static std::atomic_ref<uint32_t> tail_of(const kxfer_session* session) {
    return std::atomic_ref<uint32_t>(session->sq->tail);
}

static int map_sq(kxfer_session* session, const kxfer_sq_ring& made) {
    void* mapped = nullptr;
    const int ret = kxfer::map(session, made.offset, made.bytes, &mapped);
    if (ret < 0) return ret;
    session->sq = static_cast<kxfer_sq*>(mapped);
    session->sq_bytes = made.bytes;
    session->sq_entries = made.entries;
    return 0;
}

int kxfer_sq_open(kxfer_session* session, uint32_t entries) {
    kxfer_sq_ring ring = {};
    ring.size = sizeof(ring);
    ring.entries = entries;
    const int ret = kxfer::call(session, KXFER_SQ_RING, &ring);
    return ret < 0 ? ret : map_sq(session, ring);
}

kxfer_job* kxfer_sq_next(kxfer_session* session) {
    if (session->sq_tail - session->sq_head >= session->sq_entries) return nullptr;
    auto* slots = reinterpret_cast<kxfer_job*>(session->sq + 1);
    return &slots[session->sq_tail++ & (session->sq_entries - 1)];
}

// What was not accepted is dropped: the tail goes back to the head, which no other thread moves.
int kxfer_sq_enter(kxfer_session* session, uint32_t wait, uint64_t deadline_ns, int* refused) {
    if (!session->sq) return -EINVAL;
    const uint32_t jobs = session->sq_tail - session->sq_head;
    session->sq->flags = session->wait_flags.load(std::memory_order_relaxed);
    session->sq->deadline_ns = deadline_ns;
    tail_of(session).store(session->sq_tail, std::memory_order_release);
    const int ret = kxfer::call_with(session, KXFER_ENTER, wait);
    const uint32_t accepted = ret > 0 ? static_cast<uint32_t>(ret) : 0;
    if (refused) *refused = ret < 0 ? ret : accepted < jobs ? -static_cast<int>(session->sq->error) : 0;
    session->sq_head += accepted;
    session->sq_tail = session->sq_head;
    return ret;
}
