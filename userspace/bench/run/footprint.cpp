// SPDX-License-Identifier: MIT
//
// Counters come from netlink, and those that only a port's folder `counters` has (InfiniBand's
// own, such as port_xmit_data) from there. The CPU time of another process comes from
// its CPU clock, exact to the nanosecond, while /proc/PID/stat has ticks.

#include "bench/run/footprint.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "netlink/rdma.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

namespace fs = std::filesystem;

double tick_ns() { return 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK)); }

std::optional<NodeUsage> node_usage_now() {
    std::ifstream file("/proc/stat");
    return parse_node_usage({std::istreambuf_iterator<char>(file), {}}, tick_ns());
}

// Voluntary and involuntary context switches of a thread.
uint64_t switches_in(const fs::path& status) {
    std::ifstream file(status);
    uint64_t switches = 0;

    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(':');
        if (colon != std::string::npos && line.substr(0, colon).ends_with("voluntary_ctxt_switches"))
            switches += std::stoull(line.substr(colon + 1));
    }
    return switches;
}

std::optional<ProcessUsage> difference(const std::optional<ProcessUsage>& after,
                                       const std::optional<ProcessUsage>& before) {
    if (!after || !before) return std::nullopt;
    return ProcessUsage{after->cpu_ns - before->cpu_ns,
                        after->switches - std::min(after->switches, before->switches)};
}

// What another node says is bounded: its process may have used all CPUs of the largest machine.
constexpr double most_cpus = 8192;

bool can_be(const ProcessUsage& usage, std::chrono::nanoseconds elapsed) {
    return usage.cpu_ns >= 0 && usage.cpu_ns <= most_cpus * static_cast<double>(elapsed.count());
}

std::optional<ProcessUsage> peer_usage(const Surroundings& where) {
    return where.ask_peer ? where.ask_peer() : usage_of(where.peer);
}

std::optional<NodeUsage> difference(const std::optional<NodeUsage>& after,
                                    const std::optional<NodeUsage>& before) {
    if (!after || !before) return std::nullopt;
    return NodeUsage{after->busy_ns - before->busy_ns, after->softirq_ns - before->softirq_ns};
}

} // namespace

std::optional<NodeUsage> parse_node_usage(const std::string& stat, double tick_ns) {
    std::istringstream words(stat);
    std::string cpu;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;

    // The first line is the sum of all CPUs; user time includes guest time.
    if (!(words >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq) || cpu != "cpu")
        return std::nullopt;
    return NodeUsage{(user + nice + system + irq + softirq) * tick_ns, softirq * tick_ns};
}

std::optional<ProcessUsage> usage_of(pid_t process) {
    ProcessUsage usage;
    clockid_t clock = 0;
    timespec time = {};
    std::error_code error;

    if (process <= 0 || clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return std::nullopt;
    usage.cpu_ns = static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
    fs::directory_iterator thread(fmt::format("/proc/{}/task", process), error);
    for (; !error && thread != fs::directory_iterator(); thread.increment(error))
        usage.switches += switches_in(thread->path() / "status");
    return usage;
}

FootprintWatch::FootprintWatch(const Surroundings& surroundings)
    : surroundings_(surroundings), counters_(read_counters()), peer_(peer_usage(surroundings)),
      node_(node_usage_now()) {}

tl::expected<FootprintWatch::Counters, std::string> FootprintWatch::read_counters() const {
    const auto& where = surroundings_;
    Counters counters;
    std::error_code error;

    if (where.port == 0) return tl::unexpected(std::string("no port whose counters could be read"));
    auto rdma = netlink::Rdma::open();
    if (!rdma) return tl::unexpected(rdma.error().text());
    const auto told = rdma->counters(where.device_index, where.port);
    if (told)
        for (const auto& counter : *told) counters[counter.name] = counter.value;
    fs::directory_iterator file(
        fmt::format("/sys/class/infiniband/{}/ports/{}/counters", where.device, where.port), error);
    for (; !error && file != fs::directory_iterator(); file.increment(error)) {
        uint64_t value = 0;
        if (std::ifstream(file->path()) >> value) counters.emplace(file->path().filename(), value);
    }
    if (!counters.empty()) return counters;
    if (!told && told.error().number != EINVAL) return tl::unexpected(told.error().text());
    return tl::unexpected(fmt::format("the driver of {} keeps no counters", where.device));
}

std::vector<DeviceCounter> FootprintWatch::find_changes(const Counters& after) const {
    std::vector<DeviceCounter> changes;

    for (const auto& [name, value] : after) {
        const auto before = counters_->find(name);
        if (before == counters_->end() || before->second == value) continue;
        changes.push_back({name, static_cast<int64_t>(value - before->second)});
    }
    return changes;
}

Footprint FootprintWatch::finish() const {
    const auto& where = surroundings_;
    Footprint footprint;

    footprint.node = difference(node_usage_now(), node_);
    footprint.peer = difference(peer_usage(where), peer_);
    if (!footprint.peer) footprint.no_peer = where.peer ? "the process of the peer has ended" : where.no_peer;
    if (footprint.peer && where.ask_peer && !can_be(*footprint.peer, Clock::now() - begun_)) {
        footprint.peer.reset();
        footprint.no_peer = "the CPU time that the peer says it used is impossible";
    }
    if (!counters_) {
        footprint.no_counters = counters_.error();
    } else if (const auto after = read_counters(); after) {
        footprint.counters = find_changes(*after);
    } else {
        footprint.no_counters = after.error();
    }
    return footprint;
}

} // namespace kxfer::bench
