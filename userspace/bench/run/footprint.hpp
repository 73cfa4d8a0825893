// SPDX-License-Identifier: MIT
//
// What a measured part used besides the thread that measured: CPU time of the whole node, as
// that of kernel threads and softirqs belongs to no process; CPU time of the process at the other
// end, if it can be asked or runs on this node; and the changes of the device's counters.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <tl/expected.hpp>

namespace kxfer::bench {

// Usage of a process with all its threads.
struct ProcessUsage {
    double cpu_ns = 0;
    uint64_t switches = 0; // context switches; those of a thread that has ended are lost
};

// What to observe.
struct Surroundings {
    std::string device;
    uint32_t device_index = 0;
    uint32_t port = 0;   // 0: the device's counters are not read
    pid_t peer = 0;      // process at the other end; 0: it cannot be observed
    std::string no_peer; // why it cannot be observed
    // Usage of a process of another node, since it began; empty: it cannot be asked.
    std::function<std::optional<ProcessUsage>()> ask_peer = {};
};

struct DeviceCounter {
    std::string name;
    int64_t change = 0;

    bool operator==(const DeviceCounter&) const = default;
};

// Usage of all CPUs; the kernel counts ticks.
struct NodeUsage {
    double busy_ns = 0;    // neither idle nor waiting for storage; with softirqs, without steal
    double softirq_ns = 0; // the part of it in softirqs
};

struct Footprint {
    std::optional<NodeUsage> node;
    std::optional<ProcessUsage> peer;
    std::string no_peer;                 // why `peer` is empty
    std::vector<DeviceCounter> counters; // counters that changed, by name
    std::string no_counters;             // why no counters were read
};

// Usage since the node started; from the text of /proc/stat, with ticks of that length.
std::optional<NodeUsage> parse_node_usage(const std::string& stat, double tick_ns);
// Usage since the process started. Empty: it has ended.
std::optional<ProcessUsage> usage_of(pid_t process);

// Watches from its construction to finish().
class FootprintWatch {
  public:
    explicit FootprintWatch(const Surroundings& surroundings);
    Footprint finish() const;

  private:
    using Counters = std::map<std::string, uint64_t>;

    tl::expected<Counters, std::string> read_counters() const;
    std::vector<DeviceCounter> find_changes(const Counters& after) const;

    const Surroundings& surroundings_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    tl::expected<Counters, std::string> counters_; // or why they were not read
    std::optional<ProcessUsage> peer_;
    std::optional<NodeUsage> node_;
};

} // namespace kxfer::bench
