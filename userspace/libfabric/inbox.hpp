// SPDX-License-Identifier: MIT
//
// What an endpoint receives: the bytes that come into its mailbox are copied to the receive that matches,
// or kept until there is one (Matching). How much is kept has no bound but memory: a program that lets
// peers send without receiving has that in its own process, not in the module.
//
// A sender's messages are handled in their order, by the numbers in their headers.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "libfabric/arrival.hpp"
#include "libfabric/mailbox.hpp"
#include "libfabric/matching.hpp"

namespace kxfer::fi {

class Endpoint;
class Fetch;
class Peer;

class Inbox final : public Mailbox::Reader {
  public:
    explicit Inbox(Endpoint& endpoint);

    // Makes the mailbox of the address (Mailbox::open()), with its RECVs.
    int open(Address& address);

    // Withdraws the mailbox. Its RECVs end.
    void close();

    ssize_t post(std::unique_ptr<Receive> receive);

    // FI_PEEK: looks for a message, and with FI_CLAIM keeps it for the context, with FI_DISCARD drops it.
    ssize_t peek(const Receive& wanted, uint64_t flags);
    // FI_CLAIM: receives the message that was claimed, or drops it (FI_DISCARD).
    ssize_t claim(std::unique_ptr<Receive> receive, uint64_t flags);

    // False: no receive with this context waits.
    bool cancel(const void* context);

    // Ends the receives that wait: nothing comes any more.
    void end_receives(int status);

    // What a peer had begun to send will not be complete, and what only it can send will not come.
    void lose(Peer& peer, int status);

    // A message is with its receiver, or will never be.
    void deliver(Arrival* arrival, int status);
    // A message that was to be READ is to be sent.
    void ask_for_bytes(Arrival* arrival);

    // Hands RECVs in again, and READs that found no room.
    void go_on();

    unsigned in_flight() const { return mailbox_.in_flight() + static_cast<unsigned>(fetches_.size()); }
    void forget(Fetch* fetch);

    Matching matching;

  private:
    void take(const uint8_t* bytes, size_t length, uint64_t word) override;
    void handle_early(Peer& peer);
    void handle(Peer& peer, const Header& header, const uint8_t* payload, size_t length);
    void begin(Peer& peer, const Header& header, const uint8_t* payload, size_t length);
    void add_bytes(Arrival& arrival, uint64_t place, const uint8_t* payload, size_t length);
    void attach(Arrival* arrival, std::unique_ptr<Receive> receive);
    void fetch(Arrival* arrival);
    std::vector<Fetch*> waiting() const;
    void drop(Arrival* arrival);
    void conclude(Arrival* arrival, int status);
    void end(const Receive& receive, int status);
    void report(const Arrival& arrival, const Receive& receive, int status);

    Endpoint& endpoint_;
    Mailbox mailbox_;
    std::unordered_set<Fetch*> fetches_;
};

} // namespace kxfer::fi
