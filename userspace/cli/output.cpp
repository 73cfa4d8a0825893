// SPDX-License-Identifier: MIT
//
// What text and JSON have in common.

#include "cli/output.hpp"

#include <cerrno>

#include "cli/streams.hpp"

namespace kxfer::cli {

void Output::note(const std::string& text) {
    if (progress_wanted()) complain(text + '\n');
}

// Line by line, so that a reader behind a pipe sees events as they happen. The
// stream is asked, for glibc's fwrite() to a line-buffered one may claim to have written all.
void Output::write(const std::string& text) {
    if (results_ == stderr) return complain(text);
    errno = 0;
    std::fwrite(text.data(), 1, text.size(), results_);
    std::fflush(results_);
    if (std::ferror(results_) != 0 && write_error_ == 0) write_error_ = errno == 0 ? EIO : errno;
}

} // namespace kxfer::cli
