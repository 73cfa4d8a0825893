// SPDX-License-Identifier: MIT
//
// A terminal whose picture is drawn anew again and again, and whose keys are read one by one.
//
// The terminal gets its settings and its text back however the program ends, but for SIGKILL: by
// the destructor, or by the handler of the signal that ends it. While the program is stopped
// (Ctrl-Z) the terminal is the shell's.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kxfer::cli {

class Screen {
  public:
    // Empty: standard input or output is no terminal. One at a time.
    static std::unique_ptr<Screen> open();
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;
    ~Screen();

    // Columns of the terminal now.
    size_t width() const;
    // What to write to standard output for this picture. Lines that do not fit are left out; the
    // lines must not be wider than the terminal.
    std::string picture(const std::vector<std::string>& lines) const;
    // Waits for a key. Empty: the timeout, a signal, or the terminal has another size.
    std::optional<char> key(std::chrono::nanoseconds timeout);

  private:
    Screen() = default;

    bool has_input_ = true;
};

} // namespace kxfer::cli
