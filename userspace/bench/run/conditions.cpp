// SPDX-License-Identifier: MIT
#include "bench/run/conditions.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "bench/run/environment.hpp"

namespace kxfer::bench {

namespace {

std::map<unsigned, uint64_t> read_steal() {
    std::ifstream file("/proc/stat");
    return parse_steal({std::istreambuf_iterator<char>(file), {}});
}

uint64_t frequency_khz() {
    const std::string path =
        fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", sched_getcpu());
    std::ifstream file(path);
    uint64_t khz = 0;

    return file >> khz ? khz : 0;
}

} // namespace

std::optional<Hypervisor> find_hypervisor() {
#if defined(__x86_64__) || defined(__i386__)
    constexpr unsigned leaf = 0x40000000, kvm_feature_steal_time = 1U << 5;
    unsigned a = 0, b = 0, c = 0, d = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1U << 31))) return std::nullopt;
    __cpuid(leaf, a, b, c, d);
    Hypervisor found;
    for (const unsigned word : {b, c, d})
        for (unsigned i = 0; i < 4; i++)
            if (const char letter = static_cast<char>(word >> (8 * i) & 0xff)) found.signature += letter;
    const unsigned highest = a;
    if (found.signature == "KVMKVMKVM" && highest >= leaf + 1) {
        __cpuid(leaf + 1, a, b, c, d);
        found.tells_steal = (a & kvm_feature_steal_time) != 0;
    }
    return found;
#else
    return Hypervisor{};
#endif
}

std::string why_no_steal(const std::optional<Hypervisor>& hypervisor, const std::string& machine,
                         const std::map<unsigned, uint64_t>& steal) {
    const auto ticked = [](const auto& cpu) { return cpu.second != 0; };

    if (steal.empty()) return "/proc/stat does not tell it";
    // A kernel that has counted steal before knows it.
    if (std::any_of(steal.begin(), steal.end(), ticked)) return {};
    if (machine == "User-mode Linux") return "User-mode Linux is not told";
    if (!hypervisor || hypervisor->tells_steal || hypervisor->signature == "XenVMMXenVMM") return {};
    return fmt::format("this machine's hypervisor ({}) does not tell it",
                       hypervisor->signature.empty() ? "unknown" : hypervisor->signature);
}

double Conditions::frequency_change() const {
    return min_khz ? static_cast<double>(max_khz - min_khz) / static_cast<double>(max_khz) : 0;
}

std::string Conditions::obstacle() const {
    if (steal && *steal > max_steal)
        return fmt::format("the host took {:.1f} % of a CPU's time (more than {:.0f} %)", *steal * 100,
                           max_steal * 100);
    if (frequency_change() > max_frequency_change)
        return fmt::format("the CPU's frequency went from {} to {} MHz (more than {:.0f} %)", min_khz / 1000,
                           max_khz / 1000, max_frequency_change * 100);
    return {};
}

std::map<unsigned, uint64_t> parse_steal(const std::string& stat) {
    std::map<unsigned, uint64_t> steal;
    std::istringstream lines(stat);

    for (std::string line; std::getline(lines, line);) {
        // cpuN user nice system idle iowait irq softirq steal ...; the line "cpu" is the sum.
        if (!line.starts_with("cpu") || line.size() < 4 || line[3] < '0' || line[3] > '9') continue;
        std::istringstream words(line.substr(3));
        unsigned cpu = 0;
        uint64_t ticks = 0;

        words >> cpu;
        for (int i = 0; i < 8; i++) words >> ticks;
        if (words) steal[cpu] = ticks;
    }
    return steal;
}

ConditionsWatch::ConditionsWatch()
    : start_(std::chrono::steady_clock::now()), steal_(read_steal()), has_frequencies_(true) {
    sample();
    has_frequencies_ = conditions_.min_khz != 0;
}

void ConditionsWatch::sample() {
    const uint64_t khz = has_frequencies_ ? frequency_khz() : 0;

    if (khz == 0) return;
    conditions_.min_khz = conditions_.min_khz ? std::min(conditions_.min_khz, khz) : khz;
    conditions_.max_khz = std::max(conditions_.max_khz, khz);
}

Conditions ConditionsWatch::finish() {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const double ticks = elapsed.count() * static_cast<double>(sysconf(_SC_CLK_TCK));
    const auto allowed = allowed_cpus();
    const auto ended = read_steal();

    sample();
    conditions_.no_steal = why_no_steal(find_hypervisor(), find_environment().machine, ended);
    if (!conditions_.no_steal.empty()) return conditions_;
    for (const auto& [cpu, now] : ended) {
        const auto before = steal_.find(cpu);
        if (before == steal_.end() || now < before->second || !allowed.contains(cpu)) continue;
        const double share = ticks > 0 ? static_cast<double>(now - before->second) / ticks : 0;
        conditions_.steal = std::max(conditions_.steal.value_or(0), share);
    }
    return conditions_;
}

} // namespace kxfer::bench
