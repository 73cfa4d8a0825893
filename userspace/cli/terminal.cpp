// SPDX-License-Identifier: MIT
#include "cli/terminal.hpp"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

bool begins_character(char c) { return (c & 0xC0) != 0x80; }

} // namespace

std::optional<size_t> terminal_width(int fd) {
    winsize size = {};
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return size.ws_col;
}

size_t width_of(const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string cut(const std::string& text, size_t width) {
    if (width_of(text) <= width) return text;
    if (width == 0) return "";
    size_t left = width;
    const auto end =
        std::find_if(text.begin(), text.end(), [&](char c) { return begins_character(c) && left-- == 1; });
    return std::string(text.begin(), end) + '~';
}

} // namespace kxfer::cli
