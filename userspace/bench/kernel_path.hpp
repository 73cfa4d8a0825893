// SPDX-License-Identifier: MIT
//
// What the engines that go through /dev/kxfer are set up on: a session with the
// local memory as a region, and a target on an export of the peer.
#pragma once

#include <chrono>
#include <string>

#include <kxfer/kxfer.hpp>

#include "bench/workload.hpp"

namespace kxfer::bench {

struct PathOptions {
    kxfer_addr peer = {};    // a listener
    kxfer_addr local = {};   // or family 0
    std::string device;      // or empty
    std::string export_name; // at least as long as the memory
    uint32_t context = KXFER_CONTEXT_POLLED;
    uint32_t wait_flags = 0;                      // KXFER_WAIT_F_*
    bool ring = false;                            // of jobs: completions come into shared memory
    uint32_t memory = KXFER_BENCH_MEMORY_DEFAULT; // of kverbs: enum kxfer_bench_memory
    bool signal_batch = false;                    // one completion for the operations of a batch
    bool writable = true;                         // ask for an export that may be written
    bool atomic = false; // and for atomics, but do without if the peer does not grant them
    std::chrono::milliseconds timeout{10000};
};

// What an engine makes of an operation.
struct Requests {
    bool registered = false; // local memory is one piece, that of an MR
    unsigned extra = 0;      // work requests beside those that move it
};

class KernelPath {
  public:
    // The memory has to outlive it.
    static tl::expected<KernelPath, Error> open(const PathOptions& options, const Memory& memory);

    const PathOptions& options() const { return options_; }
    Session& session() { return session_; }
    const Region& region() const { return region_; }
    const Target& target() const { return target_; }
    const std::string& peer() const { return peer_; }
    std::string on() const { return peer_ + '/' + options_.export_name; }
    bool iwarp() const { return iwarp_; }
    // Why there are no atomics; empty: there are.
    std::string no_atomics() const;
    uint64_t remote_bytes() const { return target_.length(); }
    // The most bytes that the device registers at once.
    uint64_t max_registration() const { return max_registration_; }
    // With as many operations in flight as the lane has room for.
    Parameters parameters(const Workload& workload, const Requests& how = {}) const;

  private:
    KernelPath(const PathOptions& options, const Memory& memory, Session session);
    tl::expected<void, Error> connect(const Memory& memory);
    tl::expected<void, Error> open_target();
    tl::expected<void, Error> find_limits();
    unsigned max_sges(Operation operation) const {
        return operation == Operation::read ? read_sges_ : write_sges_;
    }
    unsigned count_requests(const Workload& workload, const Requests& how) const;

    PathOptions options_;
    uint64_t local_bytes_;
    std::string peer_;
    // Destroyed from the last to the first.
    Session session_;
    Region region_;
    Peer peer_handle_;
    Target target_;
    std::string device_;
    bool iwarp_ = false;
    bool atomics_ = false; // the device has them
    uint64_t max_registration_ = 0;
    unsigned max_jobs_ = 0;
    unsigned credits_ = 0;   // work requests that the link's data lanes take
    unsigned read_sges_ = 1; // SGEs that a work request uses
    unsigned write_sges_ = 1;
};

} // namespace kxfer::bench
