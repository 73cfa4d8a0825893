// SPDX-License-Identifier: MIT
//
// A connection of engine kverbs with the responder of engine verbs, for one workload: of messages,
// or when a dedicated connection was asked for. The module asks the responder for the same receives
// and memory as engine verbs does, and learns their addresses itself. READs and WRITEs of the
// workload use this connection, too.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <kxfer/kxfer.hpp>

#include "bench/engines/kernel_path.hpp"
#include "engine/engine.hpp"

namespace kxfer::bench {

class DedicatedPath {
  public:
    // responder: an address where `kxfer serve --verbs` answers. Tries again for a second
    // while the responder has not yet ended the previous connection.
    static tl::expected<DedicatedPath, Error> open(KernelPath& path, const kxfer_addr& responder,
                                                   const Workload& workload);

    uint32_t id() const { return connection_.id(); }
    bool has_messages() const { return messages_; }
    const Connection& connection() const { return path_; }
    // Waits until the responder has all messages; with UD, until no more arrive.
    // EBADMSG: the responder got other messages than were sent.
    tl::expected<void, Error> settle(std::chrono::milliseconds timeout);
    // Losses, as of the last settle(); empty: RC.
    std::optional<Losses> losses() const { return losses_; }

  private:
    DedicatedPath(Dedicated connection, Connection path, std::string peer, bool messages, bool ud)
        : connection_(std::move(connection)), path_(std::move(path)), peer_(std::move(peer)),
          messages_(messages) {
        if (ud) losses_ = Losses();
    }

    Dedicated connection_;
    Connection path_;
    std::string peer_;
    bool messages_;
    std::optional<Losses> losses_;
};

} // namespace kxfer::bench
