// SPDX-License-Identifier: MIT
//
// A mix: READs, WRITEs and SENDs in given shares, spread as evenly as possible, and in the
// same order in every run. All operations on a slot move the same bytes, so the order of two in
// flight does not matter. Message n comes from slot n, whichever operation it is.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "engine/workload.hpp"

namespace kxfer::bench {

struct Share {
    Operation operation = Operation::read;
    unsigned percent = 0;

    bool operator==(const Share&) const = default;
};
using Mix = std::vector<Share>;

// Parses "read=70,write=30"; the error says what is wrong with it.
tl::expected<Mix, std::string> parse_mix(const std::string& text);
std::string mix_text(const Mix& mix);
// Some of the workload's operations are messages.
bool has_messages(const Workload& workload);
// The order of 100 operations, for Workload::turns.
std::vector<Operation> turns_of(const Mix& mix);

} // namespace kxfer::bench
