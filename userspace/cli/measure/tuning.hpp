// SPDX-License-Identifier: MIT
//
// What to choose for a link, from what was measured of it: numbers in, numbers and reasons out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/record.hpp"

namespace kxfer::cli {

// READs of one size, so many in flight at once.
struct Load {
    uint64_t size = 0;
    unsigned depth = 1;
    uint64_t operations = 0;
    double elapsed_ns = 0;
    double p50_ns = 0; // NaN: too few operations
    double longest_ns = 0;

    double per_second() const {
        return elapsed_ns > 0 ? static_cast<double>(operations) * 1e9 / elapsed_ns : 0;
    }
    double bytes_per_second() const { return per_second() * static_cast<double>(size); }
};

// Each list has at least one load.
struct LinkFigures {
    double connect_ns = 0;    // NaN: not known
    std::vector<Load> small;  // one size; the depth rises, and is 1 first
    std::vector<Load> pieces; // the size rises, with as many bytes in flight
    std::vector<Load> bulk;   // the largest piece; the depth rises
    bool iwarp = false;       // TCP carries it
};

// What holds for the link that was measured.
struct LinkSettings {
    double silence_ns = 0;
    unsigned ack_exponent = 0; // 0: not known, or iWARP
    unsigned retries = 0;
    uint64_t in_flight = 0; // bytes
    double timeout_ns = 0;  // of the command
};

struct Choice {
    std::string key; // for JSON
    std::string setting;
    Value value;
    std::string now; // what the link and the command have
    std::string why;
};

std::vector<Choice> choose(const LinkFigures& figures, const LinkSettings& now);

} // namespace kxfer::cli
