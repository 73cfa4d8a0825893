// SPDX-License-Identifier: MIT
//
// Conditions of the machine during a measurement: CPU time that the host gave to other
// guests (steal), and the frequency of the CPU that measured. Either can distort a result,
// which then says little about what was measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kxfer::bench {

struct Conditions {
    // Above these limits nothing is judged.
    static constexpr double max_steal = 0.05;
    static constexpr double max_frequency_change = 0.10;

    // Stolen share of the time, of the CPU that lost most among those that the process may
    // use; empty: /proc/stat does not have it, or the kernel is not told (no_steal).
    std::optional<double> steal;
    // Why steal is not known; empty: it is.
    std::string no_steal;
    // Lowest and highest frequency seen, of the CPU that the thread was on; 0: the
    // kernel does not report frequencies.
    uint64_t min_khz = 0;
    uint64_t max_khz = 0;

    double frequency_change() const;
    // The reason why the result must not be judged; empty: it may be.
    std::string obstacle() const;
};

// Ticks of steal of each CPU, from the text of /proc/stat.
std::map<unsigned, uint64_t> parse_steal(const std::string& stat);

// The hypervisor as CPUID describes it, if the machine has one.
struct Hypervisor {
    std::string signature;    // "KVMKVMKVM", "TCGTCGTCGTCG" ...
    bool tells_steal = false; // KVM: reports steal; others have no such bit
};

// Empty: no hypervisor, so no time is stolen from this machine.
std::optional<Hypervisor> find_hypervisor();

// Why the kernel cannot know the steal, and reports 0 for every CPU; empty: it can.
std::string why_no_steal(const std::optional<Hypervisor>& hypervisor, const std::string& machine,
                         const std::map<unsigned, uint64_t>& steal);

// The thread that measures creates a watch, calls sample() from time to time, and then finish().
class ConditionsWatch {
  public:
    ConditionsWatch();
    // Reads one small file, if the kernel reports frequencies at all.
    void sample();
    Conditions finish();

  private:
    std::chrono::steady_clock::time_point start_;
    std::map<unsigned, uint64_t> steal_;
    Conditions conditions_;
    bool has_frequencies_;
};

} // namespace kxfer::bench
