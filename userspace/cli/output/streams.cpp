// SPDX-License-Identifier: MIT
//
// The standard streams.

#include "cli/output/streams.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace kxfer::cli {

// Opens each for the wrong direction, as stdopen() of gnulib does: writing a result to a closed
// stream then still fails with EBADF.
void occupy_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        // This is the lowest free descriptor.
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
    }
}

void complain(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    std::clearerr(stderr);
}

} // namespace kxfer::cli
