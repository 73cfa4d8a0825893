// SPDX-License-Identifier: MIT
//
// The figures of a run that can be asserted, by name: rate, bw (bandwidth), min, mean,
// p50, p90, p99, p99.9, p99.99, max (latency); per operation: cpu (time), syscalls, switches
// (of context), peer_cpu and peer_switches (of the process at the other end), node_cpu (time
// of all CPUs) and node_softirq (of that, in softirqs); of several clients: fairness.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/run/run.hpp"

namespace kxfer::bench {

enum class Kind { time, bandwidth, rate, number }; // ns, bytes/s, 1/s, without a unit

struct Figure {
    std::string name;
    Kind kind = Kind::number;
    std::optional<double> value;
    std::string missing; // why there is no value
};

// In the order of the report.
std::vector<Figure> figures_of(const RunResult& result);
std::optional<Kind> kind_of(std::string_view name);
// "p50, p99, ..." for the message about an unknown name.
std::string figure_names();
// "80 us", "500 MiB/s"
std::string figure_text(Kind kind, double value);

} // namespace kxfer::bench
