// SPDX-License-Identifier: MIT
//
// A receive is posted again before the status tells of its message, so the
// initiator, who spends no more than the status tells of, never meets an empty
// queue. Receives of a QP complete in the order in which they were posted.
//
// The thread is ended by a signal, again and again until it has seen it: one that
// comes just before the read is lost. It is one that is ignored by default.

#include "verbs/receiver.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>

#include <fmt/format.h>
#include <pthread.h>

namespace kxfer::verbs {

namespace {

// Receives handed in by one call.
constexpr unsigned list = 64;
constexpr int wake_signal = SIGURG;

// A handler without SA_RESTART, so that a read is interrupted.
void catch_wake_signal() {
    static std::once_flag once;

    std::call_once(once, [] {
        struct sigaction action = {};

        action.sa_handler = [](int) {};
        sigaction(wake_signal, &action, nullptr);
    });
}

// All other signals are for other threads, who wait for them.
void take_wake_signal_alone() {
    sigset_t others;

    sigfillset(&others);
    sigdelset(&others, wake_signal);
    pthread_sigmask(SIG_SETMASK, &others, nullptr);
}

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

Receiver::~Receiver() {
    if (!thread_.joinable()) return;
    stop_ = true;
    while (!ended_) {
        pthread_kill(thread_.native_handle(), wake_signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    thread_.join();
}

tl::expected<void, Error> Receiver::start(std::function<void()> failed) {
    for (unsigned left = receiving_.receives; left > 0; left -= std::min(left, list))
        if (auto posted = post(std::min(left, list)); !posted) return posted;
    if (int error = ibv_req_notify_cq(pair_.cq.get(), 0))
        return tl::unexpected(Error("cannot arm the CQ", "the responder", error));
    catch_wake_signal();
    thread_ = std::thread([this, failed = std::move(failed)] { run(failed); });
    return {};
}

void Receiver::run(const std::function<void()>& failed) {
    take_wake_signal_alone();
    for (;;) {
        const auto woken = wait();
        if (woken && !*woken) break;
        if (woken && handle()) continue;
        failed();
        break;
    }
    ended_ = true;
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

// The CQ is armed again before the last look: what comes behind it raises an event.
tl::expected<bool, Error> Receiver::wait() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;

    while (ibv_get_cq_event(pair_.events.get(), &cq, &context)) {
        if (errno != EINTR)
            return tl::unexpected(Error("cannot wait for completions", "the responder", last_error()));
        if (stop_) return false;
    }
    ibv_ack_cq_events(cq, 1);
    if (stop_) return false;
    if (int error = ibv_req_notify_cq(cq, 0))
        return tl::unexpected(Error("cannot arm the CQ", "the responder", error));
    return true;
}

tl::expected<void, Error> Receiver::handle() {
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
