// SPDX-License-Identifier: MIT
#include "libfabric/wait.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include <kxfer/kxfer.h>
#include <rdma/fi_errno.h>

namespace kxfer::fi {

Wait::~Wait() {
    if (epoll_ >= 0) close(epoll_);
    if (event_ >= 0) close(event_);
}

int Wait::watch(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void Wait::forget(int fd) const { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

int Wait::open(fi_wait_obj kind, int session_fd, int timer_fd) {
    if (kind == FI_WAIT_NONE) return 0;
    if (kind != FI_WAIT_UNSPEC && kind != FI_WAIT_FD) return -FI_ENOSYS;
    kind_ = FI_WAIT_FD;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return -errno;
    event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_ < 0) return -errno;
    int ret = watch(event_);
    if (ret == 0 && session_fd >= 0) ret = watch(session_fd);
    if (ret == 0 && timer_fd >= 0) ret = watch(timer_fd);
    return ret;
}

void Wait::arm() {
    eventfd_t dropped;
    if (event_ < 0) return;
    eventfd_read(event_, &dropped);
    armed_ = true;
}

void Wait::wake() {
    if (!armed_) return;
    armed_ = false;
    eventfd_write(event_, 1);
}

void Wait::sleep(int timeout_ms) const {
    pollfd wanted{epoll_, POLLIN, 0};
    poll(&wanted, 1, timeout_ms);
}

int Wait::control(int command, void* argument) const {
    switch (command) {
    case FI_GETWAIT:
        if (!is_open()) return -FI_ENODATA;
        *static_cast<int*>(argument) = epoll_;
        return 0;
    case FI_GETWAITOBJ:
        *static_cast<fi_wait_obj*>(argument) = kind_;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

Patience::Patience(int timeout_ms)
    : end_ns_(timeout_ms < 0 ? UINT64_MAX : kxfer_clock_ns() + static_cast<uint64_t>(timeout_ms) * 1000000) {}

bool Patience::is_over() const { return end_ns_ != UINT64_MAX && kxfer_clock_ns() >= end_ns_; }

int Patience::left_ms() const {
    if (end_ns_ == UINT64_MAX) return -1;
    uint64_t now = kxfer_clock_ns();
    return now >= end_ns_ ? 1 : static_cast<int>((end_ns_ - now) / 1000000 + 1);
}

} // namespace kxfer::fi
