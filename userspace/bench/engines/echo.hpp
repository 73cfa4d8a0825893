// SPDX-License-Identifier: MIT
//
// write_ping_pong (ping_pong.hpp) with the kernel at both ends: each end is a run of KXFER_BENCH, which
// posts a WRITE when it sees the last byte of the other's. One call makes as many round trips as fit
// into its time. Needs CAP_NET_ADMIN, at both ends.
#pragma once

#include <chrono>
#include <memory>

#include "bench/engines/kernel_path.hpp"
#include "bench/engines/ping_pong.hpp"
#include "engine/engine.hpp"

namespace kxfer::bench {

// One end. Its numbers go on from call to call, as those of the other end do.
class Echo {
  public:
    // flag: KXFER_BENCH_F_PING or _PONG
    Echo(const Workload& workload, uint32_t flag) : workload_(workload), flag_(flag) {}

    kxfer_bench request(const KernelPath& path, uint64_t count, std::chrono::nanoseconds budget) const;
    // A run takes a lane for itself, so that two ends on one node need a link each. Links are shared only by
    // those that ask for the same, for example as many bytes in flight, of which a run has none.
    static uint32_t other_in_flight_kib(uint32_t kib) { return kib == other_kib ? 2 * other_kib : other_kib; }
    // EINTR: a signal came.
    tl::expected<void, Error> run(KernelPath& path, kxfer_bench& bench);

  private:
    static constexpr uint32_t other_kib = KXFER_IN_FLIGHT_MIN_KIB;

    Workload workload_;
    uint32_t flag_;
    uint32_t next_ = 1;
};

// The initiator's engine. It meets its partner as that of jobs does.
class EchoEngine : public Engine {
  public:
    // As PingPongEngine::connect(); the partner has to answer by runs (PartnerOptions::by_runs).
    static tl::expected<std::unique_ptr<EchoEngine>, Error>
    connect(const PathOptions& options, const Memory& memory, const Workload& workload);

    std::string name() const override { return "kverbs"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return false; }
    std::optional<Registration> registration() const override { return met_->registration(); }
    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) override;

  private:
    EchoEngine(std::unique_ptr<PingPongEngine> met, const Workload& workload)
        : met_(std::move(met)), echo_(workload, KXFER_BENCH_F_PING) {}

    std::unique_ptr<PingPongEngine> met_;
    Echo echo_;
};

} // namespace kxfer::bench
