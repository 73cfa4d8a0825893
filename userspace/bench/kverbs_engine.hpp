// SPDX-License-Identifier: MIT
//
// The floor: a loop in the module posts the workload's work requests and polls
// the CQ, or sleeps until completions have come where the link's context says, without
// jobs (KXFER_BENCH). A block is one call, which needs CAP_NET_ADMIN.
//
// Latency of a deep run: from the post to when the completion was found, counted in the
// kernel.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/engine.hpp"
#include "bench/kernel_path.hpp"

namespace kxfer::bench {

class KverbsEngine : public Engine {
  public:
    // The memory has to outlive the engine.
    static tl::expected<std::unique_ptr<KverbsEngine>, Error> connect(const PathOptions& options,
                                                                      const Memory& memory);
    // Why the caller cannot use it, for example a right that it lacks.
    static std::optional<Error> obstacle();

    std::string name() const override { return "kverbs"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return path_.options().writable; }
    uint64_t remote_bytes() const { return path_.remote_bytes(); }
    unsigned slots(const Workload& workload, Mode mode) const override;
    tl::expected<void, Error> supports(Operation operation) const override;
    // EOPNOTSUPP also: longer than the device registers at once.
    tl::expected<void, Error> make_ready(const Workload& workload) override;
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override;

  private:
    KverbsEngine(KernelPath path, const Memory& memory) : path_(std::move(path)), memory_(memory) {}
    // What is in effect: enum kxfer_bench_memory.
    uint32_t memory_of(const Workload& workload) const;
    tl::expected<void, Error> check_registration(const Workload& workload) const;
    kxfer_bench bench_of(const Workload& workload, Mode mode, const Limits& limits);
    tl::expected<void, Error> run(kxfer_bench& bench, const Limits& limits);

    KernelPath path_;
    const Memory& memory_;
    std::vector<uint64_t> words_; // of the peer, by slot, as COMPARE_SWAPs have left them
};

} // namespace kxfer::bench
