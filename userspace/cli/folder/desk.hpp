// SPDX-License-Identifier: MIT
//
// Desk: where the server of a folder serves one client: an export with room for a reply and two
// windows of bytes, which only the address and user may open that asked for it.
//
// The client may write into the desk (if it may write into the folder), so nothing in it is read
// twice: what a window holds is copied, hashed and stored piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/folder/folder_message.hpp"
#include "cli/folder/tree.hpp"
#include "cli/node/file.hpp"

namespace kxfer::cli {

// A folder that is served, and the parts that clients are writing.
struct ServedFolder {
    std::string name;
    Tree tree;
    bool writable = false;
    std::vector<kxfer_rule> rules;
    std::set<std::string> parts = {}; // each of one desk
};

class Desk {
  public:
    // sender: who asked for it. Takes smaller windows if memory cannot be pinned.
    static Expected<std::unique_ptr<Desk>> make(Session& session, ServedFolder& folder, const std::string& id,
                                                const kxfer_message& sender);
    ~Desk();
    Desk(const Desk&) = delete;
    Desk& operator=(const Desk&) = delete;

    bool is_of(const kxfer_message& sender) const;
    // Whether nobody has had it open for so long. open: whether somebody has.
    bool is_unused(bool open, uint64_t now, uint64_t longest_ns) {
        if (open) seen_ns_ = now;
        return now - seen_ns_ > longest_ns;
    }
    // Whether its client has left it; a new one may not have opened it yet.
    bool is_left(bool open, uint64_t now) const { return !open && (used_ || now - made_ns_ > opening_ns); }

    // Carries a request out, and publishes the reply. Returns the path of a file that is new now.
    std::optional<std::string> handle(const FolderRequest& request);

  private:
    static constexpr uint64_t opening_ns = 2'000'000'000;

    Desk(ServedFolder& folder, const kxfer_message& sender) : folder_(folder), sender_(sender) {}
    Expected<void> offer(Session& session, const std::string& id, uint64_t window);
    FolderReply perform(const FolderRequest& request);
    FolderReply list(const FolderRequest& request) const;
    FolderReply read(const FolderRequest& request);
    FolderReply digest(const FolderRequest& request) const;
    FolderReply write(const FolderRequest& request);
    FolderReply keep(const FolderRequest& request);
    bool is_kept(const FolderRequest& request) const;
    Expected<void> take_part(const std::string& path);
    void give_part_back();
    std::span<std::byte> window(const FolderRequest& request);

    ServedFolder& folder_;
    kxfer_message sender_;
    const uint64_t made_ns_ = kxfer_clock_ns();
    uint64_t seen_ns_ = made_ns_; // when it was last open, or made
    bool used_ = false;
    uint64_t window_ = 0; // bytes
    std::string part_;    // path that this desk writes; empty: none
    Memory memory_;       // outlives region and export
    Region region_;
    Export export_;
};

} // namespace kxfer::cli
