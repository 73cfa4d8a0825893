// SPDX-License-Identifier: MIT
//
// FileThread: does the blocking calls on a file, so that the thread that drives the
// transfers never waits for a disk or a pipe.
//
// give() hands over pieces of memory, which are worked on one after the other, and
// take() returns them in the same order. In between a piece belongs to the FileThread.
// A piece that fails, or is done only in part (the file's end), is the last one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>

#include <kxfer/kxfer.hpp>

#include "cli/node/file.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

class FileThread {
  public:
    // Runs on the thread, once for each piece; returns how many bytes were read or written.
    // A call it blocks in ends with EINTR when a stop is requested.
    using Work = std::function<Expected<size_t>(std::span<std::byte> piece, const std::stop_token& stop)>;

    struct Done {
        std::span<std::byte> piece;
        Expected<size_t> bytes;
    };

    static tl::expected<std::unique_ptr<FileThread>, Failure> start(Work work);
    ~FileThread() { stop(); }
    FileThread(const FileThread&) = delete;
    FileThread& operator=(const FileThread&) = delete;

    void give(std::span<std::byte> piece);
    // Takes the oldest piece that is done.
    std::optional<Done> take();
    // Readable while take() has a piece to return.
    int fd() const { return done_event_.get(); }

    // Ends the thread, interrupting the call it is in; later pieces are not done. After
    // it, take() still returns finished pieces, and data written by the work can be read.
    void stop();

  private:
    FileThread(Work work, Descriptor done_event);
    void run(const std::stop_token& stop);
    std::optional<std::span<std::byte>> next_piece(const std::stop_token& stop);
    void put_done(Done done);

    Work work_;
    Descriptor done_event_;
    std::mutex mutex_; // protects the members below
    std::condition_variable_any given_changed_;
    std::condition_variable ended_changed_;
    std::deque<std::span<std::byte>> given_;
    std::deque<Done> done_;
    bool ended_ = false;
    std::jthread thread_;
};

} // namespace kxfer::cli
