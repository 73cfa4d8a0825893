// SPDX-License-Identifier: MIT
//
// The kernel side of every comparison: READ and WRITE jobs through /dev/kxfer.
// A step is one SUBMIT that also waits for completions; the thread sleeps in
// the kernel while it waits. With a ring it finds the completions there afterwards.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "bench/engine.hpp"

namespace kxfer::bench {

struct JobOptions {
    kxfer_addr peer = {};    // a listener
    kxfer_addr local = {};   // or family 0
    std::string device;      // or empty
    std::string export_name; // at least as long as the memory
    uint32_t context = KXFER_CONTEXT_POLLED;
    uint32_t wait_flags = 0; // KXFER_WAIT_F_*
    bool ring = false;       // completions come into shared memory
    bool writable = true;    // ask for an export that may be written
    std::chrono::milliseconds timeout{10000};
};

class JobEngine : public Engine {
  public:
    // The memory has to outlive the engine.
    static tl::expected<std::unique_ptr<JobEngine>, Error> connect(const JobOptions& options,
                                                                   const Memory& memory);

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return options_.writable; }
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override;

    const std::string& device() const { return device_; }
    uint64_t remote_bytes() const { return target_.length(); }

  private:
    JobEngine(JobOptions options, const Memory& memory, Session session);
    tl::expected<void, Error> open(const Memory& memory);
    tl::expected<void, Error> find_limits();
    tl::expected<unsigned, Error> submit(std::span<const Transfer> transfers, unsigned wait);
    tl::expected<std::span<const Completion>, Error> take(unsigned wait);
    tl::expected<unsigned, Error> reap(unsigned wait);
    tl::expected<void, Error> check(unsigned count) const;

    JobOptions options_;
    uint64_t local_bytes_;
    std::string peer_;
    // Destroyed from the last to the first.
    Session session_;
    Region region_;
    Peer peer_handle_;
    Target target_;
    std::string device_;
    bool iwarp_ = false;
    unsigned max_jobs_ = 0;
    unsigned credits_ = 0;   // work requests that the link's data lanes take
    unsigned read_sges_ = 1; // SGEs that a work request uses
    unsigned write_sges_ = 1;
    unsigned in_flight_ = 0;
    std::vector<Job> jobs_;
    std::vector<Completion> completions_;
};

} // namespace kxfer::bench
