// SPDX-License-Identifier: MIT
//
// A READ or WRITE of a peer's memory: a job for each range of the local memory. The bytes of a range go by
// the region that the program has registered; else, if they are few, through a piece of the outbox's pool;
// else by a region for this operation alone. With data for the peer's completion queue a message follows
// the WRITEs, which the module keeps behind their data; the operation ends when both have.
#pragma once

#include <cstdint>

#include "libfabric/iov.hpp"
#include "libfabric/pending.hpp"
#include "libfabric/pool.hpp"

namespace kxfer::fi {

class Endpoint;
class Mr;
class Peer;
struct Remote;

class Rma {
  public:
    Rma(Endpoint& endpoint, Peer& peer, bool is_write)
        : endpoint_(endpoint), peer_(peer), is_write_(is_write) {}

    // Hands all jobs in. After 0 the operation ends itself; else it never was.
    int start(uint64_t address, uint64_t key);

    // The message that announces the WRITEs has ended.
    void announced(int status);

    Memory memory;
    void* desc[iov_limit] = {};
    void* context = nullptr;
    uint64_t data = 0;
    bool has_data = false;
    bool reported = false;
    bool injected = false;

  private:
    struct Job final : Pending {
        explicit Job(Rma& of) : rma(of) {}
        void ended(const kxfer_completion& completion) override { rma.job_ended(*this, completion.status); }
        Rma& rma;
        iovec range{};
        Piece piece{};
        bool has_piece = false;
        uint32_t region = 0;
        uint64_t offset = 0;
        bool own_region = false;
    };

    int hand_in(size_t index, uint64_t remote_offset);
    int hand_in_later(size_t index, uint64_t remote_offset);
    int find_memory(Job& job, Mr* mr);
    void release(Job& job, bool came);
    void job_ended(Job& job, int status);
    void announce();
    void let_go(int status);

    Endpoint& endpoint_;
    Peer& peer_;
    bool is_write_;
    Remote* remote_ = nullptr;
    uint64_t key_ = 0;
    unsigned holders_ = 0; // jobs in flight, the message, and start()
    int status_ = 0;
};

} // namespace kxfer::fi
