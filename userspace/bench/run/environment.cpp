// SPDX-License-Identifier: MIT
#include "bench/run/environment.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace kxfer::bench {

namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;

    std::getline(file, line);
    return line;
}

// The value of the first line "KEY : VALUE" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
    std::ifstream file("/proc/cpuinfo");
    std::string line;

    while (std::getline(file, line)) {
        const size_t colon = line.find(": ");
        if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
    }
    return {};
}

bool has_word(const std::string& text, const std::string& wanted) {
    std::istringstream words(text);
    std::string word;

    while (words >> word)
        if (word == wanted) return true;
    return false;
}

std::string virtual_machine() {
    if (cpuinfo("vendor_id") == "User Mode Linux") return "User-mode Linux";
    if (!has_word(cpuinfo("flags"), "hypervisor")) return {};
    const std::string vendor = first_line("/sys/class/dmi/id/sys_vendor");
    const std::string product = first_line("/sys/class/dmi/id/product_name");
    return vendor.empty() && product.empty() ? "unknown" : vendor + " " + product;
}

} // namespace

Environment find_environment() {
    Environment environment;
    utsname name{};

    if (uname(&name) == 0) {
        environment.kernel = name.release;
        environment.architecture = name.machine;
    }
    environment.cpu_model = cpuinfo("model name");
    environment.nr_cpus = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
    environment.machine = virtual_machine();
    environment.clock_source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    environment.affinity = cpu_list(allowed_cpus());
    environment.module_srcversion = first_line("/sys/module/kxfer/srcversion");
    return environment;
}

std::set<unsigned> allowed_cpus() {
    std::set<unsigned> cpus;
    cpu_set_t mask;

    // On a machine with more CPUs than the mask has room for this fails with EINVAL.
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return cpus;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
    return cpus;
}

std::string cpu_list(const std::set<unsigned>& cpus) {
    std::string text;

    for (auto first = cpus.begin(); first != cpus.end();) {
        auto last = first;
        while (std::next(last) != cpus.end() && *std::next(last) == *last + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ",", *first);
        if (last != first) text += fmt::format("-{}", *last);
        first = std::next(last);
    }
    return text;
}

} // namespace kxfer::bench
