// SPDX-License-Identifier: MIT
//
// The thread that reads and writes files for put and get: order, the end of a file, failures,
// and that it can be ended from any blocking call.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "cli/node/file.hpp"
#include "cli/transfer/file_thread.hpp"

using namespace kxfer;
using namespace kxfer::cli;

namespace {

constexpr int patience_ms = 20000;

std::unique_ptr<FileThread> start(FileThread::Work work) {
    auto thread = FileThread::start(std::move(work));
    if (!thread) ADD_FAILURE() << thread.error().error.what;
    return std::move(*thread);
}

bool readable(int fd, int timeout_ms) {
    pollfd polled = {fd, POLLIN, 0};
    return poll(&polled, 1, timeout_ms) == 1;
}

FileThread::Done wait_done(FileThread& thread) {
    EXPECT_TRUE(readable(thread.fd(), patience_ms));
    auto done = thread.take();
    if (!done) return {{}, fail("nothing came", "", ETIMEDOUT)};
    return std::move(*done);
}

struct Pipe {
    Pipe() {
        std::array<int, 2> ends = {-1, -1};
        if (pipe(ends.data()) != 0) ADD_FAILURE();
        read_end = Descriptor(ends[0]);
        write_end = Descriptor(ends[1]);
    }
    FileThread::Work reading() const {
        return [fd = read_end.get()](std::span<std::byte> piece, const std::stop_token& stop) {
            return read_full(fd, piece, "the pipe", stop);
        };
    }
    FileThread::Work writing() const {
        return [fd = write_end.get()](std::span<std::byte> piece,
                                      const std::stop_token& stop) -> Expected<size_t> {
            auto written = write_full(fd, piece, "the pipe", stop);
            if (!written) return tl::make_unexpected(written.error());
            return piece.size();
        };
    }
    void put(const std::string& text) const {
        EXPECT_EQ(write(write_end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

    Descriptor read_end, write_end;
};

} // namespace

TEST(FileThread, gives_pieces_back_in_the_order_it_got_them) {
    std::array<std::byte, 4> bytes = {};
    const auto thread = start(
        [](std::span<std::byte> piece, const std::stop_token&) -> Expected<size_t> { return piece.size(); });
    for (size_t i = 0; i < bytes.size(); i++) thread->give(std::span(bytes).subspan(i, 1));
    for (size_t i = 0; i < bytes.size(); i++) {
        const auto done = wait_done(*thread);
        EXPECT_EQ(done.piece.data(), bytes.data() + i);
        EXPECT_EQ(*done.bytes, 1U);
    }
    EXPECT_FALSE(thread->take());
    EXPECT_FALSE(readable(thread->fd(), 0));
}

TEST(FileThread, reads_on_while_nobody_takes) {
    const Pipe pipe;
    std::array<std::byte, 6> bytes = {};
    const auto thread = start(pipe.reading());
    for (size_t i = 0; i < 3; i++) thread->give(std::span(bytes).subspan(2 * i, 2));
    pipe.put("abcdef");
    for (size_t i = 0; i < 3; i++) EXPECT_EQ(*wait_done(*thread).bytes, 2U);
    EXPECT_EQ(bytes[5], std::byte{'f'});
}

TEST(FileThread, a_piece_that_is_done_in_part_is_the_last) {
    Pipe pipe;
    std::array<std::byte, 8> bytes = {};
    const auto thread = start(pipe.reading());
    thread->give(std::span(bytes).first(4));
    thread->give(std::span(bytes).subspan(4, 2));
    thread->give(std::span(bytes).subspan(6, 2));
    pipe.put("abcde");
    pipe.write_end = Descriptor();
    EXPECT_EQ(*wait_done(*thread).bytes, 4U);
    EXPECT_EQ(*wait_done(*thread).bytes, 1U);
    thread->stop();
    EXPECT_FALSE(thread->take());
}

TEST(FileThread, a_piece_that_fails_is_the_last) {
    int calls = 0;
    std::array<std::byte, 8> bytes = {};
    const auto thread = start([&](std::span<std::byte>, const std::stop_token&) -> Expected<size_t> {
        calls++;
        return fail("cannot write", "it", ENOSPC);
    });
    thread->give(bytes);
    thread->give(bytes);
    const auto done = wait_done(*thread);
    ASSERT_FALSE(done.bytes);
    EXPECT_EQ(done.bytes.error().number, ENOSPC);
    thread->stop();
    EXPECT_FALSE(thread->take());
    EXPECT_EQ(calls, 1);
}

TEST(FileThread, that_has_nothing_to_do_ends) { start(Pipe().reading())->stop(); }

TEST(FileThread, ends_out_of_a_read_that_nothing_comes_from) {
    const Pipe pipe;
    std::array<std::byte, 8> bytes = {};
    const auto thread = start(pipe.reading());
    thread->give(std::span(bytes).first(4));
    thread->give(std::span(bytes).subspan(4));
    pipe.put("abcdef");
    EXPECT_EQ(*wait_done(*thread).bytes, 4U);
    // Wait until the thread is in the read of the second piece, which takes the rest of the
    // file.
    for (int ms = 0; ms < patience_ms && readable(pipe.read_end.get(), 0); ms++) usleep(1000);
    thread->stop();
    const auto done = thread->take();
    ASSERT_TRUE(done);
    ASSERT_FALSE(done->bytes);
    EXPECT_EQ(done->bytes.error().number, EINTR);
}

TEST(FileThread, ends_out_of_a_write_that_nobody_reads) {
    const Pipe pipe;
    std::vector<std::byte> bytes(1 << 20); // more than a pipe holds
    const auto thread = start(pipe.writing());
    thread->give(bytes);
    EXPECT_TRUE(readable(pipe.read_end.get(), patience_ms));
    thread->stop();
    const auto done = thread->take();
    ASSERT_TRUE(done);
    ASSERT_FALSE(done->bytes);
    EXPECT_EQ(done->bytes.error().number, EINTR);
}

TEST(FileThread, does_not_begin_what_it_was_given_after_the_stop) {
    std::array<std::byte, 8> bytes = {};
    const auto thread = start(
        [](std::span<std::byte> piece, const std::stop_token&) -> Expected<size_t> { return piece.size(); });
    thread->stop();
    thread->give(bytes);
    EXPECT_FALSE(readable(thread->fd(), 0));
    EXPECT_FALSE(thread->take());
}

// A signal of the process is handled by the thread that waits for it.
TEST(FileThread, takes_no_signals_of_the_process) {
    sigset_t blocked;
    sigemptyset(&blocked);
    std::array<std::byte, 1> bytes = {};
    const auto thread = start([&](std::span<std::byte> piece, const std::stop_token&) -> Expected<size_t> {
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        return piece.size();
    });
    thread->give(bytes);
    wait_done(*thread);
    EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
    sigset_t own;
    pthread_sigmask(SIG_BLOCK, nullptr, &own);
    EXPECT_EQ(sigismember(&own, SIGINT), 0);
}
