// SPDX-License-Identifier: MIT
//
// Assertions, limits that the figures of a run have to keep:
//
//   ASSERTIONS := ASSERTION[,ASSERTION]...
//   ASSERTION  := FIGURE RELATION NUMBER[UNIT]      "p99<80us", "bw >= 500 MiB/s"
//   RELATION   := < | <= | > | >=
//   UNIT       := ns us ms s | B/s KiB/s MiB/s GiB/s MB/s GB/s Gbit/s | /s k/s M/s
//
// A unit is required and must fit the figure's kind; syscalls and switches have no unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "bench/stats/figure.hpp"
#include "bench/stats/verdict.hpp"

namespace kxfer::bench {

enum class Relation { less, at_most, more, at_least };

struct Assertion {
    std::string text; // as it was written
    std::string figure;
    Kind kind = Kind::number;
    Relation relation = Relation::less;
    double limit = 0; // ns, bytes/s, 1/s

    bool holds(double value) const;
};

// The place of an error in the text, and the error, with what is allowed there.
struct ParseError {
    size_t position = 0; // of the first wrong character, from 1
    std::string message;
};

tl::expected<std::vector<Assertion>, ParseError> parse_assertions(std::string_view text);

// "10k/s", "500/s": operations a second.
tl::expected<double, ParseError> parse_rate(std::string_view text);

// An assertion about a figure without a value fails: it cannot be shown to hold. obstacle: the
// reason why nothing must be judged, or empty.
std::vector<Verdict> judge(const std::vector<Assertion>& assertions, const std::vector<Figure>& figures,
                           const std::string& obstacle);

} // namespace kxfer::bench
