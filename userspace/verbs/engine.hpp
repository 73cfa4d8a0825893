// SPDX-License-Identifier: MIT
//
// The user-space side of every comparison: READ and WRITE by libibverbs over
// an RC connection made by rdma_cm. It posts one list of work requests a step,
// asks for each completion and polls the CQ for them, as perftest does; it
// never sleeps, so it holds its CPU while it waits.
//
// On rxe and siw the provider enters the kernel for each doorbell: there user
// space does not bypass the kernel.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <netinet/in.h>

#include "bench/engine.hpp"
#include "verbs/connection.hpp"
#include "verbs/wire.hpp"

namespace kxfer::verbs {

struct EngineOptions {
    sockaddr_storage peer{};  // of a responder
    sockaddr_storage local{}; // or family 0
    unsigned depth = 1;
    unsigned batch = 1;
    bool signal_batch = false; // only the last of a batch is signalled
    uint64_t remote_bytes = 0; // memory to ask for; 0: as much as the local
    bool writable = true;      // ask for memory that may be written
    std::chrono::milliseconds timeout{10000};
};

class Engine : public bench::SteppedEngine {
  public:
    // The memory has to outlive the engine; as much is asked for at the peer.
    static tl::expected<std::unique_ptr<Engine>, Error> connect(const EngineOptions& options,
                                                                const bench::Memory& memory);
    ~Engine() override;

    std::string name() const override { return "verbs"; }
    bench::Parameters parameters(const bench::Workload& workload) const override;
    bool remote_writable() const override { return options_.writable; }
    tl::expected<unsigned, Error> step(std::span<const bench::Transfer> transfers, unsigned wait) override;

  private:
    Engine(const EngineOptions& options, const bench::Memory& memory);
    tl::expected<void, Error> resolve(Clock::time_point deadline);
    tl::expected<void, Error> establish(Clock::time_point deadline);
    tl::expected<Event, Error> expect(rdma_cm_event_type type, Clock::time_point deadline,
                                      const std::string& what, const std::string& advice);
    Error refusal(const rdma_cm_event& event) const;
    tl::expected<void, Error> post(std::span<const bench::Transfer> transfers);
    tl::expected<unsigned, Error> poll(unsigned wait);
    tl::expected<void, Error> check(std::span<const ibv_wc> completions) const;

    EngineOptions options_;
    const bench::Memory& memory_;
    std::string peer_;
    Channel channel_;
    QueuePair pair_;
    Answer remote_;
    std::vector<ibv_send_wr> requests_;
    std::vector<ibv_sge> sges_;
};

} // namespace kxfer::verbs
