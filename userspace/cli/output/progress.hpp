// SPDX-License-Identifier: MIT
//
// Progress on stderr: a bar on a terminal, otherwise a line every ten
// seconds; nothing with --quiet or --json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output/output.hpp"

namespace kxfer::cli {

class ProgressLine {
  public:
    ProgressLine(const Output& out, std::string label);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine() { finish(); }

    // part: done so far, from 0 to 1, if known.
    void show(std::optional<double> part, const std::string& words);
    // Whether show() would show anything now.
    bool due() const;
    // Removes the bar.
    void finish();

  private:
    std::string label_;
    uint64_t shown_ns_;
    bool wanted_;
    bool terminal_;
    bool drawn_ = false;
};

// Progress of a transfer.
class Progress {
  public:
    // total: bytes; empty if unknown, as with a pipe. before: bytes that are done already.
    Progress(const Output& out, std::string label, std::optional<uint64_t> total, uint64_t before = 0);

    void update(uint64_t done);
    void finish() { line_.finish(); }

  private:
    ProgressLine line_;
    std::optional<uint64_t> total_;
    uint64_t before_;
    uint64_t began_ns_;
};

} // namespace kxfer::cli
