// SPDX-License-Identifier: MIT
//
// The kernel side of every comparison: jobs through /dev/kxfer. A step is one SUBMIT that
// also waits for completions; the thread sleeps in the kernel while it waits. With rings it is
// one ENTER, and the completions are in a ring afterwards.
//
// Messages go to the mailbox of the export, never more than it has room for
// (outbox.hpp). A WRITE with immediate is a WRITE followed, on the same lane, by a message
// that is the immediate alone.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "bench/engines/kernel_path.hpp"
#include "bench/engines/outbox.hpp"
#include "engine/engine.hpp"

namespace kxfer::bench {

class JobEngine : public SteppedEngine {
  public:
    // The memory has to outlive the engine.
    static tl::expected<std::unique_ptr<JobEngine>, Error> connect(const PathOptions& options,
                                                                   const Memory& memory);

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override;
    // On iWARP a READ is followed by an invalidation; a later WRITE does not wait for that.
    // A message that the peer's kernel answers may be overtaken by other operations, which its device
    // acknowledges. In a series of SENDs that are so acknowledged only the first ones, for which the
    // peer had given no credits yet, are answered.
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
    tl::expected<void, Error> check_stored() const;
    void open_mailbox();
    tl::expected<void, Error> carry_out(const Job& job);
    template <typename Done>
    tl::expected<void, Error> read_status_until(Done done, const std::string& otherwise);
    uint64_t count_messages(std::span<const Transfer> transfers) const;
    tl::expected<void, Error> wait_for_room(uint64_t messages);
    std::span<const Job> prepare(std::span<const Transfer> transfers, uint64_t messages);
    Job* fill_message(Job* next, const Transfer& transfer);
    void fill(Job& job, const Transfer& transfer);
    void set_operands(Job& job);
    // These return how many operations of the step have ended so far.
    tl::expected<unsigned, Error> submit_in_parts(std::span<const Job> jobs, unsigned wait);
    tl::expected<unsigned, Error> submit(std::span<const Job> jobs, unsigned wait);
    tl::expected<unsigned, Error> reap(unsigned wait);
    tl::expected<unsigned, Error> count(std::span<const Completion> completions);
    tl::expected<unsigned, Error> learn_status();
    tl::expected<unsigned, Error> submit_once(std::span<const Job> jobs, unsigned wait, Deadline deadline);
    tl::expected<unsigned, Error> enter(std::span<const Job> jobs, unsigned wait, Deadline deadline);
    tl::expected<unsigned, Error> refused(std::span<const Job> jobs, int ret, int error) const;
    tl::expected<unsigned, Error> failed(const Completion& completion) const;
    tl::expected<std::span<const Completion>, Error> take(unsigned wait);

    KernelPath path_;
    const Memory& memory_;
    Workload workload_;           // of make_ready()
    Workload messages_;           // its messages alone; a READ: there are none
    std::vector<uint64_t> swaps_; // done on each slot: COMPARE_SWAP counts up by one
    std::unique_ptr<Outbox> outbox_;
    std::string no_messages_ = "messages were not asked for"; // why there is no outbox
    unsigned jobs_each_ = 1;                                  // jobs per operation
    unsigned in_flight_ = 0;                                  // jobs
    unsigned ended_ = 0;                                      // operations, during this step
    // From here on the timeout counts, so that no step reads the clock. After a pause that is
    // longer than the timeout SUBMIT does not wait; REAP, with a deadline of its own, does.
    std::chrono::steady_clock::time_point last_completion_;
    std::vector<Job> jobs_;
    std::vector<Completion> completions_;
};

} // namespace kxfer::bench
