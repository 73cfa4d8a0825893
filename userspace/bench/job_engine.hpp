// SPDX-License-Identifier: MIT
//
// The kernel side of every comparison: jobs through /dev/kxfer. A step is one SUBMIT that
// also waits for completions; the thread sleeps in the kernel while it waits. With a ring it
// finds the completions there afterwards.
//
// Messages go to the mailbox beside the export, never more than it has room for
// (outbox.hpp). A WRITE with immediate is a WRITE and, behind it on the same lane, a message
// that is the immediate alone.
#pragma once

#include <memory>
#include <vector>

#include "bench/engine.hpp"
#include "bench/kernel_path.hpp"
#include "bench/outbox.hpp"

namespace kxfer::bench {

class JobEngine : public SteppedEngine {
  public:
    // The memory has to outlive the engine.
    static tl::expected<std::unique_ptr<JobEngine>, Error> connect(const PathOptions& options,
                                                                   const Memory& memory);

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override;
    // A READ of iWARP is followed by an invalidation, which a WRITE behind it does not wait for.
    // A message is answered by the peer's kernel, behind what else was acknowledged meanwhile.
    bool completes_in_order() const override {
        return !path_.iwarp() && !(workload_.is_mix() && is_message(messages_.operation));
    }
    bool remote_writable() const override { return path_.options().writable; }
    std::optional<Registration> registration() const override { return path_.registration(); }
    tl::expected<void, Error> supports(Operation operation) const override;
    tl::expected<void, Error> make_ready(const Workload& workload) override;
    tl::expected<void, Error> begin_block(const Workload& workload) override;
    tl::expected<void, Error> end_block(const Workload& workload) override;
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override;

    uint64_t remote_bytes() const { return path_.remote_bytes(); }

  private:
    JobEngine(KernelPath path, const Memory& memory);
    void open_mailbox();
    Job job_of(const Transfer& transfer);
    void add_jobs(const Transfer& transfer);
    tl::expected<void, Error> carry_out(const Job& job);
    template <typename Done>
    tl::expected<void, Error> read_status_until(Done done, const std::string& otherwise);
    tl::expected<unsigned, Error> wait_for_room(uint64_t messages);
    tl::expected<unsigned, Error> submit_all(unsigned wait);
    tl::expected<unsigned, Error> submit(std::span<const Job> jobs, unsigned wait);
    tl::expected<std::span<const Completion>, Error> take(unsigned wait);
    tl::expected<unsigned, Error> reap(unsigned wait);
    tl::expected<unsigned, Error> count(unsigned taken);
    Error failure(const Completion& completion) const;

    KernelPath path_;
    const Memory& memory_;
    Workload workload_;           // that it was made ready for
    Workload messages_;           // those of it; a READ: there are none
    std::vector<uint64_t> swaps_; // done on each slot: COMPARE_SWAP counts up by one
    std::unique_ptr<Outbox> outbox_;
    std::string no_messages_ = "messages were not asked for"; // unless there is an outbox
    unsigned jobs_each_ = 1;                                  // of an operation
    unsigned in_flight_ = 0;                                  // jobs
    std::vector<Job> jobs_;
    std::vector<Completion> completions_;
};

} // namespace kxfer::bench
