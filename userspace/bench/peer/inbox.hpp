// SPDX-License-Identifier: MIT
//
// Takes the messages that the engine job sends: offers a mailbox for an export, keeps RECVs
// waiting there, puts the messages into the export's memory and counts them in a status
// (series.hpp). A thread of its own sleeps in SUBMIT, which also submits new RECVs.
//
// A RECV has room for a short message or for a long one. When a series of long messages begins, or
// a message was too long for a RECV, the next RECVs have room for long ones.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "bench/engines/series.hpp"
#include "bench/peer/endurance.hpp"

namespace kxfer::bench {

class Inbox {
  public:
    // memory: that of the export, which others may write and READ; has to outlive the inbox.
    // rules: peers that may send; none: all peers.
    static tl::expected<std::unique_ptr<Inbox>, Error> start(const std::string& export_name,
                                                             std::span<std::byte> memory,
                                                             std::span<const kxfer_rule> rules = {});
    // Ends the mailbox, which ends the thread.
    ~Inbox();
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    const std::string& name() const { return name_; }
    // 0, or the errno with which the thread ended by itself: nothing is received any more.
    int ended() const { return endurance_.ended(); }

  private:
    static constexpr uint32_t places = 128;     // waiting RECVs
    static constexpr uint32_t long_places = 16; // of these for long messages: the limit of a lane
    static constexpr uint32_t short_bytes = sizeof(kxfer_message) + KXFER_MESSAGE_MAX;

    // A RECV; they are used in turn, from the oldest submitted to the newest.
    struct Place {
        std::span<std::byte> range;
        uint64_t bytes = 0; // length of the message received; 0: none
        bool is_long = false;
        bool ended = false;
    };

    Inbox(Session session, std::string name, Memory memory, std::span<std::byte> slots, uint32_t max_bytes);
    static uint64_t memory_bytes(uint32_t max_bytes);
    tl::expected<void, Error> offer(const std::string& export_name, std::span<const kxfer_rule> rules);
    void run();
    bool exchange();
    void make_recvs();
    Place new_place() const;
    bool handle(uint32_t nr_completions);
    bool end(const Completion& completion);
    void take(Place& place);
    WireSeries& status() const { return *reinterpret_cast<WireSeries*>(memory_.data()); }

    Session session_;
    std::string name_;
    Memory memory_; // the status on a page, then the places, those for long messages last
    Series series_;
    uint32_t max_bytes_;                        // longest message
    bool wants_long_ = false;                   // the next RECVs are for long messages
    uint32_t posted_ = 0, taken_ = 0;           // RECVs, since the beginning
    uint32_t long_posted_ = 0, long_taken_ = 0; // of these for long messages
    std::array<Place, places> places_{};
    std::vector<kxfer_job> jobs_;
    std::vector<Completion> completions_;
    Endurance endurance_;
    // Destroyed from the last to the first.
    Region region_;
    Export status_export_;
    Mailbox mailbox_;         // the destructor ends it while the thread runs; so the thread uses
    uint32_t mailbox_id_ = 0; // this copy of its id
    std::thread thread_;
};

} // namespace kxfer::bench
