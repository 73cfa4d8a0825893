// SPDX-License-Identifier: MIT
//
// The file that gets a sweep's rows, one by one. A sweep started again with the same file
// continues with the missing rows.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "bench/stats/sweep_text.hpp"
#include "cli/node/file.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

class SweepFile {
  public:
    // An existing file must have the same head; otherwise EINVAL and the differences. Its rows
    // are kept; a torn last line is cut off. An empty path: rows are kept in memory only.
    static tl::expected<SweepFile, Failure> open(const std::string& path, const std::string& head);

    const bench::SweepResult& result() const { return result_; }
    // When this returns, the row is on disk.
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
