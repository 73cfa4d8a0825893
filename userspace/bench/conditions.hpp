// SPDX-License-Identifier: MIT
//
// What happened to the machine while something was measured: CPU time that the host
// gave to others (steal), and the frequency of the CPU that measured. Either makes
// a result one of the moment, not of what was measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kxfer::bench {

struct Conditions {
    // More than that, and nothing is judged.
    static constexpr double max_steal = 0.05;
    static constexpr double max_frequency_change = 0.10;

    // Share of the time, of the CPU that lost most among those that the process may
    // use; empty: /proc/stat does not tell, or nothing tells the kernel (no_steal).
    std::optional<double> steal;
    // Why it is not known; empty: it is.
    std::string no_steal;
    // Lowest and highest that were seen, of the CPU that the thread was on; 0: the
    // kernel does not tell.
    uint64_t min_khz = 0;
    uint64_t max_khz = 0;

    double frequency_change() const;
    // Why the result must not be judged; empty: it may.
    std::string obstacle() const;
};

// Ticks of steal of each CPU, of the text of /proc/stat.
std::map<unsigned, uint64_t> parse_steal(const std::string& stat);

// What a hypervisor says of itself by CPUID, of a machine that has one.
struct Hypervisor {
    std::string signature;    // "KVMKVMKVM", "TCGTCGTCGTCG" ...
    bool tells_steal = false; // KVM: that it does; others cannot say
};

// Empty: no hypervisor, so that nothing is taken from this machine.
std::optional<Hypervisor> find_hypervisor();

// Why the kernel cannot know what the host takes, and says 0 of every CPU; empty: it can.
std::string why_no_steal(const std::optional<Hypervisor>& hypervisor, const std::string& machine,
                         const std::map<unsigned, uint64_t>& steal);

// The thread that measures makes it, samples now and then, and takes what came out.
class ConditionsWatch {
  public:
    ConditionsWatch();
    // One small file, if the kernel tells frequencies at all.
    void sample();
    Conditions finish();

  private:
    std::chrono::steady_clock::time_point start_;
    std::map<unsigned, uint64_t> steal_;
    Conditions conditions_;
    bool has_frequencies_;
};

} // namespace kxfer::bench
