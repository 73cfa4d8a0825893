// SPDX-License-Identifier: MIT
//
// The floor: a loop in the module posts the workload's work requests and polls
// the CQ, or sleeps until completions have come where the link's context says, without
// jobs (KXFER_BENCH). A block is one call, which needs CAP_NET_ADMIN.
//
// Latency of a deep run: from the post to when the completion was found, counted in the
// kernel. At a rate the kernel keeps the schedule, and latency begins when an operation was due.
//
// Messages are sent on a connection of their own with the responder of engine verbs
// (dedicated_path.hpp), made anew for each workload of them; by UD, what is measured is by a
// QP beside it, and READs and WRITEs that verify are on the connection. So is all that is
// done if several clients do so at the same time, for a run has a lane of a link to itself.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/dedicated_path.hpp"
#include "bench/engine.hpp"
#include "bench/kernel_path.hpp"

namespace kxfer::bench {

class KverbsEngine : public Engine {
  public:
    // The memory has to outlive the engine. responder: of messages.
    static tl::expected<std::unique_ptr<KverbsEngine>, Error>
    connect(const PathOptions& options, const kxfer_addr& responder, const Memory& memory);
    // Why the caller cannot use it, for example a right that it lacks.
    static std::optional<Error> obstacle();

    std::string name() const override { return "kverbs"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return path_.options().writable; }
    std::optional<Registration> registration() const override { return path_.registration(); }
    uint64_t remote_bytes() const { return path_.remote_bytes(); }
    unsigned slots(const Workload& workload, Mode mode) const override;
    tl::expected<void, Error> supports(Operation operation) const override;
    // EOPNOTSUPP also: longer than the device registers at once.
    tl::expected<void, Error> make_ready(const Workload& workload) override;
    tl::expected<void, Error> settle() override;
    bool is_reliable() const override { return !path_.options().ud; }
    std::optional<Losses> losses() const override;
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override;

  private:
    KverbsEngine(KernelPath path, const kxfer_addr& responder, const Memory& memory)
        : path_(std::move(path)), responder_(responder), memory_(memory) {}
    // What is in effect: enum kxfer_bench_memory.
    uint32_t memory_of(const Workload& workload) const;
    uint32_t memory_in_run(const Workload& workload) const;
    bool leaves_rw(const Workload& workload) const;
    tl::expected<void, Error> add_mapped_region(const Workload& workload);
    // Likewise: enum kxfer_bench_invalidate. What is beside messages is answered by nobody.
    uint32_t invalidation_of(const Workload& workload) const;
    tl::expected<void, Error> check_registration(const Workload& workload) const;
    tl::expected<void, Error> carries(Operation operation) const;
    Error cannot(Operation operation, const std::string& why) const;
    kxfer_bench bench_of(const Workload& workload, Mode mode, const Limits& limits);
    tl::expected<void, Error> run(kxfer_bench& bench, const Limits& limits);
    tl::expected<Block, Error> run_at_rate(const Workload& workload, Mode mode, const Limits& limits);

    KernelPath path_;
    kxfer_addr responder_;
    std::optional<DedicatedPath> dedicated_; // of messages, or if it is asked for
    const Memory& memory_;
    Region mapped_;               // the same memory for what rdma_rw does not do, if it maps by itself
    std::vector<uint64_t> words_; // of the peer, by slot, as COMPARE_SWAPs have left them
};

} // namespace kxfer::bench
