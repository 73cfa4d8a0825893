// SPDX-License-Identifier: MIT
#include "cli/allow.hpp"

#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace kxfer::cli {

namespace {

bool parse_number(std::string_view text, uint32_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

// Bits behind the prefix do not count; they are made zero.
void mask(kxfer_addr& network, uint32_t prefix_len) {
    for (uint32_t bit = prefix_len; bit < sizeof(network.addr) * 8; bit++)
        network.addr[bit / 8] = static_cast<uint8_t>(network.addr[bit / 8] & ~(0x80U >> bit % 8));
}

bool parse_network(std::string_view text, kxfer_rule& rule) {
    const size_t slash = text.find('/');
    const std::string host(text.substr(0, slash));
    uint32_t bits = 32;
    rule.addr.family = AF_INET;
    if (inet_pton(AF_INET, host.c_str(), rule.addr.addr) != 1) {
        rule.addr.family = AF_INET6;
        bits = 128;
        if (inet_pton(AF_INET6, host.c_str(), rule.addr.addr) != 1) return false;
    }
    rule.prefix_len = bits;
    if (slash != std::string_view::npos &&
        (!parse_number(text.substr(slash + 1), rule.prefix_len) || rule.prefix_len > bits))
        return false;
    mask(rule.addr, rule.prefix_len);
    return true;
}

} // namespace

tl::expected<kxfer_rule, std::string> parse_allow(std::string_view text) {
    kxfer_rule rule = {};
    bool good = false;
    if (text.starts_with("uid=")) {
        rule.match = KXFER_RULE_UID;
        good = parse_number(text.substr(4), rule.uid);
    } else if (text.starts_with("gid=")) {
        rule.match = KXFER_RULE_GID;
        good = parse_number(text.substr(4), rule.gid);
    } else {
        rule.match = KXFER_RULE_ADDR;
        good = parse_network(text, rule);
    }
    if (!good)
        return tl::make_unexpected(fmt::format(
            "'{}' is not a valid --allow rule; give a network such as 10.77.0.0/24 or fd77::/64, uid=N or "
            "gid=N",
            text));
    return rule;
}

} // namespace kxfer::cli
