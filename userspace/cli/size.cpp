// SPDX-License-Identifier: MIT
#include "cli/size.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace kxfer::cli {

namespace {

// The shift of "K", "KiB", "M" and so on; -1 for anything else.
int shift_of(std::string_view unit) {
    if (unit.empty()) return 0;
    if (unit.size() == 3 && !unit.ends_with("iB")) return -1;
    if (unit.size() != 1 && unit.size() != 3) return -1;
    switch (unit.front()) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    case 'T':
        return 40;
    default:
        return -1;
    }
}

} // namespace

tl::expected<uint64_t, std::string> parse_size(std::string_view text) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const int shift = shift_of(text.substr(static_cast<size_t>(end - text.data())));
    if (error == std::errc::invalid_argument || shift < 0)
        return tl::make_unexpected(
            fmt::format("'{}' is not a size; a size is a whole number with K, M, G or T behind it (powers of "
                        "1024), such as 4096, 4K or 16MiB",
                        text));
    if (error == std::errc::result_out_of_range || number > std::numeric_limits<uint64_t>::max() >> shift)
        return tl::make_unexpected(fmt::format("the size '{}' is too large", text));
    return number << shift;
}

std::string check_finite(const std::string& text) {
    return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : fmt::format("'{}' is no number", text);
}

CLI::Option* add_size_option(CLI::App& app, const std::string& name, uint64_t& size,
                             const std::string& description) {
    return app
        .add_option_function<std::string>(
            name,
            [&size, name](const std::string& text) {
                const auto parsed = parse_size(text);
                if (!parsed) throw CLI::ValidationError(name, parsed.error());
                size = *parsed;
            },
            description)
        ->type_name("SIZE");
}

} // namespace kxfer::cli
