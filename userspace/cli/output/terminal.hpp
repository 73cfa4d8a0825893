// SPDX-License-Identifier: MIT
//
// Widths of terminals and texts, in characters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kxfer::cli {

// Empty: no terminal, or its width is unknown.
std::optional<size_t> terminal_width(int fd);

// Characters on the screen, not bytes.
size_t width_of(const std::string& text);

// Breaks between words, so that only a line with a longer word has more than `width` characters.
// Lines after a break begin with `indent`, which does not count.
std::string broken(const std::string& sentence, const std::string& indent, size_t width);

// Cuts to at most `width` characters; the last is "~" if some are left out.
std::string cut(const std::string& text, size_t width);

} // namespace kxfer::cli
