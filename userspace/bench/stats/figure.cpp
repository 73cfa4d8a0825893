// SPDX-License-Identifier: MIT
#include "bench/stats/figure.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/stats/statistics.hpp"

namespace kxfer::bench {

namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 18> kinds = {{
    {"rate", Kind::rate},
    {"bw", Kind::bandwidth},
    {"min", Kind::time},
    {"mean", Kind::time},
    {"p50", Kind::time},
    {"p90", Kind::time},
    {"p99", Kind::time},
    {"p99.9", Kind::time},
    {"p99.99", Kind::time},
    {"max", Kind::time},
    {"cpu", Kind::time},
    {"syscalls", Kind::number},
    {"switches", Kind::number},
    {"peer_cpu", Kind::time},
    {"peer_switches", Kind::number},
    {"node_cpu", Kind::time},
    {"node_softirq", Kind::time},
    {"fairness", Kind::number},
}};

Figure latency(const RunResult& result, std::string name, double value) {
    if (result.latencies.count() == 0)
        return {std::move(name), Kind::time, {}, result.untimed.empty() ? "no operations" : result.untimed};
    return {std::move(name), Kind::time, value, {}};
}

Figure percentile(const RunResult& result, const char* name, double percent) {
    const auto& latencies = result.latencies;

    if (latencies.count() && !latencies.supports(percent))
        return {name,
                Kind::time,
                {},
                fmt::format("{} takes {} operations, there were {}", name, Histogram::needed(percent),
                            latencies.count())};
    return latency(result, name, static_cast<double>(latencies.percentile(percent)));
}

Figure an_operation(const RunResult& result, const char* name, Kind kind, double all) {
    if (result.operations == 0) return {name, kind, {}, "no operations"};
    return {name, kind, all / static_cast<double>(result.operations), {}};
}

double fairness_of(const RunResult& result) {
    std::vector<double> rates;

    for (const auto& client : result.clients) rates.push_back(client.operations_per_second());
    return fairness_index(rates);
}

constexpr char no_stat[] = "/proc/stat does not tell the CPUs' time";

void add_footprint(const RunResult& result, std::vector<Figure>& figures) {
    const auto& [node, peer, no_peer, counters, no_counters] = result.footprint;
    const auto add = [&](const char* name, Kind kind, const std::optional<double>& all, std::string missing) {
        figures.push_back(all ? an_operation(result, name, kind, *all)
                              : Figure{name, kind, {}, std::move(missing)});
    };

    add("peer_cpu", Kind::time, peer ? std::optional(peer->cpu_ns) : std::nullopt, no_peer);
    add("peer_switches", Kind::number,
        peer ? std::optional(static_cast<double>(peer->switches)) : std::nullopt, no_peer);
    add("node_cpu", Kind::time, node ? std::optional(node->busy_ns) : std::nullopt, no_stat);
    add("node_softirq", Kind::time, node ? std::optional(node->softirq_ns) : std::nullopt, no_stat);
}

// At most four significant digits.
std::string with_prefix(double value, double step, std::span<const char* const> units) {
    size_t i = 0;

    while (value >= step && i + 1 < units.size()) {
        value /= step;
        i++;
    }
    return fmt::format("{:.4g} {}", value, units[i]);
}

} // namespace

std::vector<Figure> figures_of(const RunResult& result) {
    const auto& latencies = result.latencies;
    std::vector<Figure> figures = {
        {"rate", Kind::rate, result.operations_per_second(), {}},
        {"bw", Kind::bandwidth, result.bytes_per_second(), {}},
        latency(result, "min", static_cast<double>(latencies.min())),
        latency(result, "mean", latencies.mean()),
        percentile(result, "p50", 50),
        percentile(result, "p90", 90),
        percentile(result, "p99", 99),
        percentile(result, "p99.9", 99.9),
        percentile(result, "p99.99", 99.99),
        latency(result, "max", static_cast<double>(latencies.max())),
        an_operation(result, "cpu", Kind::time, result.usage.cpu_ns()),
        {"syscalls", Kind::number, result.syscalls, result.uncounted},
        an_operation(result, "switches", Kind::number, static_cast<double>(result.usage.switches())),
    };
    add_footprint(result, figures);
    if (!result.clients.empty()) figures.push_back({"fairness", Kind::number, fairness_of(result), {}});
    return figures;
}

std::optional<Kind> kind_of(std::string_view name) {
    for (const auto& [known, kind] : kinds)
        if (known == name) return kind;
    return std::nullopt;
}

std::string figure_names() {
    std::vector<std::string_view> names;

    for (const auto& [name, kind] : kinds) names.push_back(name);
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string figure_text(Kind kind, double value) {
    static constexpr std::array times{"ns", "us", "ms", "s"};
    static constexpr std::array sizes{"B/s", "KiB/s", "MiB/s", "GiB/s"};

    switch (kind) {
    case Kind::time:
        return with_prefix(value, 1000, times);
    case Kind::bandwidth:
        return with_prefix(value, 1024, sizes);
    case Kind::rate:
        return fmt::format("{:.0f}/s", value);
    default:
        return fmt::format("{:.4g}", value);
    }
}

} // namespace kxfer::bench
