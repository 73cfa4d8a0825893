// SPDX-License-Identifier: MIT
//
// The floor: a loop in the module posts the workload's work requests and polls
// the CQ, without jobs (KXFER_BENCH). A block is one call, which needs
// CAP_NET_ADMIN and a link whose completions are polled.
#pragma once

#include <memory>
#include <optional>

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
    Parameters parameters(const Workload& workload) const override { return path_.parameters(workload); }
    bool remote_writable() const override { return path_.options().writable; }
    uint64_t remote_bytes() const { return path_.remote_bytes(); }
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override;

  private:
    explicit KverbsEngine(KernelPath path) : path_(std::move(path)) {}

    KernelPath path_;
};

} // namespace kxfer::bench
