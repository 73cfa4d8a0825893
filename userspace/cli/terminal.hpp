// SPDX-License-Identifier: MIT
//
// How many characters a line of a terminal has.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kxfer::cli {

// Empty: it is no terminal, or does not tell.
std::optional<size_t> terminal_width(int fd);

// Characters on the screen, not bytes.
size_t width_of(const std::string& text);

// Broken between words, so that no line but that of a longer word has more than `width` characters;
// what follows a break begins with `indent`, which does not count.
std::string broken(const std::string& sentence, const std::string& indent, size_t width);

// At most so many characters, the last of them "~" if some are left out.
std::string cut(const std::string& text, size_t width);

} // namespace kxfer::cli
