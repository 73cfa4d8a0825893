// SPDX-License-Identifier: MIT
//
// The part of the peer's process in `kxfer bench`: both directions at once, and its CPU time.
#pragma once

#include <memory>
#include <optional>

#include "bench/peer/requester.hpp"
#include "bench/run/run.hpp"
#include "cli/measure/rig.hpp"

namespace kxfer::cli {

// Why the workload cannot go both ways; empty: it can.
std::optional<Error> find_one_way(const RigOptions& options, const bench::Workload& workload);

// Adds the requests to the peer to the plan; the requester has to outlive the plan. With both
// directions, finish() returns the peer's result after the run. Null if the peer is not asked.
tl::expected<std::unique_ptr<bench::Requester>, Failure> involve_peer(const RigOptions& options,
                                                                      const Rig& rig,
                                                                      const bench::Workload& workload,
                                                                      bench::RunPlan& plan);

} // namespace kxfer::cli
