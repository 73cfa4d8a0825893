// SPDX-License-Identifier: MIT
//
// The engines of a sweep: each way of its grid is a connection, and all of them share
// the memory at both ends. They are connected once for all works with the same signalling.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/stats/sweep_result.hpp"
#include "cli/measure/rig.hpp"

namespace kxfer::cli {

class SweepRig {
  public:
    // works: the works to measure. Forks, as set_up() of cli/rig does.
    static tl::expected<SweepRig, Failure> set_up(const RigOptions& options, const bench::Grid& grid,
                                                  const std::vector<bench::Task>& works);

    // Connects the engines for that signalling, unless they already are; disconnects those of another.
    // If kverbs cannot be measured it is left out, and its ways are refused.
    tl::expected<void, Failure> connect(const std::string& signal);
    // Measures all cells of the work; engines must be connected for its signalling. The row lists a
    // way that cannot do the work as refused.
    tl::expected<bench::SweepRow, Failure> measure(const bench::Task& work, const bench::SweepPlan& plan);

    // Parameters of the first engine; all have the same device and GID type. Needs a connected engine.
    bench::Parameters parameters() const;
    std::string peer_text() const { return rig_.peer_text(options_); }
    std::optional<bench::PeerNode> peer_node() const { return find_peer_node(options_, rig_); }

  private:
    struct Contestant {
        bench::Way way;
        std::unique_ptr<bench::Engine> engine; // named after the way
    };

    SweepRig(RigOptions options, bench::Grid grid) : options_(std::move(options)), grid_(std::move(grid)) {}
    tl::expected<void, Failure> add(const RigOptions& options);
    RigOptions options_of(const bench::Way& way) const;
    tl::expected<std::vector<bench::Engine*>, Failure> able(const bench::Workload& workload,
                                                            bench::SweepRow& row) const;

    RigOptions options_;
    bench::Grid grid_;
    unsigned depth_ = 1; // greatest depth of all works
    std::string no_floor_;
    Rig rig_; // has engines only during add()
    std::vector<Contestant> contestants_;
};

} // namespace kxfer::cli
