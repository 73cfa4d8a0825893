// SPDX-License-Identifier: MIT
//
// Shared secrets in the kernel's keyring, and listeners that want a key.
#pragma once

#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/output/failure.hpp"

namespace CLI {
class App;
}

namespace kxfer::cli {

// For CLI11: what is wrong with the name of a key; empty: nothing.
std::string check_key_name(const std::string& name);

// KEY_SPEC_USER_KEYRING of linux/keyctl.h
constexpr int user_keyring = -4;

// A key of kxfer's that this user may see.
struct KnownKey {
    std::string name;
    std::string uid;
    std::string expires;
};

// The error is that of /proc/keys.
tl::expected<std::vector<KnownKey>, Error> known_keys();

// The key's number in the keyring of this user, or -1 with errno.
long find_key(const std::string& name);
inline bool has_key(const std::string& name) { return find_key(name) >= 0; }

// For each --key: has the kernel search the keyring of this user too. It does so in a login session, but
// not in a service of systemd (KeyringMode=private). If it cannot, the key is not found, which is reported.
void search_user_keyring(const std::string& name);

// --key NAME..., or --no-key
struct KeyChoice {
    std::vector<std::string> names;
    bool none = false;
};

void add_key_choice(CLI::App& command, KeyChoice& choice);

// Whether senders from anywhere may reach a listener: it listens on all of this node's addresses,
// or on one that is neither a loopback address nor of a private network.
bool is_exposed(const kxfer_addr& address);

// An exposed listener needs a key, or --no-key.
tl::expected<void, Failure> check_key_choice(const KeyChoice& choice, const kxfer_addr& address);

// The warning about listeners without a key.
extern const char* const believes_all;

} // namespace kxfer::cli
