// SPDX-License-Identifier: MIT
//
// A buffer that waits for a message, or with FI_MULTI_RECV for several: then each message gets a
// Receive of its own, of the part that is left, and Several says when the buffer is the program's again.
#pragma once

#include <memory>

#include "libfabric/iov.hpp"
#include "libfabric/registration.hpp"

namespace kxfer::fi {

class Peer;

struct Several {
    unsigned users = 0;   // messages that are being received into the buffer
    bool retired = false; // no further message gets in
};

struct Receive {
    Memory memory;
    std::shared_ptr<const Registration> registration; // by which the caller has registered the memory
    void* context = nullptr;
    bool tagged = false;
    bool reported = true;
    uint64_t tag = 0;
    uint64_t ignore = 0;
    Peer* source = nullptr; // the only one that it is for; NULL: any
    std::shared_ptr<Several> several;
    size_t used = 0;        // of a buffer for several
    bool discarded = false; // a message that the program does not want
};

} // namespace kxfer::fi
