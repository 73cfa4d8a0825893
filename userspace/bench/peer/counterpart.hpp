// SPDX-License-Identifier: MIT
//
// The counterpart takes part in a measurement at the other end: it reports its process's CPU time, does
// a workload in the reverse direction, and answers round trips (counterpart_wire.hpp). It serves one
// requester at a time in a process: another one gets EBUSY, also until the answer has been READ, but only
// for a limited time. The limits of the wire bound its work, which ends at once when the export that was
// made for it goes.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "bench/engines/kernel_path.hpp"
#include "bench/peer/counterpart_wire.hpp"
#include "bench/peer/endurance.hpp"

namespace kxfer::bench {

class Counterpart {
  public:
    // Offers the mailbox and the answer for that export. rules: peers that may ask; none: all
    // peers. key: for connecting back to a requester whose listener wants one.
    static tl::expected<std::unique_ptr<Counterpart>, Error> start(const std::string& export_name,
                                                                   std::span<const kxfer_rule> rules = {},
                                                                   const std::string& key = {});
    // Ends a request that is being carried out.
    ~Counterpart();
    Counterpart(const Counterpart&) = delete;
    Counterpart& operator=(const Counterpart&) = delete;

    const std::string& name() const { return name_; }
    // 0, or the errno with which the thread ended by itself: no request is answered any more.
    int ended() const { return endurance_.ended(); }

  private:
    struct Asked {
        Ask ask;
        kxfer_addr from;
    };

    Counterpart(Session session, std::string name, Memory place, Memory memory);
    tl::expected<void, Error> offer(const std::string& export_name, std::span<const kxfer_rule> rules);
    void run();
    tl::expected<std::optional<Asked>, Error> next(Deadline deadline);
    void handle(const Asked& asked);
    void answer_beside(const Ask& ask);
    tl::expected<bool, Error> await(Verb verb, uint64_t request, std::chrono::nanoseconds longest);
    tl::expected<void, Error> wait_for_go(uint64_t request);
    tl::expected<void, Error> wait_for_end(uint64_t request);
    tl::expected<PathOptions, Error> path_back(const Asked& asked) const;
    tl::expected<void, Error> reverse(const Asked& asked);
    tl::expected<void, Error> answer_round_trips(const Asked& asked);
    void fail(uint64_t request, const Error& error);
    void publish();

    Session session_;
    std::string name_;
    std::vector<kxfer_rule> rules_;
    std::string key_;
    Memory place_;  // for incoming messages
    Memory memory_; // the answer, which requesters READ
    Answer answer_;
    Endurance endurance_;
    // Destroyed from the last to the first.
    Region place_region_;
    Region region_;
    Export answer_export_;
    Mailbox mailbox_;         // the destructor ends it while the thread runs; so the thread uses
    uint32_t mailbox_id_ = 0; // this copy of its id
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace kxfer::bench
