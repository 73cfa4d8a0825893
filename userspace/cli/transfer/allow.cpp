// SPDX-License-Identifier: MIT
#include "cli/transfer/allow.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "cli/node/keys.hpp"

namespace kxfer::cli {

namespace {

bool parse_number(std::string_view text, uint32_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

// Clears the bits after the prefix, which do not count.
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

// One condition of a rule. The caller ensures that an address is the only condition.
bool parse_condition(std::string_view text, kxfer_rule& rule) {
    if (text.starts_with("uid=")) {
        rule.match |= KXFER_RULE_UID;
        return parse_number(text.substr(4), rule.uid);
    }
    if (text.starts_with("gid=")) {
        rule.match |= KXFER_RULE_GID;
        return parse_number(text.substr(4), rule.gid);
    }
    if (text == "no-uids") {
        rule.match |= KXFER_RULE_NO_UIDS;
        return true;
    }
    const std::string name(text.substr(std::min(text.size(), size_t{4})));
    if (!text.starts_with("key=") || !check_key_name(name).empty()) return false;
    rule.match |= KXFER_RULE_KEY;
    memcpy(rule.key, name.data(), name.size());
    return true;
}

// key=NAME with further conditions.
bool parse_key_rule(std::string_view text, kxfer_rule& rule) {
    for (;;) {
        const size_t comma = text.find(',');
        const uint32_t before = rule.match;
        if (!parse_condition(text.substr(0, comma), rule) || rule.match == before) return false;
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    return !(rule.match & KXFER_RULE_NO_UIDS && rule.match & (KXFER_RULE_UID | KXFER_RULE_GID));
}

} // namespace

tl::expected<kxfer_rule, std::string> parse_allow(std::string_view text) {
    kxfer_rule rule = {};
    bool good = false;
    if (text.starts_with("key=")) {
        good = parse_key_rule(text, rule);
    } else if (text.starts_with("uid=") || text.starts_with("gid=")) {
        good = parse_condition(text, rule);
    } else {
        rule.match = KXFER_RULE_ADDR;
        good = parse_network(text, rule);
    }
    if (!good)
        return tl::make_unexpected(fmt::format(
            "'{}' is not a valid --allow rule; give a network such as 10.77.0.0/24 or fd77::/64, uid=N, "
            "gid=N, or key=NAME, perhaps with ,uid=N ,gid=N or ,no-uids",
            text));
    return rule;
}

} // namespace kxfer::cli
