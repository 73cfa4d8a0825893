// SPDX-License-Identifier: MIT
//
// How far a transfer is, on stderr: a bar on a terminal, else a line every ten
// seconds; nothing with --quiet or --json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output.hpp"

namespace kxfer::cli {

class Progress {
  public:
    // total: empty if it is not known, as with a pipe.
    Progress(const Output& out, std::string label, std::optional<uint64_t> total);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { finish(); }

    void update(uint64_t done);
    // Takes the bar away.
    void finish();

  private:
    std::string line(uint64_t done, uint64_t now) const;

    std::string label_;
    std::optional<uint64_t> total_;
    uint64_t began_ns_;
    uint64_t shown_ns_;
    bool wanted_;
    bool terminal_;
    bool drawn_ = false;
};

} // namespace kxfer::cli
