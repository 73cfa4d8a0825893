// SPDX-License-Identifier: MIT
//
// A view of this node as metrics, for monitoring.
#pragma once

#include <string>

#include "cli/observe/view.hpp"

namespace kxfer::cli {

// The two formats differ in the name of a counter in its TYPE and HELP lines, so no text is
// correct in both.
enum class MetricsFormat : uint8_t {
    openmetrics, // OpenMetrics 1.0: families without _total, # EOF at the end
    prometheus,  // Prometheus text format 0.0.4: what node_exporter reads from files
};

std::string metrics_text(const View& view, MetricsFormat format);

// Writes the text to a file beside `file` and renames it, so that a reader sees the old text or
// the new one. Only a regular file is replaced.
Expected<void> replace_file(const std::string& file, const std::string& text);

} // namespace kxfer::cli
