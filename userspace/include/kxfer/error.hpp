// SPDX-License-Identifier: MIT
//
// An error, for people and scripts: what failed, on what, why, and what to try.
// The library fills in the first three; a caller that knows the situation adds
// the rest.
#pragma once

#include <cstring>
#include <string>
#include <utility>

namespace kxfer {

struct Error {
    std::string what; // "cannot open the export"
    std::string on;   // "10.77.0.1:7625/inbox"; may be empty
    int number = 0;   // errno, positive; 0 if none belongs to it
    std::string why;  // the reason in words; empty: the text of strerror(3) for the number
    std::string hint; // what to try; may be empty

    Error() = default;
    explicit Error(std::string what, std::string on = {}, int number = 0, std::string hint = {},
                   std::string why = {})
        : what(std::move(what)), on(std::move(on)), number(number < 0 ? -number : number),
          why(std::move(why)), hint(std::move(hint)) {}

    // The errno's name, such as ECONNREFUSED; empty without a number, digits if unknown.
    std::string name() const {
        if (number == 0) return {};
        const char* known = strerrorname_np(number);
        return known ? known : std::to_string(number);
    }

    std::string reason() const {
        if (!why.empty() || number == 0) return why;
        const char* text = strerrordesc_np(number);
        return text ? text : "unknown error";
    }

    // One line without the hint: "WHAT ON: WHY (ERRNO)".
    std::string text() const {
        std::string line = what;
        if (!on.empty()) line += ' ' + on;
        if (const std::string because = reason(); !because.empty()) line += ": " + because;
        if (number != 0) line += " (" + name() + ')';
        return line;
    }
};

} // namespace kxfer
