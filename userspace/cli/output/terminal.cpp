// SPDX-License-Identifier: MIT
#include "cli/output/terminal.hpp"

#include <algorithm>
#include <sstream>

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

std::string broken(const std::string& sentence, const std::string& indent, size_t width) {
    std::istringstream words(sentence);
    std::string text;
    size_t column = 0;
    for (std::string word; words >> word; column += width_of(word) + 1) {
        const bool breaks = column != 0 && column + width_of(word) > width;
        if (breaks) column = 0;
        if (!text.empty()) text += breaks ? '\n' + indent : " ";
        text += word;
    }
    return text;
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
