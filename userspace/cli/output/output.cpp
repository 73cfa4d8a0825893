// SPDX-License-Identifier: MIT
//
// The common part of text and JSON output.

#include "cli/output/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/streams.hpp"
#include "cli/output/terminal.hpp"

namespace kxfer::cli {

namespace {

constexpr size_t least_width = 40;

// $JOURNAL_STREAM names the device and inode of the stream that systemd connected to the journal.
bool is_journal(int fd) {
    const char* journal = std::getenv("JOURNAL_STREAM");
    struct stat status = {};
    return journal && fstat(fd, &status) == 0 &&
           fmt::format("{}:{}", status.st_dev, status.st_ino) == journal;
}

} // namespace

std::string time_text() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    const std::tm local = fmt::localtime(now.tv_sec);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}{:%z}", local, now.tv_nsec / 1000000, local);
}

std::string Output::stamp_for(std::FILE* stream) const {
    if (!stamped_ || isatty(fileno(stream)) || is_journal(fileno(stream))) return {};
    return time_text() + ' ';
}

std::string Output::fitting(const std::string& text, std::FILE* stream) {
    const std::string indent = "  ";
    const auto width = terminal_width(fileno(stream));
    if (!width || text.find('\n') != std::string::npos) return text;
    return broken(text, indent, std::max(*width, least_width) - indent.size());
}

void Output::note(const std::string& text) {
    if (progress_wanted()) complain(fitting(text, stderr) + '\n');
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
