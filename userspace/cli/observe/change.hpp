// SPDX-License-Identifier: MIT
//
// What changed between two views of this node, as events.
#pragma once

#include <string>
#include <vector>

#include "cli/observe/view.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

struct Change {
    Record record; // "event" is its kind
    std::string text;
};

// In an order that makes sense: what came, what happened, what went.
std::vector<Change> changes_between(const View& before, const View& now);

} // namespace kxfer::cli
