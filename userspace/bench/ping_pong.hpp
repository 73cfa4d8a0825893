// SPDX-License-Identifier: MIT
//
// Round trips between two processes by jobs, as krping makes them between two kernels.
//   ping_pong        this end offers memory by a NOTIFY; the other READs it, WRITEs it back
//                    and NOTIFYs behind that; this end compares every byte. Both sleep
//                    until they are notified.
//   write_ping_pong  each end WRITEs when it sees the last byte of the other's WRITE in
//                    its memory, and looks for nothing else.
// The first half of the memory at either end is what goes out, the second what comes in.
//
// The other end, the partner, is a thread of the server on this node. It opens an export
// of this end, by the same listener, when it is notified for the first time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "bench/engine.hpp"
#include "bench/kernel_path.hpp"

namespace kxfer::bench {

struct PartnerOptions {
    PathOptions path; // to the export of who makes the round trips
    Workload workload;
};

class Partner {
  public:
    // events: of the session that exports the memory; nobody else takes its events. Both
    // have to outlive it.
    Partner(const PartnerOptions& options, Session& events, const Memory& memory);
    ~Partner();
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;

  private:
    void run();
    void answer_pings(KernelPath& path);
    void answer_writes(KernelPath& path);
    bool next_event(uint64_t& cookie);

    PartnerOptions options_;
    Session& events_;
    const Memory& memory_;
    std::atomic<bool> stopped_ = false;
    std::thread thread_;
};

// An operation is a round trip, one at a time.
class PingPongEngine : public SteppedEngine {
  public:
    // The memory, of twice the workload's bytes, has to outlive the engine. ETIMEDOUT: the
    // partner does not answer.
    static tl::expected<std::unique_ptr<PingPongEngine>, Error>
    connect(const PathOptions& options, const Memory& memory, const Workload& workload);
    // Of the export that the partner opens.
    static std::string back_name(const std::string& export_name) { return export_name + "-back"; }

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return false; }
    std::optional<Registration> registration() const override { return path_.registration(); }
    bool verifies_itself() const override { return workload_.work == Work::ping_pong; }
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override;
    uint64_t remote_bytes() const { return path_.remote_bytes(); }

  private:
    PingPongEngine(KernelPath path, const Memory& memory, const Workload& workload);
    tl::expected<void, Error> meet();
    tl::expected<void, Error> ping();
    tl::expected<void, Error> write();
    tl::expected<void, Error> wait_for_event(uint64_t cookie);

    KernelPath path_;
    const Memory& memory_;
    Workload workload_;
    Export export_;
    uint64_t rounds_ = 0;
};

} // namespace kxfer::bench
