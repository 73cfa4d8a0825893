// SPDX-License-Identifier: MIT
//
// A receive is posted again before the status counts its message. So the initiator, which
// spends no more credits than the status shows, never finds an empty receive queue.
// Receives of a QP complete in the order in which they were posted.
//
// The destructor sends the thread a signal until the thread has ended, because one that
// arrives just before the read is lost. The signal is ignored by default.

#include "verbs/receiver.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <system_error>

#include <fmt/format.h>
#include <pthread.h>

#include "base/try.hpp"

namespace kxfer::verbs {

namespace {

// Receives posted by one call, at most.
constexpr unsigned list = 64;
constexpr int wake_signal = SIGURG;
// GRH in front of a UD message, counted as its bytes. On RoCE its first half is undefined or zero
// and the second an IPv4 header, or all of it an IPv6 header. It is never read, so all GRHs land
// in one place, after the status.
constexpr uint32_t grh_bytes = 40;
constexpr uint64_t grh_offset = 64;
// Commands start after the page of the status, one for each receive.
constexpr uint64_t commands_offset = bench::page_bytes;
// One answer in so many is signalled: its completion makes room in the send queue.
constexpr unsigned signal_every = 64;
static_assert(sizeof(WireStatus) <= grh_offset);

// A handler without SA_RESTART, so that a read is interrupted.
void catch_wake_signal() {
    static std::once_flag once;

    std::call_once(once, [] {
        struct sigaction action = {};

        action.sa_handler = [](int) {};
        sigaction(wake_signal, &action, nullptr);
    });
}

// Blocks all other signals: other threads wait for them.
void take_wake_signal_alone() {
    sigset_t others;

    sigfillset(&others);
    sigdelset(&others, wake_signal);
    pthread_sigmask(SIG_SETMASK, &others, nullptr);
}

Message message_of(const ibv_wc& completion, uint32_t in_front) {
    const bool has_immediate = completion.wc_flags & IBV_WC_WITH_IMM;

    return {completion.wr_id, completion.byte_len - in_front, has_immediate,
            has_immediate ? be32toh(completion.imm_data) : 0};
}

} // namespace

Receiver::Receiver(QueuePair& pair, const bench::Memory& memory, Probe& probe, uint64_t length,
                   bench::Operation operation, const Receiving& receiving, bool answers)
    : pair_(pair), memory_(memory), probe_(probe), length_(length), operation_(operation),
      receiving_(receiving), answers_(answers),
      receipts_(operation, receiving, pair.transport != Transport::rc), requests_(list), sges_(list) {}

uint64_t Receiver::room_behind(const Receiving& receiving, bool answers) {
    const uint64_t commands = answers ? receiving.receives * sizeof(WireCommand) : 0;

    return commands_offset + (commands + bench::page_bytes - 1) / bench::page_bytes * bench::page_bytes;
}

// The command of a message or a receive, counted from the first one on.
WireCommand& Receiver::command_of(uint64_t message) const {
    auto* commands = reinterpret_cast<WireCommand*>(memory_.data() + length_ + commands_offset);

    return commands[message % receiving_.receives];
}

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
        TRY(post(std::min(left, list)));
    if (int error = ibv_req_notify_cq(pair_.cq.get(), 0))
        return tl::unexpected(Error("cannot arm the CQ", "the responder", error));
    catch_wake_signal();
    try {
        thread_ = std::thread([this, failed = std::move(failed)] { run(failed); });
    } catch (const std::system_error& error) {
        return tl::unexpected(
            Error("cannot start a thread for", "the responder", error.code().value(), "see: ulimit -u"));
    }
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

// A WRITE with immediate takes a receive but does not write to its memory.
tl::expected<void, Error> Receiver::post(unsigned count) {
    const bool lands = operation_ != bench::Operation::write_imm;
    const bool in_front = pair_.transport == Transport::ud || answers_;
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    ibv_recv_wr* bad = nullptr;

    if (count == 0) return {};
    for (unsigned i = 0; i < count; i++) {
        const uint64_t slot = (posted_ + i) % receiving_.slots;
        ibv_recv_wr& request = requests_[i];

        const ibv_sge front = answers_ ? ibv_sge{reinterpret_cast<uintptr_t>(&command_of(posted_ + i)),
                                                 sizeof(WireCommand), pair_.mr->lkey}
                                       : ibv_sge{at + length_ + grh_offset, grh_bytes, pair_.mr->lkey};
        sges_[i] = {{front, {at + slot * receiving_.stride(), receiving_.bytes, pair_.mr->lkey}}};
        request.wr_id = slot;
        request.next = i + 1 < count ? &requests_[i + 1] : nullptr;
        request.sg_list = lands ? &sges_[i][in_front ? 0 : 1] : nullptr;
        request.num_sge = lands ? (in_front ? 2 : 1) : 0;
    }
    if (int error = ibv_post_recv(pair_.messages(), requests_.data(), &bad))
        return tl::unexpected(Error("cannot post receives", "the responder", error));
    posted_ += count;
    return {};
}

// Arms the CQ again before it is polled: what completes after the poll raises an event.
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
    // Check stop_ each time: while the peer keeps sending, the CQ never runs empty.
    while (!stop_) {
        TRY_SET(const auto more, poll());
        if (!more) break;
    }
    return {};
}

