// SPDX-License-Identifier: MIT
#include "cli/node/keys.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

// Of linux/keyctl.h; libkeyutils would add nothing else.
constexpr int keyctl_link = 8;
constexpr int keyctl_search = 10;
constexpr int process_keyring = -2;

bool is_wildcard(const kxfer_addr& address) {
    return std::all_of(std::begin(address.addr), std::end(address.addr),
                       [](uint8_t byte) { return byte == 0; });
}

bool is_private_ipv4(const uint8_t* byte) {
    return byte[0] == 127 || byte[0] == 10 || (byte[0] == 172 && (byte[1] & 0xf0) == 16) ||
           (byte[0] == 192 && byte[1] == 168) || (byte[0] == 169 && byte[1] == 254);
}

bool is_private_ipv6(const uint8_t* byte) {
    static constexpr std::array<uint8_t, 16> loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return (byte[0] & 0xfe) == 0xfc || (byte[0] == 0xfe && (byte[1] & 0xc0) == 0x80) ||
           memcmp(byte, loopback.data(), loopback.size()) == 0;
}

} // namespace

const char* const believes_all =
    "on RoCE every sender of UDP that reaches it is believed: address, source port and uid are its own word";

std::string check_key_name(const std::string& name) {
    const bool good =
        !name.empty() && name.size() <= KXFER_NAME_MAX && std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   std::string_view("._-").find(c) != std::string_view::npos;
        });
    if (good) return {};
    return fmt::format("'{}' is not the name of a key: 1 to {} of A-Z a-z 0-9 . _ -", name, KXFER_NAME_MAX);
}

// Lines are "... logon     kxfer:NAME: 32".
tl::expected<std::vector<KnownKey>, Error> known_keys() {
    std::ifstream in("/proc/keys");
    if (!in)
        return tl::make_unexpected(
            Error("cannot list keys", "/proc/keys", errno, "is the kernel built with CONFIG_KEYS?"));
    std::vector<KnownKey> keys;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
        if (word.size() < 9 || word[7] != KXFER_KEY_TYPE || !word[8].starts_with(KXFER_KEY_PREFIX)) continue;
        std::string name = word[8].substr(sizeof(KXFER_KEY_PREFIX) - 1);
        if (name.ends_with(':')) name.pop_back();
        keys.push_back({name, word[5], word[3]});
    }
    return keys;
}

long find_key(const std::string& name) {
    const std::string description = KXFER_KEY_PREFIX + name;
    return syscall(SYS_keyctl, keyctl_search, user_keyring, KXFER_KEY_TYPE, description.c_str(), 0);
}

void search_user_keyring(const std::string&) {
    syscall(SYS_keyctl, keyctl_link, user_keyring, process_keyring, 0, 0);
}

void add_key_choice(CLI::App& command, KeyChoice& choice) {
    auto* key =
        command
            .add_option(
                "--key", choice.names,
                "take links only from peers that prove this shared secret (kxfer key add); repeated: one "
                "of them, so that keys can be changed without a break")
            ->type_name("NAME")
            ->check(check_key_name)
            ->each(search_user_keyring)
            ->take_all()
            ->allow_extra_args(false);
    command
        .add_flag(
            "--no-key", choice.none,
            "take links without a key where any sender may reach the listener, as on a network of which "
            "every host is trusted")
        ->excludes(key);
}

bool is_exposed(const kxfer_addr& address) {
    if (is_wildcard(address)) return true;
    return address.family == AF_INET ? !is_private_ipv4(address.addr) : !is_private_ipv6(address.addr);
}

tl::expected<void, Failure> check_key_choice(const KeyChoice& choice, const kxfer_addr& address) {
    if (!choice.names.empty() || choice.none || !is_exposed(address)) return {};
    return failed(Error("cannot listen on", to_string(address), EPERM,
                        "--key NAME (see: kxfer key add --help); or an address of a private network; or "
                        "--no-key, if every host that reaches this one is trusted",
                        fmt::format("without a key {}", believes_all)));
}

} // namespace kxfer::cli
