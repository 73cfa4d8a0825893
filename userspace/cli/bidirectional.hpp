// SPDX-License-Identifier: MIT
//
// What `kxfer bench` has to do with the peer's process: both directions at once, and its CPU time.
#pragma once

#include <memory>
#include <optional>

#include "bench/requester.hpp"
#include "bench/run.hpp"
#include "cli/rig.hpp"

namespace kxfer::cli {

// Why the workload cannot go both ways; nothing: it can.
std::optional<Error> find_one_way(const RigOptions& options, const bench::Workload& workload);

// Adds to the plan what the peer is asked, which has to outlive it; of both directions the other's
// result is to be had by finish() behind the run. Nothing if the peer is not to be asked.
tl::expected<std::unique_ptr<bench::Requester>, Failure> involve_peer(const RigOptions& options,
                                                                      const Rig& rig,
                                                                      const bench::Workload& workload,
                                                                      bench::RunPlan& plan);

} // namespace kxfer::cli
