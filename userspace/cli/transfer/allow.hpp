// SPDX-License-Identifier: MIT
//
// --allow CIDR|uid=N|gid=N|key=NAME[,uid=N][,gid=N][,no-uids]: peers that may use an export.
#pragma once

#include <string>
#include <string_view>

#include <linux/kxfer.h>
#include <tl/expected.hpp>

namespace kxfer::cli {

// Parses a rule, without rights yet. The error says what is allowed.
tl::expected<kxfer_rule, std::string> parse_allow(std::string_view text);

} // namespace kxfer::cli
