// SPDX-License-Identifier: MIT
//
// The completion ring of a session: creating it, and taking completions from it
// without a system call. struct kxfer_ring defines the memory order.

#include <kxfer/kxfer.h>

#include "lib/call.hpp"

#include <algorithm>
#include <atomic>

static std::atomic_ref<uint32_t> head_of(const kxfer_session* session) {
    return std::atomic_ref<uint32_t>(session->ring->head);
}

static uint32_t tail_of(const kxfer_session* session) {
    return std::atomic_ref<uint32_t>(session->ring->tail).load(std::memory_order_acquire);
}

static int map_ring(kxfer_session* session, const kxfer_cq_ring& made) {
    void* mapped = nullptr;
    const int ret = kxfer::map(session, made.offset, made.bytes, &mapped);
    if (ret < 0) return ret;
    session->ring = static_cast<kxfer_ring*>(mapped);
    session->ring_bytes = made.bytes;
    session->ring_entries = made.entries;
    return 0;
}

int kxfer_ring_open(kxfer_session* session, uint32_t entries, int eventfd) {
    kxfer_cq_ring ring = {};
    ring.size = sizeof(ring);
    ring.entries = entries;
    if (eventfd >= 0) {
        ring.flags = KXFER_CQ_RING_F_EVENTFD;
        ring.eventfd = eventfd;
    }
    const int ret = kxfer::call(session, KXFER_CQ_RING, &ring);
    return ret < 0 ? ret : map_ring(session, ring);
}

uint32_t kxfer_ring_take(kxfer_session* session, kxfer_completion* completions, uint32_t nr) {
    if (!session->ring) return 0;
    const auto* slots = reinterpret_cast<const kxfer_completion*>(session->ring + 1);
    const uint32_t mask = session->ring_entries - 1;
    uint32_t head = head_of(session).load(std::memory_order_acquire);
    for (;;) {
        uint32_t unread = tail_of(session) - head;
        if (unread == 0) {
            // The thread may sleep on the eventfd next: order the store of head before this load of tail.
            std::atomic_thread_fence(std::memory_order_seq_cst);
            unread = tail_of(session) - head;
        }
        const uint32_t taken = std::min({unread, nr, session->ring_entries});
        if (taken == 0) return 0;
        for (uint32_t i = 0; i < taken; i++) completions[i] = slots[(head + i) & mask];
        // If another thread was faster, these slots may have been overwritten: take others.
        if (head_of(session).compare_exchange_strong(head, head + taken, std::memory_order_acq_rel))
            return taken;
    }
}

int kxfer_ring_wait(kxfer_session* session, uint32_t wait, uint64_t deadline_ns) {
    kxfer_reap reap = {};
    reap.size = sizeof(reap);
    reap.flags = session->wait_flags.load(std::memory_order_relaxed);
    reap.wait = wait;
    reap.deadline_ns = deadline_ns;
    return kxfer::call(session, KXFER_REAP, &reap);
}
