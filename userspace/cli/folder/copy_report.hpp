// SPDX-License-Identifier: MIT
//
// CopyReport: what became of the files of one copy, and the manifest of their SHA-256, in the format
// of sha256sum(1): `sha256sum -c MANIFEST` in the copied folder checks them.
#pragma once

#include <cstdint>
#include <string>

#include "cli/node/sha256.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

class CopyReport {
  public:
    void moved(const std::string& path, uint64_t bytes, uint64_t resumed, const Digest& sha256);
    // An earlier copy has it.
    void unchanged() { unchanged_++; }
    // A symbolic link, a device or the like; path: for people.
    void left_out(const std::string& path);
    void folder() { folders_++; }

    // Puts the manifest into a file; empty: nowhere.
    tl::expected<void, Failure> write_manifest(const std::string& file) const;
    // What is worth a remark, or nothing.
    std::string remark() const;
    Record record(const std::string& from, const std::string& to, uint64_t breaks, uint64_t took_ns) const;

  private:
    uint64_t files_ = 0;
    uint64_t folders_ = 0;
    uint64_t unchanged_ = 0;
    uint64_t left_out_ = 0;
    uint64_t bytes_ = 0;
    uint64_t resumed_ = 0; // of bytes_, by earlier copies
    std::string sha256_;   // of the last file
    std::string first_left_out_;
    std::string manifest_;
};

// The failure of a copy that has moved something; kept: what is left of it, a sentence.
tl::unexpected<Failure> stopped_copy(Failure failure, const char* kept);

// A line of a manifest.
std::string manifest_line(const Digest& sha256, const std::string& path);

} // namespace kxfer::cli
