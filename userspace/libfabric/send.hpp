// SPDX-License-Identifier: MIT
//
// A message on its way to a peer, from the call until its end. Its owner is the queue of its peer until
// all of it was handed to the module, then its jobs and the answer that it waits for; Outbox::settle()
// ends it when none of these is left.
#pragma once

#include <memory>
#include <new>

#include "libfabric/iov.hpp"
#include "libfabric/registration.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Peer;
class Rma;

struct Send {
    explicit Send(Peer& to, Kind what) : peer(to), kind(what) {}

    Peer& peer;
    Kind kind; // of the next message of it
    uint8_t header_flags = 0;
    uint32_t id = 0;
    uint64_t tag = 0;
    uint64_t data = 0;
    uint64_t place = 0; // an answer: its value; an offer: the serial of its export
    Memory memory;
    std::unique_ptr<uint8_t[]> copy;                  // of bytes that the caller may change
    std::shared_ptr<const Registration> registration; // by which the caller has registered the memory

    uint64_t sent = 0;    // bytes handed in
    bool begun = false;   // the first message was handed in
    unsigned holders = 0; // jobs in flight, and the call that posts it
    bool unanswered = false;
    int status = 0;

    void* context = nullptr;
    uint64_t flags = 0;    // of the completion
    bool counted = false;  // an operation of the program
    bool reported = false; // in the completion queue, also if it ends well
    Rma* rma = nullptr;    // WRITEs that it announces

    // An offer: what the receiver READs.
    bool offered = false;
    uint32_t region = 0;
    bool own_region = false;
    uint32_t export_id = 0;

    // From now on the bytes are in here. False: there is no memory for them.
    bool take_copy() {
        copy.reset(new (std::nothrow) uint8_t[memory.length]);
        if (!copy) return false;
        memory.copy_from(0, copy.get(), memory.length);
        memory.set(copy.get(), memory.length);
        return true;
    }

    bool all_sent() const { return begun && (!has_payload(kind) || sent == memory.length); }
};

} // namespace kxfer::fi
