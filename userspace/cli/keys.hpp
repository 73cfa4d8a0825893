// SPDX-License-Identifier: MIT
//
// Shared secrets in the kernel's keyring, and listeners that want one.
#pragma once

#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/failure.hpp"

namespace CLI {
class App;
}

namespace kxfer::cli {

// For CLI11: what is wrong with the name of a key, or nothing.
std::string check_key_name(const std::string& name);

// --key NAME..., or --no-key
struct KeyChoice {
    std::vector<std::string> names;
    bool none = false;
};

void add_key_choice(CLI::App& command, KeyChoice& choice);

// Whether senders from anywhere may reach a listener: all of this node's addresses, or one that
// is neither of the loopback nor of a private network.
bool is_exposed(const kxfer_addr& address);

// A listener that is exposed needs a key, or the word that it needs none.
tl::expected<void, Failure> check_key_choice(const KeyChoice& choice, const kxfer_addr& address);

// What is to be said of listeners without a key.
extern const char* const believes_all;

} // namespace kxfer::cli
