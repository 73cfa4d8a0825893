// SPDX-License-Identifier: MIT
//
// The descriptor that a queue or a counter is waited for by: an epoll(7) of the session's descriptor
// (completions to take), of the domain's timer, and of an eventfd of its own. The last one is needed
// because a thread that looks after one queue may take the completions of another, on which a second
// thread sleeps.
//
// The order: with the lock held the waiter finds nothing and calls arm(); then it sleeps without the
// lock. wake() is called with the lock held, and signals only a queue that is armed.
#pragma once

#include <rdma/fi_eq.h>

namespace kxfer::fi {

class Wait {
  public:
    ~Wait();

    // Of a queue without a domain the two descriptors are -1. -FI_ENOSYS: this kind is not there.
    int open(fi_wait_obj kind, int session_fd, int timer_fd);

    bool is_open() const { return epoll_ >= 0; }
    void arm();
    void wake();

    // Another descriptor to wait for, or one not any more.
    int watch(int fd) const;
    void forget(int fd) const;

    // Sleeps until there may be something, or so many milliseconds have passed; -1: no end.
    void sleep(int timeout_ms) const;

    // FI_GETWAIT, FI_GETWAITOBJ.
    int control(int command, void* argument) const;

  private:
    int epoll_ = -1;
    int event_ = -1;
    bool armed_ = false;
    fi_wait_obj kind_ = FI_WAIT_NONE;
};

// The end of a call with a timeout in milliseconds, negative: none.
class Patience {
  public:
    explicit Patience(int timeout_ms);
    bool is_over() const;
    // What is left, at least 1 while it is not over; -1: no end.
    int left_ms() const;

  private:
    uint64_t end_ns_;
};

} // namespace kxfer::fi
