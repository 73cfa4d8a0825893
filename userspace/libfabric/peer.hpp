// SPDX-License-Identifier: MIT
//
// What an endpoint knows of another one: the target of its mailbox, the messages that wait for their
// turn, what is under way, and how far what comes from there has got.
//
// A connection lasts from connect() to fail(). It ends when a job shows that the mailbox or the link is
// gone. Whatever depended on it is reported then, once; the target is closed when its last job has ended;
// and the next message makes a new connection, with a new word, so the other side can tell.
//
// Of a connected endpoint (pin()) the words are agreed, and there is no further connection.
//
// A process that was started again in the place of another one shows by its word that our connection is to
// the other one: it is replaced before the next message, if nothing of it is under way.
//
// A peer of whom something is expected, and that says nothing for a second, is asked by a message without
// bytes (ping()), whose end shows whether its mailbox is there. So a wait ends when the peer does: within
// two seconds if its process has ended, within those of the module (8 s) if its node is silent.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "libfabric/address.hpp"
#include "libfabric/pending.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Endpoint;
struct Arrival;
struct Remote;
struct Send;

class Peer {
  public:
    Peer(Endpoint& endpoint, const Address& address);
    ~Peer();

    // Opens the mailbox, unless it is open. Waits for the kernel of the peer.
    int connect();
    bool is_connected() const { return target != 0 && !failed_; }

    // Ends the connection with an error, and all that depends on it.
    void fail(int status);

    // Of a connected endpoint: by which words the two ends send. There is one connection, and none after it.
    void pin(uint64_t own_word, uint64_t word);

    // A message came with this word. False: it is of a connection that has ended.
    bool admit(uint64_t word);
    uint64_t word() const { return word_; }

    // Asks whether the peer is there, if that is due.
    void look_after();

    // A job to the target was handed in, or has ended.
    void begin_job() { in_flight++; }
    void end_job();

    // What a message or a WRITE needs to be behind the atomics before it (FI_ORDER_SAW, FI_ORDER_WAW).
    uint32_t order_flags() const { return atomics > 0 ? KXFER_JOB_F_FENCE : 0; }

    // The memory of the peer's key, opened if need be. 0, or a negative errno.
    int open_remote(uint64_t key, Remote** remote);
    void end_remote_job(Remote* remote);
    // The next operation opens it again.
    void forget_remote(uint64_t key);
    void forget_remotes();

    Endpoint& endpoint;
    const Address address;

    // what goes there
    uint32_t target = 0;
    uint64_t domain_id = 0; // of the peer
    uint32_t next_sequence = 0;
    uint32_t next_id = 1;
    unsigned in_flight = 0; // jobs to the target
    unsigned atomics = 0;   // on memory of the peer, in flight
    std::deque<Send*> queue;
    std::unordered_map<uint32_t, Send*> unanswered;
    bool is_busy = false; // the outbox knows that its queue is not empty

    // what comes from there
    uint32_t expected_sequence = 0;
    std::map<uint32_t, std::vector<uint8_t>> early;
    std::unordered_map<uint32_t, Arrival*> arrivals; // whose bytes are missing

  private:
    class Ping final : public Pending {
      public:
        explicit Ping(Peer& peer) : peer_(peer) {}
        void ended(const kxfer_completion& completion) override;
        bool in_flight = false;

      private:
        Peer& peer_;
    };

    bool expects() const;
    bool is_idle() const;
    void disconnect();

    bool pinned_ = false;
    bool over_ = false;     // the one connection was, and has ended
    bool failed_ = false;   // the target is to be closed
    bool outdated_ = false; // the peer has made a new connection since ours
    bool was_heard_ = false;
    uint64_t heard_ns_ = 0;
    uint64_t own_word_ = 0; // if it is pinned: of our connection to the peer
    uint64_t word_ = 0;     // of the peer's connection to here
    uint64_t old_word_ = 0; // of the one before
    Ping ping_;
    std::unordered_map<uint64_t, Remote*> remotes_;
};

// Memory of a peer that was opened by its key.
struct Remote {
    uint32_t target;
    uint64_t start;     // address of the first byte, at the peer
    unsigned jobs = 0;  // in flight
    bool stale = false; // closed after the last of them
};

} // namespace kxfer::fi
