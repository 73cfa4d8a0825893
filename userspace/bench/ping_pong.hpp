// SPDX-License-Identifier: MIT
//
// Round trips between two processes by jobs, as krping makes them between two kernels.
//   ping_pong        this end offers memory by a NOTIFY; the other READs it, WRITEs it back
//                    and NOTIFYs behind that; this end compares every byte. Both sleep
//                    until they are notified.
//   write_ping_pong  each end WRITEs when it sees the last byte of the other's WRITE in
//                    its memory, and looks for nothing else.
//   send_ping_pong   this end sends a message to the other's mailbox, and the other sends it back
//                    to this end's (message_end.hpp); this end compares every byte. Both sleep
//                    until a message comes.
// The first half of the memory at either end is what goes out, the second what comes in.
//
// The other end, the partner, is a thread of the server on this node, or of a process on another
// node (pong.hpp). It opens an export of this end, at a listener of this node, when it is notified for
// the first time, and ends when that export is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/engine.hpp"
#include "bench/kernel_path.hpp"
#include "bench/message_end.hpp"
#include "bench/stamp.hpp"

namespace kxfer::bench {

struct PartnerOptions {
    PathOptions path; // to the export of who makes the round trips
    Workload workload;
    std::string name;                   // of its own export
    std::vector<kxfer_rule> rules = {}; // who may send to it; none: everybody
};

class Partner {
  public:
    // events: of the session that exports the memory; nobody else takes its events. Both
    // have to outlive it.
    Partner(const PartnerOptions& options, Session& events, const Memory& memory);
    ~Partner();
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;

    // Of itself: nothing is answered any more.
    bool ended() const { return ended_; }
    // Once it has ended: why.
    const Error& error() const { return error_; }

  private:
    using Done = tl::expected<void, Error>;

    void run();
    Done answer();
    Done answer_pings(KernelPath& path);
    Done answer_writes(KernelPath& path);
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
    // Of the export that the partner opens.
    static std::string back_name(const std::string& export_name) { return export_name + "-back"; }

    std::string name() const override { return "job"; }
    Parameters parameters(const Workload& workload) const override;
    bool remote_writable() const override { return false; }
    std::optional<Registration> registration() const override { return path_.registration(); }
    bool verifies_itself() const override { return workload_.work != Work::write_ping_pong; }
    tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) override;
    uint64_t remote_bytes() const { return path_.remote_bytes(); }

  private:
    PingPongEngine(KernelPath path, const Memory& memory, const Workload& workload);
    tl::expected<void, Error> meet();
    tl::expected<void, Error> ping();
    tl::expected<void, Error> write();
    tl::expected<void, Error> send();
    Error silence(int number) const;
    tl::expected<void, Error> compare(std::span<const std::byte> back, const Stamp& stamp) const;
    tl::expected<void, Error> wait_for_event(uint64_t cookie);

    KernelPath path_;
    const Memory& memory_;
    Workload workload_;
    Export export_;
    std::unique_ptr<MessageEnd> messages_; // of send_ping_pong
    uint64_t rounds_ = 0;
};

} // namespace kxfer::bench
