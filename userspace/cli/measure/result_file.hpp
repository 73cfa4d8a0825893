// SPDX-License-Identifier: MIT
//
// Files for results, written after the measurement.
#pragma once

#include <string>

#include "cli/output/failure.hpp"

namespace kxfer::cli {

// Checks before a measurement that the file can be written; creates and changes nothing. An empty
// name is fine: no file.
tl::expected<void, Failure> check_result_file(const std::string& file);
tl::expected<void, Failure> write_result_file(const std::string& file, const std::string& text);

} // namespace kxfer::cli
