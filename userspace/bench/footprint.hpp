// SPDX-License-Identifier: MIT
//
// What a measured part took beside the thread that measured: CPU time of all of the node,
// of which that of kernel threads and softirqs is in no process; CPU time of the process
// at the other end, if it is one of this node; and what the device counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <tl/expected.hpp>

namespace kxfer::bench {

// Of a process with all its threads.
struct ProcessUsage {
    double cpu_ns = 0;
    uint64_t switches = 0; // of context; those of a thread that has ended are lost
};

// Where to look.
struct Surroundings {
    std::string device;
    uint32_t device_index = 0;
    uint32_t port = 0;   // 0: the device's counters are not read
    pid_t peer = 0;      // 0: it cannot be looked at
    std::string no_peer; // why
    // Of a process of another node, since it began; empty: nobody tells.
    std::function<std::optional<ProcessUsage>()> ask_peer = {};
};

struct DeviceCounter {
    std::string name;
    int64_t change = 0;

    bool operator==(const DeviceCounter&) const = default;
};

// Of all CPUs; the kernel counts ticks.
struct NodeUsage {
    double busy_ns = 0;    // neither idle nor waiting for storage; with softirqs, without steal
    double softirq_ns = 0; // of these
};

struct Footprint {
    std::optional<NodeUsage> node;
    std::optional<ProcessUsage> peer;
    std::string no_peer;                 // why there is none
    std::vector<DeviceCounter> counters; // that changed, by name
    std::string no_counters;             // why none were read
};

// Since the node started; of the text of /proc/stat, with ticks of that length.
std::optional<NodeUsage> parse_node_usage(const std::string& stat, double tick_ns);
// Since the process started. Empty: it is gone.
std::optional<ProcessUsage> usage_of(pid_t process);

// From when it is made to finish().
class FootprintWatch {
  public:
    explicit FootprintWatch(const Surroundings& surroundings);
    Footprint finish() const;

  private:
    using Counters = std::map<std::string, uint64_t>;

    tl::expected<Counters, std::string> read_counters() const;
    std::vector<DeviceCounter> find_changes(const Counters& after) const;

    const Surroundings& surroundings_;
    tl::expected<Counters, std::string> counters_; // else why not
    std::optional<ProcessUsage> peer_;
    std::optional<NodeUsage> node_;
};

} // namespace kxfer::bench
