// SPDX-License-Identifier: MIT
#include "cli/transfer/file_thread.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <pthread.h>
#include <sys/eventfd.h>

namespace kxfer::cli {

namespace {

// Interrupts the call that the thread is blocked in. It is ignored by default, so that
// one from elsewhere does no harm.
constexpr int wake_signal = SIGURG;

void catch_wake_signal() {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(wake_signal, &action, nullptr); // without SA_RESTART: the call has to end
}

// Blocks signals of the process: another thread handles them.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        sigdelset(&all, wake_signal);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_ = {};
};

} // namespace

FileThread::FileThread(Work work, Descriptor done_event)
    : work_(std::move(work)), done_event_(std::move(done_event)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

tl::expected<std::unique_ptr<FileThread>, Failure> FileThread::start(Work work) {
    Descriptor done_event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (done_event.get() < 0) return failed(Error("cannot make", "an eventfd", errno));
    catch_wake_signal();
    const SignalsBlocked blocked; // the thread inherits the mask
    try {
        return std::unique_ptr<FileThread>(new FileThread(std::move(work), std::move(done_event)));
    } catch (const std::system_error& error) {
        return failed(Error("cannot start", "a thread", error.code().value(), "see: ulimit -u"));
    }
}

void FileThread::give(std::span<std::byte> piece) {
    const std::lock_guard lock(mutex_);
    given_.push_back(piece);
    given_changed_.notify_one();
}

std::optional<FileThread::Done> FileThread::take() {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return std::nullopt;
    std::optional<Done> oldest(std::move(done_.front()));
    done_.pop_front();
    eventfd_t count = 0;
    if (done_.empty()) eventfd_read(done_event_.get(), &count);
    return oldest;
}

void FileThread::put_done(Done done) {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) eventfd_write(done_event_.get(), 1);
    done_.push_back(std::move(done));
}

std::optional<std::span<std::byte>> FileThread::next_piece(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!given_changed_.wait(lock, stop, [this] { return !given_.empty(); })) return std::nullopt;
    if (stop.stop_requested()) return std::nullopt;
    const std::span<std::byte> piece = given_.front();
    given_.pop_front();
    return piece;
}

void FileThread::run(const std::stop_token& stop) {
    bool last = false;
    while (!last) {
        const auto piece = next_piece(stop);
        if (!piece) break;
        Done done{*piece, work_(*piece, stop)};
        last = !done.bytes || *done.bytes < piece->size();
        put_done(std::move(done));
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ended_changed_.notify_one();
}

// A signal that arrives just before the thread blocks would be lost, so it is sent
// until ended_ is set; until then the thread exists.
void FileThread::stop() {
    thread_.request_stop();
    std::unique_lock lock(mutex_);
    while (!ended_) {
        pthread_kill(thread_.native_handle(), wake_signal);
        ended_changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
}

} // namespace kxfer::cli
