// SPDX-License-Identifier: MIT
// The output of the tool on a terminal of a given width.
#pragma once

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

#include <pty.h>
#include <unistd.h>

#include "cli/output/terminal.hpp"

// The output of the function on this stream.
template <typename Function> std::string on_terminal(int fd, unsigned short columns, Function function) {
    winsize size = {24, columns, 0, 0};
    int screen = -1, terminal = -1;
    if (openpty(&screen, &terminal, nullptr, nullptr, &size) != 0) return "no terminal";
    std::string text;
    // A terminal buffers few unread bytes.
    std::thread reader([&] {
        char bytes[512];
        for (ssize_t n; (n = read(screen, bytes, sizeof(bytes))) > 0;)
            text.append(bytes, static_cast<size_t>(n));
    });
    std::fflush(stdout);
    const int before = dup(fd);
    dup2(terminal, fd);
    close(terminal);
    function();
    std::fflush(stdout);
    dup2(before, fd);
    close(before);
    reader.join();
    close(screen);
    std::erase(text, '\r');
    return text;
}

inline size_t longest_line(const std::string& text) {
    size_t longest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        longest = std::max(longest, kxfer::cli::width_of(line));
    return longest;
}
