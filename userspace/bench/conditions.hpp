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
    // use; empty: /proc/stat does not tell.
    std::optional<double> steal;
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
