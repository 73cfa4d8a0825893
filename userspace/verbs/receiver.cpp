// SPDX-License-Identifier: MIT
//
// A receive is posted again before the status tells of its message, so the
// initiator, who spends no more than the status tells of, never meets an empty
// queue. Receives of a QP complete in the order in which they were posted.

#include "verbs/receiver.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include <fmt/format.h>

namespace kxfer::verbs {

namespace {

// Receives handed in by one call.
constexpr unsigned list = 64;

Message message_of(const ibv_wc& completion) {
    const bool has_immediate = completion.wc_flags & IBV_WC_WITH_IMM;

    return {completion.wr_id, completion.byte_len, has_immediate,
            has_immediate ? be32toh(completion.imm_data) : 0};
}

} // namespace

Receiver::Receiver(QueuePair& pair, const bench::Memory& memory, uint64_t length, bench::Operation operation,
                   const Receiving& receiving)
    : pair_(pair), memory_(memory), length_(length), operation_(operation), receiving_(receiving),
      receipts_(operation, receiving), requests_(list), sges_(list) {}

tl::expected<void, Error> Receiver::start() {
    for (unsigned left = receiving_.receives; left > 0; left -= std::min(left, list))
        if (auto posted = post(std::min(left, list)); !posted) return posted;
    if (int error = ibv_req_notify_cq(pair_.cq.get(), 0))
        return tl::unexpected(Error("cannot arm the CQ", "the responder", error));
    return {};
}

// A WRITE with immediate takes a receive but none of its memory.
tl::expected<void, Error> Receiver::post(unsigned count) {
    const bool lands = operation_ != bench::Operation::write_imm;
    ibv_recv_wr* bad = nullptr;

    for (unsigned i = 0; i < count; i++) {
        const uint64_t slot = (posted_ + i) % receiving_.slots;
        ibv_recv_wr& request = requests_[i];

        sges_[i] = {reinterpret_cast<uintptr_t>(memory_.data()) + slot * receiving_.stride(),
                    receiving_.bytes, pair_.mr->lkey};
        request.wr_id = slot;
        request.next = i + 1 < count ? &requests_[i + 1] : nullptr;
        request.sg_list = lands ? &sges_[i] : nullptr;
        request.num_sge = lands ? 1 : 0;
    }
    if (int error = ibv_post_recv(pair_.id->qp, requests_.data(), &bad))
        return tl::unexpected(Error("cannot post receives", "the responder", error));
    posted_ += count;
    return {};
}

tl::expected<void, Error> Receiver::handle() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    unsigned events = 0;

    while (ibv_get_cq_event(pair_.events.get(), &cq, &context) == 0) events++;
    if (events) ibv_ack_cq_events(pair_.cq.get(), events);
    // Armed before the last look: what comes behind it raises an event.
    if (int error = ibv_req_notify_cq(pair_.cq.get(), 0))
        return tl::unexpected(Error("cannot arm the CQ", "the responder", error));
    for (;;) {
        const auto more = poll();
        if (!more) return tl::unexpected(more.error());
        if (!*more) return {};
    }
}

// False: nothing was there, or the connection has ended.
tl::expected<bool, Error> Receiver::poll() {
    std::array<ibv_wc, list> completions;
    const int count = ibv_poll_cq(pair_.cq.get(), completions.size(), completions.data());

    if (count < 0) return tl::unexpected(Error("cannot poll the CQ", "the responder", last_error()));
    for (int i = 0; i < count; i++) {
        const ibv_wc& completion = completions[i];

        if (completion.status == IBV_WC_WR_FLUSH_ERR) return false;
        if (completion.status != IBV_WC_SUCCESS)
            return tl::unexpected(
                Error(fmt::format("a receive failed: {}", ibv_wc_status_str(completion.status)),
                      "the responder", ECONNRESET));
        receipts_.add(message_of(completion));
    }
    if (count == 0) return false;
    if (auto posted = post(static_cast<unsigned>(count)); !posted) return tl::unexpected(posted.error());
    publish();
    return true;
}

// The device reads each word as a whole; `wrong` first, so that who sees a message
// counted sees what was wrong with it.
void Receiver::publish() {
    auto* status = reinterpret_cast<WireStatus*>(memory_.data() + length_);
    const WireStatus now = encode(receipts_.status());

    std::atomic_ref(status->wrong).store(now.wrong, std::memory_order_release);
    std::atomic_ref(status->received).store(now.received, std::memory_order_release);
}

} // namespace kxfer::verbs
