// SPDX-License-Identifier: MIT
//
// CPUs that clients are pinned to.
#pragma once

#include <string>
#include <vector>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

namespace kxfer::cli {

// Parses "0,2-5" to CPU numbers in that order; the error says what is wrong with the text.
tl::expected<std::vector<unsigned>, std::string> parse_cpus(const std::string& text);
std::string cpus_text(const std::vector<unsigned>& cpus);

// Pins the calling thread, and threads it creates, to the CPU. EINVAL: there is no such CPU,
// or the thread may not use it.
tl::expected<void, Error> pin_to_cpu(unsigned cpu);

} // namespace kxfer::cli
