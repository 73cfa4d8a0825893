// SPDX-License-Identifier: MIT
//
// The common part of text and JSON output.

#include "cli/output/output.hpp"

#include <cerrno>

#include "cli/output/streams.hpp"

namespace kxfer::cli {

void Output::note(const std::string& text) {
    if (progress_wanted()) complain(text + '\n');
}

// Flushes, so that a reader of a pipe sees events as they happen. Asks the stream for
// errors, because glibc's fwrite() to a line-buffered one may claim to have written all.
void Output::write(const std::string& text) {
    if (results_ == stderr) return complain(text);
    errno = 0;
    std::fwrite(text.data(), 1, text.size(), results_);
    std::fflush(results_);
    if (std::ferror(results_) != 0 && write_error_ == 0) write_error_ = errno == 0 ? EIO : errno;
}

} // namespace kxfer::cli
