// SPDX-License-Identifier: MIT
//
// The kernel side of every comparison: READ, WRITE and atomic jobs through /dev/kxfer.
// A step is one SUBMIT that also waits for completions; the thread sleeps in
// the kernel while it waits. With a ring it finds the completions there afterwards.
#pragma once

#include <memory>
#include <vector>

#include "bench/engine.hpp"
#include "bench/kernel_path.hpp"

namespace kxfer::bench {

class JobEngine : public SteppedEngine {
  public:
    // The memory has to outlive the engine.
    static tl::expected<std::unique_ptr<JobEngine>, Error> connect(const PathOptions& options,
                                                                   const Memory& memory);

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override { return path_.parameters(workload); }
    bool remote_writable() const override { return path_.options().writable; }
    tl::expected<void, Error> supports(Operation operation) const override;
    tl::expected<void, Error> make_ready(const Workload& workload) override;
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override;

    uint64_t remote_bytes() const { return path_.remote_bytes(); }

  private:
    JobEngine(KernelPath path, const Memory& memory);
    Job job_of(const Transfer& transfer);
    tl::expected<unsigned, Error> submit(std::span<const Transfer> transfers, unsigned wait);
    tl::expected<std::span<const Completion>, Error> take(unsigned wait);
    tl::expected<unsigned, Error> reap(unsigned wait);
    tl::expected<void, Error> check(unsigned count) const;

    KernelPath path_;
    const Memory& memory_;
    Workload workload_;           // that it was made ready for
    std::vector<uint64_t> swaps_; // done on each slot: COMPARE_SWAP counts up by one
    unsigned in_flight_ = 0;
    std::vector<Job> jobs_;
    std::vector<Completion> completions_;
};

} // namespace kxfer::bench