// Reads the command in front of the message, before its receive is posted again.
Message Receiver::take(const ibv_wc& completion) {
    if (!answers_) return message_of(completion, pair_.transport == Transport::ud ? grh_bytes : 0);
    const uint64_t number = receipts_.status().received;
    const WireCommand command = command_of(number);
    Message message = message_of(completion, sizeof(command));

    message.misnumbered = be32toh(command.number) != static_cast<uint32_t>(number);
    keys_.push_back(be32toh(command.rkey));
    return message;
}

// libsiw takes the key from the field that a WRITE uses, so both are set.
tl::expected<void, Error> Receiver::answer() {
    std::vector<ibv_send_wr> answers(keys_.size());
    ibv_send_wr* bad = nullptr;

    if (answers.empty()) return {};
    for (size_t i = 0; i < answers.size(); i++) {
        answers[i].opcode = IBV_WR_SEND_WITH_INV;
        answers[i].invalidate_rkey = keys_[i];
        answers[i].wr.rdma.rkey = keys_[i];
        if (++answered_ % signal_every == 0) answers[i].send_flags = IBV_SEND_SIGNALED;
        if (i > 0) answers[i - 1].next = &answers[i];
    }
    keys_.clear();
    if (int error = ibv_post_send(pair_.id->qp, answers.data(), &bad))
        return tl::unexpected(Error("cannot answer messages", "the responder", error));
    return {};
}

// False: the CQ was empty, or the connection has ended.
tl::expected<bool, Error> Receiver::poll() {
    std::array<ibv_wc, list> completions;
    unsigned received = 0;
    const int count = ibv_poll_cq(pair_.cq.get(), completions.size(), completions.data());

    if (count < 0) return tl::unexpected(Error("cannot poll the CQ", "the responder", last_error()));
    for (int i = 0; i < count; i++) {
        const ibv_wc& completion = completions[i];

        if (completion.status == IBV_WC_WR_FLUSH_ERR) return false;
        if (completion.status != IBV_WC_SUCCESS)
            return tl::unexpected(
                Error(fmt::format("a receive failed: {}", ibv_wc_status_str(completion.status)),
                      "the responder", ECONNRESET));
        if (!(completion.opcode & IBV_WC_RECV)) {
            probe_.take(completion);
            continue;
        }
        receipts_.add(take(completion));
        received++;
    }
    if (count == 0) return false;
    TRY(post(received));
    publish();
    TRY(answer());
    return true;
}

// The device reads each word as a whole. `wrong` is stored first: a reader that sees a message
// counted also sees whether it was wrong.
void Receiver::publish() {
    auto* status = reinterpret_cast<WireStatus*>(memory_.data() + length_);
    const WireStatus now = encode(receipts_.status());

    std::atomic_ref(status->wrong).store(now.wrong, std::memory_order_release);
    std::atomic_ref(status->received).store(now.received, std::memory_order_release);
}

} // namespace kxfer::verbs
