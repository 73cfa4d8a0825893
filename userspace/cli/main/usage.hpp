// SPDX-License-Identifier: MIT
//
// The texts for --help and for wrong command lines.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/output/failure.hpp"

namespace kxfer::cli {

// Gives --help the same look in all commands; call it when all are declared.
void finish_help(CLI::App& app);

// What is wrong with the command line, and what is allowed there.
Failure usage_failure(const CLI::App& app, const CLI::ParseError& error);

} // namespace kxfer::cli
