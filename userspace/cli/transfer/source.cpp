// SPDX-License-Identifier: MIT
#include "cli/transfer/source.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/peer.hpp"
#include "cli/command/size.hpp"

namespace kxfer::cli {

namespace {

constexpr std::string_view memory_prefix = "mem:";
constexpr std::string_view heap_prefix = "heap:";

std::string_view base_name(std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Takes NAME= off the text.
std::string take_name(std::string_view& text) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !is_export_name(text.substr(0, equals))) return {};
    std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    return name;
}

// A word as a shell takes it.
std::string quoted(std::string_view word) {
    if (word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string_view::npos)
        return std::string(word);
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + '\'';
}

tl::unexpected<std::string> no_name(std::string_view text, std::string_view rest) {
    static constexpr const char* form = "1 to 63 of A-Z a-z 0-9 . _ -";
    const std::string_view name = text.substr(0, text.find('='));
    if (name.size() < text.size() && name.find('/') == std::string_view::npos)
        return tl::make_unexpected(fmt::format("'{}' is not a name of an export; a name is {}", name, form));
    return tl::make_unexpected(fmt::format("the file name of '{}' cannot be an export's ({}): give NAME={}",
                                           text, form, quoted(rest)));
}

} // namespace

tl::expected<Source, std::string> parse_source(std::string_view text) {
    Source source;
    std::string_view rest = text;
    source.name = take_name(rest);
    source.heap = rest.starts_with(heap_prefix);
    if (source.heap || rest.starts_with(memory_prefix)) {
        if (source.name.empty())
            return tl::make_unexpected(fmt::format("'{}' needs a name: give NAME={}", text, rest));
        TRY_SET(const auto bytes, parse_size(rest.substr(rest.find(':') + 1)));
        if (bytes == 0) return tl::make_unexpected(fmt::format("'{}' has no bytes", text));
        source.bytes = bytes;
        return source;
    }
    if (rest.empty())
        return tl::make_unexpected(fmt::format(
            "'{}' names no file; a source is [NAME=]FILE, NAME=mem:SIZE or NAME=heap:SIZE", text));
    source.file = rest;
    if (source.name.empty()) source.name = base_name(rest);
    if (!is_export_name(source.name)) return no_name(text, rest);
    return source;
}

tl::expected<Source, std::string> parse_folder(std::string_view text) {
    Source source;
    std::string_view rest = text;
    source.name = take_name(rest);
    if (rest.empty()) return tl::make_unexpected(fmt::format("'{}' names no folder; give [NAME=]DIR", text));
    source.file = rest;
    while (rest.size() > 1 && rest.ends_with('/')) rest.remove_suffix(1);
    if (source.name.empty()) source.name = base_name(rest);
    if (!is_export_name(source.name) || source.name == "." || source.name == "..") return no_name(text, rest);
    return source;
}

} // namespace kxfer::cli
