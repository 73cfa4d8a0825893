// SPDX-License-Identifier: MIT
//
// The floor: a loop in the module posts the workload's work requests without jobs (KXFER_BENCH).
// It polls the CQ, or sleeps while the link's context handles completions. A block is one call,
// which needs CAP_NET_ADMIN.
//
// Latency of a deep run: from the post to when the completion was found, counted in the
// kernel. At a rate the kernel keeps the schedule, and latency begins when an operation was due.
//
// Messages are sent on a dedicated connection with the responder of engine verbs
// (dedicated_path.hpp), created anew for each workload of messages. With UD, messages use a
// separate QP, and READs and WRITEs that verify use the connection. Several clients at the same
// time use dedicated connections for everything, because a run needs a lane of a link to itself.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/engines/dedicated_path.hpp"
#include "bench/engines/kernel_path.hpp"
#include "engine/engine.hpp"

namespace kxfer::bench {

class KverbsEngine : public Engine {
  public:
    // The memory has to outlive the engine. responder: for dedicated connections.
    static tl::expected<std::unique_ptr<KverbsEngine>, Error>
    connect(const PathOptions& options, const kxfer_addr& responder, const Memory& memory);
    // Why the caller cannot use the engine, for example a missing right.
    static std::optional<Error> obstacle();

    std::string name() const override { return "kverbs"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return path_.options().writable; }
    std::optional<Registration> registration() const override { return path_.registration(); }
    uint64_t remote_bytes() const { return path_.remote_bytes(); }
    unsigned slots(const Workload& workload, Mode mode) const override;
    tl::expected<void, Error> supports(Operation operation) const override;
    // EOPNOTSUPP also: an operation is longer than the device registers at once.
    tl::expected<void, Error> make_ready(const Workload& workload) override;
    tl::expected<void, Error> settle() override;
    bool is_reliable() const override { return !path_.options().ud; }
    std::optional<Losses> losses() const override;
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override;

  private:
    KverbsEngine(KernelPath path, const kxfer_addr& responder, const Memory& memory)
        : path_(std::move(path)), responder_(responder), memory_(memory) {}
    // The naming of memory in effect: enum kxfer_bench_memory.
    uint32_t memory_of(const Workload& workload) const;
    uint32_t memory_in_run(const Workload& workload) const;
    bool leaves_rw(const Workload& workload) const;
    tl::expected<void, Error> add_mapped_region(const Workload& workload);
    // The invalidation in effect: enum kxfer_bench_invalidate. Only SENDs are answered.
    uint32_t invalidation_of(const Workload& workload) const;
    tl::expected<void, Error> check_registration(const Workload& workload) const;
    tl::expected<void, Error> carries(Operation operation) const;
    Error cannot(Operation operation, const std::string& why) const;
    kxfer_bench bench_of(const Workload& workload, Mode mode, const Limits& limits);
    tl::expected<void, Error> run(kxfer_bench& bench, const Limits& limits);
    tl::expected<Block, Error> run_at_rate(const Workload& workload, Mode mode, const Limits& limits);

    KernelPath path_;
    kxfer_addr responder_;
    std::optional<DedicatedPath> dedicated_; // for messages, or if it was asked for
    const Memory& memory_;
    Region mapped_;               // with rdma_rw: the same memory, for operations without rdma_rw
    std::vector<uint64_t> words_; // the peer's words, by slot, as COMPARE_SWAPs have left them
};

} // namespace kxfer::bench
