// SPDX-License-Identifier: MIT
//
// CPUs that clients are pinned to.
#pragma once

#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

namespace kxfer::cli {

// "0,2-5": their numbers, in that order; or what is wrong with the text.
tl::expected<std::vector<unsigned>, std::string> parse_cpus(const std::string& text);
std::string cpus_text(const std::vector<unsigned>& cpus);

// The calling thread, and those that it makes, run there alone. EINVAL: there is no such CPU,
// or it may not be used.
tl::expected<void, Error> pin_to_cpu(unsigned cpu);

} // namespace kxfer::cli
