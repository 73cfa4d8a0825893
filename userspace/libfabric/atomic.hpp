// SPDX-License-Identifier: MIT
//
// An atomic on a word of a peer's memory: one job. The former value comes into a piece of the outbox's
// pool, and from there to the program; so its buffers need neither a registration nor an alignment, and
// those that it only reads are its own again when the call returns.
//
// The memory must have been registered for FI_REMOTE_READ and FI_REMOTE_WRITE by a domain with FI_ATOMIC,
// for each atomic of the module shows the former value to the one who asks for it (mr.cpp).
#pragma once

#include <cstdint>

#include "libfabric/atomic_word.hpp"
#include "libfabric/pending.hpp"
#include "libfabric/pool.hpp"

namespace kxfer::fi {

class Endpoint;
class Peer;
struct Remote;

class Atomic final : public Pending {
  public:
    Atomic(Endpoint& endpoint, Peer& peer, Form form) : endpoint_(endpoint), peer_(peer), form_(form) {}

    // Hands the job in. After 0 the atomic ends itself; else it never was.
    int start(uint64_t address, uint64_t key);

    void ended(const kxfer_completion& completion) override;

    // Of a completion.
    static uint64_t flags_of(Form form) { return FI_ATOMIC | (form == Form::base ? FI_WRITE : FI_READ); }

    uint32_t op = KXFER_OP_NOP;
    uint64_t operand = 0;
    uint64_t compare = 0;
    void* result = nullptr; // NULL: not wanted
    void* context = nullptr;
    bool reported = false;

  private:
    int hand_in(uint64_t address);

    Endpoint& endpoint_;
    Peer& peer_;
    Form form_;
    Remote* remote_ = nullptr;
    uint64_t key_ = 0;
    Piece piece_{};
};

} // namespace kxfer::fi
