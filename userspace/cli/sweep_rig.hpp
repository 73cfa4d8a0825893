// SPDX-License-Identifier: MIT
//
// The engines of a sweep: each way of its grid is a connection, and all of them share
// the memory at both ends. They are connected once for all works of a signalling.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/sweep_result.hpp"
#include "cli/rig.hpp"

namespace kxfer::cli {

class SweepRig {
  public:
    // For those works. Forks, as set_up() of cli/rig does.
    static tl::expected<SweepRig, Failure> set_up(const RigOptions& options, const bench::Grid& grid,
                                                  const std::vector<bench::Task>& works);

    // Unless it is the signalling of the connections there are; else these are disconnected. kverbs
    // is left out and refused where it cannot be measured.
    tl::expected<void, Failure> connect(const std::string& signal);
    // All cells of the work. The work's signalling is the one connected for. A way that cannot
    // do it is refused in the row.
    tl::expected<bench::SweepRow, Failure> measure(const bench::Task& work, const bench::SweepPlan& plan);

    // Of the first engine, whose device and GID type the others have too; something has to be connected.
    bench::Parameters parameters() const;
    std::string peer_text() const { return rig_.peer_text(options_); }
    std::optional<bench::PeerNode> peer_node() const { return find_peer_node(options_, rig_); }

  private:
    struct Contestant {
        bench::Way way;
        std::unique_ptr<bench::Engine> engine; // its name is the way's
    };

    SweepRig(RigOptions options, bench::Grid grid) : options_(std::move(options)), grid_(std::move(grid)) {}
    tl::expected<void, Failure> add(const RigOptions& options);
    RigOptions options_of(const bench::Way& way) const;
    tl::expected<std::vector<bench::Engine*>, Failure> able(const bench::Workload& workload,
                                                            bench::SweepRow& row) const;

    RigOptions options_;
    bench::Grid grid_;
    unsigned depth_ = 1; // the deepest
    std::string no_floor_;
    Rig rig_; // its engines are those of one add() only
    std::vector<Contestant> contestants_;
};

} // namespace kxfer::cli
