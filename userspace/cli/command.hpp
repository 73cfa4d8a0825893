// SPDX-License-Identifier: MIT
//
// How a command hangs together. cmd_VERB.cpp holds
//   struct VerbOptions          what the user said
//   run_verb(options, context)  what is done; returns the exit status
//   setup_verb(app, program)    declares it to CLI11
// and commands.hpp its setup function; main.cpp has it in the one table.
//
// Parsing only chooses: Program::run runs after all was parsed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/failure.hpp"
#include "cli/output.hpp"

namespace kxfer::cli {

struct Context {
    Output& out;
};

struct Program {
    std::function<Result(Context&)> run; // of the command that was chosen
};

// For commands that talk with a peer.
struct CommonOptions {
    std::string device;
    std::string key;             // that both ends have to prove; empty: none
    std::optional<uint32_t> tos; // type of service; none: that of the device
    double timeout_seconds = 10;

    std::chrono::milliseconds timeout() const {
        return std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
    }
};

void add_common_options(CLI::App& command, CommonOptions& common);

// A subcommand with its example, the last thing that --help prints.
CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& summary,
                      const std::string& example);

// Makes `run(options, context)` what happens when `command` was given.
template <typename Options>
void on_run(CLI::App& command, Program& program, std::shared_ptr<Options> options,
            Result (*run)(const Options&, Context&)) {
    command.callback([&program, options, run] {
        program.run = [options, run](Context& context) { return run(*options, context); };
    });
}

} // namespace kxfer::cli
