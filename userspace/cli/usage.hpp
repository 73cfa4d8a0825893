// SPDX-License-Identifier: MIT
//
// What a user is told who asked for help or got the command line wrong.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/failure.hpp"

namespace kxfer::cli {

// Gives all commands the same look of --help; call it when all are declared.
void finish_help(CLI::App& app);

// What was wrong, and what is allowed there.
Failure usage_failure(const CLI::App& app, const CLI::ParseError& error);

} // namespace kxfer::cli
