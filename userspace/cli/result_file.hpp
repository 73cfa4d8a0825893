// SPDX-License-Identifier: MIT
//
// Files that results are written to when they have been measured.
#pragma once

#include <string>

#include "cli/failure.hpp"

namespace kxfer::cli {

// Said before a measurement, not behind it; makes and changes nothing. Empty: no file, which is fine.
tl::expected<void, Failure> check_result_file(const std::string& file);
tl::expected<void, Failure> write_result_file(const std::string& file, const std::string& text);

} // namespace kxfer::cli
