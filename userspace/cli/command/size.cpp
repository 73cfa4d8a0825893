// SPDX-License-Identifier: MIT
#include "cli/command/size.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace kxfer::cli {

namespace {

// The shift of "k", "KB", "KiB", "M" and so on, whatever the case; -1 for anything else.
int shift_of(std::string_view unit) {
    static constexpr std::string_view letters = "kmgt";
    std::string word(unit);
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (word.empty() || word == "b") return 0;
    const size_t power = letters.find(word.front());
    if (power == std::string_view::npos) return -1;
    const auto rest = std::string_view(word).substr(1);
    return rest.empty() || rest == "b" || rest == "ib" ? static_cast<int>(power + 1) * 10 : -1;
}

// The digits after the point, if there are any: "1.5G" has 5 tenths.
struct Fraction {
    uint64_t digits = 0;
    uint64_t scale = 1; // 10 to the number of digits
};

// Takes the fraction off `rest`. Empty: a point without digits, or with too many.
std::optional<Fraction> take_fraction(std::string_view& rest) {
    constexpr size_t most_digits = 6; // times 2^40 fits 64 bits
    Fraction fraction;
    if (!rest.starts_with('.')) return fraction;
    rest.remove_prefix(1);
    const size_t nr = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (nr == 0 || nr > most_digits) return std::nullopt;
    for (const char digit : rest.substr(0, nr)) {
        fraction.digits = fraction.digits * 10 + static_cast<uint64_t>(digit - '0');
        fraction.scale *= 10;
    }
    rest.remove_prefix(nr);
    return fraction;
}

// text: with its 0x. It takes no unit: 0x1B would be two sizes.
tl::expected<uint64_t, std::string> parse_hexadecimal(std::string_view text) {
    uint64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + 2, last, number, 16);
    if (error == std::errc::result_out_of_range)
        return tl::make_unexpected(fmt::format("the size '{}' is too large", text));
    if (error != std::errc() || end != last)
        return tl::make_unexpected(
            fmt::format("'{}' is not a size; a hexadecimal one is a number of bytes, such as 0x1000", text));
    return number;
}

} // namespace

tl::expected<uint64_t, std::string> parse_size(std::string_view text) {
    uint64_t number = 0;
    if (text.starts_with("0x") || text.starts_with("0X")) return parse_hexadecimal(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
    const auto fraction = take_fraction(rest);
    const int shift = shift_of(rest);
    if (error == std::errc::invalid_argument || !fraction || shift < 0)
        return tl::make_unexpected(
            fmt::format("'{}' is not a size; a size is a number with K, M, G or T after it (powers of "
                        "1024), such as 4096, 4K or 16MiB",
                        text));
    // Bytes of the fraction, times fraction->scale.
    const uint64_t parts = fraction->digits << shift;
    if (parts % fraction->scale != 0)
        return tl::make_unexpected(fmt::format("'{}' is no whole number of bytes", text));
    const uint64_t more = parts / fraction->scale;
    if (error == std::errc::result_out_of_range || number > std::numeric_limits<uint64_t>::max() >> shift ||
        (number << shift) > std::numeric_limits<uint64_t>::max() - more)
        return tl::make_unexpected(fmt::format("the size '{}' is too large", text));
    return (number << shift) + more;
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
