// SPDX-License-Identifier: MIT
//
// The file that a sweep grows in, row by row. Started again with the same file it goes
// on with what is missing.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "bench/sweep_text.hpp"
#include "cli/failure.hpp"
#include "cli/file.hpp"

namespace kxfer::cli {

class SweepFile {
  public:
    // A file that is there has to have the same head but for rows, else EINVAL and what
    // differs. Its torn last line is cut off. An empty path: the rows are kept in memory only.
    static tl::expected<SweepFile, Failure> open(const std::string& path, const std::string& head);

    const bench::SweepResult& result() const { return result_; }
    // The row is on the disk when it returns.
    tl::expected<void, Failure> append(bench::SweepRow row);

  private:
    SweepFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    tl::expected<void, Failure> begin(const std::string& head);
    tl::expected<void, Failure> resume(const std::string& text, const std::string& head);

    std::string path_;
    Descriptor fd_;
    bench::SweepResult result_;
};

// For --from.
tl::expected<bench::SweepResult, Failure> read_sweep(const std::string& path);

} // namespace kxfer::cli
