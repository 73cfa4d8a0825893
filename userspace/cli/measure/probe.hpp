// SPDX-License-Identifier: MIT
//
// READs of the peer's @ping, which each listener offers, so many in flight as wanted; the bytes that
// they bring are compared. They need no export and no program at the peer.
#pragma once

#include <vector>

#include "cli/line/connect.hpp"
#include "cli/measure/tuning.hpp"
#include "cli/node/file.hpp"

namespace kxfer::cli {

class Probe {
  public:
    static tl::expected<Probe, Failure> open(const Peer& peer, const CommonOptions& common);

    // Reads until the time is over, and some of them at least; size: KXFER_PING_SIZE at most.
    // A depth for which there is too little memory is lowered.
    tl::expected<Load, Failure> read(uint64_t size, unsigned depth, std::chrono::nanoseconds time);

    // Bytes of local memory: so many can be in flight.
    uint64_t room() const { return memory_.bytes().size(); }
    tl::expected<kxfer_info_link, Failure> link() const;

  private:
    Probe(Remote remote, const CommonOptions& common, Connection connection, Memory memory, Region region,
          Target target)
        : remote_(std::move(remote)), common_(common), connection_(std::move(connection)),
          memory_(std::move(memory)), region_(std::move(region)), target_(std::move(target)) {}
    Job job(uint64_t size, uint64_t slot) const;
    Failure failure(Error error) const { return target_failure(std::move(error), remote_, common_); }

    Remote remote_;
    CommonOptions common_;
    // Destroyed from the last to the first.
    Connection connection_;
    Memory memory_;
    Region region_;
    Target target_;
};

} // namespace kxfer::cli
