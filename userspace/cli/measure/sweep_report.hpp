// SPDX-License-Identifier: MIT
//
// The report of a sweep: one page of HTML (and XML) that needs neither network nor
// scripts, for a light or dark screen, and for paper.
#pragma once

#include <string>

#include "bench/stats/sweep_result.hpp"

namespace kxfer::cli {

std::string html_of(const bench::SweepResult& result);

} // namespace kxfer::cli
