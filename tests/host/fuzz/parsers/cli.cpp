// SPDX-License-Identifier: MIT
//
// Words of a command line: SIZE, PEER, REMOTE, SOURCE, --allow. An accepted word has to match
// the documented forms, and its printed form has to parse to the same value.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <kxfer/kxfer.h>

#include "cli/command/peer.hpp"
#include "cli/command/size.hpp"
#include "cli/transfer/allow.hpp"
#include "cli/transfer/source.hpp"

using namespace kxfer::cli;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    fmt::print(stderr, "FOUND: {}\n", what);
    abort();
}

void check_size(std::string_view text) {
    const auto size = parse_size(text);
    if (!size) {
        require(!size.error().empty(), "a refusal without words");
        return;
    }
    require(!text.empty() && text.front() >= '0' && text.front() <= '9', "a size begins with a digit");
    require(parse_size(fmt::format("{}", *size)) == *size, "a size is read back as another");
}

void check_peer(std::string_view text) {
    const auto peer = parse_peer(text);
    if (!peer) return;
    require(!peer->host.empty() && peer->port != 0, "a peer without host or port");
    const auto again = parse_peer(peer->text());
    require(again && again->host == peer->host && again->port == peer->port,
            "a peer is read back as another");
}

void check_remote(std::string_view text) {
    const auto remote = parse_remote(text);
    if (!remote) return;
    require(remote->name == KXFER_PING_NAME || is_export_name(remote->name), "a name that is none");
    const auto again = parse_remote(remote->text());
    require(again && again->text() == remote->text(), "a remote is read back as another");
}

void check_source(std::string_view text) {
    const auto source = parse_source(text);
    if (!source) return;
    require(is_export_name(source->name), "a source with a name that no export can have");
    require(source->file.empty() == (source->bytes != 0), "a source is a file or memory");
}

void check_allow(std::string_view text) {
    const auto rule = parse_allow(text);
    if (!rule) return;
    const bool network = rule->match == KXFER_RULE_ADDR;
    const bool key = rule->match & KXFER_RULE_KEY;
    const uint32_t users = rule->match & (KXFER_RULE_UID | KXFER_RULE_GID);
    require(network || key || rule->match == KXFER_RULE_UID || rule->match == KXFER_RULE_GID,
            "conditions together without a key");
    require(!key || !(rule->match & KXFER_RULE_ADDR), "a key with a network");
    require(!(rule->match & KXFER_RULE_NO_UIDS) || (key && users == 0), "users and no users");
    require(key == (rule->key[0] != 0), "a key without a name");
    if (!network) {
        require(rule->prefix_len == 0 && rule->addr.family == 0, "an address that means nothing");
        return;
    }
    const uint32_t bits = rule->addr.family == AF_INET ? 32 : 128;
    require(rule->prefix_len <= bits && rule->addr.port == 0, "what the kernel refuses");
    for (uint32_t bit = rule->prefix_len; bit < 128; bit++)
        require(!(rule->addr.addr[bit / 8] & 0x80 >> bit % 8), "bits behind the prefix");
    char host[64] = "";
    require(kxfer_addr_format(&rule->addr, host, sizeof(host)) == 0, "an address without a text");
    const auto again = parse_allow(fmt::format("{}/{}", host, rule->prefix_len));
    require(again && again->prefix_len == rule->prefix_len, "a network is read back as another");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 5) {
    case 0:
        check_size(text);
        break;
    case 1:
        check_peer(text);
        break;
    case 2:
        check_remote(text);
        break;
    case 3:
        check_source(text);
        break;
    default:
        check_allow(text);
        break;
    }
    return 0;
}
