// SPDX-License-Identifier: MIT
//
// kxfer bench all: the ten figures that a person wants of a new link, in one screen.
#pragma once

#include <functional>
#include <string>

#include "cli/measure/bench_run.hpp"

namespace kxfer::cli {

// `check` says which options exclude each other in one run. Runs each row for --duration, or a second. A row
// that this link cannot do says why; the others go on. options: as they were given; those that choose one
// workload are refused. Exit status 1: a row has failed.
using CheckOptions = std::function<tl::expected<void, Failure>(const BenchOptions&)>;
Result bench_all(const BenchOptions& options, const std::string& version, const CheckOptions& check,
                 Context& context);

// Fails for options that choose a workload, or judge one.
tl::expected<void, Failure> check_all(const BenchOptions& options);

} // namespace kxfer::cli
