// SPDX-License-Identifier: MIT
//
// FolderClient: the desk of this command at the server of a folder (folder_message.hpp), over as many
// links as it takes. A window is asked for while the one before is on its way.
//
// After a break, or when the server was started again, restore() opens a desk anew. The caller then
// repeats what it had not finished: every request may be repeated, and windows are lost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <kxfer/kxfer.hpp>

#include "cli/command/command.hpp"
#include "cli/command/peer.hpp"
#include "cli/folder/folder_message.hpp"
#include "cli/line/line.hpp"
#include "cli/line/pipeline.hpp"

namespace kxfer::cli {

class FolderClient {
  public:
    // folder: the peer and the name of the folder. limit: bytes a second at most; 0: none.
    static tl::expected<std::unique_ptr<FolderClient>, Failure>
    open(const Remote& folder, uint64_t limit, const CommonOptions& common, Output& out);
    FolderClient(const FolderClient&) = delete;
    FolderClient& operator=(const FolderClient&) = delete;

    uint64_t window_bytes() const { return (line_->target().length() - reply_bytes) / nr_windows; }
    bool is_writable() const { return (line_->target().rights() & KXFER_RIGHT_WRITE) != 0; }
    uint64_t breaks() const { return line_->breaks(); }
    // PEER/NAME/PATH, for messages.
    std::string full_path(const std::string& path) const { return remote_.text() + '/' + path; }

    // Makes a request and waits for its reply, over breaks. The failure of a request names the path.
    tl::expected<FolderReply, Failure> ask(FolderRequest request);

    // The two halves of it, without breaks: between them windows may be read and filled.
    tl::expected<void, Failure> post(FolderRequest request);
    tl::expected<FolderReply, Failure> await();
    // Reads the first bytes of a window; `take` gets them in order.
    using Take = std::function<tl::expected<void, Failure>(std::span<const std::byte>)>;
    tl::expected<void, Failure> read_window(uint32_t window, uint64_t length, const Take& take);
    // Writes into a window what `fill` puts into each piece.
    using Fill = std::function<tl::expected<void, Failure>(std::span<std::byte>)>;
    tl::expected<void, Failure> write_window(uint32_t window, uint64_t length, const Fill& fill);

    // Opens a desk anew, if the failure is that of a break; otherwise returns it.
    tl::expected<void, Failure> restore(Failure broke);

  private:
    FolderClient(Remote remote, CommonOptions common);
    tl::expected<Target, Failure> open_desk(Connection& connection, const CommonOptions& common);
    tl::expected<void, Failure> send(const FolderRequest& request, Connection& connection,
                                     const CommonOptions& common);
    tl::expected<FolderReply, Failure> read_reply(const kxfer_content& content);
    tl::expected<void, Failure> read_bytes(uint64_t offset, uint64_t length, const Take& take);
    tl::expected<void, Failure> wait_for_job();
    uint64_t window_offset(uint32_t window) const {
        return reply_bytes + window % nr_windows * window_bytes();
    }
    Failure refusal(const FolderReply& reply) const;
    tl::unexpected<Failure> explain(const Error& error) const;

    Remote remote_;
    CommonOptions common_;
    std::string desk_;
    uint64_t number_ = 0;     // of the last request
    uint64_t generation_ = 0; // of the desk's content, when that was posted
    std::string asked_;       // its path
    FolderOp asked_op_ = FolderOp::open;
    bool no_answer_ = false; // came in time
    Memory memory_;          // of a request
    Region region_;
    std::optional<Line> line_;
    Target mailbox_; // destroyed before the line, whose peer it is of
    std::optional<Pipeline> pipeline_;
};

} // namespace kxfer::cli
