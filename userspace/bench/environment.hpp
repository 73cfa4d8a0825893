// SPDX-License-Identifier: MIT
//
// Where a result was measured: without this a figure means nothing.
#pragma once

#include <string>

namespace kxfer::bench {

struct Environment {
    std::string kernel; // release
    std::string architecture;
    std::string cpu_model;
    unsigned nr_cpus = 0; // online
    std::string machine;  // virtual machine as it names itself; empty: none
    std::string clock_source;
};

Environment find_environment();

} // namespace kxfer::bench
