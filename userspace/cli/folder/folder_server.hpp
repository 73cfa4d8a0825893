// SPDX-License-Identifier: MIT
//
// FolderServer: serves a folder of this node to peers (`kxfer serve --dir`). A thread takes the
// requests of all clients from the mailbox NAME, one after the other, and carries each out at the
// client's desk. A request moves at most one window of bytes, so no client waits for long.
//
// A desk that nobody has open any more goes after some seconds: that of a client that has ended, and
// that of one whose link broke and that does not come back.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "bench/peer/endurance.hpp"
#include "cli/folder/desk.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

class FolderServer {
  public:
    // path: the folder. rules: peers that may; none: all peers.
    static tl::expected<std::unique_ptr<FolderServer>, Failure>
    start(const std::string& name, const std::string& path, bool writable, std::vector<kxfer_rule> rules);
    // Ends the mailbox, which ends the thread.
    ~FolderServer();
    FolderServer(const FolderServer&) = delete;
    FolderServer& operator=(const FolderServer&) = delete;

    const std::string& name() const { return folder_.name; }
    // 0, or the errno with which the thread ended by itself.
    int ended() const { return endurance_.ended(); }

    struct Stored {
        std::string path; // in the folder
        kxfer_message sender;
    };
    // The files that came since the last call.
    std::vector<Stored> take_stored();

  private:
    FolderServer(Session session, ServedFolder folder)
        : session_(std::move(session)), folder_(std::move(folder)) {}
    tl::expected<void, Failure> offer();
    void run();
    bool exchange();
    bool submit(uint32_t place);
    void handle(const Message& message);
    void open_desk(const std::string& id, const kxfer_message& sender);
    void drop_desks(const kxfer_message* sender);
    void look_at_desks();

    Session session_;
    ServedFolder folder_;
    Memory memory_;
    Region region_;
    Mailbox mailbox_;         // the destructor ends it while the thread runs; so the thread uses
    uint32_t mailbox_id_ = 0; // this copy of its id
    std::map<std::string, std::unique_ptr<Desk>> desks_;
    uint64_t looked_ns_ = 0; // when desks were last looked at
    bench::Endurance endurance_;
    std::mutex mutex_; // protects stored_
    std::vector<Stored> stored_;
    std::thread thread_;
};

} // namespace kxfer::cli
