// SPDX-License-Identifier: MIT
//
// Takes the messages of one connection of the responder: keeps as many receives
// posted as were asked for, in the order of the slots, and says in its status how
// many it has posted again. Sleeps between messages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/connection.hpp"
#include "verbs/messages.hpp"
#include "verbs/wire.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

class Receiver {
  public:
    // Both have to outlive it. The status lies at `length` of the memory.
    Receiver(QueuePair& pair, const bench::Memory& memory, uint64_t length, bench::Operation operation,
             const Receiving& receiving);

    // Posts all receives: to be called before the peer can send.
    tl::expected<void, Error> start();
    // Handles what has come; to be called when the pair's events say so.
    tl::expected<void, Error> handle();

  private:
    tl::expected<void, Error> post(unsigned count);
    tl::expected<bool, Error> poll();
    void publish();

    QueuePair& pair_;
    const bench::Memory& memory_;
    uint64_t length_;
    bench::Operation operation_;
    Receiving receiving_;
    Receipts receipts_;
    uint64_t posted_ = 0;
    std::vector<ibv_recv_wr> requests_;
    std::vector<ibv_sge> sges_;
};

} // namespace kxfer::verbs
