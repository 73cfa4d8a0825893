// SPDX-License-Identifier: MIT
//
// The standard streams.

#include "cli/streams.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace kxfer::cli {

// Each is opened for what it is not for, as stdopen() of gnulib does: a result that nobody
// wants is then a failure, EBADF, as it was when the stream was closed.
void occupy_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        // The lowest that is free is this one.
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
    }
}

void complain(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    std::clearerr(stderr);
}

} // namespace kxfer::cli
