// SPDX-License-Identifier: MIT
//
// Where a result was measured: without this a figure means nothing.
#pragma once

#include <set>
#include <string>

namespace kxfer::bench {

struct Environment {
    std::string kernel; // release
    std::string architecture;
    std::string cpu_model;
    unsigned nr_cpus = 0; // online
    std::string machine;  // virtual machine as it names itself; empty: none
    std::string clock_source;
    std::string affinity;          // CPUs that this process may use, such as "0-3,6"
    std::string module_srcversion; // of the kxfer.ko that is loaded; empty: none
};

Environment find_environment();

std::set<unsigned> allowed_cpus();
// "0-3,6"
std::string cpu_list(const std::set<unsigned>& cpus);

} // namespace kxfer::bench
