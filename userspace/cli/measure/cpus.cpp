// SPDX-License-Identifier: MIT
#include "cli/measure/cpus.hpp"

#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

namespace kxfer::cli {

namespace {

constexpr unsigned max_cpu = CPU_SETSIZE - 1;

// Takes a number off the beginning of the text; false: there is none.
bool take_number(std::string_view& text, unsigned& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);

    if (error != std::errc() || number > max_cpu) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

} // namespace

tl::expected<std::vector<unsigned>, std::string> parse_cpus(const std::string& text) {
    const auto wrong = tl::unexpected(fmt::format("'{}' is no list of CPUs such as 0,2-5", text));
    std::string_view left = text;
    std::vector<unsigned> cpus;

    for (;;) {
        unsigned first = 0, last = 0;
        if (!take_number(left, first)) return wrong;
        last = first;
        if (left.starts_with('-')) {
            left.remove_prefix(1);
            if (!take_number(left, last) || last < first) return wrong;
        }
        for (unsigned cpu = first; cpu <= last; cpu++) cpus.push_back(cpu);
        if (left.empty()) return cpus;
        if (!left.starts_with(',')) return wrong;
        left.remove_prefix(1);
    }
}

std::string cpus_text(const std::vector<unsigned>& cpus) { return fmt::format("{}", fmt::join(cpus, ",")); }

tl::expected<void, Error> pin_to_cpu(unsigned cpu) {
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0) return {};
    return tl::unexpected(
        Error("cannot be pinned to", fmt::format("CPU {}", cpu), errno, "see: lscpu, taskset -p $$"));
}

} // namespace kxfer::cli
