// SPDX-License-Identifier: MIT
//
// Access rules of what is offered to peers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linux/kxfer.h>

namespace kxfer::bench {

// Rules for the same peers with other rights.
inline std::vector<kxfer_rule> granting(std::span<const kxfer_rule> rules, uint32_t rights) {
    std::vector<kxfer_rule> granted(rules.begin(), rules.end());
    for (auto& rule : granted) rule.rights = rights;
    return granted;
}

} // namespace kxfer::bench
