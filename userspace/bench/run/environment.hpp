// SPDX-License-Identifier: MIT
//
// The environment of a result: without it a figure means nothing.
#pragma once

#include <set>
#include <string>

namespace kxfer::bench {

struct Environment {
    std::string kernel; // release
    std::string architecture;
    std::string cpu_model;
    unsigned nr_cpus = 0; // online
    std::string machine;  // name that a virtual machine has for itself; empty: none
    std::string clock_source;
    std::string affinity;          // CPUs that this process may use, such as "0-3,6"
    std::string module_srcversion; // of the loaded kxfer.ko; empty: none is loaded
};

Environment find_environment();

std::set<unsigned> allowed_cpus();
// "0-3,6"
std::string cpu_list(const std::set<unsigned>& cpus);

} // namespace kxfer::bench
