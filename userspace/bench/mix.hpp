// SPDX-License-Identifier: MIT
//
// A mix: READs, WRITEs and SENDs in given shares, spread as evenly as they can be, and the
// same in every run. All move the same bytes of a slot, so that it does not matter which of two
// in flight is first. Message n is of slot n, whichever operation it is.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "bench/workload.hpp"

namespace kxfer::bench {

struct Share {
    Operation operation = Operation::read;
    unsigned percent = 0;

    bool operator==(const Share&) const = default;
};
using Mix = std::vector<Share>;

// "read=70,write=30"; what is wrong with it.
tl::expected<Mix, std::string> parse_mix(const std::string& text);
std::string mix_text(const Mix& mix);
// Some of its operations are messages.
bool has_messages(const Workload& workload);
// Whose turn it is, of 100 operations: for Workload::turns.
std::vector<Operation> turns_of(const Mix& mix);

} // namespace kxfer::bench
