// SPDX-License-Identifier: MIT
//
// SIZE := N[.N][K|M|G|T][iB|B] in any case, powers of 1024 (KB too): 64, 4k, 16MiB, 1.5G;
// or a hexadecimal number of bytes: 0x1000.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace kxfer::cli {

// The error says what is wrong and what is allowed.
tl::expected<uint64_t, std::string> parse_size(std::string_view text);

// An option that takes a SIZE.
CLI::Option* add_size_option(CLI::App& app, const std::string& name, uint64_t& size,
                             const std::string& description);

} // namespace kxfer::cli
