// SPDX-License-Identifier: MIT
//
// What READs of @ping bring; see KXFER_PING_SIZE.
#pragma once

#include <cstddef>
#include <span>

namespace kxfer::cli {

// bytes: READ from the beginning of @ping.
inline bool is_ping_pattern(std::span<const std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); i++)
        if (bytes[i] != static_cast<std::byte>(i * 7 + i / 256)) return false;
    return true;
}

} // namespace kxfer::cli
