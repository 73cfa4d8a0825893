// SPDX-License-Identifier: MIT
//
// One end of round trips by messages: a mailbox of its own, two places for what comes into it, in turn,
// and the mailbox of the other end. A RECV is handed in before the message that it takes is asked for,
// so that no message waits for one.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "bench/kernel_path.hpp"

namespace kxfer::bench {

class MessageEnd {
  public:
    // Offers a mailbox beside the export NAME, whose session is that of the path. Whom the rules match
    // may send; none: everybody. The path has to outlive it.
    static tl::expected<std::unique_ptr<MessageEnd>, Error>
    offer(KernelPath& path, const std::string& name, uint64_t size, std::span<const kxfer_rule> rules);
    // The mailbox beside the other end's export. EOPNOTSUPP: its messages are shorter.
    tl::expected<void, Error> open(const std::string& name);

    // For message n, from 0 on.
    Job recv(uint64_t n) const;
    Job send(const Region& region, uint64_t offset) const;
    // Sends message n, which has come, back.
    Job echo(uint64_t n) const;
    // What came; shorter if another has sent it.
    std::span<std::byte> payload(uint64_t n) const;

  private:
    MessageEnd(KernelPath& path, Memory memory, uint64_t size)
        : path_(path), memory_(std::move(memory)), size_(size) {}
    static uint64_t place_bytes(uint64_t size);
    uint64_t place(uint64_t n) const { return n % 2 * place_bytes(size_); }

    KernelPath& path_;
    Memory memory_;
    uint64_t size_;
    // Destroyed from the last to the first.
    Region region_;
    Mailbox mailbox_;
    Target other_;
};

} // namespace kxfer::bench
