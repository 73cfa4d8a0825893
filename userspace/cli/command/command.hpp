// SPDX-License-Identifier: MIT
//
// The parts of a command. cmd_VERB.cpp holds
//   struct VerbOptions          the user's options
//   run_verb(options, context)  does the work; returns the exit status
//   setup_verb(app, program)    declares the command to CLI11
// Its folder's commands.hpp declares the setup function, and main.cpp lists it in its table.
//
// Parsing only selects the command: Program::run runs after all was parsed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <kxfer/kxfer.hpp>

#include "cli/command/peer.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/output.hpp"

namespace kxfer::cli {

struct Context {
    Output& out;
};

struct Program {
    std::function<Result(Context&)> run; // runs the selected command
};

// How long the links of a command, or of a listener, wait for the peer; 0: the module's choice.
struct PatienceOptions {
    double silence_seconds = 0;
    uint32_t ack_timeout = 0;
    uint32_t retries = 0;

    Patience patience() const {
        return {std::chrono::milliseconds(static_cast<int64_t>(silence_seconds * 1000)), ack_timeout,
                retries};
    }
};

// --silence and --ack-timeout
void add_patience_options(CLI::App& command, PatienceOptions& patience);

// At least 1 ms: a call takes no less.
std::chrono::milliseconds time_until(const Deadline& deadline);

// For commands that talk with a peer.
struct CommonOptions {
    std::string device;
    std::string key;             // the key both ends have to prove; empty: none
    std::optional<uint32_t> tos; // type of service; none: the device's default
    std::vector<Peer> via;       // other addresses of the peer
    // How long jobs wait for another of these; none: --timeout.
    std::optional<std::chrono::milliseconds> loss;
    double timeout_seconds = 10;
    // Until when several calls, each of --timeout at the most, have to be over.
    Deadline until = Deadline::never();
    PatienceOptions patience;
    uint64_t in_flight = 0; // bytes; 0: the module's choice

    std::chrono::milliseconds timeout() const {
        return std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
    }
    // What the next call may take.
    std::chrono::milliseconds call_timeout() const { return std::min(timeout(), time_until(until)); }
    uint32_t in_flight_kib() const { return static_cast<uint32_t>(in_flight / 1024); }
};

void add_common_options(CLI::App& command, CommonOptions& common);
void add_via_option(CLI::App& command, CommonOptions& common);

// Adds a subcommand with its example, which --help prints last.
CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& summary,
                      const std::string& example);

// Makes `run(options, context)` the action of `command`.
template <typename Options>
void on_run(CLI::App& command, Program& program, std::shared_ptr<Options> options,
            Result (*run)(const Options&, Context&)) {
    command.callback([&program, options, run] {
        program.run = [options, run](Context& context) { return run(*options, context); };
    });
}

} // namespace kxfer::cli
