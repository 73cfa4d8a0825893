// SPDX-License-Identifier: MIT
//
// What text and JSON have in common.

#include "cli/output.hpp"

#include <fmt/format.h>

namespace kxfer::cli {

void Output::note(const std::string& text) {
    if (progress_wanted()) fmt::print(stderr, "{}\n", text);
}

// Line by line, so that a reader behind a pipe sees events as they happen.
void Output::write(const std::string& text) {
    const bool whole = std::fwrite(text.data(), 1, text.size(), results_) == text.size();
    if (!whole || std::fflush(results_) != 0) failed_ = true;
}

bool Output::flush() { return !failed_; }

} // namespace kxfer::cli
