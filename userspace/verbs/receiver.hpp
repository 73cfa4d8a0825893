// SPDX-License-Identifier: MIT
//
// Takes the messages of one connection of the responder: keeps as many receives
// posted as were asked for, in the order of the slots, and counts in its status how
// many it has posted again. Its thread waits for the completion channel alone, so that
// a wake-up costs two system calls, as in perftest's server (-e).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/connection.hpp"
#include "verbs/messages.hpp"
#include "verbs/probe.hpp"
#include "verbs/wire.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

class Receiver {
  public:
    // pair, memory and probe have to outlive the Receiver. The status lies at `length` of the
    // memory. answers: messages have commands in front, which land after the status, and are
    // answered.
    Receiver(QueuePair& pair, const bench::Memory& memory, Probe& probe, uint64_t length,
             bench::Operation operation, const Receiving& receiving, bool answers);
    // Bytes that the memory needs after `length`.
    static uint64_t room_behind(const Receiving& receiving, bool answers);
    // Ends the thread.
    ~Receiver();
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    // Posts all receives, to be called before the peer can send, and begins to take
    // messages. The thread calls `failed` once if it has to give up.
    tl::expected<void, Error> start(std::function<void()> failed);

  private:
    void run(const std::function<void()>& failed);
    // False: the thread has to end.
    tl::expected<bool, Error> wait();
    tl::expected<void, Error> handle();
    tl::expected<void, Error> post(unsigned count);
    tl::expected<bool, Error> poll();
    void publish();
    WireCommand& command_of(uint64_t message) const;
    Message take(const ibv_wc& completion);
    tl::expected<void, Error> answer();

    QueuePair& pair_;
    const bench::Memory& memory_;
    Probe& probe_;
    uint64_t length_;
    bench::Operation operation_;
    Receiving receiving_;
    bool answers_;
    Receipts receipts_;
    std::vector<uint32_t> keys_; // keys that the next answers invalidate
    uint64_t answered_ = 0;
    uint64_t posted_ = 0;
    std::vector<ibv_recv_wr> requests_;
    std::vector<std::array<ibv_sge, 2>> sges_; // the GRH of UD or the command; the message
    std::atomic<bool> stop_{false};
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

} // namespace kxfer::verbs
