// SPDX-License-Identifier: MIT
//
// Round trips with an initiator on another node: memory and an export for that one initiator, and the
// partner that answers (ping_pong.hpp). All of these end with the object.
#pragma once

#include <memory>

#include <kxfer/kxfer.hpp>

#include "bench/engines/ping_pong.hpp"

namespace kxfer::bench {

class Pong {
  public:
    static tl::expected<std::unique_ptr<Pong>, Error> offer(const PartnerOptions& options);

    // Whether the partner has ended by itself, and answers no more; and why.
    bool ended() const { return partner_->ended(); }
    const Error& error() const { return partner_->error(); }

  private:
    Pong(Memory memory, Session session) : memory_(std::move(memory)), session_(std::move(session)) {}

    // Destroyed from the last to the first.
    Memory memory_;
    Session session_;
    Region region_;
    Export exported_;
    std::unique_ptr<Partner> partner_;
};

} // namespace kxfer::bench
