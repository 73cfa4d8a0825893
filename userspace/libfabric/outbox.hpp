// SPDX-License-Identifier: MIT
//
// What an endpoint sends. A message is cut into pieces of one message of the module each, copied with
// their headers into registered memory, and sent in the order of the calls (KXFER_JOB_F_WAIT: a full
// mailbox does not refuse them). A longer one, from FI_KXFER_READ_FROM bytes on, is offered: its memory is
// exported, and the receiver READs it as soon as it has a buffer. If it cannot be exported or opened (a
// limit, RLIMIT_MEMLOCK) the receiver asks for the bytes, and they go as pieces. So nothing but the
// pool's memory is needed for a message to arrive.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <vector>

#include "libfabric/pending.hpp"
#include "libfabric/pool.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Endpoint;
class Peer;
struct Send;

class Outbox {
  public:
    explicit Outbox(Endpoint& endpoint);

    // Messages of the program that it takes now.
    size_t room() const { return size_ - std::min(size_, nr_counted_); }
    bool is_full() const { return room() == 0; }

    // Takes the message over. Copies what has to stay, if the caller injects it. 0: its end is reported.
    ssize_t post(std::unique_ptr<Send> send, bool inject);

    // Tells a peer what became of its message.
    void answer(Peer& peer, uint32_t id, uint64_t answer);

    // The peer has answered.
    void answered(Peer& peer, uint32_t id, uint64_t answer);

    // The connection ended before the message did.
    void lose(Send& send, int status);

    // Hands in what waits, as far as there is room.
    void go_on();

    // Ends jobs that have not begun.
    void cancel();

    // Messages that are not the program's, and did not leave yet.
    bool owes() const { return nr_uncounted_ > 0; }
    unsigned in_flight() const { return static_cast<unsigned>(jobs_.size()); }

    Pool pool;

  private:
    // A piece that is under way.
    struct Job final : Pending {
        Job(Outbox& in, Send& of, const Piece& from) : outbox(in), send(of), piece(from) {}
        void ended(const kxfer_completion& completion) override { outbox.sent(*this, completion.status); }
        Outbox& outbox;
        Send& send;
        Piece piece;
    };

    void enqueue(Send& send);
    void advance(Peer& peer);
    int hand_in(Peer& peer, Send& send);
    size_t write(Peer& peer, Send& send, uint8_t* to);
    void sent(Job& job, int status);
    void settle(Send& send);
    void offer(Send& send);
    void withdraw(Send& send);

    Endpoint& endpoint_;
    size_t size_;
    size_t nr_counted_ = 0;
    size_t nr_uncounted_ = 0;
    std::vector<Peer*> busy_; // whose queues are not empty
    std::unordered_set<Job*> jobs_;
};

} // namespace kxfer::fi
