// SPDX-License-Identifier: MIT
//
// What a thread that takes messages does about a RECV that failed: it goes on, for a message that
// could not be brought (ENOMEM, EIO) is none of the next one's, but slowly, and not for ever.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

namespace kxfer::bench {

class Endurance {
  public:
    // Of a RECV, or of handing it in; may sleep. False: there will be no other.
    bool survives(int number) {
        constexpr unsigned most = 500; // in a row, with a pause behind each
        // The mailbox has ended, or it is not known any more.
        const bool over = number == EKEYREVOKED || number == ECANCELED || number == ENOENT || number == EBADF;

        if (!over && (number == EINTR || ++failures_ <= most)) {
            if (number != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            return true;
        }
        ended_ = number;
        return false;
    }
    void worked() { failures_ = 0; }
    // Any thread may ask: 0, or the errno that it ended by.
    int ended() const { return ended_; }

  private:
    unsigned failures_ = 0;
    std::atomic<int> ended_{0};
};

} // namespace kxfer::bench
