// SPDX-License-Identifier: MIT
//
// Round trips between two processes by jobs, as krping makes them between two kernels.
//   ping_pong        this end offers memory by a NOTIFY; the other READs it, WRITEs it back
//                    and then NOTIFYs; this end compares every byte. Both sleep until they
//                    are notified.
//   write_ping_pong  each end WRITEs when it sees the last byte of the other's WRITE in
//                    its memory; it polls for nothing else.
//   send_ping_pong   this end sends a message to the other's mailbox, and the other sends it back
//                    to this end's (message_end.hpp); this end compares every byte. Both sleep
//                    until a message arrives.
//   notify_ping_pong each end WRITEs with a NOTIFY behind the data, in one job, when it got the other's
//                    NOTIFY, and sleeps until then; this end compares every byte.
// At each end, the first half of the memory is for outgoing data, the second for incoming data.
//
// The other end, the partner, is a thread of the server on this node, or of a process on another
// node (pong.hpp). On its first NOTIFY it opens an export of this end, at a listener of this node.
// It ends when that export has gone.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/engines/kernel_path.hpp"
#include "bench/engines/message_end.hpp"
#include "engine/engine.hpp"
#include "engine/stamp.hpp"

namespace kxfer::bench {

struct PartnerOptions {
    PathOptions path; // to the export of the initiator of the round trips
    Workload workload;
    std::string name;                   // name of the partner's export
    std::vector<kxfer_rule> rules = {}; // peers that may send to the partner; none: all peers
    bool by_runs = false;               // write_ping_pong: the kernel answers (echo.hpp)
};

class Partner {
  public:
    // events: the session that exports the memory; only the partner takes its events. Both have to
    // outlive the partner.
    Partner(const PartnerOptions& options, Session& events, const Memory& memory);
    ~Partner();
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;

    // The partner has ended by itself: nothing is answered any more.
    bool ended() const { return ended_; }
    // The reason, valid if ended() is true.
    const Error& error() const { return error_; }

  private:
    using Done = tl::expected<void, Error>;

    void run();
    Done answer();
    Done answer_pings(KernelPath& path);
    Done answer_writes(KernelPath& path);
    Done answer_by_runs(KernelPath& path);
    Done answer_notified(KernelPath& path);
    Done answer_messages(KernelPath& path, MessageEnd& end);
    Done await_jobs(KernelPath& path, unsigned left);
    tl::expected<uint64_t, Error> next_event(KernelPath* path);
    Done look_after(KernelPath& path, std::chrono::steady_clock::time_point& looked);

    PartnerOptions options_;
    Session& events_;
    const Memory& memory_;
    Error error_;
    std::atomic<bool> stopped_ = false;
    std::atomic<bool> ended_ = false;
    std::thread thread_;
};

// An operation is a round trip, one at a time.
class PingPongEngine : public SteppedEngine {
  public:
    // The memory, of twice the workload's bytes, has to outlive the engine. ETIMEDOUT: the
    // partner does not answer.
    static tl::expected<std::unique_ptr<PingPongEngine>, Error>
    connect(const PathOptions& options, const Memory& memory, const Workload& workload);
    // Name of the export that the partner opens.
    static std::string back_name(const std::string& export_name) { return export_name + "-back"; }

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return false; }
    std::optional<Registration> registration() const override { return path_.registration(); }
    bool verifies_itself() const override { return workload_.work != Work::write_ping_pong; }
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override;
    uint64_t remote_bytes() const { return path_.remote_bytes(); }
    KernelPath& path() { return path_; }

  private:
    PingPongEngine(KernelPath path, const Memory& memory, const Workload& workload);
    tl::expected<void, Error> meet();
    tl::expected<void, Error> ping();
    tl::expected<void, Error> write();
    tl::expected<void, Error> send();
    tl::expected<void, Error> write_notified();
    Error silence(int number) const;
    tl::expected<void, Error> compare(std::span<const std::byte> back, const Stamp& stamp) const;
    tl::expected<void, Error> wait_for_event(uint64_t cookie);

    KernelPath path_;
    const Memory& memory_;
    Workload workload_;
    Export export_;
    std::unique_ptr<MessageEnd> messages_; // send_ping_pong only
    uint64_t rounds_ = 0;
};

} // namespace kxfer::bench
