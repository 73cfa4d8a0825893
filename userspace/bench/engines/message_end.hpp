// SPDX-License-Identifier: MIT
//
// One end of round trips by messages: its own mailbox, two places for incoming messages, used in turn,
// and the mailbox of the other end. A RECV is submitted before the message it takes can be sent, so no
// message waits for one.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "bench/engines/kernel_path.hpp"

namespace kxfer::bench {

class MessageEnd {
  public:
    // Offers a mailbox for the export NAME, in the path's session. rules: peers that may send; none:
    // all peers. The path has to outlive the object.
    static tl::expected<std::unique_ptr<MessageEnd>, Error>
    offer(KernelPath& path, const std::string& name, uint64_t size, std::span<const kxfer_rule> rules);
    // Opens the mailbox of the other end's export. EOPNOTSUPP: it takes only shorter messages.
    tl::expected<void, Error> open(const std::string& name);

    // Jobs for message n, from 0 on.
    Job recv(uint64_t n) const;
    Job send(const Region& region, uint64_t offset) const;
    // Sends back message n, which has arrived.
    Job echo(uint64_t n) const;
    // The payload of message n; shorter if another peer has sent it.
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
