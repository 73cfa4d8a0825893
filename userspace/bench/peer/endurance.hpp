// SPDX-License-Identifier: MIT
//
// Whether a thread that takes messages goes on after a failed RECV. It does, because a message that
// could not be delivered (ENOMEM, EIO) does not affect the next one; but slowly, and not for ever.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

namespace kxfer::bench {

class Endurance {
  public:
    // number: errno of a RECV, or of submitting it. May sleep. False: give up.
    bool survives(int number) {
        constexpr unsigned most = 500; // failures in a row, with a pause after each
        // The mailbox has ended, or is not known any more.
        const bool over = number == EKEYREVOKED || number == ECANCELED || number == ENOENT || number == EBADF;

        if (!over && (number == EINTR || ++failures_ <= most)) {
            if (number != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            return true;
        }
        ended_ = number;
        return false;
    }
    void worked() { failures_ = 0; }
    // 0, or the errno of the failure that ended the thread. Any thread may ask.
    int ended() const { return ended_; }

  private:
    unsigned failures_ = 0;
    std::atomic<int> ended_{0};
};

} // namespace kxfer::bench
